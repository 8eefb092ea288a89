r"""Text in, text out: numbering, matching, inserting, sizes. Nothing here knows a store or a path.

The one line model of this project: a line ends at `\n` and nowhere else, and a final `\n` ends the last line and starts
no other. `\r`, form feeds and U+2028 are text like any other. So `"a\nb\n"` and `"a\nb"` both have two lines, and `""`
has none. `str.splitlines` knows more line ends than that and is used nowhere.
"""

from operator import add

MATCH_LINES = 1000
MATCH_WORK = 20_000_000

# What stands before the first lines, by their number. Most memories are short, and joining is faster than formatting.
_GUTTER = [f"{number:>6}\t" for number in range(1000)]


def count_lines(content: str) -> int:
    """Return how many lines the content has."""
    return content.count("\n") + (content != "" and not content.endswith("\n"))


def numbered(content: str, first: int, last: int) -> list[str]:
    """Return lines `first` to `last` (from 1, inclusive) as the documentation numbers them: width 6, a tab, the line."""
    lines = content.split("\n", last)[first - 1 : last]
    if last < len(_GUTTER):
        return list(map(add, _GUTTER[first:], lines))
    return [f"{number:>6}\t{line}" for number, line in enumerate(lines, first)]


def fit(rows: list[str], room: int) -> list[str]:
    """Return as many of the first rows as fit into `room` characters, a line end before each."""
    used = 0
    for count, row in enumerate(rows):
        used += 1 + len(row)
        if used > room:
            return rows[:count]
    return rows


def match_lines(content: str, wanted: str) -> tuple[list[int], bool]:
    """Return the numbers of the lines on which `wanted` starts, each once, and whether these are all.

    They are the first thousand at most; fewer for a very long text, which it would take too long to look for so often.
    """
    limit = max(min(MATCH_LINES, MATCH_WORK // len(wanted)), 1)
    lines: list[int] = []
    number, counted_to = 1, 0
    position = content.find(wanted)
    while position != -1 and len(lines) < limit:
        number += content.count("\n", counted_to, position)
        counted_to = position
        lines.append(number)
        line_end = content.find("\n", position)
        position = -1 if line_end == -1 else content.find(wanted, line_end + 1)
    return lines, position == -1


def changed_lines(content: str, position: int, inserted: str) -> tuple[int, int]:
    """Return the first and last line to show after `inserted` came to stand at `position`: two more on either side."""
    start = content.count("\n", 0, position) + 1
    end = start + inserted.count("\n", 0, max(len(inserted) - 1, 0))
    return max(start - 2, 1), min(end + 2, count_lines(content))


def insert(content: str, line: int, inserted: str) -> str:
    r"""Return the content with a text put in after line `line` (0: at the top).

    The text gets a final `\n` if it has none, and so does a last line without one when text comes after it. Nothing
    else is stripped, added or converted.
    """
    if not inserted.endswith("\n"):
        inserted += "\n"
    if content and not content.endswith("\n") and line == count_lines(content):
        content += "\n"
    position = len(content) - len(content.split("\n", line)[-1])
    return content[:position] + inserted + content[position:]


def size(n_bytes: int) -> str:
    """Return a size the way the documentation shows it: `17B`, `1.5K`, `4.0K`, `1.2M`."""
    if n_bytes < 1024:
        return f"{n_bytes}B"
    amount = n_bytes / 1024
    for unit in "KM":
        # What would round to 1024.0 of one unit is 1.0 of the next.
        if amount < 1023.95:
            return f"{amount:.1f}{unit}"
        amount /= 1024
    return f"{amount:.1f}G"
