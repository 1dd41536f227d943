"""Notes about the places where the plain form of a schema says less than the schema."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from operator import itemgetter

from mcpgen.json_types import Node
from mcpgen.model import schema_queries
from mcpgen.model.places import Place
from mcpgen.schema import Note, keywords
from mcpgen.schema.structure import escape

_REST = "additionalProperties"
_WITH_MEMBERS = ("type", "properties", "required")
"""Keywords that a type with members expresses."""


class Deviations:
    """The notes about one schema, one for each place."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}
        self._repeats: list[tuple[str, str]] = []

    def note(self, place: Place, text: str, *, lossy: bool = True) -> None:
        """Record a note about a place, once."""
        self._notes.setdefault(place.pointer, Note(place.pointer, text, lossy))

    def any_value(self, place: Place, what: str) -> Node:
        """Any JSON value, for a schema that no type can express."""
        self.note(place, f"{what}, taken as any JSON value")
        return {}

    def account(self, node: Node, place: Place, *carried: str) -> None:
        """Note each restricting keyword of a schema that its type does not express."""
        for key in keywords.lost_keywords(node, carried):
            self.note(place.below(escape(key)), "not checked")

    def account_members(self, node: Node, place: Place) -> None:
        """Note what a type with members does not express of an object."""
        declared: tuple[str, ...] = ()
        if schema_queries.declares_members(node):
            declared = (_REST,)
            self.note(place.below(_REST), "further members, dropped unless extra=True is given")
        self.account(node, place, *_WITH_MEMBERS, *declared)

    def repeat(self, first: str, again: str) -> None:
        """Have the notes about a schema for another one that shares its type, by pointers."""
        self._repeats.append((first, again))

    def all(self) -> tuple[Note, ...]:
        """All notes, with those that are repeated."""
        notes = sorted(self._notes.items(), key=itemgetter(0))
        every = dict(self._notes)
        for first, again in self._repeats:
            at = bisect_left(notes, first, key=itemgetter(0))
            while at < len(notes) and notes[at][0].startswith(first):
                pointer, note = notes[at]
                rest = pointer.removeprefix(first)
                if rest[:1] in ("", "/"):
                    every.setdefault(again + rest, replace(note, pointer=again + rest))
                at += 1
        return tuple(every.values())
