"""The door for the Anthropic SDK's tool runner. Needs `commonplace[anthropic]`.

    client.beta.messages.tool_runner(tools=[RunnableMemoryTool(open_store("./memories"))], ...)

Every refusal reaches the runner as a `ToolError` with the exact text, so that Claude gets it with `is_error` set; any
other exception would reach Claude as its `repr`, host paths and all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypedDict, cast

from anthropic import BaseModel
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_functions import BetaFunctionToolResultType
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818Command,
    BetaMemoryTool20250818Param,
)
from anyio.to_thread import run_sync
from typing_extensions import Unpack, override

from commonplace import commands
from commonplace.errors import Refused, internal
from commonplace.store import Store, clear
from commonplace.tool import MemoryTool

_CLEARED = "All memory cleared"


class ToolEntry(TypedDict, total=False):
    """The optional keys of the tool's entry in a request, sent to the API as they are given."""

    cache_control: BetaCacheControlEphemeralParam | None
    allowed_callers: list[
        Literal["direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"]
    ]
    defer_loading: bool
    input_examples: Iterable[dict[str, object]]
    strict: bool


class RunnableMemoryTool(BetaAbstractMemoryTool):
    """A memory tool, or a store, as one of the `tools` of `client.beta.messages.tool_runner`.

    What Claude sent is validated before one of the six methods is called, so a subclass that overrides one may rely on
    the documented fields. Keywords are the documented optional keys of the tool's entry: `cache_control`,
    `allowed_callers`, `defer_loading`, `input_examples` and `strict`.
    """

    def __init__(self, tool: MemoryTool | Store, **entry: Unpack[ToolEntry]) -> None:
        super().__init__(cache_control=entry.get("cache_control"))
        self._tool = _tool_over(tool)
        self._entry = entry

    @override
    def to_dict(self) -> BetaMemoryTool20250818Param:
        return _with_entry(super().to_dict(), self._entry)

    @override
    def call(self, input: object) -> BetaFunctionToolResultType:
        with _tool_errors():
            name, fields = commands.parse(input)
            return super().call({"command": name, **fields})

    def _run(self, command: BetaMemoryTool20250818Command) -> str:
        with _tool_errors():
            return self._tool.execute(_fields(command))

    view = create = str_replace = insert = delete = rename = _run

    @override
    def clear_all_memory(self) -> str:
        with _tool_errors():
            clear(self._tool.store)
            return _CLEARED


class AsyncRunnableMemoryTool(BetaAsyncAbstractMemoryTool):
    """`RunnableMemoryTool` for the runner of `AsyncAnthropic`; each command runs in a worker thread."""

    def __init__(self, tool: MemoryTool | Store, **entry: Unpack[ToolEntry]) -> None:
        super().__init__(cache_control=entry.get("cache_control"))
        self._tool = _tool_over(tool)
        self._entry = entry

    @override
    def to_dict(self) -> BetaMemoryTool20250818Param:
        return _with_entry(super().to_dict(), self._entry)

    @override
    async def call(self, input: object) -> BetaFunctionToolResultType:
        with _tool_errors():
            name, fields = commands.parse(input)
            return await super().call({"command": name, **fields})

    async def _run(self, command: BetaMemoryTool20250818Command) -> str:
        with _tool_errors():
            return await run_sync(self._tool.execute, _fields(command))

    view = create = str_replace = insert = delete = rename = _run

    @override
    async def clear_all_memory(self) -> str:
        with _tool_errors():
            await run_sync(clear, self._tool.store)
            return _CLEARED


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Turn what goes wrong into the SDK's ToolError, whose text reaches Claude as it is."""
    try:
        yield
    except Refused as refused:
        raise ToolError(str(refused)) from refused
    except ToolError:
        raise
    except Exception as error:
        raise ToolError(internal(error)) from error


def _tool_over(tool: MemoryTool | Store) -> MemoryTool:
    if isinstance(tool, MemoryTool):
        return tool
    if not hasattr(tool, "read"):
        raise TypeError(f"A MemoryTool or a store is needed, not {type(tool).__name__}")
    return MemoryTool(tool)


def _with_entry(param: BetaMemoryTool20250818Param, entry: ToolEntry) -> BetaMemoryTool20250818Param:
    return cast(BetaMemoryTool20250818Param, {**param, **entry})


def _fields(command: BaseModel) -> dict[str, object]:
    """Return what Claude sent from the SDK's model of it, which is built without validation."""
    return command.to_dict(warnings=False)
