"""Foreign text as Python source: it stays the text that it was, and never ends its own string."""

from __future__ import annotations

import ast
import math
from typing import Any

import black
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.literals import Code, docstring, literal, source_text

MARKS = [
    *("'", '"', '"""', "'''", "\\", "\n", "\r", "\t", "\f", "\0", "{", "}", "{{", "}}", "%s", "#"),
]
MODE = black.Mode(line_length=100)
"""How Black formats what was rendered."""
FOREIGN = ["\u202e", "\u2028", "\x85", "\ufeff", "\ud800", "\U0001f600", "\xe9", " ", "a"]

texts = st.lists(st.sampled_from(MARKS + FOREIGN) | st.characters(), max_size=12).map("".join)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_a_literal_is_ascii_and_evaluates_to_its_value(value: Any) -> None:
    source = literal(value)
    assert source.isascii()
    assert ast.literal_eval(source) == value
    kept = black.format_str(f"x = {source}\n", mode=MODE).removeprefix("x = ")
    assert ast.literal_eval(kept) == value


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, {1}, object(), ["x", b"y"]])
def test_values_without_a_literal_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a value with a Python literal"):
        literal(value)


@given(texts)
def test_a_docstring_is_one_string_that_holds_its_text(text: str) -> None:
    source = docstring(text)
    assert source.isascii()
    told = ast.literal_eval(source)
    expected = text.replace("\r\n", "\n").expandtabs()
    assert told.replace("'", '"') == expected.replace("'", '"')


@given(texts)
def test_black_keeps_a_docstring_the_only_statement_of_its_class(text: str) -> None:
    tree = ast.parse(black.format_str(f"class A:\n    {docstring(text)}\n", mode=MODE))
    assert len(tree.body) == 1
    assert isinstance(body := tree.body[0], ast.ClassDef)
    assert len(body.body) == 1
    assert isinstance(statement := body.body[0], ast.Expr)
    assert isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize(
    "value",
    [Code("f('x')"), "models.Name | None", "2025-06-18", "list[Any]", "gr\xf6\xdfe", True, 3],
)
def test_a_template_writes_source_names_and_numbers_as_they_are(value: Any) -> None:
    assert source_text(value) == str(value)


@pytest.mark.parametrize("value", ["a'b", 'a"b', "f(x)", "a\nb", "a\\b", "a;b", "a: b", None, 1.5])
def test_a_template_writes_no_text_that_may_hold_anything(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a name or a literal in a template"):
        source_text(value)
