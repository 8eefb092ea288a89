"""`make demo`: a shipped conversation, its tool calls played through `commonplace exec` onto a real folder."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from commonplace.open import open_store

console = Console(highlight=False)


def main(folder: Path) -> None:
    """Play the conversation into an empty folder; show every call, every answer, and what is on the disk afterwards."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Name a new folder to play the demo into")
    arguments = ["-m", "commonplace", "exec", "--store", str(folder)]
    say("note", f"Every call below goes, as Claude sends it, into: commonplace exec --store {folder}")
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as door:
        for line in files("commonplace").joinpath("demo.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("type") == "tool_use":
                show_call(entry["input"])
                show_answer(ask(door, line))
            else:
                say(entry["who"], entry["text"])
    say("note", f"The conversation is over. This is on your disk now, in {folder}, for any editor:")
    show_memories(folder)


def ask(door: "subprocess.Popen[str]", line: str) -> dict[str, Any]:
    """Send one line to the running `commonplace exec` and return the tool_result block it answers with."""
    assert door.stdin is not None
    assert door.stdout is not None
    door.stdin.write(line + "\n")
    door.stdin.flush()
    answer: dict[str, Any] = json.loads(door.stdout.readline())
    return answer


def say(who: str, text: str) -> None:
    """Show what the user, Claude, or the narrator says."""
    speech = Text.assemble((f"{who}: ", "bold cyan" if who == "Claude" else "bold"), text)
    console.print()
    console.print(Text(text, "dim italic") if who == "note" else speech)


def show_call(command: dict[str, Any]) -> None:
    """Show a call on one line: the command, its paths, and the beginning of each text."""
    shown = Text.assemble("  → ", (command["command"], "bold yellow"))
    for field, value in command.items():
        if field.endswith("path"):
            shown.append(f" {value}")
        elif field != "command":
            text = json.dumps(value, ensure_ascii=False)
            shown.append(f" {field}=", "dim").append(text if len(text) <= 48 else f"{text[:47]}…")
    console.print(shown, soft_wrap=True)


def show_answer(result: dict[str, Any]) -> None:
    """Show an answer as Claude gets it; a refusal is marked as one."""
    refused = result.get("is_error", False)
    for number, line in enumerate(result["content"].split("\n")):
        mark = ("  ✗ " if refused else "  ← ") if number == 0 else "    "
        console.print(Text(mark + line, "red" if refused else "green"), soft_wrap=True)


def show_memories(folder: Path) -> None:
    """Show each memory with its text."""
    with open_store(folder) as store:
        for entry in store.list():
            memory = store.read(entry.path)
            console.print(Text(f"\n  {folder / entry.path}", "bold"))
            for line in memory.content.removesuffix("\n").split("\n") if memory else ():
                console.print(Text(f"  │ {line}"), soft_wrap=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-memories"))
