"""Random commands: every store answers as the dict does."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import MemoryTool, Store, open_store

STORES: dict[str, Callable[[str], str]] = {"directory": lambda folder: folder}

# Few names, so that commands meet: above, below, beside, hidden, and with a common beginning.
PATHS = st.sampled_from(
    [
        "/memories" + path
        for path in ("", "/", "/a", "/a/", "/a/b", "/a/b/c", "/a-b", "/a.b", "/d/e", "/.h", "/a//x", "/../a")
    ]
)
TEXTS = st.text(alphabet="ab\n\r\té🫖", max_size=12)
LINES = st.integers(-1, 4)
COMMANDS = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS}, optional={"view_range": st.tuples(LINES, LINES)}
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS, "new_str": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": LINES, "insert_text": TEXTS},
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
    st.just("open the store again"),
)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("on_existing", ["error", "overwrite"])
@given(commands=st.lists(COMMANDS, max_size=30))
@settings(max_examples=150, deadline=None)
def test_a_store_answers_every_sequence_of_commands_as_the_dict_does(
    name: str, on_existing: Any, commands: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = STORES[name](str(Path(folder) / "memories"))
        model = MemoryTool(open_store("memory:"), on_existing=on_existing)
        tool = MemoryTool(open_store(url), on_existing=on_existing)
        try:
            for command in commands:
                if command == "open the store again":
                    tool.store.close()
                    tool = MemoryTool(open_store(url), on_existing=on_existing)
                    continue
                block = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": command}
                assert tool.answer(block) == model.answer(block)
                assert contents(tool.store) == contents(model.store)
        finally:
            tool.store.close()


def contents(store: Store) -> list[tuple[str, str]]:
    memories = [store.read(entry.path) for entry in store.list()]
    return [(memory.path, memory.content) for memory in memories if memory is not None]
