"""Addresses that a client does not fetch, whoever names them."""

from __future__ import annotations

import pytest

from mcpgen_runtime.auth.address_rules import (
    URL_CHARACTERS,
    AddressCheck,
    checked_https_url,
    is_plain_host,
)
from mcpgen_runtime.errors import AuthorizationError
from mcpgen_runtime.framing.http_hosts import AddressRules, is_loopback
from requirements import EVERY_REVISION, requirement

REMOTE = AddressCheck("https://mcp.example/mcp", AddressRules())
LOCAL = AddressCheck("http://localhost:8000/mcp", AddressRules())
PRIVATE = AddressCheck("https://mcp.example/mcp", AddressRules(private=True, plain_http=True))

NEVER = (
    "https://169.254.169.254/latest/meta-data",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2002:a9fe:a9fe::]/",
    "https://[fe80::1]/",
    "https://0.0.0.0/",
    "https://[::]/",
    "https://224.0.0.1/",
    "https://192.0.0.8/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://240.0.0.1/",
    "https://[::127.0.0.1]/",
    "https://[::a9fe:a9fe]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[::5efe:7f00:1]/",
    "https://[2606:4700::5efe:a9fe:a9fe]/",
    "https://[2606:4700::200:5efe:a9fe:a9fe]/",
    "https://[64:ff9b:1::7f00:1]/",
    "https://[64:ff9b:1::808:808]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[100::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
)
LOOPBACK = (
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://a.localhost/",
)
INTERNAL = (
    "https://10.0.0.1/",
    "https://172.16.5.4/",
    "https://192.168.1.1/",
    "https://[fc00::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://167772161/",
)


@requirement(
    "auth-security.ssrf-considered",
    "auth-security.ssrf-private-ranges",
    "auth-security.ssrf-no-own-ip-parser",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("url", [*NEVER, *LOOPBACK, *INTERNAL])
def test_a_remote_server_can_name_no_private_address(url: str) -> None:
    with pytest.raises(AuthorizationError, match="the member: the URL leads to") as caught:
        REMOTE.check(url, "the member")
    assert url.split("/")[2] not in str(caught.value)


@pytest.mark.parametrize("url", LOOPBACK)
def test_loopback_may_be_named_by_a_server_that_is_loopback(url: str) -> None:
    assert LOCAL.check(url, "the member") == url


@pytest.mark.parametrize("url", [*NEVER, *INTERNAL])
def test_a_loopback_server_can_name_no_other_private_address(url: str) -> None:
    with pytest.raises(AuthorizationError):
        LOCAL.check(url, "the member")


def test_private_networks_can_be_allowed_but_not_link_local_ones() -> None:
    for url in INTERNAL:
        assert PRIVATE.check(url, "the member") == url
    for url in (*NEVER, *LOOPBACK):
        with pytest.raises(AuthorizationError):
            PRIVATE.check(url, "the member")


@requirement(
    "auth-security.url-scheme-allowlist",
    "auth-security.url-dangerous-rejected",
    "auth-security.url-allowlist-not-blocklist",
    "auth-security.url-sanitize",
    "auth-security.ssrf-https",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "custom:x",
        "ftp://as.example/",
        "http://as.example/",
        "http://localhost/",
        "https:///path",
        "https://",
        "https://as.example:0/",
        "https://as.example:99999/",
        "https://user:secret@as.example/",
        "https://as.example/a b",
        'https://as.example/"',
        "https://as.example/`id`",
        "https://as.example/$(id)",
        "https://as.example/;id",
        "https://as.example/|id",
        "https://as.example\\@evil.example/",
        "https://as.example/\x00",
        "https://as.ex\u0430mple/",
        "https://127.0.0.1%00.as.example/",
        "https://%31%32%37.0.0.1/",
        "https://as%2eexample/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[2606:4700::1%25eth0]/",
        "https://127\u30020\u30020\u30021/",
        "https://\u2460\u2461\u2466.0.0.1/",
        "https://as.example\u2024/",
        "https://[v1.a]/",
        "https://[127.0.0.1]/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        "https://as.example.0x7f/",
        "https://as..example/",
        "https://as+example/",
        "https://as.example/" + "a" * 8192,
        "//as.example/",
        "",
        None,
        7,
        ["https://as.example/"],
    ],
)
def test_only_plain_https_addresses_are_used(url: object) -> None:
    with pytest.raises(AuthorizationError, match=r"^the member: ") as caught:
        REMOTE.check(url, "the member")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://as.example/authorize?tenant=a&b=c",
        "https://as.example/a%20b?c=%25",
        "https://as.example.:8443/",
        "https://my_as.xn--bcher-kva.example/",
        "https://as.example.4you/",
        "https://1.1.1.1/",
        "https://[2606::1]/",
        "https://[64:ff9b::101:101]/",
        "https://[::ffff:1.1.1.1]/",
    ],
)
def test_public_addresses_are_used_as_they_are(url: str) -> None:
    assert REMOTE.check(url, "the member") == url


@requirement("auth-security.ssrf-dns-rebinding", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("address", "permitted"),
    [
        ("1.1.1.1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("::ffff:127.0.0.1", False),
        ("fe80::1%eth0", False),
        ("2606:4700::1%eth0", False),
        ("::7f00:1", False),
        ("::ffff:0:7f00:1", False),
        ("fec0::1", False),
        ("192.0.0.8", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::7f00:1", False),
        ("2606:4700::5efe:7f00:1", False),
        ("64:ff9b::101:101", True),
        ("2606:4700::1111", True),
        ("nonsense", False),
    ],
)
def test_resolved_addresses_are_checked(address: str, permitted: bool) -> None:
    assert REMOTE.permits(address) is permitted


@requirement("auth-security.https-in-production", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://mcp.example/mcp", "expected https"),
        ("http://10.0.0.1/mcp", "expected https"),
        ("https://user:secret@mcp.example/mcp", "no credentials"),
    ],
)
def test_no_token_goes_to_a_server_without_tls(url: str, text: str) -> None:
    with pytest.raises(AuthorizationError, match=text) as caught:
        AddressCheck(url, AddressRules()).check_server(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "rules"),
    [
        ("http://localhost:3000/mcp", AddressRules()),
        ("http://127.0.0.1/mcp", AddressRules()),
        ("http://[::1]/mcp", AddressRules()),
        ("http://mcp.internal/mcp", AddressRules(plain_http=True)),
    ],
)
def test_a_token_goes_without_tls_to_loopback_or_where_allowed(
    url: str, rules: AddressRules
) -> None:
    refused = False
    try:
        AddressCheck(url, rules).check_server(url)
    except AuthorizationError:
        refused = True
    assert not refused


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("LocalHost.", True),
        ("a.localhost", True),
        ("127.8.9.1", True),
        ("0x7f000001", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
    ],
)
def test_loopback_is_told_by_name_and_by_any_form_of_address(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


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
    addresses = AddressCheck(server, AddressRules(plain_http=plain_http))
    refused = False
    try:
        addresses.check(url, "the member")
    except AuthorizationError:
        refused = True
    assert refused is not used


def test_private_addresses_and_plain_http_are_refused_by_default() -> None:
    for url in ("https://10.0.0.1/", "http://as.example/"):
        with pytest.raises(AuthorizationError):
            AddressCheck("https://mcp.example/mcp", AddressRules()).check(url, "the member")


def test_a_url_may_be_as_long_as_the_limit() -> None:
    url = "https://as.example/".ljust(URL_CHARACTERS, "a")
    assert REMOTE.check(url, "the member") == url
    with pytest.raises(AuthorizationError, match="at most 8192 characters"):
        REMOTE.check(f"{url}a", "the member")


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("as.example", True),
        ("as.example.", True),
        ("10.0.0.1", True),
        ("fe80::1", True),
        ("fe80::1%eth0", False),
        ("1.2.3.4.5", False),
        ("", False),
    ],
)
def test_a_host_is_an_address_or_a_name_that_reads_as_none(host: str, plain: bool) -> None:
    assert is_plain_host(host) is plain


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://as.example/jwks?a=b", None),
        ("http://localhost:8000/jwks", None),
        ("http://[::1]/jwks", None),
        ("as.example", "jwks: expected an https URL with a host, got 'as.example'"),
        ("https://h:0/", "jwks: expected an https URL with a host, got 'https://h:0/'"),
        (
            "https://h/#part",
            "jwks: expected an https URL without fragment and credentials, got 'https://h/#part'",
        ),
        (
            "https://me@h/",
            "jwks: expected an https URL without fragment and credentials, got 'https://me@h/'",
        ),
        (
            "http://as.example/",
            "jwks: expected https, or http to a loopback address, got 'http://as.example/'",
        ),
    ],
)
def test_a_configured_url_is_https_or_loopback(url: str, error: str | None) -> None:
    if error is None:
        assert checked_https_url("jwks", url) == url
        return
    with pytest.raises(ValueError, match="jwks: expected") as caught:
        checked_https_url("jwks", url)
    assert str(caught.value) == error
