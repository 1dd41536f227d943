"""Streams of events over Streamable HTTP: taken up again, polled, held open, given up."""

from __future__ import annotations

import json
import logging
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from mcpgen_runtime import Timeouts, connect
from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.errors import ResponseLostError
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package import http_script
from package.client.simulation import Network, simulate, use_network
from package.http_script import Script, result
from package.http_server import Asked, Handler, Reply
from package.wire import SESSIONS

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=SESSIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.04, linger=0.1)
scripted = partial(http_script.connect_scripted, timeouts=Timeouts(http=PAUSES))


class Listener(ClientHandlers):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.news = anyio.Event()

    async def logging_message(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.data)
        self.news.set()
        self.news = anyio.Event()

    async def until(self, count: int) -> list[Any]:
        """All items heard, once there are at least `count`."""
        with anyio.fail_after(20):
            while len(self.heard) < count:
                await self.news.wait()
        return self.heard


def log(data: str) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "info", "data": data},
    }


def break_stream(id: str | None = "1-0", retry: int | None = None, *, end: bool = False) -> Handler:
    """A handler that begins a stream, gives it an id, and breaks off."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id=id, retry=retry)
        await (reply.end() if end else reply.cut())

    return handler


class Calls(Script):
    """Keeps the tool calls, which other requests may be answered by."""

    def __init__(self, revision: str, session: str | None = "abc") -> None:
        super().__init__(revision, session)
        self.calls: list[Asked] = []

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.what == "tools/call":
            self.calls.append(asked)
        await super().__call__(asked, reply)


def resume_stream(script: Calls, *, after: str = "1-0") -> Handler:
    """A handler that goes on with the stream of the tool call, and with no other."""

    async def handler(asked: Asked, reply: Reply) -> None:
        if asked.fields.get("last-event-id") != after:
            await reply.whole(405)
            return
        await reply.stream()
        await reply.event(result(script.calls[-1]), id="1-1")
        await reply.end()

    return handler


def gets(server: Any) -> list[str | None]:
    """The last event of each GET that takes a stream up again."""
    ids = [asked.fields.get("last-event-id") for asked in server.of("GET")]
    return [id for id in ids if id is not None]


@pytest.mark.requirement(
    "http.resume-after-break",
    "http.resume-after-any-disconnect",
    "http.resume-always-get",
    "http.stream-any-disconnect",
    "http.prime-event-not-a-message",
)
@pytest.mark.parametrize("end", [False, True], ids=["broken", "closed"])
async def test_a_stream_is_resumed_by_a_get_with_the_last_event_id(
    revision: str, end: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = Calls(revision)
    script.on = {"tools/call": break_stream(end=end), "GET": resume_stream(script)}
    async with scripted(script) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert not [each for each in caplog.records if each.msg.startswith("ignored")]
    assert gets(server) == ["1-0"]
    assert len(server.of("tools/call")) == 1
    get = next(asked for asked in server.of("GET") if "last-event-id" in asked.fields)
    assert get.target == "/mcp"
    assert get.fields["mcp-session-id"] == "abc"
    assert "text/event-stream" in get.fields["accept"]
    assert get.body == b""


@pytest.mark.requirement("http.stream-any-disconnect")
async def test_an_event_that_was_cut_is_dropped_and_does_not_count(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(log("a"), id="1-0")
        await reply.part(b'id: 1-9\ndata: {"jsonrpc": "2.0", "id": 1, "resu')
        await reply.cut()

    listener = Listener()
    script = Calls(revision)
    script.on = {"tools/call": call, "GET": resume_stream(script)}
    async with scripted(script, handlers=listener) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        assert await listener.until(1) == ["a"]
    assert gets(server) == ["1-0"]


@pytest.mark.requirement("http.client-polls")
async def test_a_server_may_close_the_connection_again_and_again(revision: str) -> None:
    script = Calls(revision)
    wanted = iter(["1-0", "1-1", "1-2"])

    async def get(asked: Asked, reply: Reply) -> None:
        last = asked.fields.get("last-event-id")
        if last is None:
            await reply.whole(405)
            return
        assert last == next(wanted)
        if last == "1-2":
            await resume_stream(script, after="1-2")(asked, reply)
        else:
            await break_stream("1-1" if last == "1-0" else "1-2", end=True)(asked, reply)

    script.on = {"tools/call": break_stream(end=True), "GET": get}
    async with scripted(script) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert gets(server) == ["1-0", "1-1", "1-2"]


@pytest.mark.requirement("http.retry-respected")
async def test_the_client_waits_as_long_as_the_server_said(revision: str) -> None:
    closed: list[float] = []

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0", retry=300)
        await reply.end()
        closed.append(anyio.current_time())

    script = Calls(revision)
    script.on = {"tools/call": call, "GET": resume_stream(script)}
    async with scripted(script) as (client, server):
        await client.call_tool("echo", {})
    get = next(asked for asked in server.of("GET") if "last-event-id" in asked.fields)
    assert 0.3 <= get.at - closed[0] < 2.0


class Polled(Calls):
    """Ends each connection at once, with a fresh id; the result comes with one of the last polls.

    Args:
        polls: How many polls it takes.
        news: Whether each of them brings a message.
    """

    def __init__(self, revision: str, polls: int, retry: int, *, news: bool = False) -> None:
        super().__init__(revision)
        self.on = {"tools/call": self.poll, "GET": self.get}
        self.left = polls
        self.retry = retry
        self.news = news
        self.number = 0

    async def get(self, asked: Asked, reply: Reply) -> None:
        if "last-event-id" in asked.fields:
            await self.poll(asked, reply)
        else:
            await reply.whole(405)

    async def poll(self, asked: Asked, reply: Reply) -> None:
        self.number += 1
        self.left -= 1
        await reply.stream()
        if self.left < 0:
            await reply.event(result(self.calls[-1]), id="last")
        else:
            news = log("on") if self.news else None
            await reply.event(news, id=str(self.number), retry=self.retry)
        await reply.end()


def pauses(server: Any) -> list[float]:
    """Seconds between the polls."""
    times = [asked.at for asked in server.of("GET") if "last-event-id" in asked.fields]
    return [later - earlier for earlier, later in pairwise(times)]


def test_pauses_grow_while_connections_bring_nothing(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection with a message, then some without, then one with; and so that no limit holds."""
    brings = [True, False, False, False, True, False, False, False, False]
    script = Calls(revision)
    times: list[float] = []

    async def poll(asked: Asked, reply: Reply) -> None:
        if asked.what == "GET" and "last-event-id" not in asked.fields:
            await reply.whole(405)
            return
        number = len(times)
        times.append(anyio.current_time())
        message: Any = log("on") if number < len(brings) and brings[number] else None
        if number == len(brings):
            message = result(script.calls[-1])
        data = json.dumps(message).encode() if message is not None else b""
        body = b"id: %d\nretry: 0\ndata: %b\n\n" % (number, data)
        await reply.whole(200, body, Content_Type="text/event-stream")

    async def main() -> None:
        timeouts = Timeouts(http=HttpTimeouts(shortest_pause=1, longest_poll=5))
        async with connect("https://mcp.example", revision=revision, timeouts=timeouts) as client:
            await client.call_tool("echo", {})

    script.on = {"tools/call": poll, "GET": poll}
    network = Network(Random(0), {"https://mcp.example": script}, lambda asked: (0.0, 0.0))
    use_network(monkeypatch, network)
    simulate("asyncio", 0, main)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == pytest.approx([1, 1, 2, 4, 1, 1, 2, 4, 5])


async def test_no_server_is_polled_without_a_pause(
    revision: str,
) -> None:
    timeouts = Timeouts(http=replace(PAUSES, shortest_pause=0.1))
    script = Polled(revision, 2, retry=0, news=True)
    async with scripted(script, timeouts=timeouts) as (client, server):
        await client.call_tool("echo", {})
    assert all(pause >= 0.1 for pause in pauses(server))


def test_by_default_a_stream_is_resumed_after_half_a_second(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Calls(revision)
    times: list[float] = []

    async def begin(asked: Asked, reply: Reply) -> None:
        times.append(anyio.current_time())
        await reply.whole(200, b"id: 1-0\ndata:\n\n", Content_Type="text/event-stream")

    async def go_on(asked: Asked, reply: Reply) -> None:
        if "last-event-id" not in asked.fields:
            await reply.whole(405)
            return
        times.append(anyio.current_time())
        data = json.dumps(result(script.calls[-1])).encode()
        await reply.whole(200, b"data: %b\n\n" % data, Content_Type="text/event-stream")

    async def main() -> None:
        async with connect("https://mcp.example/mcp", revision=revision) as client:
            await client.call_tool("echo", {})

    script.on = {"tools/call": begin, "GET": go_on}
    network = Network(Random(0), {"https://mcp.example": script}, lambda asked: (0.0, 0.0))
    use_network(monkeypatch, network)
    simulate("asyncio", 0, main)
    begun, resumed = times
    assert resumed - begun == pytest.approx(0.5)


async def test_a_server_cannot_have_a_client_wait_for_ever(
    revision: str,
) -> None:
    timeouts = Timeouts(http=replace(PAUSES, longest_retry=0.05))
    async with scripted(Polled(revision, 2, retry=999_999_999), timeouts=timeouts) as (
        client,
        server,
    ):
        with anyio.fail_after(5):
            await client.call_tool("echo", {})
    assert all(pause >= 0.05 for pause in pauses(server))


async def test_a_server_that_forgets_each_session_is_given_pauses_too(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        if "last-event-id" in asked.fields:
            await reply.whole(404)
            return
        opened.append(asked.at)
        enough.set() if len(opened) >= 6 else None
        await reply.stream()
        await reply.event(id="1", retry=0)
        await reply.end()

    opened: list[float] = []
    enough = anyio.Event()
    script = Calls(revision)
    script.on["GET"] = get
    async with scripted(script):
        with anyio.fail_after(10):
            await enough.wait()
    waited = [later - earlier for earlier, later in pairwise(opened)]
    least = [0.01, 0.02, *[0.04] * (len(waited) - 2)]
    assert all(pause >= each for pause, each in zip(waited, least, strict=True))


async def test_a_stream_without_ids_cannot_be_taken_up_again(revision: str) -> None:
    script = Calls(revision)
    script.on["tools/call"] = break_stream(id=None)
    async with scripted(script) as (client, server):
        with pytest.raises(ResponseLostError, match="ended before the answer came"):
            await client.call_tool("echo", {})
        assert await client.list_tools()
    assert gets(server) == []


@pytest.mark.parametrize("status", [400, 404, 405, 410])
async def test_a_server_that_resumes_nothing_fails_the_call_at_once(
    revision: str, status: int
) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.whole(status if "last-event-id" in asked.fields else 405)

    script = Calls(revision, session=None)
    script.on = {"tools/call": break_stream(), "GET": get}
    async with scripted(script) as (client, server):
        with pytest.raises(ResponseLostError, match=f"HTTP {status}"):
            await client.call_tool("echo", {})
    assert gets(server) == ["1-0"]


async def test_attempts_that_bring_nothing_come_to_an_end(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        if "last-event-id" not in asked.fields:
            await reply.whole(405)
        elif len(gets(server)) % 2:
            await reply.whole(503)
        else:
            await reply.stream()
            await reply.end()

    script = Calls(revision)
    script.on = {"tools/call": break_stream(), "GET": get}
    async with scripted(script) as (client, server):
        with pytest.raises(ResponseLostError, match="5 attempts"):
            await client.call_tool("echo", {})
    assert len(gets(server)) == 5


@pytest.mark.requirement("http.get-accept", "http.get-optional", "http.multiple-streams")
async def test_a_stream_for_what_belongs_to_no_request_is_held_open(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(log("a"))
        await reply.gone()

    listener = Listener()
    script = Calls(revision)
    script.on["GET"] = get
    timeouts = Timeouts(http=replace(PAUSES, first_pause=60))  # opening it is no second attempt
    async with scripted(script, handlers=listener, timeouts=timeouts) as (client, server):
        assert await listener.until(1) == ["a"]
        await client.call_tool("echo", {})
    (asked,) = server.of("GET")
    assert "text/event-stream" in asked.fields["accept"]
    assert "last-event-id" not in asked.fields
    assert asked.fields["mcp-session-id"] == "abc"
    assert server.order().index("GET") > server.order().index("notifications/initialized")


async def test_requests_of_a_server_on_the_get_stream_are_answered(revision: str) -> None:
    class Handlers(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": []}

    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await reply.gone()

    script = Script(revision, "abc")
    script.on["GET"] = get
    async with scripted(script, handlers=Handlers()) as (_, server):
        (answer,) = await server.until("response")
    assert answer.message == {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
    assert answer.fields["mcp-session-id"] == "abc"


@pytest.mark.parametrize("status", [400, 404, 405, 501])
async def test_a_server_without_such_a_stream_is_no_error(
    revision: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.whole(status)

    script = Script(revision)
    script.on["GET"] = get
    async with scripted(script) as (client, server):
        await server.until("GET")
        await client.call_tool("echo", {})
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []
    assert len(server.of("initialize")) == 1


async def test_the_open_stream_is_taken_up_again_where_it_broke(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        last = asked.fields.get("last-event-id")
        await reply.stream()
        if last is None:
            await reply.event(log("a"), id="0-1")
            await reply.cut()
        await reply.event(log(f"after {last}"), id="0-2")
        await reply.gone()

    listener = Listener()
    script = Calls(revision)
    script.on["GET"] = get
    async with scripted(script, handlers=listener):
        assert await listener.until(2) == ["a", "after 0-1"]


def test_a_stream_that_cannot_be_reopened_is_tried_ever_less(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    enough: anyio.Event

    async def get(asked: Asked, reply: Reply) -> None:
        times.append(anyio.current_time())
        if len(times) == 1:
            await reply.whole(200, b": open\n\n", Content_Type="text/event-stream")
        else:
            await reply.whole(503)
        if len(times) == 6:
            enough.set()

    async def main() -> None:
        nonlocal enough
        enough = anyio.Event()
        timeouts = Timeouts(http=HttpTimeouts(first_pause=1, longest_pause=5))
        async with connect("https://mcp.example/mcp", revision=revision, timeouts=timeouts):
            await enough.wait()

    script = Script(revision)
    script.on["GET"] = get
    network = Network(Random(0), {"https://mcp.example": script}, lambda asked: (0.0, 0.0))
    use_network(monkeypatch, network)
    simulate("asyncio", 0, main)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == pytest.approx([1, 2, 4, 5, 5])


async def test_an_answer_on_another_stream_ends_the_waiting(revision: str) -> None:
    ready = anyio.Event()
    script = Calls(revision)

    async def get(asked: Asked, reply: Reply) -> None:
        if "last-event-id" in asked.fields:
            await reply.whole(404)
            return
        await reply.stream()
        await ready.wait()
        await reply.event(result(script.calls[0]))
        await reply.gone()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0", retry=60_000)
        await reply.end()
        ready.set()

    script.on = {"tools/call": call, "GET": get}
    async with scripted(script) as (client, server):
        with anyio.fail_after(10):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert gets(server) == []


@pytest.mark.requirement("http.cancel-by-notification")
async def test_cancelling_says_so_and_closes_the_stream(revision: str) -> None:
    begun = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        begun.set()
        await reply.gone()

    script = Calls(revision)
    script.on["tools/call"] = call
    async with scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await begun.wait()
            tasks.cancel_scope.cancel()
        (cancelled,) = await server.until("notifications/cancelled")
        await server.until_left(1)
        await client.list_tools()
    assert cancelled.message["params"]["requestId"] == script.calls[0].id
    assert gets(server) == []


async def test_a_stream_that_stays_open_after_the_answer_is_closed(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(result(asked))
        await reply.gone()
        gone.set()

    gone = anyio.Event()
    script = Calls(revision)
    script.on["tools/call"] = call
    async with scripted(script) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        with anyio.fail_after(5):
            await gone.wait()


@pytest.mark.requirement("http.get-client-close", "http.shutdown-by-close")
@pytest.mark.requirement("lifecycle.shutdown-http")
async def test_closing_closes_every_stream_and_says_nothing_more(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.gone()

    script = Script(revision)
    script.on["GET"] = get
    async with scripted(script) as (client, server):
        await server.until("GET")
        before = server.order()
        await client.close()
        await server.until_left(1)
        assert server.order() == before
