"""Does something just before the n-th call of a C function in a block, which every system call is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType


@contextmanager
def before_call(point: int, action: Callable[[], object]) -> Iterator[list[int]]:
    """Run the action once, before call number `point` of this thread; the value is not empty once it ran."""
    calls = count(1)
    ran: list[int] = []

    def hook(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and next(calls) == point:
            ran.append(point)
            action()

    sys.setprofile(hook)
    try:
        yield ran
    finally:
        sys.setprofile(None)
