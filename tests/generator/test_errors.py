"""Errors of the generator: one text, and its parts for programs."""

from __future__ import annotations

from datetime import date

import pytest

from mcpgen.errors import (
    InputError,
    PatchError,
    SchemaError,
    TemplateError,
    TypeScriptError,
    format_value,
    safe_text,
)


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (SchemaError("a", "/$defs/A", "x", "y"), "a#/$defs/A"),
        (TypeScriptError("a", 3, 7, "x", "y"), "a:3:7"),
        (PatchError("a", "", "x", "y", "<<<"), "a"),
    ],
)
def test_an_error_of_input_has_its_parts_and_one_text(error: InputError, place: str) -> None:
    assert str(error) == f"{place}: expected x, got y"
    parts = (error.source, error.pointer, error.expected, error.came)
    assert parts == ("a", place.partition("#")[2], "x", "y")


def test_errors_keep_their_places_for_programs() -> None:
    assert (str(TemplateError("a.jinja", None, "why")), TemplateError("a", 4, "b").line) == (
        "a.jinja: why",
        4,
    )
    error = TypeScriptError("a", 3, 7, "x", "y")
    assert (error.line, error.column) == (3, 7)
    assert PatchError("a", "", "x", "y", "<<<").details == "<<<"
    long = str(SchemaError("f", "/" + "a" * 5_000, "x", "y"))
    assert long.endswith("a...: expected x, got y")
    assert len(long) < 400


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a" * 5_000, "a" * 200 + "..."),
        ("gr\xfc\xdf", "gr\xfc\xdf"),
        ("a\n\x1b[1m\u202e", "a\\n\\x1b[1m\\u202e"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_foreign_text_is_one_printable_line(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a" * 5_000, f'"{"a" * 56}...'),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (date(2020, 1, 2), '"2020-01-02"'),
    ],
)
def test_a_value_is_shown_as_json_of_60_characters(value: object, shown: str) -> None:
    assert format_value(value) == shown
