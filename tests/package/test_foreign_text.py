"""Text of others is shown within bounds, and controls no terminal and no log file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcpgen_runtime import ValidationError, convert, safe_url
from mcpgen_runtime._wire import error_text
from mcpgen_runtime.foreign_text import (
    has_parent_segment,
    is_scope,
    is_uri,
    may_escape_directory,
    safe_repr,
    safe_text,
    url_complaint,
)
from mcpgen_runtime.r2025_06_18 import models

HARMFUL = [
    *("\x1b[2J", "\u202e", "\n", "\x00", "\x9b31m", "\ud800"),
]


def nested_value(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [{"a": value}]
    return value


@pytest.mark.parametrize("text", HARMFUL)
def test_characters_that_act_on_a_terminal_are_escaped(text: str) -> None:
    assert safe_text(f"a{text}b").isprintable()
    assert safe_repr({text: [text]}).isprintable()
    assert safe_text(f"a{text}b") == "a" + repr(text)[1:-1] + "b"


@pytest.mark.parametrize("text", HARMFUL)
def test_errors_of_the_codec_act_on_no_terminal(text: str) -> None:
    with pytest.raises(ValidationError, match=r"^Expected one of") as caught:
        convert({f"a{text}b": 1, "c" * 1000: 1}, models.EmbeddedResourceResource)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert error_text(ValueError(f"a{text}b - at `$.{text}`")).isprintable()


def test_ordinary_text_is_shown_as_it_is() -> None:
    assert (
        safe_text("weather/forecast f\u00fcr Z\u00fcrich")
        == "weather/forecast f\u00fcr Z\u00fcrich"
    )
    assert safe_repr("it's") == '"it\'s"'
    assert safe_repr({"a": [1, None, True, 1.5]}) == "{'a': [1, None, True, 1.5]}"


@pytest.mark.parametrize("size", [201, 3_000_000])
def test_a_long_text_is_cut_and_its_length_told(size: int) -> None:
    assert (safe_text("x" * 200), safe_repr("x" * 200)) == ("x" * 200, f"'{'x' * 200}'")
    assert safe_text("x" * size) == f"{'x' * 200}... ({size} characters)"
    assert safe_repr("x" * size) == f"'{'x' * 200}'... ({size} characters)"


@pytest.mark.parametrize(
    "value_of",
    [
        lambda: nested_value(50_000),
        lambda: [0] * 1_000_000,
        lambda: {str(n): n for n in range(100_000)},
        lambda: 10**20_000,
    ],
    ids=["deep", "long", "wide", "large"],
)
def test_a_value_is_shown_within_bounds_whatever_its_size(value_of: Callable[[], object]) -> None:
    assert len(safe_repr(value_of())) < 500


def test_an_object_whose_repr_fails_is_named_by_its_type() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RecursionError

    assert safe_repr(Broken()) == "<Broken>"


ENCODED = ["..", "%2e%2E", ".%2e", "%252e%252e"]


@pytest.mark.parametrize("path", [f"{before}{each}" for each in ENCODED for before in ("", "a/")])
@pytest.mark.parametrize("end", ["", "/b", "%2Fb", "\\b", "%5cb"])
def test_a_segment_that_leads_up_is_found_in_any_form(path: str, end: str) -> None:
    assert has_parent_segment(f"file:{path}{end}")
    assert may_escape_directory(f"{path}{end}")


@pytest.mark.parametrize("path", ["a..b", "...", "a/..b/c", "a%2e%2eb", "%25252e%25252e", "a:b"])
def test_other_dots_lead_nowhere(path: str) -> None:
    assert not has_parent_segment(f"file:///{path}")
    assert not may_escape_directory(path.replace("a:b", "1:b"))


@pytest.mark.parametrize("text", ["/a", "\\a", "c:a", "Z:/a", "a\0b", "a%00", "%2fa", "%255ca"])
def test_an_absolute_path_leads_out_of_a_directory(text: str) -> None:
    assert may_escape_directory(text)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("https://a.example/b", None),
        ("http://[::1]:80/", None),
        ("https://a.example:99999/", "expected a URL with a host"),
        ("https://a.example/b c", "expected a URL with a host"),
        ("ftp://a.example/", "expected a URL with the scheme http or https"),
        ("https://b\u00fccher.example/", "expected a URL with an ASCII host and without user name"),
        (
            "https://bank.example@a.example/",
            "expected a URL with an ASCII host and without user name",
        ),
    ],
)
def test_a_complaint_names_what_is_wrong_with_an_address(url: str, complaint: str | None) -> None:
    expected = None if complaint is None else f"{complaint}, got {safe_repr(url)}"
    assert url_complaint(url) == expected
    assert safe_url(url) is (complaint is None)


@pytest.mark.parametrize(
    ("text", "uri", "scope"),
    [
        ("a:b", True, True),
        ("a:%4F", True, True),
        ("a:%4", False, True),
        ("a", False, True),
        ("a:b c", False, False),
    ],
)
def test_uris_and_scopes_have_their_own_characters(text: str, uri: bool, scope: bool) -> None:
    assert is_uri(text) is uri
    assert is_scope(text) is scope
