"""Errors of the generator: one text, and its parts for programs."""

from __future__ import annotations

import pytest

from mcpgen.errors import InputError, PatchError, SchemaError, TemplateError, TypeScriptError


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


@pytest.mark.parametrize(("line", "text"), [(None, "a.jinja: why"), (4, "a.jinja:4: why")])
def test_an_error_of_a_template_has_its_line_if_it_has_one(line: int | None, text: str) -> None:
    error = TemplateError("a.jinja", line, "why")
    assert (str(error), error.source, error.line) == (text, "a.jinja", line)
