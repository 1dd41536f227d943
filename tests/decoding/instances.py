"""Random JSON for definitions of a schema: valid instances, and such with one thing changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = Any
Node: TypeAlias = Mapping[str, Any]

MAX_DEPTH = 5
"""Levels below which optional members and items are left out."""

_WORDS = ("", "a", "text", "2.0", "\u00e4\u20ac\U0001f600", "string", "complete", "tools/call", "1")
_SCALARS: Sequence[Json] = (None, True, False, 0, 1, -1, 2**53, 1.0, 0.5, -2.0, 1e30, "", "a", "1")
_OTHERS: Sequence[Json] = (*_SCALARS, [], {}, [None], {"a": 1}, ["a"], {"type": "object"})


class Instances:
    """Random values of the definitions of one schema."""

    def __init__(
        self, definitions: Mapping[str, Node], random: Random, chance: float = 0.4
    ) -> None:
        self._definitions = definitions
        self._random = random
        self._chance = chance

    def valid(self, name: str) -> Json:
        """A value that a definition describes."""
        return self.of({"$ref": f"#/{name}"})

    def of(self, node: Json) -> Json:
        """A value that a schema describes."""
        return self._value(node, 0)

    def changed(self, value: Json) -> Json:
        """A copy of a value with one thing changed, at any place: removed, added or replaced."""
        value = [copy.deepcopy(value)]
        holder, key = self._random.choice([*places(value)])
        members = holder[key]
        if isinstance(members, dict) and self._random.random() < 0.3:
            name = self._random.choice([*members, "other", "_meta", "type", "id", "method"])
            members[name] = self._random.choice(_OTHERS)
        elif isinstance(holder, dict) and self._random.random() < 0.4:
            del holder[key]
        else:
            holder[key] = self._random.choice(_OTHERS)
        return value[0]

    def _value(self, node: Json, depth: int) -> Json:
        if node is True:
            return self._anything(depth)
        match node:
            case {"$ref": str(reference)}:
                return self._value(self._definitions[reference.rpartition("/")[2]], depth)
            case {"const": value}:
                return value
            case {"enum": list(values)}:
                return self._random.choice(values)
            case {"anyOf": list(parts)} | {"oneOf": list(parts)}:
                own = {key: part for key, part in node.items() if key not in ("anyOf", "oneOf")}
                value = self._value(self._random.choice(parts), depth)
                if not isinstance(value, dict) or "properties" not in own:
                    return value
                return {**self._value(own, depth), **value}
            case {"allOf": list(parts)}:
                own = {"type": "object", **{key: node[key] for key in node if key != "allOf"}}
                values = [self._value(part, depth) for part in (*parts, own)]
                return {key: part for value in values for key, part in value.items()}
            case _:
                return self._typed(node, depth)

    def _typed(self, node: Node, depth: int) -> Json:
        kind = node.get("type")
        if isinstance(kind, list):
            kind = self._random.choice(kind)
        match kind:
            case "object":
                return self._object(node, depth)
            case "array":
                count = 0 if depth > MAX_DEPTH else self._random.choice((0, 1, 1, 2))
                count = max(count, node.get("minItems", 0))
                return [self._value(node.get("items", True), depth + 1) for _ in range(count)]
            case "string":
                return self._random.choice(_WORDS)
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case "integer" | "number":
                return self._number(node, kind)
            case _:
                is_object = "properties" in node or "required" in node
                return self._object(node, depth) if is_object else self._anything(depth)

    def _number(self, node: Node, kind: str) -> Json:
        least, most = node.get("minimum", -5), node.get("maximum", node.get("minimum", 0) + 1000)
        number = self._random.randint(int(least), int(most))
        if self._random.random() < 0.2:
            return float(number)
        is_whole = kind == "integer" or not least < number + 0.5 < most
        return number + 0.5 if not is_whole and self._random.random() < 0.3 else number

    def _object(self, node: Node, depth: int) -> dict[str, Json]:
        members = node.get("properties", {})
        required = node.get("required", ())
        chance = self._chance if depth <= MAX_DEPTH else 0.0
        value = {
            name: self._value(member, depth + 1)
            for name, member in members.items()
            if name in required or self._random.random() < chance
        }
        extra = node.get("additionalProperties", True)
        if extra is not False and self._random.random() < chance / 2:
            value[f"x{self._random.randint(0, 9)}"] = self._value(extra or True, depth + 1)
        return value

    def _anything(self, depth: int) -> Json:
        values = _SCALARS if depth > MAX_DEPTH else _OTHERS
        return copy.deepcopy(self._random.choice(values))


def places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Each value in a list or dict, at any depth, as its holder and its key."""
    keys = range(len(holder)) if isinstance(holder, list) else list(holder)
    for key in keys:
        yield holder, key
        if isinstance(holder[key], (dict, list)):
            yield from places(holder[key])
