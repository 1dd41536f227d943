"""Requests as an application reads them: heads, and bodies, of which none stays counted."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime import Limits
from mcpgen_runtime.server.asgi.http_response import Refused
from mcpgen_runtime.server.asgi.request import (
    KEPT_BYTES,
    KEPT_HEADS,
    AcceptedHeads,
    Answers,
    Disconnected,
    HttpRequest,
    RequestBodies,
    check_post,
)

PART = 40_000
LIMITS = Limits(body=4 * PART, bodies=10 * PART)


def part(size: int = PART, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


async def read(bodies: RequestBodies, *messages: MutableMapping[str, Any]) -> bytes | Refused:
    """The body that some messages have; it comes in pieces, and never ends if none is the last."""
    waiting = iter(messages)

    async def receive() -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        for message in waiting:
            return message
        await anyio.sleep_forever()
        raise AssertionError("sleeps for ever")

    try:
        return await bodies.read(receive)
    except Refused as refused:
        return refused


@pytest.mark.parametrize(
    ("sizes", "counted"),
    [((64, 64), 0), ((65536,), 0), ((65537,), 65537), ((PART, PART), 2 * PART)],
)
async def test_a_body_of_more_than_64_kib_is_counted_until_its_release(
    sizes: tuple[int, ...], counted: int
) -> None:
    bodies = RequestBodies(LIMITS)
    messages = [part(size, more=number < len(sizes)) for number, size in enumerate(sizes, 1)]
    body = await read(bodies, *messages)
    assert isinstance(body, bytes)
    assert (len(body), bodies.size) == (sum(sizes), counted)
    bodies.release(body)
    assert bodies.size == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("last", "status"),
    [(part(2 * PART + 1), 413), ({"type": "http.disconnect"}, None)],
    ids=["too long", "disconnected"],
)
async def test_a_body_that_does_not_end_well_is_not_counted(
    last: dict[str, Any], status: int | None
) -> None:
    bodies = RequestBodies(LIMITS)
    if status is None:
        with pytest.raises(Disconnected):
            await read(bodies, part(), part(), last)
    else:
        refused = await read(bodies, part(), part(), last)
        assert isinstance(refused, Refused)
        assert (refused.response.status, refused.body) == (status, "partly read")
    assert bodies.size == 0


def request_with(*headers: tuple[str, str], **scope: Any) -> HttpRequest:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": pairs, **scope})


def test_repeated_fields_are_joined_and_counted() -> None:
    twice = [("cookie", "a=1"), ("accept", "x"), ("cookie", "b=2"), ("accept", " y\t")]
    request = request_with(*twice)
    assert (request.count, request.field("COOKIE")) == (4, "a=1; b=2")
    assert (request.field("Accept"), request.field("other"), request.field(None)) == (
        "x,  y",
        None,
        None,
    )
    headers = (pair for pair in [(b"host", b"\xfc")])
    from_iterator = HttpRequest({"method": "GET", "path": "/", "headers": headers})
    assert (from_iterator.field("host"), from_iterator.count) == ("\xfc", 1)


JSON, SSE = ("content-type", "application/json"), "text/event-stream"


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ([JSON], None, ""),
        ([("content-type", "Application/JSON; charset=utf-8")], None, ""),
        ([("content-type", "text/plain")], 415, "Content-Type: expected application/json, got"),
        ([], 415, "Content-Type: expected application/json, got nothing"),
        ([JSON, ("content-encoding", "gzip")], 415, "Content-Encoding: expected none, got 'gzip'"),
        ([JSON, ("content-length", "1000")], None, ""),
        ([JSON, ("content-length", "1001")], 413, "body: expected at most 1000 bytes"),
        ([JSON, ("content-length", f"{1000:018}")], None, ""),
        ([JSON, ("content-length", f"{1000:019}")], 413, "body: expected at most 1000 bytes"),
        ([JSON, ("content-length", "1e3")], 400, "Content-Length: expected a number, got '1e3'"),
        ([JSON, ("accept", "*/*")], None, ""),
        ([JSON, ("accept", "a/b")], 406, f"Accept: expected application/json and {SSE}, got 'a/b'"),
        ([("accept", "a/b")], 415, "Content-Type: expected"),
    ],
)
def test_the_head_of_a_post_is_refused_for_its_first_fault(
    headers: list[tuple[str, str]], status: int | None, text: str
) -> None:
    request = request_with(*headers)
    if status is None:
        check_post(request, Limits(body=1000))
        return
    with pytest.raises(Refused) as raised:
        check_post(request, Limits(body=1000))
    refused = raised.value.response
    assert (refused.status, text in refused.body.decode()) == (status, True)


def add(heads: AcceptedHeads, *headers: tuple[str, str]) -> HttpRequest:
    """Check a head, and keep it."""
    request = request_with(*headers)
    heads.accepts(request)
    heads.add(request)
    return request


def test_few_heads_are_kept_whatever_clients_send() -> None:
    heads = AcceptedHeads(Limits(), "json")
    for number in range(2 * KEPT_HEADS):
        for _ in range(2):  # one that comes again takes no other place
            add(heads, ("accept", f"*/*;n={number}"))
        assert len(heads) == min(number + 1, KEPT_HEADS)
    numbers = KEPT_HEADS - 1, KEPT_HEADS
    kept = [heads.accepts(request_with(("accept", f"*/*;n={number}"))) for number in numbers]
    assert kept == [False, True]


@pytest.mark.parametrize(("more", "is_kept"), [(0, True), (1, False)])
def test_a_long_head_is_not_kept(more: int, is_kept: bool) -> None:
    heads = AcceptedHeads(Limits(), "json")
    add(heads, ("origin", "x" * (KEPT_BYTES - len("POST/mcp") + more)))
    assert len(heads) == is_kept


@pytest.mark.parametrize(
    ("headers", "is_found"),
    [
        ([("content-length", "2000")], True),
        ([("content-length", "2001")], False),
        ([("content-length", "0" * 14 + "2000")], True),
        ([("content-length", "0" * 15 + "2000")], False),
        ([("content-length", "")], False),
        ([("content-length", "x")], False),
        ([("transfer-encoding", "chunked")], False),
        ([("authorization", "Bearer other")], True),
        ([("x-one", "1")], True),
        ([("x-one", "1"), ("x-two", "2")], False),
        ([("origin", "http://elsewhere")], False),
        ([("content-type", "text/plain")], False),
        ([("host", "elsewhere")], False),
    ],
    ids=str,
)
def test_a_head_is_found_by_its_fields_but_not_its_credentials(
    headers: list[tuple[str, str]], is_found: bool
) -> None:
    heads = AcceptedHeads(Limits(body=2000, fields=1), "json")
    add(heads, ("authorization", "Bearer secret"))
    assert "secret" not in repr(vars(heads))
    assert heads.accepts(request_with(*headers)) is is_found


EITHER, JSON_ONLY, SSE_ONLY = (False, False), (True, False), (False, True)


@pytest.mark.parametrize(
    ("accept", "forms"),
    [
        (None, [EITHER, JSON_ONLY, SSE_ONLY]),
        (f"application/json, {SSE}", [EITHER, JSON_ONLY, SSE_ONLY]),
        ("*/*", [EITHER, JSON_ONLY, SSE_ONLY]),
        ("application/json", [JSON_ONLY] * 3),
        ("application/*", [JSON_ONLY] * 3),
        (SSE, [SSE_ONLY] * 3),
        ("text/*;q=0.1", [SSE_ONLY] * 3),
        (f"application/json;q=0, {SSE}", [SSE_ONLY] * 3),
        ("application/json;q=0.00, */*", [SSE_ONLY] * 3),
        (f"application/json;q=0.001, {SSE};Q=0", [JSON_ONLY] * 3),
        (f"application/json;v=0, {SSE}; q=0", [JSON_ONLY] * 3),
    ],
)
def test_a_response_has_the_form_that_its_client_accepts(
    accept: str | None, forms: list[tuple[bool, bool]]
) -> None:
    headers = [] if accept is None else [("accept", accept)]
    answers: list[Answers] = ["auto", "json", "sse"]
    for setting, form in zip(answers, forms, strict=True):
        heads = AcceptedHeads(Limits(), setting)
        assert add(heads, *headers).forms == form
        again = request_with(*headers)
        assert heads.accepts(again)
        assert again.forms == form
