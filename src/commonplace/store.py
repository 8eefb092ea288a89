"""The contract: what a store is asked to do and what it promises. Five methods; the thinking happens above them.

A **key** is a path without `/memories/`: `notes/tea.md`. Whoever calls a store has validated it (`paths.parse`), so a
store checks only what it alone can know. A directory is not a thing: it exists while a memory lies below it.

What every store promises, and `commonplace.testing.StoreSuite` asks of it:

* A write that returned survives a crash: files and directories are synced, a transaction is committed, a PUT is
  acknowledged. A reader sees the old text or the new one, never a part of either.
* `expect` is checked and acted on in one step, between threads, processes and machines. Of two writers who expect the
  same, one gets `Conflict`, so no update is ever lost. `expect` speaks of the memory at this very path: where there is
  none, or a directory, the answer is `Conflict`.
* A memory is never above or below another one: beside `a` there can be no `a/b`. `Conflict.path` names what stands in
  the way: the memory itself, one above it or one below it; of a move into itself, what was to move.
* `move` never overwrites. Moving or deleting a directory is one step where the engine can do that; elsewhere everything
  is copied before anything is deleted, running it again finishes the job, and a memory added meanwhile survives.
* Content is stored byte for byte: CRLF, tabs, U+2028 or a missing final newline, all as they came.
* Keys below `.commonplace/` belong to the layers. Every store keeps them, and `list("")` leaves them out.

A store raises `Refused` for what the system or the server says no to, `Conflict` where an expectation fails, and
nothing else on purpose.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, Self

RESERVED = ".commonplace"
"""The first segment of the keys that belong to stores and layers and not to Claude."""

Expect = str | Literal["absent"] | None
"""The `revision` a memory must have now, or `"absent"` where there must be none, or None for no condition."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory as a listing knows it: its key, its size in bytes of UTF-8, and when it was last written (UTC)."""

    path: str
    size: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Memory(Entry):
    """A memory with its text. `revision` is a token of the store's choosing that `expect` can name later."""

    content: str
    revision: str

    @property
    def content_sha256(self) -> str:
        """The SHA-256 of the content's UTF-8 bytes in lower-case hex, as the hosted Memory Stores API defines it."""
        return sha256(self.content.encode())


class Store(Protocol):
    """What keeps memories. The module's docstring says what all five methods promise together.

    Subclass it and write the five; what `with` needs is here.
    """

    def read(self, path: str) -> Memory | None:
        """Return the memory at `path`, or None where there is none (a directory is none).

        Raises Refused where something is there that is not a text.
        """
        ...

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        """Store a text and return it as the memory it now is. Directories come into being with it.

        Raises Conflict where `expect` does not hold, or where a memory lies above or below `path`.
        """
        ...

    def move(self, old: str, new: str, *, expect: str | None = None) -> int:
        """Move a memory, or all that lies below a directory, and return how many memories went; 0: nothing was there.

        The source is looked at first. Raises Conflict where anything stands at `new`, above it or below it, where `new`
        lies below `old`, and where `expect` does not hold.
        """
        ...

    def delete(self, path: str, *, expect: str | None = None) -> int:
        """Delete a memory, or all that lies below a directory, and return how many memories went.

        0 means that nothing was there; of two deletes at once exactly one returns 1. Raises Conflict where `expect`
        does not hold.
        """
        ...

    def list(self, below: str = "") -> Iterator[Entry]:
        """Yield what lies below a directory at any depth, in the order of the keys' UTF-8 bytes, without content.

        `""` is the whole store but for what lies below `.commonplace/`. A listing takes its time: what is moved
        meanwhile may be in it at both its places or at neither.
        """
        ...

    def close(self) -> None:
        """Give back what the store holds open. Closing twice is harmless; using a closed store is an error."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def clear(store: Store) -> int:
    """Delete every memory of a store, but not what lies below `.commonplace/`, and return how many went."""
    return sum(store.delete(name) for name in {entry.path.partition("/")[0] for entry in store.list()})


def above(path: str) -> Iterator[str]:
    """Yield the keys above a key, the shortest first: `a` and `a/b` for `a/b/c`."""
    end = path.find("/")
    while end != -1:
        yield path[:end]
        end = path.find("/", end + 1)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in lower-case hex."""
    # Imported here: hashlib loads OpenSSL, which would double the time that `import commonplace` takes.
    from hashlib import sha256

    return sha256(data).hexdigest()
