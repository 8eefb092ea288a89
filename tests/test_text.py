"""Text in, text out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import text

TEXTS = st.text(alphabet="ab\n\r\u2028", max_size=40)


@pytest.mark.parametrize(
    ("content", "lines"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\nb\n", 2), ("\n", 1), ("\n\n", 2), ("a\r\nb\u2028c\x0c", 2)],
)
def test_lines_are_counted_by_newlines_alone(content: str, lines: int) -> None:
    assert text.count_lines(content) == lines
    assert len(text.numbered(content, 1, lines)) == lines


@given(TEXTS)
def test_the_numbered_lines_are_the_content(content: str) -> None:
    rows = text.numbered(content, 1, text.count_lines(content))
    assert [int(row[:6]) for row in rows] == list(range(1, len(rows) + 1))
    assert "\n".join(row[7:] for row in rows) == content.removesuffix("\n")


@given(TEXTS, TEXTS, st.data())
def test_an_insert_adds_its_lines_after_the_line_and_keeps_all_others(
    content: str, inserted: str, data: st.DataObject
) -> None:
    line = data.draw(st.integers(0, text.count_lines(content)))
    edited = text.insert(content, line, inserted)
    before = [row[7:] for row in text.numbered(content, 1, text.count_lines(content))]
    added = (inserted if inserted.endswith("\n") else inserted + "\n").split("\n")[:-1]
    after = [row[7:] for row in text.numbered(edited, 1, text.count_lines(edited))]
    assert after == before[:line] + added + before[line:]
    # Nothing is converted on the way: the last line only gains a newline where something comes after it.
    ended = content.endswith("\n") or not content or line == len(before)
    assert edited.endswith("\n") == ended


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="ab\n", min_size=1, max_size=3))
def test_match_lines_are_the_distinct_lines_on_which_any_match_starts(content: str, wanted: str) -> None:
    starts = [position for position in range(len(content)) if content.startswith(wanted, position)]
    lines = sorted({content.count("\n", 0, start) + 1 for start in starts})
    assert text.match_lines(content, wanted) == (lines, True)


@pytest.mark.parametrize(("length", "listed"), [(2, 1000), (60_000, 333), (150_000, 133)])
def test_match_lines_are_cut_where_looking_for_all_would_take_long(length: int, listed: int) -> None:
    lines, complete = text.match_lines("a\n" * 100_000, "a\n" * (length // 2))
    assert lines == list(range(1, listed + 1))
    assert not complete


@pytest.mark.parametrize(
    ("position", "inserted", "lines"),
    [(0, "", (1, 3)), (8, "x", (3, 7)), (8, "x\n", (3, 7)), (8, "x\ny", (3, 8)), (18, "x", (8, 9))],
)
def test_a_change_is_shown_with_two_lines_on_either_side(position: int, inserted: str, lines: tuple[int, int]) -> None:
    content = "".join(f"{number}\n" for number in range(1, 10))
    assert text.changed_lines(content, position, inserted) == lines


@pytest.mark.parametrize(
    ("n_bytes", "size"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0K"),
        (1536, "1.5K"),
        (5632, "5.5K"),
        (1024 * 1024 - 52, "1023.9K"),
        (1024 * 1024 - 1, "1.0M"),
        (1258291, "1.2M"),
        (1024**3, "1.0G"),
        (5000 * 1024**3, "5000.0G"),
    ],
)
def test_sizes_are_written_for_people(n_bytes: int, size: str) -> None:
    assert text.size(n_bytes) == size


@pytest.mark.parametrize(("room", "kept"), [(0, 0), (2, 0), (3, 1), (5, 1), (6, 2), (9, 3), (99, 3)])
def test_rows_fit_with_a_line_end_each(room: int, kept: int) -> None:
    assert text.fit(["ab"] * 3, room) == ["ab"] * kept
