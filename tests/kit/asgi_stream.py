"""One request to an ASGI application, in process, and its answer as it comes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import anyio

from kit.wire import text_in
from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.framing.sse_decoder import EventDecoder, ServerSentEvent

App: TypeAlias = Callable[[Any, Any, Any], Any]

SECONDS = 10
"""How long anything may take before its test fails."""


class Stream:
    """One request, and its answer as it comes."""

    def __init__(self, parts: Sequence[bytes], unfinished: bool) -> None:
        self.status = 0
        self.fields: dict[str, str] = {}
        self.decoder = EventDecoder()
        self.raw = b""
        self.finished = anyio.Event()
        self.failure: BaseException | None = None
        self._parts = deque(parts)
        self._unfinished = unfinished
        self._events: deque[ServerSentEvent] = deque()
        self._news = anyio.Event()
        self.ended = False
        self._gone = anyio.Event()
        self._over = anyio.Event()
        self._flowing = anyio.Event()
        self._flowing.set()

    def disconnect(self) -> None:
        """Leave."""
        self._gone.set()
        self._over.set()
        self._flowing.set()

    def upload(self, part: bytes, *, last: bool = False) -> None:
        """Let more of an unfinished body come, or its last part."""
        self._parts.append(part)
        self._unfinished = not last
        self._over.set()

    def stop_reading(self) -> None:
        """Let the application wait with whatever it sends from now on."""
        self._flowing = anyio.Event()

    def read_on(self) -> None:
        """Read again."""
        self._flowing.set()

    @property
    def unread(self) -> int:
        """How many pieces of the request's body the application has not received."""
        return len(self._parts)

    async def started(self) -> None:
        """Wait for status and header fields."""
        with anyio.fail_after(SECONDS):
            while not self.status:
                await self._wait()

    async def event(self) -> ServerSentEvent:
        """The next event; an event without data that sets an id is one."""
        with anyio.fail_after(SECONDS):
            while not self._events:
                if self.ended or self._gone.is_set():
                    raise EOFError("the stream has ended")
                await self._wait()
        return self._events.popleft()

    async def message(self) -> Any:
        """The JSON of the next event that has data."""
        while True:
            event = await self.event()
            if event.data:
                return json.loads(event.data)

    async def messages(self) -> list[Any]:
        """The JSON of all that comes until the stream ends."""
        messages: list[Any] = []
        try:
            while True:
                messages.append(await self.message())
        except EOFError:
            return messages

    async def until(self, wanted: bytes) -> None:
        """Wait until some bytes have come."""
        with anyio.fail_after(SECONDS):
            while wanted not in self.raw:
                assert not self.ended, f"{wanted!r} is not in {self.raw!r}"
                await self._wait()

    async def end(self) -> None:
        """Wait for the end of the body."""
        with anyio.fail_after(SECONDS):
            while not self.ended:
                await self._wait()

    async def receive(self) -> Mapping[str, Any]:
        """Return the next event for the application, as ASGI's `receive`."""
        if self._parts:
            part = self._parts.popleft()
            message: dict[str, Any] = {"type": "http.request", "body": part}
            if self._parts or self._unfinished:
                message["more_body"] = True  # a server may leave out that there is no more
            return message
        await self._over.wait()
        if self._parts and not self.ended and not self._gone.is_set():
            self._over = anyio.Event()
            return await self.receive()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take an event of the application, as ASGI's `send`."""
        await anyio.lowlevel.checkpoint()
        await self._flowing.wait()
        if self._gone.is_set():
            raise BrokenPipeError("the client is gone")
        assert not self.ended, f"{message} after the end"
        if message["type"] == "http.response.start":
            assert not self.status, "a second start"
            self.status = message["status"]
            for name, value in message["headers"]:
                assert name == name.lower()
                assert name.decode() not in self.fields, f"{name!r} twice"
                self.fields[name.decode()] = value.decode("latin-1")
        else:
            assert message["type"] == "http.response.body"
            assert self.status, "a body before the start"
            self._take(message.get("body", b""))
            if not message.get("more_body", False):
                self.ended = True
                self._over.set()
        self._news.set()

    def _take(self, data: bytes) -> None:
        self.raw += data
        if self.fields.get("content-type", "").startswith("text/event-stream"):
            for event in self.decoder.feed(data):
                assert not isinstance(event, TooLong)
                self._events.append(event)

    async def run(self, app: App, scope: Mapping[str, Any]) -> None:
        """Have the application serve it."""
        try:
            await app(scope, self.receive, self.send)
            cut = self._gone.is_set() or not self._flowing.is_set()
            assert self.ended or cut, "it returned without a whole answer"
        except Exception as error:
            self.failure = error
        finally:
            self.finished.set()
            self._news.set()

    async def _wait(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._news = anyio.Event()
        await self._news.wait()


class Reply:
    """One whole answer."""

    def __init__(self, stream: Stream) -> None:
        self.status = stream.status
        self.fields = stream.fields
        self.body = stream.raw

    @property
    def json(self) -> Any:
        """The body as JSON."""
        assert self.fields["content-type"] == "application/json", self.fields
        return json.loads(self.body)

    @property
    def events(self) -> list[ServerSentEvent]:
        """The body as events."""
        assert self.fields["content-type"].startswith("text/event-stream"), self.fields
        events = EventDecoder().feed(self.body)
        return [event for event in events if isinstance(event, ServerSentEvent)]

    @property
    def messages(self) -> list[Any]:
        """The messages in the body, whatever its form."""
        if not self.body:
            return []
        if self.fields["content-type"] == "application/json":
            return [self.json]
        return [json.loads(event.data) for event in self.events if event.data]

    @property
    def code(self) -> int:
        """The JSON-RPC code of the one error that the body is."""
        code: int = self.json["error"]["code"]
        return code

    @property
    def error(self) -> Any:
        """The one error that the body is."""
        return self.json["error"]

    @property
    def result(self) -> Any:
        """The result in the last message of the body."""
        return self.messages[-1]["result"]

    @property
    def text(self) -> str:
        """The text of a tool's result in the last message of the body."""
        return text_in(self.messages[-1])
