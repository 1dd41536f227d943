"""`mcpgen diff` on protocols that hypothesis makes up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.diff_schemas import changes, message, protocol
from generator.schemas import TEXT, any_of, const, obj, ref
from mcpgen.diff import Protocol

pytestmark = pytest.mark.costly

FIELDS = ("color", "colour", "size", "sizes", "depth", "name", "title")
TYPES = ("Brush", "Roller", "Layer")
SCALARS: tuple[dict[str, Any], ...] = (
    TEXT,
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"type": "string", "minLength": 2},
    {"type": "string", "minLength": 5, "maxLength": 9},
    {"type": "string", "pattern": "^a"},
    {"enum": ["small", "medium", "large"]},
    {"enum": ["small", "smaller"]},
    const("fixed"),
    {},
    {"type": "object"},
    {"type": "object", "additionalProperties": TEXT},
    {"type": "object", "additionalProperties": {}, "properties": {"kept": TEXT}},
    {"type": "object", "additionalProperties": False, "properties": {"kept": TEXT}},
    *(ref(name) for name in TYPES),
    any_of("Brush", "Roller"),
    any_of("Brush", "Layer"),
)
nodes = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda a: obj("a", a=a), inner)
        | st.builds(lambda a, b: {"anyOf": [a, b]}, st.sampled_from(SCALARS[:4]), inner)
    ),
    max_leaves=3,
)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """An object of some fields."""
    fields = draw(st.dictionaries(st.sampled_from(FIELDS), nodes, max_size=4))
    required = [name for name in sorted(fields) if draw(st.booleans())]
    return obj(" ".join(required), **fields)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Definitions that vary: types, params, a result, and the set of methods."""
    changed: dict[str, Any] = {name: draw(objects()) for name in TYPES}
    changed |= {name: draw(objects()) for name in ("PaintRequestParams", "PaintResult")}
    methods = draw(st.sets(st.sampled_from(("Scrub", "Scrape", "Sand")), max_size=2))
    for name in sorted(methods):
        changed[f"{name}Request"] = message(f"wall/{name.lower()}", ref(f"{name}RequestParams"))
        changed[f"{name}RequestParams"] = draw(objects())
        changed[f"{name}Result"] = draw(objects())
    requests = ["PaintRequest", *(f"{name}Request" for name in sorted(methods))]
    return {**changed, "ClientRequest": any_of(*requests)}


def side(name: str, own: dict[str, Any], other: dict[str, Any]) -> Protocol:
    """One side; the other names its inline objects, as for the command."""
    return protocol(name, other=(other,), **own)


@given(definitions(), definitions())
@settings(max_examples=150)
def test_the_way_back_mirrors_the_way_there(one: dict[str, Any], other: dict[str, Any]) -> None:
    old, new = side("A", one, other), side("B", other, one)
    there = {
        (c.rule.mirror, c.new_place, c.old_place, c.new, c.old, c.senders, c.messages)
        for c in changes(old, new)
    }
    back = {
        (c.rule.id, c.old_place, c.new_place, c.old, c.new, c.senders, c.messages)
        for c in changes(new, old)
    }
    assert there == back
