"""Documentation comments of TypeScript: the description, and the values of tags."""

from __future__ import annotations

from typing import Any

import pytest

from generator.tables import table
from generator.typescript_text import read
from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript.comments import WrongTagError, read_comment

DESCRIPTIONS: dict[str, str] = table("typescript")["descriptions"]
TAGS: dict[str, dict[str, Any]] = table("typescript")["tags of keywords"]
TYPES = "array, boolean, integer, null, number, object, string"


@pytest.mark.parametrize(
    ("tags", "keywords"),
    [
        *TAGS.items(),
        (f"@pattern {'x' * 2000}", {"pattern": "x" * 2000}),
        (f"@default {'[' * 100_000}", {"default": "[" * 100_000}),
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


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_the_description_is_the_text_before_the_tags(text: str) -> None:
    assert read_comment(text).text == DESCRIPTIONS[text]
