"""The command line: the six commands for people, `exec` for programs, and what one wants around them.

Needs `commonplace[cli]`.
"""

import difflib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from commonplace import commands, doctor, messages, paths, terminal
from commonplace.errors import Conflict, Refused
from commonplace.jsonlines import serve
from commonplace.open import open_store
from commonplace.store import Entry, Memory, Store
from commonplace.tool import MemoryTool

app = typer.Typer(
    help="Memory for Claude that you keep.",
    epilog="Exit codes: 0 done, 1 refused or not possible, 2 wrong usage, 3 somebody else was faster, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

REFUSED, CONFLICT = 1, 3
HERE = "./memories"


def _tell_version(wanted: bool) -> None:
    if wanted:
        terminal.write(f"commonplace {version('commonplace')}")
        raise typer.Exit


@app.callback()
def commonplace(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version and exit.")
    ] = False,
) -> None:
    """Memory for Claude that you keep."""


def _known_paths(context: typer.Context, incomplete: str) -> list[str]:
    """Return what the shell may complete a path to: the next names below what is typed so far."""
    shown = set()
    with suppress(Exception), _open(context.params.get("store") or HERE) as store:
        for entry in store.list():
            if entry.path.startswith(incomplete):
                name, slash, _ = entry.path[len(incomplete) :].partition("/")
                shown.add(incomplete + name + slash)
    return sorted(shown)


StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="COMMONPLACE_STORE",
        metavar="PATH|URL",
        help="Where the memories are: a folder, or a URL such as file:///home/me/memories.",
    ),
]
PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="The path; /memories/ may be left out.", autocompletion=_known_paths)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer for programs.")]


@app.command()
def view(
    path: PathArgument = paths.ROOT,
    lines: Annotated[
        tuple[int, int] | None, typer.Option(metavar="START END", help="Only these lines; END -1 is the last.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="The text alone, byte for byte.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Show a memory, or what is in a directory, the way Claude sees it.

    Examples: `commonplace view`, `commonplace view notes/tea.md --lines 1 20`, `commonplace view tea.md --raw > tea.md`
    """
    with _open(store) as opened, _refusals(as_json):
        if raw or as_json:
            _view_for_programs(opened, _path(path), as_json)
        else:
            view_range = None if lines is None else list(lines)
            _answer(opened, False, command="view", path=path, view_range=view_range)


def _view_for_programs(store: Store, path: str, as_json: bool) -> None:
    key = paths.parse(path)
    memory = store.read(key) if key else None
    if memory is not None and as_json:
        more = {"content": memory.content, "content_sha256": memory.content_sha256, "revision": memory.revision}
        terminal.write(json.dumps(_as_json(memory) | more))
    elif memory is not None:
        terminal.write_exactly(memory.content)
    else:
        entries = [_as_json(entry) for entry in store.list(key)]
        if (key and not entries) or not as_json:
            raise Refused(messages.VIEW_MISSING.format(path=path))
        terminal.write(json.dumps(entries))


@app.command()
def create(
    path: PathArgument,
    file_text: Annotated[
        str | None, typer.Option("--text", help="The text; without it, standard input is read.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also where a memory is already.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Make a new memory from standard input.

    Example: `commonplace create notes/tea.md < tea.md`
    """
    file_text = _from_input() if file_text is None else file_text
    with _open(store, make=True) as opened, _refusals(as_json):
        _answer(opened, as_json, overwrite=overwrite, command="create", path=path, file_text=file_text)


@app.command("str-replace")
def str_replace(
    path: PathArgument,
    old: Annotated[str, typer.Argument(help="The text to replace. It must be there exactly once.")],
    new: Annotated[str, typer.Argument(help="What comes in its place; nothing, if left out.")] = "",
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Replace a text that is in a memory exactly once.

    Example: `commonplace str-replace preferences.md "tea: no sugar" "tea: one sugar"`
    """
    with _open(store) as opened, _refusals(as_json):
        _answer(opened, as_json, command="str_replace", path=path, old_str=old, new_str=new)


@app.command()
def insert(
    path: PathArgument,
    line: Annotated[int, typer.Argument(help="The line after which it comes; 0 is the top.")],
    insert_text: Annotated[
        str | None, typer.Option("--text", help="The text; without it, standard input is read.")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Insert lines from standard input after a line of a memory.

    Example: `echo "- buy tea" | commonplace insert todo.md 0`
    """
    insert_text = _from_input() if insert_text is None else insert_text
    with _open(store) as opened, _refusals(as_json):
        _answer(opened, as_json, command="insert", path=path, insert_line=line, insert_text=insert_text)


@app.command()
def delete(
    path: PathArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Delete a memory, or a directory with all that is in it; on a terminal, it asks before the latter.

    Example: `commonplace delete notes/old`
    """
    with _open(store) as opened, _refusals(as_json):
        if not yes and sys.stdin.isatty() and sys.stdout.isatty():
            below = sum(1 for _ in opened.list(key)) if (key := paths.parse(_path(path))) else 0
            if below:
                typer.confirm(f"Delete {below} memories below {terminal.harmless(paths.show(key))}?", abort=True)
        _answer(opened, as_json, command="delete", path=path)


@app.command()
def rename(
    old: PathArgument,
    new: Annotated[str, typer.Argument(help="Where it goes; nothing is ever overwritten.")],
    as_json: JsonOption = False,
    store: StoreOption = HERE,
) -> None:
    """Rename or move a memory or a directory.

    Example: `commonplace rename draft.md done/final.md`
    """
    with _open(store) as opened, _refusals(as_json):
        _answer(opened, as_json, command="rename", old_path=old, new_path=new)


@app.command()
def tree(path: PathArgument = paths.ROOT, as_json: JsonOption = False, store: StoreOption = HERE) -> None:
    """Show all memories as a tree, hidden ones too, with their sizes and how long ago they were written.

    Example: `commonplace tree notes --json | jq '.[].path'`
    """
    with _open(store) as opened, _refusals(as_json):
        key = paths.parse(_path(path))
        entries = list(opened.list(key))
        if key and not entries:
            raise Refused(messages.VIEW_MISSING.format(path=paths.show(key)))
        if as_json:
            terminal.write(json.dumps([_as_json(entry) for entry in entries]))
        else:
            out = terminal.console()
            out.print(terminal.tree(key, entries, out.width))


@app.command()
def edit(path: PathArgument, store: StoreOption = HERE) -> None:
    """Open a memory, or a new one, in your editor ($VISUAL or $EDITOR) and save it.

    If Claude or anybody else changes it meanwhile, nothing is overwritten: you see the difference, and your text is
    kept in a file. The exit code is 3 then.

    Example: `EDITOR=nano commonplace edit preferences.md`
    """
    with _open(store, make=True) as opened, _refusals(False):
        key = paths.parse(_path(path))
        if not key:
            raise Refused(messages.EXISTS.format(path=paths.ROOT))
        memory = opened.read(key)
        before = memory.content if memory else ""
        edited = _in_editor(before, key.rpartition("/")[2])
        if edited.content == before:
            terminal.write("Nothing was changed")
            edited.forget()
            return
        try:
            opened.write(key, edited.content, expect=memory.revision if memory else "absent")
        except Conflict:
            _explain_conflict(opened.read(key), edited)
        except Refused:
            terminal.console(errors=True).print(f"Your text is in {edited.file}")
            raise
        edited.forget()
        terminal.write(f"Saved {paths.show(key)}")


class _Edited:
    """A file with what came out of an editor."""

    def __init__(self, file: Path, content: str) -> None:
        self.file = file
        self.content = content

    def forget(self) -> None:
        self.file.unlink()
        self.file.parent.rmdir()


def _in_editor(content: str, name: str) -> _Edited:
    """Let the user edit a text in a file of this name."""
    file = Path(tempfile.mkdtemp(prefix="commonplace-")) / name
    file.write_text(content, encoding="utf-8", newline="")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        with subprocess.Popen([*editor, str(file)]) as process:
            while process.poll() is None:
                # An interrupt is the editor's to deal with.
                with suppress(KeyboardInterrupt):
                    process.wait()
    except FileNotFoundError:
        _fail(f"There is no editor {editor[0]!r}. Set $EDITOR to one")
    if process.returncode != 0:
        _fail(f"The editor ended with exit code {process.returncode}, so nothing was saved. The text is in {file}")
    try:
        edited = file.read_bytes().decode()
    except UnicodeDecodeError:
        _fail(f"The text is not UTF-8 any more, so nothing was saved. It is in {file}")
    try:
        commands.storable("text", edited)
    except Refused as refused:
        _fail(f"{refused}. Your text is in {file}")
    return _Edited(file, edited)


def _explain_conflict(now: Memory | None, edited: _Edited) -> NoReturn:
    """Show what is there now beside what the user wrote, keep the latter, and exit."""
    out = terminal.console(errors=True)
    out.print("Somebody changed this while you were editing, so nothing was saved.", style="bold red")
    there = now.content.split("\n") if now else []
    for line in difflib.unified_diff(there, edited.content.split("\n"), "there now", "yours", lineterm=""):
        style = {"+": "green", "-": "red"}.get(line[0], "")
        out.print(Text(terminal.harmless(line), style))
    out.print(f"Your text is in {edited.file}")
    raise typer.Exit(CONFLICT)


@app.command("doctor")
def doctor_(as_json: JsonOption = False, store: StoreOption = HERE) -> None:
    """Try out what this store can promise here, with scratch memories that are removed again.

    Exit code 0 means that it can keep every promise that was tried.

    Example: `commonplace doctor --store /mnt/shared/memories`
    """
    with _open(store, make=True) as opened:
        findings = []
        out = terminal.console()
        for finding in doctor.examine(opened, store):
            findings.append(finding)
            if not as_json:
                mark, style = {True: ("yes", "green"), False: ("NO", "bold red"), None: ("-", "dim")}[finding.holds]
                out.print(Text.assemble((f"{mark:>4}  ", style), finding.promise, (f"  {finding.seen}", "dim")))
    if as_json:
        terminal.write(json.dumps([finding.as_json() for finding in findings]))
    if any(finding.holds is False for finding in findings):
        raise typer.Exit(REFUSED)


@app.command("demo")
def demo_(
    folder: Annotated[Path, typer.Argument(help="Where the memories go; a new or an empty folder.")] = Path(
        "demo-memories"
    ),
    live: Annotated[bool, typer.Option("--live", help="With the real Claude; needs ANTHROPIC_API_KEY.")] = False,
    model: Annotated[str, typer.Option(help="The model, with --live.")] = "claude-sonnet-5-5",
) -> None:
    """Play conversations in which Claude remembers: the SDK, its HTTP and the memories are real, the model is scripted.

    Needs `commonplace[anthropic,testing]`.

    Example: `ANTHROPIC_API_KEY=... commonplace demo my-memories --live`
    """
    try:
        from commonplace import demo
    except ModuleNotFoundError as error:
        _fail(f"The demo needs {error.name}. Install it with: pip install 'commonplace[anthropic,cli,testing]'")
    if folder.exists() and any(folder.iterdir()):
        _fail(f"{folder} is not empty. Name a new folder to play the demo into")
    if live and not os.environ.get("ANTHROPIC_API_KEY"):
        _fail("--live needs a key of the Claude API in ANTHROPIC_API_KEY. The Claude console gives you one")
    demo.play(folder, model if live else None)


@app.command("exec")
def exec_(store: StoreOption = HERE) -> None:
    """Answer memory commands from standard input, one JSON object per line, until it ends.

    A line is a tool_use block as the API sends it, or its bare `input`. Each is answered by one line on standard
    output: the tool_result block to send back. One process serves for as long as you like, from any language.

    Example: `echo '{"command": "view", "path": "/memories"}' | commonplace exec --store ./memories`
    """
    with _open(store, make=True) as opened:
        serve(MemoryTool(opened), sys.stdin.buffer, sys.stdout.buffer)


# What they share


def _open(store: str, *, make: bool = False) -> Store:
    """Open a store; one that is not there is made only by a command that has something to put into it."""
    try:
        return open_store(store, create=make)
    except FileNotFoundError:
        _fail(f"There is no store at {store} yet. The first memory makes it: commonplace create --store {store} PATH")
    except (ValueError, OSError, NotImplementedError) as error:
        _fail(f"commonplace: cannot open the store {store!r}: {error}")


def _path(path: str) -> str:
    """Return the path as Claude writes it; people may leave /memories/ out."""
    return path if path.startswith("/") else f"{paths.ROOT}/{path}"


def _from_input() -> str:
    """Return all of standard input as a text."""
    if sys.stdin.isatty():
        terminal.console(errors=True).print("Type the text; Ctrl-D on an empty line ends it.", style="dim")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        _fail(messages.FIELD_NOT_TEXT.format(field="standard input", what="bytes that are not UTF-8"))


def _answer(store: Store, as_json: bool, *, overwrite: bool = False, **command: Any) -> None:
    """Run one command and show the answer."""
    tool = MemoryTool(store, on_existing="overwrite" if overwrite else "error", max_view_chars=None)
    shown = {key: _path(value) if key.endswith("path") else value for key, value in command.items()}
    answer = tool.execute(shown)
    terminal.write(json.dumps({"answer": answer}) if as_json else answer)


@contextmanager
def _refusals(as_json: bool) -> Iterator[None]:
    """Say a refusal where errors are said, and exit."""
    try:
        yield
    except Refused as refused:
        if as_json:
            terminal.write(json.dumps({"error": str(refused)}))
            raise typer.Exit(REFUSED) from None
        _fail(str(refused))


def _as_json(entry: Entry) -> dict[str, object]:
    return {"path": paths.show(entry.path), "size": entry.size, "updated_at": entry.updated_at.isoformat()}


def _fail(sentence: str) -> NoReturn:
    terminal.console(errors=True).print(Text(terminal.harmless(sentence), "red"))
    raise typer.Exit(REFUSED)
