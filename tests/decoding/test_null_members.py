"""Null for an optional member is absence: each optional member of each message, at any depth."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from decoding.instances import Instances, places
from decoding.test_agreement import Judged, judge_values
from mcpgen_runtime import REVISIONS, decoder, to_builtins
from mcpgen_runtime._wire import UNREADABLE

pytestmark = pytest.mark.lengthy

VALUES = 5
"""Valid values of each definition, whose members are sent as null one by one."""


def required_members(node: Any) -> Iterator[str]:
    """Wire names of members that a schema requires, at any depth."""
    if isinstance(node, Mapping):
        yield from node.get("required", ()) if isinstance(node.get("required"), list) else ()
        node = [*node.values()]
    for part in node if isinstance(node, list) else ():
        yield from required_members(part)


def null_for_optional(own: Judged, name: str) -> Iterator[tuple[Any, Any]]:
    """Values with null for one optional member for which the schema has no null, and without it."""
    is_valid, instances = own.judge(own.definitions, name), Instances(own.definitions, Random(name))
    defaults = {  # something else stands for these; and null is no id of a request
        wire
        for owner, node in own.definitions.items()
        for wire in required_members(node)
        if own.reading.default(owner, wire) is not None
    }
    for value in filter(is_valid, [instances.valid(name) for _ in range(VALUES)]):
        for at in range(len([*places([value])])):
            with_null, without = [copy.deepcopy(value)], [copy.deepcopy(value)]
            holder, key = [*places(with_null)][at]
            if isinstance(key, int) or key in {"id", *defaults}:
                continue
            holder[key] = None
            holder, key = [*places(without)][at]
            del holder[key]
            if is_valid(without[0]) and not is_valid(with_null[0]):
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
    own = judge_values(revision)
    kinds = {name: kind for name in own.definitions if (kind := own.kind(name)) is not None}
    cases = [(name, *pair) for name in kinds for pair in null_for_optional(own, name)]
    assert len(cases) > 50 * VALUES
    wrong = [
        (name, with_null)
        for name, with_null, without in cases
        if decoded(kinds[name], with_null) != decoded(kinds[name], without)
    ]
    assert not wrong, f"{len(wrong)} differ, the first: {wrong[:10]}"
