"""The SDK's own tool runner over a real socket: what reaches Claude is what the documentation says, in every mode."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaFunctionToolResultType, ToolError
from anthropic.types.beta import BetaMemoryTool20250818DeleteCommand, BetaMessage

from commonplace import Memory, MemoryTool, Store, open_store
from commonplace.anthropic import AsyncRunnableMemoryTool, RunnableMemoryTool
from commonplace.stores.dict import DictStore
from commonplace.testing import ANSWERS
from commonplace.testing.scripted_claude import JSON, Failure, Line, ScriptedClaude, Turn

HELLO = "Hello"
NOTES = "/memories/notes.md"
COMMANDS = "view, create, str_replace, insert, delete, rename"

Runnable = RunnableMemoryTool | AsyncRunnableMemoryTool
Options = dict[str, Any]


def talk(claude: ScriptedClaude, tool: Runnable, first: str = HELLO, **options: Any) -> str:
    """Let the SDK's runner hold the conversation that begins with these words, and return the model's last ones."""
    if isinstance(tool, AsyncRunnableMemoryTool):
        return asyncio.run(talk_async(claude, tool, first, **options))
    with Anthropic(base_url=claude.url, api_key="x") as client:
        return _text(client.beta.messages.tool_runner(tools=[tool], **_arguments(first, options)).until_done())


async def talk_async(claude: ScriptedClaude, tool: AsyncRunnableMemoryTool, first: str = HELLO, **options: Any) -> str:
    async with AsyncAnthropic(base_url=claude.url, api_key="x") as client:
        return _text(await client.beta.messages.tool_runner(tools=[tool], **_arguments(first, options)).until_done())


def _arguments(first: str, options: Options) -> dict[str, Any]:
    return {"model": "scripted", "max_tokens": 1024, "messages": [{"role": "user", "content": first}], **options}


def _text(message: BetaMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def _answers(results: list[JSON]) -> list[tuple[str, bool]]:
    return [(result["content"], result.get("is_error", False)) for result in results]


def _contents(store: Store) -> dict[str, str]:
    return {entry.path: memory.content for entry in store.list() if (memory := store.read(entry.path))}


@pytest.fixture
def store() -> Store:
    """A store with one memory in it."""
    store = DictStore()
    store.write("notes.md", "tea\n")
    return store


THREADS: dict[str, Options] = {"thread": {}, "history": {"thread": False}}
STREAMS: dict[str, Options] = {"whole": {}, "streamed": {"stream": True}}
EAGER: dict[str, Options] = {"eager": {"stream": True, "run_tools_eagerly": True}}

sync_and_async = pytest.mark.parametrize(
    "runnable", [RunnableMemoryTool, AsyncRunnableMemoryTool], ids=["sync", "async"]
)
with_and_without_threads = pytest.mark.parametrize("thread", THREADS.values(), ids=THREADS)
streamed_or_not = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
in_every_stream = pytest.mark.parametrize("stream", (STREAMS | EAGER).values(), ids=STREAMS | EAGER)


# What Claude gets


@sync_and_async
@with_and_without_threads
@streamed_or_not
@pytest.mark.parametrize("name", ANSWERS)
def test_claude_gets_the_documented_answers(
    name: str, stream: Options, thread: Options, runnable: type[Runnable]
) -> None:
    steps = ANSWERS[name]
    with ScriptedClaude({HELLO: [*(step.command for step in steps), "Done."]}) as claude:
        assert talk(claude, runnable(DictStore()), **stream, **thread) == "Done."
    assert _answers(claude.results) == [(step.answer, step.refused) for step in steps]


@sync_and_async
@with_and_without_threads
@in_every_stream
def test_two_edits_of_one_memory_in_one_turn_both_persist(
    store: Store, stream: Options, thread: Options, runnable: type[Runnable]
) -> None:
    edits = [
        {"command": "str_replace", "path": NOTES, "old_str": "tea", "new_str": "green tea"},
        {"command": "str_replace", "path": NOTES, "old_str": "tea\n", "new_str": "tea, no sugar\n"},
    ]
    with ScriptedClaude({HELLO: [Turn("Both at once.", edits), "Done."]}) as claude:
        talk(claude, runnable(store), **stream, **thread)
    assert _contents(store) == {"notes.md": "green tea, no sugar\n"}
    assert [is_error for _, is_error in _answers(claude.results)] == [False, False]


@sync_and_async
def test_the_options_of_a_memory_tool_hold(store: Store, runnable: type[Runnable]) -> None:
    create = {"command": "create", "path": NOTES, "file_text": "coffee"}
    with ScriptedClaude({HELLO: [create, "Done."]}) as claude:
        talk(claude, runnable(MemoryTool(store, on_existing="overwrite")))
    assert _contents(store) == {"notes.md": "coffee"}


# What no model should send

RANGE = "It should be [start, end] with 1 <= start <= end <= 1, or end -1 for the last line"

MALFORMED: dict[str, tuple[object, str]] = {
    "no command": (
        {"path": NOTES},
        f"Error: The field `command` is missing. It must be one of {COMMANDS}",
    ),
    "null for a command": (
        {"command": None},
        f"Error: The field `command` is missing. It must be one of {COMMANDS}",
    ),
    "an object for a command": (
        {"command": {"view": NOTES}},
        f'Error: Unknown command {{"view": "{NOTES}"}}. It must be one of {COMMANDS}',
    ),
    "nothing at all": (
        {},
        f"Error: The field `command` is missing. It must be one of {COMMANDS}",
    ),
    "null for the input": (
        None,
        f"Error: The input must be an object whose `command` is one of {COMMANDS}, not null",
    ),
    "no path": (
        {"command": "view"},
        "Error: The field `path` is missing: the view command needs a string such as /memories/notes.md",
    ),
    "null for a path": (
        {"command": "delete", "path": None},
        "Error: The field `path` is missing: the delete command needs a string such as /memories/notes.md",
    ),
    "no new path": (
        {"command": "rename", "old_path": NOTES},
        "Error: The field `new_path` is missing: the rename command needs a string such as /memories/notes.md",
    ),
    "no old_str": (
        {"command": "str_replace", "path": NOTES, "new_str": "x"},
        "Error: The field `old_str` is missing: the str_replace command needs a string",
    ),
    "an array for a text": (
        {"command": "create", "path": "/memories/new.md", "file_text": ["tea"]},
        'Error: The field `file_text` must be a string, not ["tea"]',
    ),
    "a string for a view_range": (
        {"command": "view", "path": NOTES, "view_range": "1-2"},
        f'Error: Invalid `view_range` parameter: "1-2". {RANGE}',
    ),
    "a boolean in a view_range": (
        {"command": "view", "path": NOTES, "view_range": [True, 1]},
        f"Error: Invalid `view_range` parameter: [true, 1]. {RANGE}",
    ),
    "padded digits in a view_range": (
        {"command": "view", "path": NOTES, "view_range": [" 1", "+1"]},
        f'Error: Invalid `view_range` parameter: [" 1", "+1"]. {RANGE}',
    ),
    "infinity in a view_range": (
        {"command": "view", "path": NOTES, "view_range": [1, float("inf")]},
        f"Error: Invalid `view_range` parameter: [1, Infinity]. {RANGE}",
    ),
    "a huge line": (
        {"command": "insert", "path": NOTES, "insert_line": 10**400, "insert_text": "x"},
        (
            f"Error: Invalid `insert_line` parameter: 1{'0' * 199}…. "
            "It should be within the range of lines of the file: [0, 1]"
        ),
    ),
    "half a character in a text": (
        {"command": "create", "path": "/memories/new.md", "file_text": "\ud800"},
        (
            "Error: The field `file_text` holds half of a character (a surrogate), which a memory cannot hold. "
            "Nothing was changed"
        ),
    ),
    "half a character in a path": (
        {"command": "view", "path": "/memories/\udfff"},
        "Error: The path /memories/\\udfff is not allowed: names cannot hold control or invisible formatting characters",
    ),
}


@sync_and_async
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_input_is_refused_in_words(store: Store, case: str, runnable: type[Runnable]) -> None:
    sent, answer = MALFORMED[case]
    with ScriptedClaude({HELLO: [Turn(uses=[sent]), "Sorry."]}) as claude:
        talk(claude, runnable(store))
    assert _answers(claude.results) == [(answer, True)]
    assert _contents(store) == {"notes.md": "tea\n"}


# What goes wrong


class BrokenStore(DictStore):
    """A store with a bug."""

    def read(self, path: str) -> Memory | None:
        raise RuntimeError("/host/path")


@sync_and_async
def test_of_a_bug_claude_gets_an_id_and_the_log_the_traceback(
    runnable: type[Runnable], caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedClaude({HELLO: [{"command": "view", "path": NOTES}, "Oh."]}) as claude:
        talk(claude, runnable(BrokenStore()))
    ((answer, is_error),) = _answers(claude.results)
    sentence, identifier = answer[:-8], answer[-8:]
    assert sentence == "Error: Something went wrong inside the memory tool. The log has the details under the id "
    assert is_error
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert identifier in record.getMessage()
    assert "RuntimeError: /host/path" in caplog.text


FAILURES = {
    "an error": (Failure(500), [("create", 1), ("continue", 1), ("continue", 1), ("continue", 1)]),
    "a lost thread": (
        Failure(404, "thread_not_found"),
        [("create", 1), ("continue", 1), ("create", 3), ("continue", 1)],
    ),
    "no threads": (Failure(400, "thread_unsupported_request"), [("create", 1), ("continue", 1), (None, 3), (None, 5)]),
}


@sync_and_async
@in_every_stream
@pytest.mark.parametrize(("failure", "sent"), FAILURES.values(), ids=FAILURES)
def test_no_command_runs_again_because_a_request_is_sent_again(
    store: Store, failure: Failure, sent: list[tuple[str | None, int]], stream: Options, runnable: type[Runnable]
) -> None:
    insert = {"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": "more"}
    with ScriptedClaude({HELLO: [insert, failure, insert, "Done."]}) as claude:
        assert talk(claude, runnable(store), **stream) == "Done."
    bodies = [request.body for request in claude.requests]
    assert [(body.get("thread", {}).get("type"), len(body["messages"])) for body in bodies] == sent
    assert _contents(store) == {"notes.md": "more\nmore\ntea\n"}
    assert len(claude.results) == 2


# What the API gets


ENTRIES: list[dict[str, Any]] = [
    {},
    {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"allowed_callers": ["direct", "code_execution_20260120"]},
    {"defer_loading": True},
    {"input_examples": [{"command": "view", "path": "/memories"}]},
    {"strict": True},
    {"cache_control": {"type": "ephemeral"}, "defer_loading": False, "strict": False},
]


@sync_and_async
@with_and_without_threads
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: " ".join(entry) or "nothing")
def test_the_tools_entry_has_the_documented_keys_as_they_were_given(
    store: Store, entry: dict[str, Any], thread: Options, runnable: type[Runnable]
) -> None:
    with ScriptedClaude({HELLO: [{"command": "view", "path": NOTES}, "Done."]}) as claude:
        talk(claude, runnable(store, **entry), **thread)
    sent = [request.body["tools"] for request in claude.requests if "tools" in request.body]
    assert sent
    assert all(tools == [{"type": "memory_20250818", "name": "memory", **entry}] for tools in sent)


# What a program may do with it


class Keeper(RunnableMemoryTool):
    """A memory tool that deletes nothing below `/memories/kept`."""

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        if command.path.startswith("/memories/kept/"):
            raise ToolError(f"{command.path} stays")
        return super().delete(command)


class AsyncKeeper(AsyncRunnableMemoryTool):
    """`Keeper` for the asynchronous runner."""

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        if command.path.startswith("/memories/kept/"):
            raise ToolError(f"{command.path} stays")
        return await super().delete(command)


@pytest.mark.parametrize("keeper", [Keeper, AsyncKeeper])
def test_a_subclass_may_override_a_command(store: Store, keeper: type[Runnable]) -> None:
    store.write("kept/tea.md", "no sugar")
    deletes = [{"command": "delete", "path": "/memories/kept/tea.md"}, {"command": "delete", "path": NOTES}]
    with ScriptedClaude({HELLO: [*deletes, {"command": "delete"}, "Done."]}) as claude:
        talk(claude, keeper(store))
    assert _answers(claude.results) == [
        ("/memories/kept/tea.md stays", True),
        (f"Successfully deleted {NOTES}", False),
        ("Error: The field `path` is missing: the delete command needs a string such as /memories/notes.md", True),
    ]
    assert _contents(store) == {"kept/tea.md": "no sugar"}


@sync_and_async
def test_clearing_all_memory_keeps_what_belongs_to_the_layers(store: Store, runnable: type[Runnable]) -> None:
    store.write("a/b/c.md", "deep")
    store.write(".commonplace/history/1", "{}")
    tool = runnable(store)
    if isinstance(tool, AsyncRunnableMemoryTool):
        asyncio.run(tool.clear_all_memory())
    else:
        tool.clear_all_memory()
    assert list(store.list()) == []
    assert [entry.path for entry in store.list(".commonplace")] == [".commonplace/history/1"]


@sync_and_async
@pytest.mark.parametrize("wrong", [None, "./memories", Path("memories"), {}, DictStore], ids=lambda x: type(x).__name__)
def test_only_a_memory_tool_or_a_store_will_do(wrong: Any, runnable: type[Runnable]) -> None:
    with pytest.raises(TypeError, match=f"A MemoryTool or a store is needed, not {type(wrong).__name__}"):
        runnable(wrong)


@sync_and_async
@pytest.mark.parametrize("unknown", ["nonsense", "name", "type", "description"])
def test_a_key_that_the_tools_entry_does_not_have_is_an_error_at_once(
    store: Store, unknown: str, runnable: type[Runnable]
) -> None:
    with pytest.raises(TypeError, match=f"has no key {unknown}"):
        runnable(store, **{unknown: "x"})  # type: ignore[arg-type]


def test_examples_that_can_be_read_only_once_are_in_every_request(store: Store) -> None:
    example: dict[str, object] = {"command": "view", "path": "/memories"}
    tool = RunnableMemoryTool(store, input_examples=(example for _ in range(1)))
    for _ in range(2):
        assert list(tool.to_dict()["input_examples"]) == [example]


# Several at once

NAMES = [f"Conversation {number}" for number in range(8)]


def _script(name: str) -> list[Line]:
    """Have the model write a memory of this conversation's own, and add to one that all conversations share."""
    own = f"/memories/{name}.md"
    return [
        Turn(f"I am in {name}.", [{"command": "create", "path": own, "file_text": name}]),
        {"command": "insert", "path": "/memories/shared.md", "insert_line": 0, "insert_text": name},
        {"command": "view", "path": own},
        f"Bye, {name}.",
    ]


def _in_threads(claude: ScriptedClaude, store: Store) -> list[str]:
    with ThreadPoolExecutor(len(NAMES)) as threads:
        return list(threads.map(lambda name: talk(claude, RunnableMemoryTool(store), name), NAMES))


def _in_tasks(claude: ScriptedClaude, store: Store) -> list[str]:
    async def gather() -> list[str]:
        tool = AsyncRunnableMemoryTool(store)
        return await asyncio.gather(*(talk_async(claude, tool, name) for name in NAMES))

    return asyncio.run(gather())


@pytest.mark.parametrize("talk_all", [_in_threads, _in_tasks])
def test_conversations_at_the_same_time_share_a_store_and_nothing_else(
    tmp_path: Path, talk_all: Callable[[ScriptedClaude, Store], list[str]]
) -> None:
    scripts = {name: _script(name) for name in NAMES}
    with open_store(str(tmp_path / "memories")) as store, ScriptedClaude(scripts) as claude:
        store.write("shared.md", "")
        assert talk_all(claude, store) == [f"Bye, {name}." for name in NAMES]
        for name in NAMES:
            assert _answers(claude.results_of(name)) == [
                (f"File created successfully at: /memories/{name}.md", False),
                ("The file /memories/shared.md has been edited.", False),
                (f"Here's the content of /memories/{name}.md with line numbers:\n     1\t{name}", False),
            ]
        shared = _contents(store)["shared.md"]
    assert sorted(shared.splitlines()) == NAMES
