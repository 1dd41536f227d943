"""Foreign texts and values, as errors show them."""

from __future__ import annotations

from datetime import date

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen import errors
from mcpgen.errors import format_value, safe_text


def test_an_error_has_its_data_beside_its_line(snapshot: SnapshotAssertion) -> None:
    shown = (
        errors.InputError("a", f"/{'x' * 300}", "b", "c"),
        errors.TypeScriptError("a", 1, 2, "b", "c"),
        errors.PatchError("a", "", "b", "c", "d"),
        *(errors.TemplateError("a", line, "b") for line in (3, None)),
    )
    assert [(str(error), vars(error)) for error in shown] == snapshot


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a" * 5_000, "a" * 200 + "..."),
        ("a" * 200, "a" * 200),
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
        ("a" * 58, f'"{"a" * 58}"'),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (date(2020, 1, 2), '"2020-01-02"'),
    ],
)
def test_a_value_is_shown_as_json_of_60_characters(value: object, shown: str) -> None:
    assert format_value(value) == shown
