"""What a person sees: text that can do nothing to a terminal, and colours only where there is one."""

import sys
from datetime import UTC, datetime
from unicodedata import category

import humanize
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from commonplace import paths, text
from commonplace.store import Entry

# They join letters and emoji, and do nothing else.
_JOINERS = "\u200c\u200d"


def harmless(shown: str) -> str:
    r"""Return the text with what could steer a terminal, or hide in it, made visible: `^[` for ESC, `<U+202E>`.

    That is every control character but newline and tab, and every format character (marks of writing direction, tags,
    zero-width space) but the two joiners. Stored bytes stay as they are; this is for showing only.
    """
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(map(_harmless, shown))


def _harmless(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    kind = category(character)
    if kind == "Cc" and ord(character) < 0x80:
        return "^" + chr(ord(character) ^ 0x40)
    if kind in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"<U+{ord(character):04X}>"
    return character


def console(*, errors: bool = False) -> Console:
    """Return a console that colours and folds on a terminal; anywhere else, lines stay as long as they are."""
    made = Console(stderr=errors, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = 1_000_000
    return made


def write(shown: str) -> None:
    """Write a text and a newline: made harmless on a terminal, byte for byte into a pipe or a file."""
    if sys.stdout.isatty():
        shown = harmless(shown)
    write_exactly(shown + "\n")


def write_exactly(shown: str) -> None:
    """Write a text as its UTF-8 bytes, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(shown.encode())
    sys.stdout.buffer.flush()


def tree(key: str, entries: list[Entry], width: int) -> Table:
    """Return what lies below a key drawn as a tree: names, sizes, and how long ago each memory was written.

    Where it does not fit into `width` columns, names give way and figures do not.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_row(Text(harmless(paths.show(key)), "bold"), text.size(sum(entry.size for entry in entries)), "")
    start = len(key) + 1 if key else 0
    _add_rows(table, [(entry.path[start:].split("/"), entry) for entry in entries], "")
    names, *figures = table.columns
    names.max_width = max(width - sum(2 + max(cell_len(str(cell)) for cell in column.cells) for column in figures), 8)
    return table


def _add_rows(table: Table, below: list[tuple[list[str], Entry]], indent: str) -> None:
    groups: dict[str, list[tuple[list[str], Entry]]] = {}
    for (name, *rest), entry in below:
        groups.setdefault(name, []).append((rest, entry))
    for name in sorted(groups):
        last = name == max(groups)
        branch = Text(indent + ("└─ " if last else "├─ "), "dim")
        size = text.size(sum(entry.size for _, entry in groups[name]))
        rest, entry = groups[name][0]
        if rest:
            table.add_row(branch + Text(harmless(name) + "/", "bold cyan"), size, "")
            _add_rows(table, groups[name], indent + ("   " if last else "│  "))
        else:
            age = humanize.naturaltime(datetime.now(UTC) - entry.updated_at)
            table.add_row(branch + Text(harmless(name)), size, age)
