"""Addresses of metadata documents, made from identifiers."""

from __future__ import annotations

import pytest

from mcpgen_runtime.auth.identifiers import (
    canonical_uri,
    comparable_uri,
    includes_url,
    origin_of,
    protected_resource_url,
)
from requirements import EVERY_REVISION, requirement

PRM = "/.well-known/oauth-protected-resource"


@requirement("auth-server-metadata.prm-path-insertion", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://h", f"https://h{PRM}"),
        ("https://h/", f"https://h{PRM}"),
        ("https://h/mcp", f"https://h{PRM}/mcp"),
        ("https://h/mcp/", f"https://h{PRM}/mcp/"),
        ("https://h:8443/a/b", f"https://h:8443{PRM}/a/b"),
        ("https://h/mcp?x=1#part", f"https://h{PRM}/mcp?x=1"),
        ("https://user:secret@h/mcp", f"https://h{PRM}/mcp"),
    ],
)
def test_the_suffix_is_inserted_before_the_path_of_a_resource(resource: str, url: str) -> None:
    assert protected_resource_url(resource) == url


@requirement("auth-server-metadata.legacy-base-url", revisions=EVERY_REVISION)
def test_an_origin_has_no_path_and_no_credentials() -> None:
    assert origin_of("https://user:secret@API.example.com:8443/v1/mcp?x#y") == (
        "https://api.example.com:8443"
    )


@pytest.mark.parametrize(
    ("uri", "canonical", "comparable"),
    [
        ("HTTPS://Host/", "https://host", "https://host"),
        ("https://Host:443/A", "https://host:443/A", "https://host/A"),
        ("https://h:4430/", "https://h:4430", "https://h:4430"),
        ("http://h:80?Q#F", "http://h:80?Q#F", "http://h?Q#F"),
        ("http://h:443", "http://h:443", "http://h:443"),
        ("WS://H:80/", "ws://h:80", "ws://h:80"),
        ("URN:Server", "URN:Server", "URN:Server"),
        ("HTTPS:///Path", "HTTPS:///Path", "HTTPS:///Path"),
    ],
)
def test_uris_are_compared_without_case_and_default_port(
    uri: str, canonical: str, comparable: str
) -> None:
    assert (canonical_uri(uri), comparable_uri(uri)) == (canonical, comparable)


@pytest.mark.parametrize(
    ("url", "same_or_parents", "others"),
    [
        (
            "https://h/v1/mcp",
            (
                "https://h/v1/mcp https://h/v1/mcp/ https://h/v1 https://h/v1/ https://h https://h/"
                " HTTPS://H/v1/mcp https://h:443 https://H:443/v1"
            ),
            (
                "http://h/v1/mcp https://other/v1/mcp https://h.other/v1/mcp https://other https://h:8443"
                " https://user@h/v1/mcp https://h@other/v1/mcp https://h./v1 //h/v1/mcp /v1/mcp h *"
                " https:///v1/mcp https://h/v2/mcp https://h/v1/mc https://h/v1/mcp2 https://h/v1/mcp/x"
                " https://h/v https://h/V1 https://h//v1/mcp https://h/v1//mcp https://h/v1// https://h//"
                " https://h/v1/mcp// https://h/./v1 https://h/x/../v1 https://h/%76%31 https://h/v1%2Fmcp"
                " https://h/v1/mcp?x https://h/v1? https://h? https://h/v1/mcp# https://h# https://h/v1#x"
                " https://h\\ https://h/v1\\ https://h\t/v1"
            ),
        ),
        ("https://h", "https://h https://h/ https://h:443/", "https://h/mcp https://h//"),
        ("https://h/mcp/", "https://h/mcp/ https://h/mcp https://h/", "https://h/mcp//"),
        ("https://h/mcp//", "https://h/mcp// https://h/mcp https://h/mcp/", "https://h/mc"),
        (
            "https://h/mcp?tenant=1#x",
            "https://h/mcp?tenant=1 https://h/mcp https://h/mcp/ https://h",
            "https://h/mcp?tenant=2 https://h/mcp/?tenant=1 https://h?tenant=1 https://h/mcp?",
        ),
        ("https://h/a%2Fb/mcp", "https://h/a%2Fb https://h", "https://h/a https://h/a/b"),
        (
            "https://h/a/../b",
            "https://h/a/../b https://h",
            "https://h/a https://h/a/.. https://h/b",
        ),
        ("https://h/a/%2E%2e/b", "https://h/a/%2E%2e/b https://h", "https://h/a https://h/b"),
        ("http://h:80/mcp", "http://h/ http://h:80/mcp", "http://h:443/mcp https://h/mcp"),
        ("https://[::1]:443/mcp", "https://[::1] https://[::1]/mcp", "https://[::2] https://::1"),
    ],
)
def test_a_resource_includes_what_lies_below_its_path(
    url: str, same_or_parents: str, others: str
) -> None:
    for resource in same_or_parents.split(" "):
        assert includes_url(resource, url), resource
    for resource in others.split(" "):
        assert not includes_url(resource, url), resource
