"""The door for every other language: a command per line of JSON in, a tool_result per line of JSON out."""

import json
from collections.abc import Iterable
from typing import Any, BinaryIO

from commonplace import messages
from commonplace.tool import MemoryTool


def serve(tool: MemoryTool, lines: Iterable[bytes], out: BinaryIO) -> None:
    """Answer each line with one line, in order, until the lines end.

    A line is a tool_use block, or its bare `input`, as a JSON object in UTF-8; a bare input is answered with the
    `tool_use_id` null. What is neither is answered with `is_error` set, and the next line is read. Empty lines are
    passed over. Answers are ASCII, so no reader can mistake a line separator in a text for the end of a line.
    """
    for line in lines:
        if line.strip():
            out.write(_as_line(_answer(tool, line)))
            out.flush()


def _answer(tool: MemoryTool, line: bytes) -> dict[str, Any]:
    try:
        received = json.loads(line.decode())
    except (ValueError, RecursionError):
        return {"type": "tool_result", "tool_use_id": None, "content": messages.LINE_NOT_JSON, "is_error": True}
    if isinstance(received, dict) and received.get("type") == "tool_use":
        return tool.answer(received)
    return tool.answer({"id": None, "input": received})


def _as_line(result: dict[str, Any]) -> bytes:
    try:
        line = json.dumps(result, allow_nan=False)
    except ValueError:
        # Python reads NaN and 1e999 as numbers, but JSON has no way to send such an id back.
        line = json.dumps({**result, "tool_use_id": None})
    return line.encode() + b"\n"
