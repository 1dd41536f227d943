"""Heads of POSTs that were accepted are kept, so that heads like them are not checked again."""

from __future__ import annotations

import pytest

from mcpgen_runtime.server.asgi.request import (
    KEPT_BYTES,
    KEPT_HEADS,
    AcceptedHeads,
    Answers,
    HttpRequest,
    response_forms,
)
from mcpgen_runtime.server.asgi.settings import Limits

pytestmark = pytest.mark.processes


def request_with(**fields: str) -> HttpRequest:
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": headers})


def add(heads: AcceptedHeads, **fields: str) -> None:
    """Check a head, and keep it."""
    request = request_with(**fields)
    heads.accepts(request)
    heads.add(request)


def test_few_heads_are_kept_whatever_clients_send() -> None:
    heads = AcceptedHeads(Limits(), "json")
    for number in range(2 * KEPT_HEADS):
        add(heads, accept=f"*/*;n={number}")
        assert len(heads) <= KEPT_HEADS
    assert heads.accepts(request_with(accept=f"*/*;n={2 * KEPT_HEADS - 1}"))
    assert not heads.accepts(request_with(accept="*/*;n=0"))


@pytest.mark.parametrize(("more", "is_kept"), [(0, True), (1, False)])
def test_a_long_head_is_not_kept(more: int, is_kept: bool) -> None:
    heads = AcceptedHeads(Limits(), "json")
    add(heads, origin="x" * (KEPT_BYTES - len("POST/mcp") + more))
    assert len(heads) == is_kept


def test_a_head_that_comes_again_takes_no_other_place() -> None:
    heads = AcceptedHeads(Limits(), "json")
    for number in [*range(KEPT_HEADS), KEPT_HEADS - 1]:
        add(heads, accept=f"*/*;n={number}")
    assert heads.accepts(request_with(accept="*/*;n=0"))
    add(heads, accept="another")
    kept = [heads.accepts(request_with(accept=f"*/*;n={number}")) for number in (0, 1)]
    assert (kept, len(heads)) == ([False, True], KEPT_HEADS)


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({"content-length": "2000"}, True),
        ({"content-length": "2001"}, False),
        ({"content-length": "0" * 14 + "2000"}, True),
        ({"content-length": "0" * 15 + "2000"}, False),
        ({"content-length": ""}, False),
        ({"x-one": "1"}, True),
        ({"x-one": "1", "x-two": "2"}, False),
    ],
)
def test_the_limits_of_a_head_are_checked_each_time(fields: dict[str, str], is_found: bool) -> None:
    heads = AcceptedHeads(Limits(body=2000, fields=1), "json")
    add(heads)
    assert heads.accepts(request_with(**fields)) is is_found


BOTH, JSON, SSE = "application/json, text/event-stream", "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("accept", "forms"),
    [
        (None, [(False, False), (True, False), (False, True)]),
        (BOTH, [(False, False), (True, False), (False, True)]),
        ("*/*", [(False, False), (True, False), (False, True)]),
        (JSON, [(True, False)] * 3),
        ("application/*", [(True, False)] * 3),
        (SSE, [(False, True)] * 3),
        ("text/*;q=0.1", [(False, True)] * 3),
        (f"{JSON};q=0, {SSE}", [(False, True)] * 3),
        (f"{JSON};q=0.00, */*", [(False, True)] * 3),
        (f"{JSON};q=0.001, {SSE};Q=0", [(True, False)] * 3),
        (f"{JSON};v=0, {SSE}; q=0", [(True, False)] * 3),
        ("text/plain", [(True, True)] * 3),
        ("", [(True, True)] * 3),
    ],
)
def test_a_response_has_the_form_that_its_client_accepts(
    accept: str | None, forms: list[tuple[bool, bool]]
) -> None:
    request = request_with(**({} if accept is None else {"accept": accept}))
    answers: list[Answers] = ["auto", "json", "sse"]
    assert [response_forms(request, each) for each in answers] == forms
    for each, form in zip(answers, forms, strict=True):
        heads = AcceptedHeads(Limits(), each)
        assert not heads.accepts(request)
        heads.add(request)
        again = request_with(**({} if accept is None else {"accept": accept}))
        assert heads.accepts(again)
        assert again.forms == request.forms == form


def test_a_head_is_kept_without_credentials() -> None:
    heads = AcceptedHeads(Limits(), "json")
    add(heads, authorization="Bearer secret", cookie="secret")
    assert "secret" not in repr(vars(heads))
    assert heads.accepts(request_with(authorization="Bearer other"))


@pytest.mark.parametrize(
    "fields",
    [
        *({"content-length": "5000000"}, {"content-length": "x"}, {"content-length": "9" * 30}),
        *({"origin": "http://elsewhere"}, {"content-type": "text/plain"}, {"host": "elsewhere"}),
        {f"x-{number}": "1" for number in range(200)},
    ],
)
def test_another_head_is_checked_anew(fields: dict[str, str]) -> None:
    heads = AcceptedHeads(Limits(), "json")
    add(heads)
    assert heads.accepts(request_with())
    assert not heads.accepts(request_with(**fields))
