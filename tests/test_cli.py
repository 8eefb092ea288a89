"""`commonplace exec` as a program sees it. Its answers are those of every door (test_answers.py)."""

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

COMMONPLACE = [sys.executable, "-m", "commonplace"]
VIEW = {"command": "view", "path": "/memories"}
EMPTY = "0B\t/memories"


def run_exec(
    *arguments: str, lines: bytes, cwd: Path, env: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], str, int]:
    done = subprocess.run(
        [*COMMONPLACE, "exec", *arguments], input=lines, capture_output=True, cwd=cwd, env={**os.environ, **(env or {})}
    )
    return (
        [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()],
        done.stderr.decode(),
        done.returncode,
    )


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 5000,
        b'{"command": "view", "path": "/memories"} {}',
        b"null",
        b"5",
        b'"view"',
        b"[]",
        b"{}",
        b'{"type": "tool_use"}',
        b'{"type": "tool_use", "id": "toolu_1"}',
        b'{"type": "tool_use", "id": "toolu_1", "input": "{}"}',
        b'{"type": "tool_use", "id": "\\ud800", "input": {}}',
        b'{"type": "tool_use", "id": NaN, "input": {}}',
        b'{"type": "tool_use", "id": 1e999, "input": {}}',
        '{"command": "view", "path": "/memories"}'.encode("utf-16"),
    ],
)
def test_a_line_that_is_no_command_is_answered_and_the_next_one_is_read(line: bytes, tmp_path: Path) -> None:
    results, errors, code = run_exec(lines=line + b"\n" + json.dumps(VIEW).encode(), cwd=tmp_path)
    assert (errors, code) == ("", 0)
    assert results[0]["is_error"] is True
    assert results[0]["content"].startswith("Error: ")
    assert results[1]["content"].endswith(EMPTY)
    assert len(results) == 2


def test_a_bare_input_may_have_a_field_called_input(tmp_path: Path) -> None:
    results, _, _ = run_exec(lines=json.dumps({**VIEW, "input": {"command": "bogus"}}).encode(), cwd=tmp_path)
    assert results[0]["content"].endswith(EMPTY)


def test_empty_lines_are_passed_over_and_the_last_line_needs_no_end(tmp_path: Path) -> None:
    results, _, code = run_exec(lines=b"\n  \n\r\n" + json.dumps(VIEW).encode(), cwd=tmp_path)
    assert (len(results), code) == (1, 0)


def test_every_answer_is_one_line_of_ascii_whatever_the_memory_holds(tmp_path: Path) -> None:
    text = "\u2028\x0b\x0c\x85\r🫖\x1b[31m"
    lines = [
        {"command": "create", "path": "/memories/a", "file_text": text},
        {"command": "view", "path": "/memories/a"},
    ]
    done = subprocess.run(
        [*COMMONPLACE, "exec"], input="\n".join(map(json.dumps, lines)).encode(), capture_output=True, cwd=tmp_path
    )
    assert done.stdout.isascii()
    assert json.loads(done.stdout.split(b"\n")[1])["content"].endswith(text)


def test_a_program_may_wait_for_each_answer_before_it_asks_on(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*COMMONPLACE, "exec"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environment
    ) as door:
        assert door.stdin is not None
        assert door.stdout is not None
        for number in range(3):
            door.stdin.write(json.dumps({"type": "tool_use", "id": str(number), "input": VIEW}).encode() + b"\n")
            door.stdin.flush()
            assert json.loads(door.stdout.readline())["tool_use_id"] == str(number)


def test_the_store_is_the_option_else_the_environment_else_memories(tmp_path: Path) -> None:
    create = json.dumps({"command": "create", "path": "/memories/x", "file_text": "x"}).encode()
    environment = {"COMMONPLACE_STORE": "by-environment"}
    run_exec("--store", "by-option", lines=create, cwd=tmp_path, env=environment)
    run_exec(lines=create, cwd=tmp_path, env=environment)
    run_exec(lines=create, cwd=tmp_path)
    assert {path.parent.name for path in tmp_path.rglob("x")} == {"by-option", "by-environment", "memories"}


@pytest.mark.parametrize(
    ("store", "words"), [("redis://x", "There are memory:, file: and plain paths"), ("file", "cannot open the store")]
)
def test_a_store_that_cannot_be_opened_is_one_clear_line_and_exit_code_1(
    store: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    results, errors, code = run_exec("--store", store, lines=b"", cwd=tmp_path)
    assert (results, code, errors.count("\n")) == ([], 1, 1)
    assert words in errors


def test_the_version_is_told() -> None:
    told = subprocess.run([*COMMONPLACE, "--version"], capture_output=True, text=True)
    assert (told.stdout, told.returncode) == (f"commonplace {version('commonplace')}\n", 0)


def test_what_cannot_be_written_out_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMONPLACE, "exec"], input=json.dumps(VIEW).encode(), stdout=full, stderr=subprocess.PIPE, cwd=tmp_path
        )
    assert done.returncode == 1
    assert done.stderr == b"commonplace: [Errno 28] No space left on device\n"


def test_wrong_usage_is_exit_code_2(tmp_path: Path) -> None:
    assert run_exec("--nonsense", lines=b"", cwd=tmp_path)[2] == 2
    assert subprocess.run(COMMONPLACE, capture_output=True).returncode == 2


def listen_to_interrupts() -> None:
    """In a shell's background, where the tests may run, a child would be born deaf to them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_ends_it_quietly_with_exit_code_130(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMONPLACE, "exec"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=listen_to_interrupts,
    ) as door:
        assert door.stdin is not None
        assert door.stdout is not None
        assert door.stderr is not None
        door.stdin.write(json.dumps(VIEW).encode() + b"\n")
        door.stdin.flush()
        door.stdout.readline()
        door.send_signal(signal.SIGINT)
        assert door.wait() == 130
        assert door.stderr.read() == b""


def test_when_nobody_reads_the_answers_any_more_it_ends_quietly(tmp_path: Path) -> None:
    door = subprocess.Popen(
        [*COMMONPLACE, "exec"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert door.stdout is not None
    door.stdout.close()
    _, errors = door.communicate((json.dumps(VIEW) + "\n").encode() * 10)
    assert (door.returncode, errors) == (1, b"")


def test_help_shows_an_example_and_has_no_colours_in_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run([*COMMONPLACE, "exec", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "commonplace exec" in done.stdout
    assert "COMMONPLACE_STORE" in done.stdout
    assert "\x1b" not in done.stdout


def test_without_its_libraries_the_command_line_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['commonplace']\n"
        "from commonplace.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "commonplace: the command line is an extra. Install it with: pip install 'commonplace[cli]'\n"
    )
