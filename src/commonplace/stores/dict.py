"""Memories in a dict: for tests and for lives that end with the process."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from commonplace.errors import Conflict
from commonplace.store import RESERVED, Entry, Expect, Memory, Store, above, sha256


class DictStore(Store):
    """A store in this process. It is safe between threads and gone when the process ends.

    Every promise of `commonplace.store` holds but the first: nothing here survives a crash.
    """

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        self._lock = Lock()

    def read(self, path: str) -> Memory | None:
        return self._memories.get(path)

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        data = content.encode()
        memory = Memory(path, len(data), datetime.now(UTC), content, sha256(data))
        with self._lock:
            self._check(path, expect)
            if path not in self._memories:
                self._check_room(path)
            self._memories[path] = memory
        return memory

    def move(self, old: str, new: str, *, expect: str | None = None) -> int:
        with self._lock:
            self._check(old, expect)
            going = self._at(old)
            if not going:
                return 0
            if new == old or new.startswith(old + "/"):
                raise Conflict(old)
            self._check_room(new)
            for path in going:
                moved = new + path[len(old) :]
                self._memories[moved] = replace(self._memories.pop(path), path=moved)
            return len(going)

    def delete(self, path: str, *, expect: str | None = None) -> int:
        with self._lock:
            self._check(path, expect)
            going = self._at(path)
            for gone in going:
                del self._memories[gone]
            return len(going)

    def list(self, below: str = "") -> Iterator[Entry]:
        with self._lock:
            found = [
                Entry(memory.path, memory.size, memory.updated_at)
                for memory in self._memories.values()
                if (memory.path.startswith(below + "/") if below else not memory.path.startswith(RESERVED + "/"))
            ]
        # Code points sort as their UTF-8 bytes do.
        return iter(sorted(found, key=lambda entry: entry.path))

    def _at(self, path: str) -> tuple[str, ...]:
        """Return the key of the memory at this path, or of all below it."""
        if path in self._memories:
            return (path,)
        return tuple(key for key in self._memories if key.startswith(path + "/"))

    def _check(self, path: str, expect: Expect) -> None:
        memory = self._memories.get(path)
        if expect is not None and expect != ("absent" if memory is None else memory.revision):
            raise Conflict(path)

    def _check_room(self, path: str) -> None:
        """Make sure that nothing stands where a memory or a directory is to come."""
        for standing in (*above(path), *self._at(path)):
            if standing in self._memories:
                raise Conflict(standing)
