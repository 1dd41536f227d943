"""URLs, reasons of failures and secrets in logs, as both HTTP libraries share them."""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
from typing import Any

import pytest

from mcpgen_runtime.errors import ConnectFailedError
from mcpgen_runtime.framing.http_hosts import checked_url, format_url, join_urls, same_origin
from mcpgen_runtime.transports.http.http_library import (
    Secrets,
    lost_response_error,
    probe_options,
    reason_of,
)

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:81/a/b?key=secret#part", "https://host:81/a/b"),
        ("http://[user:pw@host?key=s?cret", "host"),
        ("http://[a@b@host/x", "host/x"),
        ("http://[host/a", "http://[host/a"),
        ("a\x1bb", r"a\x1bb"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert format_url(url) == shown


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("http://host:1/a?b=c#d", "http://host:1/a?b=c"),
        ("http://host:65535", "http://host:65535"),
        ("http://u:p@host", "http://u:p@host"),
        ("http://host:0/a", "no connection to http://host:0/a: expected a port from 1 to 65535"),
        (
            "http://host:65536/a",
            "no connection to the server: not a URL: Port out of range 0-65535",
        ),
        ("http:///a", "no connection to http:///a: the URL names no host"),
        (
            "http://host/\x7f",
            "no connection to the server: not a URL: it holds characters that are not printable",
        ),
    ],
)
def test_a_url_has_a_host_and_a_possible_port(url: str, checked: str) -> None:
    if checked.startswith("http"):
        assert checked_url(url) == checked
    else:
        with pytest.raises(ConnectFailedError) as caught:
            checked_url(url)
        assert str(caught.value) == checked


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("/b", "https://host/b"),
        ("b?c#d", "https://host/a/b?c"),
        ("//other:80/b", "https://other:80/b"),
        ("//other:0/b", None),
        ("//[", None),
    ],
)
def test_a_malformed_reference_leads_nowhere(reference: str, joined: str | None) -> None:
    assert join_urls("https://host/a/", reference) == joined


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://host:443/b", True),
        ("https://HOST/b", True),
        ("https://u@host/b", True),
        ("https://host:80/b", False),
        ("http://host:443/b", False),
        ("https://host2/b", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(other: str, same: bool) -> None:
    assert same_origin("https://host/a", other) is same
    assert same_origin(other, "https://host/a") is same


def test_the_default_port_of_http_is_80() -> None:
    assert same_origin("http://host", "http://host:80")
    assert not same_origin("http://host", "http://host:81")


def raised_from(error: Exception, cause: Exception | None) -> Exception:
    """An error that was raised for another one, or beside it."""
    error.__cause__ = cause
    return error


def replacing(error: Exception, context: Exception, *, suppressed: bool) -> Exception:
    """An error that was raised while another one was handled."""
    error.__context__, error.__suppress_context__ = context, suppressed
    return error


REFUSED, RESET = OSError(errno.ECONNREFUSED, "x"), OSError(errno.ECONNRESET, "x")
REFUSED_TEXT, RESET_TEXT = os.strerror(errno.ECONNREFUSED), os.strerror(errno.ECONNRESET)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: REFUSED, REFUSED_TEXT),
        (lambda: OSError(99_999, "own"), "own"),
        (lambda: OSError("plain"), "plain"),
        (lambda: OSError(), "OSError"),
        (lambda: ssl.SSLError(1, "bad certificate"), "bad certificate"),
        (lambda: socket.gaierror(-2, "unknown name"), "unknown name"),
        (lambda: raised_from(ValueError("outer"), REFUSED), REFUSED_TEXT),
        (lambda: raised_from(ValueError("outer"), ValueError("inner")), "outer"),
        (lambda: replacing(ValueError("outer"), REFUSED, suppressed=True), REFUSED_TEXT),
        (lambda: replacing(ValueError("outer"), REFUSED, suppressed=False), "outer"),
        (
            lambda: ExceptionGroup("several", [REFUSED, RESET, REFUSED]),
            f"{REFUSED_TEXT}; {RESET_TEXT}",
        ),
    ],
)
def test_the_reason_of_a_failure_is_that_of_the_system(make: Any, reason: str) -> None:
    error = make()
    assert reason_of(error) == reason
    assert str(lost_response_error("http://u@host/a?b", error)) == (
        f"http://host/a: the connection broke before the answer was there: {reason}"
    )
    assert str(lost_response_error("http://host/a", error, "own")).endswith(": own")


def test_connections_are_probed_within_a_minute() -> None:
    with socket.socket() as raw:
        for option, value in probe_options():
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        options = [getattr(socket, name) for name in names if hasattr(socket, name)]
        values = [raw.getsockopt(socket.IPPROTO_TCP, option) for option in options]
    assert values == [30, 10, 3][: len(values)]


def test_a_secret_is_masked_until_its_last_connection_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Secrets(), Secrets()
    for connection in (first, first, second):
        connection.add("hunter2")
    first.add("")
    log = logging.getLogger("httpx2")
    caplog.set_level(logging.INFO, logger="httpx2")
    log.info("%s in %s", "hunter2", "a URL")
    first.clear()
    first.clear()
    log.info("hunter2 again")
    second.clear()
    log.info("hunter2 at last")
    log.info("b'Mcp-Session-Id', b'secret', b'x'; b\"mcp-session-id\", b\"it's\"")
    assert [record.getMessage() for record in caplog.records if record.name == "httpx2"] == [
        "*** in a URL",
        "*** again",
        "hunter2 at last",
        "b'Mcp-Session-Id', b'***', b'x'; b\"mcp-session-id\", b'***'",
    ]
