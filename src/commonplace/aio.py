"""The memory tool for asyncio programs."""

import asyncio
from collections.abc import Mapping
from typing import Any, Unpack

from commonplace.store import Store
from commonplace.tool import MemoryTool, Options


class AsyncMemoryTool:
    """`MemoryTool` with the same options (`on_existing`, `max_view_chars`, `patience`), each command in a worker thread.

    Cancelling a call stops the waiting and not the command: one that has begun is done whole or refused whole.
    """

    def __init__(self, store: Store, **options: Unpack[Options]) -> None:
        self.tool = MemoryTool(store, **options)

    @property
    def store(self) -> Store:
        return self.tool.store

    async def execute(self, command: Mapping[str, Any]) -> str:
        """Do what `MemoryTool.execute` does. Raises Refused."""
        return await asyncio.to_thread(self.tool.execute, command)

    async def answer(self, tool_use: Any) -> dict[str, Any]:
        """Do what `MemoryTool.answer` does. Never raises for what the block holds."""
        return await asyncio.to_thread(self.tool.answer, tool_use)
