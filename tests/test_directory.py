"""The directory store looked at from outside: files, modes, links, and what a person does by hand."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import Conflict, MemoryTool, Refused, Store, messages, open_store
from commonplace.stores import _descriptors as disk
from commonplace.stores.directory import DirectoryStore
from commonplace.testing import links


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memories"


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with open_store(root) as store:
        yield store


def staging(root: Path) -> list[str]:
    """What lies in the staging folder besides the lock."""
    return sorted(set(os.listdir(root / ".commonplace" / "tmp")) - {"lock"})


# What a person sees


def test_a_memory_is_a_file_with_its_bytes_and_nothing_else(store: Store, root: Path) -> None:
    store.write("notes/tea.md", "naïve\r\n\tno final newline")
    assert (root / "notes" / "tea.md").read_bytes() == "naïve\r\n\tno final newline".encode()
    assert sorted(os.listdir(root)) == [".commonplace", "notes"]
    assert staging(root) == []


def test_an_edit_by_hand_is_seen_at_the_next_read(store: Store, root: Path) -> None:
    before = store.write("a.md", "by Claude")
    (root / "a.md").write_text("by hand")
    memory = store.read("a.md")
    assert memory is not None
    assert memory.content == "by hand"
    with pytest.raises(Conflict):
        store.write("a.md", "by Claude again", expect=before.revision)
    (root / "new").mkdir()
    (root / "new" / "b.md").write_text("new")
    assert [entry.path for entry in store.list()] == ["a.md", "new/b.md"]


def test_folders_without_memories_are_not_there(store: Store, root: Path) -> None:
    (root / "empty" / "inner").mkdir(parents=True)
    assert list(store.list()) == []
    assert store.delete("empty") == 0
    assert store.move("empty", "new") == 0
    store.write("empty", "a memory now")
    assert (root / "empty").read_text() == "a memory now"
    (root / "goal" / "inner").mkdir(parents=True)
    assert store.move("empty", "goal") == 1
    assert (root / "goal").read_text() == "a memory now"


def test_folders_that_become_empty_are_removed(store: Store, root: Path) -> None:
    store.write("a/b/c", "1")
    store.write("a/d", "2")
    store.delete("a/b/c")
    assert os.listdir(root / "a") == ["d"]
    store.move("a/d", "e")
    assert not (root / "a").exists()


def test_a_name_that_is_not_utf8_is_left_alone_and_out_of_view(store: Store, root: Path) -> None:
    (root / os.fsdecode(b"\xff.md")).write_text("x")
    (root / os.fsdecode(b"\xff")).mkdir()
    assert list(store.list()) == []


def test_what_claude_cannot_name_is_left_out_of_its_view(store: Store, root: Path) -> None:
    (root / "two\nlines.md").write_text("x")
    (root / "e\u0301.md").write_text("x")
    (root / "fine.md").write_text("x")
    answer = MemoryTool(store).execute({"command": "view", "path": "/memories"})
    assert answer.splitlines()[1:] == ["1B\t/memories", "1B\t/memories/fine.md"]


def test_a_create_that_overwrites_does_not_overwrite_what_is_no_text(store: Store, root: Path) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\xff")
    tool = MemoryTool(store, on_existing="overwrite")
    with pytest.raises(Refused, match="not a text file"):
        tool.execute({"command": "create", "path": "/memories/image.png", "file_text": "x"})
    assert (root / "image.png").read_bytes() == b"\x89PNG\xff"


def test_what_lies_deeper_than_any_key_is_nobodys_memory(store: Store, root: Path) -> None:
    (root / "/".join(["d"] * 63)).mkdir(parents=True)
    (root / "/".join(["d"] * 63) / "found").write_text("x")
    (root / "/".join(["e"] * 66)).mkdir(parents=True)
    (root / "/".join(["e"] * 66) / "not found").write_text("x")
    assert [entry.path for entry in store.list()] == ["/".join(["d"] * 63) + "/found"]


# Modes


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_files_are_their_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    script = f"""
import os, sys
os.umask({umask})
from commonplace import open_store
with open_store(sys.argv[1]) as store:
    store.write("a/b/c", "1")
    store.write("a/b/c", "2")
    store.move("a/b", "x/y")
    store.write("d", "3")
"""
    root = tmp_path / "new" / "memories"
    subprocess.run([sys.executable, "-c", script, root], check=True)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert modes == {0o600}
    folders = [tmp_path / "new", *(path for path in (tmp_path / "new").rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


# What is no memory


def test_bytes_that_are_not_utf8_are_refused_never_repaired_and_can_be_moved_away(store: Store, root: Path) -> None:
    image = b"\x89PNG\r\n\x1a\n\xff"
    (root / "image.png").write_bytes(image)
    tool = MemoryTool(store)
    for command in (
        {"command": "view", "path": "/memories/image.png"},
        {"command": "str_replace", "path": "/memories/image.png", "old_str": "PNG", "new_str": ""},
        {"command": "insert", "path": "/memories/image.png", "insert_line": 0, "insert_text": "x"},
    ):
        with pytest.raises(Refused, match=r"^Error: This is not a text file"):
            tool.execute(command)
    with pytest.raises(Refused, match=r"^Error: File /memories/image.png already exists"):
        tool.execute({"command": "create", "path": "/memories/image.png", "file_text": "x"})
    assert (root / "image.png").read_bytes() == image
    tool.execute({"command": "rename", "old_path": "/memories/image.png", "new_path": "/memories/old/image.png"})
    assert (root / "old" / "image.png").read_bytes() == image
    tool.execute({"command": "delete", "path": "/memories/old"})
    assert not (root / "old").exists()


def test_a_memory_larger_than_the_store_handles_is_refused_both_ways(root: Path) -> None:
    with DirectoryStore(root, max_bytes=10) as store:
        store.write("a", "é" * 5)
        with pytest.raises(Refused, match="at most 10 bytes"):
            store.write("a", "é" * 5 + "x")
        (root / "b").write_text("x" * 11)
        with pytest.raises(Refused, match="at most 10 bytes"):
            store.read("b")
        memory = store.read("a")
        assert memory is not None
        assert memory.content == "é" * 5


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "dangling link", "fifo", "socket"])
def test_what_is_no_ordinary_file_is_refused_in_words_and_left_alone(
    kind: str, store: Store, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    odd = root / "odd"
    if kind == "link to a file":
        odd.symlink_to(outside / "canary")
    elif kind == "link to a folder":
        odd.symlink_to(outside)
    elif kind == "dangling link":
        odd.symlink_to(outside / "new")
    elif kind == "fifo":
        os.mkfifo(odd)
    else:
        monkeypatch.chdir(root)  # a socket's path is limited to about a hundred bytes
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("odd")
    store.write("there", "x")
    before = odd.lstat()
    for refused in (
        lambda: store.read("odd"),
        lambda: store.write("odd", "x"),
        lambda: store.write("odd", "x", expect="absent"),
        lambda: store.delete("odd"),
        lambda: store.move("odd", "new"),
        lambda: store.move("there", "odd"),
        lambda: store.read("odd/below"),
        lambda: store.write("odd/below", "x"),
        lambda: store.delete("odd/canary"),
        lambda: store.move("odd/canary", "new"),
        lambda: store.move("there", "odd/below"),
        lambda: list(store.list("odd")),
    ):
        with pytest.raises(Refused, match="not an ordinary file"):
            refused()
    assert [entry.path for entry in store.list()] == ["there"]
    assert os.path.samestat(odd.lstat(), before)
    assert {item.name: item.read_text() for item in outside.iterdir()} == {"canary": "canary"}
    assert staging(root) == []


def test_links_below_a_directory_go_with_it_and_their_targets_stay(store: Store, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    for name in ("moved", "deleted"):
        store.write(f"{name}/x", "1")
        (root / name / "link").symlink_to(outside)
    assert store.move("moved", "new") == 1
    assert (root / "new" / "link").is_symlink()
    assert store.delete("deleted") == 1
    assert staging(root) == []
    assert (outside / "canary").read_text() == "canary"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with open_store(tmp_path / "link") as store:
        store.write("a", "1")
    assert (tmp_path / "real" / "a").read_text() == "1"


@pytest.mark.parametrize(
    ("planted", "target"),
    [
        (".commonplace", "folder"),
        (".commonplace/tmp", "folder"),
        (".commonplace/tmp/lock", "new"),
        (".commonplace/tmp/lock", "file"),
    ],
)
def test_a_link_in_place_of_what_is_the_stores_own_is_not_followed(
    planted: str, target: str, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("canary")
    (root / planted).parent.mkdir(parents=True)
    (root / planted).symlink_to(outside / target)
    with open_store(root) as store, pytest.raises(Refused):
        store.write("a", "1")
    assert sorted(path.name for path in outside.rglob("*")) == ["file", "folder"]
    assert not (root / "a").exists()


@pytest.mark.parametrize("how", ["removed", "moved away"])
def test_when_the_stores_own_folder_goes_writers_agree_on_a_new_one(how: str, root: Path) -> None:
    with open_store(root) as one, open_store(root) as other:
        for store in (one, other):
            store.write("a", "before")
        if how == "removed":
            shutil.rmtree(root / ".commonplace")
        else:
            (root / ".commonplace").rename(root.parent / "away")
        one.write("a", "after")
        new = (root / ".commonplace" / "tmp" / "lock").stat()
        other.write("b", "after")
        assert os.path.samestat((root / ".commonplace" / "tmp" / "lock").stat(), new)
    assert [path.read_text() for path in (root / "a", root / "b")] == ["after", "after"]


# Opening and closing


def test_what_a_killed_writer_left_is_swept_when_the_store_is_opened(root: Path) -> None:
    tmp = root / ".commonplace" / "tmp"
    (tmp / "half-purged" / "deep").mkdir(parents=True)
    (tmp / "half-purged" / "deep" / "x").write_text("x")
    (tmp / "half-written").write_text("x")
    (tmp / "link").symlink_to(root.parent)
    open_store(root).close()
    assert staging(root) == []
    assert root.parent.exists()


def test_what_a_writer_is_at_work_on_is_not_swept(root: Path) -> None:
    with open_store(root) as store:
        assert isinstance(store, DirectoryStore)
        with store._writing():
            (root / ".commonplace" / "tmp" / "at-work").write_text("x")
            open_store(root).close()
            assert staging(root) == ["at-work"]


def test_a_tree_of_any_depth_is_deleted_and_never_keeps_the_store_from_opening(store: Store, root: Path) -> None:
    def make_deep(name: str) -> None:
        folder = os.open(root, os.O_RDONLY)
        for inner in [name, *["d"] * 2000]:
            os.mkdir(inner, dir_fd=folder)
            deeper = os.open(inner, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.close(folder)

    make_deep("deep")
    store.write("deep/x", "1")
    assert store.delete("deep") == 1
    assert staging(root) == []
    make_deep("empty")
    with pytest.raises(Refused, match="not an ordinary file"):
        store.write("empty", "1")
    (root / "empty").rename(root / ".commonplace" / "tmp" / "left")
    open_store(root).close()
    assert staging(root) == []


def test_a_file_in_place_of_the_stores_own_folder_is_no_memory(root: Path) -> None:
    root.mkdir()
    (root / ".commonplace").write_text("x")
    with open_store(root) as store:
        assert list(store.list()) == []
        with pytest.raises(Refused):
            store.write("a", "1")


def test_opening_makes_the_folder_and_nothing_in_it(root: Path) -> None:
    with open_store(root) as store:
        assert store.read("a") is None
        assert list(store.list()) == []
    assert os.listdir(root) == []


def test_a_store_holds_two_descriptors_and_gives_them_back(root: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))

    before = descriptors()
    store = open_store(root)
    for _ in range(3):
        store.write("a/b/c", "1")
        store.read("a/b/c")
        next(store.list())
        store.move("a", "d")
        store.delete("d")
        store.write("x", "1")
        for path in ("x/y", "x/y/z"):
            with pytest.raises(Conflict):
                store.write(path, "1")
        store.write("y/z", "1")
        (root / "y" / "link").symlink_to(root)
        for path in ("y/link", "y/link/x", "y/link/x/z"):
            with pytest.raises(Refused):
                store.read(path)
        store.delete("y")
        store.delete("x")
    assert descriptors() == before + 2
    store.close()
    assert descriptors() == before


def test_a_closed_store_is_an_error_of_the_program_and_not_claudes(root: Path) -> None:
    store = open_store(root)
    store.close()
    for use in (
        lambda: store.read("a"),
        lambda: store.write("a", "1"),
        lambda: store.move("a", "b"),
        lambda: store.delete("a"),
        lambda: list(store.list()),
    ):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_relative_root_is_where_it_was_when_the_store_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("./memories") as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.write("a", "1")
    assert (tmp_path / "memories" / "a").read_text() == "1"


def test_a_file_in_place_of_the_root_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "memories").write_text("x")
    with pytest.raises(OSError, match="memories"):
        open_store(tmp_path / "memories")


def test_a_system_without_the_means_is_told_what_it_lacks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "fcntl", None)
    with pytest.raises(NotImplementedError, match=r"lacks: locks between processes"):
        DirectoryStore(root)
    assert not root.exists()


def test_without_an_exclusive_rename_nothing_is_overwritten_either(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old C libraries and some file systems know none. The suite runs that way too (test_stores.py)."""
    monkeypatch.setattr(disk, "_renameat", None)
    for name in ("file", "folder", "taken"):
        (root / name).mkdir() if name == "folder" else (root / name).write_text(name)
    folder = disk.open_folder(str(root))
    try:
        for old in ("file", "folder"):
            with pytest.raises(FileExistsError):
                disk.rename_exclusive(old, "taken", folder, folder)
            disk.rename_exclusive(old, old + "2", folder, folder)
    finally:
        os.close(folder)
    assert sorted(set(os.listdir(root)) - {".commonplace"}) == ["file2", "folder2", "taken"]
    assert (root / "taken").read_text() == "taken"


# Links swapped in while commands run


@pytest.mark.skipif(not links.can_swap(), reason="needs renameat2, which exchanges two names in one step")
def test_a_folder_swapped_for_a_link_never_lets_a_byte_in_or_out(tmp_path: Path) -> None:
    answers, wrong = links.swap_links(tmp_path, rounds=400)
    assert wrong == []
    assert not any(messages.INTERNAL[:30] in answer for answer in answers)
    # Both sides of the swap were met, so the loop was tight enough to mean something.
    assert any("inside" in answer for answer in answers)
    assert any("not an ordinary file" in answer for answer in answers)


@pytest.mark.skipif(not links.can_swap(), reason="needs renameat2, which exchanges two names in one step")
def test_a_store_that_follows_links_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "FOLDER", os.O_RDONLY | os.O_DIRECTORY)
    _, wrong = links.swap_links(tmp_path, rounds=400)
    assert wrong
