"""The suite that every store passes, ours and yours."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ParamSpec, TypeVar

import pytest

from commonplace.errors import Conflict
from commonplace.store import Store, clear, sha256

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8

DIFFICULT_TEXTS = {
    "empty": "",
    "no final newline": "a\nb",
    "only newlines": "\n\n\n",
    "CRLF": "a\r\nb\r\n",
    "lone CR": "a\rb\r",
    "tabs and trailing spaces": "\ta \t \n",
    "other line ends": "a\u2028b\u2029c\x0bd\x0ce\x1cf\x85g\n",
    "byte order mark": "\ufeffa",
    "composed and decomposed": "é e\u0301",
    "beyond the basic plane": "🫖 \U0010ffff \ufffe",
    "control characters": "\x1b[31m\x07\x08",
    "right to left": "\u202eabc\u202c",
    "two megabytes": "0123456789abcdef" * 131_072,
}

DIFFICULT_PATHS = (
    "no extension",
    ".hidden",
    "a/.b/c",
    "node_modules/x",
    "trailing.dot.",
    "-rf",
    "name#1",
    "a#b#2",
    "100%.md",
    "q?x=1&y=2",
    "star*",
    "[x]",
    "semi;colon:colon|pipe",
    "quo'te\"",
    "a=b+c~d!e@f$g,h(i)",
    "ünïcödé/日本語/🫖.md",
    "_under%score_",
    "commonplace/x",
    "n" * 255,
    "/".join("abcdefghijklmnopqrst"),
)


class StoreSuite:
    """Every promise of `commonplace.store`, as tests. Subclass it and supply the store:

    ```python
    class TestMyStore(StoreSuite):
        @pytest.fixture
        def store(self) -> Iterator[Store]:
            with MyStore() as store:
                yield store
    ```

    The store comes empty. Override `reopen` if a second opening can see what the first one stored; then it is asked
    what is really kept.
    """

    def reopen(self, store: Store) -> Store:
        """Return a store over the same memories, freshly opened where that is possible."""
        return store

    # Reading and writing

    def test_nothing_is_read_where_nothing_was_written(self, store: Store) -> None:
        assert store.read("a") is None
        assert store.read("a/b/c") is None

    def test_what_is_written_is_read(self, store: Store) -> None:
        written = store.write("notes/tea.md", "no sugar, naïve")
        assert written == store.read("notes/tea.md")
        assert (written.path, written.content, written.size) == ("notes/tea.md", "no sugar, naïve", 16)

    def test_a_memory_knows_when_it_was_written_in_utc(self, store: Store) -> None:
        written = store.write("a", "1")
        assert written.updated_at.tzinfo == UTC
        assert abs(datetime.now(UTC) - written.updated_at) < timedelta(minutes=1)

    def test_the_hash_is_that_of_the_contents_utf8(self, store: Store) -> None:
        assert store.write("a", "naïve").content_sha256 == sha256("naïve".encode())

    @pytest.mark.parametrize("text", DIFFICULT_TEXTS.values(), ids=DIFFICULT_TEXTS)
    def test_content_is_kept_byte_for_byte(self, store: Store, text: str) -> None:
        written = store.write("a", text)
        with self.reopen(store) as again:
            assert _content(again, "a") == text
        assert written.size == len(text.encode())

    @pytest.mark.parametrize("path", DIFFICULT_PATHS)
    def test_difficult_paths_are_paths(self, store: Store, path: str) -> None:
        store.write(path, path, expect="absent")
        with self.reopen(store) as again:
            assert _content(again, path) == path
            assert [entry.path for entry in again.list()] == [path]
            assert again.move(path, "moved/" + path.rpartition("/")[2]) == 1
            assert again.delete("moved") == 1

    def test_a_write_replaces_what_was_there(self, store: Store) -> None:
        first = store.write("a", "a longer text than the next")
        second = store.write("a", "short")
        assert store.read("a") == second
        assert first.revision != second.revision

    def test_a_directory_is_no_memory(self, store: Store) -> None:
        store.write("a/b/c", "1")
        assert store.read("a") is None
        assert store.read("a/b") is None

    def test_what_is_kept_is_there_when_the_store_is_opened_again(self, store: Store) -> None:
        written = store.write("a/b", "1")
        with self.reopen(store) as again:
            assert again.read("a/b") == written

    # Expectations

    def test_expecting_absence_writes_once(self, store: Store) -> None:
        store.write("a", "1", expect="absent")
        _conflicts("a", store.write, "a", "2", expect="absent")
        assert _content(store, "a") == "1"

    def test_expecting_a_revision_writes_if_it_is_the_current_one(self, store: Store) -> None:
        old = store.write("a", "1")
        new = store.write("a", "2", expect=old.revision)
        _conflicts("a", store.write, "a", "3", expect=old.revision)
        assert store.read("a") == new

    def test_a_revision_read_can_be_expected(self, store: Store) -> None:
        store.write("a", "1")
        memory = store.read("a")
        assert memory is not None
        store.write("a", "2", expect=memory.revision)
        assert _content(store, "a") == "2"

    def test_a_revision_is_expected_of_a_memory_and_of_nothing_else(self, store: Store) -> None:
        revision = store.write("d/x", "1").revision
        for path in ("d", "nothing", "d/nothing", "d/x/below"):
            _conflicts(path, store.write, path, "2", expect=revision)
            _conflicts(path, store.delete, path, expect=revision)
            _conflicts(path, store.move, path, "new", expect=revision)
        assert _contents(store) == {"d/x": "1"}

    def test_move_and_delete_expect_as_well(self, store: Store) -> None:
        old = store.write("a", "1")
        new = store.write("a", "2")
        _conflicts("a", store.move, "a", "b", expect=old.revision)
        _conflicts("a", store.delete, "a", expect=old.revision)
        assert store.move("a", "b", expect=new.revision) == 1
        moved = store.read("b")
        assert moved is not None
        assert store.delete("b", expect=moved.revision) == 1
        assert _contents(store) == {}

    # Above and below

    def test_no_memory_comes_below_a_memory(self, store: Store) -> None:
        store.write("a", "1")
        for path in ("a/b", "a/b/c/d"):
            _conflicts("a", store.write, path, "2")
            _conflicts("a", store.write, path, "2", expect="absent")
        assert _contents(store) == {"a": "1"}

    def test_no_memory_comes_above_a_memory(self, store: Store) -> None:
        store.write("a/b/c", "1")
        for path in ("a", "a/b"):
            _conflicts("a/b/c", store.write, path, "2")
            _conflicts("a/b/c", store.write, path, "2", expect="absent")
        assert _contents(store) == {"a/b/c": "1"}

    def test_a_directory_is_gone_with_its_last_memory(self, store: Store) -> None:
        store.write("a/b/c", "1")
        store.delete("a/b/c")
        store.write("a", "a memory now")
        store.delete("a")
        store.write("x/y", "1")
        store.move("x/y", "z")
        store.write("x", "a memory now")
        assert _contents(store) == {"x": "a memory now", "z": "1"}

    # Moving

    def test_a_memory_is_moved(self, store: Store) -> None:
        store.write("a", "1")
        assert store.move("a", "d/e/b") == 1
        with self.reopen(store) as again:
            assert _contents(again) == {"d/e/b": "1"}

    def test_a_directory_is_moved_with_all_below_it_and_nothing_beside_it(self, store: Store) -> None:
        for path in ("d/x", "d/e/y", "d/e/f/z", "d-x", "d.md", "dd/x"):
            store.write(path, path)
        assert store.move("d", "n/m") == 3
        with self.reopen(store) as again:
            assert _contents(again) == {
                "n/m/x": "d/x",
                "n/m/e/y": "d/e/y",
                "n/m/e/f/z": "d/e/f/z",
                "d-x": "d-x",
                "d.md": "d.md",
                "dd/x": "dd/x",
            }

    def test_moving_nothing_moves_nothing(self, store: Store) -> None:
        store.write("a", "1")
        assert store.move("nothing", "new/deep") == 0
        assert store.move("a/below", "new") == 0
        assert _contents(store) == {"a": "1"}

    def test_moving_looks_at_the_source_before_the_destination(self, store: Store) -> None:
        store.write("a", "1")
        assert store.move("nothing", "a") == 0

    def test_moving_never_overwrites(self, store: Store) -> None:
        for path in ("a", "d/x", "e/y"):
            store.write(path, path)
        _conflicts("d/x", store.move, "a", "d/x")
        _conflicts("d/x", store.move, "a", "d")
        _conflicts("a", store.move, "d", "a")
        _conflicts("e/y", store.move, "d", "e")
        _conflicts("d/x", store.move, "d/x", "d")
        _conflicts("a", store.move, "a", "a")
        _conflicts("d", store.move, "d", "d")
        assert _contents(store) == {"a": "a", "d/x": "d/x", "e/y": "e/y"}

    def test_nothing_moves_below_a_memory_or_into_itself(self, store: Store) -> None:
        store.write("a", "1")
        store.write("d/x", "2")
        _conflicts("a", store.move, "d", "a/b/c")
        _conflicts("a", store.move, "a", "a/b")
        _conflicts("d", store.move, "d", "d/e")
        assert _contents(store) == {"a": "1", "d/x": "2"}

    def test_a_move_within_one_directory_keeps_the_directory(self, store: Store) -> None:
        store.write("d/x", "1")
        assert store.move("d/x", "d/y") == 1
        assert store.move("d/y", "d/e/f") == 1
        assert store.move("d/e", "d/g") == 1
        assert _contents(store) == {"d/g/f": "1"}

    # Deleting

    def test_a_memory_is_deleted_once(self, store: Store) -> None:
        store.write("a", "1")
        assert store.delete("a") == 1
        assert store.delete("a") == 0
        with self.reopen(store) as again:
            assert again.read("a") is None

    def test_a_directory_is_deleted_with_all_below_it_and_nothing_beside_it(self, store: Store) -> None:
        for path in ("d/x", "d/e/y", "d-x", "d.md", "dd/x"):
            store.write(path, path)
        assert store.delete("d") == 2
        with self.reopen(store) as again:
            assert sorted(_contents(again)) == ["d-x", "d.md", "dd/x"]

    def test_clearing_a_store_leaves_what_belongs_to_the_layers(self, store: Store) -> None:
        for path in ("a", "d/x", "d/y", ".commonplace/log/1"):
            store.write(path, path)
        assert clear(store) == 3
        assert _contents(store) == {}
        assert _content(store, ".commonplace/log/1") == ".commonplace/log/1"

    # Listing

    def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        assert list(store.list()) == []
        assert list(store.list("nothing/here")) == []

    def test_a_listing_is_in_the_order_of_the_paths_bytes(self, store: Store) -> None:
        paths = ["a/c", "a-b", "a.md", "a0", "B", "é", "z", "\uffee", "🫖", "a/b/d", "A/x"]
        for path in paths:
            store.write(path, "1")
        assert [entry.path for entry in store.list()] == sorted(paths, key=str.encode)

    def test_a_listing_tells_what_reading_tells(self, store: Store) -> None:
        memory = store.write("a", "naïve")
        (entry,) = store.list()
        assert (entry.path, entry.size, entry.updated_at) == (memory.path, memory.size, memory.updated_at)

    def test_a_listing_starts_below_a_directory_and_ends_with_it(self, store: Store) -> None:
        for path in ("d/x", "d/e/y", "d-x", "d.md", "dd/x", "c"):
            store.write(path, "1")
        assert [entry.path for entry in store.list("d")] == ["d/e/y", "d/x"]
        assert [entry.path for entry in store.list("d/e")] == ["d/e/y"]
        assert list(store.list("d/x")) == []

    def test_a_listing_need_not_be_read_to_its_end(self, store: Store) -> None:
        for path in ("a/b/c", "a/d", "e"):
            store.write(path, "1")
        assert next(store.list()).path == "a/b/c"
        store.delete("a")
        store.write("a", "1")

    # What belongs to the layers

    def test_keys_of_the_layers_are_kept_and_left_out_of_the_listing_of_everything(self, store: Store) -> None:
        store.write(".commonplace/history/a/1.json", "{}")
        store.write("a", "1")
        assert [entry.path for entry in store.list()] == ["a"]
        assert [entry.path for entry in store.list(".commonplace")] == [".commonplace/history/a/1.json"]
        assert store.move(".commonplace/history", ".commonplace/old") == 1
        assert store.delete(".commonplace/old") == 1
        assert list(store.list(".commonplace")) == []

    # Closing

    def test_a_store_is_closed_at_the_end_of_with_and_may_be_closed_again(self, store: Store) -> None:
        with store as entered:
            assert entered is store
        store.close()

    # Several at once

    def test_of_many_who_create_one_memory_one_does(self, store: Store) -> None:
        results = _at_once(_attempt(store.write, "d/a", str(n), expect="absent") for n in range(THREADS))
        (winner,) = filter(None, results)
        assert _content(store, "d/a") == winner.content

    def test_no_edit_is_lost(self, store: Store) -> None:
        store.write("a", "")

        def append_ten(number: int) -> None:
            appended = 0
            while appended < 10:
                memory = store.read("a")
                assert memory is not None
                with suppress(Conflict):
                    store.write("a", f"{memory.content}{number}\n", expect=memory.revision)
                    appended += 1

        _at_once(partial(append_ten, number) for number in range(THREADS))
        assert sorted(_content(store, "a").split()) == sorted(str(n) for n in range(THREADS) for _ in range(10))

    def test_of_many_who_delete_one_memory_one_does(self, store: Store) -> None:
        store.write("a", "1")
        assert sum(_at_once([partial(store.delete, "a")] * THREADS)) == 1

    def test_of_many_who_move_onto_one_path_one_does_and_nothing_is_lost(self, store: Store) -> None:
        for number in range(THREADS):
            store.write(f"from/{number}", str(number))
        results = _at_once(_attempt(store.move, f"from/{n}", "to/it") for n in range(THREADS))
        assert results.count(1) == 1
        assert sorted(_contents(store).values()) == [str(n) for n in range(THREADS)]

    def test_a_memory_and_one_below_it_never_both_come_to_be(self, store: Store) -> None:
        for number in range(10):
            _at_once(
                _attempt(store.write, path, "1", expect="absent")
                for path in (f"{number}/a", f"{number}/a/b", f"{number}/a/b/c", f"{number}")
            )
            paths = [entry.path for entry in store.list()]
            assert [path for path in paths if any(other.startswith(path + "/") for other in paths)] == []

    def test_a_reader_sees_the_old_text_or_the_new(self, store: Store) -> None:
        texts = {"x" * 100_000, "y" * 10}
        store.write("a", "y" * 10)
        done = threading.Event()

        def write() -> set[str]:
            for _ in range(20):
                for text in texts:
                    store.write("a", text)
            done.set()
            return texts

        def read() -> set[str]:
            seen = set()
            while not done.is_set():
                seen.add(_content(store, "a"))
            return seen

        assert set().union(*_at_once([write, read, read])) == texts


def _content(store: Store, path: str) -> str:
    memory = store.read(path)
    assert memory is not None
    return memory.content


def _contents(store: Store) -> dict[str, str]:
    return {entry.path: _content(store, entry.path) for entry in store.list()}


def _conflicts(path: str, action: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Assert that the action raises Conflict and that it names this path."""
    with pytest.raises(Conflict) as caught:
        action(*args, **kwargs)
    assert caught.value.path == path


def _attempt(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T | None]:
    """Return the action, to be done later, with None in place of a Conflict."""

    def attempt() -> T | None:
        try:
            return action(*args, **kwargs)
        except Conflict:
            return None

    return attempt


def _at_once(actions: Iterable[Callable[[], T]]) -> list[T]:
    """Run the actions in a thread each, all let go at the same moment, and return what they return."""
    actions = list(actions)
    together = threading.Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        together.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as threads:
        return list(threads.map(run, actions))
