"""Compare the types, values, bounds and members that two schemas allow at one place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcpgen.diff import similarity
from mcpgen.diff.alternatives import (
    ANY,
    Alternative,
    Alternatives,
    Array,
    Literal,
    Object,
    Scalar,
    describe,
)
from mcpgen.diff.changes import Collected, Message, Spot
from mcpgen.diff.protocol import Protocol
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node
from mcpgen.model.schema_queries import META, canonical

_JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}
_TYPE_RULES: Mapping[tuple[bool, bool], str] = {
    (True, True): "FIELD_TYPE_CHANGED",
    (True, False): "FIELD_TYPE_NARROWED",
    (False, True): "FIELD_TYPE_WIDENED",
}
"""The rule, by whether the new schema refuses old values, and whether it adds values."""
_LOWER_BOUNDS = frozenset({"minimum", "minLength", "minItems"})
_RELATED = 0.3
"""The least similarity of two objects at one place that count as one changed type."""
_FEW = 3
"""Limit of the members that an object lost or got, to detect renamings by content."""
_SURE_BY_CONTENT = 0.5
"""The confidence of a renaming that only the content shows."""


@dataclass
class Values:
    """The comparison of values.

    Attributes:
        old: The old side.
        new: The new side.
        collected: Where changes go.
        renamed: Types at the same place with different names, with their similarity.
        extracted: Types that are unnamed objects in the other schema.
    """

    old: Protocol
    new: Protocol
    collected: Collected
    renamed: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    extracted: set[str] = field(default_factory=set[str])
    _seen: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    _open: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def compare(self, old: Node, new: Node, spot: Spot) -> None:
        """Compare two schemas at one place, unless their comparison is already running."""
        pair = (canonical(old), canonical(new))
        if pair not in self._open:
            self._open.add(pair)
            self._compare(old, new, spot)
            self._open.remove(pair)

    def _compare(self, old: Node, new: Node, spot: Spot) -> None:
        ours, theirs = self.old.alternatives.of(old), self.new.alternatives.of(new)
        if (ANY in ours) != (ANY in theirs):
            rule = "FIELD_TYPE_WIDENED" if ANY in theirs else "FIELD_TYPE_NARROWED"
            self.collected.add(rule, spot, describe(ours), describe(theirs))
            return
        fewer, more = self._values(ours, theirs, spot)
        old_kinds, new_kinds = _kinds_of(ours), _kinds_of(theirs)
        unlike = self._objects(ours, theirs, spot)
        fewer = fewer or unlike or bool(old_kinds - new_kinds)
        more = more or unlike or bool(new_kinds - old_kinds)
        if fewer or more:
            rule = _TYPE_RULES[fewer, more]
            self.collected.add(rule, spot, describe(ours), describe(theirs))
        self._bounds(ours, theirs, spot)
        self._items(ours, theirs, spot)

    def _values(
        self, ours: Sequence[Alternative], theirs: Sequence[Alternative], spot: Spot
    ) -> tuple[bool, bool]:
        """Compare fixed values; return whether the old or the new ones have no counterpart."""
        old = {alternative.text for alternative in ours if isinstance(alternative, Literal)}
        new = {alternative.text for alternative in theirs if isinstance(alternative, Literal)}
        removed = {text for text in old - new if not _is_covered(text, theirs)}
        added = {text for text in new - old if not _is_covered(text, ours)}
        if not (old and new):
            return bool(removed), bool(added)
        for one, other, score in similarity.pairs(
            sorted(removed), sorted(added), similarity.of_names, str, least=0.75
        ):
            self.collected.add("VALUE_RENAMED", spot, one, other, confidence=score)
            removed.discard(one)
            added.discard(other)
        for text in sorted(removed):
            self.collected.add("VALUE_REMOVED", spot, text, describe(theirs))
        for text in sorted(added):
            self.collected.add("VALUE_ADDED", spot, describe(ours), text)
        return False, False

    def _bounds(
        self, ours: Sequence[Alternative], theirs: Sequence[Alternative], spot: Spot
    ) -> None:
        old, new = _loosest(ours), _loosest(theirs)
        for kind in old.keys() & new.keys():
            self._compare_bounds(old[kind], new[kind], spot)

    def _compare_bounds(self, old: Mapping[str, Json], new: Mapping[str, Json], spot: Spot) -> None:
        for keyword in sorted(old.keys() | new.keys()):
            before, after = old.get(keyword), new.get(keyword)
            if before == after:
                continue
            texts = (_bound(keyword, before), _bound(keyword, after))
            if before is None or after is None:
                tightened = before is None
            elif keyword == "pattern":
                self.collected.add("FIELD_PATTERN_CHANGED", spot, *texts)
                continue
            else:
                tightened = (after > before) == (keyword in _LOWER_BOUNDS)
            rule = "FIELD_BOUND_TIGHTENED" if tightened else "FIELD_BOUND_LOOSENED"
            self.collected.add(rule, spot, *texts)

    def _items(
        self, ours: Sequence[Alternative], theirs: Sequence[Alternative], spot: Spot
    ) -> None:
        old = [alternative for alternative in ours if isinstance(alternative, Array)]
        new = [alternative for alternative in theirs if isinstance(alternative, Array)]
        if old and new:
            before: Node = {"anyOf": [alternative.items for alternative in old]}
            after: Node = {"anyOf": [alternative.items for alternative in new]}
            self.compare(before, after, spot.below("[]"))

    def _objects(
        self, ours: Sequence[Alternative], theirs: Sequence[Alternative], spot: Spot
    ) -> bool:
        """Compare the objects among alternatives; return whether single objects are unrelated."""
        old = [alternative for alternative in ours if isinstance(alternative, Object)]
        new = [alternative for alternative in theirs if isinstance(alternative, Object)]
        if not (old and new):
            return False
        if len(old) == len(new) == 1:
            one, other = old[0], new[0]
            if one.name and other.name and one.name != other.name:
                likeness = self.likeness(one, other)
                if likeness < _RELATED:
                    return True
                self._note_name(one, other, likeness)
            self.objects(one, other, spot)
            return False
        left, right = list(old), list(new)
        for one, other, likeness in self._match(old, new):
            left.remove(one)
            right.remove(other)
            self._note_name(one, other, likeness)
            self.objects(one, other, spot)
        for one in left:
            self.collected.add("VARIANT_REMOVED", spot, str(one), describe(theirs))
        for other in right:
            self.collected.add("VARIANT_ADDED", spot, describe(ours), str(other))
        return False

    def _match(
        self, old: Sequence[Object], new: Sequence[Object]
    ) -> list[tuple[Object, Object, float]]:
        """Match the objects of both sides: by name, then by tag and similarity."""
        keys = {one.key for one in old} & {other.key for other in new}
        same = [(one, other, 1.0) for one in old for other in new if one.key == other.key]

        def alike(one: Object, other: Object) -> float:
            tags, others = self._tags(self.old, one), self._tags(self.new, other)
            differ = any(tags[wire] != others[wire] for wire in tags.keys() & others.keys())
            return 0.0 if differ else self.likeness(one, other)

        return same + similarity.pairs(
            [one for one in old if one.key not in keys],
            [other for other in new if other.key not in keys],
            alike,
            lambda each: each.key,
            least=_RELATED,
        )

    def _tags(self, side: Protocol, each: Object) -> Mapping[str, str]:
        by_wire = {wire: side.alternatives.of(each.fields[wire]) for wire in each.required}
        return {
            wire: alternatives[0].text
            for wire, alternatives in by_wire.items()
            if len(alternatives) == 1 and isinstance(alternatives[0], Literal)
        }

    def likeness(self, one: Object, other: Object) -> float:
        """The similarity of two objects."""
        return similarity.of_objects(one, other, self.old.alternatives, self.new.alternatives)

    def _note_name(self, one: Object, other: Object, likeness: float) -> None:
        if one.name and other.name and one.name != other.name:
            self.renamed.setdefault((one.name, other.name), likeness)

    def objects(self, old: Object, new: Object, spot: Spot) -> None:
        """Compare two objects with all of their members, once."""
        either = old.name or new.name
        if either is not None and (old.name is None or new.name is None):
            if either in self.old.types & self.new.types:
                either = None  # the type still exists; only this place has another type now
            else:
                self.extracted.add(either)
        place = "" if either else f"{spot.old} {sorted(spot.messages)}"
        pair = (old.key, new.key, place)
        if pair in self._seen:
            return
        self._seen.add(pair)
        is_meta = spot.new.endswith(f".{META}")
        if either is not None:
            owner, before = new.name or either, old.name or either
            spot = Spot(owner, before, owner, self._users(old, new) or spot.messages)
        common = [wire for wire in old.fields if wire in new.fields]
        removed = [wire for wire in old.fields if wire not in new.fields]
        added = [wire for wire in new.fields if wire not in old.fields]
        for one, other, score in self._renamed_fields(old, new, removed, added):
            self.collected.add(
                "FIELD_RENAMED", spot.member(one, other), one, other, confidence=score
            )
            self._field(old, new, (one, other), spot)
            removed.remove(one)
            added.remove(other)
        for wire in common:
            self._field(old, new, (wire, wire), spot)
        if not is_meta and _opens(old, new):  # the new object allows the removed optional members
            removed = [wire for wire in removed if wire in old.required]
        if not is_meta and _opens(new, old):
            added = [wire for wire in added if wire in new.required]
        for wire in removed:
            rule = "FIELD_REMOVED_REQUIRED" if wire in old.required else "FIELD_REMOVED_OPTIONAL"
            text = describe(self.old.alternatives.of(old.fields[wire]))
            self.collected.add(rule, spot.member(wire, wire), old=text)
        for wire in added:
            rule = "FIELD_ADDED_REQUIRED" if wire in new.required else "FIELD_ADDED_OPTIONAL"
            text = describe(self.new.alternatives.of(new.fields[wire]))
            self.collected.add(rule, spot.member(wire, wire), new=text)
        self._rest(old, new, spot, is_meta=is_meta)

    def _users(self, old: Object, new: Object) -> frozenset[Message]:
        """The messages that contain either of two objects, of common senders if there are any."""
        before, after = self.old.users_of(old), self.new.users_of(new)
        senders = {each.sender for each in before} & {each.sender for each in after}
        return frozenset(m for m in before | after if not senders or m.sender in senders)

    def _field(self, old: Object, new: Object, wires: tuple[str, str], spot: Spot) -> None:
        one, other = wires
        here = spot.member(one, other)
        if (one in old.required) != (other in new.required):
            rule = "FIELD_MADE_REQUIRED" if other in new.required else "FIELD_MADE_OPTIONAL"
            self.collected.add(rule, here, *_presence(one in old.required))
        self.compare(old.fields[one], new.fields[other], here)

    def _renamed_fields(
        self, old: Object, new: Object, removed: Sequence[str], added: Sequence[str]
    ) -> list[tuple[str, str, float]]:
        def alike(one: str, other: str) -> float:
            before, after = old.fields[one], new.fields[other]
            ours, theirs = self.old.alternatives.of(before), self.new.alternatives.of(after)
            same = describe(ours) == describe(theirs)
            return similarity.of_names(one, other) if same else 0.0

        by_name = similarity.pairs(removed, added, alike, str, least=0.7)
        left_old = [wire for wire in removed if wire not in {one for one, _, _ in by_name}]
        left_new = [wire for wire in added if wire not in {other for _, other, _ in by_name}]
        return [*by_name, *self._renamed_by_content(old, new, left_old, left_new)]

    def _renamed_by_content(
        self, old: Object, new: Object, removed: Sequence[str], added: Sequence[str]
    ) -> list[tuple[str, str, float]]:
        """The renamed members by content: the only removed and the only added member of a content.

        An object that lost and got more members was redesigned, so types prove no renaming.
        """
        if len(removed) > _FEW or len(added) > _FEW or not old.fields.keys() & new.fields.keys():
            return []
        before = _by_content(old, removed, self.old.alternatives)
        after = _by_content(new, added, self.new.alternatives)
        return [
            (wires[0], after[content][0], _SURE_BY_CONTENT)
            for content, wires in before.items()
            if len(wires) == len(after.get(content, ())) == 1
            and self._same_objects(old.fields[wires[0]], new.fields[after[content][0]])
        ]

    def _same_objects(self, old: Node, new: Node) -> bool:
        """Whether the objects among the alternatives of two members have the same members."""
        ours, theirs = (
            [each for each in values if isinstance(each, Object)]
            for values in (self.old.alternatives.of(old), self.new.alternatives.of(new))
        )
        likenesses = map(self.likeness, ours, theirs)
        return len(ours) == len(theirs) and all(each == 1 for each in likenesses)

    def _rest(self, old: Object, new: Object, spot: Spot, *, is_meta: bool) -> None:
        """Compare the rules of objects for members that they do not name.

        An object that names fewer members and allows any others was opened; `_meta` is always open,
        whatever its schema says.
        """
        if (old.rest is None) != (new.rest is None):
            rule = "OBJECT_CLOSED" if new.rest is None else "OBJECT_OPENED"
            self.collected.add(rule, spot)
        elif not is_meta and _opens(old, new):
            self.collected.add("OBJECT_OPENED", spot)
        elif not is_meta and _opens(new, old):
            self.collected.add("OBJECT_CLOSED", spot)
        if old.rest is not None and new.rest is not None and (old.rest or new.rest):
            self.compare(old.rest, new.rest, spot.below("{}"))


def _opens(old: Object, new: Object) -> bool:
    """Whether a new object names fewer members than the old one, and newly allows any others."""
    fewer = old.fields.keys() - new.fields.keys()
    return bool(old.fields and new.fields and fewer) and new.open and not old.open


def _by_content(
    each: Object, wires: Iterable[str], alternatives: Alternatives
) -> dict[tuple[bool, str], list[str]]:
    """Members by their possible values and by whether they are required."""
    members: dict[tuple[bool, str], list[str]] = {}
    for wire in wires:
        values = alternatives.of(each.fields[wire])
        if ANY in values:
            continue  # a member of any type cannot be recognized by its type
        bounds = sorted(_loosest(values).items())
        content = (wire in each.required, f"{describe(values)} {bounds}")
        members.setdefault(content, []).append(wire)
    return members


def _presence(was_required: bool) -> tuple[str, str]:
    return ("required", "optional") if was_required else ("optional", "required")


def _kinds_of(alternatives: Iterable[Alternative]) -> set[str]:
    """The JSON types of alternatives, except fixed values."""
    return {
        "object" if isinstance(alternative, Object) else str(alternative)
        for alternative in alternatives
        if not isinstance(alternative, Literal)
    }


def _is_covered(text: str, alternatives: Iterable[Alternative]) -> bool:
    """Whether a fixed value is one of those that a type allows."""
    value: object = json.loads(text)
    kind = _JSON_TYPES.get(type(value), "object")
    return any(
        isinstance(alternative, Scalar) and alternative.type == kind for alternative in alternatives
    )


def _loosest(alternatives: Iterable[Alternative]) -> dict[str, dict[str, Json]]:
    """The bounds that hold for all alternatives of a type, by type."""
    bounds: dict[str, dict[str, Json]] = {}
    for alternative in alternatives:
        if isinstance(alternative, Scalar | Array):
            before = bounds.get(str(alternative), dict(alternative.bounds))
            bounds[str(alternative)] = {
                keyword: _looser(keyword, before[keyword], value)
                for keyword, value in alternative.bounds.items()
                if keyword in before
            }
    return bounds


def _looser(keyword: str, one: Json, other: Json) -> Json:
    if keyword == "pattern":
        return one if one == other else " or ".join(sorted({*one.split(" or "), other}))
    return min(one, other) if keyword in _LOWER_BOUNDS else max(one, other)


def _bound(keyword: str, value: Json) -> str:
    return f"no {keyword}" if value is None else f"{keyword} {format_value(value)}"
