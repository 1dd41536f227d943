"""Seeded pairs of JSON Schemas, the second mostly a small change of the first, and their values."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any] | bool
Make = Callable[[random.Random, int], Schema]

_NAMES = "abcde"
_SCALARS = ("a", "b", "c", 1, 2, True, None, "ab")


def _string(random_: random.Random, _: int) -> Schema:
    return {
        "type": "string",
        **_sometimes(random_, 0.3, "minLength", random_.randrange(4)),
        **_sometimes(random_, 0.3, "maxLength", random_.randrange(1, 6)),
        **_sometimes(random_, 0.15, "pattern", random_.choice(["^a", "^[a-z]*$", "b"])),
        **_sometimes(random_, 0.1, "format", random_.choice(["date", "ipv4", "email"])),
    }


def _number(random_: random.Random, _: int) -> Schema:
    low = random_.choice(["minimum", "exclusiveMinimum"])
    high = random_.choice(["maximum", "exclusiveMaximum"])
    return {
        "type": random_.choice(["integer", "number"]),
        **_sometimes(random_, 0.4, low, random_.randrange(-5, 5)),
        **_sometimes(random_, 0.4, high, random_.randrange(9)),
        **_sometimes(random_, 0.15, "multipleOf", random_.choice([1, 2, 3, 0.5, 4])),
    }


def _sometimes(
    random_: random.Random, share: float, keyword: str, value: object
) -> dict[str, object]:
    return {keyword: value} if random_.random() < share else {}


def _small(random_: random.Random, _: int) -> Schema:
    every: list[Schema] = [{"type": "boolean"}, {"type": "null"}, True, {"const": "a"}]
    return random_.choice([*every, {"const": 1}])


def _enum(random_: random.Random, _: int) -> Schema:
    return {"enum": random_.sample(_SCALARS, random_.randrange(1, 5))}


def _array(random_: random.Random, depth: int) -> Schema:
    first = [schema(random_, depth) for _ in range(random_.randrange(1, 3))]
    return {
        "type": "array",
        **_sometimes(random_, 0.8, "items", schema(random_, depth)),
        **_sometimes(random_, 0.15, "prefixItems", first),
        **_sometimes(random_, 0.3, "minItems", random_.randrange(3)),
        **_sometimes(random_, 0.3, "maxItems", random_.randrange(1, 4)),
        **_sometimes(random_, 0.1, "uniqueItems", True),
    }


def _object(random_: random.Random, depth: int) -> Schema:
    names = random_.sample(_NAMES, random_.randrange(4))
    others: Schema = random_.choice([False, True, schema(random_, depth)])
    return {
        "type": "object",
        "properties": {name: schema(random_, depth) for name in names},
        "required": [name for name in names if random_.random() < 0.4],
        **_sometimes(random_, 0.4, "additionalProperties", others),
        **_sometimes(random_, 0.07, "patternProperties", {"^x": schema(random_, depth)}),
        **_sometimes(random_, 0.05, "maxProperties", random_.randrange(1, 4)),
    }


def _union(random_: random.Random, depth: int) -> Schema:
    keyword = random_.choice(["anyOf", "anyOf", "allOf", "oneOf"])
    return {keyword: [schema(random_, depth) for _ in range(random_.randrange(1, 4))]}


def _tagged(random_: random.Random, depth: int) -> Schema:
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": tag}, "v": schema(random_, depth)},
                "required": ["kind"],
            }
            for tag in "abc"[: random_.randrange(2, 4)]
        ]
    }


_LEAVES: tuple[Make, ...] = (_string, _number, _small, _enum)
_EVERY: tuple[Make, ...] = (*_LEAVES, _number, _array, _object, _object, _union, _tagged)


def schema(random_: random.Random, depth: int = 3) -> Schema:
    """A schema."""
    return random_.choice(_EVERY if depth else _LEAVES)(random_, depth - 1)


def _parts(whole: object) -> Iterator[dict[str, Any]]:
    """The schemas within a schema, itself among them."""
    if not isinstance(whole, dict):
        return
    yield whole
    for keyword in ("properties", "patternProperties"):
        for part in whole.get(keyword, {}).values():
            yield from _parts(part)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in whole.get(keyword, ()):
            yield from _parts(part)
    for keyword in ("items", "additionalProperties"):
        yield from _parts(whole.get(keyword))


_REMOVABLE = (
    *("maximum", "minimum", "maxLength", "minLength", "additionalProperties", "minItems"),
    *("multipleOf", "uniqueItems", "pattern", "format"),
)


def changed(random_: random.Random, old: Schema) -> Schema:
    """A schema with one or two small changes."""
    new = copy.deepcopy(old)
    parts = [*_parts(new)]
    for _ in range(random_.randrange(1, 3) if parts else 0):
        part = random_.choice(parts)
        required, members = part.get("required", []), part.get("properties", {})
        match random_.randrange(8):
            case 0 if required:
                part["required"] = required[1:]
            case 1 if members:
                part["required"] = sorted({*required, random_.choice([*members])})
            case 2:
                part["maximum"] = random_.randrange(9)
            case 3:
                part["maxLength"] = random_.randrange(6)
            case 4 if "enum" in part:
                part["enum"] = [*part["enum"], "z"]
            case 5 if isinstance(part.get("type"), str) and part["type"] != "null":
                part["type"] = [part["type"], "null"]
            case 6:
                part.pop(random_.choice(_REMOVABLE), None)
            case 7 if "anyOf" in part:
                part["anyOf"].append(schema(random_, 1))
            case _:
                part["description"] = "another"
    return new


def pair(seed: int) -> tuple[Schema, Schema]:
    """Two schemas; of five pairs, in four the second is a change of the first."""
    random_ = random.Random(seed)
    old = schema(random_)
    return old, changed(random_, old) if random_.random() < 0.8 else schema(random_)


def values(of: Schema, random_: random.Random, count: int) -> Iterator[Any]:
    """Values, most of them near a schema."""
    return (_near(random_, of, 5) for _ in range(count))


def _near(random_: random.Random, of: object, depth: int) -> Any:
    if not isinstance(of, dict) or not depth:
        return _anything(random_, 1)
    for keyword in ("enum", "anyOf", "oneOf", "allOf"):
        if keyword in of:
            choice = random_.choice(of[keyword])
            return choice if keyword == "enum" else _near(random_, choice, depth - 1)
    if "const" in of:
        return of["const"]
    kind = of.get("type")
    match random_.choice(kind) if isinstance(kind, list) else kind:
        case "string":
            least = of.get("minLength", 0)
            length = random_.randrange(least, max(least, of.get("maxLength", 7)) + 1)
            return "".join(random_.choice("abz") for _ in range(length))
        case "integer":
            return random_.randrange(-7, 12)
        case "number":
            return random_.randrange(-14, 24) / 2
        case "array":
            return _array_near(random_, of, depth)
        case "object":
            return _object_near(random_, of, depth)
        case _:
            return _anything(random_, 2)


def _array_near(random_: random.Random, of: dict[str, Any], depth: int) -> list[Any]:
    first, least = of.get("prefixItems", []), of.get("minItems", 0)
    length = random_.randrange(least, max(least, of.get("maxItems", 4)) + 1)
    rest = of.get("items", True)
    items = [first[index] if index < len(first) else rest for index in range(length)]
    return [_near(random_, item, depth - 1) for item in items]


def _object_near(random_: random.Random, of: dict[str, Any], depth: int) -> dict[str, Any]:
    required = of.get("required", [])
    members = {
        name: _near(random_, term, depth - 1)
        for name, term in of.get("properties", {}).items()
        if name in required or random_.random() < 0.5
    }
    others = of.get("additionalProperties", True)
    if others is not False and random_.random() < 0.3:
        members[random_.choice(["q", "x1", "a", "z"])] = _near(random_, others, depth - 1)
    return members


def _anything(random_: random.Random, depth: int) -> Any:
    scalars = ("", "a", "ab", "z", "aaaaaaa", "2024-01-01", -3, 0, 7, 0.5, 1.0, True, False, None)
    kind = random_.randrange(8) if depth else 0
    if kind == 6:
        return [_anything(random_, depth - 1) for _ in range(random_.randrange(4))]
    if kind == 7:
        names = random_.sample(("a", "b", "c", "kind", "v", "x1", "q"), random_.randrange(4))
        return {name: _anything(random_, depth - 1) for name in names}
    return random_.choice(scalars)
