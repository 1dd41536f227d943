"""The structure of a schema: what annotates goes, what binds stays, and one digest for it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen import schema
from mcpgen.schema.structure import replace_at, resolve, subschemas

pytestmark = pytest.mark.lengthy

PROSE = {
    "description": "says",
    "title": "Says",
    "$comment": "hm",
    "examples": [1],
    "deprecated": True,
    "markdownDescription": "*says*",
}


@pytest.mark.parametrize(
    "where",
    [
        lambda inner: inner,
        lambda inner: {"properties": {"x": inner}},
        lambda inner: {"$defs": {"X": inner}, "definitions": {"X": inner}},
        lambda inner: {"items": inner},
        lambda inner: {"additionalProperties": inner},
        lambda inner: {"allOf": [{"not": {"properties": {"a": inner}}}], "anyOf": [inner]},
    ],
)
def test_annotations_go_wherever_a_schema_may_stand(where: Any) -> None:
    annotated, bare = where({**PROSE, "type": "string"}), where({"type": "string"})
    assert schema.structure(annotated) == bare
    assert schema.digest(annotated) == schema.digest(bare)


def test_properties_named_like_annotations_stay() -> None:
    definition = {
        "properties": {name: {"type": "string"} for name in PROSE},
        "required": ["description", "title"],
    }
    assert schema.structure({**definition, **PROSE}) == definition


@pytest.mark.parametrize("keyword", ["const", "default", "enum"])
def test_values_are_not_taken_for_schemas(keyword: str) -> None:
    value = {"description": "a value, not a schema", "properties": {"title": {"title": "x"}}}
    held = [value] if keyword == "enum" else value
    assert schema.structure({keyword: held}) == {keyword: held}


def test_the_digest_is_that_of_the_canonical_json() -> None:
    document = {"type": "object", "title": "x", "properties": {"\u00e9": {"minimum": 1}, "a": True}}
    canonical = '{"properties":{"a":true,"\u00e9":{"minimum":1}},"type":"object"}'
    assert schema.digest(document) == hashlib.sha256(canonical.encode()).hexdigest()
    with pytest.raises(ValueError, match="not JSON compliant"):
        schema.canonical(float("nan"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}, False),
        ({"minimum": 1}, {"minimum": 1.0}, False),
        ({"const": True}, {"const": 1}, False),
        ({"anyOf": [{"description": "x"}]}, {"anyOf": [{"description": "y"}]}, True),
    ],
)
def test_the_digest_counts_what_binds_and_nothing_else(one: Any, other: Any, same: bool) -> None:
    assert (schema.digest(one) == schema.digest(other)) is same


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, [("/a/b", "1 here, 2 there")]),
        ([1, 2], [1, 3], [("/1", "2 here, 3 there")]),
        ([1], [1, 2], [("", "[1] here, [1, 2] there")]),
        ({"a": {}}, {"a": []}, [("/a", "{} here, [] there")]),
        ([], {}, [("", "[] here, {} there")]),
        ({"a": True}, {"a": 1}, [("/a", "true here, 1 there")]),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": "x"}}, [("/a~1b/c~0d", '1 here, "x" there')]),
        ({"a": 1, "b": [2]}, {"b": [2]}, [("/a", "1 here, nothing there")]),
        ({"b": [2]}, {"b": [2], "c": 1}, [("/c", "nothing here, 1 there")]),
    ],
)
def test_every_difference_has_a_pointer(
    ours: Any, theirs: Any, expected: list[tuple[str, str]]
) -> None:
    assert list(schema.difference(ours, theirs)) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON, JSON)
def test_documents_without_a_difference_are_equal(one: Any, other: Any) -> None:
    assert list(schema.difference(one, one)) == []
    differences = list(schema.difference(one, other))
    assert (schema.canonical(one) == schema.canonical(other)) is (differences == [])


def test_pointers_lead_to_the_schemas_they_name() -> None:
    document = {
        "$defs": {
            "a/b": {"properties": {"x~y": {"items": {"type": "string"}}}},
            "C": {"anyOf": [{"const": 1}, {"additionalProperties": {"minimum": 0}}]},
        }
    }
    by_pointer = dict(subschemas(document))
    inner = {f"/$defs/C{place}" for place in ("", "/anyOf/0", "/anyOf/1")}
    inner |= {f"/$defs/a~1b{place}" for place in ("", "/properties/x~0y", "/properties/x~0y/items")}
    assert set(by_pointer) == {"", *inner, "/$defs/C/anyOf/1/additionalProperties"}
    assert all(resolve(document, pointer) is node for pointer, node in by_pointer.items())


@pytest.mark.parametrize("pointer", ["/a/0/b", "/a/x", "/nothing", "/a/7", "/s/x"])
def test_a_pointer_into_nothing_is_an_error(pointer: str) -> None:
    with pytest.raises(LookupError):
        resolve({"a": [[1]], "s": "text"}, pointer)


def test_a_replacement_leaves_the_original_alone() -> None:
    document = {"a": [1, {"b~c": 2}, 4, 5]}
    assert replace_at(document, "/a/1/b~0c", 3) == {"a": [1, {"b~c": 3}, 4, 5]}
    assert replace_at(document, "", 3) == 3
    assert document == {"a": [1, {"b~c": 2}, 4, 5]}
