"""The checker of concurrent histories agrees with trying every order, and says where a history goes wrong."""

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Barrier
from time import monotonic_ns
from typing import Any

import pytest

from commonplace import Conflict, Memory, Store
from commonplace.stores.dict import DictStore
from commonplace.testing.linearizability import (
    CONFLICT,
    DONE,
    MEMORY,
    Delete,
    Model,
    Operation,
    Read,
    Take,
    Write,
    check,
)

History = Sequence[Operation]
Question = Read | Write | Delete | Take


def history(*lines: tuple[Any, ...]) -> History:
    """Return the operations of lines of a client, a call, a return, what was asked, and the answer if there was one."""
    return [Operation(*line) for line in lines]


WRITTEN = ("w", 0, 1, Write("1"), DONE)

GOOD = {
    "nothing happened": (),
    "nothing is read where nothing was written": (("a", 0, 1, Read(), None),),
    "what was written is read": (WRITTEN, ("a", 2, 3, Read(), "1")),
    "a read during a write sees what was there": (("w", 0, 9, Write("1"), DONE), ("a", 1, 2, Read(), None)),
    "a read during a write sees what comes": (("w", 0, 9, Write("1"), DONE), ("a", 1, 2, Read(), "1")),
    "two readers during a write see it come one after the other": (
        ("w", 0, 9, Write("1"), DONE),
        ("a", 1, 2, Read(), None),
        ("b", 3, 4, Read(), "1"),
    ),
    "two readers at once during a write need not agree": (
        ("w", 0, 9, Write("1"), DONE),
        ("a", 1, 4, Read(), "1"),
        ("b", 2, 3, Read(), None),
    ),
    "at the same instant neither is first": (WRITTEN, ("a", 1, 2, Read(), None)),
    "an operation may take no time": (("w", 1, 1, Write("1"), DONE), ("a", 1, 1, Read(), None)),
    "of two writes at once either may be the last": (
        ("w", 0, 9, Write("1"), DONE),
        ("v", 0, 9, Write("2"), DONE),
        ("a", 10, 11, Read(), "1"),
    ),
    "of two who create one does": (
        ("w", 0, 9, Write("1", expect="absent"), DONE),
        ("v", 0, 9, Write("2", expect="absent"), CONFLICT),
        ("a", 10, 11, Read(), "1"),
    ),
    "edits follow one another": (
        WRITTEN,
        ("a", 2, 9, Write("2", expect="1"), DONE),
        ("b", 2, 9, Write("3", expect="2"), DONE),
        ("b", 10, 11, Delete(expect="3"), 1),
    ),
    "of two who delete one does": (WRITTEN, ("a", 2, 9, Delete(), 1), ("b", 2, 9, Delete(), 0)),
    "a memory is moved away and back": (
        WRITTEN,
        ("a", 2, 3, Take(), "1"),
        ("a", 4, 5, Take(), None),
        ("a", 6, 7, Write("1", expect="absent"), DONE),
        ("a", 8, 9, Take(expect="2"), CONFLICT),
        ("a", 10, 11, Take(expect="1"), "1"),
    ),
    "the empty content is a content": (
        ("w", 0, 1, Write(""), DONE),
        ("w", 2, 3, Write("1", expect="absent"), CONFLICT),
        ("w", 4, 5, Take(expect=""), ""),
        ("w", 6, 7, Read(), None),
    ),
    "a pending write is never seen": (WRITTEN, ("x", 2, None, Write("2")), ("a", 4, 5, Read(), "1")),
    "a pending write is seen at once": (WRITTEN, ("x", 2, None, Write("2")), ("a", 4, 5, Read(), "2")),
    "a pending write is seen late": (
        WRITTEN,
        ("x", 2, None, Write("2")),
        ("a", 4, 5, Read(), "1"),
        ("a", 6, 7, Write("3", expect="1"), DONE),
        ("a", 8, 9, Read(), "2"),
    ),
    "an infinite return is no reply": (("x", 0, float("inf"), Write("1")), ("a", 1, 2, Read(), "1")),
    "the answer of a pending operation means nothing": (
        ("x", 0, None, Write("1"), CONFLICT),
        ("a", 1, 2, Read(), "1"),
        ("y", 3, None, Delete(), 0),
        ("a", 4, 5, Read(), None),
    ),
    "a pending write makes an edit conflict and is overwritten": (
        WRITTEN,
        ("x", 2, None, Write("2")),
        ("a", 4, 5, Write("3", expect="1"), CONFLICT),
        ("b", 4, 5, Write("4", expect="2"), DONE),
        ("a", 6, 7, Read(), "4"),
    ),
    "a pending edit needs another pending edit": (
        WRITTEN,
        ("x", 2, None, Write("3", expect="2")),
        ("y", 3, None, Write("2", expect="1")),
        ("a", 4, 5, Read(), "3"),
    ),
    "two pending deletes serve two deletions": (
        WRITTEN,
        ("x", 2, None, Delete()),
        ("y", 2, None, Delete()),
        ("a", 4, 5, Read(), None),
        ("a", 6, 7, Write("2", expect="absent"), DONE),
        ("a", 8, 9, Read(), None),
    ),
}

BAD = {
    "a read of what was never written": (WRITTEN, ("a", 2, 3, Read(), "2")),
    "a torn read": (("w", 0, 9, Write("aabb"), DONE), ("a", 1, 2, Read(), "aa")),
    "a read of nothing after a write returned": (WRITTEN, ("a", 2, 3, Read(), None)),
    "a stale read after a write returned": (WRITTEN, ("w", 2, 3, Write("2"), DONE), ("a", 4, 5, Read(), "1")),
    "a read from the future": (("a", 0, 1, Read(), "1"), ("w", 2, 3, Write("1"), DONE)),
    "reads of one client going back in time": (
        ("w", 0, 9, Write("1"), DONE),
        ("a", 1, 2, Read(), "1"),
        ("a", 3, 4, Read(), None),
    ),
    "reads of two clients going back in time": (
        ("w", 0, 9, Write("1"), DONE),
        ("a", 1, 2, Read(), "1"),
        ("b", 3, 4, Read(), None),
    ),
    "two readers who saw two writes in different orders": (
        ("w", 0, 9, Write("1"), DONE),
        ("v", 0, 9, Write("2"), DONE),
        ("a", 1, 2, Read(), "1"),
        ("b", 1, 2, Read(), "2"),
        ("a", 3, 4, Read(), "2"),
        ("b", 3, 4, Read(), "1"),
    ),
    "two writes in the order of their clients' calls and not of time": (
        WRITTEN,
        ("v", 2, 3, Write("2"), DONE),
        ("a", 4, 5, Read(), "1"),
    ),
    "two creates that both won": (
        ("w", 0, 9, Write("1", expect="absent"), DONE),
        ("v", 0, 9, Write("2", expect="absent"), DONE),
    ),
    "a lost update": (
        WRITTEN,
        ("a", 2, 9, Write("2", expect="1"), DONE),
        ("b", 2, 9, Write("3", expect="1"), DONE),
    ),
    "a conflict without anybody else": (WRITTEN, ("a", 2, 3, Write("2", expect="1"), CONFLICT)),
    "a conflict that wrote": (WRITTEN, ("a", 2, 3, Write("2", expect="0"), CONFLICT), ("a", 4, 5, Read(), "2")),
    "a delete acknowledged twice": (WRITTEN, ("a", 2, 9, Delete(), 1), ("b", 2, 9, Delete(), 1)),
    "a delete that nobody did": (WRITTEN, ("a", 2, 9, Delete(), 0), ("b", 2, 9, Delete(), 0)),
    "a memory taken twice": (WRITTEN, ("a", 2, 9, Take(), "1"), ("b", 2, 9, Take(), "1")),
    "a deleted memory that came back": (WRITTEN, ("a", 2, 3, Delete(), 1), ("a", 4, 5, Read(), "1")),
    "a pending write seen and then unseen": (
        WRITTEN,
        ("x", 2, None, Write("2")),
        ("a", 4, 5, Read(), "2"),
        ("a", 6, 7, Read(), "1"),
    ),
    "a pending write seen before its call": (("a", 0, 1, Read(), "1"), ("x", 2, None, Write("1"))),
    "a pending edit of what was never there": (
        WRITTEN,
        ("x", 2, None, Write("2", expect="0")),
        ("a", 4, 5, Read(), "2"),
    ),
    "a pending write that came back after it was overwritten": (
        ("x", 0, None, Write("1")),
        ("a", 1, 2, Read(), "1"),
        ("a", 3, 4, Write("2"), DONE),
        ("a", 5, 6, Read(), "1"),
    ),
    "one pending delete for two deletions": (
        WRITTEN,
        ("x", 2, None, Delete()),
        ("a", 4, 5, Read(), None),
        ("a", 6, 7, Write("2", expect="absent"), DONE),
        ("a", 8, 9, Read(), None),
    ),
}


@pytest.mark.parametrize("lines", GOOD.values(), ids=GOOD)
def test_a_history_that_some_order_explains_is_accepted(lines: tuple[tuple[Any, ...], ...]) -> None:
    assert check(history(*lines)) is None
    assert check(history(*reversed(lines))) is None


@pytest.mark.parametrize("lines", BAD.values(), ids=BAD)
def test_a_history_that_no_order_explains_is_refused(lines: tuple[tuple[Any, ...], ...]) -> None:
    assert check(history(*lines)) is not None
    assert check(history(*reversed(lines))) is not None


def test_a_history_may_begin_with_a_memory_that_is_there() -> None:
    read = history(("a", 0, 1, Read(), "1"))
    assert check(read, replace(MEMORY, initial="1")) is None
    assert check(read) is not None


def test_a_model_may_leave_open_what_comes_next() -> None:
    coin: Model[str] = Model("up", lambda side, toss: ("heads", "tails") if toss.asked == "toss" else _seen(side, toss))
    assert check(history(("a", 0, 1, "toss"), ("a", 2, 3, "look", "tails"), ("b", 4, 5, "look", "tails")), coin) is None
    assert check(history(("a", 0, 1, "toss"), ("a", 2, 3, "look", "tails"), ("b", 4, 5, "look", "heads")), coin)
    assert check(history(("a", 0, None, "toss"), ("a", 2, 3, "look", "up"), ("b", 4, 5, "look", "heads")), coin) is None


def _seen(side: str, look: Operation) -> tuple[str, ...]:
    return (side,) if look.answer == side else ()


def test_what_cannot_be_recorded_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot return at 1 that was called at 2"):
        Operation("a", 2, 1, Read(), None)
    with pytest.raises(ValueError, match="return at nan"):
        Operation("a", 2, float("nan"), Read(), None)
    with pytest.raises(ValueError, match="absent"):
        Write("absent")
    with pytest.raises(TypeError, match="cannot be asked 'sing'"):
        check([Operation("a", 0, 1, "sing")])


def test_a_violation_tells_a_person_what_happened() -> None:
    violation = check(
        history(
            ("w", 1000, 1010, Write("old", expect="absent"), DONE),
            ("w", 1020, 1030, Write("new", expect="old"), DONE),
            ("x", 1025, None, Delete(expect="old")),
            ("v", 1035, 1060, Write("newer" * 100), DONE),
            ("a", 1040, 1050, Read(), "old"),
            ("a", 1070, 1080, Take(), "new"),
        )
    )
    assert str(violation) == (
        "The history is not linearizable. At first every answer can be explained, in this order:\n"
        "  [0 to 10] w: write 'old' expecting absence -> done\n"
        "  [20 to 30] w: write 'new' expecting 'old' -> done\n"
        "That leaves 'new'. Then came an answer that no order explains:\n"
        "  [40 to 50] a: read -> 'old'\n"
        "Also under way, and without effect so far:\n"
        "  [25, no reply by then] x: delete expecting 'old'\n"
        "  [35, no reply by then] v: write 'newernewerne...wernewernewer'"
    )


def test_a_violation_shows_only_the_end_of_a_long_history() -> None:
    lines = str(check(history(*(("a", n, n, Write(str(n)), DONE) for n in range(100)), ("a", 101, 102, Delete(), 0))))
    assert "  ... 70 operations before these\n  [70 to 70] a: write '70' -> done" in lines


# Against every order


class Register:
    """A memory for one client after the other, written without a look at the model."""

    def __init__(self, content: str | None = None) -> None:
        self.content = content

    def answer(self, asked: Question) -> object:
        if isinstance(asked, Read):
            return self.content
        there = "absent" if self.content is None else self.content
        if asked.expect is not None and asked.expect != there:
            return CONFLICT
        before, self.content = self.content, asked.content if isinstance(asked, Write) else None
        if isinstance(asked, Write):
            return DONE
        return before if isinstance(asked, Take) else 0 if before is None else 1


def some_order_explains(history: History, content: str | None = None) -> bool:
    """Try every order, with and without each pending operation."""
    if all(operation.pending for operation in history):
        return True
    earliest = min(operation.end for operation in history)
    for number, operation in enumerate(history):
        if operation.called > earliest:
            continue
        register = Register(content)
        answer = register.answer(operation.asked)  # type: ignore[arg-type]
        rest = [*history[:number], *history[number + 1 :]]
        if (operation.pending or answer == operation.answer) and some_order_explains(rest, register.content):
            return True
    return False


def random_question(random: random.Random, contents: Iterator[str], known: Sequence[str]) -> Question:
    expect = random.choice([None, "absent", *known])
    questions: Sequence[Question] = [Read(), Read(), Write(next(contents), expect), Delete(expect), Take(expect)]
    return random.choice(questions)


def arbitrary_history(random: random.Random) -> History:
    """Return a history of anything at any time."""
    operations = []
    for client in range(random.randint(1, 6)):
        asked = random_question(random, iter(random.choice("12")), "12")
        answers = (
            [DONE, CONFLICT] if isinstance(asked, Write) else [0, 1, 1] if isinstance(asked, Delete) else [None, *"12"]
        )
        called = random.randint(0, 9)
        # No two return at the same instant, so that there is one answer that comes first.
        returned = random.choice([None, *[called + random.randint(0, 6) + client / 10] * 2])
        answer = None if returned is None else random.choice(answers)
        operations.append(Operation(client, called, returned, asked, answer))
    return operations


def real_history(random: random.Random, length: int, clients: int, lost: float) -> History:
    """Return what clients recorded that used a register, each operation at a random moment between call and return.

    A part of the operations gets no reply, and half of these do nothing.
    """
    free = [random.random() for _ in range(clients)]
    spans = []
    for _ in range(length):
        client = free.index(min(free))
        called = free[client] + random.random() / 10
        free[client] = called + random.random() * random.choice([1, 1, 1, 5])
        spans.append((random.uniform(called, free[client]), client, called, free[client]))
    register, contents, known, operations = Register(), map(str, count()), ["none yet"], []
    for _, client, called, returned in sorted(spans):
        asked = random_question(random, contents, known[-4:])
        if random.random() < lost:
            if random.random() < 0.5:
                register.answer(asked)
            operations.append(Operation(client, called, None, asked))
        else:
            answer = register.answer(asked)
            operations.append(Operation(client, called, returned, asked, answer))
        if register.content is not None:
            known.append(register.content)
    return operations


def mutated(random: random.Random, history: History) -> History:
    """Return the history with one answer or one time changed."""
    number = random.randrange(len(history))
    operation = history[number]
    answers = [None, DONE, CONFLICT, 0, 1, *(str(each) for each in range(6))]
    changed = random.choice(
        [
            replace(operation, answer=random.choice(answers)),
            replace(operation, returned=operation.called),
            replace(operation, called=operation.called - 1),
            replace(operation, returned=None),
        ]
    )
    return [*history[:number], changed, *history[number + 1 :]]


def agrees(history: History) -> bool:
    """Tell whether the history is linearizable, once the checker and every order agree and what it says is true."""
    violation = check(history)
    expected = some_order_explains(history)
    assert (violation is None) == expected, history
    if violation is not None:
        moment = violation.impossible.end
        assert not some_order_explains(as_of(history, moment, violation.impossible))
        assert some_order_explains(as_of(history, moment, None))
        assert replays(violation.linearized, violation.state)
    return expected


def as_of(history: History, moment: float, last: Operation | None) -> History:
    """Return what was known at a moment: the answers from before it, and perhaps one from the moment itself."""
    return [
        each if each.end < moment or each is last else replace(each, returned=None)
        for each in history
        if each.called <= moment
    ]


def replays(order: History, state: object) -> bool:
    """Tell whether one client after the other would have got these answers, and whether time allows the order."""
    register = Register()
    for number, operation in enumerate(order):
        answer = register.answer(operation.asked)  # type: ignore[arg-type]
        assert operation.pending or answer == operation.answer
        assert all(operation.called <= later.end for later in order[number:])
    return register.content == state


def test_the_verdict_on_arbitrary_histories_is_that_of_trying_every_order() -> None:
    chance = random.Random(1)
    verdicts = [agrees(arbitrary_history(chance)) for _ in range(5000)]
    assert min(verdicts.count(True), verdicts.count(False)) > 1000


def test_the_verdict_on_real_histories_and_their_mutations_is_that_of_trying_every_order() -> None:
    chance = random.Random(2)
    verdicts = []
    for _ in range(2000):
        real = real_history(chance, length=chance.randint(1, 6), clients=chance.randint(1, 4), lost=0.3)
        assert agrees(real)
        verdicts.append(agrees(mutated(chance, real)))
    assert min(verdicts.count(True), verdicts.count(False)) > 300


# Long ones


@pytest.mark.parametrize("lost", [0, 0.01])
def test_a_long_history_is_accepted_and_one_corrupted_read_in_it_is_found(lost: float) -> None:
    long = list(real_history(random.Random(3), length=2000, clients=16, lost=lost))
    assert check(long) is None
    number = next(n for n in range(1500, 2000) if isinstance(long[n].asked, Read) and not long[n].pending)
    long[number] = replace(long[number], answer="torn")
    violation = check(long)
    assert violation is not None
    assert violation.impossible is long[number]
    assert "read -> 'torn'" in str(violation)


# Stores


class Recorder:
    """A client of a store that writes down what it did to two memories."""

    def __init__(self, store: Store, name: int) -> None:
        self.store = store
        self.name = name
        self.histories: dict[str, list[Operation]] = {"a": [], "b": []}
        self._chance = random.Random(name)
        self._contents = (f"{name}-{number}" for number in count())
        self._latest: Memory | None = None

    def act(self) -> None:
        path, other = self._chance.choice([("a", "b"), ("b", "a")])
        self._chance.choice([self.read, self.read, self.write, self.edit, self.delete, self.move])(path, other)

    def read(self, path: str, other: str) -> None:
        self._latest = self._record(path, Read(), lambda: self.store.read(path), lambda found: found and found.content)

    def write(self, path: str, other: str) -> None:
        content = next(self._contents)
        self._record(path, Write(content), lambda: self.store.write(path, content), lambda _: DONE)

    def edit(self, path: str, other: str) -> None:
        content, (expect, revision) = next(self._contents), self._expected()
        asked = Write(content, expect)
        self._record(path, asked, lambda: self.store.write(path, content, expect=revision), lambda _: DONE)

    def delete(self, path: str, other: str) -> None:
        expect, revision = self._expected() if self._latest else (None, None)
        self._record(path, Delete(expect), lambda: self.store.delete(path, expect=revision), lambda gone: gone)

    def move(self, path: str, other: str) -> None:
        if self._latest is None:
            return
        content, revision, called = self._latest.content, self._latest.revision, monotonic_ns()
        conflict = None
        try:
            self.store.move(path, other, expect=revision)
        except Conflict as caught:
            conflict = caught.path
        returned = monotonic_ns()
        if conflict == path:
            self._add(path, called, returned, Take(content), CONFLICT)
            return
        # The source is looked at first, so what was expected of it did hold.
        self._add(path, called, returned, Read() if conflict else Take(content), content)
        self._add(other, called, returned, Write(content, "absent"), CONFLICT if conflict else DONE)

    def _expected(self) -> tuple[str, str]:
        return ("absent", "absent") if self._latest is None else (self._latest.content, self._latest.revision)

    def _record(self, path: str, asked: Question, act: Callable[[], Any], answer: Callable[[Any], Any]) -> Any:
        called = monotonic_ns()
        try:
            result = act()
        except Conflict:
            self._add(path, called, monotonic_ns(), asked, CONFLICT)
            return None
        self._add(path, called, monotonic_ns(), asked, answer(result))
        return result

    def _add(self, path: str, called: int, returned: int, asked: Question, answer: Any) -> None:
        self.histories[path].append(Operation(self.name, called, returned, asked, answer))


def recorded(store: Store, clients: int, length: int) -> dict[str, History]:
    """Return what clients in threads did to two memories, by path."""
    recorders = [Recorder(store, name) for name in range(clients)]
    together = Barrier(clients)

    def run(recorder: Recorder) -> None:
        together.wait()
        for _ in range(length):
            recorder.act()

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(run, recorders))
    return {path: [each for recorder in recorders for each in recorder.histories[path]] for path in "ab"}


def test_what_threads_did_to_a_store_is_linearizable() -> None:
    for path, operations in recorded(DictStore(), clients=8, length=300).items():
        assert len(operations) > 500, path
        assert check(operations) is None, check(operations)


class ForgetfulStore(DictStore):
    """Answers a read with what it once read."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Memory] = {}

    def read(self, path: str) -> Memory | None:
        found = super().read(path)
        return None if found is None else self._kept.setdefault(path, found)


def test_what_threads_did_to_a_store_with_a_stale_cache_is_not() -> None:
    assert all(check(operations) for operations in recorded(ForgetfulStore(), clients=4, length=100).values())
