"""The known revision nearest to a schema: the one that shares most of its structure.

Three sets are compared: methods, definitions, and properties of definitions. For each set, the size
of the intersection is divided by that of the union; the revision with the greatest sum is the
nearest, and of equals the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcpgen.errors import SchemaError
from mcpgen.input_files import read_json
from mcpgen.json_types import Json, Node, is_object
from mcpgen.schema.revisions import RevisionEntry, revisions


@dataclass(frozen=True)
class Features:
    """The names in a schema that are compared with those of other schemas.

    Attributes:
        methods: The wire's names of requests and notifications.
        definitions: Names of definitions.
        properties: Definition and name of each of its direct properties.
    """

    methods: frozenset[str]
    definitions: frozenset[str]
    properties: frozenset[tuple[str, str]]

    def shares(self, other: Features) -> float:
        """The similarity to the names of another schema, from 0 to 3."""
        pairs = (
            (self.methods, other.methods),
            (self.definitions, other.definitions),
            (self.properties, other.properties),
        )
        return sum(len(one & two) / max(len(one | two), 1) for one, two in pairs)


@dataclass(frozen=True)
class Nearest:
    """The revision nearest to a schema.

    Attributes:
        entry: The revision.
        shared: The names that the schema shares with the revision.
        own: All names of the schema.
    """

    entry: RevisionEntry
    shared: Features
    own: Features

    @property
    def why(self) -> str:
        """The shares of common names: `24 of 24 methods, 118 of 121 definitions, ...`."""
        counts = {
            "methods": (self.shared.methods, self.own.methods),
            "definitions": (self.shared.definitions, self.own.definitions),
            "properties": (self.shared.properties, self.own.properties),
        }
        return ", ".join(
            f"{len(shared)} of {len(own)} {noun}" for noun, (shared, own) in counts.items()
        )


def nearest(document: Node) -> Nearest:
    """The known revision nearest to a schema."""
    own = features(document)
    entry = max(revisions(), key=lambda row: (own.shares(_known_features(row)), row.name))
    theirs = _known_features(entry)
    shared = Features(
        own.methods & theirs.methods,
        own.definitions & theirs.definitions,
        own.properties & theirs.properties,
    )
    return Nearest(entry, shared, own)


def features(document: Node) -> Features:
    """The compared names of a schema in either dialect, without malformed parts."""
    definitions = dict(_definitions(document))
    properties = {
        name: node["properties"]
        for name, node in definitions.items()
        if is_object(node.get("properties"))
    }
    methods = (_const(members.get("method")) for members in properties.values())
    return Features(
        methods=frozenset(method for method in methods if isinstance(method, str)),
        definitions=frozenset(definitions),
        properties=frozenset((name, wire) for name, own in properties.items() for wire in own),
    )


def _definitions(document: Node) -> Iterator[tuple[str, Node]]:
    for container in ("definitions", "$defs"):
        by_name: Json = document.get(container)
        for name, node in by_name.items() if is_object(by_name) else ():
            if is_object(node):
                yield name, node


def _const(node: Json) -> Json:
    return node.get("const") if is_object(node) else None


@cache
def _known_features(row: RevisionEntry) -> Features:
    return features(known_document(row))


def known_document(row: RevisionEntry) -> Node:
    """The schema file of a known revision, unchanged; not to be changed in place.

    Raises:
        SchemaError: The file is damaged.
    """
    return _document(row.folder / "schema.json")


@cache
def _document(path: Path) -> Node:
    document = read_json(path, SchemaError)
    assert is_object(document), path  # one of mcpgen's own
    return document
