"""Names for the inline objects and unions of a schema.

The name is that of its owner plus the properties that lead to it. If a later revision refers to an
official definition at the same place, earlier revisions use that name too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mcpgen import names
from mcpgen.json_types import Node
from mcpgen.model import schema_queries
from mcpgen.model.normalized import target
from mcpgen.model.places import Place
from mcpgen.model.schema_queries import canonical
from mcpgen.schema import Schema

_Spot: TypeAlias = tuple[str, tuple[str, ...]]
"""A definition, and the properties that lead from it to a place."""


class InlineNames:
    """The names of one schema, each given once.

    Args:
        schema: The schema.
        renamed: The names that its definitions have in later revisions.
        newer_definitions: The definitions of those revisions, oldest first.
    """

    def __init__(
        self,
        schema: Schema,
        renamed: Mapping[str, str],
        newer_definitions: Sequence[Mapping[str, Node]],
    ) -> None:
        self._renamed = renamed
        self._later = [_references(definitions) for definitions in newer_definitions]
        self._shared: dict[tuple[str, str], str] = {}
        self._taken = {name: canonical(node) for name, node in schema.definitions.items()}
        for name, node in schema.definitions.items():
            for path, child in schema_queries.below(node):
                official = self.official(name, path) if schema_queries.is_inline(child) else None
                if official is not None:
                    self._shared.setdefault((path[-1], canonical(child)), official)

    def official(self, owner: str, path: tuple[str, ...]) -> str | None:
        """The definition that the nearest later revision refers to at a place."""
        owners = [name for name in (self._renamed.get(owner), owner) if name]
        for spots in self._later:
            for name in owners:
                if path and (name, path) in spots:
                    return spots[name, path]
        return None

    def choose(self, place: Place, node: Node) -> tuple[str, bool]:
        """The name for an inline schema, and whether the name is official.

        A name that another schema has gets the suffix `Item` for items, else a number.
        """
        text = canonical(node)
        last = place.path[-1] if place.path else ""
        official = self.official(place.owner, place.path) or self._shared.get((last, text))
        if official is not None and self._taken.setdefault(official, text) == text:
            return official, True
        name = place.name if place.path else f"{place.owner}Item"
        if self._taken.get(name, text) != text and place.pointer.endswith("/items"):
            name = f"{name}Item"
        others = {taken for taken, other in self._taken.items() if other != text}
        name = names.free_name(name, others)
        self._taken[name] = text
        return name, False


def _references(definitions: Mapping[str, Node]) -> dict[_Spot, str]:
    """The definition that each property refers to."""
    return {
        (name, path): target(child)
        for name, node in definitions.items()
        for path, child in schema_queries.below(node)
        if path and "$ref" in child
    }
