"""Pairs of JSON Schemas, the second mostly a change of the first, and values near a schema."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any] | bool

_SCALARS = ("a", "b", "c", "ab", 1, 2, True, None)
_OBJECT = {"type": "object", "required": ["kind"]}
_NAMES = st.sampled_from("abcde")
_REMOVABLE = (
    *("maximum", "minimum", "maxLength", "minLength", "additionalProperties", "minItems"),
    *("multipleOf", "uniqueItems", "pattern", "format"),
)
_strings = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={"minLength": st.integers(0, 3), "maxLength": st.integers(1, 5)},
)
_texts = _strings.flatmap(
    lambda node: st.sampled_from(
        [{**node, "pattern": "^a"}, {**node, "pattern": "b"}, {**node, "format": "date"}]
    )
)
_numbers = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.integers(-5, 4),
        "exclusiveMaximum": st.integers(0, 8),
        "maximum": st.integers(0, 8),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5, 4]),
    },
)
_others: st.SearchStrategy[Schema] = st.sampled_from(
    [{"type": "boolean"}, {"type": "null"}, True, {"const": "a"}, {"const": 1}]
)
_enums = st.lists(st.sampled_from(_SCALARS), min_size=1, max_size=4, unique_by=repr).map(
    lambda values: {"enum": values}
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of objects, arrays and unions."""
    some = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(_NAMES, inner, max_size=3)
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 2), "maxItems": st.integers(1, 3)},
    )
    tuples = st.builds(lambda first, node: {**node, "prefixItems": first}, some, arrays)
    objects = st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": members,
            "required": st.lists(_NAMES, max_size=2, unique=True),
        },
        optional={"additionalProperties": inner | st.booleans()},
    )
    tagged = st.lists(inner, min_size=2, max_size=3).map(
        lambda terms: {
            "oneOf": [
                {**_OBJECT, "properties": {"kind": {"const": tag}, "v": term}}
                for tag, term in zip("abc", terms, strict=False)
            ]
        }
    )
    unions = st.builds(
        lambda keyword, terms: {keyword: terms}, st.sampled_from(["anyOf", "allOf", "oneOf"]), some
    )
    return objects | arrays | objects | tuples | tagged | unions


schemas: st.SearchStrategy[Any] = st.recursive(
    _strings | _numbers | _others | _enums | _texts, _containers, max_leaves=6
)


def _parts(whole: object) -> Iterator[dict[str, Any]]:
    """The schemas within a schema, itself among them."""
    if isinstance(whole, dict):
        yield whole
        inner = [*whole.get("properties", {}).values(), whole.get("items")]
        inner.append(whole.get("additionalProperties"))
        for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            inner += whole.get(keyword, ())
        for part in inner:
            yield from _parts(part)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Two schemas; the second is mostly a change of the first."""
    old = draw(schemas)
    if draw(st.integers(0, 4)) == 0:
        return old, draw(schemas)
    new = copy.deepcopy(old)
    parts = [*_parts(new)]
    if parts:
        part = draw(st.sampled_from(parts))
        required, members = part.get("required", []), part.get("properties", {})
        match draw(st.integers(0, 6)):
            case 0 if required:
                part["required"] = required[1:]
            case 1 if members:
                part["required"] = sorted({*required, draw(st.sampled_from([*members]))})
            case 2:
                part["maximum"] = draw(st.integers(0, 8))
            case 3:
                part["maxLength"] = draw(st.integers(0, 5))
            case 4 if "enum" in part:
                part["enum"] = [*part["enum"], "z"]
            case 5 if isinstance(part.get("type"), str) and part["type"] != "null":
                part["type"] = [part["type"], "null"]
            case 6:
                part.pop(draw(st.sampled_from(_REMOVABLE)), None)
            case _:
                part["description"] = "another"
    return old, new


_anything = st.recursive(
    st.sampled_from(("", "a", "ab", "aaaaaaa", "2024-01-01", -3, 0, 7, 0.5, 1.0, True, None)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("a", "b", "kind", "v", "q")), inner, max_size=3)
    ),
    max_leaves=3,
)


@st.composite
def values(draw: st.DrawFn, schema: Any) -> Any:
    """A value, mostly near a schema."""
    if not isinstance(schema, dict):
        return draw(_anything)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw(values(draw(st.sampled_from(schema[keyword]))))
    kind = schema.get("type")
    match draw(st.sampled_from(kind)) if isinstance(kind, list) else kind:
        case "string":
            return draw(st.text("abz", min_size=schema.get("minLength", 0), max_size=7))
        case "integer":
            return draw(st.integers(-7, 12))
        case "number":
            return draw(st.integers(-14, 24)) / 2
        case "array":
            first, rest = schema.get("prefixItems", []), schema.get("items", True)
            length = draw(st.integers(schema.get("minItems", 0), 4))
            return [draw(values(first[at] if at < len(first) else rest)) for at in range(length)]
        case "object":
            required, known = schema.get("required", []), schema.get("properties", {})
            names = {*required, *draw(st.sets(st.sampled_from(["q", *known]), max_size=4))}
            rest = schema.get("additionalProperties", True)
            return {name: draw(values(known.get(name, rest))) for name in sorted(names)}
        case _:
            return draw(_anything)
