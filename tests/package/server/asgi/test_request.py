"""Heads of requests as an application reads them, and what it keeps of them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime import Limits
from mcpgen_runtime.server.asgi.request import AcceptedHeads, HttpRequest


def request_with(*headers: tuple[str, str], **scope: Any) -> HttpRequest:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": pairs, **scope})


def test_repeated_fields_are_joined_and_counted() -> None:
    twice = [("cookie", "a=1"), ("accept", "x"), ("cookie", "b=2"), ("accept", " y\t")]
    request = request_with(*twice)
    assert (request.count, request.field("COOKIE")) == (4, "a=1; b=2")
    assert [request.field(name) for name in ("Accept", "other", None)] == ["x,  y", None, None]
    headers = (pair for pair in [(b"host", b"\xfc")])
    from_iterator = HttpRequest({"method": "GET", "path": "/", "headers": headers})
    assert (from_iterator.field("host"), from_iterator.count) == ("\xfc", 1)


def add(heads: AcceptedHeads, *headers: tuple[str, str]) -> HttpRequest:
    """Check a head, and keep it."""
    request = request_with(*headers)
    heads.accepts(request)
    heads.add(request)
    return request


@pytest.mark.parametrize(
    ("headers", "is_found"),
    [
        ([("content-length", "2000")], True),
        ([("content-length", "2001")], False),
        ([("content-length", "0" * 14 + "2000")], True),
        ([("content-length", "0" * 15 + "2000")], False),
        ([("content-length", "")], False),
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


def test_a_head_is_found_for_the_address_that_received_it() -> None:
    heads, first = AcceptedHeads(Limits(), "json"), request_with(server=("192.0.2.1", 1))
    heads.accepts(first)
    heads.add(first)
    servers = [("192.0.2.1", 2), ("192.0.2.2", 1), None]
    assert [heads.accepts(request_with(server=each)) for each in servers] == [True, False, False]
