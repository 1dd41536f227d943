"""Generated JSON that fits a schema: the revision's own schema, not what the models say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from generator.awkward_names import NAMES
from mcpgen import schema
from mcpgen.schema import facts

_RESULT_TYPE = "resultType"
_EXACT = 2**53
_texts = st.text(max_size=8)
_keys = _texts | st.sampled_from(NAMES)
_integers = st.integers(-_EXACT, _EXACT)
_floats = st.floats(-1e9, 1e9, allow_nan=False)
anything = st.recursive(
    st.none() | st.booleans() | _integers | _floats | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value."""

_PLAIN: Mapping[str, st.SearchStrategy[Any]] = {
    "string": _texts,
    "boolean": st.booleans(),
    "null": st.none(),
}


class Described:
    """The JSON that the definitions of one revision describe."""

    def __init__(self, revision: str) -> None:
        self.definitions: Mapping[str, Any] = schema.load(revision).definitions
        self._facts = facts.load(revision)
        self._made: dict[str, st.SearchStrategy[Any]] = {}

    def named(self, name: str) -> st.SearchStrategy[Any]:
        """Values of a definition."""
        if name not in self._made:
            self._made[name] = st.deferred(lambda: self._of(self._meant(name)))
        return self._made[name]

    def _meant(self, name: str) -> Mapping[str, Any]:
        """A definition with what only the prose says: which type of result it is."""
        definition: Mapping[str, Any] = self.definitions[name]
        kind = self._facts.default(name, _RESULT_TYPE)
        if kind is None or _RESULT_TYPE not in definition.get("properties", {}):
            return definition
        members = {**definition["properties"], _RESULT_TYPE: {"const": kind}}
        return {**definition, "properties": members}

    def _of(self, node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        match node:
            case {"$ref": str(ref)}:
                return self.named(ref.rpartition("/")[2])
            case {"anyOf": list(members)} | {"oneOf": list(members)}:
                return st.one_of([self._of(member) for member in members])
            case {"allOf": list(members)}:
                parts = st.tuples(*(self._of(member) for member in members))
                return parts.map(lambda dicts: {k: v for part in dicts for k, v in part.items()})
            case {"const": value}:
                return st.just(value)
            case {"enum": list(values)}:
                return st.sampled_from(values)
            case {"type": list(kinds)}:
                return st.one_of([self._of({**node, "type": kind}) for kind in kinds])
        return self._typed(node)

    def _typed(self, node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        least, most = node.get("minimum"), node.get("maximum")
        match node.get("type"):
            case "object":
                return self._object(node)
            case "array":
                return st.lists(self._of(node["items"]), max_size=2)
            case "integer":
                return st.integers(*_range(least, most))
            case "number":
                low, high = _range(least, most)
                whole = st.integers(low, high)
                return whole | st.floats(low, high, allow_nan=False)
            case None:
                return anything
            case kind:
                return _PLAIN[kind]

    def _object(self, node: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        members = node.get("properties", {})
        if not members:
            inner = node.get("additionalProperties")
            kind = self._of(inner) if isinstance(inner, Mapping) else anything
            return st.dictionaries(_keys, kind, max_size=2)
        required = node.get("required", ())
        kinds = {name: self._of(member) for name, member in members.items()}
        return st.fixed_dictionaries(
            {name: kinds[name] for name in required},
            optional={name: kind for name, kind in kinds.items() if name not in required},
        )


def _range(least: float | None, most: float | None) -> tuple[int, int]:
    return (
        -_EXACT if least is None else int(least),
        _EXACT if most is None else int(most),
    )


@cache
def describe_revision(revision: str) -> Described:
    """The JSON of a revision, made once."""
    return Described(revision)
