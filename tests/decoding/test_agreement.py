"""What decodes is what the schema allows, but for the rows of one table.

The judge is `jsonschema`. A run of `nox -s history` has 100,000 cases, others a sample.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, get_args, get_origin

import jsonschema
import pytest

from decoding.instances import Instances
from decoding.leniency import ROWS, Reading, as_read
from mcp_protocol._unions import UntaggedType
from mcp_protocol._wire import STRUCTS, UNREADABLE, decoder, fields
from mcp_protocol.revisions import REVISIONS
from mcpgen import facts, schema

CASES = int(os.environ.get("MCP_DECODED_CASES", "12000"))
"""Cases of all revisions together."""

REVISION = pytest.mark.parametrize("revision", REVISIONS)


class Judged:
    """The definitions of a revision, each with its decoder and the judges of its values."""

    def __init__(self, revision: str) -> None:
        self.models = importlib.import_module(f"mcp_protocol.r{revision.replace('-', '_')}.models")
        self.definitions = schema.load(revision).definitions
        self.reading = Reading(
            {name: dict(node) for name, node in self.definitions.items()},
            facts.load(revision).default,
            {
                frozenset(union.member_names()): [
                    (each.type.__name__, _test_schema(each)) for each in union.variants
                ]
                for union in vars(self.models).values()
                if isinstance(union, UntaggedType) and all(e.decides for e in union.variants)
            },
            {path for name in self.definitions for path in _maps(name, self.kind(name))},
        )

    def kind(self, name: str) -> Any:
        """The type of a definition."""
        return getattr(self.models, name)

    def judge(self, definitions: Any, name: str) -> Any:
        """A validator of one definition."""
        whole = {"$defs": definitions, "$ref": f"#/$defs/{name}"}
        return jsonschema.Draft202012Validator(whole).is_valid

    def cases(self, count: int) -> Iterator[tuple[str, Any]]:
        """Values with their definition: a third valid, the others with one or two changes."""
        instances = Instances(self.definitions, Random(count))
        names = list(self.definitions)
        for number in range(count):
            value = instances.valid(names[number % len(names)])
            for _ in range(number // len(names) % 3):
                value = instances.changed(value)
            yield names[number % len(names)], value


def _maps(path: str, kind: Any) -> Iterator[str]:
    """The places within a type that are maps, at any depth of objects."""
    kinds = [kind, *get_args(kind)]
    if any(get_origin(each) is dict for each in kinds):
        yield path
    for struct in kinds:
        if isinstance(struct, type) and issubclass(struct, STRUCTS) and path.count(".") < 4:
            for field in fields(struct):
                yield from _maps(f"{path}.{field.encode_name}", field.type)


def _test_schema(variant: Any) -> dict[str, Any]:
    values = {wire: {"enum": list(allowed)} for wire, allowed in variant.consts.items()}
    inner = {wire: {"type": "object", "required": list(n)} for wire, n in variant.inner.items()}
    required = [*variant.required, *values, *inner]
    return {"type": "object", "properties": {**values, **inner}, "required": required}


@cache
def judged(revision: str) -> Judged:
    return Judged(revision)


def decodes(kind: Any, value: Any) -> bool:
    try:
        decoder(kind)(json.dumps(value).encode())
    except UNREADABLE:
        return False
    return True


@REVISION
def test_values_decode_as_the_schema_and_the_table_say(revision: str) -> None:
    own = judged(revision)
    definitions = as_read(own.reading)
    judges = {name: own.judge(definitions, name) for name in definitions}
    wrong = [
        (name, value)
        for name, value in own.cases(CASES // len(REVISIONS))
        if decodes(own.kind(name), value) != judges[name](value)
    ]
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[:3])}"


EXAMPLES: list[tuple[str, str, str, Any]] = [
    (
        "members of a JSON Schema",
        "2025-06-18",
        "Tool",
        {"name": "t", "inputSchema": {"type": "object", "required": [1]}},
    ),
    (
        "members of open objects",
        "2025-11-25",
        "JSONRPCResultResponse",
        {"jsonrpc": "2.0", "id": 1, "result": {"_meta": 1}},
    ),
    (
        "members of `_meta`",
        "2026-07-28",
        "PaginatedRequestParams",
        {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": 1,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            }
        },
    ),
    (
        "several members of a union",
        "2025-11-25",
        "PrimitiveSchemaDefinition",
        {"type": "string", "enum": 1},
    ),
    (
        "null for an optional member",
        "2025-03-26",
        "TextContent",
        {"type": "text", "text": "", "annotations": None},
    ),
    ("absent constants", "2024-11-05", "PingRequest", {}),
    ("absent members with a default", "2026-07-28", "EmptyResult", {}),
]
"""For each row a value about which the schema and the package disagree."""


@pytest.mark.parametrize(
    ("row", "revision", "name", "value"),
    EXAMPLES,
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_each_row_of_the_table_is_a_difference(
    row: str, revision: str, name: str, value: Any
) -> None:
    own = judged(revision)
    allowed = own.judge(own.definitions, name)(value)
    assert decodes(own.kind(name), value) is not allowed
    assert own.judge(as_read(own.reading), name)(value) is not allowed
    assert own.judge(as_read(own.reading, without=row), name)(value) is allowed


def test_each_row_of_the_table_has_an_example() -> None:
    assert [row for row, *_ in EXAMPLES] == [*ROWS]
