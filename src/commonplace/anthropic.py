"""The door for the Anthropic SDK's tool runner. Needs `commonplace[anthropic]`.

    client.beta.messages.tool_runner(tools=[RunnableMemoryTool(open_store("./memories"))], ...)

Every refusal reaches the runner as a `ToolError` with the exact text, so that Claude gets it with `is_error` set; any
other exception would reach Claude as its `repr`, host paths and all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypedDict

from anthropic import BaseModel
from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818Command,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818Param,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio.to_thread import run_sync
from typing_extensions import Unpack, override

from commonplace import commands
from commonplace.aio import AsyncMemoryTool
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
        super().__init__()
        self._tool = _tool_over(tool)
        self._entry = _checked(entry)

    @override
    def to_dict(self) -> BetaMemoryTool20250818Param:
        return {**super().to_dict(), **self._entry}

    @override
    def call(self, input: object) -> BetaFunctionToolResultType:
        with _tool_errors():
            return self.execute(_command(input))

    def _run(self, command: BetaMemoryTool20250818Command) -> str:
        with _tool_errors():
            return self._tool.execute(_fields(command))

    @override
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    @override
    def clear_all_memory(self) -> str:
        with _tool_errors():
            clear(self._tool.store)
            return _CLEARED


class AsyncRunnableMemoryTool(BetaAsyncAbstractMemoryTool):
    """`RunnableMemoryTool` for the runner of `AsyncAnthropic`; each command runs in a worker thread."""

    def __init__(self, tool: MemoryTool | AsyncMemoryTool | Store, **entry: Unpack[ToolEntry]) -> None:
        super().__init__()
        self._tool = _tool_over(tool)
        self._entry = _checked(entry)

    @override
    def to_dict(self) -> BetaMemoryTool20250818Param:
        return {**super().to_dict(), **self._entry}

    @override
    async def call(self, input: object) -> BetaFunctionToolResultType:
        with _tool_errors():
            return await self.execute(_command(input))

    async def _run(self, command: BetaMemoryTool20250818Command) -> str:
        with _tool_errors():
            return await run_sync(self._tool.execute, _fields(command))

    @override
    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    @override
    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    @override
    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    @override
    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    @override
    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    @override
    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

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


def _tool_over(tool: Any) -> MemoryTool:
    if isinstance(tool, AsyncMemoryTool):
        return tool.tool
    if isinstance(tool, MemoryTool):
        return tool
    if isinstance(tool, type) or not all(hasattr(tool, name) for name in ("read", "write", "move", "delete", "list")):
        raise TypeError(f"A MemoryTool or a store is needed, not {type(tool).__name__}")
    return MemoryTool(tool)


def _checked(entry: ToolEntry) -> ToolEntry:
    if unknown := entry.keys() - ToolEntry.__annotations__.keys():
        raise TypeError(f"The tool's entry has no key {', '.join(sorted(unknown))}")
    if "input_examples" in entry:
        # One that can be read only once would be missing from the second request on.
        return {**entry, "input_examples": list(entry["input_examples"])}
    return entry


_MODELS: dict[str, type[BetaMemoryTool20250818Command]] = {
    "view": BetaMemoryTool20250818ViewCommand,
    "create": BetaMemoryTool20250818CreateCommand,
    "str_replace": BetaMemoryTool20250818StrReplaceCommand,
    "insert": BetaMemoryTool20250818InsertCommand,
    "delete": BetaMemoryTool20250818DeleteCommand,
    "rename": BetaMemoryTool20250818RenameCommand,
}


def _command(input: object) -> BetaMemoryTool20250818Command:
    """Return what Claude sent, validated, as the SDK's model of it.

    The fields are set one by one because the SDK would convert them: `true` or `" 1"` in a view_range to 1.
    """
    name, fields = commands.parse(input)
    command = _MODELS[name].construct(command=name)
    for field, value in fields.items():
        setattr(command, field, value)
    return command


def _fields(command: BaseModel) -> dict[str, object]:
    """Return the fields of the SDK's model of a command, which says nothing of their types."""
    return command.to_dict(warnings=False)
