"""What a store can promise where it is: tried with scratch memories, not guessed."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from commonplace import text
from commonplace.errors import Conflict, Refused
from commonplace.open import open_store
from commonplace.store import RESERVED, Store
from commonplace.stores.directory import DirectoryStore

WRITERS, EDITS = 4, 5
TEXT = "a\r\nb\u2028c\td\x0b\n\ne\u0301é"


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise, whether it holds (None: a fact that is good to know), and what was seen."""

    promise: str
    holds: bool | None
    seen: str = ""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def examine(store: Store, url: str) -> Iterator[Finding]:
    """Yield what was found out, one by one. Scratch memories are below `.commonplace/` and go at the end.

    `url` opens the same store once more, in another process.
    """
    try:
        sizes = [entry.size for entry in store.list()]
        yield Finding("it can be read", True, f"{len(sizes)} memories, {text.size(sum(sizes))}")
    except Refused as refused:
        yield Finding("it can be read", False, str(refused))
    scratch = f"{RESERVED}/doctor-{os.urandom(6).hex()}"
    try:
        yield from _tried(store, url, scratch)
    finally:
        with suppress(Refused):
            store.delete(scratch)
    if isinstance(store, DirectoryStore):
        yield from _facts_of_a_folder(store.root)


def _tried(store: Store, url: str, scratch: str) -> Iterator[Finding]:
    try:
        store.write(f"{scratch}/first", TEXT)
    except Refused as refused:
        yield Finding("it can be written", False, str(refused))
        return
    yield Finding("it can be written", True)
    trials: dict[str, Callable[[], bool]] = {
        "content is kept byte for byte": lambda: _content(store, f"{scratch}/first") == TEXT,
        "of several who create a memory, one does": lambda: _creates_once(store, f"{scratch}/once"),
        "no edit is lost between threads": lambda: _keeps_edits(store, f"{scratch}/threads", _in_threads),
        "no edit is lost between processes": lambda: _keeps_edits(store, f"{scratch}/processes", _in_processes(url)),
        "a rename never overwrites": lambda: _never_overwrites(store, scratch),
        "a directory is renamed and deleted whole": lambda: _moves_whole(store, scratch),
        "no memory comes to be below a memory": lambda: not _writes(store, f"{scratch}/first/below"),
        "names may be 255 bytes long": lambda: _writes(store, f"{scratch}/{'n' * 255}"),
        "names that differ in case are different": lambda: (
            _writes(store, f"{scratch}/case") and _writes(store, f"{scratch}/CASE")
        ),
    }
    for promise, holds in trials.items():
        if url == "memory:" and "processes" in promise:
            yield Finding(promise, None, "no other process sees this store, and it ends with its own")
            continue
        try:
            yield Finding(promise, holds())
        except (Refused, Conflict, OSError) as error:
            yield Finding(promise, False, str(error))


def append(store: Store, key: str, times: int) -> None:
    """Append a line to a memory so many times, reading again whenever somebody else was faster."""
    while times:
        memory = store.read(key)
        with suppress(Conflict):
            store.write(key, (memory.content if memory else "") + "x\n", expect=memory.revision if memory else "absent")
            times -= 1


def _content(store: Store, key: str) -> str | None:
    memory = store.read(key)
    return memory.content if memory else None


def _writes(store: Store, key: str) -> bool:
    """Tell whether a new memory can be made at this key."""
    try:
        store.write(key, key, expect="absent")
    except Conflict:
        return False
    return _content(store, key) == key


def _creates_once(store: Store, key: str) -> bool:
    with ThreadPoolExecutor(WRITERS) as threads:
        return sum(threads.map(lambda _: _writes(store, key), range(WRITERS))) == 1


def _keeps_edits(store: Store, key: str, edit: Callable[[Store, str], None]) -> bool:
    edit(store, key)
    return _content(store, key) == "x\n" * WRITERS * EDITS


def _in_threads(store: Store, key: str) -> None:
    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(lambda _: append(store, key, EDITS), range(WRITERS)))


def _in_processes(url: str) -> Callable[[Store, str], None]:
    def edit(store: Store, key: str) -> None:
        command = [sys.executable, "-m", "commonplace.doctor", url, key, str(EDITS)]
        for writer in [subprocess.Popen(command) for _ in range(WRITERS)]:
            if writer.wait() != 0:
                raise OSError("another process could not write to it")

    return edit


def _never_overwrites(store: Store, scratch: str) -> bool:
    store.write(f"{scratch}/mine", "mine")
    with suppress(Conflict):
        store.move(f"{scratch}/mine", f"{scratch}/first")
    return (_content(store, f"{scratch}/mine"), _content(store, f"{scratch}/first")) == ("mine", TEXT)


def _moves_whole(store: Store, scratch: str) -> bool:
    for name in ("a", "b/c"):
        store.write(f"{scratch}/old/{name}", name)
    moved = store.move(f"{scratch}/old", f"{scratch}/new")
    there = [entry.path for entry in store.list(f"{scratch}/new")]
    gone = store.delete(f"{scratch}/new")
    return (moved, gone, there) == (2, 2, [f"{scratch}/new/a", f"{scratch}/new/b/c"])


def _facts_of_a_folder(root: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(root).free
    yield Finding("free space", None, f"{text.size(free)} below {root}")
    mode = stat.S_IMODE(root.stat().st_mode)
    yield Finding("others on this machine cannot look in", not mode & 0o077, f"the folder's mode is {mode:04o}")
    if (kind := file_system(root)) is not None:
        lasting = kind not in ("tmpfs", "ramfs")
        yield Finding("memories outlive a restart of the machine", lasting, f"the file system is {kind}")
        alone = not kind.startswith(("nfs", "cifs", "smb", "fuse.sshfs", "9p"))
        yield Finding("only this machine writes here", None if alone else False, f"the file system is {kind}")


def file_system(folder: Path) -> str | None:
    """Return the type of the file system a folder is on, where the system tells."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return None
    around = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    # Of several at one place, the last one mounted is the one that is seen.
    return max(reversed(around), key=lambda mount: len(mount[1]))[2] if around else None


if __name__ == "__main__":
    with open_store(sys.argv[1]) as _store:
        append(_store, sys.argv[2], int(sys.argv[3]))
