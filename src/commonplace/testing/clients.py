"""Clients that use one store at once, from threads and processes, and the record of what they asked and were told.

`run` starts processes of threads on a store, lets them read, write, edit, delete and move few memories at random, kills
processes and lets system calls fail if asked to, and returns every operation with the times of its call and its return.
All randomness comes from one seed. What was going on when a process was killed has no return.
"""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from commonplace.errors import Conflict, Refused
from commonplace.store import Memory, Store
from commonplace.testing.stepping import before_call, can_fail, failing

# None is above another, so that a Conflict always speaks of the memory itself.
KEYS = ("a", "b-b", "b/x", "b/y", "c/d/e")
DIRECTORY, BESIDE = "d", "d-beside"
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE)
TORN = "torn"


@dataclass(frozen=True, slots=True)
class Load:
    """How many clients there are, how much each does, and what happens to them meanwhile."""

    seed: int
    processes: int = 2
    threads: int = 3
    operations: int = 30
    kills: int = 0
    """How many of the processes are killed on the way."""
    faults: float = 0.0
    """The share of operations in which a system call fails."""
    directories: bool = False
    """Add memories below one directory, and move and delete the directory, instead of working on a few memories."""
    factory: str = "commonplace.open:open_store"
    """What opens the store in every process: `module:function`, called with the URL."""


@dataclass(frozen=True, slots=True)
class Record:
    """One operation on one memory: who asked what when, and what was answered when; None: never, or nothing certain."""

    client: str
    kind: str
    key: str
    called: int
    value: str | None = None
    expect: str | None = None
    returned: int | None = None
    answer: str | int | None = None


def run(url: str, load: Load) -> list[Record]:
    """Let the clients of a load loose on a store and return all that they did, in no order, and last a look at the end.

    Raises RuntimeError where a client failed with anything but what the contract allows.
    """
    chance = random.Random(load.seed)
    doomed = {number: chance.randrange(1, load.threads * load.operations) for number in range(load.kills)}
    command = [sys.executable, "-m", "commonplace.testing.clients", url, json.dumps(asdict(load))]
    workers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(load.processes)
    ]
    records: list[Record] = []
    readers = [
        threading.Thread(target=_collect, args=(worker, doomed.get(number), records))
        for number, worker in enumerate(workers)
    ]
    for reader in readers:
        reader.start()
    for worker in workers:
        assert worker.stdin is not None
        with suppress(BrokenPipeError):
            worker.stdin.close()  # the word to begin
    for reader in readers:
        reader.join()
    failed = [worker.returncode for worker in workers if worker.wait() not in (0, -signal.SIGKILL)]
    if failed:
        raise RuntimeError(f"a client failed with exit code {failed[0]} (seed {load.seed})")
    return [*records, *look(url, load)]


def look(url: str, load: Load) -> Iterator[Record]:
    """Yield what is there when all is over: a read of every memory, and of each that is listed and should not be."""
    with _factory(load.factory)(url) as store:
        for key in {*KEYS, *(entry.path for entry in store.list())}:
            called = time.monotonic_ns()
            answer = token_of(store.read(key))
            yield Record("the end", "read", key, called, returned=time.monotonic_ns(), answer=answer)


def _collect(worker: "subprocess.Popen[str]", doomed_after: int | None, records: list[Record]) -> None:
    """Read what a worker says until it ends, and kill it after so many lines if it is doomed."""
    assert worker.stdout is not None
    calls: dict[str, list[dict[str, Any]]] = {}
    with worker.stdout:
        for number, line in enumerate(worker.stdout, 1):
            if not line.endswith("\n"):
                break  # killed while it said this
            said = json.loads(line)
            if "calls" in said:
                calls[said["id"]] = said["calls"]
            else:
                for call, told in zip(calls.pop(said["id"]), said["told"], strict=True):
                    if told is not None:
                        records.append(Record(**call, **told))
            if number == doomed_after:
                worker.kill()
    records.extend(Record(**call) for pending in calls.values() for call in pending if call["kind"] != "read")


# In the workers


def text_of(token: str) -> str:
    """Return a text from which its token can be read and any part of which gives itself away."""
    return f"{token}\n" * (1 + sum(map(ord, token)) * 37 % 3000)


def token_of(memory: Memory | None) -> str | None:
    """Return the token of a memory's text, `TORN` where the text is not whole, None where there is no memory."""
    if memory is None:
        return None
    token = memory.content.partition("\n")[0]
    return token if memory.content == text_of(token) else TORN


class Client:
    """One thread of a worker: does random operations and says each before and after."""

    def __init__(self, store: Store, load: Load, name: str) -> None:
        self._store = store
        self._load = load
        self._name = name
        self._chance = random.Random(f"{load.seed}/{name}")
        self._count = 0

    def work(self) -> None:
        """Do as many operations as the load says."""
        doing: list[Callable[[], object]]
        doing = [self.read, self.write, self.create, self.edit, self.edit, self.delete, self.move]
        if self._load.directories:
            doing = [*[self.add] * 8, self.move_directory, self.delete_directory]
        for _ in range(self._load.operations):
            self._chance.choice(doing)()

    def read(self) -> Memory | None:
        key = self._key()
        memory: Memory | None = None

        def read() -> list[Any]:
            nonlocal memory
            memory = self._store.read(key)
            return [token_of(memory)]

        self._say([{"kind": "read", "key": key}], read)
        return memory

    def write(self) -> None:
        self._write(self._key(), None, None)

    def create(self) -> None:
        self._write(self._key(), "absent", "absent")

    def edit(self) -> None:
        if memory := self.read():
            self._write(memory.path, token_of(memory), memory.revision)

    def delete(self) -> None:
        key = self._key()
        self._say([{"kind": "delete", "key": key}], lambda: [self._store.delete(key)])

    def move(self) -> None:
        """Move a memory: one is taken here as it was read, and the same one made there."""
        memory, new = self.read(), self._key()
        if memory is None or memory.path == new:
            return
        token = token_of(memory)
        took = {"kind": "delete", "key": memory.path, "expect": token}
        made = {"kind": "write", "key": new, "value": token, "expect": "absent"}

        def move() -> list[Any]:
            if self._store.move(memory.path, new, expect=memory.revision) == 1:
                return [1, "done"]
            raise Conflict(new)

        # A conflict may be at either end, so it says nothing of one of them alone.
        self._say([took, made], move, conflict=None)

    def add(self) -> None:
        """Make a memory in the directory that moves and goes, or in one beside it whose name begins alike."""
        self._count += 1
        key = f"{self._chance.choice([DIRECTORY, BESIDE])}/{self._name}.{self._count}"
        self._say([{"kind": "add", "key": key}], lambda: [self._store.write(key, "", expect="absent") and "done"])

    def move_directory(self) -> None:
        self._count += 1
        goal = f"moved/{self._name}.{self._count}"
        self._say([{"kind": "moved", "key": goal}], lambda: [self._store.move(DIRECTORY, goal)])

    def delete_directory(self) -> None:
        self._say([{"kind": "gone", "key": DIRECTORY}], lambda: [self._store.delete(DIRECTORY)])

    def _write(self, key: str, expect: str | None, revision: str | None) -> None:
        self._count += 1
        token = f"{self._name}.{self._count}"
        call = {"kind": "write", "key": key, "value": token, "expect": expect}
        self._say([call], lambda: [self._store.write(key, text_of(token), expect=revision) and "done"])

    def _key(self) -> str:
        return self._chance.choice(KEYS)

    def _say(
        self, calls: list[dict[str, Any]], act: Callable[[], list[Any]], conflict: str | None = "conflict"
    ) -> None:
        """Do something between saying that it is begun and saying what was told of it."""
        identity = f"{self._name}/{self._chance.random()}"
        begun = [{**call, "client": self._name, "called": time.monotonic_ns()} for call in calls]
        _print({"id": identity, "calls": begun})
        try:
            with self._fault():
                answers = act()
        except Conflict:
            # Nothing was done then.
            if conflict is None:
                _print({"id": identity, "told": [None] * len(calls)})
                return
            answers = [conflict] * len(calls)
        except Refused:
            # It may have been done or not, and a reader was told nothing.
            _print({"id": identity, "told": [None if call["kind"] == "read" else {} for call in calls]})
            return
        returned = time.monotonic_ns()
        _print({"id": identity, "told": [{"returned": returned, "answer": answer} for answer in answers]})

    def _fault(self) -> AbstractContextManager[object]:
        """Let one system call fail in the block, if chance will have it."""
        if self._chance.random() >= self._load.faults:
            return nullcontext()
        point, error = self._chance.randrange(1, 30), self._chance.choice(ERRORS)
        return before_call(point, failing(error), among=can_fail)


def _print(said: dict[str, Any]) -> None:
    # One write of less than a pipe takes whole: lines of several threads never mix.
    os.write(1, json.dumps(said).encode() + b"\n")


def _factory(name: str) -> Callable[[str], Store]:
    module, _, function = name.partition(":")
    factory: Callable[[str], Store] = getattr(import_module(module), function)
    return factory


def main(url: str, load: Load, number: int) -> None:
    """Be one of the processes."""
    import logging

    logging.getLogger("commonplace").setLevel(logging.CRITICAL)  # refusals are what is being asked for
    store = _factory(load.factory)(url)
    sys.stdin.read()
    clients = [Client(store, load, f"{number}.{thread}") for thread in range(load.threads)]
    with ThreadPoolExecutor(load.threads) as threads:
        list(threads.map(Client.work, clients))  # raises what they raise
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], Load(**json.loads(sys.argv[2])), int(sys.argv[3]))
