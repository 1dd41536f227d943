"""URLs of servers: shown without secrets, checked, joined, and compared by their origin."""

from __future__ import annotations

import pytest

from mcpgen_runtime.framing.http_hosts import join_urls, same_origin


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
