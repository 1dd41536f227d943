"""Limits of one application, and the responses to requests that exceed them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi, fields_of
from kit.asgi_stream import Stream
from kit.simulation import on_virtual_clock
from kit.web import Web, echo_call
from kit.wire import encode_message, modern, request
from mcpgen_runtime import Limits, StaticTokens

pytestmark = [modern, pytest.mark.processes]

SECONDS = 10
CHUNKED = {"transfer-encoding": "chunked"}
ECHO = {"name": "echo", "arguments": {"text": "x"}}
LONG = {"name": "echo", "arguments": {"text": "x" * 400_000}}  # which the result has twice


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (f"{1000:018}", 200),
        (f"{1000:019}", 413),
        *((text, 400) for text in ("-1", "1e3", "", "ten", "1, 1")),
    ],
)
async def test_a_length_is_a_number_of_18_digits_at_most(
    revision: str, length: str, status: int
) -> None:
    async with asgi(Web().server) as http:
        message = echo_call(revision, 1000)
        fields = fields_of(revision, message) | {"content-length": length}
        assert (await http.post(message, **fields)).status == status


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
    parts = [b"x" * size] if size else []
    return http.stream("POST", parts=parts, unfinished=True, fields=fields)


@pytest.mark.parametrize(("size", "goes_on"), [(0, False), (1, False), (1, True)])
async def test_of_too_many_half_requests_the_longest_overdue_is_ended(
    revision: str, size: int, goes_on: bool
) -> None:
    async with (
        asgi(Web().server, limits=Limits(reading=2, in_flight=1)) as http,
        half(http, revision, size) as first,
    ):
        await anyio.wait_all_tasks_blocked()
        async with half(http, revision, size) as second:
            await anyio.wait_all_tasks_blocked()
            if goes_on:
                first.upload(b"x")
                await anyio.wait_all_tasks_blocked()
            assert (first.status, second.status) == (0, 0)
            async with half(http, revision) as third:
                ended, other = (second, first) if goes_on else (first, second)
                await ended.started()
                await anyio.wait_all_tasks_blocked()
                assert (ended.status, other.status, third.status) == (503, 0, 0)
                assert b"Limits.reading" in ended.raw
                assert ended.fields["retry-after"] == "1"
                assert (await http.ask(revision, "tools/list")).status == 200


async def test_a_request_whose_body_was_cut_off_is_not_served(revision: str) -> None:
    web, message = Web(), request(revision, "tools/call", ECHO)
    parts, fields = [encode_message(message)], fields_of(revision, message)
    async with asgi(web.server) as http:
        async with http.stream("POST", parts=parts, unfinished=True, fields=fields) as stream:
            await anyio.wait_all_tasks_blocked()
        await stream.finished.wait()
    assert (web.called, stream.status) == ([], 0)


@on_virtual_clock
async def test_a_request_whose_body_has_come_is_ended_for_no_other_and_by_no_time(
    revision: str,
) -> None:
    web = Web()
    message = request(revision, "tools/call", {"name": "wait", "arguments": {}})
    body, fields = encode_message(message), fields_of(revision, message)
    async with (
        asgi(web.server, limits=Limits(reading=1, body_seconds=5), keep_alive=None) as http,
        http.stream("POST", parts=[body[:9]], unfinished=True, begun=False, fields=fields) as first,
    ):
        await anyio.wait_all_tasks_blocked()
        first.upload(body[9:], last=True)
        await anyio.sleep(60)
        async with half(http, revision):
            await anyio.wait_all_tasks_blocked()
            assert first.status == 0


async def test_a_long_body_that_does_not_come_makes_room_for_one_that_came(revision: str) -> None:
    long = echo_call(revision, 150_000)
    async with (
        asgi(Web().server, limits=Limits(bodies=200_000)) as http,
        half(http, revision, 150_000) as first,
    ):
        await anyio.wait_all_tasks_blocked()
        for _ in range(2):
            assert (await http.post(long, **fields_of(revision, long))).status == 200
        await first.started()
        assert (first.status, b"Limits.bodies" in first.raw) == (503, True)


@pytest.mark.one_process
@pytest.mark.parametrize(("size", "is_ended"), [(70_000, True), (60_000, False)])
async def test_a_body_without_room_ends_a_stream_of_more_than_64_kib(
    revision: str, size: int, is_ended: bool
) -> None:
    padding = {"example.com/padding": "x" * 150_000}
    params = {"notifications": {"resourceSubscriptions": ["memo://" + "x" * size]}}
    long = echo_call(revision, 150_000)
    async with (
        asgi(Web(subscribe=True).server, limits=Limits(bodies=250_000)) as http,
        http.asking(revision, "tools/call", {"name": "wait"}, id=8, begun=False, meta=padding),
        http.asking(revision, "subscriptions/listen", params) as stream,
    ):
        await stream.message()
        assert (await http.post(long, **fields_of(revision, long))).status == 503
        await anyio.wait_all_tasks_blocked()
        assert stream.finished.is_set() is is_ended


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


async def test_a_client_that_expects_100_is_refused_before_its_body(revision: str) -> None:
    fields = {"host": "x", "content-length": "1000000", "expect": "100-continue"}
    async with (
        asgi(Web().server) as http,
        http.stream("POST", parts=[b"x"], unfinished=True, fields=fields) as stream,
    ):
        await stream.end()
        assert (stream.status, stream.fields["connection"], stream.unread) == (403, "close", 1)


@pytest.mark.parametrize(
    ("size", "version", "closes"),
    [(16 * 1024, "1.1", False), (16 * 1024 + 1, "1.1", True), (16 * 1024 + 1, "2", False)],
)
async def test_a_refusal_closes_connections_with_long_bodies(
    revision: str, size: int, version: str, closes: bool
) -> None:
    fields = {"host": "x", "content-length": f"{size}"}
    async with asgi(Web().server) as http:
        http.scope["http_version"] = version
        async with http.stream("POST", parts=[b"x" * size], fields=fields) as stream:
            await stream.end()
        assert (stream.status, "connection" in stream.fields) == (403, closes)


@pytest.mark.parametrize(
    "field",
    [
        *("host", "origin", "accept", "content-type", "content-encoding", "content-length"),
        *("mcp-protocol-version", "mcp-method", "mcp-name"),
    ],
)
@pytest.mark.parametrize("value", ["\x1b[31m\u202e", "x" * 60_000])
async def test_a_refusal_is_short_and_harmless_whatever_it_shows(
    revision: str, field: str, value: str
) -> None:
    message = request(revision, "tools/call", ECHO)
    fields = {name.lower(): text for name, text in fields_of(revision, message).items()}
    async with asgi(Web().server) as http:
        reply = await http.post(message, **fields | {field: value.encode().decode("latin-1")})
    assert 400 <= reply.status < 500
    assert len(reply.body) < 1000
    assert reply.error["message"].isprintable()


@pytest.mark.parametrize("parts", [[], [b"{", b'"']])
async def test_a_body_that_does_not_come_gets_408(revision: str, parts: list[bytes]) -> None:
    web = Web()
    async with asgi(web.server, limits=Limits(body_seconds=0.02)) as http:
        fields = fields_of(revision, request(revision, "tools/list"))
        async with http.stream("POST", parts=parts, unfinished=True, fields=fields) as stream:
            await stream.end()
            assert stream.status == 408
            assert b"Limits.body_seconds" in stream.raw
        assert (await http.ask(revision, "tools/list")).status == 200


@pytest.mark.parametrize("answers", ["json", "sse"])
@pytest.mark.parametrize(
    ("limit", "same", "other"), [(1_600_000, 503, 200), (800_000, 503, 503), (1_700_000, 200, 200)]
)
async def test_unread_responses_have_so_many_bytes_together(
    revision: str, answers: Any, limit: int, same: int, other: int
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


@pytest.mark.parametrize(("size", "status"), [(100_000, 200), (100_001, 503)])
async def test_one_body_may_have_the_bytes_of_all(revision: str, size: int, status: int) -> None:
    async with asgi(Web().server, limits=Limits(bodies=100_000)) as http:
        for _ in range(2):
            body = echo_call(revision, size)
            assert (await http.post(body, **fields_of(revision, body))).status == status
            async with half(http, revision, size) as stream:
                await anyio.wait_all_tasks_blocked()
                assert stream.status == (0 if status == 200 else 503)
