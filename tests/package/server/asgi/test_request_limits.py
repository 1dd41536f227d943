"""Limits of one application, and the responses to requests that exceed them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi, fields_of
from kit.asgi_stream import Stream
from kit.web import Web
from kit.wire import PER_REQUEST, encode_message, request
from mcpgen_runtime import Context, Limits, StaticTokens
from mcpgen_runtime.server.asgi.settings import Answers

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("revision", PER_REQUEST),
    pytest.mark.processes,
]

SECONDS = 10
CHUNKED = {"transfer-encoding": "chunked"}
ECHO = {"name": "echo", "arguments": {"text": "x"}}
LONG = {"name": "echo", "arguments": {"text": "x" * 400_000}}  # which the result has twice


def echo(revision: str, size: int) -> dict[str, Any]:
    """A call whose body has so many bytes."""
    params = {"name": "echo", "arguments": {"text": ""}}
    short = len(encode_message(request(revision, "tools/call", params)))
    params["arguments"] = {"text": "x" * (size - short)}
    return request(revision, "tools/call", params)


@pytest.mark.parametrize("length", ["-1", "1e3", "", "ten", "1, 1", "9" * 5000])
async def test_a_length_that_is_no_number_is_refused(revision: str, length: str) -> None:
    async with asgi(Web().server) as http:
        message = echo(revision, 1000)
        fields = fields_of(revision, message) | {"content-length": length}
        reply = await http.post(message, **fields)
    assert reply.status in (400, 413)


async def test_so_many_requests_may_be_served_at_a_time(revision: str) -> None:
    web = Web()
    async with (
        asgi(web.server, limits=Limits(in_flight=2)) as http,
        http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as first,
        http.asking(revision, "tools/call", {"name": "wait"}, begun=False),
    ):
        await anyio.wait_all_tasks_blocked()
        reply = await http.ask(revision, "tools/list")
        assert (reply.status, reply.fields["retry-after"]) == (503, "1")
        assert "Limits.in_flight" in reply.error["message"]
        first.disconnect()
        with anyio.fail_after(SECONDS):
            await first.finished.wait()
        assert (await http.ask(revision, "tools/list")).status == 200


def half(http: Http, revision: str, size: int = 1) -> AbstractAsyncContextManager[Stream]:
    """A request of whose body so many bytes come, and no more."""
    fields = fields_of(revision, request(revision, "tools/list"))
    return http.stream("POST", parts=[b"x" * size], unfinished=True, fields=fields)


async def test_half_a_request_takes_no_place_among_inbound_requests(revision: str) -> None:
    async with (
        asgi(Web().server, limits=Limits(in_flight=1)) as http,
        half(http, revision),
        half(http, revision),
    ):
        await anyio.wait_all_tasks_blocked()
        assert (await http.ask(revision, "tools/list")).status == 200


async def test_of_too_many_half_requests_the_longest_overdue_is_ended(
    revision: str,
) -> None:
    async with (
        asgi(Web().server, limits=Limits(reading=2, body_seconds=60)) as http,
        half(http, revision) as first,
    ):
        await anyio.wait_all_tasks_blocked()
        async with half(http, revision) as second:
            await anyio.wait_all_tasks_blocked()
            assert not first.status
            async with half(http, revision) as third:
                await first.started()
                await anyio.wait_all_tasks_blocked()
                assert (first.status, second.status, third.status) == (503, 0, 0)
                assert b"Limits.reading" in first.raw
                assert first.fields["retry-after"] == "1"
                assert (await http.ask(revision, "tools/list")).status == 200


async def test_of_too_many_half_requests_one_that_goes_on_stays(revision: str) -> None:
    async with (
        asgi(Web().server, limits=Limits(reading=2, body_seconds=60)) as http,
        half(http, revision) as first,
        half(http, revision) as second,
    ):
        await anyio.wait_all_tasks_blocked()
        first.upload(b"x")
        await anyio.wait_all_tasks_blocked()
        async with half(http, revision):
            await second.started()
            assert (first.status, second.status) == (0, 503)


async def test_the_time_for_a_body_ends_with_the_body(revision: str) -> None:
    web = Web()

    @web.server.tool()
    async def deadline() -> str:
        return f"{anyio.current_effective_deadline()}"

    message = request(revision, "tools/call", {"name": "deadline", "arguments": {}})
    body, fields = encode_message(message), fields_of(revision, message)
    async with (
        asgi(web.server, limits=Limits(body_seconds=60)) as http,
        http.stream(
            "POST", parts=[body[:9]], unfinished=True, begun=False, fields=fields
        ) as stream,
    ):
        await anyio.wait_all_tasks_blocked()
        stream.upload(body[9:], last=True)
        await stream.end()
        assert (stream.status, b'"inf"' in stream.raw) == (200, True)


async def test_a_request_whose_body_has_come_is_cancelled_for_no_other(revision: str) -> None:
    web = Web()
    message = request(revision, "tools/call", {"name": "wait", "arguments": {}})
    body, fields = encode_message(message), fields_of(revision, message)
    async with (
        asgi(web.server, limits=Limits(reading=1)) as http,
        http.stream("POST", parts=[body[:9]], unfinished=True, begun=False, fields=fields) as first,
    ):
        await anyio.wait_all_tasks_blocked()
        first.upload(body[9:], last=True)
        await anyio.wait_all_tasks_blocked()
        async with half(http, revision):
            await anyio.wait_all_tasks_blocked()
            assert first.status == 0


async def test_long_bodies_have_so_many_bytes_together(revision: str) -> None:
    web = Web()
    limits = Limits(bodies=200_000, body_seconds=60)
    long = echo(revision, 150_000)
    async with asgi(web.server, limits=limits) as http:
        async with half(http, revision, 150_000) as first:
            await anyio.wait_all_tasks_blocked()
            reply = await http.post(long, **fields_of(revision, long))
            assert reply.status == 200
            await first.started()
            assert (first.status, b"Limits.bodies" in first.raw) == (503, True)
        meta = {"example.com/padding": "x" * 150_000}
        waits = http.asking(revision, "tools/call", {"name": "wait"}, begun=False, meta=meta)
        async with waits:
            await anyio.wait_all_tasks_blocked()
            reply = await http.post(long, **fields_of(revision, long))
            assert (reply.status, "Limits.bodies" in reply.error["message"]) == (503, True)
            short = echo(revision, 60_000)
            assert (await http.post(short, **fields_of(revision, short))).status == 200
        await anyio.wait_all_tasks_blocked()
        assert (await http.post(long, **fields_of(revision, long))).status == 200


@pytest.mark.one_process
@pytest.mark.parametrize(("size", "is_ended"), [(70_000, True), (60_000, False)])
async def test_a_body_without_room_ends_a_stream_of_more_than_64_kib(
    revision: str, size: int, is_ended: bool
) -> None:
    padding = {"example.com/padding": "x" * 150_000}
    params = {"notifications": {"resourceSubscriptions": ["memo://" + "x" * size]}}
    long = echo(revision, 150_000)
    async with (
        asgi(Web(subscribe=True).server, limits=Limits(bodies=250_000)) as http,
        http.asking(revision, "tools/call", {"name": "wait"}, id=8, begun=False, meta=padding),
        http.asking(revision, "subscriptions/listen", params) as stream,
    ):
        await stream.message()
        assert (await http.post(long, **fields_of(revision, long))).status == 503
        await anyio.wait_all_tasks_blocked()
        assert stream.finished.is_set() is is_ended


@pytest.mark.parametrize(("size", "status"), [(100_000, 200), (100_001, 503)])
async def test_one_body_may_have_the_bytes_of_all(revision: str, size: int, status: int) -> None:
    async with asgi(Web().server, limits=Limits(bodies=100_000)) as http:
        for _ in range(2):
            body = echo(revision, size)
            assert (await http.post(body, **fields_of(revision, body))).status == status
            async with half(http, revision, size) as stream:
                await anyio.wait_all_tasks_blocked()
                assert stream.status == (0 if status == 200 else 503)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "text/plain"}, 406),
        ({}, 413),
    ],
)
@pytest.mark.parametrize("framed", ["by its length", "in chunks"])
async def test_a_refusal_is_immediate_and_the_rest_of_the_body_dropped(
    revision: str, fields: dict[str, str], status: int, framed: str
) -> None:
    parts = [b"x" * 50_000] * 20
    length = {"content-length": "1000000"} if framed == "by its length" else CHUNKED
    standard = fields_of(revision, request(revision, "tools/list"))
    limits = Limits(body=100_000) if status == 413 else Limits()
    async with (
        asgi(Web().server, limits=limits) as http,
        http.stream("POST", parts=parts, fields={**standard, **length, **fields}) as stream,
    ):
        await stream.end()
        assert (stream.status, stream.fields["connection"]) == (status, "close")
        assert stream.unread == 0


@pytest.mark.parametrize(("discard", "unread"), [(100_000, 40), (100_001, 39)])
async def test_of_a_refused_body_no_more_is_dropped_than_so_many_bytes(
    revision: str, discard: int, unread: int
) -> None:
    async with (
        asgi(Web().server, limits=Limits(discard=discard)) as http,
        http.stream("POST", parts=[b"x" * 10_000] * 50, fields={"host": "x", **CHUNKED}) as stream,
    ):
        await stream.end()
        assert (stream.status, stream.unread) == (403, unread)


async def test_of_refused_bodies_the_longest_silent_is_given_up_first(revision: str) -> None:
    def refused(http: Http) -> AbstractAsyncContextManager[Stream]:
        return http.stream("POST", parts=[b"x"], unfinished=True, fields={"host": "x", **CHUNKED})

    async with (
        asgi(Web().server, limits=Limits(reading=2)) as http,
        refused(http) as first,
        refused(http) as second,
    ):
        await anyio.wait_all_tasks_blocked()
        first.upload(b"x")
        await anyio.wait_all_tasks_blocked()
        async with refused(http) as third:
            await second.end()
            await anyio.wait_all_tasks_blocked()
            assert (first.ended, second.ended, third.ended) == (False, True, False)


async def test_a_client_that_expects_100_is_refused_before_its_body(revision: str) -> None:
    fields = {"host": "x", "content-length": "1000000", "expect": "100-continue"}
    async with (
        asgi(Web().server) as http,
        http.stream("POST", parts=[b"x"], unfinished=True, fields=fields) as stream,
    ):
        await stream.end()
        assert (stream.status, stream.fields["connection"], stream.unread) == (403, "close", 1)


@pytest.mark.parametrize(("size", "closes"), [(16 * 1024, False), (16 * 1024 + 1, True)])
async def test_a_refusal_closes_connections_with_long_bodies(
    revision: str, size: int, closes: bool
) -> None:
    fields = {"host": "x", "content-length": f"{size}"}
    async with asgi(Web().server) as http:
        async with http.stream("POST", parts=[b"x" * size], fields=fields) as stream:
            await stream.end()
        assert (stream.status, "connection" in stream.fields) == (403, closes)


@pytest.mark.parametrize(("digits", "status"), [(18, 200), (19, 413)])
async def test_a_length_has_18_digits_at_most(revision: str, digits: int, status: int) -> None:
    message = echo(revision, 1000)
    fields = fields_of(revision, message) | {"content-length": f"{1000:0{digits}}"}
    async with asgi(Web().server) as http:
        assert (await http.post(message, **fields)).status == status


async def test_later_http_versions_get_no_connection_field_on_refusal(
    revision: str,
) -> None:
    async with asgi(Web().server) as http:
        http.scope["http_version"] = "2"
        fields = {"host": "x", "content-length": "1000000"}
        async with http.stream("POST", parts=[b"x"], unfinished=True, fields=fields) as stream:
            await stream.end()
        assert (stream.status, "connection" in stream.fields) == (403, False)


@pytest.mark.parametrize(
    "field", ["host", "origin", "accept", "content-type", "content-encoding", "content-length"]
)
@pytest.mark.parametrize("value", ["\x1b[31m\u202e", "x" * 60_000])
async def test_a_refusal_is_short_and_harmless_whatever_it_shows(
    revision: str, field: str, value: str
) -> None:
    message = request(revision, "tools/list")
    fields = fields_of(revision, message) | {field: value.encode().decode("latin-1")}
    async with asgi(Web().server) as http:
        reply = await http.post(message, **fields)
    assert 400 <= reply.status < 500
    assert len(reply.body) < 1000
    assert reply.error["message"].isprintable()


@pytest.mark.parametrize("name", ["version", "method", "name"])
async def test_a_long_field_that_differs_from_the_body_is_shortened(
    revision: str, name: str
) -> None:
    message = request(revision, "tools/call", {"name": "echo", "arguments": {"text": ""}})
    standard = fields_of(revision, message)
    field = dict(zip(("version", "method", "name"), standard, strict=True))[name]
    async with asgi(Web().server) as http:
        reply = await http.post(message, **standard | {field: "x" * 60_000})
        assert (reply.status, len(reply.body) < 2000) == (400, True)
        message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "y" * 60_000}
        reply = await http.post(message, **standard | {field: "y" * 60_000})
        assert (reply.status, len(reply.body) < 2000) == (400, True)


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


async def test_a_request_counts_once_after_a_stream_has_ended(revision: str) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    async with asgi(Web().server, limits=Limits(in_flight=1)) as http:
        async with http.asking(revision, "subscriptions/listen", params) as stream:
            await stream.message()
        with anyio.fail_after(SECONDS):
            await stream.finished.wait()
        assert (await http.ask(revision, "tools/list")).status == 200
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False):
            await anyio.wait_all_tasks_blocked()
            assert (await http.ask(revision, "tools/list")).status == 503


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


async def test_a_client_that_reads_nothing_is_cut_off_and_cancelled(revision: str) -> None:
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


@pytest.mark.parametrize("answers", ["json", "sse"])
@pytest.mark.parametrize(
    ("limit", "same", "other"), [(1_600_000, 503, 200), (800_000, 503, 503), (1_700_000, 200, 200)]
)
async def test_unread_responses_have_so_many_bytes_together(
    revision: str, answers: Answers, limit: int, same: int, other: int
) -> None:
    """From half of the limit on, the network that reads nothing is refused, then each."""
    web = Web()
    async with asgi(web.server, answers=answers, limits=Limits(unread=limit)) as http:
        http.scope["client"] = ("192.0.2.1", 1)
        another = http.another()
        another.scope["client"] = ("192.0.2.2", 1)
        async with http.asking(revision, "tools/call", LONG) as unread:
            await unread.until(b"x" * 1000)
            unread.stop_reading()
            await anyio.wait_all_tasks_blocked()
            for client, status in ((http, same), (another, other)):
                called = len(web.called)
                reply = await client.ask(revision, "tools/call", ECHO)
                assert reply.status == status
                assert len(web.called) - called == (status == 200)
                if status == 503:
                    assert reply.fields["retry-after"] == "1"
                    assert "Limits.unread" in reply.error["message"]
                    assert reply.error["data"] == {"begun": False}
            unread.read_on()
            await unread.end()
            await unread.finished.wait()
        assert b"x" * 400_000 in unread.raw
        assert (await http.ask(revision, "tools/call", ECHO)).status == 200


async def test_unread_responses_of_a_principal_count_together(revision: str) -> None:
    tokens = StaticTokens({"alice-1": "alice", "bob-1": "bob"})
    async with asgi(Web().server, auth=tokens, limits=Limits(unread=1_600_000)) as http:
        http.fields["authorization"] = "Bearer alice-1"
        another = http.another()
        another.fields["authorization"] = "Bearer bob-1"
        async with http.asking(revision, "tools/call", LONG) as unread:
            await unread.until(b"x" * 1000)
            unread.stop_reading()
            await anyio.wait_all_tasks_blocked()
            assert (await another.ask(revision, "tools/call", ECHO)).status == 200
            assert (await http.ask(revision, "tools/call", ECHO)).status == 503


async def test_a_response_that_nobody_reads_makes_room_in_time(revision: str) -> None:
    limits = Limits(unread=800_000, send_seconds=0.02)
    async with asgi(Web().server, limits=limits) as http:
        async with http.asking(revision, "tools/call", LONG) as unread:
            await unread.until(b"x" * 1000)
            unread.stop_reading()
            with anyio.fail_after(SECONDS):
                await unread.finished.wait()
        assert not unread.ended
        assert (await http.ask(revision, "tools/call", ECHO)).status == 200
