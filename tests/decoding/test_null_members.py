"""Null for an optional member is absence: each optional member of each message, at any depth."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import jsonschema
import pytest

from decoding.instances import Instances, places
from decoding.test_agreement import Judged, judge_values
from mcpgen_runtime import REVISIONS, decoder, to_builtins
from mcpgen_runtime._wire import UNREADABLE

pytestmark = pytest.mark.lengthy

VALUES = 12
"""Valid values of each definition, whose members are sent as null one by one."""

KEY_OF_MAP = re.compile(r"x\d")
"""How the keys look that `Instances` puts into maps: their values are data."""


def nullable_members(definitions: Mapping[str, Any]) -> Iterator[str]:
    """Wire names of members that may be null in one of the definitions."""
    for judged in walk(definitions):
        for wire, node in judged.get("properties", {}).items():
            whole = {"$defs": definitions, **(node if isinstance(node, dict) else {})}
            if jsonschema.Draft202012Validator(whole).is_valid(None):
                yield wire


def members_with_default(own: Judged) -> Iterator[str]:
    """Wire names of members that the schema requires, and for which something stands if absent."""
    for name, node in own.definitions.items():
        required = (wire for each in walk(node) for wire in each.get("required", ()))
        yield from (wire for wire in required if own.reading.default(name, wire) is not None)


def walk(node: Any) -> Iterator[Mapping[str, Any]]:
    """Each object in a JSON value."""
    if isinstance(node, Mapping):
        yield node
    parts = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    for part in parts:
        yield from walk(part)


def null_for_optional(own: Judged, name: str, random: Random) -> Iterator[tuple[Any, Any]]:
    """Values of a definition with null for one optional member, and the same without it."""
    is_valid, nullable = own.judge(own.definitions, name), set(nullable_members(own.definitions))
    not_optional = {"id", *members_with_default(own)}  # and null is no id of a request
    instances = Instances(own.definitions, random)
    for _ in range(VALUES):
        value = instances.valid(name)
        if not is_valid(value):
            continue
        for at in range(len([*places([value])])):
            with_null, without = [copy.deepcopy(value)], [copy.deepcopy(value)]
            holder, key = [*places(with_null)][at]
            if isinstance(key, int) or key in not_optional:
                continue
            holder[key] = None
            holder, key = [*places(without)][at]
            del holder[key]
            is_data = key in nullable or KEY_OF_MAP.fullmatch(key)
            if is_valid(without[0]) and not (is_data and is_valid(with_null[0])):
                yield with_null[0], without[0]


def decoded(kind: Any, value: Any) -> Any:
    """The type and the JSON of a decoded value; without null in maps, which is data."""
    try:
        value = decoder(kind)(json.dumps(value).encode())
    except UNREADABLE:
        return "refused"
    return type(value), without_null(to_builtins(value))


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("revision", REVISIONS)
def test_null_for_an_optional_member_decodes_as_its_absence(revision: str) -> None:
    own, count = judge_values(revision), 0
    wrong: list[Any] = []
    for name in own.definitions:
        if (kind := own.kind(name)) is None:
            continue
        for with_null, without in null_for_optional(own, name, Random(name)):
            count += 1
            if decoded(kind, with_null) != decoded(kind, without):
                wrong.append((name, with_null, str(decoded(kind, with_null))[:100]))
    assert count > 500
    assert not wrong, f"{len(wrong)} of {count} differ, the first: {wrong[:10]}"
