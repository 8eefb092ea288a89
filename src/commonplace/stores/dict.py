"""Memories in a dict: for tests and for lives that end with the process."""

from bisect import bisect_left, insort
from collections.abc import Iterator, MutableSequence
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
        # The same keys in order. Code points sort as their UTF-8 bytes do.
        self._keys: MutableSequence[str] = []
        self._lock = Lock()

    def read(self, path: str) -> Memory | None:
        with self._lock:  # so that no reader comes in the middle of a move
            return self._memories.get(path)

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        data = content.encode()
        memory = Memory(path, len(data), datetime.now(UTC), content, sha256(data))
        with self._lock:
            self._check(path, expect)
            if path not in self._memories:
                self._check_room(path)
            self._put(memory)
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
                self._put(replace(self._take(path), path=new + path[len(old) :]))
            return len(going)

    def delete(self, path: str, *, expect: str | None = None) -> int:
        with self._lock:
            self._check(path, expect)
            going = self._at(path)
            for gone in going:
                self._take(gone)
            return len(going)

    def list(self, below: str = "") -> Iterator[Entry]:
        with self._lock:
            memories = [self._memories[path] for path in (self._below(below) if below else self._keys)]
        for memory in memories:
            if below or not memory.path.startswith(RESERVED + "/"):
                yield Entry(memory.path, memory.size, memory.updated_at)

    def _put(self, memory: Memory) -> None:
        if memory.path not in self._memories:
            insort(self._keys, memory.path)
        self._memories[memory.path] = memory

    def _take(self, path: str) -> Memory:
        del self._keys[bisect_left(self._keys, path)]
        return self._memories.pop(path)

    def _at(self, path: str) -> MutableSequence[str]:
        """Return the key of the memory at this path, or of all below it."""
        return [path] if path in self._memories else self._below(path)

    def _below(self, path: str) -> MutableSequence[str]:
        # "0" is the character that follows "/".
        return self._keys[bisect_left(self._keys, path + "/") : bisect_left(self._keys, path + "0")]

    def _check(self, path: str, expect: Expect) -> None:
        """Raise Conflict where the memory at this path is not as expected."""
        memory = self._memories.get(path)
        if expect is not None and expect != ("absent" if memory is None else memory.revision):
            raise Conflict(path)

    def _check_room(self, path: str) -> None:
        """Raise Conflict where a memory stands at this path, above it or below it."""
        for standing in (*above(path), *self._at(path)):
            if standing in self._memories:
                raise Conflict(standing)
