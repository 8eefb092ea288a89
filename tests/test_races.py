"""Several threads and processes at once: no edit is lost, nothing is made twice, no reader sees what never was."""

import fcntl
import itertools
import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from commonplace import Conflict, Memory, MemoryTool, Refused, open_store
from commonplace.store import Expect
from commonplace.stores import _descriptors as disk
from commonplace.stores.dict import DictStore
from commonplace.stores.directory import DirectoryStore
from commonplace.testing.stepping import before_call

PROCESSES, THREADS = 4, 8


def in_processes(script: str, root: Path) -> list[list[Any]]:
    """Run a script in four processes of eight threads, all let go together; return what `work(process, thread)` did.

    The script defines `work`, and finds `tool` and `store`.
    """
    preamble = f"""
        import json, sys
        from concurrent.futures import ThreadPoolExecutor
        from commonplace import Conflict, MemoryTool, Refused, open_store
        process = int(sys.argv[2])
        store = open_store(sys.argv[1])
        tool = MemoryTool(store)
        threads = ThreadPoolExecutor({THREADS})
    """
    postscript = f"""
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(list(threads.map(lambda thread: work(process, thread), range({THREADS})))))
    """
    program = dedent(preamble) + dedent(script) + dedent(postscript)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, root, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [json.loads(process.communicate()[0]) for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES
    return results


def lines_of(root: Path, name: str) -> list[str]:
    return (root / name).read_text().splitlines()


def test_edits_of_one_memory_by_threads_and_processes_are_all_kept(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write("log", "start\n")
    in_processes(
        """
        def work(process, thread):
            for number in range(5):
                tool.execute({"command": "insert", "path": "/memories/log", "insert_line": 1,
                              "insert_text": f"{process} {thread} {number}"})
        """,
        tmp_path,
    )
    expected = [f"{p} {t} {n}" for p in range(PROCESSES) for t in range(THREADS) for n in range(5)]
    assert sorted(lines_of(tmp_path, "log")) == sorted(["start", *expected])


def test_replacements_in_one_memory_by_threads_and_processes_are_all_kept(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write("list", "".join(f"[{p} {t}]\n" for p in range(PROCESSES) for t in range(THREADS)))
    in_processes(
        """
        def work(process, thread):
            tool.execute({"command": "str_replace", "path": "/memories/list", "old_str": f"[{process} {thread}]",
                          "new_str": f"done {process} {thread}"})
        """,
        tmp_path,
    )
    assert lines_of(tmp_path, "list") == [f"done {p} {t}" for p in range(PROCESSES) for t in range(THREADS)]


def test_of_all_who_create_one_memory_exactly_one_is_told_that_it_did(tmp_path: Path) -> None:
    results = in_processes(
        """
        def work(process, thread):
            won = []
            for number in range(5):
                try:
                    tool.execute({"command": "create", "path": f"/memories/{number}/deep/x",
                                  "file_text": f"{process} {thread}"})
                    won.append(number)
                except Refused as refused:
                    assert str(refused) == f"Error: File /memories/{number}/deep/x already exists", refused
            return won
        """,
        tmp_path,
    )
    winners = {number: f"{p} {t}" for p, some in enumerate(results) for t, won in enumerate(some) for number in won}
    assert sum(len(won) for some in results for won in some) == 5
    assert {number: (tmp_path / str(number) / "deep" / "x").read_text() for number in range(5)} == winners


def test_of_all_who_rename_onto_one_path_exactly_one_does_and_nothing_is_lost(tmp_path: Path) -> None:
    results = in_processes(
        """
        def work(process, thread):
            store.write(f"from/{process}-{thread}/x", f"{process} {thread}")
            try:
                return store.move(f"from/{process}-{thread}", "to/it")
            except Conflict:
                return 0
        """,
        tmp_path,
    )
    assert sum(map(sum, results)) == 1
    kept = sorted(path.read_text() for path in tmp_path.rglob("x"))
    assert kept == sorted(f"{p} {t}" for p in range(PROCESSES) for t in range(THREADS))


def test_each_memory_is_deleted_by_exactly_one(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for number in range(20):
            store.write(f"d/{number}/x", "1")
    results = in_processes(
        """
        def work(process, thread):
            return sum(store.delete(f"d/{number}") for number in range(20))
        """,
        tmp_path,
    )
    assert sum(map(sum, results)) == 20
    assert not (tmp_path / "d").exists()


def test_memories_added_while_their_directory_moves_or_goes_are_where_they_were_put_or_went_with_it(
    tmp_path: Path,
) -> None:
    results = in_processes(
        """
        def work(process, thread):
            moved = 0
            for number in range(5):
                store.write(f"d/{process}-{thread}-{number}", "1", expect="absent")
                if thread == 0:
                    moved += store.move("d", f"moved/{process}-{number}")
                if thread == 1:
                    moved -= store.delete("d")
            return moved
        """,
        tmp_path,
    )
    added = PROCESSES * THREADS * 5
    deleted = -sum(moved for some in results for moved in some if moved < 0)
    with open_store(tmp_path) as store:
        left = [entry.path for entry in store.list()]
    assert len(left) + deleted == added
    assert len({path.rpartition("/")[2] for path in left}) == len(left)


def test_a_reader_never_sees_a_text_at_a_path_where_it_never_was(tmp_path: Path) -> None:
    """A directory is moved away in the middle of a read, and its memory edited there."""

    def interfere() -> None:
        store.move("here", "there")
        store.write("there/deep/x", "written there")

    with open_store(tmp_path) as store:
        for point in itertools.count(1):
            store.delete("there")
            store.write("here/deep/x", "written here")
            with before_call(point, interfere) as interfered:
                memory = store.read("here/deep/x")
            assert memory is None or memory.content == "written here", f"interfered before call {point}"
            if not interfered:
                break
        assert point > 10


def test_a_child_forked_during_a_write_does_not_keep_the_lock(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from commonplace import open_store
        store = open_store(sys.argv[1])
        with store._writing():
            child = os.fork()
            if child == 0:
                signal.pause()
        try:
            store.write("a", "1")
        finally:
            os.kill(child, signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", dedent(script), tmp_path], check=True, timeout=60)


def test_a_lock_file_that_is_removed_while_somebody_waits_lets_nobody_in_twice(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as first, open_store(tmp_path) as second:
        before = first.write("a", "before")
        own = tmp_path / ".commonplace" / "tmp"

        def remove_the_lock_and_write() -> None:
            (own / "lock").unlink()
            memory = second.read("a")
            assert memory is not None
            second.write("a", memory.content + ", by the second", expect=memory.revision)

        def at_the_lock() -> AbstractContextManager[list[int]]:
            return before_call(1, remove_the_lock_and_write, among=lambda function: function is fcntl.flock)

        with at_the_lock() as interfered, pytest.raises(Conflict):
            first.write("a", "by the first", expect=before.revision)
        assert interfered
        with at_the_lock(), first._writing():
            # The lock that the first has now is the one that others meet.
            folder = os.open(own, os.O_RDONLY)
            assert not disk.Lock("lock", folder).take(wait=False)
            os.close(folder)
    assert (tmp_path / "a").read_text() == "before, by the second, by the second"


@pytest.mark.parametrize("becomes", ["nothing", "a memory", "a directory"])
@pytest.mark.parametrize("was", ["a memory", "a directory"])
def test_what_changes_its_kind_while_it_is_looked_at_is_never_called_something_odd(
    was: str, becomes: str, tmp_path: Path
) -> None:
    def put(kind: str) -> None:
        store.delete("d/it")
        if kind != "nothing":
            store.write("d/it" if kind == "a memory" else "d/it/x", kind)

    with open_store(tmp_path) as store:
        store.write("d/stays", "x")
        for look in (
            lambda: store.read("d/it"),
            lambda: store.read("d/it/x"),
            lambda: list(store.list()),
            lambda: list(store.list("d/it")),
        ):
            for point in itertools.count(1):
                put(was)
                with before_call(point, lambda: put(becomes)) as changed:
                    look()
                if not changed:
                    break


class EditedMeanwhile(DictStore):
    """A store in which somebody else edits every time just before an edit is written, `times` times in all."""

    def __init__(self, times: int, text: str) -> None:
        super().__init__()
        self.times = times
        self.text = text

    def write(self, path: str, content: str, *, expect: Expect = None) -> Memory:
        if expect is not None and self.times > 0:
            self.times -= 1
            super().write(path, f"{self.text}{self.times}")
        return super().write(path, content, expect=expect)


STR_REPLACE = {"command": "str_replace", "path": "/memories/a", "old_str": "two", "new_str": "three"}
INSERT = {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "zero"}


def test_an_edit_is_applied_to_what_somebody_else_made_of_the_memory_meanwhile() -> None:
    store = EditedMeanwhile(times=3, text="zero two ")
    store.write("a", "one two\n")
    tool = MemoryTool(store)
    assert tool.execute(STR_REPLACE) == "The memory file has been edited.\n     1\tzero three 0"
    store.times = 2
    store.text = "another "
    tool.execute(INSERT)
    memory = store.read("a")
    assert memory is not None
    assert memory.content == "zero\nanother 0"


def test_an_edit_that_no_longer_applies_is_refused_and_what_is_there_stays() -> None:
    store = EditedMeanwhile(times=1, text="one ")
    store.write("a", "one two\n")
    with pytest.raises(Refused, match="`two` did not appear verbatim in /memories/a"):
        MemoryTool(store).execute(STR_REPLACE)
    memory = store.read("a")
    assert memory is not None
    assert memory.content == "one 0"


def test_an_edit_is_given_up_with_a_word_when_the_memory_never_stops_changing() -> None:
    store = EditedMeanwhile(times=10**9, text="two ")
    store.write("a", "two\n")
    for command in (STR_REPLACE, INSERT):
        with pytest.raises(Refused, match="The file /memories/a keeps being changed by others"):
            MemoryTool(store, patience=0.05).execute(command)
