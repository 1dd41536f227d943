"""What one application holds at most, and what whoever asks for more is told."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcp_protocol.asgi.settings import HttpSettings, Limits
from mcp_protocol.toolkit.context import Context
from package.asgi_client import SESSIONS, asgi, fields_of
from package.web import Web
from package.wire import PER_REQUEST, encoded, request

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("revision", PER_REQUEST)]

SECONDS = 10


def echo(revision: str, size: int) -> dict[str, Any]:
    """A call whose body has so many bytes."""
    params = {"name": "echo", "arguments": {"text": ""}}
    short = len(encoded(request(revision, "tools/call", params)))
    params["arguments"] = {"text": "x" * (size - short)}
    return request(revision, "tools/call", params)


@pytest.mark.parametrize("said", [True, False], ids=["length said", "length unsaid"])
@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413), (50_000, 413)])
async def test_a_body_may_have_so_many_bytes(
    revision: str, size: int, status: int, said: bool
) -> None:
    web = Web()
    message = echo(revision, size)
    fields = fields_of(revision, message)
    if said:
        fields["content-length"] = str(size)
    async with asgi(web.server, limits=Limits(body=1000)) as http:
        reply = await http.post(message, **fields)
        assert reply.status == status
        if status == 413:
            assert "Limits.body" in reply.error["message"]
            assert web.called == []


@pytest.mark.parametrize("size", [1000, 1001])
async def test_a_body_may_come_in_any_pieces(revision: str, size: int) -> None:
    body = encoded(echo(revision, size))
    fields = fields_of(revision, echo(revision, size))
    pieces = [body[at : at + 1] for at in range(size)]
    async with asgi(Web().server, limits=Limits(body=1000)) as http:
        async with http.stream("POST", parts=pieces, fields=fields) as stream:
            await stream.end()
        assert stream.status == (200 if size == 1000 else 413)


@pytest.mark.parametrize("length", ["-1", "1e3", "", "ten", "1, 1", "9" * 5000])
async def test_a_length_that_is_no_number_is_refused(revision: str, length: str) -> None:
    async with asgi(Web().server) as http:
        message = echo(revision, 1000)
        fields = fields_of(revision, message) | {"content-length": length}
        reply = await http.post(message, **fields)
    assert reply.status in (400, 413)


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
async def test_a_request_may_have_so_many_header_fields(
    revision: str, more: int, status: int
) -> None:
    message = request(revision, "tools/list")
    fields = fields_of(revision, message)
    standard = {"host", "accept", "content-type", *fields}
    async with asgi(Web().server, limits=Limits(fields=len(standard))) as http:
        reply = await http.post(message, **fields, **{f"x-{i}": "y" for i in range(more)})
    assert reply.status == status
    assert status == 200 or "Limits.fields" in reply.error["message"]


async def test_so_many_requests_may_be_served_at_a_time(revision: str) -> None:
    web = Web()
    async with (
        asgi(web.server, limits=Limits(in_flight=2)) as http,
        http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as first,
        http.stream("POST", parts=[b"{"], unfinished=True),
    ):
        await web.begun.wait()
        reply = await http.ask(revision, "tools/list")
        assert (reply.status, reply.fields["retry-after"]) == (503, "1")
        assert "Limits.in_flight" in reply.error["message"]
        first.disconnect()
        with anyio.fail_after(SECONDS):
            await first.finished.wait()
        assert (await http.ask(revision, "tools/list")).status == 200


async def test_streams_that_are_held_open_do_not_count_as_requests(revision: str) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    async with (
        asgi(Web().server, limits=Limits(in_flight=1)) as http,
        http.asking(revision, "subscriptions/listen", params) as one,
        http.asking(revision, "subscriptions/listen", params) as two,
    ):
        for stream in (one, two):
            await stream.message()
        assert (await http.ask(revision, "tools/list")).status == 200


@pytest.mark.parametrize("session", SESSIONS)
async def test_streams_of_sessions_and_subscriptions_share_a_limit(
    revision: str, session: str
) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    async with asgi(Web().server, limits=Limits(streams=1)) as http:
        older = http.another()
        await older.initialize(session)
        async with http.asking(revision, "subscriptions/listen", params) as first:
            reply = await older.get()
            assert (reply.status, "Limits.streams" in reply.error["message"]) == (503, True)
        with anyio.fail_after(SECONDS):
            await first.finished.wait()
        async with older.stream("GET") as stream:
            assert stream.status == 200
            reply = await http.ask(revision, "subscriptions/listen", params)
            assert reply.status == 503


@pytest.mark.parametrize("parts", [[b""], [b'{"jsonrpc":'], [b"{", b'"']])
async def test_a_body_that_does_not_come_gets_408(revision: str, parts: list[bytes]) -> None:
    web = Web()
    async with asgi(web.server, limits=Limits(body_seconds=0.02)) as http:
        fields = fields_of(revision, request(revision, "tools/list"))
        async with http.stream("POST", parts=parts, unfinished=True, fields=fields) as stream:
            await stream.end()
            assert stream.status == 408
            assert b"Limits.body_seconds" in stream.raw
        assert (await http.ask(revision, "tools/list")).status == 200


async def test_a_client_that_reads_nothing_is_cut_and_its_call_cancelled(revision: str) -> None:
    web = Web()
    ended = anyio.Event()

    @web.server.tool()
    async def flood(ctx: Context) -> str:
        try:
            value = 0
            while True:
                value += 1
                await ctx.progress(value)
        finally:
            ended.set()

    async with asgi(web.server, limits=Limits(send_seconds=0.02)) as http:
        async with http.asking(
            revision, "tools/call", {"name": "flood"}, meta={"progressToken": 1}
        ) as stream:
            stream.stop_reading()
            with anyio.fail_after(SECONDS):
                await ended.wait()
                await stream.finished.wait()
        assert not stream.ended
        assert (await http.ask(revision, "tools/list")).status == 200


async def test_a_subscriber_that_reads_nothing_is_cut(revision: str) -> None:
    web = Web()
    params = {"notifications": {"toolsListChanged": True}}
    limits = Limits(send_seconds=0.02, streams=1)
    async with asgi(web.server, keep_alive=None, limits=limits) as http:
        async with http.asking(revision, "subscriptions/listen", params) as stream:
            await stream.message()
            stream.stop_reading()
            web.server.remove_tool("logs")
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()
        async with http.asking(revision, "subscriptions/listen", params) as another:
            await another.message()


async def test_a_client_that_reads_on_in_time_misses_nothing(revision: str) -> None:
    web = Web()
    params = {"name": "counts", "arguments": {"to": 50}}
    async with (
        asgi(web.server) as http,
        http.asking(revision, "tools/call", params, meta={"progressToken": 1}) as stream,
    ):
        stream.stop_reading()
        await anyio.wait_all_tasks_blocked()
        stream.read_on()
        *told, last = await stream.messages()
    assert [each["params"]["progress"] for each in told] == list(range(1, 51))
    assert "result" in last


@pytest.mark.parametrize("name", list(Limits.__dataclass_fields__))
async def test_a_limit_has_to_be_above_zero(revision: str, name: str) -> None:
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"Limits\.{name}: expected more than 0, got"):
            Limits(**{name: value})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": "mcp"}, "path: expected a path that begins with '/'"),
        ({"sse_path": "sse"}, "sse_path: expected"),
        ({"messages_path": ""}, "messages_path: expected"),
        ({"answers": "xml"}, "answers: expected one of auto, json, sse"),
        ({"keep_alive": 0}, "keep_alive: expected more than 0"),
        ({"retry": 0}, "retry: expected more than 0"),
        ({"sse_path": "/mcp"}, "differ"),
    ],
)
async def test_settings_that_mean_nothing_are_refused(
    revision: str, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Web().server.asgi(**options)


async def test_the_defaults_are_bounded(revision: str) -> None:
    limits = HttpSettings().limits
    assert limits.body == 4 * 2**20
    assert limits.in_flight == 1000
    assert limits.send_seconds == 60
