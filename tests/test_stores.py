"""Every store goes through the suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commonplace import Store, open_store
from commonplace.stores import _descriptors as disk
from commonplace.testing import StoreSuite

STORES: dict[str, Callable[[Path], str]] = {
    "dict": lambda folder: "memory:",
    "directory": lambda folder: str(folder / "memories"),
    "directory without an exclusive rename": lambda folder: str(folder / "memories"),
    "directory by URL": lambda folder: f"file://{folder}/memories?history=off",
}


class TestEveryStore(StoreSuite):
    @pytest.fixture(params=STORES)
    def store(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
        if "without" in request.param:
            # Old C libraries and some file systems have no rename that does not overwrite.
            monkeypatch.setattr(disk, "_renameat", None)
        self.location = STORES[request.param](tmp_path)
        with open_store(self.location) as store:
            yield store

    def reopen(self, store: Store) -> Store:
        return store if self.location == "memory:" else open_store(self.location)
