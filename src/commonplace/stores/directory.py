"""Memories as files: a folder is `/memories`, and a person may edit it with any editor."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from commonplace import messages
from commonplace.errors import Conflict, Refused, log, refused_by_system
from commonplace.store import RESERVED, Entry, Expect, Memory, Store
from commonplace.stores import _descriptors as disk

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
STAGING = "tmp"
LOCK = "lock"
# What no listing of everything, and no layer's listing of its own, goes into.
OWN = (RESERVED, f"{RESERVED}/{STAGING}")
OWN_LOCK = f"{RESERVED}/{STAGING}/{LOCK}"
# How often a read starts again because what it found was moved or replaced meanwhile.
TRIES = 1000
# No key is as deep as this, so what lies deeper is nobody's memory, and a listing need not follow it for ever.
MAX_DEPTH = 64

P = ParamSpec("P")
R = TypeVar("R")


def refusing(method: Callable[P, R]) -> Callable[P, R]:
    """Turn what the operating system says no to into the refusal that says so to Claude."""

    @wraps(method)
    def refusing_method(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            raise _refused(error) from error

    return refusing_method


def _refused(error: OSError) -> Exception:
    if error.errno == errno.EBADF:
        return ValueError("The store is closed")
    return refused_by_system(error)


class DirectoryStore(Store):
    """A store in a folder, one file for each memory. The folder is made if it is not there and `create` is true.

    A memory `notes/tea.md` is the file `notes/tea.md`, its bytes and nothing else, so any editor may be used on it, and
    the next read sees what it did. Files are readable by their owner only (0600, folders 0700), whatever the umask.

    Writers in all threads and processes of this machine take turns by one lock; readers never wait. A text is written
    to `.commonplace/tmp/`, synced, renamed into place in one step, and its folder synced, before `write` returns. A
    folder is renamed in one step; it is deleted by renaming it away in one step and purging it afterwards. Editors do
    not know the lock: an edit by hand in the very moment between a writer's last look and its rename is overwritten.

    Only ordinary files are memories. Links are never followed, wherever they stand and whenever they came; a file that
    is not UTF-8, not ordinary or larger than `max_bytes` is refused in words.

    Needs POSIX (Linux, macOS); elsewhere opening one raises NotImplementedError, which says what is missing. On network
    file systems the promises are those of the system's `flock` and `fsync`.

    Raises OSError where the folder cannot be made or opened; that is FileNotFoundError where it is not to be made.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES, create: bool = True
    ) -> None:
        if lacking := disk.missing_abilities():
            raise NotImplementedError(f"A directory store cannot keep its promises here; this system lacks: {lacking}")
        self._max_bytes = max_bytes
        self.root = Path(root).absolute()
        if create:
            _make_root(self.root)
        # The root itself may be a link: it is the operator's word, not Claude's.
        self._root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        self._staging: int | None = None
        self._open = [self._root]
        self._sweep()

    @refusing
    def read(self, path: str) -> Memory | None:
        for _ in range(TRIES):
            with _Way(self._root, path) as way:
                loaded = self._load(way)
                if loaded is None:
                    self._check_root()
                    return None
                data, status = loaded
                if way.still_leads_to(status):
                    return _memory(path, data, status)
        raise Refused(messages.KEEPS_MOVING)

    @refusing
    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        data = content.encode()
        if len(data) > self._max_bytes:
            raise self._too_large()
        with self._writing() as staging, _Way(self._root, path) as way:
            there = way.look()
            self._check(way, there, expect)
            way.check_no_memory_above()
            replacing = there is not None and stat.S_ISREG(there.st_mode)
            if not replacing:
                self._make_room(way, there)
            staged = disk.fresh_name()
            status = disk.write_new(staged, data, staging)
            try:
                rename = disk.rename if replacing else disk.rename_exclusive
                way.place(lambda: rename(staged, way.name, staging, way.end))
            except BaseException:
                with suppress(OSError):
                    os.unlink(staged, dir_fd=staging)
                raise
            way.sync()
        return _memory(path, data, status)

    @refusing
    def move(self, old: str, new: str, *, expect: str | None = None) -> int:
        with self._writing(), _Way(self._root, old) as source, _Way(self._root, new) as target:
            there = source.look()
            self._check(source, there, expect)
            count = self._count(source, there)
            if count == 0:
                return 0
            if new == old or new.startswith(old + "/"):
                raise Conflict(old)
            target.check_no_memory_above()
            self._make_room(target, target.look())
            target.place(lambda: disk.rename_exclusive(source.name, target.name, source.end, target.end))
            target.sync()
            if source.names[:-1] != target.names[:-1]:
                source.sync()
            source.prune()
            return count

    @refusing
    def delete(self, path: str, *, expect: str | None = None) -> int:
        with self._writing() as staging, _Way(self._root, path) as way:
            there = way.look()
            self._check(way, there, expect)
            count = self._count(way, there)
            if there is None or count == 0:
                return 0
            if stat.S_ISREG(there.st_mode):
                os.unlink(way.name, dir_fd=way.end)
                way.sync()
            else:
                gone = disk.fresh_name()
                disk.rename(way.name, gone, way.end, staging)
                way.sync()
                _purge(gone, staging)
            way.prune()
            return count

    def list(self, below: str = "") -> Iterator[Entry]:
        try:
            self._check_root()
            if not below:
                yield from _below(self._root, below)
                return
            with _Way(self._root, below) as way:
                if not way.missing:
                    there = way.look()
                    if there is not None and not stat.S_ISREG(there.st_mode):
                        yield from _below_name(way.name, way.end, below)
        except OSError as error:
            raise _refused(error) from error

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
        self._root = -1
        self._staging = None

    def _load(self, way: "_Way") -> tuple[bytes, os.stat_result] | None:
        """Return the bytes of a memory and what its file is, or None where there is none."""
        if way.missing:
            return None
        try:
            file = disk.open_file(way.name, way.end)
        except FileNotFoundError:
            return None
        except OSError as error:
            # A link with O_NOFOLLOW, or a socket.
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                raise Refused(messages.NOT_REGULAR) from error
            raise
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                if stat.S_ISDIR(status.st_mode):
                    return None
                raise Refused(messages.NOT_REGULAR)
            data = disk.read_all(file, status.st_size, self._max_bytes)
        finally:
            os.close(file)
        if len(data) > self._max_bytes:
            raise self._too_large()
        return data, status

    def _check(self, way: "_Way", there: os.stat_result | None, expect: Expect) -> None:
        """Raise Conflict where the memory is not as expected."""
        if expect is None:
            return
        if expect == "absent":
            as_expected = there is None or not stat.S_ISREG(there.st_mode)
        else:
            loaded = self._load(way)
            as_expected = loaded is not None and _revision(loaded[0]) == expect
        if not as_expected:
            raise Conflict(way.path)

    def _count(self, way: "_Way", there: os.stat_result | None) -> int:
        """Return how many memories are at a path or below it."""
        if there is None:
            return 0
        if stat.S_ISREG(there.st_mode):
            return 1
        return sum(1 for _ in _below_name(way.name, way.end, way.path))

    def _make_room(self, way: "_Way", there: os.stat_result | None) -> None:
        """Make sure that nothing stands at a path; an empty folder that somebody left there is removed."""
        if there is None:
            return
        if stat.S_ISREG(there.st_mode):
            raise Conflict(way.path)
        for entry in _below_name(way.name, way.end, way.path):
            raise Conflict(entry.path)
        try:
            disk.remove_empty(way.name, way.end, MAX_DEPTH)
        except OSError as error:
            # Something is in there that is no memory and not ours to remove.
            raise Refused(messages.NOT_REGULAR) from error

    def _too_large(self) -> Refused:
        return Refused(messages.TOO_LARGE.format(limit=f"{self._max_bytes:,}"))

    def _check_root(self) -> None:
        """Refuse where the root has been deleted, which from inside looks like a store without memories."""
        if os.fstat(self._root).st_nlink == 0:
            raise Refused(messages.STORE_GONE)

    def _writing(self) -> "_Turn":
        """Return a writer's turn, for `with`."""
        return _Turn(self)

    def _staging_folder(self) -> int:
        """Return the descriptor of the staging folder, making the folder if it is not there."""
        if self._staging is None:
            with _Way(self._root, OWN_LOCK) as way:
                if way.missing:
                    self._check_root()
                    way.make()
                    way.sync_made()
                self._staging = os.dup(way.end)
                self._open.append(self._staging)
        return self._staging

    def _sweep(self) -> None:
        """Remove what a killed writer left in the staging folder, unless somebody is writing."""
        with suppress(OSError, Refused), _Way(self._root, OWN_LOCK) as way:
            if way.missing:
                return
            lock = disk.Lock(LOCK, way.end)
            if lock.take(wait=False):
                try:
                    for name in os.listdir(way.end):
                        if name != LOCK:
                            _purge(name, way.end)
                finally:
                    lock.give_back()


class _Turn:
    """A writer's turn. Entering it waits for the lock and gives the staging folder; leaving it gives the lock back."""

    __slots__ = ("_lock", "_store")

    def __init__(self, store: DirectoryStore) -> None:
        self._store = store

    def __enter__(self) -> int:
        store = self._store
        while True:
            staging = store._staging_folder()
            # Meanwhile, or since our last turn, somebody may have removed the lock or the whole folder, and who came
            # then has made and locked a new one. Ours counts only while it is the one at the path.
            try:
                self._lock = lock = disk.Lock(LOCK, staging)
            except FileNotFoundError:
                pass  # the folder has been removed
            else:
                try:
                    lock.take()
                    if lock.is_at(OWN_LOCK, store._root):
                        return staging
                except BaseException:
                    # Not left to the end of its life, which whoever keeps the error for its traceback may put off.
                    lock.give_back()
                    raise
                lock.give_back()
            store._staging = None

    def __exit__(self, *exception: object) -> None:
        self._lock.give_back()


class _Way:
    """The folders from the root to where a key leads, entered one by one as far as they are there.

    `end` is the descriptor of the last one, `missing` the names of folders that are not there, `name` the last name.
    """

    def __init__(self, root: int, path: str) -> None:
        self.path = path
        self.names = path.split("/")
        self.name = self.names[-1]
        self.missing: list[str] = []
        self._folders = [root]
        self._memory_above: str | None = None
        end = root
        for depth, name in enumerate(self.names[:-1]):
            try:
                end = os.open(name, disk.FOLDER, dir_fd=end)
            except OSError as error:
                self.missing = self.names[depth:-1]
                if error.errno != errno.ENOENT:
                    self._explain(error, depth)
                break
            self._folders.append(end)
        self.end = end
        self._found = len(self._folders)

    def _explain(self, error: OSError, depth: int) -> None:
        """Find out what stands in place of a folder: a memory, or something to leave alone."""
        try:
            if error.errno not in disk.NO_FOLDER:
                raise error
            there = _look(self.names[depth], self._folders[-1])
            if there is not None and stat.S_ISREG(there.st_mode):
                self._memory_above = "/".join(self.names[: depth + 1])
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        while len(self._folders) > 1:
            try:
                os.close(self._folders.pop())
            except OSError:
                pass  # nothing was written through it, so there is nothing that closing it could fail to do

    def look(self) -> os.stat_result | None:
        """Return what there is at the path, a file or a folder, or None; refuse anything else."""
        return None if self.missing else _look(self.name, self.end)

    def still_leads_to(self, status: os.stat_result) -> bool:
        """Tell whether the same file is at the path now.

        If a folder was renamed while we went through it, what we read may never have been at the path we read it for.
        """
        if len(self._folders) == 1:
            return True
        return disk.is_at(status, self.path, self._folders[0])

    def check_no_memory_above(self) -> None:
        if self._memory_above is not None:
            raise Conflict(self._memory_above)

    def make(self) -> None:
        """Make the folders that are missing."""
        for name in self.missing:
            self.end = disk.make_folder(name, self.end)
            self._folders.append(self.end)

    def place(self, rename: Callable[[], None]) -> None:
        """Make the missing folders and rename something to the path; if that cannot be, they go again."""
        try:
            self.make()
            rename()
        except FileExistsError as error:
            # Somebody was faster by hand.
            self.prune()
            raise Conflict(self.path) from error
        except BaseException:
            self.prune()
            raise

    def prune(self) -> None:
        """Remove the folders that hold nothing any more, from the end upwards."""
        with suppress(OSError):
            for depth in reversed(range(1, len(self._folders))):
                os.rmdir(self.names[depth - 1], dir_fd=self._folders[depth - 1])

    def sync(self) -> None:
        """Make sure that what was done in the last folder, and every folder made on the way, survives a crash.

        It is done already when this fails, so the refusal says so.
        """
        try:
            self.sync_made()
        except OSError as error:
            log().warning("a change could not be synced: %s", error)
            raise Refused(messages.NOT_CONFIRMED) from error

    def sync_made(self) -> None:
        """Sync the last folder, and above it every one that got a new folder from us."""
        for folder in self._folders[self._found - 1 :]:
            disk.sync(folder)


def _make_root(folder: Path) -> None:
    """Make the root and the folders above it that are missing, readable by their owner only."""
    if folder.is_dir():
        return
    _make_root(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)
    with suppress(PermissionError):  # a folder that one may enter and write but not read cannot be synced
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            disk.sync(parent)
        finally:
            os.close(parent)


def _below(folder: int, path: str, depth: int = 0) -> Iterator[Entry]:
    """Yield the memories below an open folder, whose key is `path`, in the order of their keys."""
    prefix = f"{path}/" if path else ""
    with os.scandir(folder) as scan:
        # A folder sorts as its name and the slash that follows in a key: `a-b` comes before `a/c`.
        found = {entry.name + "/" * entry.is_dir(follow_symlinks=False): entry for entry in scan}
    for key in sorted(found):
        entry = found[key]
        if not (key.isascii() or _is_utf8(key)) or prefix + entry.name in OWN:
            continue
        if not key.endswith("/"):
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield Entry(prefix + key, status.st_size, _time(status))
        elif depth < MAX_DEPTH:
            yield from _below_name(entry.name, folder, prefix + entry.name, depth + 1)


def _below_name(name: str, at: int, path: str, depth: int = 0) -> Iterator[Entry]:
    """Yield the memories below the folder of this name, none where it has just gone or become something else."""
    try:
        folder = disk.open_folder(name, at)
    except OSError as error:
        if error.errno == errno.ENOENT or error.errno in disk.NO_FOLDER:
            return
        raise
    try:
        yield from _below(folder, path, depth)
    finally:
        os.close(folder)


def _look(name: str, at: int) -> os.stat_result | None:
    """Return what file or folder there is of this name, or None; refuse anything else, a link for example."""
    there = disk.look(name, at)
    if there is None or stat.S_ISREG(there.st_mode) or stat.S_ISDIR(there.st_mode):
        return there
    raise Refused(messages.NOT_REGULAR)


def _purge(name: str, at: int) -> None:
    """Remove a file or a tree from the staging folder. What cannot be removed stays there, out of every view."""
    try:
        disk.remove_tree(name, at)
    except OSError as error:
        log().warning("something deleted could not be purged from %s/%s: %s", RESERVED, STAGING, error)


def _memory(path: str, data: bytes, status: os.stat_result) -> Memory:
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(messages.NOT_UTF8) from error
    return Memory(path, len(data), _time(status), content, _revision(data))


def _revision(data: bytes) -> str:
    return sha256(data).hexdigest()


def _is_utf8(name: str) -> bool:
    """Tell whether a name on the disk is UTF-8; one that is not comes with lone surrogates in place of its bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time(status: os.stat_result) -> datetime:
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        # Somebody set the clock, or the file's time, to before the year 1 or after 9999.
        return datetime(9999 if status.st_mtime > 0 else 1, 1, 1, tzinfo=UTC)
