"""The memory tool: six commands over any store, answered as documented."""

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict

from commonplace import commands, messages, paths, text
from commonplace.errors import Conflict, Refused, internal
from commonplace.store import Entry, Store, above

MAX_LINES = 999_999
_LONGEST_PAUSE = 0.05
# The first name of a path that a listing leaves out, with the slash before it.
_HIDDEN = re.compile(r"(?:^|/)(?:\.|node_modules(?:/|$))")


class Options(TypedDict, total=False):
    """The options of a MemoryTool, for whoever makes one on behalf of others."""

    on_existing: Literal["error", "overwrite"]
    max_view_chars: int | None
    patience: float


class MemoryTool:
    """Claude's memory tool (`memory_20250818`) over a store.

    `on_existing` says what `create` does where a memory is already: `"error"`, as today's documentation has it, or
    `"overwrite"`, as its older edition had it. `max_view_chars` is how many characters an answer to `view` has at most,
    note included; what is longer is cut at the end of a line and says how to go on (Claude is told to expect 16,000).
    Under 300 or so there is no room for the note, which comes all the same. None is no limit. `patience` is for how many seconds an edit is tried again when others keep changing the memory.

    One tool may serve any number of threads if its store may, and every store of ours may.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_existing: Literal["error", "overwrite"] = "error",
        max_view_chars: int | None = 16_000,
        patience: float = 10.0,
    ) -> None:
        if on_existing not in ("error", "overwrite"):
            raise ValueError(f'on_existing must be "error" or "overwrite", not {on_existing!r}')
        if max_view_chars is not None and max_view_chars < 1:
            raise ValueError(f"max_view_chars must be at least 1, or None for no limit, not {max_view_chars!r}")
        self.store = store
        self._overwrite = on_existing == "overwrite"
        self._max_view_chars = max_view_chars
        self._patience = patience
        self._commands: dict[str, Callable[..., str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def execute(self, command: Mapping[str, Any]) -> str:
        """Run one command, the `input` of a tool_use block, and return the documented answer.

        Raises Refused, whose text is the answer to send with `is_error`, for everything that the documentation lists as
        an error, for any malformed input, and for what the system under the store says no to.
        """
        name, fields = commands.parse(command)
        return self._commands[name](**fields)

    def answer(self, tool_use: Any) -> dict[str, Any]:
        """Return the tool_result block for a tool_use block, a dict or an object of the SDK.

        Never raises for what the block holds: a refusal, and even a bug of ours, is an answer with `is_error` set. Whether
        the block is meant for this tool, by its `name`, is for the caller to know.
        """
        result = {"type": "tool_result", "tool_use_id": _member(tool_use, "id")}
        try:
            return {**result, "content": self.execute(_member(tool_use, "input"))}
        except Refused as refused:
            return {**result, "content": str(refused), "is_error": True}
        except Exception as error:
            return {**result, "content": internal(error), "is_error": True}

    # The six commands

    def _view(self, path: str, view_range: object = None) -> str:
        key = paths.parse(path)
        memory = self.store.read(key) if key else None
        if memory is None:
            return self._view_directory(key)
        n_lines = text.count_lines(memory.content)
        if n_lines > MAX_LINES:
            raise Refused(messages.VIEW_TOO_MANY_LINES.format(path=paths.show(key)))
        first, last = _lines_of(view_range, n_lines)
        return self._page(messages.VIEW_MEMORY.format(path=paths.show(key)), memory.content, first, last)

    def _view_directory(self, key: str) -> str:
        there, sizes = _visible_sizes(key, self.store.list(key))
        if key and not there:
            raise Refused(messages.VIEW_MISSING.format(path=paths.show(key)))
        shown = paths.show(key)
        header = messages.VIEW_DIRECTORY.format(path=shown)
        total = sizes.pop("")
        # Name by name: NUL, which is in no name, comes before all that may be in one, as the end of a name does.
        names = sorted(sizes, key=lambda name: name.rstrip("/").replace("/", "\0"))
        rows = [f"{text.size(total)}\t{shown}", *(f"{text.size(sizes[name])}\t{shown}/{name}" for name in names)]
        room = self._room(header)
        if room is not None and len(text.fit(rows, room)) < len(rows):
            kept = text.fit(rows, room - _note_room(room)) or rows[:1]
            directories = (f"{shown}/{name}" for name in names if name.endswith("/"))
            example = next((directory for directory in directories if len(directory) <= 80), None)
            way_on = messages.VIEW_SUBDIRECTORY.format(example=example) if example else messages.USE_SUBDIRECTORIES
            note = messages.ENTRIES_SHOWN.format(shown=len(kept) - 1, total=len(rows) - 1, way_on=way_on)
            rows = [*kept, note]
        return "\n".join((header, *rows))

    def _create(self, path: str, file_text: str) -> str:
        key = paths.parse(path)
        if not key:
            raise Refused(messages.EXISTS.format(path=paths.ROOT))
        if self._overwrite:
            self.store.read(key)  # refuses what is no text, an image for example, which is not to be overwritten
        try:
            self.store.write(key, file_text, expect=None if self._overwrite else "absent")
        except Conflict as conflict:
            raise _in_the_way(conflict, key, messages.EXISTS.format(path=paths.show(key))) from None
        return messages.CREATED.format(path=paths.show(key))

    def _str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        key = paths.parse(path)
        shown = paths.show(key)
        if not old_str:
            raise Refused(messages.REPLACE_EMPTY)

        def replace(content: str) -> tuple[str, str]:
            position = content.find(old_str)
            if position == -1:
                raise Refused(messages.REPLACE_NO_MATCH.format(old_str=_echo(old_str), path=shown))
            if content.find(old_str, position + 1) != -1:
                lines, complete = text.match_lines(content, old_str)
                line_numbers = ", ".join(map(str, lines)) + ("" if complete else ", …")
                raise Refused(messages.REPLACE_MANY_MATCHES.format(old_str=_echo(old_str), line_numbers=line_numbers))
            edited = content[:position] + new_str + content[position + len(old_str) :]
            return edited, self._page(messages.REPLACED, edited, *text.changed_lines(edited, position, new_str))

        return self._edit(key, messages.REPLACE_MISSING, replace)

    def _insert(self, path: str, insert_line: int, insert_text: str) -> str:
        key = paths.parse(path)

        def insert(content: str) -> tuple[str, str]:
            n_lines = text.count_lines(content)
            if not 0 <= insert_line <= n_lines:
                shown_line = messages.shown(insert_line)
                raise Refused(messages.INSERT_LINE.format(insert_line=shown_line, n_lines=n_lines))
            return text.insert(content, insert_line, insert_text), messages.INSERTED.format(path=paths.show(key))

        return self._edit(key, messages.MISSING, insert)

    def _delete(self, path: str) -> str:
        key = paths.parse(path)
        if not key:
            raise Refused(messages.DELETE_ROOT)
        if self.store.delete(key) == 0:
            raise Refused(messages.MISSING.format(path=paths.show(key)))
        return messages.DELETED.format(path=paths.show(key))

    def _rename(self, old_path: str, new_path: str) -> str:
        old, new = paths.parse(old_path), paths.parse(new_path)
        shown = {"old_path": paths.show(old), "new_path": paths.show(new)}
        if not old:
            raise Refused(messages.RENAME_ROOT)
        if not new or new.startswith(old + "/"):
            if not self._exists(old):
                raise Refused(messages.MISSING.format(path=paths.show(old)))
            raise Refused((messages.INTO_ITSELF if new else messages.DESTINATION_EXISTS).format(**shown))
        self._check_names_after_move(old, new)
        try:
            moved = self.store.move(old, new)
        except Conflict as conflict:
            raise _in_the_way(conflict, new, messages.DESTINATION_EXISTS.format(**shown)) from None
        if moved == 0:
            raise Refused(messages.MISSING.format(path=paths.show(old)))
        return messages.RENAMED.format(**shown)

    # What they share

    def _edit(self, key: str, missing: str, change: Callable[[str], tuple[str, str]]) -> str:
        """Apply a change of text to a memory, again and again while others change it, and return the change's answer."""
        give_up = time.monotonic() + self._patience
        pause = 0.001
        while True:
            memory = self.store.read(key) if key else None
            if memory is None:
                raise Refused(missing.format(path=paths.show(key)))
            edited, answer = change(memory.content)
            try:
                self.store.write(key, edited, expect=memory.revision)
            except Conflict:
                if time.monotonic() >= give_up:
                    raise Refused(messages.KEEPS_CHANGING.format(path=paths.show(key))) from None
            else:
                return answer
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _page(self, header: str, content: str, first: int, last: int) -> str:
        """Return a header and numbered lines below it, cut to what one answer may hold."""
        room = self._room(header)
        # A numbered line takes eight characters and its own, so a short text needs no counting, and of a long one no
        # more than these lines can fit.
        if room is None or len(content) + 8 * (last - first + 1) <= room:
            return "\n".join((header, *text.numbered(content, first, last)))
        rows = text.numbered(content, first, min(last, first + room // 8))
        if len(text.fit(rows, room)) == last - first + 1:
            return "\n".join((header, *rows))
        n_lines = text.count_lines(content)
        room -= _note_room(room)
        if kept := text.fit(rows, room):
            end = first + len(kept) - 1
            note = messages.LINES_SHOWN.format(first=first, last=end, n_lines=n_lines, example=[end + 1, n_lines])
        else:
            kept = [rows[0][:room]]
            length, shown = len(rows[0]) - 7, max(room - 7, 0)
            note = messages.LINE_CUT.format(line=first, n_lines=n_lines, length=length, shown=shown)
        return "\n".join((header, *kept, note))

    def _room(self, header: str) -> int | None:
        """Return how many characters may follow a header; None: any number."""
        if self._max_view_chars is None:
            return None
        # Under a very low limit something is shown all the same, else nobody could ever go on reading.
        return max(self._max_view_chars - len(header), self._max_view_chars // 2)

    def _exists(self, key: str) -> bool:
        return self.store.read(key) is not None or any(True for _ in self.store.list(key))

    def _check_names_after_move(self, old: str, new: str) -> None:
        """Refuse a rename after which something would lie too deep, or under too long a path, to be named again."""
        if len(new.encode()) > len(old.encode()) or new.count("/") > old.count("/"):
            for entry in self.store.list(old):
                if paths.is_key(entry.path):
                    paths.parse(paths.show(new + entry.path[len(old) :]))


def _lines_of(view_range: object, n_lines: int) -> tuple[int, int]:
    """Return the first and last line that a `view_range` asks for; None asks for all."""
    if view_range is None:
        return 1, n_lines
    if isinstance(view_range, list | tuple) and len(view_range) == 2:
        start, end = map(commands.whole_number, view_range)
        if start is not None and end is not None:
            if end == -1 and (1 <= start <= n_lines or (start, n_lines) == (1, 0)):
                return start, n_lines
            if 1 <= start <= end and start <= n_lines:
                return start, min(end, n_lines)
    raise Refused(messages.VIEW_RANGE.format(view_range=messages.shown(view_range), n_lines=n_lines))


def _visible_sizes(key: str, entries: Iterable[Entry]) -> tuple[bool, dict[str, int]]:
    """Return whether anything lies below a directory, and the sizes of what a view of it shows.

    The sizes are by name from there on: `""` for the directory itself, a final `/` for directories below it, two levels
    deep. A directory's size is that of all visible memories below it. What Claude has no way to name is left out.
    """
    there = False
    sizes = {"": 0}
    start = len(key) + 1 if key else 0
    for entry in entries:
        there = True
        if not paths.is_key(entry.path):
            continue
        name = entry.path[start:]
        hidden = _HIDDEN.search(name)
        size = 0 if hidden else entry.size
        directories = (name[: hidden.start() + 1] if hidden else name).split("/")[:-1]
        sizes[""] += size
        for depth in (1, 2)[: len(directories)]:
            directory = "/".join(directories[:depth]) + "/"
            sizes[directory] = sizes.get(directory, 0) + size
        if not hidden and len(directories) < 2:
            sizes[name] = size
    return there, sizes


def _in_the_way(conflict: Conflict, key: str, otherwise: str) -> Refused:
    """Say what stands where a memory or directory was to come: a memory above it, or something right there."""
    if conflict.path in above(key):
        return Refused(messages.NOT_A_DIRECTORY.format(path=paths.show(conflict.path)))
    return Refused(otherwise)


def _note_room(room: int) -> int:
    """Return how much of the room is kept free for the note that says a view was cut."""
    return min(200, room // 2)


def _echo(old_str: str) -> str:
    return messages.cut(old_str, 1000)


def _member(block: Any, name: str) -> Any:
    return block.get(name) if isinstance(block, Mapping) else getattr(block, name, None)
