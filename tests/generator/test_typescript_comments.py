"""Documentation comments of TypeScript: the description, and the values of tags."""

from __future__ import annotations

from typing import Any

import pytest

from generator.typescript_text import read
from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript.comments import WrongTagError, read_comment

TYPES = "array, boolean, integer, null, number, object, string"


@pytest.mark.parametrize(
    ("tags", "keywords"),
    [
        ("@minimum -0.5", {"minimum": -0.5}),
        ("@multipleOf 1234567890123456", {"multipleOf": 1234567890123456}),
        ("@maxItems 999999999999999", {"maxItems": 999999999999999}),
        ("@uniqueItems", {"uniqueItems": True}),
        ("@uniqueItems true", {"uniqueItems": True}),
        ("@default -Infinity", {"default": "-Infinity"}),
        ("@additionalProperties false", {"additionalProperties": False}),
        ("@deprecated since long", {"deprecated": True}),
        ("@type null", {"type": "null"}),
        (f"@pattern {'x' * 2000}", {"pattern": "x" * 2000}),
        ("@default [1, 2", {"default": "[1, 2"}),
        (f"@default {'[' * 100_000}", {"default": "[" * 100_000}),
        ("@contentEncoding base64\n * more", {"contentEncoding": "base64 more"}),
        ("@see @minimum 1", {"minimum": 1}),
        ("@minimumX 1 @format-x y @TJS-format z", {"format": "z"}),
        ("```\n * @minimum 1\n * ```\n * @maximum 2", {"maximum": 2}),
        ("@maximum 3" + "\n@x" * 999, {"maximum": 3}),
    ],
)
def test_tags_set_keywords(tags: str, keywords: dict[str, Any]) -> None:
    comment = read_comment(f"/**\n * Text.\n * {tags}\n */")
    assert comment.keywords == keywords
    assert (comment.nullable, comment.ignored) == (False, False)
    assert {type(value) for value in comment.keywords.values()} == {
        type(value) for value in keywords.values()
    }


@pytest.mark.parametrize(
    ("tags", "expected", "actual"),
    [
        ("@minimum 01", "a number after @minimum", "01"),
        ("@minimum 12345678901234567", "a number after @minimum", "12345678901234567"),
        ("@minLength 1234567890123456", "a count after @minLength", "1234567890123456"),
        ("@maxItems \u0663", "a count after @maxItems", "\u0663"),
        ("@format", "a text of at most 2000 characters after @format", ""),
        ("@type text", f"one of {TYPES} after @type", "text"),
        ("@uniqueItems no", "true or false after @uniqueItems", "no"),
        (f"@format {'x' * 2001}", "a text of at most 2000 characters after @format", "x" * 2001),
        ("@x\n" * 1001, "at most 1000 tags in a comment", "1001"),
    ],
)
def test_a_tag_with_another_value_is_an_error(tags: str, expected: str, actual: str) -> None:
    with pytest.raises(WrongTagError) as caught:
        read_comment(f"/** {tags} */")
    assert (caught.value.expected, caught.value.actual) == (expected, actual)
    assert str(caught.value) == f"expected {expected}, got {actual}"
    with pytest.raises(TypeScriptError) as refused:
        read(f"interface It {{\n  /** {tags}\n */ it: string }}")
    assert str(refused.value).startswith(f"s.ts:2:3: expected {expected}, got ")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/**\n * One.\n *\n *  Two. \n * @see x\n * y\n */", "One.\n\n Two."),
        (
            "/** A {@link Tool}, {@linkcode Tool | tools} and {@linkplain T|}. */",
            "A Tool, tools and T.",
        ),
        ("/** No {@inheritDoc Tool} here. */", "No  here."),
        ("/** ```\n * @see {@link A}\n * ``` */", "```\n@see A\n```"),
        (
            "/**\n   * Two\n   * lines.\n   *\n   * - more\n   *   within\n   */",
            "Two\nlines.\n\n- more\n  within",
        ),
        ("/** {@includeCode ./../../secret.json}Text. */", "Text."),
        ("/** {@link unfinished */", "{@link unfinished"),
        ("/** */", ""),
    ],
)
def test_the_description_is_the_text_before_the_tags(text: str, shown: str) -> None:
    assert read_comment(text).text == shown
