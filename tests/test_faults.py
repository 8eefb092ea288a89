"""What the system says no to is a clear refusal, with nothing lost and nothing half done."""

import errno
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent

import pytest

import crashing
from commonplace import Conflict, MemoryTool, Refused, messages, open_store
from commonplace.stores import _descriptors as disk
from commonplace.stores import directory
from commonplace.stores.directory import DirectoryStore
from commonplace.testing.stepping import before_call, can_fail, failing

BIG = "x" * 3_000_000


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A file system of its own, where the system lets us mount one."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", folder]
        mounted = subprocess.run(command, capture_output=True, text=True)
        if mounted.returncode != 0:
            pytest.skip("mounting a small file system needs root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def as_nobody(script: str, folder: Path) -> None:
    """Run a script on a folder as a user who is not root, whom permissions stop; the script finds `store` and `tool`."""
    preamble = f"""
        import os, sys
        from pathlib import Path
        import pytest
        from commonplace import MemoryTool, Refused, messages, open_store
        import commonplace.stores.directory, hashlib
        root = Path({str(folder)!r})
        with open_store(root) as store:
            store.write("d/there.md", "text")
            store.write("shut/in.md", "text")
        if os.geteuid() == 0:
            for path in (root, *root.rglob("*")):
                os.chown(path, 65534, 65534)
            os.setgroups([])
            os.setegid(65534)
            os.seteuid(65534)
        store = open_store(root)
        tool = MemoryTool(store)
        def refuses(sentence, **command):
            with pytest.raises(Refused) as refused:
                tool.execute(command)
            assert str(refused.value) == sentence, str(refused.value)
    """
    done = subprocess.run([sys.executable, "-c", dedent(preamble) + dedent(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder / "memories"
    finally:
        for path, _, _ in os.walk(folder):  # what a test shut, it left shut
            Path(path).chmod(0o700)
        shutil.rmtree(folder)


def test_a_full_disk_refuses_what_does_not_fit_and_keeps_what_is_there() -> None:
    with small_disk("1m") as disk, open_store(disk / "memories") as store:
        tool = MemoryTool(store)
        store.write("a", "old text")
        store.write("b/c", "x" * 400_000)
        for command in (
            {"command": "create", "path": "/memories/new/deep", "file_text": BIG},
            {"command": "str_replace", "path": "/memories/a", "old_str": "old", "new_str": BIG},
            {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": BIG},
        ):
            with pytest.raises(Refused) as refused:
                tool.execute(command)
            assert str(refused.value) == messages.STORE_FULL
        assert {entry.path: entry.size for entry in store.list()} == {"a": 8, "b/c": 400_000}
        assert os.listdir(disk / "memories" / ".commonplace" / "tmp") == ["lock"]
        assert not (disk / "memories" / "new").exists()
        # Deleting makes room, and what did not fit then fits.
        tool.execute({"command": "delete", "path": "/memories/b"})
        tool.execute({"command": "create", "path": "/memories/b", "file_text": "x" * 700_000})


def test_a_disk_without_room_for_one_more_file_refuses_as_well() -> None:
    with small_disk("1m,nr_inodes=12") as disk, open_store(disk / "memories") as store:
        tool = MemoryTool(store)
        made = 0
        with pytest.raises(Refused) as refused:
            for made in range(20):
                tool.execute({"command": "create", "path": f"/memories/{made}/deep/x", "file_text": "x"})
        assert str(refused.value) == messages.STORE_FULL
        assert len(list(store.list())) == made > 0
        assert not (disk / "memories" / str(made)).exists()
        assert os.listdir(disk / "memories" / ".commonplace" / "tmp") == ["lock"]


def test_a_file_system_mounted_read_only_is_read_and_refuses_to_write() -> None:
    with small_disk("1m") as disk:
        with open_store(disk / "memories") as store:
            store.write("a", "text")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with open_store(disk / "memories") as store:
            tool = MemoryTool(store)
            assert "text" in tool.execute({"command": "view", "path": "/memories/a"})
            for command in (
                {"command": "create", "path": "/memories/b", "file_text": "x"},
                {"command": "str_replace", "path": "/memories/a", "old_str": "text", "new_str": "x"},
                {"command": "delete", "path": "/memories/a"},
                {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
            ):
                with pytest.raises(Refused) as refused:
                    tool.execute(command)
                assert str(refused.value) == messages.READ_ONLY


def test_a_short_write_is_a_failed_write(tmp_path: Path) -> None:
    script = """
        import resource, sys
        from commonplace import Refused, messages, open_store
        store = open_store(sys.argv[1])
        store.write("a", "old text")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for path in ("a", "b"):
            try:
                store.write(path, "x" * 5000)
            except Refused as refused:
                assert str(refused) == messages.STORE_FULL
            else:
                raise AssertionError
        assert store.read("a").content == "old text"
        assert [entry.path for entry in store.list()] == ["a"]
    """
    subprocess.run([sys.executable, "-c", dedent(script), tmp_path / "memories"], check=True)
    assert os.listdir(tmp_path / "memories" / ".commonplace" / "tmp") == ["lock"]


def test_a_read_only_folder_is_read_and_refuses_to_write(open_folder: Path) -> None:
    as_nobody(
        """
        for path in (root, *root.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)
        assert "text" in tool.execute({"command": "view", "path": "/memories/d/there.md"})
        assert "d/there.md" in tool.execute({"command": "view", "path": "/memories"})
        denied = messages.PERMISSION_DENIED
        refuses(denied, command="create", path="/memories/new.md", file_text="x")
        refuses(denied, command="create", path="/memories/new/deep.md", file_text="x")
        refuses(denied, command="str_replace", path="/memories/d/there.md", old_str="text", new_str="x")
        refuses(denied, command="insert", path="/memories/d/there.md", insert_line=0, insert_text="x")
        refuses(denied, command="delete", path="/memories/d/there.md")
        refuses(denied, command="delete", path="/memories/d")
        refuses(denied, command="rename", old_path="/memories/d", new_path="/memories/e")
        assert [entry.path for entry in store.list()] == ["d/there.md", "shut/in.md"]
        """,
        open_folder,
    )


def test_a_folder_or_memory_that_may_not_be_read_is_refused_and_never_left_out_in_silence(open_folder: Path) -> None:
    as_nobody(
        """
        (root / "d" / "there.md").chmod(0)
        (root / "shut").chmod(0)
        denied = messages.PERMISSION_DENIED
        refuses(denied, command="view", path="/memories/d/there.md")
        refuses(denied, command="view", path="/memories/shut/in.md")
        refuses(denied, command="view", path="/memories/shut")
        refuses(denied, command="view", path="/memories")
        refuses(denied, command="create", path="/memories/shut/new.md", file_text="x")
        refuses(denied, command="create", path="/memories/shut", file_text="x")
        refuses(denied, command="delete", path="/memories/shut")
        (root / "shut").chmod(0o700)
        assert [entry.path for entry in store.list()] == ["d/there.md", "shut/in.md"]
        """,
        open_folder,
    )


def test_what_lies_on_another_disk_can_be_read_and_is_not_changed_by_halves() -> None:
    with small_disk("1m") as disk, open_store(disk / "memories") as store:
        store.write("mounted/x", "hidden below the mount")
        mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk / "memories" / "mounted")]
        subprocess.run(mount, check=True)
        try:
            (disk / "memories" / "mounted" / "a").write_text("there")
            memory = store.read("mounted/a")
            assert memory is not None
            for refused in (
                lambda: store.write("mounted/b", "x"),
                lambda: store.write("mounted/a", "x"),
                lambda: store.move("mounted/a", "a"),
                lambda: store.move("mounted", "b"),
                lambda: store.delete("mounted"),
            ):
                with pytest.raises(Refused) as caught:
                    refused()
                assert str(caught.value) == messages.MOUNTED
            assert store.read("mounted/a") == memory
        finally:
            subprocess.run(["umount", str(disk / "memories" / "mounted")], check=True)


def test_a_file_with_a_time_beyond_all_calendars_is_listed_and_read() -> None:
    with small_disk("1m") as disk, open_store(disk / "memories") as store:
        for number, seconds in enumerate((253402300800, -(10**12))):
            store.write(f"{number}", "text")
            os.utime(disk / "memories" / f"{number}", (0, seconds))
        assert [entry.updated_at.year for entry in store.list()] == [9999, 1]
        memory = store.read("0")
        assert memory is not None
        assert memory.content == "text"


def test_a_removed_root_refuses_everything_instead_of_looking_empty(tmp_path: Path) -> None:
    root = tmp_path / "memories"
    with open_store(root) as store:
        store.write("d/a", "text")
        shutil.rmtree(root)
        root.mkdir()
        tool = MemoryTool(store)
        for command in (
            {"command": "view", "path": "/memories"},
            {"command": "view", "path": "/memories/d/a"},
            {"command": "create", "path": "/memories/b", "file_text": "x"},
            {"command": "str_replace", "path": "/memories/d/a", "old_str": "t", "new_str": "x"},
            {"command": "insert", "path": "/memories/d/a", "insert_line": 0, "insert_text": "x"},
            {"command": "delete", "path": "/memories/d"},
            {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/e"},
        ):
            with pytest.raises(Refused) as refused:
                tool.execute(command)
            assert str(refused.value) == messages.STORE_GONE
        assert os.listdir(root) == []
    with open_store(root) as store:
        store.write("a", "a new life")


def test_a_name_longer_than_the_file_system_takes_is_refused_in_words(tmp_path: Path) -> None:
    """The gate lets 255 bytes through, which is what most file systems take; this asks for more."""
    with open_store(tmp_path / "memories") as store:
        for path in ("n" * 256, "n" * 256 + "/x"):
            with pytest.raises(Refused) as refused:
                store.write(path, "x")
            assert str(refused.value) == messages.NAME_TOO_LONG
        assert list(store.list()) == []


def test_a_key_longer_than_the_system_takes_whole_is_refused_and_not_looked_for_for_ever(tmp_path: Path) -> None:
    """No tool sends such a key, but a layer that puts something in front of one might."""
    key = "/".join(["k" * 200] * 25)
    with open_store(tmp_path / "memories") as store:
        store.write(key, "x")
        with pytest.raises(Refused) as refused:
            store.read(key)
        assert str(refused.value) == messages.NAME_TOO_LONG


def test_a_file_that_grows_while_it_is_read_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    def grow() -> None:
        with (tmp_path / "a").open("a") as file:
            file.write("x" * 100)

    with DirectoryStore(tmp_path, max_bytes=10) as store:
        for point in itertools.count(1):
            (tmp_path / "a").write_text("x" * 10)
            with before_call(point, grow) as grown:
                try:
                    memory = store.read("a")
                    assert memory is not None
                    assert memory.content == "x" * 10
                except Refused as refused:
                    assert str(refused) == messages.TOO_LARGE.format(limit=10)
            if not grown:
                break
        assert point > 5


def test_a_refusal_keeps_its_cause_for_the_log_and_tells_claude_nothing_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(tmp_path / "memories") as store, pytest.raises(Refused) as refused:
        store.write("n" * 256, "x")
    assert isinstance(refused.value.__cause__, OSError)
    assert str(tmp_path) not in str(refused.value)
    assert "File name too long" in caplog.text


# Syncing. SIGKILL cannot show that it was forgotten, because what was written is in the system's memory then.

Identity = tuple[int, int]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Identity]]:
    """What has been synced since one last asked, by device and inode."""
    seen: set[Identity] = set()
    sync = disk.sync

    def note_and_sync(descriptor: int) -> None:
        sync(descriptor)
        status = os.fstat(descriptor)
        seen.add((status.st_dev, status.st_ino))

    def since() -> set[Identity]:
        noted = seen.copy()
        seen.clear()
        return noted

    monkeypatch.setattr(disk, "sync", note_and_sync)
    return since


def test_every_change_that_is_acknowledged_was_synced(tmp_path: Path, synced: Callable[[], set[Identity]]) -> None:
    root = tmp_path / "new" / "memories"

    def identities(*names: str) -> set[Identity]:
        return {(status.st_dev, status.st_ino) for status in (os.stat(root / name) for name in names)}

    with open_store(root) as store:
        assert synced() == identities("..", "../..")
        store.write("a", "1")
        assert synced() == identities("a", ".", ".commonplace", ".commonplace/tmp")
        store.write("a", "2")
        assert synced() == identities("a", ".")
        store.write("d/e/x", "3")
        assert synced() == identities("d/e/x", "d/e", "d", ".")
        store.write("d/e/y", "4")
        assert synced() == identities("d/e/y", "d/e")
        store.move("a", "f/a")
        assert synced() == identities("f", ".")
        kept = identities("d")
        store.write("d/stays", "5")
        synced()
        store.move("d/e", "g")
        assert synced() == {*kept, *identities(".")}
        before = identities("f")
        store.write("f/b", "5")
        synced()
        store.delete("f/b")
        assert synced() == before
        store.delete("f")
        assert synced() == identities(".")
        store.write(".commonplace/log/1", "6")
        assert synced() == identities(".commonplace/log/1", ".commonplace/log", ".commonplace")


@pytest.mark.parametrize(
    "change",
    [
        {"command": "create", "path": "/memories/new/deep/b", "file_text": "new"},
        {"command": "str_replace", "path": "/memories/d/a", "old_str": "old", "new_str": "new"},
        {"command": "rename", "old_path": "/memories/d/a", "new_path": "/memories/new/a"},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/new/d"},
        {"command": "delete", "path": "/memories/d/a"},
        {"command": "delete", "path": "/memories/d"},
    ],
    ids=lambda change: f"{change['command']} {change.get('path') or change['new_path']}",
)
def test_a_sync_that_fails_is_told_and_what_is_there_is_the_old_or_the_new(
    change: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the change is made, nothing has changed; after it, Claude is told that it may not last."""
    sync = disk.sync
    left = 0

    def fail_at_last(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.EIO, "Input/output error", str(tmp_path))
        sync(descriptor)

    monkeypatch.setattr(disk, "sync", fail_at_last)
    told = []
    for point in itertools.count(1):
        left = 0
        with open_store(tmp_path / str(point)) as store:
            store.write("d/a", "old")
            store.write("d/other", "old")
            before = {entry.path: store.read(entry.path) for entry in store.list()}
            left = point
            result = MemoryTool(store).answer({"id": "1", "input": change})
            if left > 0:
                break
            now = {entry.path: store.read(entry.path) for entry in store.list()}
            told.append(result["content"])
            assert result["is_error"] is True
            assert result["content"] == (messages.STORE_FAILED if now == before else messages.NOT_CONFIRMED)
            if now == before:
                assert not (tmp_path / str(point) / "new").exists()
        # A directory that was deleted without a sync is not purged before the store is opened again.
        open_store(tmp_path / str(point)).close()
        assert {path.name for path in (tmp_path / str(point) / ".commonplace" / "tmp").iterdir()} == {"lock"}
    assert messages.NOT_CONFIRMED in told


@pytest.mark.parametrize("command", ["create", "rename a memory", "rename a directory"])
def test_what_a_person_puts_at_the_destination_meanwhile_is_never_overwritten(command: str, tmp_path: Path) -> None:
    def interfere() -> None:
        with suppress(FileExistsError):  # our own came first
            (root / "new").mkdir(exist_ok=True)
            with (root / "new" / "it").open("x") as file:
                file.write("by hand")

    for point in itertools.count(1):
        root = tmp_path / str(point)
        with open_store(root) as store:
            store.write("d/a", "old")
            with before_call(point, interfere) as interfered, suppress(Conflict):
                if command == "create":
                    store.write("new/it", "ours", expect="absent")
                else:
                    store.move("d/a" if "memory" in command else "d", "new/it")
            texts = sorted(path.read_text() for path in root.rglob("*") if path.is_file() and path.name != "lock")
        if not interfered:
            break
        assert texts in (["by hand", "old"], ["old", "ours"], ["old"]), f"interfered before call {point}"
        if texts == ["by hand", "old"]:
            assert (root / "d" / "a").read_text() == "old"
    assert point > 20


def test_a_forgotten_sync_is_found(
    tmp_path: Path, synced: Callable[[], set[Identity]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory._Way, "sync", lambda way: None)
    with pytest.raises(AssertionError):
        test_every_change_that_is_acknowledged_was_synced(tmp_path, synced)


# Errors at every call


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", crashing.SCENARIOS)
def test_an_error_at_any_system_call_is_a_refusal_and_leaves_the_old_or_the_new(
    name: str, error: int, tmp_path: Path
) -> None:
    before, act, after = crashing.SCENARIOS[name]
    refusals = 0
    for point in range(1, 200):
        root = tmp_path / str(point)
        with open_store(root) as store:
            for path, content in before.items():
                store.write(path, content)
            descriptors = len(os.listdir("/proc/self/fd"))
            with before_call(point, failing(error, "/host/path"), among=can_fail) as failed:
                try:
                    act(store)
                except Refused as refused:
                    refusals += 1
                    assert str(tmp_path) not in str(refused)
            assert len(os.listdir("/proc/self/fd")) <= descriptors + 1  # the staging folder may have been opened
            left = crashing.contents(store)
            assert left in (before, after), f"call {point}"
        with open_store(root) as reopened:
            assert crashing.contents(reopened) == left
            assert {path.name for path in root.glob(".commonplace/tmp/*")} <= {"lock"}
            reopened.write("next", "1")
        if not failed:
            break
    assert refusals > 5
