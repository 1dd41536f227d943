"""The texts of errors quote the peer within bounds; attributes hold what was received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcpgen_runtime import (
    ConnectFailedError,
    HttpStatusError,
    McpError,
    MissingCapabilityError,
    MissingExtraError,
    OAuthError,
    RemoteError,
    RequestTimeoutError,
    ResourceNotFoundError,
    RevisionError,
    ToolFailedError,
    ToolResultError,
    errors,
)
from mcpgen_runtime.errors import NO_DATA, FrameError

URL = "https://a.example/mcp"


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def test_an_unknown_method_is_named_unless_a_text_is_given() -> None:
    error = errors.MethodNotFoundError("a\n", data=1)
    assert (str(error), error.method, error.data) == (r"method not found: a\n", "a\n", 1)
    assert str(errors.MethodNotFoundError("a", "not here")) == "not here"


@pytest.mark.parametrize("size", [200, 201, 2048, 2049])
def test_an_absent_resource_is_data_unless_its_uri_is_long(size: int) -> None:
    uri = "a" * size
    error = ResourceNotFoundError(uri)
    assert str(error) == f"resource not found: {cut(uri, 200)}"
    assert error.data == ({"uri": uri} if size <= 2048 else NO_DATA)
    assert (error.code, error.uri) == (-32602, uri)


def test_a_capability_that_is_missing_is_named_with_its_path() -> None:
    error = MissingCapabilityError(["elicitation", "url"], "asking")
    assert str(error) == "asking needs the capability elicitation.url; it was not declared"
    assert error.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    assert (error.code, error.path) == (-32600, ("elicitation", "url"))


@pytest.mark.parametrize("size", [1000, 1001])
@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, ""),
        ({"method": "tools/call", "name": "a"}, "tools/call 'a': "),
    ],
)
def test_an_error_of_the_peer_says_which_request_failed(
    size: int, options: dict[str, str], where: str
) -> None:
    error = RemoteError(5, "x" * size, [1], **options)
    assert str(error) == f"{where}{cut('x' * size, 1000)} (code 5)"
    assert (error.code, error.message, error.data) == (5, "x" * size, [1])
    assert error.method == options.get("method", "")


@pytest.mark.parametrize(
    ("method", "code", "absent"),
    [
        ("resources/read", -32002, True),
        ("resources/read", -32602, True),
        ("resources/read", -32603, False),
        ("tools/call", -32602, False),
    ],
)
def test_two_codes_may_mean_that_a_resource_is_absent(method: str, code: int, absent: bool) -> None:
    assert RemoteError(code, "", method=method).resource_not_found is absent


PEERS = {"supported": ("a", "b"), "offered": ("c",)}
WAIT = {"method": "ping", "seconds": 0.5}
CALL = {"tool": "t", "revision": "r", "result": 1}
FAILED = "tool 't' (r): the tool reported an error"
NEEDS = "needs the package 'p': pip install p"


@pytest.mark.parametrize(
    ("kind", "kept", "more", "text"),
    [
        (RevisionError, PEERS, {"message": "no"}, "no; this side speaks a, b; the peer offers c"),
        (RequestTimeoutError, WAIT, {"more": "slow"}, "ping: no answer within 0.5 s; slow"),
        (ToolResultError, CALL, {"text": "no", "reason": "why"}, "tool 't' (r): no: why"),
        (ToolFailedError, CALL | {"message": ""}, {}, f"{FAILED}: no text"),
        (ToolFailedError, CALL | {"message": "x" * 1000}, {}, f"{FAILED}: {'x' * 1000}"),
        (OAuthError, {"code": "c", "description": "n\n"}, {"where": "end"}, r"end: c: n\n"),
        (MissingExtraError, {"package": "p"}, {"feature": "it"}, f"it {NEEDS}"),
        (ConnectFailedError, {"url": URL}, {"reason": "r\n"}, rf"no connection to {URL}: r\n"),
        (FrameError, {"code": -32600}, {"message": "m"}, "m"),
    ],
)
def test_further_text_follows_where_there_is_any(
    kind: Callable[..., McpError], kept: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    error = kind(**kept, **more)
    assert str(error) == text
    assert vars(error) == kept


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (b" \n", ""),
        (b"it\n  broke\x1b", r": it broke\x1b"),
        (b"x" * 301, ": " + "x" * 300),
        (b" " * 999 + b"ab", ": a"),
        (b"a\xff", ": a\ufffd"),
    ],
)
def test_the_beginning_of_the_body_of_a_refusal_is_shown(body: bytes, excerpt: str) -> None:
    error = HttpStatusError(URL, 404, "Not Found", body)
    assert str(error) == f"{URL} answered HTTP 404 Not Found{excerpt}"
    assert error.body == body
    assert str(HttpStatusError(URL, 404, "", body)) == f"{URL} answered HTTP 404{excerpt}"


@pytest.mark.parametrize(
    ("status", "wants_credentials", "may_pass"),
    [
        (401, True, False),
        (407, True, False),
        (499, False, False),
        (500, False, True),
    ],
)
def test_a_status_says_what_may_help(status: int, wants_credentials: bool, may_pass: bool) -> None:
    error = HttpStatusError(URL, status, "")
    assert (error.status, error.url, error.reason) == (status, URL, "")
    assert (error.wants_credentials, error.may_pass) == (wants_credentials, may_pass)
