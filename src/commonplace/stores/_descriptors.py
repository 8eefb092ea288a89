"""Files and folders by descriptor: every step one name, no step through a link.

All that a directory store does to a disk goes through here. A path is never handed to the system whole: a folder is
entered one name at a time, relative to the descriptor of the folder above and with `O_NOFOLLOW`, so a link that somebody
swaps in between two steps is an error and never a way out. openat2(2) would do the same in one call on newer Linux
kernels, but then there were two ways of walking and the tests would mostly see one.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

# What the system says to opening something as a folder that is none: a file (a memory), or a link.
NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)

FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: opening a FIFO that somebody put there returns at once instead of waiting for a writer.
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def missing_abilities() -> str | None:
    """Return what this system lacks for a directory store to keep its promises, or None where it lacks nothing."""
    lacking = [
        name
        for name, there in (
            ("opening files relative to a folder", os.open in os.supports_dir_fd),
            ("refusing links while opening", hasattr(os, "O_NOFOLLOW")),
            ("locks between processes (flock)", fcntl is not None),
        )
        if not there
    ]
    return ", ".join(lacking) or None


def open_folder(name: str, at: int | None = None) -> int:
    """Open a folder that is one step away."""
    return os.open(name, FOLDER, dir_fd=at)


def make_folder(name: str, at: int) -> int:
    """Make a folder that only its owner can enter, whatever the umask, unless it is there, and open it."""
    try:
        os.mkdir(name, 0o700, dir_fd=at)
    except FileExistsError:
        return open_folder(name, at)
    try:
        if stat.S_IMODE(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode) & 0o700 != 0o700:
            _chmod_unopened(name, at)
        return open_folder(name, at)
    except BaseException:
        with suppress(OSError):
            os.rmdir(name, dir_fd=at)
        raise


def _chmod_unopened(name: str, at: int) -> None:
    """Give the owner what a strange umask took: without the right to read, a folder cannot be opened for fchmod."""
    if os.chmod in os.supports_follow_symlinks:  # macOS
        os.chmod(name, 0o700, dir_fd=at, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | FOLDER, dir_fd=at)
    try:
        os.chmod(f"/proc/self/fd/{handle}", 0o700)
    finally:
        os.close(handle)


def open_file(name: str, at: int) -> int:
    """Open a file for reading that is one step away."""
    return os.open(name, _FILE, dir_fd=at)


def read_all(file: int, size: int, limit: int) -> bytes:
    """Return what an open file holds, but no more than a byte beyond `limit`; `size`, from fstat, may be out of date."""
    data = os.read(file, min(size, limit) + 1)
    if len(data) == size:
        return data
    pieces = [data]
    length = len(data)
    while data and length <= limit:
        data = os.read(file, min(1 << 20, limit + 1 - length))
        pieces.append(data)
        length += len(data)
    return b"".join(pieces)


def write_new(name: str, data: bytes, at: int) -> os.stat_result:
    """Write a new file that only its owner can read, sync it, and return what it is now. On failure nothing stays."""
    file = os.open(name, _NEW_FILE, 0o600, dir_fd=at)
    try:
        if os.write(file, data) != len(data):
            raise OSError(errno.ENOSPC, "short write")
        status = os.fstat(file)
        if stat.S_IMODE(status.st_mode) != 0o600:  # a strange umask
            os.fchmod(file, 0o600)
        sync(file)
        return status
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=at)
        raise
    finally:
        os.close(file)


def sync(descriptor: int) -> None:
    """Return when a file or folder is on the disk itself."""
    if sys.platform == "darwin":
        # There, fsync only hands the data to the drive, which may keep it in its cache.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


class Lock:
    """The exclusive lock that a file stands for, made where it is missing.

    It belongs to this opening of the file, so it excludes threads as well as processes. It gives itself back when it is
    forgotten, so not even an interrupt at the worst moment leaves it held.
    """

    __slots__ = ("_file",)

    def __init__(self, name: str, at: int) -> None:
        self._file: int | None = None
        flags = os.O_RDWR | os.O_NOFOLLOW
        try:
            self._file = os.open(name, flags, dir_fd=at)
        except FileNotFoundError:
            self._file = os.open(name, flags | os.O_CREAT, 0o600, dir_fd=at)
            try:
                os.fchmod(self._file, 0o600)
            except BaseException:
                self._close()
                raise

    def take(self, *, wait: bool = True) -> bool:
        """Take the lock and tell whether we have it; without waiting, somebody else may."""
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def is_at(self, path: str, root: int) -> bool:
        """Tell whether the file is still the one at this path."""
        assert self._file is not None
        return is_at(os.fstat(self._file), path, root)

    def give_back(self) -> None:
        """Give the lock back, also where a child that was forked meanwhile has the file open."""
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    __del__ = _close


def rename(old: str, new: str, old_folder: int, new_folder: int) -> None:
    """Rename a file or folder in one step, over any file that stands at the new name."""
    os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)


def rename_exclusive(old: str, new: str, old_folder: int, new_folder: int) -> None:
    """Rename a file or folder in one step, or raise FileExistsError where anything stands at the new name.

    Where neither the C library nor the file system knows such a rename (renameat2 on Linux, renameatx_np on macOS), a
    file is linked and unlinked, which is two steps but cannot overwrite either, and for a folder it is looked first.
    """
    if _renameat is not None:
        arguments = old_folder, os.fsencode(old), new_folder, os.fsencode(new), _EXCLUSIVE
        if _renameat(*arguments) == 0:
            return
        if (number := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(number, os.strerror(number), old, None, new)
    if stat.S_ISDIR(os.stat(old, dir_fd=old_folder, follow_symlinks=False).st_mode):
        if look(new, new_folder) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        rename(old, new, old_folder, new_folder)
    else:
        os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
        os.unlink(old, dir_fd=old_folder)


def look(name: str, at: int) -> os.stat_result | None:
    """Return what there is of this name, a link as itself, or None where there is nothing."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_at(here: os.stat_result, path: str, at: int) -> bool:
    """Tell whether the file that fstat told of is at a path of several names now.

    Links on the way are followed, which does no harm: nothing is read, and either it is this very file or it is not.
    """
    try:
        there = os.stat(path, dir_fd=at, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOENT or error.errno in NO_FOLDER:
            return False
        raise
    return there.st_ino == here.st_ino and there.st_dev == here.st_dev


def remove_empty(name: str, at: int, depth: int) -> None:
    """Remove a folder that holds nothing but folders like it, so many deep; raises OSError for any other."""
    if depth == 0:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), name)
    folder = open_folder(name, at)
    try:
        for inner in os.listdir(folder):
            remove_empty(inner, folder, depth - 1)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=at)


def remove_tree(name: str, at: int) -> None:
    """Remove a file or a whole tree. `at` must be a folder of ours: inner folders are moved up into it.

    So neither recursion nor descriptors limit how deep a tree may be, which they do for `shutil.rmtree`.
    """
    pending = [name]
    while pending:
        current = pending.pop()
        if _unlink(current, at):
            continue
        folder = open_folder(current, at)
        try:
            for inner in os.listdir(folder):
                if not _unlink(inner, folder):
                    pending.append(fresh_name())
                    rename(inner, pending[-1], folder, at)
        finally:
            os.close(folder)
        os.rmdir(current, dir_fd=at)


def _unlink(name: str, at: int) -> bool:
    """Remove what is no folder, and tell whether it was none."""
    there = look(name, at)
    if there is not None and stat.S_ISDIR(there.st_mode):
        return False
    os.unlink(name, dir_fd=at)
    return True


def fresh_name() -> str:
    """Return a name that nothing has yet, nor can be guessed."""
    return os.urandom(12).hex()


def _find_renameat() -> tuple[Callable[..., int] | None, int]:
    """Return the C library's rename that does not overwrite, if it has one, and the flag that asks for it."""
    name, flag = ("renameatx_np", 4) if sys.platform == "darwin" else ("renameat2", 1)
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        function.restype = ctypes.c_int
    return function, flag


_renameat, _EXCLUSIVE = _find_renameat() if os.name == "posix" else (None, 0)
