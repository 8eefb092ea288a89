r"""The transcript: commands, and the answers that the documentation gives for them, word for word.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool

Each entry starts on an empty store and runs its steps in order:

```python
for name, steps in ANSWERS.items():
    tool = new_tool_over_an_empty_store()
    for step in steps:
        assert ask(tool, step.command) == (step.answer, step.refused), name
```
 Where the page is silent, the answer is this project's
decision, which `docs/decisions.md` explains. The strings are written out here and not taken from `messages.py`, so that
neither can change without the other.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One command (the `input` of a tool_use block), the exact answer, and whether it comes with `is_error`."""

    command: dict[str, Any]
    answer: str
    refused: bool = False


def _does(command: str, answer: str, **fields: Any) -> Step:
    return Step({"command": command, **fields}, answer)


def _refuses(command: str, answer: str, **fields: Any) -> Step:
    return Step({"command": command, **fields}, answer, refused=True)


def _create(path: str, file_text: str) -> Step:
    return _does("create", f"File created successfully at: {path}", path=path, file_text=file_text)


_LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"
_CONTENT = "Here's the content of {} with line numbers:"
_NOTES = "/memories/notes.txt"
_NINE_LINES = "".join(f"line {number}\n" for number in range(1, 10))

ANSWERS: dict[str, tuple[Step, ...]] = {
    # view, directories
    "the first view of an empty store": (
        _does("view", _LISTING.format("/memories") + "0B\t/memories", path="/memories"),
    ),
    "the documented customer-service listing": (
        _create("/memories/customer_service_guidelines.xml", "<" * 1536),
        _create("/memories/refund_policies.xml", "<" * 2048),
        _does(
            "view",
            _LISTING.format("/memories") + "3.5K\t/memories\n"
            "1.5K\t/memories/customer_service_guidelines.xml\n"
            "2.0K\t/memories/refund_policies.xml",
            path="/memories",
        ),
    ),
    "a listing goes two levels deep, depth first, without hidden items and node_modules": (
        _create("/memories/b.md", "1"),
        _create("/memories/a/z.md", "22"),
        _create("/memories/a/deep/deeper/deepest.md", "333"),
        _create("/memories/a-b.md", "4444"),
        _create("/memories/.hidden.md", "55555"),
        _create("/memories/.git/config.md", "55555"),
        _create("/memories/a/.hidden.md", "55555"),
        _create("/memories/a/node_modules/x.md", "55555"),
        _create("/memories/node_modules/x.md", "55555"),
        _does(
            "view",
            _LISTING.format("/memories") + "10B\t/memories\n"
            "5B\t/memories/a/\n"
            "3B\t/memories/a/deep/\n"
            "2B\t/memories/a/z.md\n"
            "4B\t/memories/a-b.md\n"
            "1B\t/memories/b.md",
            path="/memories",
        ),
        _does(
            "view",
            _LISTING.format("/memories/a/deep") + "3B\t/memories/a/deep\n"
            "3B\t/memories/a/deep/deeper/\n"
            "3B\t/memories/a/deep/deeper/deepest.md",
            path="/memories/a/deep",
        ),
        _does(
            "view",
            _LISTING.format("/memories/.git") + "5B\t/memories/.git\n5B\t/memories/.git/config.md",
            path="/memories/.git",
        ),
    ),
    "sizes for people": (
        _create("/memories/a", "x" * 1023),
        _create("/memories/b", "x" * 1024),
        _create("/memories/c", "x" * 4096),
        _create("/memories/d", "é" * 2816),
        _create("/memories/e", "x" * 1_048_575),
        _does(
            "view",
            _LISTING.format("/memories") + "1.0M\t/memories\n"
            "1023B\t/memories/a\n1.0K\t/memories/b\n4.0K\t/memories/c\n5.5K\t/memories/d\n1.0M\t/memories/e",
            path="/memories",
        ),
    ),
    "view_range means nothing on a directory, as in the documented example": (
        _does("view", _LISTING.format("/memories") + "0B\t/memories", path="/memories", view_range=[1, 10]),
        _does("view", _LISTING.format("/memories") + "0B\t/memories", path="/memories", view_range="no"),
    ),
    "a trailing slash and doubled ones are forgiven and not shown": (
        _create("/memories/d/x.txt", "x"),
        _does(
            "view",
            _LISTING.format("/memories") + "1B\t/memories\n1B\t/memories/d/\n1B\t/memories/d/x.txt",
            path="/memories/",
        ),
        _does("view", _LISTING.format("/memories/d") + "1B\t/memories/d\n1B\t/memories/d/x.txt", path="/memories//d/"),
        _does("view", _CONTENT.format("/memories/d/x.txt") + "\n     1\tx", path="/memories/d//x.txt/"),
    ),
    # view, memories
    "a memory is viewed with line numbers": (
        _create(_NOTES, "Hello World\nThis is line two\n"),
        _does("view", _CONTENT.format(_NOTES) + "\n     1\tHello World\n     2\tThis is line two", path=_NOTES),
    ),
    "line numbers are six wide": (
        _create(_NOTES, "\n" * 99 + "Line one hundred"),
        _does("view", _CONTENT.format(_NOTES) + "\n   100\tLine one hundred", path=_NOTES, view_range=[100, -1]),
    ),
    "an empty memory is the header alone": (
        _create(_NOTES, ""),
        _does("view", _CONTENT.format(_NOTES), path=_NOTES),
        _does("view", _CONTENT.format(_NOTES), path=_NOTES, view_range=[1, -1]),
    ),
    "a line ends at a newline and nowhere else": (
        _create(_NOTES, "a\r\nb\u2028c\x0cd\x85e\n\nf"),
        _does(
            "view",
            _CONTENT.format(_NOTES) + "\n     1\ta\r\n     2\tb\u2028c\x0cd\x85e\n     3\t\n     4\tf",
            path=_NOTES,
        ),
    ),
    "view_range is inclusive, -1 is the last line, and an end past it is cut": (
        _create(_NOTES, "l1\nl2\nl3\n"),
        _does("view", _CONTENT.format(_NOTES) + "\n     2\tl2\n     3\tl3", path=_NOTES, view_range=[2, -1]),
        _does("view", _CONTENT.format(_NOTES) + "\n     1\tl1\n     2\tl2", path=_NOTES, view_range=[1, 2]),
        _does("view", _CONTENT.format(_NOTES) + "\n     3\tl3", path=_NOTES, view_range=[3, 99]),
        _does("view", _CONTENT.format(_NOTES) + "\n     2\tl2", path=_NOTES, view_range=["2", 2.0]),
    ),
    "a wrong view_range is refused with the valid one": (
        _create(_NOTES, "l1\nl2\nl3\n"),
        *(
            _refuses(
                "view",
                f"Error: Invalid `view_range` parameter: {shown}. "
                "It should be [start, end] with 1 <= start <= end <= 3, or end -1 for the last line",
                path=_NOTES,
                view_range=view_range,
            )
            for view_range, shown in (
                ([3, 2], "[3, 2]"),
                ([0, 1], "[0, 1]"),
                ([4, 5], "[4, 5]"),
                ([4, -1], "[4, -1]"),
                ([-1, -1], "[-1, -1]"),
                ([1, -2], "[1, -2]"),
                ([2], "[2]"),
                ([1, 2, 3], "[1, 2, 3]"),
                ([], "[]"),
                (["a", 2], '["a", 2]'),
                ([True, 2], "[true, 2]"),
                ([1.5, 2], "[1.5, 2]"),
                (2, "2"),
                ("1-2", '"1-2"'),
            )
        ),
    ),
    "view of what is not there": (
        _refuses("view", "The path /memories/nope does not exist. Please provide a valid path.", path="/memories/nope"),
        _create(_NOTES, "x"),
        _refuses("view", f"The path {_NOTES}/x does not exist. Please provide a valid path.", path=f"{_NOTES}/x"),
    ),
    # create
    "create keeps every byte": (
        _create(_NOTES, "Meeting notes:\n- Discussed project timeline\n- Next steps defined\n"),
        _does(
            "view",
            _CONTENT.format(_NOTES) + "\n     1\tMeeting notes:\n     2\t- Discussed project timeline\n"
            "     3\t- Next steps defined",
            path=_NOTES,
        ),
    ),
    "create where something is": (
        _create("/memories/d/x.txt", "x"),
        _refuses("create", "Error: File /memories/d/x.txt already exists", path="/memories/d/x.txt", file_text="y"),
        _refuses("create", "Error: File /memories/d already exists", path="/memories/d", file_text="y"),
        _refuses("create", "Error: File /memories already exists", path="/memories", file_text="y"),
        _refuses(
            "create",
            "Error: The path /memories/d/x.txt is not a directory",
            path="/memories/d/x.txt/y/z",
            file_text="y",
        ),
        _does("view", _CONTENT.format("/memories/d/x.txt") + "\n     1\tx", path="/memories/d/x.txt"),
    ),
    # str_replace
    "str_replace shows the change and two lines around it": (
        _create("/memories/preferences.txt", "Favorite color: blue\n"),
        _does(
            "str_replace",
            "The memory file has been edited.\n     1\tFavorite color: green",
            path="/memories/preferences.txt",
            old_str="Favorite color: blue",
            new_str="Favorite color: green",
        ),
        _create(_NOTES, _NINE_LINES),
        _does(
            "str_replace",
            "The memory file has been edited.\n"
            "     3\tline 3\n     4\tline 4\n     5\tone\n     6\ttwo\n     7\tthree\n     8\tline 7\n     9\tline 8",
            path=_NOTES,
            old_str="line 5\nline 6",
            new_str="one\ntwo\nthree",
        ),
    ),
    "str_replace without new_str deletes": (
        _create(_NOTES, "a\nb\nc\n"),
        _does("str_replace", "The memory file has been edited.\n     1\ta\n     2\tc", path=_NOTES, old_str="b\n"),
        _does("str_replace", "The memory file has been edited.\n     1\tc", path=_NOTES, old_str="a\n", new_str=None),
        _does("str_replace", "The memory file has been edited.", path=_NOTES, old_str="c\n", new_str=""),
        _does("view", _CONTENT.format(_NOTES), path=_NOTES),
    ),
    "str_replace is verbatim both ways": (
        _create(_NOTES, "price: OLD\r\n\ttab\n"),
        _does(
            "str_replace",
            "The memory file has been edited.\n     1\tprice: $& $1 \\1 {x}\r\n     2\t\ttab",
            path=_NOTES,
            old_str="OLD",
            new_str="$& $1 \\1 {x}",
        ),
        _refuses(
            "str_replace",
            f"No replacement was performed, old_str `{{x}}\n\ttab` did not appear verbatim in {_NOTES}.",
            path=_NOTES,
            old_str="{x}\n\ttab",
            new_str="y",
        ),
    ),
    "str_replace without a match": (
        _create(_NOTES, "l1\nl2\nl3\n"),
        _refuses(
            "str_replace",
            f"No replacement was performed, old_str `zz` did not appear verbatim in {_NOTES}.",
            path=_NOTES,
            old_str="zz",
            new_str="y",
        ),
        _refuses(
            "str_replace",
            "No replacement was performed. `old_str` must not be empty.",
            path=_NOTES,
            old_str="",
            new_str="y",
        ),
    ),
    "str_replace with several matches lists each line once": (
        _create(_NOTES, "l1\nl2\nl3\n"),
        _refuses(
            "str_replace",
            "No replacement was performed. Multiple occurrences of old_str `l` in lines: 1, 2, 3. "
            "Please ensure it is unique",
            path=_NOTES,
            old_str="l",
            new_str="y",
        ),
        _create("/memories/overlap.txt", "aaa\nx\nx\nx\naa a"),
        _refuses(
            "str_replace",
            "No replacement was performed. Multiple occurrences of old_str `aa` in lines: 1, 5. "
            "Please ensure it is unique",
            path="/memories/overlap.txt",
            old_str="aa",
            new_str="y",
        ),
        _refuses(
            "str_replace",
            "No replacement was performed. Multiple occurrences of old_str `x\nx` in lines: 2, 3. "
            "Please ensure it is unique",
            path="/memories/overlap.txt",
            old_str="x\nx",
            new_str="y",
        ),
    ),
    "str_replace of what is no memory": (
        _create("/memories/d/x.txt", "x"),
        *(
            _refuses(
                "str_replace",
                f"Error: The path {path} does not exist. Please provide a valid path.",
                path=path,
                old_str="x",
                new_str="y",
            )
            for path in ("/memories/nope", "/memories/d", "/memories")
        ),
    ),
    # insert
    "insert goes after a line, or to the top": (
        _create("/memories/todo.txt", "one\ntwo\nthree\n"),
        _does(
            "insert",
            "The file /memories/todo.txt has been edited.",
            path="/memories/todo.txt",
            insert_line=2,
            insert_text="- Review memory tool documentation\n",
        ),
        _does(
            "insert",
            "The file /memories/todo.txt has been edited.",
            path="/memories/todo.txt",
            insert_line=0,
            insert_text="top",
        ),
        _does(
            "view",
            _CONTENT.format("/memories/todo.txt") + "\n     1\ttop\n     2\tone\n     3\ttwo\n"
            "     4\t- Review memory tool documentation\n     5\tthree",
            path="/memories/todo.txt",
        ),
    ),
    "insert keeps blank lines and ends a last line first": (
        _create(_NOTES, "last"),
        _does("insert", f"The file {_NOTES} has been edited.", path=_NOTES, insert_line=1, insert_text="x\n\n"),
        _does("insert", f"The file {_NOTES} has been edited.", path=_NOTES, insert_line="3", insert_text="y"),
        _does("insert", f"The file {_NOTES} has been edited.", path=_NOTES, insert_line=4.0, new_str="z"),
        _does(
            "view", _CONTENT.format(_NOTES) + "\n     1\tlast\n     2\tx\n     3\t\n     4\ty\n     5\tz", path=_NOTES
        ),
    ),
    "insert outside the lines": (
        _create(_NOTES, "l1\nl2\nl3\n"),
        *(
            _refuses(
                "insert",
                f"Error: Invalid `insert_line` parameter: {line}. "
                "It should be within the range of lines of the file: [0, 3]",
                path=_NOTES,
                insert_line=line,
                insert_text="x",
            )
            for line in (9, 4, -1)
        ),
    ),
    "insert into what is no memory": (
        _create("/memories/d/x.txt", "x"),
        *(
            _refuses("insert", f"Error: The path {path} does not exist", path=path, insert_line=0, insert_text="y")
            for path in ("/memories/nope", "/memories/d", "/memories")
        ),
    ),
    # delete
    "delete takes a memory, or a directory with all that is in it": (
        _create("/memories/old_file.txt", "x"),
        _create("/memories/d/x.txt", "x"),
        _create("/memories/d/e/y.txt", "y"),
        _does("delete", "Successfully deleted /memories/old_file.txt", path="/memories/old_file.txt"),
        _does("delete", "Successfully deleted /memories/d", path="/memories/d/"),
        _does("view", _LISTING.format("/memories") + "0B\t/memories", path="/memories"),
        _refuses("delete", "Error: The path /memories/d does not exist", path="/memories/d"),
    ),
    "a directory is gone with its last memory": (
        _create("/memories/d/x.txt", "x"),
        _does("delete", "Successfully deleted /memories/d/x.txt", path="/memories/d/x.txt"),
        _refuses("view", "The path /memories/d does not exist. Please provide a valid path.", path="/memories/d"),
        _create("/memories/d", "now a memory"),
    ),
    "the root cannot be deleted or renamed": (
        _create("/memories/x", "x"),
        *(
            _refuses("delete", "Cannot delete the /memories directory itself", path=path)
            for path in ("/memories", "/memories/", "/memories//")
        ),
        _refuses(
            "rename", "Cannot rename the /memories directory itself", old_path="/memories/", new_path="/memories/sub"
        ),
        _does("view", _LISTING.format("/memories") + "1B\t/memories\n1B\t/memories/x", path="/memories"),
    ),
    # rename
    "rename moves a memory or a directory, making directories on the way": (
        _create("/memories/draft.txt", "x"),
        _does(
            "rename",
            "Successfully renamed /memories/draft.txt to /memories/final.txt",
            old_path="/memories/draft.txt",
            new_path="/memories/final.txt",
        ),
        _does(
            "rename",
            "Successfully renamed /memories/final.txt to /memories/a/b/final.txt",
            old_path="/memories/final.txt",
            new_path="/memories/a/b/final.txt",
        ),
        _does(
            "rename",
            "Successfully renamed /memories/a to /memories/c",
            path="/memories/a",
            new_path="/memories/c",
        ),
        _does("view", _CONTENT.format("/memories/c/b/final.txt") + "\n     1\tx", path="/memories/c/b/final.txt"),
        _refuses("view", "The path /memories/a does not exist. Please provide a valid path.", path="/memories/a"),
    ),
    "rename never overwrites, and looks at the source first": (
        _create("/memories/a.txt", "a"),
        _create("/memories/d/x.txt", "x"),
        *(
            _refuses("rename", f"Error: The destination {new} already exists", old_path="/memories/a.txt", new_path=new)
            for new in ("/memories/d/x.txt", "/memories/d", "/memories/a.txt", "/memories")
        ),
        _refuses(
            "rename", "Error: The path /memories/nope does not exist", old_path="/memories/nope", new_path="/memories/d"
        ),
        _refuses(
            "rename",
            "Error: The path /memories/nope does not exist",
            old_path="/memories/nope",
            new_path="/memories/new/deep",
        ),
        _refuses(
            "rename",
            "Error: The path /memories/a.txt is not a directory",
            old_path="/memories/d",
            new_path="/memories/a.txt/d",
        ),
        _refuses(
            "rename",
            "Error: Cannot rename /memories/d to /memories/d/e: a path cannot be moved into itself",
            old_path="/memories/d",
            new_path="/memories/d/e",
        ),
        _does(
            "view",
            _LISTING.format("/memories")
            + "2B\t/memories\n1B\t/memories/a.txt\n1B\t/memories/d/\n1B\t/memories/d/x.txt",
            path="/memories",
        ),
    ),
    # input
    "what is not a command": (
        _refuses(
            "bogus",
            'Error: Unknown command "bogus". It must be one of view, create, str_replace, insert, delete, rename',
        ),
        Step(
            {"path": "/memories"},
            "Error: The field `command` is missing. It must be one of view, create, str_replace, insert, delete, rename",
            refused=True,
        ),
        _refuses(
            "create", "Error: The field `file_text` is missing: the create command needs a string", path="/memories/x"
        ),
        _refuses("create", "Error: The field `file_text` must be a string, not 5", path="/memories/x", file_text=5),
        _refuses(
            "insert",
            "Error: The field `insert_line` must be a whole number, not true",
            path="/memories/x",
            insert_line=True,
            insert_text="x",
        ),
        _refuses(
            "create",
            "Error: The field `file_text` holds a NUL character, which a memory cannot hold. Nothing was changed",
            path="/memories/x",
            file_text="a\0b",
        ),
        _does("view", _LISTING.format("/memories") + "0B\t/memories", path="/memories"),
    ),
    "a path that leads out": (
        *(
            _refuses("view", f"Error: The path {path} is not allowed: {reason}", path=path)
            for path, reason in (
                ("/etc/passwd", "every path must be /memories or start with /memories/"),
                ("/memories2/x", "every path must be /memories or start with /memories/"),
                ("memories/x", "every path must be /memories or start with /memories/"),
                (
                    "/memories/../secrets.env",
                    "a name cannot consist of dots and spaces only, so leave out . and .. and write the path in full",
                ),
                (
                    "/memories/%2e%2e%2fsecrets.env",
                    "it hides a separator, dots or unreadable bytes behind % escapes. Write the characters themselves",
                ),
            )
        ),
    ),
}
