"""What `view` answers when there is a lot to see."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import MemoryTool, Refused, open_store

TEN_MEGABYTES = 10 * 1024 * 1024
HEADER = "Here's the content of /memories/a with line numbers:"


@pytest.fixture(params=["dict", "directory"])
def tool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryTool]:
    with open_store("memory:" if request.param == "dict" else tmp_path / "memories") as store:
        yield MemoryTool(store)


def view(tool: MemoryTool, path: str = "/memories/a", **fields: Any) -> str:
    answer = tool.execute({"command": "view", "path": path, **fields})
    assert len(answer) <= 16_000
    return answer


def test_a_view_that_just_fits_is_whole_and_one_character_more_is_cut(tool: MemoryTool) -> None:
    room = 16_000 - len(HEADER) - len("\n     1\t")
    tool.store.write("a", "x" * room)
    assert view(tool) == f"{HEADER}\n     1\t{'x' * room}"
    tool.store.write("a", "x" * (room + 1))
    assert "is shown" not in view(tool)
    assert view(tool).endswith("View with view_range to see other lines.]")


def test_a_long_memory_is_cut_at_a_line_and_says_how_to_go_on(tool: MemoryTool) -> None:
    tool.store.write("a", "".join(f"line {number}\n" for number in range(1, 3001)))
    answer = view(tool)
    *_, last, note = answer.split("\n")
    number = int(last.split("\t")[0])
    assert last == f"{number:>6}\tline {number}"
    assert note == (
        f"[Lines 1-{number} of 3000 are shown. View with view_range to see more, for example [{number + 1}, 3000].]"
    )
    assert len(answer) > 15_000


@given(st.lists(st.integers(0, 600), min_size=1, max_size=200), st.integers(300, 16_000))
def test_following_the_notes_shows_every_line_in_order(widths: list[int], max_view_chars: int) -> None:
    tool = MemoryTool(open_store("memory:"), max_view_chars=max_view_chars)
    lines = ["x" * width for width in widths]
    tool.store.write("a", "".join(line + "\n" for line in lines))
    shown: list[str] = []
    view_range = None
    while True:
        answer = tool.execute({"command": "view", "path": "/memories/a", "view_range": view_range})
        assert len(answer) <= max_view_chars
        header, *rows = answer.split("\n")
        assert header == HEADER
        note = rows.pop() if rows[-1].startswith("[") else ""
        shown += [row[7:] for row in rows]
        if go_on := re.search(r"for example (\[\d+, \d+\])", note):
            view_range = [int(number) for number in re.findall(r"\d+", go_on[1])]
        elif note:
            # One line alone is too long; the next ones are still to be had.
            assert len(rows) == 1
            assert f"[Line {len(shown)} of {len(lines)} has {widths[len(shown) - 1]} characters" in note
            assert lines[len(shown) - 1].startswith(shown[-1])
            shown[-1] = lines[len(shown) - 1]
            if len(shown) == len(lines):
                break
            view_range = [len(shown) + 1, -1]
        else:
            break
    assert shown == lines


def test_a_very_low_limit_still_shows_something(tool: MemoryTool) -> None:
    low = MemoryTool(tool.store, max_view_chars=1)
    tool.store.write("a", "one\ntwo\n")
    answer = low.execute({"command": "view", "path": "/memories/a"})
    assert answer.startswith(HEADER)
    assert "view_range" in answer
    assert low.execute({"command": "view", "path": "/memories"}).split("\n")[1] == "8B\t/memories"


def test_without_a_limit_everything_is_shown(tool: MemoryTool) -> None:
    tool.store.write("a", "line\n" * 100_000)
    answer = MemoryTool(tool.store, max_view_chars=None).execute({"command": "view", "path": "/memories/a"})
    assert answer.count("\n") == 100_000
    assert answer.endswith("\n100000\tline")


def test_a_memory_of_ten_megabytes_is_viewed_edited_and_kept(tool: MemoryTool) -> None:
    line = "0123456789abcdef" * 8
    lines = [f"{number} {line}" for number in range(TEN_MEGABYTES // 140)]
    tool.execute({"command": "create", "path": "/memories/a", "file_text": "\n".join(lines)})
    assert f"of {len(lines)} are shown" in view(tool)
    assert view(tool, view_range=[70_001, 70_001]) == f"{HEADER}\n 70001\t{lines[70_000]}"
    tool.execute(
        {"command": "str_replace", "path": "/memories/a", "old_str": f"\n70000 {line}\n", "new_str": "\nhere\n"}
    )
    tool.execute({"command": "insert", "path": "/memories/a", "insert_line": len(lines), "insert_text": "the end"})
    assert view(tool, view_range=[70_001, 70_001]) == f"{HEADER}\n 70001\there"
    lines[70_000] = "here"
    memory = tool.store.read("a")
    assert memory is not None
    assert memory.content == "\n".join([*lines, "the end", ""])


def test_a_line_of_ten_megabytes_is_cut_and_says_so(tool: MemoryTool) -> None:
    tool.store.write("a", "x" * TEN_MEGABYTES + "\nshort\n")
    answer = view(tool)
    assert re.search(r"\[Line 1 of 2 has 10485760 characters; only its first \d+ are shown\.", answer)
    assert view(tool, view_range=[2, -1]) == f"{HEADER}\n     2\tshort"
    refusal = refused(tool, "str_replace", old_str="x", new_str="y")
    assert refusal.endswith("in lines: 1. Please ensure it is unique")


def test_the_line_limit_is_999_999(tool: MemoryTool) -> None:
    tool.store.write("a", "\n" * 999_998 + "last")
    assert view(tool, view_range=[999_999, -1]) == f"{HEADER}\n999999\tlast"
    assert "of 999999 are shown" in view(tool)
    tool.store.write("a", "\n" * 999_999 + "last")
    for view_range in (None, [1, 2]):
        assert (
            refused(tool, "view", view_range=view_range)
            == "File /memories/a exceeds maximum line limit of 999,999 lines."
        )


def test_a_refusal_never_echoes_a_novel(tool: MemoryTool) -> None:
    tool.store.write("a", "ab\n" * 900_000)
    assert refused(tool, "str_replace", old_str="z" * 5000, new_str="") == (
        f"No replacement was performed, old_str `{'z' * 1000}…` did not appear verbatim in /memories/a."
    )
    many = refused(tool, "str_replace", old_str="a", new_str="")
    assert many.endswith(", 999, 1000, …. Please ensure it is unique")
    edited = MemoryTool(tool.store).execute(
        {"command": "str_replace", "path": "/memories/a", "old_str": "ab\n" * 900_000, "new_str": "cd\n" * 800_000}
    )
    assert len(edited) <= 16_000
    assert "of 800000 are shown" in edited


def test_ten_thousand_memories_in_a_folder_are_listed_as_far_as_there_is_room(tool: MemoryTool) -> None:
    for number in range(10_000):
        tool.store.write(f"many/{number:05}.md", "x")
    tool.store.write("few/one.md", "x")
    _, *rows, note = view(tool, "/memories").split("\n")
    assert rows[:5] == [
        "9.8K\t/memories",
        "1B\t/memories/few/",
        "1B\t/memories/few/one.md",
        "9.8K\t/memories/many/",
        "1B\t/memories/many/00000.md",
    ]
    assert note == (
        f"[{len(rows) - 1} of 10003 entries are shown. View a sub-directory to see more, for example /memories/few/.]"
    )
    assert len(view(tool, "/memories/few").split("\n")) == 3
    tool.execute({"command": "rename", "old_path": "/memories/many", "new_path": "/memories/moved"})
    tool.execute({"command": "delete", "path": "/memories/moved"})
    assert [entry.path for entry in tool.store.list()] == ["few/one.md"]


def test_a_cut_listing_names_a_sub_directory_only_where_there_is_one_to_name(tool: MemoryTool) -> None:
    low = MemoryTool(tool.store, max_view_chars=400)
    for number in range(20):
        tool.store.write(f"{number:02}.md", "x")
    view = {"command": "view", "path": "/memories"}
    assert low.execute(view).endswith(" of 20 entries are shown. Keep memories in sub-directories to see them all.]")
    tool.store.write("a" * 100 + "/x", "x")
    assert low.execute(view).endswith(" of 22 entries are shown. Keep memories in sub-directories to see them all.]")
    tool.store.write("b/x", "x")
    assert low.execute(view).endswith("View a sub-directory to see more, for example /memories/b/.]")


def test_a_rename_that_would_put_something_out_of_reach_is_refused(tool: MemoryTool) -> None:
    deep = "/memories/d" + "/d" * 14
    tool.execute({"command": "create", "path": f"{deep}/x", "file_text": "x"})
    assert refused(tool, "rename", old_path="/memories/d", new_path="/memories/n" + "/n" * 10).endswith(
        "it can be at most 20 names deep"
    )
    assert refused(tool, "rename", old_path="/memories/d", new_path="/memories" + ("/" + "n" * 247) * 4).endswith(
        "it can be at most 1,024 bytes long"
    )
    tool.execute({"command": "rename", "old_path": "/memories/d", "new_path": "/memories/n" + "/n" * 4})
    view(tool, "/memories/n" + "/n" * 4 + "/d" * 14 + "/x")


def refused(tool: MemoryTool, command: str, **fields: Any) -> str:
    with pytest.raises(Refused) as refusal:
        tool.execute({"command": command, "path": "/memories/a", **fields})
    return str(refusal.value)
