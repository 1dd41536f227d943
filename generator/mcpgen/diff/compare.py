"""Compares two sides: messages first, then their contents, then facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from mcpgen.diff import fact_changes, rules, similarity
from mcpgen.diff.alternatives import EMPTY
from mcpgen.diff.changes import OTHER, PARTIES, Change, Collected, Message, Spot, counts
from mcpgen.diff.protocol import Protocol
from mcpgen.diff.rules import Severity
from mcpgen.diff.values import Values
from mcpgen.model.methods import Method
from mcpgen.model.name import Kind, Role

_SAME_METHOD = 0.75
_SAME_TYPE = 0.8


@dataclass(frozen=True)
class Diff:
    """The changes from one side to another.

    Attributes:
        old: Name of the old side.
        new: Name of the new side.
        changes: The changes, gravest first.
        parties: The parties of `PARTIES` that the report is for.
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    parties: tuple[str, ...] = PARTIES

    @property
    def counts(self) -> Mapping[Severity, int]:
        """The number of changes of each severity."""
        return counts(self.changes)


def compare(old: Protocol, new: Protocol, severities: Mapping[str, Severity] | None = None) -> Diff:
    """Return the changes from one side to another.

    Args:
        old: The side that existing code is written for.
        new: The side that the code shall support.
        severities: The severity of every rule; that of the table by default.
    """
    collected = Collected(rules.severities(()) if severities is None else severities)
    comparison = _Comparison(old, new, collected, Values(old, new, collected))
    comparison.messages()
    comparison.types()
    fact_changes.compare(old, new, collected)
    return Diff(old.name, new.name, collected.in_order())


@dataclass
class _Comparison:
    old: Protocol
    new: Protocol
    collected: Collected
    values: Values

    def messages(self) -> None:
        """Compare messages, direction by direction."""
        for sender in get_args(Role):
            for kind in get_args(Kind):
                self._direction(self.old.messages(sender, kind), self.new.messages(sender, kind))

    def _direction(self, old: Mapping[str, Method], new: Mapping[str, Method]) -> None:
        removed = [method for name, method in old.items() if name not in new]
        added = [method for name, method in new.items() if name not in old]
        for name in old:
            if name in new:
                self._method(old[name], new[name])
        for one, other, score in similarity.pairs(
            removed, added, self._likeness, lambda each: each.name, least=_SAME_METHOD
        ):
            spot = _spot(one, other)
            rule = f"{_word(one)}_RENAMED"
            self.collected.add(rule, spot, one.name, other.name, confidence=score)
            self._method(one, other)
            removed.remove(one)
            added.remove(other)
        for one in removed:
            self.collected.add(f"{_word(one)}_REMOVED", _spot(one, one))
        for other in added:
            self.collected.add(f"{_word(other)}_ADDED", _spot(other, other))

    def _delivery(self, old: Method, new: Method, spot: Spot) -> None:
        """Compare whether a request is a message, or only part of a result."""
        was, is_now = self.old.is_inside(old), self.new.is_inside(new)
        if was != is_now:
            rule = "METHOD_MOVED_INTO_RESULT" if is_now else "METHOD_MOVED_OUT_OF_RESULT"
            texts = ("part of a result" if inside else "request" for inside in (was, is_now))
            self.collected.add(rule, spot, *texts)

    def _likeness(self, one: Method, other: Method) -> float:
        """The similarity of two messages: half by name, half by content."""
        alike = [
            self.values.likeness(
                (ours and self.old.alternatives.object(ours)) or EMPTY,
                (theirs and self.new.alternatives.object(theirs)) or EMPTY,
            )
            for ours, theirs in ((one.params, other.params), (one.result, other.result))
            if ours or theirs
        ]
        contents = sum(alike) / len(alike) if alike else 1.0
        return (similarity.of_names(one.name, other.name) + contents) / 2

    def _method(self, old: Method, new: Method) -> None:
        spot = _spot(old, new)
        self._delivery(old, new, spot)
        if old.capability != new.capability:
            before, after = (".".join(method.capability) or "none" for method in (old, new))
            self.collected.add("CAPABILITY_CHANGED", spot, before, after)
        if old.has_params != new.has_params:
            rule = "PARAMS_ADDED" if new.has_params else "PARAMS_REMOVED"
            self.collected.add(rule, spot, old.params or "", new.params or "")
        if old.params_required != new.params_required:
            rule = "PARAMS_MADE_REQUIRED" if new.params_required else "PARAMS_MADE_OPTIONAL"
            texts = ("params optional", "params required")
            self.collected.add(rule, spot, *(texts if new.params_required else texts[::-1]))
        self._params(old, new, spot)
        if old.result is not None and new.result is not None:
            texts = (f"{old.name} result", f"{new.name} result")
            messages = frozenset(Message(OTHER[old.sender], text) for text in texts)
            here = Spot(new.name, *texts, messages)
            self.values.compare(_ref(old.result), _ref(new.result), here)

    def _params(self, old: Method, new: Method, spot: Spot) -> None:
        if old.params is not None and new.params is not None:
            self.values.compare(_ref(old.params), _ref(new.params), spot)
        elif old.has_params and new.has_params:
            ours = self.old.alternatives.object(old.params) if old.params else EMPTY
            theirs = self.new.alternatives.object(new.params) if new.params else EMPTY
            self.values.objects(ours or EMPTY, theirs or EMPTY, spot)

    def types(self) -> None:
        """Compare the types of both sides, and record types that only one side has."""
        for text, envelope in self.old.envelopes.items():
            other = self.new.envelopes.get(text)
            if other is not None:
                self.values.objects(envelope, other, _of_type(text, text))
        for name in sorted(self.old.types & self.new.types):
            one, other = self.old.alternatives.object(name), self.new.alternatives.object(name)
            if one is not None and other is not None:
                self.values.objects(one, other, _of_type(name, name))
        inline = self.values.extracted
        removed = sorted(self.old.types - self.new.normal.definitions.keys() - inline)
        added = sorted(self.new.types - self.old.normal.definitions.keys() - inline)
        for one_name, other_name, score in self._renamed_types(removed, added):
            spot = self._type_spot(one_name, other_name)
            self.collected.add("TYPE_RENAMED", spot, one_name, other_name, confidence=score)
            removed.remove(one_name)
            added.remove(other_name)
        for name in sorted(inline):
            rule = "TYPE_NAMED" if name in self.new.types else "TYPE_INLINED"
            self.collected.add(rule, self._type_spot(name, name))
        for name in removed:
            self.collected.add("TYPE_REMOVED", self._type_spot(name, name))
        for name in added:
            self.collected.add("TYPE_ADDED", self._type_spot(name, name))

    def _renamed_types(
        self, removed: Sequence[str], added: Sequence[str]
    ) -> list[tuple[str, str, float]]:
        """Types that changed their name: found at the same place, or by similarity."""

        def alike(one: str, other: str) -> float:
            at_one_place = self.values.renamed.get((one, other))
            if at_one_place is not None:
                return max(at_one_place, similarity.ENOUGH)
            ours, theirs = self.old.alternatives.object(one), self.new.alternatives.object(other)
            if ours is None or theirs is None or len(ours.fields) < 2:
                return 0.0
            likeness, words = self.values.likeness(ours, theirs), similarity.of_names(one, other)
            if likeness >= _SAME_TYPE and words >= similarity.ENOUGH:
                return likeness
            before, after = self.old.normal.definitions[one], self.new.normal.definitions[other]
            is_equal = (before.node, before.checks) == (after.node, after.checks)
            return max((1.0 + words) / 2, similarity.ENOUGH) if is_equal else 0.0

        return similarity.pairs(removed, added, alike, str)

    def _type_spot(self, old: str, new: str) -> Spot:
        users = self.old.users.get(old, frozenset()) | self.new.users.get(new, frozenset())
        return Spot(new, old, new, users)


def _word(method: Method) -> str:
    return "METHOD" if method.kind == "request" else "NOTIFICATION"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _spot(old: Method, new: Method) -> Spot:
    messages = frozenset(Message(method.sender, method.name) for method in (old, new))
    return Spot(new.name, old.name, new.name, messages)


def _of_type(old: str, new: str) -> Spot:
    return Spot(new, old, new, frozenset())
