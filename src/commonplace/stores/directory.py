"""Memories as files: a folder is `/memories`, and a person may edit it with any editor."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from commonplace import messages
from commonplace.errors import Conflict, Refused, log, refused_by_system
from commonplace.store import RESERVED, Entry, Expect, Memory, Store, sha256
from commonplace.stores import _descriptors as disk

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
STAGING = "tmp"
LOCK = "lock"
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
            raise refused_by_system(error) from error

    return refusing_method


class DirectoryStore(Store):
    """A store in a folder, one file for each memory. The folder is made if it is not there.

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

    Raises OSError where the folder cannot be made or opened.
    """

    def __init__(self, root: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        if lacking := disk.missing_abilities():
            raise NotImplementedError(f"A directory store cannot keep its promises here; this system lacks: {lacking}")
        self._max_bytes = max_bytes
        folder = Path(root).absolute()
        _make_root(folder)
        # The root itself may be a link: it is the operator's word, not Claude's.
        self._root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._sweep()

    @refusing
    def read(self, path: str) -> Memory | None:
        *folders, name = path.split("/")
        while True:
            with _Way(self._root, folders) as way:
                memory = None if way.missing else self._read(way.end, name, path)
                if memory is None:
                    self._check_root()
                    return None
                if way.still_leads_there():
                    return memory

    @refusing
    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        data = content.encode()
        if len(data) > self._max_bytes:
            raise self._too_large()
        *folders, name = path.split("/")
        with self._writing() as staging, _Way(self._root, folders) as way:
            self._check(way, name, path, expect)
            way.check_no_memory_above()
            replacing = not way.missing and _is_file(name, way.end)
            if not replacing:
                self._make_room(way, name, path)
            staged = _fresh_name()
            status = disk.write_new(staged, data, staging)
            try:
                way.make()
                if replacing:
                    os.rename(staged, name, src_dir_fd=staging, dst_dir_fd=way.end)
                else:
                    disk.rename_exclusive(staged, name, staging, way.end)
            except BaseException as error:
                with suppress(OSError):
                    os.unlink(staged, dir_fd=staging)
                way.prune()
                if isinstance(error, FileExistsError):
                    raise Conflict(path) from error
                raise
            way.sync()
        return Memory(path, len(data), _time(status), content, sha256(data))

    @refusing
    def move(self, old: str, new: str, *, expect: str | None = None) -> int:
        *old_folders, old_name = old.split("/")
        *new_folders, new_name = new.split("/")
        with self._writing(), _Way(self._root, old_folders) as source, _Way(self._root, new_folders) as target:
            self._check(source, old_name, old, expect)
            count = self._count(source, old_name, old)
            if count == 0:
                return 0
            if new == old or new.startswith(old + "/"):
                raise Conflict(old)
            target.check_no_memory_above()
            self._make_room(target, new_name, new)
            try:
                target.make()
                disk.rename_exclusive(old_name, new_name, source.end, target.end)
            except BaseException as error:
                target.prune()
                if isinstance(error, FileExistsError):
                    raise Conflict(new) from error
                raise
            target.sync()
            source.sync()
            source.prune()
            return count

    @refusing
    def delete(self, path: str, *, expect: str | None = None) -> int:
        *folders, name = path.split("/")
        with self._writing() as staging, _Way(self._root, folders) as way:
            self._check(way, name, path, expect)
            count = self._count(way, name, path)
            if count == 0:
                return 0
            if _is_file(name, way.end):
                os.unlink(name, dir_fd=way.end)
                way.sync()
            else:
                gone = _fresh_name()
                os.rename(name, gone, src_dir_fd=way.end, dst_dir_fd=staging)
                way.sync()
                _purge(gone, staging)
            way.prune()
            return count

    def list(self, below: str = "") -> Iterator[Entry]:
        try:
            self._check_root()
            with _Way(self._root, below.split("/") if below else []) as way:
                if not way.missing:
                    yield from _below(way.end, below)
        except OSError as error:
            raise refused_by_system(error) from error

    def close(self) -> None:
        if self._root != -1:
            os.close(self._root)
            self._root = -1

    def _read(self, folder: int, name: str, path: str) -> Memory | None:
        """Return the memory of this name, None where there is none, or refuse what is not a text."""
        try:
            file = disk.open_file(name, folder)
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
            if status.st_size > self._max_bytes:
                raise self._too_large()
            data = disk.read_all(file, status.st_size)
        finally:
            os.close(file)
        try:
            content = data.decode()
        except UnicodeDecodeError as error:
            raise Refused(messages.NOT_UTF8) from error
        return Memory(path, len(data), _time(status), content, sha256(data))

    def _check(self, way: "_Way", name: str, path: str, expect: Expect) -> None:
        """Raise Conflict where the memory at `path` is not as expected."""
        if expect is None:
            return
        if expect == "absent":
            as_expected = way.missing or not _is_file(name, way.end)
        else:
            memory = None if way.missing else self._read(way.end, name, path)
            as_expected = memory is not None and memory.revision == expect
        if not as_expected:
            raise Conflict(path)

    def _count(self, way: "_Way", name: str, path: str) -> int:
        """Return how many memories are at `path` or below it."""
        if way.missing or (status := disk.look(name, way.end)) is None:
            self._check_root()
            return 0
        if stat.S_ISREG(status.st_mode):
            return 1
        if not stat.S_ISDIR(status.st_mode):
            raise Refused(messages.NOT_REGULAR)
        return sum(1 for _ in _below_name(name, way.end, path))

    def _make_room(self, way: "_Way", name: str, path: str) -> None:
        """Make sure that nothing stands at `path`; an empty folder that somebody left there is removed."""
        if way.missing or (status := disk.look(name, way.end)) is None:
            return
        if stat.S_ISREG(status.st_mode):
            raise Conflict(path)
        if not stat.S_ISDIR(status.st_mode):
            raise Refused(messages.NOT_REGULAR)
        for entry in _below_name(name, way.end, path):
            raise Conflict(entry.path)
        try:
            disk.remove_empty(name, way.end)
        except OSError as error:
            # Something is in there that is no memory and not ours to remove.
            raise Refused(messages.NOT_REGULAR) from error

    def _too_large(self) -> Refused:
        return Refused(messages.TOO_LARGE.format(limit=f"{self._max_bytes:,}"))

    def _check_root(self) -> None:
        """Refuse where the root has been deleted, which from inside looks like a store without memories."""
        if os.fstat(self._root).st_nlink == 0:
            raise Refused(messages.STORE_GONE)

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Take the writers' lock; the value is the descriptor of the staging folder."""
        self._check_root()
        with _Way(self._root, (RESERVED, STAGING)) as way:
            way.make()
            lock = disk.open_lock(LOCK, way.end)
            try:
                disk.lock(lock)
                yield way.end
            finally:
                os.close(lock)

    def _sweep(self) -> None:
        """Remove what a killed writer left in the staging folder, unless somebody is writing."""
        with suppress(OSError, Refused), _Way(self._root, (RESERVED, STAGING)) as way:
            if way.missing:
                return
            lock = disk.open_lock(LOCK, way.end)
            try:
                if disk.lock(lock, wait=False):
                    for name in os.listdir(way.end):
                        if name != LOCK:
                            _purge(name, way.end)
            finally:
                os.close(lock)


class _Way:
    """The folders that lead from the root to a memory, entered one by one as far as they are there.

    `end` is the descriptor of the last one, `missing` the names that are not there.
    """

    def __init__(self, root: int, names: Sequence[str]) -> None:
        self._names = names
        self._folders = [root]
        self._found = 1
        self._memory_above: str | None = None
        for name in names:
            try:
                self._folders.append(disk.open_folder(name, self._folders[-1]))
            except FileNotFoundError:
                break
            except OSError as error:
                try:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                        raise
                    if not _is_file(name, self._folders[-1]):
                        raise Refused(messages.NOT_REGULAR) from error
                except BaseException:
                    self.__exit__()
                    raise
                self._memory_above = "/".join(names[: len(self._folders)])
                break
        self._found = len(self._folders)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for folder in self._folders[1:]:
            os.close(folder)

    @property
    def end(self) -> int:
        return self._folders[-1]

    @property
    def missing(self) -> Sequence[str]:
        return self._names[len(self._folders) - 1 :]

    def still_leads_there(self) -> bool:
        """Tell whether the names lead to the same folder now.

        If a folder was renamed while we went through it, what we read may never have been at the path we read it for.
        """
        if len(self._folders) == 1:
            return True
        try:
            now = os.stat("/".join(self._names), dir_fd=self._folders[0], follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(now, os.fstat(self.end))

    def check_no_memory_above(self) -> None:
        if self._memory_above is not None:
            raise Conflict(self._memory_above)

    def make(self) -> None:
        """Make the folders that are missing."""
        for name in self.missing:
            self._folders.append(disk.make_folder(name, self.end))

    def prune(self) -> None:
        """Remove the folders that hold nothing any more, from the end upwards."""
        with suppress(OSError):
            for depth in reversed(range(1, len(self._folders))):
                os.rmdir(self._names[depth - 1], dir_fd=self._folders[depth - 1])

    def sync(self) -> None:
        """Make sure that what was done in the last folder, and every folder made on the way, survives a crash.

        It is done already when this fails, so the refusal says so.
        """
        try:
            for folder in self._folders[self._found - 1 :]:
                disk.sync(folder)
        except OSError as error:
            log.warning("a change could not be synced: %s", error)
            raise Refused(messages.NOT_CONFIRMED) from error


def _make_root(folder: Path) -> None:
    """Make the root and the folders above it that are missing, readable by their owner only."""
    if folder.is_dir():
        return
    _make_root(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)
    parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.sync(parent)
    finally:
        os.close(parent)


def _below(folder: int, path: str, depth: int = 0) -> Iterator[Entry]:
    """Yield the memories below an open folder, whose key is `path`, in the order of their keys."""
    prefix = f"{path}/" if path else ""
    with os.scandir(folder) as scan:
        # A folder sorts as its name and the slash that follows in a key: `a-b` comes before `a/c`.
        found = sorted((entry.name + "/" * entry.is_dir(follow_symlinks=False), entry) for entry in scan)
    for key, entry in found:
        if not _is_text(key):
            continue
        if not key.endswith("/"):
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield Entry(prefix + key, status.st_size, _time(status))
        elif depth < MAX_DEPTH and prefix + key not in (f"{RESERVED}/", f"{RESERVED}/{STAGING}/"):
            yield from _below_name(entry.name, folder, prefix + entry.name, depth + 1)


def _below_name(name: str, at: int, path: str, depth: int = 0) -> Iterator[Entry]:
    """Yield the memories below the folder of this name, none where it has just gone or become something else."""
    try:
        folder = disk.open_folder(name, at)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
            return
        raise
    try:
        yield from _below(folder, path, depth)
    finally:
        os.close(folder)


def _purge(name: str, at: int) -> None:
    """Remove a file or a tree from the staging folder. What cannot be removed stays there, out of every view."""
    try:
        if _is_folder(name, at):
            shutil.rmtree(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)
    except OSError as error:
        log.warning("something deleted could not be purged from %s/%s: %s", RESERVED, STAGING, error)


def _is_file(name: str, at: int) -> bool:
    status = disk.look(name, at)
    return status is not None and stat.S_ISREG(status.st_mode)


def _is_folder(name: str, at: int) -> bool:
    status = disk.look(name, at)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _is_text(name: str) -> bool:
    """Tell whether a name on the disk is UTF-8; one that is not comes with lone surrogates in place of its bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fresh_name() -> str:
    return os.urandom(12).hex()


def _time(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)
