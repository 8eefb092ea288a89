"""The proving ground: it finds nothing in our stores, and in each mutant what was planted."""

from pathlib import Path

import pytest

from commonplace.testing import soak

MUTANTS = {
    "NoLock": "crowds",
    "CachedRead": "edits",
    "InPlace": "crowds",
    "VisibleTemporaryFile": "kills",
    "EarlyAcknowledgement": "edits",
    "PrefixWithoutSeparator": "directories",
}


@pytest.mark.parametrize("name", soak.ROUNDS)
def test_nothing_is_found_in_the_directory_store(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        records, wrong = soak.prove(str(tmp_path / f"{seed}"), name, seed)
        assert wrong == [], f"seed {seed}"
        assert len(records) > 20 or "kills" in name


@pytest.mark.parametrize(("mutant", "name"), MUTANTS.items())
def test_a_planted_defect_is_found(mutant: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    for seed in range(30):
        _, wrong = soak.prove(str(tmp_path / f"{seed}"), name, seed, factory=f"mutants:{mutant}")
        if wrong:
            return
    pytest.fail(f"{mutant} went unnoticed")


def test_hostile_paths_stay_outside_the_gate() -> None:
    assert 0 < soak.hostile_paths(seed=1, count=20_000) < 10_000
