"""How fast the core is: raw system calls, the SDK's own tool and ours, side by side. `make bench` runs this.

Every question is put to the three contenders in turn, round after round, in another order each time, so that whatever
else the machine is doing falls on all of them alike. Only times of the same round are compared with one another.
"""

import argparse
import fcntl
import gc
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from anthropic.tools import BetaLocalFilesystemMemoryTool
from rich.console import Console
from rich.table import Table

from commonplace import MemoryTool, open_store
from commonplace.doctor import file_system

RAW, SDK, OURS = "raw", "SDK", "ours"

Times = Mapping[str, list[float]]
"""The seconds that one call took, by contender; those at the same place were measured in the same round."""

# A turn is a batch of calls that takes the raw system calls at least this long, so that the clock does not matter.
TURN_SECONDS = 0.002
MAX_CALLS = 200
STARTS_OF_PYTHON = 5
MIN_ROUNDS = 3

LINE = "line {:02} of a memory of 1,024 B.\n"
TEXT = "".join(LINE.format(number) for number in range(1, 33))
OLD, NEW = LINE.format(16), "one line instead of line 16\n"
INSERTED = "a line at the top\n"


# --- What raw does ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Desk:
    """What raw works with: the open descriptors of its folder of memories and of a staging folder beside it."""

    folder: int
    staging: int


def raw_view(desk: Desk, key: str) -> bytes:
    file = os.open(key, os.O_RDONLY, dir_fd=desk.folder)
    data = os.read(file, os.fstat(file).st_size)
    os.close(file)
    return data


def raw_view_folder(desk: Desk, key: str) -> list[tuple[str, int]]:
    folder = os.open(key, os.O_RDONLY, dir_fd=desk.folder)
    with os.scandir(folder) as entries:
        sizes = [(entry.name, entry.stat().st_size) for entry in entries]
    os.close(folder)
    return sizes


def raw_write(desk: Desk, key: str, data: bytes) -> None:
    file = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=desk.staging)
    os.write(file, data)
    sync(file)
    os.close(file)
    os.rename(key, key, src_dir_fd=desk.staging, dst_dir_fd=desk.folder)
    sync(desk.folder)


def raw_create(desk: Desk, key: str) -> None:
    raw_write(desk, key, TEXT.encode())


def raw_str_replace(desk: Desk, key: str) -> None:
    raw_write(desk, key, raw_view(desk, key).replace(OLD.encode(), NEW.encode()))


def raw_insert(desk: Desk, key: str) -> None:
    raw_write(desk, key, INSERTED.encode() + raw_view(desk, key))


def raw_delete(desk: Desk, key: str) -> None:
    os.unlink(key, dir_fd=desk.folder)
    sync(desk.folder)


def raw_rename(desk: Desk, key: str) -> None:
    os.rename(key, f"renamed-{key}", src_dir_fd=desk.folder, dst_dir_fd=desk.folder)
    sync(desk.folder)


def sync(descriptor: int) -> None:
    """Return when a file or folder is on the disk itself, which fsync does not ask of a disk on macOS."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


# --- The questions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """A promise of ours: what to compute from the times of every round, and what the median of that may be at most."""

    promise: str
    measure: Callable[[Times], list[float]]
    at_most: float
    unit: str = "times"


@dataclass(frozen=True, slots=True)
class Question:
    """One row: the command to the tools, the same work in raw calls, and the memories that it needs to be there."""

    name: str
    command: str
    fields: Callable[[str], dict[str, object]]
    """The other fields of the command, for the path of a memory."""
    keys: Callable[[int], list[str]]
    """The memory that each of so many calls is about."""
    there: Callable[[int], list[str]]
    """The memories that are there before so many calls."""
    raw: Callable[[Desk, str], object]
    raw_does: str
    targets: tuple[Target, ...] = ()

    @property
    def changes(self) -> bool:
        return self.command != "view"


def over(contender: str) -> Callable[[Times], list[float]]:
    """Return what computes, round by round, how many times as long as this contender we take."""
    return lambda times: [ours / theirs for ours, theirs in zip(times[OURS], times[contender], strict=True)]


def beyond(contender: str) -> Callable[[Times], list[float]]:
    """Return what computes, round by round, how many milliseconds longer than this contender we take."""
    return lambda times: [1000 * (ours - theirs) for ours, theirs in zip(times[OURS], times[contender], strict=True)]


def same(key: str) -> Callable[[int], list[str]]:
    return lambda calls: [key] * calls


def numbered(calls: int) -> list[str]:
    return [f"{number:03}.md" for number in range(calls)]


def four_hundred(calls: int) -> list[str]:
    return [f"notes/{key}" for key in numbered(400)]


def none(calls: int) -> list[str]:
    return []


def path_alone(path: str) -> dict[str, object]:
    return {"path": path}


QUARTER = Target("at most a quarter of the SDK's time", over(SDK), 0.25)
DURABLE_TARGETS = (Target("at most 1.3 times raw", over(RAW), 1.3),)

QUESTIONS = (
    Question(
        name="view 1 KB",
        command="view",
        fields=path_alone,
        keys=same("tea.md"),
        there=same("tea.md"),
        raw=raw_view,
        raw_does="open, fstat, read, close",
        targets=(Target("at most 6 times raw", over(RAW), 6), QUARTER),
    ),
    Question(
        name="view 1 KB, 3 deep",
        command="view",
        fields=path_alone,
        keys=same("notes/drinks/hot/tea.md"),
        there=same("notes/drinks/hot/tea.md"),
        raw=raw_view,
        raw_does="the same: one open with the whole path, which follows links; ours opens name by name",
        targets=(QUARTER,),
    ),
    Question(
        name="view 400 in a folder",
        command="view",
        fields=path_alone,
        keys=same("notes"),
        there=four_hundred,
        raw=raw_view_folder,
        raw_does="open, scandir, stat of each, close",
        targets=(Target("at most a tenth of the SDK's time", over(SDK), 0.1),),
    ),
    Question(
        name="create",
        command="create",
        fields=lambda path: {"path": path, "file_text": TEXT},
        keys=numbered,
        there=none,
        raw=raw_create,
        raw_does="open anew in a staging folder, write, fsync, close, rename, fsync the folder",
        targets=DURABLE_TARGETS,
    ),
    Question(
        name="str_replace",
        command="str_replace",
        fields=lambda path: {"path": path, "old_str": OLD, "new_str": NEW},
        keys=numbered,
        there=numbered,
        raw=raw_str_replace,
        raw_does="open, fstat, read, close; then as create, renaming over the old file",
        targets=DURABLE_TARGETS,
    ),
    Question(
        name="insert",
        command="insert",
        fields=lambda path: {"path": path, "insert_line": 0, "insert_text": INSERTED},
        keys=numbered,
        there=numbered,
        raw=raw_insert,
        raw_does="as str_replace",
        targets=DURABLE_TARGETS,
    ),
    Question(
        name="delete",
        command="delete",
        fields=path_alone,
        keys=numbered,
        there=numbered,
        raw=raw_delete,
        raw_does="unlink, fsync the folder",
        targets=DURABLE_TARGETS,
    ),
    Question(
        name="rename",
        command="rename",
        fields=lambda path: {"old_path": path, "new_path": path.replace("/memories/", "/memories/renamed-")},
        keys=numbered,
        there=numbered,
        raw=raw_rename,
        raw_does="rename, fsync the folder",
    ),
)

# What each contender's fresh interpreter is told to do.
IMPORTS = {
    RAW: "pass",
    SDK: "from anthropic.tools import BetaLocalFilesystemMemoryTool",
    OURS: "import commonplace",
}
IMPORT_TARGETS = (Target("under 30 ms beyond Python's own start", beyond(RAW), 30, unit="ms"),)

NOTES = """\
raw checks nothing, takes no lock and formats no answer: it shows what the disk alone costs.
The SDK's tool syncs the files it writes but no folder, and nothing at all in delete and rename. So
from create to rename it does less than raw and ours do: a crash may undo what it has answered.
Both tools get a command as the API sends it, a dict: the SDK's in `call`, ours in `execute`."""


# --- Asking them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contender:
    """One who answers: the folder that is its `/memories`, what it does, and what that takes for a memory's key."""

    folder: Path
    do: Callable[[Any], object]
    ask: Callable[[str], object]

    def turn(self, question: Question, calls: int) -> float:
        """Return how many seconds each of so many calls took."""
        if question.changes:
            lay_out(self.folder, question.there(calls))
            settle(self.folder)
        do, asked = self.do, [self.ask(key) for key in question.keys(calls)]
        started = perf_counter()
        for what in asked:
            do(what)
        return (perf_counter() - started) / calls


@contextmanager
def contenders(question: Question, home: Path) -> Iterator[dict[str, Contender]]:
    """Set the three up in one new folder, with the memories in place."""

    def command(key: str) -> dict[str, object]:
        return {"command": question.command, **question.fields(f"/memories/{key}")}

    folders = {RAW: home / "raw" / "memories", SDK: home / "sdk" / "memories", OURS: home / "ours"}
    for folder in folders.values():
        folder.mkdir(parents=True)
        lay_out(folder, question.there(1))
    with ExitStack() as stack:
        staging = home / "raw" / "staging"
        staging.mkdir()
        desk = Desk(opened(folders[RAW], stack), opened(staging, stack))
        theirs = BetaLocalFilesystemMemoryTool(str(folders[SDK].parent))
        ours = MemoryTool(stack.enter_context(open_store(folders[OURS])))
        yield {
            RAW: Contender(folders[RAW], partial(question.raw, desk), lambda key: key),
            SDK: Contender(folders[SDK], theirs.call, command),
            OURS: Contender(folders[OURS], ours.execute, command),
        }


def opened(path: Path, stack: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return descriptor


def lay_out(folder: Path, keys: list[str]) -> None:
    """Make these memories, each of them 1 KB, and remove those that an earlier turn left."""
    for left in folder.glob("*.md"):
        left.unlink()
    for key in keys:
        memory = folder / key
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_bytes(TEXT.encode())


def settle(folder: Path) -> None:
    """Sync what was laid out, which otherwise whoever syncs next would pay for."""
    with ExitStack() as stack:
        for path in (*folder.glob("*.md"), folder):
            os.fsync(opened(path, stack))


def measure(question: Question, home: Path, seconds: float) -> Times:
    """Put one question to the three for so many seconds."""
    with contenders(question, home) as three:
        calls = enough_calls(question, three)
        turns = {name: partial(contender.turn, question, calls) for name, contender in three.items()}
        return interleave(turns, seconds)


def enough_calls(question: Question, three: Mapping[str, Contender]) -> int:
    """Warm the three up, make sure that they did the same, and return how many calls make a turn."""
    for contender in three.values():
        contender.turn(question, 1)
    raw, *tools = ({file.name: file.read_bytes() for file in each.folder.rglob("*.md")} for each in three.values())
    if any(left != raw for left in tools):
        raise RuntimeError(f"{question.name}: the contenders did not do the same work, so nothing can be compared")
    fastest = min(three[RAW].turn(question, 1) for _ in range(5))
    return min(int(TURN_SECONDS / fastest) + 1, MAX_CALLS)


def interleave(turns: Mapping[str, Callable[[], float]], seconds: float) -> Times:
    """Let all take turns, in another order every round, until the time is up."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    end = perf_counter() + seconds
    while len(times[OURS]) < MIN_ROUNDS or perf_counter() < end:
        for name in random.sample(list(turns), len(turns)):
            times[name].append(turns[name]())
    return times


def measure_imports(seconds: float) -> Times:
    """Start interpreters that import what each contender is. Their whole life is timed, from start to exit."""

    def turn(name: str) -> float:
        # The SDK takes so long that one start of it says enough.
        starts = 1 if name == SDK else STARTS_OF_PYTHON
        started = perf_counter()
        for _ in range(starts):
            run_python(IMPORTS[name])
        return (perf_counter() - started) / starts

    turns = {name: partial(turn, name) for name in IMPORTS}
    for warm_up in turns.values():
        warm_up()
    return interleave(turns, seconds)


def modules_too_many() -> list[str]:
    """Return what `import commonplace` loads and should not: asyncio, and all that is not Python's own."""
    code = "import sys; before = {*sys.modules}; import commonplace; print(*{*sys.modules} - before)"
    loaded = {module.partition(".")[0] for module in run_python(code).split()}
    return sorted(loaded - sys.stdlib_module_names - {"commonplace"} | loaded & {"asyncio"})


def run_python(code: str) -> str:
    # -I: whatever PYTHON… variables the caller has set would be measured too.
    return subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout


# --- Telling the results ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of many measurements and the quartiles: half of all lie between them."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        return cls(*quantiles(values, n=4, method="inclusive"))

    def __str__(self) -> str:
        digits = 2 if self.median >= 1 else 3
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured for one question."""

    name: str
    times: Times
    targets: tuple[Target, ...]

    @property
    def ours_over_raw(self) -> Spread:
        return Spread.of(over(RAW)(self.times))

    @property
    def ours_over_sdk(self) -> Spread:
        return Spread.of(over(SDK)(self.times))

    @property
    def rounds(self) -> int:
        return len(self.times[OURS])


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one promise."""

    question: str
    promise: str
    measured: Spread | str
    unit: str
    met: bool


def findings(rows: list[Row], too_many: list[str]) -> list[Finding]:
    found = []
    for row in rows:
        for target in row.targets:
            spread = Spread.of(target.measure(row.times))
            found.append(Finding(row.name, target.promise, spread, target.unit, spread.median <= target.at_most))
    loaded = ", ".join(too_many) or "neither"
    return [*found, Finding("import", "loads no asyncio and no other library", loaded, "", not too_many)]


def duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def plain_table(left: tuple[str, ...], right: tuple[str, ...] = ()) -> Table:
    """Return an empty table with these columns flush left and then these flush right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in left:
        table.add_column(heading, no_wrap=True)
    for heading in right:
        table.add_column(heading, no_wrap=True, justify="right")
    return table


def times_table(rows: list[Row]) -> Table:
    table = plain_table(("one call takes",), (RAW, SDK, OURS, "ours / raw", "ours / SDK", "rounds"))
    for row in rows:
        medians = (duration(median(row.times[name])) for name in (RAW, SDK, OURS))
        table.add_row(row.name, *medians, str(row.ours_over_raw), str(row.ours_over_sdk), str(row.rounds))
    return table


def targets_table(found: list[Finding]) -> Table:
    table = plain_table(("what is promised", "", "measured", ""))
    for finding in found:
        verdict = "[green]met[/]" if finding.met else "[bold red]missed[/]"
        table.add_row(finding.question, finding.promise, f"{finding.measured} {finding.unit}", verdict)
    return table


def raw_table() -> Table:
    table = plain_table(("what raw does", ""))
    for question in QUESTIONS:
        table.add_row(question.name, question.raw_does)
    table.add_row("import", "start Python, do nothing, end; the others also import themselves")
    return table


def machine(work: Path) -> dict[str, str]:
    """Return what one has to know to compare these numbers with others."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "processor": f"{os.cpu_count()} CPUs ({platform.machine()})",
        "kernel": f"{platform.system()} {platform.release()}",
        "file_system": file_system(work) or "unknown",
        "python": f"Python {platform.python_version()}",
        "sdk": f"anthropic {version('anthropic')}",
    }


def as_json(rows: list[Row], found: list[Finding], about: Mapping[str, str]) -> str:
    """Return all the numbers: medians in seconds, and of what is compared the quartiles too."""
    questions = [
        {
            "name": row.name,
            "rounds": row.rounds,
            "seconds": {name: median(times) for name, times in row.times.items()},
            "ours_over_raw": asdict(row.ours_over_raw),
            "ours_over_sdk": asdict(row.ours_over_sdk),
        }
        for row in rows
    ]
    promises = [asdict(finding) for finding in found]
    return json.dumps({"machine": about, "questions": questions, "promises": promises}, indent=2) + "\n"


def tell(out: Console, rows: list[Row], found: list[Finding], about: Mapping[str, str]) -> None:
    date, *on = about.values()
    out.print(f"[bold]How fast commonplace is, beside raw system calls and the SDK's own tool[/] ({date})")
    out.print(" · ".join(on), end="\n\n")
    out.print(times_table(rows))
    out.print("Medians. A ratio compares times of the same round; in brackets, where half of the rounds lie.\n")
    for table in (targets_table(found), raw_table()):
        out.print(table, "")
    out.print(NOTES)
    if about["file_system"] in ("tmpfs", "ramfs"):
        out.print("[bold]Measured in memory, where syncing costs nothing: name a folder on a disk with --dir.[/]")


# --- The program -----------------------------------------------------------------------------------------------------


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a first look: some 12 seconds instead of 75")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file as well")
    parser.add_argument(
        "--dir", type=Path, help="measure on the disk of this folder (default: that of temporary files)"
    )
    return parser.parse_args()


def progress(done: int, name: str) -> None:
    """Say what is being measured, if somebody is watching."""
    if sys.stderr.isatty():
        said = f"{done}/{len(QUESTIONS) + 1} {name} ..." if name else ""
        sys.stderr.write(f"\r\x1b[K{said}")
        sys.stderr.flush()


def main() -> None:
    chosen = options()
    seconds = 0.6 if chosen.quick else 8.0
    # The SDK brings more than a hundred thousand objects, which the garbage collector would look at on our time too.
    gc.collect()
    gc.freeze()
    rows = []
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-", dir=chosen.dir) as temporary:
        work = Path(temporary).resolve()
        about = machine(work)
        for done, question in enumerate(QUESTIONS):
            progress(done, question.name)
            rows.append(Row(question.name, measure(question, work / str(done), seconds), question.targets))
    progress(len(QUESTIONS), "import")
    rows.append(Row("import", measure_imports(seconds), IMPORT_TARGETS))
    found = findings(rows, modules_too_many())
    progress(len(QUESTIONS) + 1, "")
    if chosen.json:
        chosen.json.write_text(as_json(rows, found, about))
    tell(Console(width=100, highlight=False), rows, found, about)


if __name__ == "__main__":
    main()
