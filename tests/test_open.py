"""A URL or a path is a store, or a clear error."""

from pathlib import Path

import pytest

from commonplace import open_store
from commonplace.stores.dict import DictStore
from commonplace.stores.directory import DirectoryStore


def test_every_memory_store_is_new_and_empty() -> None:
    first, second = open_store("memory:"), open_store("memory:")
    first.write("a", "1")
    assert isinstance(first, DictStore)
    assert list(second.list()) == []


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "file://{}",
        "file://localhost{}",
        "file:{}",
        "FILE://{}",
        "File:{}",
        "file://{}?history=off",
        "file://{}?max_bytes=9",
    ],
)
def test_a_path_or_a_file_url_is_a_directory(form: str, tmp_path: Path) -> None:
    with open_store(form.format(tmp_path / "memories")) as store:
        assert isinstance(store, DirectoryStore)
        store.write("a", "1")
    assert (tmp_path / "memories" / "a").read_text() == "1"


def test_a_file_url_is_decoded_and_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    for location in (f"file://{tmp_path}/a%20b?history=off", tmp_path / "c%20d?history=off", f"{tmp_path}/notes:x"):
        open_store(location).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b", "c%20d?history=off", "notes:x"]


def test_the_largest_memory_is_an_option_of_the_url(tmp_path: Path) -> None:
    with open_store(f"file://{tmp_path}?max_bytes=3") as store:
        store.write("a", "123")
        with pytest.raises(Exception, match="at most 3 bytes"):
            store.write("a", "1234")


def test_a_path_may_start_at_home_and_may_hold_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    open_store("~/memories").close()
    open_store("notes:x").close()
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {"home", "home/memories", "notes:x"}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_store_that_is_not_to_be_made_is_not_made(form: str, tmp_path: Path) -> None:
    location = form.format(tmp_path / "memories")
    with pytest.raises(FileNotFoundError):
        open_store(location, create=False)
    assert list(tmp_path.iterdir()) == []
    open_store(location).close()
    open_store(location, create=False).close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "a URL or a path"),
        ("Memory:name", "takes neither a name nor options"),
        ("memory://", "takes neither a name nor options"),
        ("file:memories", "absolute path"),
        ("file://host/memories", "absolute path"),
        ("file:///memories?histroy=off", "histroy=off is no option of file: URLs. There are history=off"),
        ("file:///memories?history=on", "history=on is no option"),
        ("file:///memories?history=", "history= is no option"),
        ("file:///memories#x", "absolute path"),
        ("file:///memories?max_bytes=٣", "is no option"),
        ("file:///memories?max_bytes=-1", "max_bytes=-1 is no option"),
        (
            "redis://localhost",
            "redis: is not a kind of store this version has. There are memory:, file: and plain paths",
        ),
    ],
)
def test_what_names_no_store_is_an_error_that_says_what_does(
    url: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        open_store(url)
    assert list(tmp_path.iterdir()) == []
