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


REMOTE = AddressCheck("https://mcp.example/mcp", AddressRules())
LOCAL = AddressCheck("http://localhost:8000/mcp", AddressRules())
PRIVATE = AddressCheck("https://mcp.example/mcp", AddressRules(private=True, plain_http=True))
NEVER = """
    169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 [::ffff:169.254.169.254]
    [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::] [fe80::1] 0.0.0.0 [::] 224.0.0.1
    192.0.0.8 192.88.99.1 198.18.0.1 240.0.0.1 [::127.0.0.1] [::a9fe:a9fe] [::ffff:0:127.0.0.1]
    [::5efe:7f00:1] [2606:4700::5efe:a9fe:a9fe] [2606:4700::200:5efe:a9fe:a9fe]
    [64:ff9b:1::7f00:1] [64:ff9b:1::808:808] [2001:0:7f00:1::] [2001:db8::1] [3fff::1] [100::1]
    [fec0::1] [ff02::1]
"""
"""Hosts that nobody may name, in all the ways to write them."""
LOOPBACK = """
    127.0.0.1 127.1 127.8.9.1 2130706433 0x7f000001 017700000001 [::1] [::ffff:127.0.0.1]
    localhost LOCALHOST. a.localhost
"""
INTERNAL = "10.0.0.1 172.16.5.4 192.168.1.1 [fc00::1] [::ffff:10.0.0.1] 167772161"


@requirement(
    "auth-security.ssrf-considered",
    "auth-security.ssrf-private-ranges",
    "auth-security.ssrf-no-own-ip-parser",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("host", [*NEVER.split(), *LOOPBACK.split(), *INTERNAL.split()])
def test_a_private_address_is_named_by_nobody_but_its_neighbours(host: str) -> None:
    url = f"https://{host}/"
    with pytest.raises(AuthorizationError, match="the member: the URL leads to") as caught:
        REMOTE.check(url, "the member")
    assert host not in str(caught.value)
    for check, allowed in ((LOCAL, LOOPBACK), (PRIVATE, INTERNAL)):
        if host in allowed.split():
            assert check.check(url, "the member") == url
        else:
            with pytest.raises(AuthorizationError):
                check.check(url, "the member")


REFUSED = r"""
    javascript:alert(1) JavaScript:alert(1) data:text/html,x file:///etc/passwd vbscript:x custom:x
    ftp://as.example/ http://as.example/ http://localhost/ https:///path https:// //as.example/
    https://as.example:0/ https://as.example:99999/ https://user:secret@as.example/
    https://as.example/" https://as.example/`id` https://as.example/$(id) https://as.example/;id
    https://as.example/|id https://as.example\@evil.example/ https://127.0.0.1%00.as.example/
    https://%31%32%37.0.0.1/ https://as%2eexample/ https://[fe80::1%25eth0]/
    https://[fe80::1%eth0]/ https://[2606:4700::1%25eth0]/ https://[v1.a]/ https://[127.0.0.1]/
    https://1.2.3.4.5/ https://256.1.1.1/ https://as.example.0x7f/ https://as..example/
    https://as+example/
"""


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
        *REFUSED.split(),
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "https://as.example/a b",
        "https://as.example/\x00",
        "https://as.ex\u0430mple/",
        "https://127\u30020\u30020\u30021/",
        "https://\u2460\u2461\u2466.0.0.1/",
        "https://as.example\u2024/",
        "https://as.example/" + "a" * 8192,
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
        "https://localhost.example/",
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
    ("addresses", "permitted"),
    [
        ("1.1.1.1 64:ff9b::101:101 2606:4700::1111", True),
        ("127.0.0.1 10.0.0.1 169.254.169.254 192.0.0.8 nonsense", False),
        ("::ffff:127.0.0.1 ::7f00:1 ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe", False),
        ("fe80::1%eth0 2606:4700::1%eth0 fec0::1 2606:4700::5efe:7f00:1", False),
    ],
)
def test_resolved_addresses_are_checked(addresses: str, permitted: bool) -> None:
    for address in addresses.split():
        assert REMOTE.permits(address) is permitted, address


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
