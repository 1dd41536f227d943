"""The HTTP connection of `check-server`: what it sends, follows and reads, without a socket."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from kit.simulation import ASYNCIO
from mcpgen.check_server.connections import FLOOD_MESSAGES, MESSAGE_LIMIT, Reply
from mcpgen.check_server.http_connection import HttpConnection, open_http
from mcpgen.errors import ServerError

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", [ASYNCIO])]

OPEN = "open"
URL = "https://h.example/mcp"
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}
PING = {"jsonrpc": "2.0", "id": "s", "method": "ping"}
STREAM = {"content-type": "text/event-stream; charset=utf-8"}


class Server:
    """Answers requests by a function, and keeps them."""

    def __init__(self, answer: Callable[[httpx2.Request], Any], **fields: str) -> None:
        self.asked: list[httpx2.Request] = []
        self._answer = answer
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._handle))
        self.connection = HttpConnection(client, URL, fields, 0.2)

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer: Any = self._answer(request)
        response: httpx2.Response = await answer if hasattr(answer, "__await__") else answer
        return response

    async def send(self, *awaited: Any, **options: Any) -> Reply:
        return await self.connection.send(b"{}", awaited, **options)


def stream(*parts: bytes, then: Exception | str = "") -> httpx2.Response:
    """A stream of events, which then ends, breaks off or stays open."""

    async def content() -> AsyncIterator[bytes]:
        for part in parts:
            yield part
        if isinstance(then, Exception):
            raise then
        if then:
            await anyio.sleep_forever()

    return httpx2.Response(200, headers=STREAM, content=content())


def always(response: httpx2.Response) -> Callable[[httpx2.Request], httpx2.Response]:
    return lambda request: response


def event(message: Any, end: bytes = b"\n") -> bytes:
    return b"data: %b%b%b" % (json.dumps(message).encode(), end, end)


@pytest.mark.parametrize(
    ("status", "location", "follows"),
    [
        (307, "/other", True),
        (308, "https://h.example/other", True),
        (301, "/other", False),
        (306, "/other", False),
        (309, "/other", False),
        (307, "https://evil.example/other", False),
        (307, "http://h.example/other", False),
        (307, "/mcp", False),
        (307, "", False),
    ],
)
async def test_a_redirect_on_the_same_host_is_followed(
    status: int, location: str, follows: bool
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/mcp":
            return httpx2.Response(status, headers={"location": location})
        return httpx2.Response(200, json=ANSWER)

    server = Server(answer)
    replies = [await server.send(1) for _ in range(2)]
    paths = [request.url.path for request in server.asked]
    assert paths == (["/mcp", "/other", "/other"] if follows else ["/mcp", "/mcp"])
    assert [reply.answer for reply in replies] == [ANSWER if follows else None] * 2
    assert {request.content for request in server.asked} == {b"{}"}


async def test_later_header_fields_replace_or_leave_out_earlier_ones() -> None:
    server = Server(lambda request: httpx2.Response(200, json=ANSWER), ACCEPT="a", x="1", y="1")
    server.connection.fields = {"X": "2", "z": "2"}
    await server.send(1, fields={"Z": "3", "Content-Type": None})
    fields = server.asked[0].headers
    assert [fields.get(name) for name in ("accept", "x", "y", "z")] == ["a", "2", "1", "3"]
    assert "content-type" not in fields


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (lambda: httpx2.Response(202), "no response in a body of type none"),
        (lambda: httpx2.Response(200, text="hi"), "no response in a body of type text/plain"),
        (lambda: stream(b": comment\n\n"), "the stream ended without the response"),
        (lambda: stream(event(PING)), "the stream ended without the response"),
        (lambda: stream(b"data: 1", then=httpx2.ReadError("gone")), "the response broke off: gone"),
        (lambda: stream(then=httpx2.ReadError("")), "the response broke off: no reason"),
        (lambda: stream(then=OPEN), "no answer in 0.2 s"),
    ],
)
async def test_a_reply_without_an_answer_says_why(
    response: Callable[[], httpx2.Response], reason: str
) -> None:
    reply = await Server(lambda request: response()).send(1)
    assert (reply.answer, reply.reason) == (None, reason)


async def test_a_request_that_fails_or_hangs_says_why() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    async def hang(request: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()
        raise AssertionError

    refused, hung = await Server(refuse).send(1), await Server(hang).send(1)
    assert (refused.status, refused.reason) == (None, "POST failed: refused")
    assert (hung.status, hung.reason) == (None, "no HTTP response in 0.2 s")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_are_read_in_any_pieces_with_any_line_ends(end: bytes) -> None:
    text = b"id: a%b%b" % (end, end) + b"id:b%b" % end + event(ANSWER, end)
    for size in (1, 2, 7, len(text)):
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        reply = await Server(always(stream(*parts))).send(1)
        assert [(each.event_id, each.message) for each in reply.received] == [
            ("a", None),
            ("b", ANSWER),
        ]
        assert (reply.answer, reply.reason) == (ANSWER, "")


async def test_a_stream_is_read_up_to_the_answers_or_to_its_end() -> None:
    second = {**ANSWER, "id": 2}
    body = (event(ANSWER), event(second), event(PING))
    server = Server(lambda request: stream(*body, then=OPEN))
    first = await server.send(1)
    both = await server.send(1, 2)
    assert [len(reply.received) for reply in (first, both)] == [1, 2]
    assert (first.ended, both.answer) == (False, second)
    begin = anyio.current_time()
    whole = await server.send(1, to_end=True)
    assert anyio.current_time() - begin == pytest.approx(1)
    assert (len(whole.received), whole.answer, whole.reason) == (3, ANSWER, "")
    ended = await Server(lambda request: stream(*body)).send(1, to_end=True)
    plain = await Server(always(httpx2.Response(200, json=ANSWER))).send(1)
    assert (whole.ended, ended.ended, plain.ended) == (False, True, True)


async def test_requests_of_the_server_are_answered_and_all_is_recorded() -> None:
    ask = {"jsonrpc": "2.0", "id": "t", "method": "roots/list"}

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.content == b"{}":
            return stream(event([PING, ask]), event(ANSWER))
        return httpx2.Response(202)

    server = Server(answer)
    assert (await server.send(1)).answer == ANSWER
    refusals = [json.loads(request.content) for request in server.asked[1:]]
    assert [each.get("result", each.get("error", {}).get("code")) for each in refusals] == [
        {},
        -32601,
    ]
    assert [each.message for each in server.connection.received] == [PING, ask, ANSWER]


@pytest.mark.parametrize("more", [0, 1])
async def test_messages_and_bytes_of_a_response_are_bounded(more: int) -> None:
    notes = event([{"jsonrpc": "2.0", "method": "note"}] * (FLOOD_MESSAGES + more))
    many = await Server(lambda request: stream(notes)).send(1)
    assert (f"more than {FLOOD_MESSAGES} messages" in many.reason) == bool(more)
    body = json.dumps(ANSWER).encode().ljust(MESSAGE_LIMIT + more)
    long = await Server(lambda request: httpx2.Response(200, content=body)).send(1)
    assert ("more than" in long.reason) == bool(more)
    line = b"data: %b\n" % (b"x" * (len(body) - 6))
    unended = await Server(lambda request: stream(line, b"\n")).send(1)
    assert ("more than" in unended.reason) == bool(more)


async def test_other_verbs_read_no_stream_and_listening_one_message() -> None:
    server = Server(lambda request: stream(b"id: 0\n\n", event(PING), event(ANSWER), then=OPEN))
    head = await server.connection.head("DELETE", {"x": "y"})
    assert (head.status, head.received, server.asked[0].method) == (200, [], "DELETE")
    heard = await server.connection.listen(b"{}", 7, None)
    assert [each.message for each in heard.received if each.data] == [PING]
    assert heard.answer is None
    answered = Server(always(stream(event({**ANSWER, "id": 7}), then=OPEN))).connection
    assert (await answered.listen(b"{}", 7, None)).answer == {**ANSWER, "id": 7}
    assert server.connection.end == ""
    await server.connection.close()
    assert server.connection.end == "closed"
    with pytest.raises(RuntimeError, match="closed"):
        await server.send(1)


class Closing(httpx2.AsyncByteStream, httpx2.AsyncBaseTransport):
    """Its first response is a stream that stays open; it hangs from then on."""

    def __init__(self, message: Any) -> None:
        self.requests = self.closed = 0
        self.hangs = anyio.Event()
        self._message = message

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        if self.requests == 2:
            self.hangs.set()
            await anyio.sleep_forever()
        return httpx2.Response(200, headers=STREAM, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield event(self._message)
        await anyio.sleep_forever()

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1


async def test_responses_and_clients_are_closed_though_cancelled() -> None:
    for message in (ANSWER, PING):
        transport = Closing(message)
        client = httpx2.AsyncClient(transport=transport)
        connection = HttpConnection(client, URL, {}, 9)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.send, b"{}", [1])
            if message is PING:
                await transport.hangs.wait()
                tasks.cancel_scope.cancel()
        assert transport.closed == 1
        with anyio.CancelScope() as scope:
            scope.cancel()
            await connection.close()
        assert transport.closed == 2


async def test_a_client_has_the_options_and_follows_no_redirect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[httpx2.Request] = []

    async def redirect(_: Any, request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        if len(requests) == 2:
            await anyio.sleep_forever()
        return httpx2.Response(302, headers={"location": "/other"})

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", redirect)
    connection = open_http(URL, {"headers": {"x": "1"}}, 0.5)
    assert (await connection.send(b"{}", [1])).status == 302
    assert (await connection.send(b"{}", [1])).reason == "no HTTP response in 0.5 s"
    assert [request.headers["x"] for request in requests] == ["1", "1"]
    plain = open_http(URL, {}, 0.5)
    assert (await plain.send(b"{}", [1])).status == 302


def test_servers_over_http_need_a_library(
    anyio_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ServerError) as caught:
        open_http(URL, {}, 1)
    expected = "expected httpx2 for servers over HTTP, got none: pip install httpx2"
    assert str(caught.value) == expected
