"""Writes docs/reference.md from docstrings, the command line's help and messages.py; `--check` only compares."""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

REFERENCE = Path(__file__).with_name("reference.md")
MODULES = ["commonplace", "commonplace.anthropic", "commonplace.testing"]
# The contract is documented where it is defined.
CONTRACT = "commonplace.store"


def reference() -> str:
    """Return the whole page."""
    parts = ["# Reference", "This page is made by `make docs`. Change the code it is made from instead.", "## Python"]
    for module in MODULES:
        parts += list(python(module))
    parts += ["## What every store promises", code_blocks(import_module(CONTRACT).__doc__ or "")]
    parts += ["## Command line", command_line()]
    parts += ["## Every sentence Claude reads", *sentences()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def python(name: str) -> Iterator[str]:
    """Yield the names that a module gives, with what their docstrings promise."""
    module = import_module(name)
    yield f"### `{name}`"
    yield code_blocks(inspect.getdoc(module) or "")
    for public in getattr(module, "__all__", None) or own_classes(module):
        value = getattr(module, public)
        if not callable(value):
            continue
        yield f"#### `{public}{signature(value)}`"
        yield code_blocks(inspect.getdoc(value) or "")
        for method, function in vars(value).items() if inspect.isclass(value) else ():
            if not method.startswith(("_", "test_")) and inspect.isfunction(function) and function.__doc__:
                yield f"* **`{method}{signature(function)}`** " + " ".join((inspect.getdoc(function) or "").split())


def own_classes(module: ModuleType) -> list[str]:
    return [
        name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
    ]


def signature(value: object) -> str:
    """Return a signature as it stands in the source, on one line and without `self`."""
    if inspect.isclass(value):
        if (
            issubclass(value, Exception | dict)
            or "__init__" not in vars(value)
            or getattr(value, "_is_protocol", False)
        ):
            return ""
        value = value.__init__
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body  # type: ignore[arg-type]
    except (OSError, TypeError):  # written by dataclass, or none at all
        text = str(inspect.signature(value)).removesuffix(" -> None").replace("(self, ", "(")  # type: ignore[arg-type]
        return re.sub(r"\b(typing|collections\.abc|datetime)\.", "", text)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    returned = "" if node.name == "__init__" or node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"({arguments}){returned}"


def code_blocks(docstring: str) -> str:
    """Return a docstring as Markdown: doctests and indented code become blocks that no test runs again."""
    return re.sub(r"(?m)(?:^>>> .*\n(?:.+\n?)*)", lambda match: f"```python\n{match[0].rstrip()}\n```\n", docstring)


def command_line() -> str:
    """Return the help of every command, as typer writes it."""
    command = [sys.executable, "-m", "typer", "commonplace.cli", "utils", "docs", "--name", "commonplace"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    page = done.stdout.replace("# `commonplace`\n", "", 1)
    return re.sub(r"(?m)^## ", "### ", page)


def sentences() -> Iterator[str]:
    """Yield the constants of messages.py under its own headings."""
    source = Path(import_module("commonplace.messages").__file__ or "").read_text(encoding="utf-8")
    constants = {
        node.lineno: (node.targets[0].id, ast.literal_eval(node.value))
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    rows: list[str] = []
    for number, line in enumerate(source.split("\n"), 1):
        if line.startswith("# "):
            if rows:
                yield "\n".join(rows)
                rows = []
            if part := re.fullmatch(r"# --- (.+?) -+", line):
                yield f"### {part[1]}"
            else:
                yield f"*{line[2:]}*"
        elif number in constants:
            name, sentence = constants[number]
            rows.append(f"* `{name}`: ``{sentence}``")
    yield "\n".join(rows)


def main() -> None:
    page = reference()
    if "--check" not in sys.argv:
        REFERENCE.write_text(page, encoding="utf-8")
    elif not REFERENCE.exists() or REFERENCE.read_text(encoding="utf-8") != page:
        sys.exit("docs/reference.md is not what the code says. Run: make docs")


if __name__ == "__main__":
    main()
