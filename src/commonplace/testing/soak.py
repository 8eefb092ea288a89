"""Proves stores for as long as one likes: `python -m commonplace.testing.soak --seconds 600 ./an-empty-folder`.

Round after round, clients in threads and processes work on a fresh store; some rounds kill processes, in some system
calls fail, in some a directory is moved and deleted while memories are added to it; in between, hostile paths go through
the gate. After every round all histories are checked for linearizability, nothing acknowledged may be missing, and no
debris may be left. What fails is told with the seed that repeats it.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import is_normalized, normalize
from urllib.parse import unquote

from commonplace import paths
from commonplace.errors import Refused
from commonplace.open import open_store
from commonplace.store import RESERVED, clear
from commonplace.stores.directory import LOCK, STAGING, DirectoryStore
from commonplace.testing import links
from commonplace.testing.clients import BESIDE, DIRECTORY, KEYS, TORN, Load, Record, run
from commonplace.testing.linearizability import CONFLICT, DONE, Delete, Operation, Read, Write, check

ROUNDS: dict[str, Callable[[int], Load]] = {
    "edits": lambda seed: Load(seed),
    "crowds": lambda seed: Load(seed, processes=4, threads=4, operations=20),
    "kills": lambda seed: Load(seed, processes=3, kills=2),
    "faults": lambda seed: Load(seed, faults=0.3),
    "directories": lambda seed: Load(seed, directories=True),
    "directories and kills": lambda seed: Load(seed, directories=True, processes=3, kills=2),
}
"""What may happen in a round, by name: the load for a seed."""


@dataclass(slots=True)
class Figures:
    """What was done, and what was found."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def prove(url: str, name: str, seed: int, factory: str | None = None) -> tuple[list[Record], list[str]]:
    """Run one round on an empty store and return what was done and what was wrong with it.

    The same name and seed give the same clients the same wishes; how they meet is the machine's doing.
    """
    load = ROUNDS[name](seed)
    if factory is not None:
        load = replace(load, factory=factory)
    records = run(url, load)
    wrong = list(_wrong_with_directories(records) if load.directories else _wrong_with_memories(records))
    return records, [*wrong, *_debris(url)]


def _wrong_with_memories(records: list[Record]) -> Iterator[str]:
    histories: dict[str, list[Operation]] = defaultdict(list)
    for record in records:
        if record.answer == TORN:
            yield f"{record.client} read a torn text at {record.key}"
        if record.key not in KEYS:
            yield f"{record.key} is listed and nobody made it"
        histories[record.key].append(_operation(record))
    for key, history in histories.items():
        if violation := check(history):
            yield f"the history of {key} is not linearizable:\n{violation}"


def _wrong_with_directories(records: list[Record]) -> Iterator[str]:
    """Every memory that was added is in one place, or went with its directory; what was added beside it stays."""
    added = {record.key.rpartition("/")[2]: record for record in records if record.kind == "add"}
    certain = {name for name, record in added.items() if record.answer == "done"}
    left = Counter(
        record.key.rpartition("/")[2] for record in records if record.client == "the end" and record.key not in KEYS
    )
    for name, places in left.items():
        if places > 1:
            yield f"{name} is in {places} places"
        if name not in added:
            yield f"{name} is listed and nobody made it"
    there = {record.key for record in records if record.client == "the end"}
    for name in sorted(certain):
        if added[name].key.startswith(BESIDE + "/") and added[name].key not in there:
            yield f"{added[name].key} was acknowledged and is gone"
    gone = [record for record in records if record.kind == "gone"]
    missing = {name for name in certain - left.keys() if added[name].key.startswith(DIRECTORY + "/")}
    deleted = sum(int(record.answer or 0) for record in gone)
    if all(record.answer is not None for record in gone) and len(missing) > deleted:
        yield f"{len(missing)} memories are missing and only {deleted} were deleted"


def _operation(record: Record) -> Operation:
    """Return a record of one memory as the checker takes it: texts by their tokens, in place of revisions too."""
    asked: Read | Write | Delete
    match record.kind:
        case "read":
            asked = Read()
        case "delete":
            asked = Delete(record.expect)
        case _:
            asked = Write(record.value or "", record.expect)
    answer = {"done": DONE, "conflict": CONFLICT}.get(str(record.answer), record.answer)
    return Operation(record.client, record.called, record.returned, asked, answer)


def _debris(url: str) -> Iterator[str]:
    """Open a store again and yield what is left in it that nobody should find."""
    with open_store(url) as store:
        if isinstance(store, DirectoryStore):
            for item in (store.root / RESERVED / STAGING).glob("*"):
                if item.name != LOCK:
                    yield f"{item.name} is left in the staging folder"


# Paths

PIECES = (
    *(
        "/",
        "//",
        ".",
        "..",
        "...",
        "%2e",
        "%2F",
        "%5c",
        "%25",
        "%00",
        "%ff",
        "%c0%ae",
        "\\",
        "\0",
        "\n",
        "\x1b",
        " ",
        "~",
        "a",
    ),
    *(
        "é",
        "e\u0301",
        "\u2024",
        "\uff0f",
        "\uff05",
        "\u202e",
        "\u2028",
        "\ud800",
        "\ufe0f",
        "/memories",
        "memories",
        ".commonplace",
    ),
    *("node_modules", "-", "n" * 120, "🫖", "\U000e0041", "\u3000", "C:", "con", "%", "2e"),
)


def hostile_paths(seed: int, count: int) -> int:
    """Send paths of hostile pieces through the gate and return how many passed.

    Raises AssertionError for one that passed and is not plainly spelled and below the root.
    """
    chance = random.Random(seed)
    passed = 0
    for _ in range(count):
        path = chance.choice(("/memories/", "/memories", "")) + "".join(
            chance.choices(PIECES, k=chance.randrange(1, 9))
        )
        try:
            key = paths.parse(path)
        except Refused:
            continue
        passed += 1
        assert key == "" or _plain(key), f"{path!r} passed as {key!r} (seed {seed})"
    return passed


def _plain(key: str) -> bool:
    names = key.split("/")
    decoded = key
    while unquote(decoded) != decoded:
        decoded = unquote(decoded)
    spellings = (key, decoded, normalize("NFKC", decoded))
    return (
        is_normalized("NFC", key)
        and len(names) <= paths.MAX_SEGMENTS
        and len(paths.show(key).encode()) <= paths.MAX_BYTES
        and all(name.strip(". \u3000") for spelling in spellings for name in spelling.split("/"))
        and not any(set(spelling) & set("\\\0\n\x1b\u2028\u202e\U000e0041") for spelling in spellings)
        and all(spelling.count("/") == key.count("/") for spelling in spellings)
        and names[0].replace("\ufe0f", "").casefold() != RESERVED
    )


# The program


def soak(url: str, seconds: float, seed: int, tell: Callable[[str], None]) -> Figures:
    """Prove one store for so many seconds and return the figures; each round starts from an empty store."""
    figures = Figures()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, load in ROUNDS.items():
            _empty(url)
            records, wrong = prove(url, name, seed)
            figures.counts["operations"] += len(records)
            figures.counts["killed or refused midway"] += sum(record.returned is None for record in records)
            figures.counts["kills"] += load(seed).kills
            figures.counts["rounds"] += 1
            for finding in wrong:
                figures.findings.append(f"{name}, seed {seed}: {finding}")
                tell(figures.findings[-1])
            if time.monotonic() >= end:
                break
        if links.can_swap():
            with tempfile.TemporaryDirectory() as home:
                answers, wrong = links.swap_links(Path(home), rounds=50)
            figures.counts["commands among swapped links"] += len(answers)
            figures.findings += wrong
        figures.counts["hostile paths"] += 10_000
        figures.counts["paths that passed"] += hostile_paths(seed, 10_000)
        tell(
            f"{figures.counts['rounds']} rounds, {figures.counts['operations']} operations, {len(figures.findings)} findings"
        )
        seed += 1
    if not figures.findings:  # else what is left may tell more
        _empty(url)
    return figures


def _empty(url: str) -> None:
    with open_store(url) as store:
        clear(store)
        if isinstance(store, DirectoryStore):
            shutil.rmtree(store.root)


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("stores", nargs="+", metavar="URL", help="empty stores to prove")
    parser.add_argument("--seconds", type=float, default=60, help="how long, for each store (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    chosen = parser.parse_args()
    failed = False
    for url in chosen.stores:
        with open_store(url) as store:
            if any(True for _ in store.list()):
                sys.exit(f"{url} holds memories, and proving deletes all there are. Name an empty store")
        figures = soak(url, chosen.seconds, chosen.seed, _tell)
        failed = failed or bool(figures.findings)
        for name, count in figures.counts.items():
            sys.stdout.write(f"{count:>12,}  {name}\n")
        sys.stdout.write(f"{len(figures.findings):>12,}  findings in {url}\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
