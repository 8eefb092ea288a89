"""Swaps a folder of a directory store for a link to another place, in a tight loop, while every command runs."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commonplace.open import open_store
from commonplace.tool import MemoryTool

CANARY = "a canary"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def can_swap() -> bool:
    """Tell whether this system exchanges two names in one step (renameat2 on Linux)."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "renameat2")


def swap_links(home: Path, rounds: int) -> tuple[list[str], list[str]]:
    """Run every command so many times on a new store below `home` and return all answers, and all that was wrong.

    Outside the store lie canaries. None of their text may come in, nothing of ours may come to lie among them, and they
    must be as they were.
    """
    root, outside = home / "memories", home / "outside"
    (outside / "inner").mkdir(parents=True)
    canaries = [outside / "x.md", outside / "inner" / "x.md"]
    for canary in canaries:
        canary.write_text(CANARY)
    with open_store(root) as store:
        store.write("a/inner/x.md", "inside")
        (root / "link").symlink_to(outside)
        tool = MemoryTool(store, patience=0)
        with _swapping(root / "a", root / "link"):
            answers = [
                str(tool.answer({"id": "toolu_1", "input": command})["content"])
                for number in range(rounds)
                for command in _commands(number)
            ]
    wrong = [f"Claude was told: {answer}" for answer in answers if CANARY in answer]
    there = {path for path in outside.rglob("*") if path.is_file()}
    wrong += [f"{path.relative_to(home)} came to lie outside" for path in there - set(canaries)]
    wrong += [f"{canary.relative_to(home)} is gone" for canary in set(canaries) - there]
    wrong += [f"{path.relative_to(home)} was changed" for path in there & set(canaries) if path.read_text() != CANARY]
    return answers, wrong


@contextmanager
def _swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names again and again while the block runs."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(*names)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        yield
    finally:
        done.set()
        swapping.join()


def _commands(number: int) -> Iterator[dict[str, Any]]:
    """Yield each command with paths through the folder that is swapped."""
    inner, new = "/memories/a/inner/x.md", f"/memories/a/inner/new{number}.md"
    yield {"command": "view", "path": inner}
    yield {"command": "view", "path": "/memories/a"}
    yield {"command": "view", "path": "/memories"}
    yield {"command": "create", "path": new, "file_text": "written"}
    yield {"command": "create", "path": f"/memories/a/fresh{number}/new.md", "file_text": "written"}
    yield {"command": "str_replace", "path": inner, "old_str": "canary", "new_str": "written"}
    yield {"command": "insert", "path": "/memories/a/x.md", "insert_line": 0, "insert_text": "written"}
    yield {"command": "rename", "old_path": "/memories/a/x.md", "new_path": f"/memories/stolen{number}.md"}
    yield {"command": "rename", "old_path": new, "new_path": "/memories/a/x.md"}
    yield {"command": "delete", "path": inner if number % 50 == 49 else "/memories/a/x.md"}
