"""What every door does with a bug of ours, and what the asynchronous one does with its options and its thread."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from commonplace import AsyncMemoryTool, Memory, MemoryTool, Refused
from commonplace.anthropic import AsyncRunnableMemoryTool, RunnableMemoryTool
from commonplace.jsonlines import serve
from commonplace.stores.dict import DictStore

VIEW = {"command": "view", "path": "/memories/x"}


class BrokenStore(DictStore):
    """A store with a bug that tells where it is."""

    def read(self, path: str) -> Memory | None:
        raise RuntimeError("/host/path")


def by_answer() -> str:
    return str(MemoryTool(BrokenStore()).answer({"id": "1", "input": VIEW})["content"])


def by_async_answer() -> str:
    return str(asyncio.run(AsyncMemoryTool(BrokenStore()).answer({"id": "1", "input": VIEW}))["content"])


def by_exec() -> str:
    import io
    import json

    out = io.BytesIO()
    serve(MemoryTool(BrokenStore()), [json.dumps(VIEW).encode()], out)
    return str(json.loads(out.getvalue())["content"])


@pytest.mark.parametrize("ask", [by_answer, by_async_answer, by_exec])
def test_of_a_bug_claude_gets_an_id_and_the_log_the_traceback(
    ask: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask()
    assert answer.startswith("Error: Something went wrong inside the memory tool.")
    assert "/host" not in answer
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert answer.split()[-1] in record.getMessage()
    assert "RuntimeError: /host/path" in caplog.text


def test_a_program_that_calls_execute_gets_the_bug_itself() -> None:
    with pytest.raises(RuntimeError):
        MemoryTool(BrokenStore()).execute(VIEW)
    with pytest.raises(RuntimeError):
        asyncio.run(AsyncMemoryTool(BrokenStore()).execute(VIEW))


def test_the_asynchronous_tool_has_the_options_of_the_other() -> None:
    async def run() -> None:
        tool = AsyncMemoryTool(DictStore(), on_existing="overwrite", max_view_chars=100)
        create = {"command": "create", "path": "/memories/a"}
        await tool.execute({**create, "file_text": "one"})
        await tool.execute({**create, "file_text": "line\n" * 100})
        assert "are shown" in await tool.execute({"command": "view", "path": "/memories/a"})
        assert len(list(tool.store.list())) == 1

    asyncio.run(run())


class ThreadNoting(DictStore):
    """A store that notes in which threads it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def read(self, path: str) -> Memory | None:
        self.threads.add(threading.get_ident())
        return super().read(path)


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: AsyncMemoryTool(store).answer({"id": "1", "input": VIEW}),
        lambda store: AsyncRunnableMemoryTool(AsyncMemoryTool(store)).call({**VIEW, "path": "/memories/there"}),
    ],
    ids=["AsyncMemoryTool", "AsyncRunnableMemoryTool"],
)
def test_the_event_loop_never_waits_for_the_store(ask: Callable[[DictStore], Any]) -> None:
    store = ThreadNoting()
    store.write("there", "x")

    async def run() -> None:
        await ask(store)

    asyncio.run(run())
    assert store.threads
    assert threading.get_ident() not in store.threads


class Unlistable(DictStore):
    """A store whose system says no."""

    def list(self, below: str = "") -> Any:
        raise Refused("Error: no")


def test_clearing_says_that_it_did_or_why_it_did_not() -> None:
    assert RunnableMemoryTool(DictStore()).clear_all_memory() == "All memory cleared"
    assert asyncio.run(AsyncRunnableMemoryTool(DictStore()).clear_all_memory()) == "All memory cleared"
    from anthropic.lib.tools import ToolError

    with pytest.raises(ToolError, match="Error: no"):
        RunnableMemoryTool(Unlistable()).clear_all_memory()
    with pytest.raises(ToolError, match="Error: no"):
        asyncio.run(AsyncRunnableMemoryTool(Unlistable()).clear_all_memory())
