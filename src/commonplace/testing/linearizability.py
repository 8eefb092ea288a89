"""Could one memory that several clients used at once have given these answers?

A history is linearizable if every operation can be thought to happen at one moment between its call and its return, so
that all the answers are those of a memory used by one client after the other (Herlihy and Wing 1990, "Linearizability:
a correctness condition for concurrent objects"). That is what the promises of `commonplace.store` come to for one path:

    history = [
        Operation("A", 0, 10, Write("1", expect="absent"), DONE),
        Operation("B", 20, 30, Write("2", expect="1"), DONE),
        Operation("A", 40, 50, Read(), "1"),
    ]
    violation = check(history)
    assert violation is None, violation

Each path is checked by itself, and no path may lie above another one: a conflict with what stands above or below is
none of this model's. What is checked by paths says nothing of several paths together: listings, whole directories, and
whether the two halves of a move are one step. The move of a memory is recorded as a `Take` at the old path and a
`Write(..., expect="absent")` at the new one, each with the times of the move.

An operation without a reply, because a process was killed or a connection lost, is pending: it took effect at some time
after its call, or never. One that certainly did nothing is left out.

The search is that of Wing and Gong 1993, "Testing and verifying concurrent objects": of the operations that may be
next, try one, lift its call and return out of the list of events, and put them back if that leads nowhere. As Lowe 2017,
"Testing for linearizability", does, and the program Porcupine after him, it never looks twice at a state that the same
operations led to. Four things are ours: what changes nothing is taken at its first chance; a state that is still needed
is not left for good; a pending operation is tried last; and where fewer pending operations led to a state in vain, more
of them are not tried. The question is NP-complete, so a history can be made for which it takes for ever. Recorded ones, of
clients that wait for their answers, take time in proportion to their length, unless a good part of the replies to writes
without a condition is lost.
"""

import reprlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Any, Final, Generic, Literal, TypeVar

State = TypeVar("State", bound=Hashable)

Expect = str | Literal["absent"] | None
"""The content that a memory must have, or `"absent"`, or None for no condition.

A store's `expect` names a revision. Here the content stands for it, so a test writes each content once."""

SHOWN = 30
"""How many operations before the violation its text shows."""


class Outcome(Enum):
    """The answers that are no content and no number."""

    DONE = "done"
    CONFLICT = "conflict"

    def __repr__(self) -> str:
        return self.value


DONE: Final = Outcome.DONE
CONFLICT: Final = Outcome.CONFLICT


@dataclass(frozen=True, slots=True)
class Operation:
    """What a client asked, when it did, and what came back when.

    The times are numbers of one clock, of any unit. Of two operations one comes before the other if it returned before
    the other was called; at the same instant, neither does. `returned` is None or infinite where no reply came, and the
    answer then means nothing. Raises ValueError if the operation returned before it was called.
    """

    client: object
    called: float
    returned: float | None
    asked: Hashable
    answer: Hashable = None

    def __post_init__(self) -> None:
        if not self.called <= self.end:
            raise ValueError(f"An operation cannot return at {self.returned} that was called at {self.called}")

    @property
    def end(self) -> float:
        """When the reply came; infinity where none did."""
        return inf if self.returned is None else self.returned

    @property
    def pending(self) -> bool:
        """Whether no reply came."""
        return self.end == inf


@dataclass(frozen=True, slots=True)
class Read:
    """Asks for the content. The answer is a string, or None where there is no memory."""

    def __str__(self) -> str:
        return "read"


@dataclass(frozen=True, slots=True)
class Write:
    """Puts a content. The answer is DONE or CONFLICT.

    Raises ValueError for the content `"absent"`, which nobody could expect.
    """

    content: str
    expect: Expect = None

    def __post_init__(self) -> None:
        if self.content == "absent":
            raise ValueError('The content "absent" could not be told from absence')

    def __str__(self) -> str:
        return f"write {reprlib.repr(self.content)}{_expecting(self.expect)}"


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the memory. The answer is how many went, 0 or 1, or CONFLICT."""

    expect: Expect = None

    def __str__(self) -> str:
        return f"delete{_expecting(self.expect)}"


@dataclass(frozen=True, slots=True)
class Take:
    """Takes the memory away. The answer is its content, or None where there was none, or CONFLICT."""

    expect: Expect = None

    def __str__(self) -> str:
        return f"take{_expecting(self.expect)}"


def _expecting(expect: Expect) -> str:
    return (
        "" if expect is None else " expecting absence" if expect == "absent" else f" expecting {reprlib.repr(expect)}"
    )


class Known(Enum):
    """What a model can say of an operation's states instead of naming one."""

    NOTHING = "nothing"
    SAME = "same"


def _nothing(operation: Operation) -> Hashable:
    return Known.NOTHING


@dataclass(frozen=True, slots=True)
class Model(Generic[State]):
    """What clients believe to be using, one after the other.

    `step` is a pure function from a state and an operation to the states that may come after: none where the operation
    cannot have had its answer, several where the model does not say. For a pending operation these are the states after
    any answer. It looks at nothing of the operation but what was asked, the answer and whether it is pending.

    The other two only make the search faster. `needs` may name the one state in which an answered operation is
    possible, and `makes` the one state that an operation can lead to from a different one, or `Known.SAME` for an
    operation that never leads to a different one.
    """

    initial: State
    step: Callable[[State, Operation], Iterable[State]]
    needs: Callable[[Operation], Hashable] = _nothing
    makes: Callable[[Operation], Hashable] = _nothing


def _memory_step(content: str | None, operation: Operation) -> tuple[str | None, ...]:
    after, answer = _do(content, operation.asked)
    return (after,) if operation.pending or operation.answer == answer else ()


def _do(content: str | None, asked: Hashable) -> tuple[str | None, object]:
    """Return what a memory with this content holds after it was asked, and what it answers."""
    match asked:
        case Read():
            return content, content
        case Write(expect=expect) | Delete(expect=expect) | Take(expect=expect) if not _holds(content, expect):
            return content, CONFLICT
        case Write(content=new):
            return new, DONE
        case Delete():
            return None, int(content is not None)
        case Take():
            return None, content
    raise TypeError(f"A memory cannot be asked {asked!r}")


def _holds(content: str | None, expect: Expect) -> bool:
    return expect is None or content == (None if expect == "absent" else expect)


def _memory_needs(operation: Operation) -> Hashable:
    if operation.answer is CONFLICT:
        return Known.NOTHING
    match operation.asked:
        case Read() | Take(expect=None):
            return operation.answer
        case Write(expect=str(expect)) | Delete(expect=str(expect)) | Take(expect=str(expect)):
            return None if expect == "absent" else expect
    return Known.NOTHING


def _memory_makes(operation: Operation) -> Hashable:
    if operation.answer is CONFLICT and not operation.pending:
        return Known.SAME
    match operation.asked:
        case Write(content=content):
            return content
        case Delete() | Take() if operation.pending or operation.answer not in (0, None):
            return None
    return Known.SAME


MEMORY: Final[Model[str | None]] = Model(None, _memory_step, _memory_needs, _memory_makes)
"""A memory that is not there yet. One with a content is `replace(MEMORY, initial="...")`."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a history is not linearizable. `str` tells it to a person.

    Up to the moment before `impossible` returned, the history is linearizable: `linearized` is an order of it that
    explains every answer, and `state` what that leaves. With this one answer more there is no such order. `open` is what
    else was under way at that moment and has no place in the order. Operations that had not returned by then are
    pending in both. `since` is when the first operation of the history was called.
    """

    linearized: tuple[Operation, ...]
    state: object
    impossible: Operation
    open: tuple[Operation, ...]
    since: float

    def __str__(self) -> str:
        hidden = max(0, len(self.linearized) - SHOWN)
        return "\n".join(
            [
                "The history is not linearizable. At first every answer can be explained, in this order:",
                *([f"  ... {hidden} operations before these"] if hidden else []),
                *map(self._line, self.linearized[hidden:]),
                f"That leaves {reprlib.repr(self.state)}. Then came an answer that no order explains:",
                self._line(self.impossible),
                *(["Also under way, and without effect so far:"] if self.open else []),
                *map(self._line, self.open),
            ]
        )

    def _line(self, operation: Operation) -> str:
        called = f"{operation.called - self.since:.15g}"
        if operation.pending:
            return f"  [{called}, no reply by then] {operation.client}: {operation.asked}"
        times = f"[{called} to {operation.end - self.since:.15g}]"
        return f"  {times} {operation.client}: {operation.asked} -> {reprlib.repr(operation.answer)}"


def check(history: Iterable[Operation], model: Model[Any] = MEMORY) -> Violation | None:
    """Return None if the history is linearizable, and otherwise where it stops being so.

    The history is that of one memory, in any order.
    """
    operations = sorted(history, key=lambda operation: operation.called)
    if _Search(operations, model).run() is not None:
        return None
    return _first_violation(operations, model)


def _first_violation(operations: Sequence[Operation], model: Model[Any]) -> Violation:
    answered = sorted((operation for operation in operations if not operation.pending), key=lambda each: each.end)

    def known(answers: int, moment: float) -> Sequence[Operation]:
        """Return what was called up to a moment, with so many answers."""
        returned = set(map(id, answered[:answers]))
        called = (operation for operation in operations if operation.called <= moment)
        return [each if id(each) in returned else replace(each, returned=None, answer=None) for each in called]

    def fails(number: int) -> bool:
        return _Search(known(number + 1, answered[number].end), model).run() is None

    # A history that is linearizable was so at every earlier moment; so halving finds the first moment when it is not.
    first = bisect_left(range(len(answered)), True, key=fails)
    impossible = answered[first]
    before = known(first, impossible.end)
    found = _Search(before, model).run()
    assert found is not None, "the step of this model is not a pure function"
    linearized, state = found
    placed = set(map(id, linearized))
    others = [
        each
        for original, each in zip(operations, before, strict=False)
        if original is not impossible and id(each) not in placed
    ]
    return Violation(linearized, state, impossible, tuple(others), operations[0].called)


class _Events:
    """The calls and returns of numbered operations in the order of time: a doubly linked list with its ends at 0."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        calls = [(operation.called, False, number) for number, operation in enumerate(operations)]
        returns = [(operation.end, True, number) for number, operation in enumerate(operations)]
        # At the same instant calls come first, so that neither operation is before the other.
        events = sorted(calls + returns)
        self._places: list[list[int]] = [[] for _ in operations]
        for place, (_, _, number) in enumerate(events, start=1):
            self._places[number].append(place)
        self._numbers = [-1, *(number for _, _, number in events)]
        self._is_return = [True, *(is_return for _, is_return, _ in events)]
        self._next = [*range(1, len(events) + 1), 0]
        self._previous = [len(events), *range(len(events))]

    def lift(self, number: int) -> None:
        """Take an operation out of the list."""
        for place in self._places[number]:
            self._next[self._previous[place]] = self._next[place]
            self._previous[self._next[place]] = self._previous[place]

    def unlift(self, number: int) -> None:
        """Put back the operation that was lifted last."""
        for place in reversed(self._places[number]):
            self._next[self._previous[place]] = place
            self._previous[self._next[place]] = place

    def open(self) -> tuple[list[int], int]:
        """Return the operations called before the first return, and the one that returns there: -1 if there is none."""
        numbers = []
        place = self._next[0]
        while not self._is_return[place]:
            numbers.append(self._numbers[place])
            place = self._next[place]
        return numbers, self._numbers[place]


@dataclass(slots=True)
class _Point:
    """Where the search stands: what came last (-1: nothing yet), all that came as a set of bits, what may come next."""

    last: int
    taken: int
    state: Any
    next: Iterator[tuple[int, Any]]


class _Search:
    """The search for an order that explains a history.

    Operations are known by numbers: first the answered ones, then the pending ones, each in the order of their calls.
    """

    def __init__(self, operations: Sequence[Operation], model: Model[Any]) -> None:
        answered = [operation for operation in operations if not operation.pending]
        pending = [each for each in operations if each.pending and model.makes(each) is not Known.SAME]
        self._model = model
        self._operations = answered + pending
        self._answered = len(answered)
        self._all_answered = (1 << len(answered)) - 1
        self._events = _Events(answered)
        self._twins = self._find_twins()
        self._needs = [model.needs(operation) for operation in answered] + [Known.NOTHING] * len(pending)
        self._makes = [model.makes(operation) for operation in self._operations]
        # Of the operations still to come: how many need a state, and how many may make it.
        self._needed, self._makers = Counter(self._needs), Counter(self._makes)
        self._points: list[_Point] = []
        # For what was answered and the state it left: the sets of pending operations that were tried with it.
        self._seen: dict[tuple[int, Any], list[int]] = {}

    def run(self) -> tuple[tuple[Operation, ...], Any] | None:
        """Return an order that explains every answer, and the state it leaves; None if there is no such order."""
        if any(self._is_lost(state) for state in self._needed if state != self._model.initial):
            return None
        self._enter(-1, 0, self._model.initial)
        while self._points:
            here = self._points[-1]
            if here.taken & self._all_answered == self._all_answered:
                return tuple(self._operations[point.last] for point in self._points[1:]), here.state
            for number, state in here.next:
                taken = here.taken | 1 << number
                if self._is_new(taken, state):
                    self._enter(number, taken, state)
                    break
            else:
                self._leave()
        return None

    def _enter(self, number: int, taken: int, state: Any) -> None:
        before = self._points[-1] if number >= self._answered else None
        if number >= 0:
            self._needed[self._needs[number]] -= 1
            self._makers[self._makes[number]] -= 1
        if 0 <= number < self._answered:
            self._events.lift(number)
        self._points.append(_Point(number, taken, state, self._ways_on(taken, state, before)))

    def _leave(self) -> None:
        number = self._points.pop().last
        if number >= 0:
            self._needed[self._needs[number]] += 1
            self._makers[self._makes[number]] += 1
        if 0 <= number < self._answered:
            self._events.unlift(number)

    def _is_new(self, taken: int, state: Any) -> bool:
        """Tell whether the state was not yet reached with the same answers and no other pending operations than these."""
        used = taken >> self._answered
        tried = self._seen.setdefault((taken & self._all_answered, state), [])
        if any(fewer & used == fewer for fewer in tried):
            return False
        tried.append(used)
        return True

    def _is_lost(self, state: Any, number: int | None = None) -> bool:
        """Tell whether operations to come need this state and none can make it, once it is left by this operation."""
        if state is Known.NOTHING or self._makers[Known.NOTHING] or self._makers[state]:
            return False
        return self._needed[state] > (number is not None and self._needs[number] == state)

    def _ways_on(self, taken: int, state: Any, before: _Point | None) -> Iterator[tuple[int, Any]]:
        """Yield what may come next, and the state after it."""
        numbers, returning = self._events.open()
        ways = []
        for number in numbers:
            for after in self._model.step(state, self._operations[number]):
                if self._makes[number] is Known.SAME:
                    # Whatever order there is from here on, it can as well begin with this operation.
                    yield number, after
                    return
                if after == state or not self._is_lost(state, number):
                    ways.append((number, after))
        # Nobody may want to see what few need; so that goes first, before it is in the way.
        yield from sorted(ways, key=lambda way: self._needed[way[1]])
        until = self._operations[returning].end if returning >= 0 else inf
        yield from self._pending_ways_on(until, taken, state, before)

    def _pending_ways_on(
        self, until: float, taken: int, state: Any, before: _Point | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the pending operations that may come next; `before` is where the last one was tried, if it was pending."""
        for number in range(self._answered, len(self._operations)):
            operation = self._operations[number]
            if operation.called > until or self._is_lost(state):
                return
            if taken >> number & 1 or self._twins[number] & ~taken:
                continue
            # What can be had without the pending operation just before this one will be had without it.
            had = {state, *(self._model.step(before.state, operation) if before else ())}
            yield from ((number, after) for after in self._model.step(state, operation) if after not in had)

    def _find_twins(self) -> dict[int, int]:
        """Return for each pending operation the bit of the one before it that asks the same and has to be tried first."""
        latest: dict[Hashable, int] = {}
        twins = {}
        for number in range(self._answered, len(self._operations)):
            asked = self._operations[number].asked
            twins[number] = latest.get(asked, 0)
            latest[asked] = 1 << number
        return twins
