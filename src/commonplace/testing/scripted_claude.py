"""A Messages API on loopback whose model follows a script, for conversations that need neither a network nor a model.

    with ScriptedClaude({"Hello": [{"command": "view", "path": "/memories"}, "Hello again."]}) as claude:
        client = Anthropic(base_url=claude.url, api_key="any")
        ...
        assert [result["content"] for result in claude.results] == [...]

The client, the HTTP and the socket are real. Only what the model would say is written down beforehand.

A request finds its place by the conversation it carries: the user's first words name the script, and the number of
replies so far the turn. So a request that is sent again is answered again, conversations at the same time do not disturb
each other, and a client may send its whole history every time or continue a message thread.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from typing import Any, Self

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply: what the model says, and the inputs of the tools it uses at once.

    The inputs go out as they are, even those that no model should write.
    """

    text: str = ""
    uses: Sequence[object] = ()
    tool: str = "memory"


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error, answered once; the request after it gets what the script has next.

    `error_code` is what the API puts into `error.details`, for example `thread_not_found`.
    """

    status: int = 500
    error_code: str | None = None
    message: str = "The script has an error here"


Line = str | Mapping[str, object] | Turn | Failure
"""A line of a script. A string is the same as a Turn of that text, a mapping as a Turn with that one tool input."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent: the headers, their names in lower case, and the body."""

    headers: dict[str, str]
    body: JSON


class ScriptedClaude:
    """Answers `POST /v1/messages` at `url`, streamed or whole, while in `with`.

    `scripts` says, by the text of the user's first message, what the model answers to it and to what follows. A request
    that the scripts have no answer for, or in which a tool use has no result, gets a 400 that says so.
    """

    url: str
    """Where the API is, for the `base_url` of a client."""

    requests: list[Request]
    """Every request in the order of arrival, those that were answered with an error too."""

    def __init__(self, scripts: Mapping[str, Sequence[Line]]) -> None:
        self.requests = []
        self._turns: dict[str, list[Turn]] = {}
        self._failures: dict[tuple[str, int], list[Failure]] = defaultdict(list)
        self._threads: dict[str, list[JSON]] = {}
        self._results: dict[str, tuple[str, JSON]] = {}
        self._numbers = count(1)
        self._lock = Lock()
        for first, script in scripts.items():
            turns = self._turns[first] = []
            for line in script:
                if isinstance(line, Failure):
                    self._failures[first, len(turns)].append(line)
                else:
                    turns.append(_turn(line))

    def __enter__(self) -> Self:
        self._server = _Server(self._answer)
        self._serving = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005})
        self._serving.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()

    @property
    def results(self) -> list[JSON]:
        """Every tool_result block that came, in order; a block that came again is there once."""
        with self._lock:
            return [result for _, result in self._results.values()]

    def results_of(self, first: str) -> list[JSON]:
        """Return the tool_result blocks that came in conversations beginning with these words."""
        with self._lock:
            return [result for begun, result in self._results.values() if begun == first]

    def _answer(self, request: Request) -> JSON | Failure:
        with self._lock:
            self.requests.append(request)
            messages = self._conversation(request.body)
            if messages is None:
                return Failure(404, "thread_not_found", "The thread to continue is not known here")
            first = _text(messages[0])
            for result in _blocks(request.body["messages"], "tool_result"):
                self._results.setdefault(result["tool_use_id"], (first, result))
            if unanswered := ", ".join(_unanswered(messages)):
                return Failure(
                    400, None, f"These tool uses have no tool_result in the message after them: {unanswered}"
                )
            return self._next(request.body, first, messages)

    def _conversation(self, body: JSON) -> list[JSON] | None:
        """Return all messages up to now, or None where they are those of a thread that is not known."""
        thread = body.get("thread") or {}
        if thread.get("type") != "continue":
            return list(body["messages"])
        before = self._threads.get(thread["previous_message_id"])
        return None if before is None else [*before, *body["messages"]]

    def _next(self, body: JSON, first: str, messages: list[JSON]) -> JSON | Failure:
        if first not in self._turns:
            return Failure(400, None, f"No script begins with {first!r}")
        turns = self._turns[first]
        position = sum(message["role"] == "assistant" for message in messages)
        if failures := self._failures[first, position]:
            return failures.pop(0)
        if position >= len(turns):
            return Failure(400, None, f"The script that begins with {first!r} ends after {len(turns)} turns")
        reply = self._message(body, turns[position])
        if body.get("thread"):
            self._threads[reply["id"]] = [*messages, {"role": "assistant", "content": reply["content"]}]
        return reply

    def _message(self, body: JSON, turn: Turn) -> JSON:
        said = [{"type": "text", "text": turn.text}] if turn.text else []
        used = [
            {"type": "tool_use", "id": f"toolu_{next(self._numbers):06}", "name": turn.tool, "input": tool_input}
            for tool_input in turn.uses
        ]
        return {
            "id": f"msg_{next(self._numbers):06}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [*said, *used],
            "stop_reason": "tool_use" if turn.uses else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": _tokens(body), "output_tokens": _tokens([said, used])},
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close() waits for them
    request_queue_size = 128

    def __init__(self, answer: Callable[[Request], JSON | Failure]) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may hang up
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    """One request on one connection, so that none is left open when the server goes."""

    server: _Server
    disable_nagle_algorithm = True
    timeout = 5

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        if self.path.partition("?")[0] != "/v1/messages":
            self._send_failure(Failure(404, None, "Only POST /v1/messages is here"))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(headers, json.loads(data))
        match self.server.answer(request):
            case Failure() as failure:
                self._send_failure(failure)
            case message if request.body.get("stream"):
                self._send(200, "text/event-stream", "".join(map(_event, _events(message))))
            case message:
                self._send(200, "application/json", json.dumps(message))

    def _send_failure(self, failure: Failure) -> None:
        error: JSON = {"type": _ERROR_TYPES.get(failure.status, "api_error"), "message": failure.message}
        if failure.error_code is not None:
            error["details"] = {"error_code": failure.error_code}
        self._send(failure.status, "application/json", json.dumps({"type": "error", "error": error}))

    def _send(self, status: int, content_type: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after-ms", "1")  # nobody needs to wait for a script
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _turn(line: str | Mapping[str, object] | Turn) -> Turn:
    match line:
        case Turn():
            return line
        case str():
            return Turn(line)
        case _:
            return Turn(uses=[line])


def _text(message: JSON) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in _blocks([message], "text"))


def _blocks(messages: Sequence[JSON], kind: str) -> Iterator[JSON]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from (block for block in message["content"] if block["type"] == kind)


def _unanswered(messages: Sequence[JSON]) -> Iterator[str]:
    """Yield the ids of the tool uses that the very next message has no result for; the API insists on them."""
    for number, message in enumerate(messages, 1):
        answered = {result["tool_use_id"] for result in _blocks(messages[number : number + 1], "tool_result")}
        yield from (use["id"] for use in _blocks([message], "tool_use") if use["id"] not in answered)


def _tokens(value: object) -> int:
    """Return about how many tokens a model would count."""
    return 1 + len(json.dumps(value)) // 4


def _events(message: JSON) -> Iterator[JSON]:
    """Yield the events that stream a message, each text and each tool's input in two parts."""
    usage = message["usage"]
    empty = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": empty}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
        else:
            start = {**block, "input": {}}
            written = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in _halves(written)]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _event(event: JSON) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
