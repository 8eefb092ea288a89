"""`commonplace demo`: conversations in which Claude remembers, with every call and every answer as they happen.

The SDK, its HTTP and the memories on the disk are real. The model is scripted, unless a real one is asked for.
"""

import json
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

from anthropic import Anthropic
from anthropic.lib.tools import BetaFunctionToolResultType, ToolError
from rich.rule import Rule
from rich.text import Text

from commonplace import terminal
from commonplace.anthropic import RunnableMemoryTool
from commonplace.open import open_store
from commonplace.testing import ScriptedClaude, Turn

out = terminal.console()


class ShownMemoryTool(RunnableMemoryTool):
    """A memory tool at work behind glass: each call and its answer are shown."""

    def call(self, input: object) -> BetaFunctionToolResultType:
        show_call(input)
        try:
            answer = super().call(input)
        except ToolError as refused:
            show_answer(str(refused), "  ✗ ", "red")
            raise
        show_answer(str(answer), "  ← ", "green")
        return answer


def play(folder: Path, model: str | None = None) -> None:
    """Hold the conversations with this model of the Claude API, or None: with the scripted one; then show the memories.

    They go into `folder` and stay there.
    """
    parts = json.loads(files("commonplace").joinpath("demo.json").read_text(encoding="utf-8"))
    with ExitStack() as stack:
        store = stack.enter_context(open_store(folder))
        if model is None:
            claude = stack.enter_context(ScriptedClaude(_scripts(parts)))
            client = stack.enter_context(Anthropic(base_url=claude.url, api_key="none is needed"))
        else:
            client = stack.enter_context(Anthropic())
        tool = ShownMemoryTool(store)
        for part in parts:
            out.print()
            out.print(Rule(Text(part["title"], "bold"), align="left") if out.is_terminal else f"== {part['title']}")
            for conversation in part["conversations"]:
                hold(client, model or "scripted", tool, conversation)
        out.print()
        out.print(Text(f"All over. This is in {folder} now, for you to read and edit:\n", "italic"))
        out.print(terminal.tree("", list(store.list()), out.width))
    out.print(f"\nLook inside:  commonplace view projects/catalogue/progress.md --store {folder}")
    if model is None:
        out.print("With the real Claude:  ANTHROPIC_API_KEY=... commonplace demo another-folder --live")


def hold(client: Anthropic, model: str, tool: RunnableMemoryTool, conversation: dict[str, Any]) -> None:
    """Hold one conversation, from an empty context to the model's last word."""
    out.print()
    out.print(Text(conversation["when"], "italic"))
    say("You", conversation["user"])
    runner = client.beta.messages.tool_runner(
        model=model,
        max_tokens=2048,
        tools=[tool],
        messages=[{"role": "user", "content": conversation["user"]}],
    )
    for message in runner:
        for block in message.content:
            if block.type == "text":
                say("Claude", block.text)


def say(who: str, words: str) -> None:
    """Show what somebody says."""
    out.print()
    out.print(Text.assemble((f"{who}: ", "bold cyan" if who == "Claude" else "bold"), terminal.harmless(words)))


def show_call(command: object) -> None:
    """Show a call on one line: the command, its paths, and the beginning of each text."""
    fields = command if isinstance(command, dict) else {"command": command}
    line = Text.assemble("  → ", (terminal.harmless(str(fields.get("command"))), "bold yellow"))
    for field, value in fields.items():
        if field.endswith("path"):
            line.append(f" {terminal.harmless(str(value))}")
        elif field != "command":
            written = json.dumps(value, ensure_ascii=False)
            line.append(f" {field}=", "dim").append(terminal.harmless(written[:47] + "…" * (len(written) > 47)))
    out.print(line)


def show_answer(answer: str, mark: str, style: str) -> None:
    """Show an answer as Claude gets it."""
    for line in answer.split("\n"):
        out.print(Text(mark + terminal.harmless(line).expandtabs(), style))
        mark = "    "


def _scripts(parts: list[dict[str, Any]]) -> dict[str, list[Turn]]:
    return {
        conversation["user"]: [Turn(turn["say"], turn["uses"]) for turn in conversation["turns"]]
        for part in parts
        for conversation in part["conversations"]
    }
