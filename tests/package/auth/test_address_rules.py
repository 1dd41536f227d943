"""Addresses: those of resources and issuers, and which of them a client may use."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from mcpgen_runtime import AddressRules, AuthorizationError
from mcpgen_runtime.auth.address_rules import AddressCheck, checked_https_url
from mcpgen_runtime.auth.identifiers import (
    canonical_uri,
    comparable_uri,
    includes_url,
    origin_of,
    protected_resource_url,
)
from package.tables import table
from requirements import EVERY_REVISION, requirement

ADDRESSES = table("addresses")
"""URLs and hosts: those that nobody may name, in all the ways to write them, and others."""


@requirement("auth-server-metadata.prm-path-insertion", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("resource", "url"), ADDRESSES["metadata_urls"].items())
def test_the_suffix_is_inserted_before_the_path_of_a_resource(resource: str, url: str) -> None:
    assert protected_resource_url(resource) == url


@requirement("auth-server-metadata.legacy-base-url", revisions=EVERY_REVISION)
def test_an_origin_has_no_path_and_no_credentials() -> None:
    assert origin_of("https://user:secret@API.example.com:8443/v1/mcp?x#y") == (
        "https://api.example.com:8443"
    )


@pytest.mark.parametrize(("uri", "forms"), ADDRESSES["canonical_and_comparable"].items())
def test_uris_are_compared_without_case_and_default_port(uri: str, forms: list[str]) -> None:
    assert [canonical_uri(uri), comparable_uri(uri)] == forms


@pytest.mark.parametrize(("url", "resources"), ADDRESSES["resources_of_urls"].items())
def test_a_resource_includes_what_lies_below_its_path(
    url: str, resources: dict[str, list[str]]
) -> None:
    for kind in ("included", "others"):
        included = {resource: includes_url(resource, url) for resource in resources[kind]}
        assert set(included.values()) == {kind == "included"}, included


REMOTE = AddressCheck("https://mcp.example/mcp", AddressRules())
LOCAL = AddressCheck("http://localhost:8000/mcp", AddressRules())
PRIVATE = AddressCheck("https://mcp.example/mcp", AddressRules(private=True, plain_http=True))


@requirement(
    "auth-security.ssrf-considered",
    "auth-security.ssrf-private-ranges",
    "auth-security.ssrf-no-own-ip-parser",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    "host", [host for kind in ("never", "loopback", "internal") for host in ADDRESSES[kind]]
)
def test_a_private_address_is_named_by_nobody_but_its_neighbours(host: str) -> None:
    url = f"https://{host}/"
    with pytest.raises(AuthorizationError, match="the member: the URL leads to") as caught:
        REMOTE.check(url, "the member")
    assert host not in str(caught.value)
    for check, allowed in ((LOCAL, ADDRESSES["loopback"]), (PRIVATE, ADDRESSES["internal"])):
        if host in allowed:
            assert check.check(url, "the member") == url
        else:
            with pytest.raises(AuthorizationError):
                check.check(url, "the member")


@requirement(
    "auth-security.url-scheme-allowlist",
    "auth-security.url-dangerous-rejected",
    "auth-security.url-allowlist-not-blocklist",
    "auth-security.url-sanitize",
    "auth-security.ssrf-https",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("url", [*ADDRESSES["refused"], "https://as.example/" + "a" * 8192])
def test_only_plain_https_addresses_are_used(url: object) -> None:
    with pytest.raises(AuthorizationError, match=r"^the member: ") as caught:
        REMOTE.check(url, "the member")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ADDRESSES["public"])
def test_public_addresses_are_used_as_they_are(url: str) -> None:
    assert REMOTE.check(url, "the member") == url


@requirement("auth-security.ssrf-dns-rebinding", revisions=EVERY_REVISION)
@pytest.mark.parametrize("kind", ["permitted", "refused"])
def test_resolved_addresses_are_checked(kind: str) -> None:
    permits = {address: REMOTE.permits(address) for address in ADDRESSES["resolved"][kind]}
    assert set(permits.values()) == {kind == "permitted"}, permits


@requirement("auth-security.https-in-production", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("url", "plain_http", "text"),
    [
        ("http://mcp.example/mcp", False, "expected https"),
        ("http://10.0.0.1/mcp", False, "expected https"),
        ("http://127.0.0.1.example/mcp", False, "expected https"),
        ("https://user:secret@mcp.example/mcp", False, "no credentials"),
        ("http://localhost:3000/mcp", False, None),
        ("http://127.0.0.1/mcp", False, None),
        ("http://[::1]/mcp", False, None),
        ("http://mcp.internal/mcp", True, None),
    ],
)
def test_a_token_goes_without_tls_to_loopback_or_where_allowed(
    url: str, plain_http: bool, text: str | None
) -> None:
    check = AddressCheck(url, AddressRules(plain_http=plain_http))
    if text is None:
        check.check_server(url)
        assert check.check(url.replace("/mcp", "/x"), "the member")
        return
    with pytest.raises(AuthorizationError, match=text) as caught:
        check.check_server(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("server", "plain_http", "url", "used"),
    [
        ("http://localhost/mcp", False, "http://127.0.0.1:9/", True),
        ("http://localhost/mcp", False, "http://as.example/", False),
        ("http://localhost/mcp", True, "http://as.example/", True),
        ("https://mcp.example/mcp", False, "http://127.0.0.1:9/", False),
        ("https://mcp.example/mcp", True, "http://as.example/", True),
        ("https://mcp.example/mcp", True, "http://127.0.0.1:9/", False),
        ("no URL", False, "https://localhost/", False),
    ],
)
def test_plain_http_is_for_loopback_or_where_allowed(
    server: str, plain_http: bool, url: str, used: bool
) -> None:
    check = AddressCheck(server, AddressRules(plain_http=plain_http))
    with nullcontext() if used else pytest.raises(AuthorizationError):
        assert check.check(url, "the member") == url


CONFIGURED = "jwks: expected an https URL"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://as.example/jwks?a=b", None),
        ("http://localhost:8000/jwks", None),
        ("http://[::1]/jwks", None),
        ("as.example", f"{CONFIGURED} with a host, got 'as.example'"),
        ("https://h:0/", f"{CONFIGURED} with a host, got 'https://h:0/'"),
        ("https://h/#part", f"{CONFIGURED} without fragment and credentials"),
        ("https://me@h/", f"{CONFIGURED} without fragment and credentials"),
        ("http://as.example/", "jwks: expected https, or http to a loopback address"),
    ],
)
def test_a_configured_url_is_https_or_loopback(url: str, error: str | None) -> None:
    if error is None:
        assert checked_https_url("jwks", url) == url
        return
    with pytest.raises(ValueError, match=error):
        checked_https_url("jwks", url)
