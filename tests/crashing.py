"""Kills a writer before every single call it makes, and looks at what is left. A program: `crashing.py FOLDER`.

The writer is a forked child that gets SIGKILL when it is about to make its n-th call; n goes up until the writer lives to
the end. A program of its own, because forking wants a process with one thread.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from commonplace import MemoryTool, Store, open_store
from commonplace.testing.stepping import before_call

OLD, NEW = "old\n" * 20_000, "new text\n" * 30_000
TREE = {"d/x": "1", "d/e/y": "2", "d/e/f/z": "3"}

Contents = dict[str, str]

SCENARIOS: dict[str, tuple[Contents, Callable[[Store], object], Contents]] = {
    "create": ({}, lambda store: store.write("a", NEW, expect="absent"), {"a": NEW}),
    "create in new folders": (
        {"a/x": OLD},
        lambda store: store.write("a/b/c/d", NEW, expect="absent"),
        {"a/x": OLD, "a/b/c/d": NEW},
    ),
    "overwrite": ({"a/b": OLD}, lambda store: store.write("a/b", NEW), {"a/b": NEW}),
    "str_replace": (
        {"a": "one two three"},
        lambda store: MemoryTool(store).execute(
            {"command": "str_replace", "path": "/memories/a", "old_str": "two", "new_str": "2"}
        ),
        {"a": "one 2 three"},
    ),
    "insert": (
        {"a": "one"},
        lambda store: MemoryTool(store).execute(
            {"command": "insert", "path": "/memories/a", "insert_line": 1, "insert_text": "two"}
        ),
        {"a": "one\ntwo\n"},
    ),
    "rename a memory": ({"a/b": OLD}, lambda store: store.move("a/b", "c/d/e"), {"c/d/e": OLD}),
    "rename a directory": (TREE, lambda store: store.move("d", "n/m"), {f"n/m{path[1:]}": TREE[path] for path in TREE}),
    "delete a memory": ({"a/b": OLD, "c": "1"}, lambda store: store.delete("a/b"), {"c": "1"}),
    "delete a directory": ({**TREE, "c": "1"}, lambda store: store.delete("d"), {"c": "1"}),
}


def main(folder: Path) -> None:
    """Print, as JSON, at how many points each scenario was killed; exit with a traceback where anything was lost."""
    print(json.dumps({name: kill_everywhere(folder / name, *scenario) for name, scenario in SCENARIOS.items()}))


def kill_everywhere(root: Path, before: Contents, act: Callable[[Store], object], after: Contents) -> int:
    """Run one scenario until it survives, and return how often it was killed."""
    for point in count(1):
        shutil.rmtree(root, ignore_errors=True)
        with open_store(root) as bystander:
            for path, content in before.items():
                bystander.write(path, content)
            acknowledged, killed = run_and_kill(root, act, point)
            left = contents(bystander)
            assert left == after or (left == before and not acknowledged), f"{root.name}, killed at call {point}"
            view = MemoryTool(bystander).execute({"command": "view", "path": "/memories"})
            assert ".commonplace" not in view
        with open_store(root) as reopened:
            assert contents(reopened) == left, f"{root.name}, killed at call {point}, reopened"
            assert {path.name for path in root.glob(".commonplace/tmp/*")} <= {"lock"}
            # Life goes on: no lock is held by the dead.
            reopened.write("next", "1")
        if not killed:
            assert acknowledged
            return point - 1
    raise AssertionError


def run_and_kill(root: Path, act: Callable[[Store], object], point: int) -> tuple[bool, bool]:
    """Run the action in a child that is killed before its n-th call; return if it was acknowledged and if it was killed."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with open_store(root) as store:
            with before_call(point, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                act(store)
            os.write(write_end, b"done")
        os._exit(0)
    os.close(write_end)
    acknowledged = os.read(read_end, 4) == b"done"
    os.close(read_end)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return acknowledged, os.WIFSIGNALED(status)


def contents(store: Store) -> Contents:
    memories = [store.read(entry.path) for entry in store.list()]
    return {memory.path: memory.content for memory in memories if memory is not None}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
