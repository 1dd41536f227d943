"""Values of header fields, and the hosts of URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from mcpgen_runtime import LocalProtocolError, McpError
from mcpgen_runtime.framing.header_values import (
    decode_value,
    encode_value,
    equals_body_value,
    value_text,
)
from mcpgen_runtime.framing.http_hosts import (
    PUBLIC,
    AddressRules,
    check_token_target,
    checked_url,
    format_url,
    is_loopback,
    join_urls,
    literal_address,
    same_origin,
    split_url,
)
from package.tables import table
from requirements import EVERY_REVISION


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=?base64??=", ""),
        *((half, half) for half in ("=?base64?=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "")),
    ],
)
def test_only_a_value_with_both_ends_is_decoded(value: str, text: str) -> None:
    assert decode_value(value) == text
    assert decode_value(encode_value(value)) == value
    assert encode_value("=?base64?SGVsbG8=") == "=?base64?SGVsbG8="


@pytest.mark.parametrize("value", ["", "a", True, False, 0, 1.0, 2**53 - 1, -(2**53) + 1])
def test_the_text_of_a_value_equals_it(value: Any) -> None:
    text = value_text(value)
    assert text == (value if isinstance(value, str) else str(value).lower().removesuffix(".0"))
    assert equals_body_value(text, value)


@pytest.mark.requirement(
    "headers.value-base64", "headers.sentinel-collision", revisions=EVERY_REVISION
)
@given(st.text(st.characters(blacklist_categories=["Cs"])))
@example("a\tb")
@example("\ttab")
@example("\x7f")
@example("=?base64?=")
@example("=?base64?literal?=")
def test_every_text_comes_back_and_is_safe_in_a_header(text: str) -> None:
    encoded = encode_value(text)
    assert all(" " <= letter <= "~" or letter == "\t" for letter in encoded)
    assert encoded == encoded.strip()
    assert decode_value(encoded) == text


@pytest.mark.parametrize("value", table("header_values")["unreadable"])
def test_a_value_that_cannot_be_read_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"Base64|invalid characters"):
        decode_value(value)


def test_half_a_surrogate_pair_has_no_header() -> None:
    with pytest.raises(LocalProtocolError, match="expected text"):
        encode_value("\ud800")


@pytest.mark.requirement("headers.param-integer-range", revisions=EVERY_REVISION)
@pytest.mark.parametrize("value", [2**53, -(2**53), 1e300, 1.5, float("nan"), None, [1], {"a": 1}])
def test_a_value_that_would_not_arrive_as_it_is_gets_no_header(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match="for a header"):
        value_text(value)


@pytest.mark.requirement("headers.values-case-sensitive", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("header", "body", "same"), table("header_values")["compared"])
def test_a_header_says_what_the_body_says(header: str, body: Any, same: bool) -> None:
    assert equals_body_value(header, body) is same


URLS = """https://h http://h HTTP://H:80/a?b=c#d https://h:0 https://h:1/ https://h:65535 https://h:65536
https://h:65537 https://h:-1 https://h:x https://u:p@h/a?b#c http://u:p@localhost http://localhost
http://127.0.0.1 ftp://h //h h https:// https:///a https://[ http://[::1]:8/ https://:80 https://u@[?q
https://h/\x7f https://h/\xe4 https://h:443/b https://H/b https://u@h/b https://h:80/b http://h:80
http://h:81 http://h:443/b https://h2/a"""
REFERENCES = ("/b", "b?c#d", "//other:80/b", "//other:0/b", "//[", "")
HOSTS = """h localhost LOCALHOST. a.localhost alocalhost localhost.a 127.0.0.1 127.0.0.1. 127.1
2130706433 0x7f.1 0177.0.0.1 128.0.0.1 10.0.0.1 ::1 ::2 ::ffff:127.0.0.1 ::ffff:128.0.0.1
1.2.3.4.5 999 256.1 ."""


def test_each_url_and_host_is_read_as_expected(snapshot: SnapshotAssertion) -> None:
    def read(call: Callable[..., Any], *args: Any) -> str:
        try:
            return f"{call.__name__}: {call(*args)!s}"
        except (McpError, ValueError) as error:
            return f"{call.__name__}: {type(error).__name__}: {error}"

    plain = AddressRules(plain_http=True)
    assert {
        url: [
            *(read(call, url) for call in (split_url, format_url, checked_url)),
            *(read(check_token_target, url, rules) for rules in (PUBLIC, AddressRules(), plain)),
        ]
        for url in URLS.split()
    } == snapshot(name="urls")
    valid = [url for url in URLS.split() if "Error" not in read(split_url, url)]
    assert {
        url: [other for other in valid if same_origin(url, other)] for url in valid
    } == snapshot(name="origins")
    joined = {each: join_urls("https://host/a/", each) for each in REFERENCES}
    assert joined == snapshot(name="joined")

    def packed(host: str) -> str | None:
        address = literal_address(host)
        return None if address is None else address.packed.hex()

    hosts = {host: [read(call, host) for call in (is_loopback, packed)] for host in HOSTS.split()}
    assert hosts == snapshot(name="hosts")
