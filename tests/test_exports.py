"""What the package gives, and what it costs to import."""

import subprocess
import sys

import pytest

import commonplace
from commonplace import MemoryTool, open_store


def test_the_public_names_are_the_documented_ones() -> None:
    assert commonplace.__all__ == [
        "AsyncMemoryTool",
        "Conflict",
        "Entry",
        "Memory",
        "MemoryTool",
        "Refused",
        "Store",
        "open_store",
    ]
    for name in commonplace.__all__:
        assert getattr(commonplace, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        commonplace.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "program",
    [
        "import commonplace",
        "from commonplace import MemoryTool, open_store",
        "from commonplace import MemoryTool, open_store; MemoryTool(open_store('.')).execute({'command': 'view', 'path': '/memories'})",
    ],
)
def test_the_core_needs_neither_asyncio_nor_any_library(program: str, tmp_path: object) -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        f"{program}\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "strangers = loaded - sys.stdlib_module_names - {'commonplace'} | loaded & {'asyncio'}\n"
        "sys.exit(', '.join(sorted(strangers)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("option", "value"), [("on_existing", "replace"), ("max_view_chars", 0), ("max_view_chars", -1)]
)
def test_an_option_that_cannot_work_is_refused_at_once(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=option):
        MemoryTool(open_store("memory:"), **{option: value})  # type: ignore[arg-type]
