"""Every door gives the documented answers, word for word. The SDK's runner has a file of its own."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from commonplace import AsyncMemoryTool, MemoryTool, Refused, open_store
from commonplace.testing import ANSWERS, Step

Door = Callable[[str, Iterable[dict[str, Any]]], list[tuple[str, bool]]]
"""Runs commands against the store of this URL and returns the answers and whether they were refusals."""


def execute(url: str, commands: Iterable[dict[str, Any]]) -> list[tuple[str, bool]]:
    def run(command: dict[str, Any]) -> tuple[str, bool]:
        try:
            return tool.execute(command), False
        except Refused as refused:
            return str(refused), True

    with open_store(url) as store:
        tool = MemoryTool(store)
        return [run(command) for command in commands]


def answer(url: str, commands: Iterable[dict[str, Any]]) -> list[tuple[str, bool]]:
    with open_store(url) as store:
        tool = MemoryTool(store)
        return [_read(tool.answer(block), block) for block in _blocks(commands)]


def async_execute(url: str, commands: Iterable[dict[str, Any]]) -> list[tuple[str, bool]]:
    async def run() -> list[tuple[str, bool]]:
        results = []
        with open_store(url) as store:
            tool = AsyncMemoryTool(store)
            for command in commands:
                try:
                    results.append((await tool.execute(command), False))
                except Refused as refused:
                    results.append((str(refused), True))
        return results

    return asyncio.run(run())


def async_answer(url: str, commands: Iterable[dict[str, Any]]) -> list[tuple[str, bool]]:
    async def run() -> list[tuple[str, bool]]:
        with open_store(url) as store:
            tool = AsyncMemoryTool(store)
            return [_read(await tool.answer(block), block) for block in _blocks(commands)]

    return asyncio.run(run())


DOORS: dict[str, Door] = {
    "execute": execute,
    "answer": answer,
    "async execute": async_execute,
    "async answer": async_answer,
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("location", ["dict", "directory"])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_door_gives_the_documented_answers(door: Door, location: str, name: str, tmp_path: Path) -> None:
    steps = ANSWERS[name]
    url = "memory:" if location == "dict" else str(tmp_path / "memories")
    assert door(url, [step.command for step in steps]) == _expected(steps)


@pytest.mark.parametrize("form", ["tool_use blocks", "bare inputs"])
def test_exec_gives_the_documented_answers(form: str, tmp_path: Path) -> None:
    for number, steps in enumerate(ANSWERS.values()):
        commands = [step.command for step in steps]
        lines = commands if form == "bare inputs" else _blocks(commands)
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", "exec", "--store", str(tmp_path / str(number))],
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            check=True,
        )
        results = [json.loads(line) for line in done.stdout.splitlines()]
        assert [_read(result, line) for result, line in zip(results, lines, strict=True)] == _expected(steps)
        assert done.stderr == ""


def _blocks(commands: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}
        for number, command in enumerate(commands)
    ]


def _read(result: dict[str, Any], sent: dict[str, Any]) -> tuple[str, bool]:
    """Take a tool_result block apart, making sure that it answers what was sent and holds nothing else."""
    refused = result.get("is_error", False)
    expected = {"type": "tool_result", "tool_use_id": sent.get("id"), "content": result["content"]}
    assert result == {**expected, "is_error": True} if refused else expected
    return result["content"], refused


def _expected(steps: Iterable[Step]) -> list[tuple[str, bool]]:
    return [(step.answer, step.refused) for step in steps]
