"""Does something just before a C function is called, which every system call is: interferes, kills, or lets it fail.

It is a profile hook of the thread, so nothing below the store is replaced by something else.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any

FAILING_CALLS = frozenset(
    {"open", "read", "write", "fsync", "fstat", "stat", "mkdir", "rmdir", "rename", "unlink", "scandir", "flock", "dup"}
)


def every_call(function: Any) -> bool:
    """Count each C function."""
    return True


def can_fail(function: Any) -> bool:
    """Count the system calls that the system may refuse."""
    return function.__module__ in ("posix", "fcntl") and function.__name__ in FAILING_CALLS


@contextmanager
def before_call(
    point: int, action: Callable[[], object], among: Callable[[Any], bool] = every_call
) -> Iterator[list[int]]:
    """Run the action once, before the n-th of these calls of this thread; the value is not empty once it ran.

    What the action raises is raised where the call would have been.
    """
    calls = count(1)
    ran: list[int] = []

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and among(argument) and next(calls) == point:
            ran.append(point)
            action()

    sys.setprofile(hook)
    try:
        yield ran
    finally:
        sys.setprofile(None)


def failing(error: int, path: str | None = None) -> Callable[[], object]:
    """Return the action of a system call that fails with this error, and names this path as the system would."""

    def fail() -> None:
        raise OSError(error, os.strerror(error), path)

    return fail
