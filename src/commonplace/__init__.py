"""Memory for Claude that you keep.

Claude's memory tool asks the caller's program to store its notes. This is that program's other half:

>>> from commonplace import MemoryTool, open_store
>>> tool = MemoryTool(open_store("memory:"))
>>> print(tool.execute({"command": "create", "path": "/memories/tea.md", "file_text": "no sugar"}))
File created successfully at: /memories/tea.md
"""

from typing import TYPE_CHECKING, Any

from commonplace.errors import Conflict, Refused
from commonplace.open import open_store
from commonplace.store import Entry, Memory, Store
from commonplace.tool import MemoryTool

if TYPE_CHECKING:
    from commonplace.aio import AsyncMemoryTool

__all__ = ["AsyncMemoryTool", "Conflict", "Entry", "Memory", "MemoryTool", "Refused", "Store", "open_store"]


def __getattr__(name: str) -> Any:
    # Imported when asked for: asyncio takes longer to load than all the rest.
    if name == "AsyncMemoryTool":
        from commonplace.aio import AsyncMemoryTool

        return AsyncMemoryTool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
