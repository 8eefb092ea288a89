"""The command line as a person uses it: at a terminal, in a pipe, with an editor, and in haste."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from commonplace import open_store
from commonplace.terminal import harmless
from test_cli import listen_to_interrupts

COMMONPLACE = [sys.executable, "-m", "commonplace"]
EVIL = "a\x1b[31mred\x1b]52;c;aGk=\x07\r\x08\x9b31m\u202eright\u2066\U000e0041\u200b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store in ./memories."""
    with open_store(tmp_path / "memories") as store:
        store.write("tea.md", "Ann: milk\nBo: lemon\n")
        store.write("notes/old/a.md", "x" * 2048)
        store.write("notes/日本語🫖.md", "wide")
        store.write("evil.md", EVIL)
    return tmp_path


def run(folder: Path, *arguments: str, text: bytes | None = None, **environment: Any) -> tuple[str, str, int]:
    """Run a command in pipes; return what it printed, what it complained of, and its exit code."""
    done = subprocess.run(
        [*COMMONPLACE, *arguments],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.stdout.decode(), done.stderr.decode(), done.returncode


def at_terminal(folder: Path, *arguments: str, columns: int = 80, typed: bytes = b"", **environment: str) -> str:
    """Run a command at a terminal of this width and return all that appears there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "CI")}
    with subprocess.Popen(
        [*COMMONPLACE, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**variables, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    ):
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # nobody is at the other end any more
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert b"Traceback" not in shown
    return shown.decode().replace("\r\n", "\n")


def without_colours(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


def content(folder: Path, path: str) -> str:
    return (folder / "memories" / path).read_bytes().decode()


# The six commands


def test_the_six_commands_do_what_they_do_for_claude(folder: Path) -> None:
    assert run(folder, "view", "tea.md")[0] == (
        "Here's the content of /memories/tea.md with line numbers:\n     1\tAnn: milk\n     2\tBo: lemon\n"
    )
    assert run(folder, "view", "/memories/tea.md", "--lines", "2", "-1")[0].endswith(":\n     2\tBo: lemon\n")
    assert (
        run(folder, "create", "new/x.md", text="é\r\n".encode())[0]
        == "File created successfully at: /memories/new/x.md\n"
    )
    assert content(folder, "new/x.md") == "é\r\n"
    assert run(folder, "create", "y.md", "--text", "y")[2] == 0
    assert run(folder, "str-replace", "tea.md", "milk", "oat milk")[0].startswith("The memory file has been edited.\n")
    assert run(folder, "str-replace", "tea.md", "oat ")[2] == 0
    assert run(folder, "insert", "tea.md", "0", text=b"Tea")[0] == "The file /memories/tea.md has been edited.\n"
    assert content(folder, "tea.md") == "Tea\nAnn: milk\nBo: lemon\n"
    assert run(folder, "rename", "tea.md", "drinks/tea.md")[2] == 0
    assert run(folder, "delete", "notes")[0] == "Successfully deleted /memories/notes\n"
    assert sorted(path.name for path in (folder / "memories").iterdir()) == [
        ".commonplace",
        "drinks",
        "evil.md",
        "new",
        "y.md",
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["view", "nope"], "The path /memories/nope does not exist. Please provide a valid path."),
        (["view", "nope", "--raw"], "The path /memories/nope does not exist. Please provide a valid path."),
        (["view", "notes", "--raw"], "The path /memories/notes does not exist. Please provide a valid path."),
        (["create", "tea.md", "--text", ""], "Error: File /memories/tea.md already exists"),
        (["str-replace", "tea.md", ":", ""], "No replacement was performed. Multiple occurrences of old_str `:` in lines: 1, 2. Please ensure it is unique"),
        (["insert", "tea.md", "9", "--text", "x"], "Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 2]"),
        (["delete", "/memories"], "Cannot delete the /memories directory itself"),
        (["rename", "tea.md", "evil.md"], "Error: The destination /memories/evil.md already exists"),
        (["tree", "nope"], "The path /memories/nope does not exist. Please provide a valid path."),
        (["edit", "/memories"], "Error: File /memories already exists"),
        (["view", "/etc/passwd"], "Error: The path /etc/passwd is not allowed: every path must be /memories or start with /memories/"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_complaint_and_exit_code_1(folder: Path, arguments: list[str], sentence: str) -> None:
    assert run(folder, *arguments) == ("", sentence + "\n", 1)
    if "--raw" not in arguments and arguments[0] != "edit":
        printed, complaints, code = run(folder, *arguments, "--json")
        assert (json.loads(printed), complaints, code) == ({"error": sentence}, "", 1)


def test_create_overwrites_only_when_told_to(folder: Path) -> None:
    assert run(folder, "create", "tea.md", "--overwrite", "--text", "new")[2] == 0
    assert content(folder, "tea.md") == "new"


def test_programs_get_json_and_the_raw_text_is_exact(folder: Path) -> None:
    assert run(folder, "view", "evil.md", "--raw")[0] == EVIL
    memory = json.loads(run(folder, "view", "tea.md", "--json")[0])
    assert (memory["path"], memory["size"], memory["content"]) == ("/memories/tea.md", 20, "Ann: milk\nBo: lemon\n")
    assert {"updated_at", "content_sha256", "revision"} < memory.keys()
    entries = json.loads(run(folder, "tree", "notes", "--json")[0])
    assert [entry["path"] for entry in entries] == ["/memories/notes/old/a.md", "/memories/notes/日本語🫖.md"]
    assert json.loads(run(folder, "view", "--json")[0]) == json.loads(run(folder, "tree", "--json")[0])
    assert json.loads(run(folder, "delete", "tea.md", "--json")[0]) == {
        "answer": "Successfully deleted /memories/tea.md"
    }


def test_bytes_that_are_no_text_are_refused_before_anything_is_made(folder: Path) -> None:
    printed, complaints, code = run(folder, "create", "x.md", text=b"\xff")
    assert (printed, code) == ("", 1)
    assert "bytes that are not UTF-8" in complaints
    assert not (folder / "memories" / "x.md").exists()


def test_deleting_a_directory_at_a_terminal_asks_first(folder: Path) -> None:
    assert "Delete 2 memories below /memories/notes?" in at_terminal(folder, "delete", "notes", typed=b"n\n")
    assert (folder / "memories" / "notes").exists()
    assert "Successfully deleted" in at_terminal(folder, "delete", "notes", typed=b"y\n")
    assert not (folder / "memories" / "notes").exists()
    assert "?" not in at_terminal(folder, "delete", "tea.md")


# What a terminal shows


@pytest.mark.parametrize("command", [["view", "evil.md"], ["view"], ["tree"], ["view", "evil.md", "--lines", "1", "1"]])
def test_nothing_in_a_memory_can_steer_the_terminal(folder: Path, command: list[str]) -> None:
    (folder / "memories" / "name\x1b[31m\u202e\r.md").write_text("x")
    shown = without_colours(at_terminal(folder, *command))
    assert harmless(shown) == shown
    if command[0] == "tree":
        assert "name^[[31m<U+202E>^M.md" in shown
    if "evil.md" in command:
        assert "a^[[31mred^[]52;c;aGk=^G^M^H<U+009B>31m<U+202E>right<U+2066><U+E0041><U+200B>" in shown


def test_harmless_text_is_shown_as_it_is() -> None:
    for text in ("plain", "tab\tand\nnewline", "日本語 🫖 e\u0301 👩\u200d🚀", "עברית العربية"):
        assert harmless(text) == text


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_columns_of_a_tree_line_up_whatever_the_width(folder: Path, columns: int) -> None:
    with open_store(folder / "memories") as store:
        store.write("a-very-long-name-" * 10 + ".md", "x")
        store.write("deep/" * 12 + "日本語日本語日本語日本語.md", "x")
    lines = without_colours(at_terminal(folder, "tree", columns=columns)).splitlines()
    assert max(map(cell_len, lines)) <= columns
    ends = {cell_len(line[: match.end()]) for line in lines if (match := re.search(r" [0-9.]+[BKMG](?= )", line))}
    assert len(ends) == 1
    assert all(re.search(r"[0-9.]+[BKMG]\b", line) for line in lines)


def test_a_tree_in_a_pipe_has_no_colours_and_whole_names(folder: Path) -> None:
    name = "a-very-long-name-" * 10 + ".md"
    (folder / "memories" / name).write_text("x")
    printed, _, _ = run(folder, "tree", COLUMNS="40")
    assert "\x1b" not in printed
    assert name in printed
    assert "└─ tea.md" in printed


def test_colours_can_be_turned_off(folder: Path) -> None:
    assert "\x1b[" in at_terminal(folder, "tree")
    assert "\x1b[" not in at_terminal(folder, "tree", NO_COLOR="1", TERM="dumb")


def test_help_has_an_example_for_every_command() -> None:
    listed = subprocess.run([*COMMONPLACE, "--help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^│ ([a-z][a-z-]*) ", listed, re.MULTILINE)
    assert {"view", "create", "str-replace", "insert", "delete", "rename", "tree", "edit", "doctor", "exec"} < {
        *commands
    }
    for command in commands:
        shown = subprocess.run([*COMMONPLACE, command, "--help"], capture_output=True, text=True).stdout
        assert "Example" in shown, command
        assert f"commonplace {command}" in shown


def test_the_shell_can_complete_paths(folder: Path) -> None:
    def completed(line: str) -> list[str]:
        variables: dict[str, Any] = {
            "_COMMONPLACE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        return run(folder, **variables)[0].split()

    assert completed("commonplace view t") == ["tea.md"]
    assert completed("commonplace view notes/") == ["notes/old/", "notes/日本語🫖.md"]
    assert completed("commonplace delete x") == []


# The editor


def editor(folder: Path, script: str) -> dict[str, Any]:
    """An editor that is a program: it finds the file's path in sys.argv[1]."""
    (folder / "editor.py").write_text(script)
    return {"EDITOR": f"{sys.executable} {folder / 'editor.py'}", "VISUAL": ""}


APPEND = "import sys; open(sys.argv[1], 'a', newline='').write('Cy: honey\\r\\n')"


def test_edit_saves_what_the_editor_wrote_byte_for_byte(folder: Path) -> None:
    assert run(folder, "edit", "tea.md", **editor(folder, APPEND)) == ("Saved /memories/tea.md\n", "", 0)
    assert content(folder, "tea.md") == "Ann: milk\nBo: lemon\nCy: honey\r\n"
    assert run(folder, "edit", "new/note.md", **editor(folder, APPEND))[2] == 0
    assert content(folder, "new/note.md") == "Cy: honey\r\n"


def test_edit_changes_nothing_where_the_editor_changed_nothing(folder: Path) -> None:
    before = (folder / "memories" / "tea.md").stat()
    assert run(folder, "edit", "tea.md", **editor(folder, "")) == ("Nothing was changed\n", "", 0)
    assert (folder / "memories" / "tea.md").stat().st_ino == before.st_ino


def test_edit_shows_a_conflict_and_keeps_both_texts(folder: Path) -> None:
    interfere = f"open({str(folder / 'memories' / 'tea.md')!r}, 'w').write('by Claude\\n')\n"
    printed, complaints, code = run(folder, "edit", "tea.md", **editor(folder, APPEND + "\n" + interfere))
    assert (printed, code) == ("", 3)
    assert "Somebody changed this while you were editing" in complaints
    assert "-by Claude" in complaints
    assert "+Ann: milk" in complaints
    kept = re.search(r"Your text is in (.+)", complaints)
    assert kept is not None
    assert Path(kept[1]).read_bytes() == b"Ann: milk\nBo: lemon\nCy: honey\r\n"
    assert content(folder, "tea.md") == "by Claude\n"


def test_edit_of_a_new_memory_that_somebody_else_made_meanwhile_is_a_conflict(folder: Path) -> None:
    interfere = f"open({str(folder / 'memories' / 'new.md')!r}, 'w').write('by Claude\\n')\n"
    assert run(folder, "edit", "new.md", **editor(folder, APPEND + "\n" + interfere))[2] == 3
    assert content(folder, "new.md") == "by Claude\n"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("raise SystemExit(7)", "The editor ended with exit code 7, so nothing was saved"),
        ("import sys; open(sys.argv[1], 'wb').write(b'\\xff')", "The text is not UTF-8 any more, so nothing was saved"),
        ("import sys; open(sys.argv[1], 'wb').write(b'a\\0b')", "holds a NUL character"),
    ],
)
def test_edit_saves_nothing_that_went_wrong_and_says_where_the_text_is(
    folder: Path, script: str, complaint: str
) -> None:
    printed, complaints, code = run(folder, "edit", "tea.md", **editor(folder, script))
    assert (printed, code) == ("", 1)
    assert complaint in complaints
    kept = re.search(r"in (\S+tea\.md)", complaints)
    assert kept is not None
    assert Path(kept[1]).exists()
    assert content(folder, "tea.md") == "Ann: milk\nBo: lemon\n"


def test_edit_without_an_editor_says_what_to_set(folder: Path) -> None:
    printed, complaints, code = run(folder, "edit", "tea.md", EDITOR="no-such-editor", VISUAL="")
    assert (printed, code) == ("", 1)
    assert "Set $EDITOR" in complaints


def test_an_interrupt_in_the_editor_is_the_editors(folder: Path) -> None:
    script = "import os, signal; os.kill(os.getppid(), signal.SIGINT)\n" + APPEND
    assert run(folder, "edit", "tea.md", **editor(folder, script))[2] == 0
    assert content(folder, "tea.md").endswith("Cy: honey\r\n")


# Stores that are not there, not writable, not ours


@pytest.mark.parametrize(
    "command", [["view"], ["tree"], ["view", "x", "--json"], ["delete", "x"], ["rename", "x", "y"]]
)
def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path, command: list[str]) -> None:
    printed, complaints, code = run(tmp_path, *command, "--store", "nope")
    assert (printed, code) == ("", 1)
    assert complaints == (
        "There is no store at nope yet. The first memory makes it: commonplace create --store nope PATH\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    _, complaints, code = run(tmp_path, "tree", "--store", "file")
    assert code == 1
    assert "cannot open the store 'file'" in complaints


def test_an_interrupt_while_a_text_is_typed_makes_nothing(folder: Path) -> None:
    with subprocess.Popen(
        [*COMMONPLACE, "create", "x.md"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        preexec_fn=listen_to_interrupts,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"half a")
        process.stdin.flush()
        wait_until(lambda: is_reading(process.pid))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not (folder / "memories" / "x.md").exists()


def is_reading(pid: int) -> bool:
    """Tell whether a process sleeps in a read, as far as the system tells."""
    wait = Path(f"/proc/{pid}/wchan")
    return wait.exists() and "pipe_read" in wait.read_text()


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        os.sched_yield()


# The doctor


def findings(folder: Path, *arguments: str) -> dict[str, Any]:
    return {
        finding["promise"]: finding["holds"] for finding in json.loads(run(folder, "doctor", "--json", *arguments)[0])
    }


def test_the_doctor_tries_every_promise_and_leaves_nothing_behind(folder: Path) -> None:
    found = findings(folder)
    tried = {promise for promise, holds in found.items() if holds}
    assert {"no edit is lost between processes", "a rename never overwrites", "content is kept byte for byte"} <= tried
    assert [promise for promise, holds in found.items() if holds is False] == []
    assert {path.name for path in (folder / "memories" / ".commonplace").iterdir()} == {"tmp"}
    printed, _, code = run(folder, "doctor")
    assert code == 0
    assert " yes  no edit is lost between processes" in printed


def test_the_doctor_says_what_does_not_hold(folder: Path) -> None:
    (folder / "memories").chmod(0o755)
    printed, _, code = run(folder, "doctor")
    assert code == 1
    assert "  NO  others on this machine cannot look in  the folder's mode is 0755" in printed


def test_the_doctor_of_a_store_in_memory(folder: Path) -> None:
    found = findings(folder, "--store", "memory:")
    assert found["no edit is lost between processes"] is None
    assert False not in found.values()


# The demo


def test_the_demo_shows_two_conversations_that_share_a_memory_and_leaves_it(tmp_path: Path) -> None:
    printed, complaints, code = run(tmp_path, "demo", "notes")
    assert (complaints, code) == ("", 0)
    assert "\x1b" not in printed
    assert "✗ No replacement was performed. Multiple occurrences of old_str `Unused` in lines: 2, 3." in printed
    assert "Claude: The prices are in Euros and moved." in printed
    assert "commonplace demo another-folder --live" in printed
    progress = (tmp_path / "notes" / "projects" / "catalogue" / "progress.md").read_text()
    assert "- Moved prices.csv. Euros count, as decided by the owner\n" in progress
    assert "90 days: store credit" in (tmp_path / "notes" / "refund_policies.xml").read_text()


def test_the_demo_never_plays_over_what_is_there_and_wants_a_key_to_be_live(folder: Path) -> None:
    assert run(folder, "demo", "memories") == (
        "",
        "memories is not empty. Name a new folder to play the demo into\n",
        1,
    )
    _, complaints, code = run(folder, "demo", "new", "--live", ANTHROPIC_API_KEY="")
    assert code == 1
    assert "--live needs a key" in complaints
    assert not (folder / "new").exists()


def test_the_demo_is_coloured_at_a_terminal_and_fits_it(tmp_path: Path) -> None:
    shown = at_terminal(tmp_path, "demo", "notes", columns=60)
    assert "\x1b[" in shown
    assert max(map(cell_len, without_colours(shown).splitlines())) <= 60
