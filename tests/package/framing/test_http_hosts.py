"""URLs of servers: shown without secrets, checked, joined, and compared by their origin."""

from __future__ import annotations

import pytest

from mcpgen_runtime import ConnectFailedError
from mcpgen_runtime.framing.http_hosts import checked_url, format_url, join_urls, same_origin


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
    ],
)
def test_a_url_with_a_host_and_a_possible_port_is_used(url: str, checked: str) -> None:
    assert checked_url(url) == checked


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://host:0/a", "http://host:0/a: expected a port from 1 to 65535"),
        ("http://host:65536/a", "the server: not a URL: Port out of range 0-65535"),
        ("http:///a", "http:///a: the URL names no host"),
        ("http://host/\x7f", "not a URL: it holds characters that are not printable"),
    ],
)
def test_another_url_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ConnectFailedError, match=f"^no connection to .*{reason}$"):
        checked_url(url)


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
    ("one", "other", "same"),
    [
        ("https://host/a", "https://host:443/b", True),
        ("https://host/a", "https://HOST/b", True),
        ("https://host/a", "https://u@host/b", True),
        ("http://host", "http://host:80", True),
        ("http://host", "http://host:81", False),
        ("https://host/a", "https://host:80/b", False),
        ("https://host/a", "http://host:443/b", False),
        ("https://host/a", "https://host2/b", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert same_origin(one, other) is same_origin(other, one) is same
