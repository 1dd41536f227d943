"""Text of others is shown within bounds, and controls no terminal and no log file."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from mcp_protocol._wire import ValidationError, convert, error_text
from mcp_protocol.foreign_text import safe_repr, safe_text
from mcp_protocol.r2025_06_18 import models

HARMFUL = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\u202e",
    "\n",
    "\r",
    "\x00",
    "\x9b31m",
    "\ud800",
    "\u2066",
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


def test_a_message_of_the_protocol_is_shown_as_its_repr() -> None:
    class Point(msgspec.Struct):
        x: int

    assert safe_repr(Point(1)) == "Point(x=1)"
