"""Whatever the model writes is a command or a refusal that names the field, and a refusal touches nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import MemoryTool, Refused, Store, open_store
from commonplace.commands import COMMANDS

COMPLETE: dict[str, dict[str, Any]] = {
    "view": {"path": "/memories/there"},
    "create": {"path": "/memories/new", "file_text": "x"},
    "str_replace": {"path": "/memories/there", "old_str": "t", "new_str": "x"},
    "insert": {"path": "/memories/there", "insert_line": 0, "insert_text": "x"},
    "delete": {"path": "/memories/there"},
    "rename": {"old_path": "/memories/there", "new_path": "/memories/new"},
}
REQUIRED = [(command, field) for command, fields in COMMANDS.items() for field in fields if fields[field].required]
TEXTS = ["file_text", "old_str", "new_str", "insert_text"]
NOT_A_STRING: list[Any] = [5, 5.0, True, [], ["a"], {}, {"a": 1}]
NOT_A_NUMBER: list[Any] = [True, False, 1.5, "", "one", "1.0", "+1", " 1", "1 ", "0x1", "١", [], [1], {}]
NOT_A_NUMBER += [float("nan"), float("inf")]


class Unchanged:
    """A store with one memory, which is still the only one at the end of the test."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.store.write("there", "text")
        self.tool = MemoryTool(store)

    def refuses(self, command: Any) -> str:
        with pytest.raises(Refused) as refused:
            self.tool.execute(command)
        self.check()
        answer = str(refused.value)
        json.dumps(answer).encode()
        answer.encode()
        assert len(answer) < 2000
        return answer

    def check(self) -> None:
        assert [(entry.path, entry.size) for entry in self.store.list()] == [("there", 4)]


@pytest.fixture(params=["dict", "directory"])
def unchanged(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Unchanged]:
    with open_store("memory:" if request.param == "dict" else tmp_path / "memories") as store:
        yield Unchanged(store)


@pytest.mark.parametrize("command", [None, 5, True, 1.5, "view", b"view", [], [{"command": "view"}], object()])
def test_what_is_no_object_is_refused(unchanged: Unchanged, command: Any) -> None:
    assert unchanged.refuses(command).startswith("Error: The input must be an object whose `command` is one of view,")


@pytest.mark.parametrize("name", ["", "View", "bogus", "view ", 5, True, [], {}, "x" * 100_000, "\ud800", "\x1b[31m"])
def test_an_unknown_command_is_refused_with_the_known_ones(unchanged: Unchanged, name: Any) -> None:
    answer = unchanged.refuses({"command": name, "path": "/memories/there"})
    assert answer.endswith("It must be one of view, create, str_replace, insert, delete, rename")
    assert answer.isprintable()


@pytest.mark.parametrize(("command", "field"), REQUIRED)
@pytest.mark.parametrize("how", ["missing", "null"])
def test_a_missing_field_is_named(unchanged: Unchanged, command: str, field: str, how: str) -> None:
    fields = {key: value for key, value in COMPLETE[command].items() if key != field}
    sent = {"command": command, **fields, **({field: None} if how == "null" else {})}
    assert unchanged.refuses(sent).startswith(f"Error: The field `{field}` is missing: the {command} command needs ")


@pytest.mark.parametrize(("command", "field"), [row for row in REQUIRED if row[1] != "insert_line"])
@pytest.mark.parametrize("value", NOT_A_STRING, ids=repr)
def test_a_string_is_a_string(unchanged: Unchanged, command: str, field: str, value: Any) -> None:
    answer = unchanged.refuses({"command": command, **COMPLETE[command], field: value})
    assert answer.startswith(f"Error: The field `{field}` must be a string")


@pytest.mark.parametrize("value", NOT_A_NUMBER, ids=repr)
def test_a_number_is_a_whole_number(unchanged: Unchanged, value: Any) -> None:
    answer = unchanged.refuses({"command": "insert", **COMPLETE["insert"], "insert_line": value})
    assert answer.startswith("Error: The field `insert_line` must be a whole number, not ")


@pytest.mark.parametrize("value", [10**30, -(10**30), 1e300, 10**5000, "9" * 18, -1, 2, "9" * 40], ids=range(8))
def test_a_huge_number_is_out_of_range_and_breaks_nothing(unchanged: Unchanged, value: Any) -> None:
    answer = unchanged.refuses({"command": "insert", **COMPLETE["insert"], "insert_line": value})
    assert answer.startswith("Error: Invalid `insert_line` parameter: ")
    assert answer.endswith("It should be within the range of lines of the file: [0, 1]")
    unchanged.refuses({"command": "view", "path": "/memories/there", "view_range": [value, -1]})


@pytest.mark.parametrize(
    ("command", "field"), [row for row in REQUIRED if row[1] in TEXTS] + [("str_replace", "new_str")]
)
@pytest.mark.parametrize("text", ["a\0b", "\ud800", "a\udfffb"], ids=["NUL", "high", "low"])
def test_what_no_text_can_hold_is_refused_before_anything_is_touched(
    unchanged: Unchanged, command: str, field: str, text: str
) -> None:
    answer = unchanged.refuses({"command": command, **COMPLETE[command], field: text})
    assert answer.startswith(f"Error: The field `{field}` holds ")


@pytest.mark.parametrize("field", ["insert_line", "view_range"])
@pytest.mark.parametrize(("written", "meant"), [(1, 1), (1.0, 1), ("1", 1), ("01", 1), ("-0", 0), (0.0, 0), ("0", 0)])
def test_numbers_are_forgiven_their_spelling(field: str, written: Any, meant: int) -> None:
    tool = MemoryTool(open_store("memory:"))
    tool.store.write("a", "1\n2\n")
    if field == "insert_line":
        tool.execute({"command": "insert", "path": "/memories/a", "insert_line": written, "insert_text": "x"})
        memory = tool.store.read("a")
        assert memory is not None
        assert memory.content == ("x\n1\n2\n" if meant == 0 else "1\nx\n2\n")
    elif meant == 1:
        answer = tool.execute({"command": "view", "path": "/memories/a", "view_range": [written, written]})
        assert answer.splitlines()[1:] == ["     1\t1"]


def test_what_models_call_a_field_instead_is_taken_only_where_the_field_is_missing() -> None:
    tool = MemoryTool(open_store("memory:"))
    tool.store.write("a", "")
    insert = {"command": "insert", "path": "/memories/a", "insert_line": 0}
    tool.execute({**insert, "new_str": "from new_str"})
    tool.execute({**insert, "insert_text": "from insert_text", "new_str": "not this"})
    tool.execute({"command": "rename", "path": "/memories/a", "new_path": "/memories/b"})
    tool.execute({"command": "rename", "old_path": "/memories/b", "path": "/memories/x", "new_path": "/memories/c"})
    memory = tool.store.read("c")
    assert memory is not None
    assert memory.content == "from insert_text\nfrom new_str\n"


def test_fields_that_a_command_does_not_have_are_ignored() -> None:
    tool = MemoryTool(open_store("memory:"))
    tool.execute({"command": "create", "path": "/memories/a", "file_text": "x", "view_range": 7, "junk": object()})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["path", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range", "old_path", "new_path"]
VALUES = JSON | st.sampled_from(["/memories", "/memories/there", "/memories/new", "text", [1, 1], [1, -1], 0, 1, "1"])
NONSENSE = st.fixed_dictionaries(
    {}, optional={"command": st.sampled_from(list(COMMANDS)) | JSON, **dict.fromkeys(FIELDS, VALUES)}
)


@given(NONSENSE | JSON)
def test_nonsense_is_answered_and_never_raises(command: Any) -> None:
    tool = MemoryTool(open_store("memory:"))
    tool.store.write("there", "text")
    result = tool.answer({"type": "tool_use", "id": "toolu_1", "name": "memory", "input": command})
    assert set(result) - {"is_error"} == {"type", "tool_use_id", "content"}
    assert "internal" not in result["content"]
    assert "Something went wrong inside" not in result["content"]
    result["content"].encode()
    if result.get("is_error"):
        memory = tool.store.read("there")
        assert memory is not None
        assert (memory.content, [entry.path for entry in tool.store.list()]) == ("text", ["there"])


@pytest.mark.parametrize("block", [None, 5, "tool_use", [], {}, {"type": "tool_use"}, object()])
def test_answer_takes_even_a_block_that_is_none(block: Any) -> None:
    result = MemoryTool(open_store("memory:")).answer(block)
    assert result["is_error"] is True
    assert result["tool_use_id"] is None
