"""The bridge from one revision to another: the outcome of every member in a proxy between them.

A proxy has a client of one revision and a server of another one. This table is for the messages
that are written in the old revision, whoever sends them, and are read in the new one. The rows come
from the schemas and the facts; `bridge.toml` has the decisions that neither shows. What happens to
a member that the new revision lacks depends on the message:

    params of a client's request    dropped from the first level, kept below
    results of these requests       dropped
    a server's requests, replies    kept: the receiver decides
    announced notifications         all but some members are dropped

The package knows nothing of this table: it converts by the types of both revisions, and the ids of
rows are the places that it logs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from mcpgen.diff.alternatives import (
    ANY,
    EMPTY,
    Alternative,
    Array,
    Object,
    Scalar,
)
from mcpgen.diff.alternatives import Literal as Constant
from mcpgen.diff.changes import OTHER
from mcpgen.diff.protocol import Protocol
from mcpgen.errors import FactsError
from mcpgen.json_types import Node
from mcpgen.model.methods import Method
from mcpgen.model.name import Kind, Role
from mcpgen.model.normalized import ANY_MAP, Fixed, reference
from mcpgen.model.schema_queries import META
from mcpgen.toml_records import convert, read_toml

FILE = Path(__file__).with_name("bridge.toml")

Outcome: TypeAlias = Literal["lost", "degraded", "renamed", "meta", "own", "same"]

OUTCOMES: Mapping[Outcome, str] = {
    "lost": "it does not arrive",
    "degraded": "it arrives in a form that says less",
    "renamed": "it arrives under another name, or in another message",
    "meta": "it is carried in `_meta`",
    "own": "each side of the proxy has its own",
    "same": "it arrives as it was",
}
"""The outcomes, gravest first, with their meanings."""

_ABSENT = "{new} has no such member"
_KEPT = "passes; {new} has no such member"
_RESERVED_CODES = range(-32099, -32019)
"""Codes of errors that a revision may reserve for the specification."""
_INTERNAL = -32603


@dataclass(frozen=True)
class Decision:
    """An outcome that somebody decided.

    Attributes:
        outcome: The outcome.
        how: The form in which a message or member arrives, or the reason why it does not.
        log: Whether the proxy logs a loss: not if every message would have it.
    """

    outcome: Outcome
    how: str
    log: Literal["yes", "no"] = "yes"


@dataclass(frozen=True)
class Conversion:
    """A member that gets another form if the new revision lacks a type.

    Attributes:
        place: The id of the row.
        type: The definition that the old revision has and the new one lacks.
        outcome: The outcome.
        how: The new form.
    """

    place: str
    type: str
    outcome: Outcome
    how: str


@dataclass(frozen=True)
class Blocks:
    """Objects of one kind each, such as blocks of content.

    Attributes:
        tag: The member that names the kind.
        members: Members that hold such objects.
        outcome: The outcome if the new revision lacks the kind.
        how: The new form.
    """

    tag: str
    members: tuple[str, ...]
    outcome: Outcome
    how: str


@dataclass(frozen=True)
class Decisions:
    """The decisions of `bridge.toml`, which explains each table."""

    undeclared: tuple[str, ...]
    separate: Mapping[str, Mapping[str, Decision]]
    replaced: Mapping[str, Mapping[str, Decision]]
    announced: Mapping[str, Mapping[str, tuple[str, ...]]]
    variants: Mapping[str, Mapping[str, Decision]]
    members: Mapping[str, Mapping[str, Decision]]
    conversions: tuple[Conversion, ...]
    blocks: Blocks
    arrays: Mapping[str, Decision]


@cache
def decisions() -> Decisions:
    """The decisions, read from the file once."""
    table, place = read_toml(FILE, FactsError)
    return convert(table, Decisions, place)


@dataclass(frozen=True)
class Row:
    """The outcome of a message, or of a member of one.

    Attributes:
        id: Its place, such as `tools/list.result.tools[].icons`, by which a proxy logs it.
        sender: The role of the sender.
        outcome: The outcome.
        how: The form in which it arrives, or the reason of a loss; empty for most that pass.
        log: Whether the proxy logs the loss.
    """

    id: str
    sender: Role
    outcome: Outcome
    how: str = ""
    log: Literal["yes", "no"] = "yes"


@dataclass(frozen=True)
class Bridge:
    """The outcomes of all messages of one revision for peers of another one.

    Attributes:
        old: The revision of the messages.
        new: The revision of their receivers.
        rows: The rows, in the order of the schema's messages, those of clients first.
    """

    old: str
    new: str
    rows: tuple[Row, ...]

    @cached_property
    def counts(self) -> Mapping[Outcome, int]:
        """The number of rows of each outcome."""
        numbers = Counter(row.outcome for row in self.rows)
        return {outcome: numbers[outcome] for outcome in OUTCOMES}

    def of(self, *outcomes: Outcome) -> tuple[Row, ...]:
        """The rows of some outcomes."""
        return tuple(row for row in self.rows if row.outcome in outcomes)


def derive(old: Protocol, new: Protocol) -> Bridge:
    """The bridge from one side of a comparison to the other.

    Args:
        old: The revision of the messages.
        new: The revision of their receivers.
    """
    derivation = _Derivation(old, new)
    for sender in get_args(Role):
        for kind in get_args(Kind):
            for method in old.messages(sender, kind).values():
                derivation.message(method)
    derivation.conversions()
    derivation.metadata()
    derivation.unknown_members()
    derivation.errors()
    return Bridge(old.name, new.name, tuple(derivation.rows.values()))


_Way: TypeAlias = Literal["typed", "filtered", "kept"]
"""Members that the new revision lacks: all dropped, those of the first level dropped, or kept."""

_WAYS: Mapping[tuple[Role, str], _Way] = {
    ("client", "params"): "filtered",
    ("client", "result"): "typed",
    ("server", "params"): "kept",
    ("server", "result"): "kept",
}
"""By the role that sends the request, and the part of the request or of its response."""


@dataclass(frozen=True)
class _Place:
    """A place in a message.

    Attributes:
        id: The id of its row.
        part: `params` or `result`.
        sender: The role of the sender.
        way: What the proxy does with unknown members.
        depth: Levels above this place, within the part.
        name: The member at this place.
    """

    id: str
    part: str
    sender: Role
    way: _Way
    depth: int = 0
    name: str = ""

    def member(self, wire: str) -> _Place:
        """The place of a member of the object here."""
        return replace(self, id=f"{self.id}.{wire}", depth=self.depth + 1, name=wire)

    def below(self, suffix: str) -> _Place:
        """The place of the items of an array, or of the values of a map."""
        return replace(self, id=f"{self.id}{suffix}", depth=self.depth + 1)


@dataclass
class _Derivation:
    old: Protocol
    new: Protocol
    rows: dict[tuple[Role, str], Row] = field(default_factory=dict[tuple[Role, str], Row])
    _open: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(
        self,
        sender: Role,
        place: str,
        outcome: Outcome,
        how: str = "",
        log: Literal["yes", "no"] = "yes",
    ) -> None:
        """Add a row; of two forms of one place, the graver outcome counts."""
        row = Row(place, sender, outcome, how.format(new=self.new.name), log)
        order = list(OUTCOMES)
        before = self.rows.get((sender, place))
        if before is None or order.index(outcome) < order.index(before.outcome):
            self.rows[sender, place] = row

    def _decide(self, sender: Role, place: str, decision: Decision) -> None:
        self.add(sender, place, decision.outcome, decision.how, decision.log)

    # messages

    def message(self, method: Method) -> None:
        """Add the rows of a request with its response, or of a notification."""
        sender, name = method.sender, method.name
        other = self.new.messages(sender, method.kind).get(name)
        decision = decisions().separate.get(sender, {}).get(name)
        if decision is None and other is None:
            decision = decisions().replaced.get(sender, {}).get(name)
        if decision is not None:
            self._decide(sender, name, decision)
        elif other is None:
            is_declared = method.capability[:1] not in [(each,) for each in decisions().undeclared]
            is_answered = method.kind == "request"
            how = (
                f"{{new}} has no such message{': the sender gets an error' if is_answered else ''}"
            )
            self.add(sender, name, "lost", how, log="yes" if is_declared else "no")
        else:
            self._method(method, other)

    def _method(self, method: Method, other: Method) -> None:
        sender, name = method.sender, method.name
        inside = self.new.is_inside(other)
        if inside == self.old.is_inside(method):
            self.add(sender, name, "same")
        else:
            form = "a question inside a result" if inside else "a request of its own"
            self.add(sender, name, "renamed", form)
        announced = decisions().announced.get(sender, {}).get(name)
        if announced is not None:
            self._announcement(method, other, announced)
        else:
            place = _Place(f"{name}.params", "params", sender, _WAYS[sender, "params"])
            self._object(params_of(self.old, method), params_of(self.new, other), place)
        if method.result is not None:  # the other one has a result too
            old, new = (reference(each.result or "") for each in (method, other))
            way = _WAYS[sender, "result"]
            place = _Place(f"{name}.result", "result", OTHER[sender], way)
            self._values(old, new, place)

    def _announcement(self, method: Method, other: Method, members: Sequence[str]) -> None:
        """Add the rows of a notification that the proxy writes anew."""
        theirs = params_of(self.new, other).fields
        for wire in params_of(self.old, method).fields:
            place = f"{method.name}.params.{wire}"
            if wire not in members:
                how = "the proxy sends its own notification"
                self.add(method.sender, place, "lost", how, log="no")
            elif wire not in theirs:
                self.add(method.sender, place, "lost", _ABSENT)
            else:
                self.add(method.sender, place, "same")

    # values

    def _values(self, old: Node, new: Node, place: _Place) -> None:
        ours, theirs = self.old.alternatives.of(old), self.new.alternatives.of(new)
        pair = (_key(ours), _key(theirs))
        is_leaf = not any(isinstance(each, Object | Array) for each in ours)
        if ANY in theirs or is_leaf or pair in self._open:
            self._leaf(ours, theirs, place)
            return
        self._open.add(pair)
        for each in ours:
            if isinstance(each, Array):
                self._array(each, theirs, place)
            elif isinstance(each, Object):
                self._variant(each, ours, theirs, place)
        self._open.remove(pair)

    def _leaf(
        self, ours: Sequence[Alternative], theirs: Sequence[Alternative], place: _Place
    ) -> None:
        """Add the row of a value without members."""
        self.add(place.sender, place.id, "same")
        if ANY in theirs or place.way != "typed":
            return
        kinds = {each.type for each in theirs if isinstance(each, Scalar)}
        texts = {each.text for each in theirs if isinstance(each, Constant)}
        if ANY in ours:
            return
        for each in ours:
            if isinstance(each, Constant) and each.text not in texts and "string" not in kinds:
                self._refuse(place, each.text)
            elif isinstance(each, Scalar) and each.type not in kinds:
                self._refuse(place, each.type)

    def _refuse(self, place: _Place, value: str) -> None:
        how = f"{{new}} has no such value: the {place.part} is refused"
        self.add(place.sender, f"{place.id}={value}", "lost", how)

    def _array(self, ours: Array, theirs: Sequence[Alternative], place: _Place) -> None:
        items = [each.items for each in theirs if isinstance(each, Array)]
        if items:
            self._values(ours.items, {"anyOf": items}, place.below("[]"))
            return
        decision = decisions().arrays.get(place.id)
        if decision is not None:
            self._decide(place.sender, f"{place.id}[]", decision)
            blocks = self.old.alternatives.of(ours.items)
            for block in blocks:
                if isinstance(block, Object):
                    self._variant(block, blocks, theirs, place)
        elif place.way == "typed":
            self._refuse(place, "array")

    def _variant(
        self,
        one: Object,
        ours: Sequence[Alternative],
        theirs: Sequence[Alternative],
        place: _Place,
    ) -> None:
        """Add the rows of one of the objects at a place."""
        objects = [each for each in theirs if isinstance(each, Object)]
        other = self._counterpart(one, ours, objects)
        if other is not None:
            self._object(one, other, place)
            return
        decision = decisions().variants[place.sender].get(one.name or "")
        blocks = decisions().blocks
        kind = _constant(self.old, one, blocks.tag)
        if decision is not None:
            self._decide(place.sender, f"{place.id}:{one.name}", decision)
        elif kind is not None and place.name in blocks.members:
            self.add(place.sender, f"{place.id}.{blocks.tag}={kind}", blocks.outcome, blocks.how)
        elif place.way == "typed":
            self._refuse(place, str(one))

    def _counterpart(
        self, one: Object, ours: Sequence[Alternative], theirs: Sequence[Object]
    ) -> Object | None:
        """The object of the new revision that stands at the place of an object."""
        same = next((each for each in theirs if each.key == one.key), None)
        if same is not None:
            return same
        tag = decisions().blocks.tag
        kind = _constant(self.old, one, tag)
        if kind is not None:
            return next((each for each in theirs if _constant(self.new, each, tag) == kind), None)
        is_only = sum(isinstance(each, Object) for each in ours) == 1
        return theirs[0] if is_only and len(theirs) == 1 else None

    def _object(self, one: Object, other: Object, place: _Place) -> None:
        if place.depth and not one.fields and not one.rest:
            self.add(place.sender, place.id, "same")
        for wire in one.fields:
            self._member(one, wire, other, place.member(wire))
        if one.fields or not one.rest:
            return
        if other.rest:
            self._values(one.rest, other.rest, place.below("{}"))
        else:
            self.add(place.sender, place.id, "same")

    def _member(self, one: Object, wire: str, other: Object, place: _Place) -> None:
        """Add the rows of a member of an object."""
        is_first = place.depth == 1
        decision = decisions().members.get(place.part, {}).get(wire) if is_first else None
        if wire == META and is_first:
            self.add(place.sender, place.id, "same", "keys of the protocol are rows of their own")
        elif wire in other.fields:
            self._common(one, wire, other, place)
        elif decision is not None:
            self._decide(place.sender, place.id, decision)
        elif place.way == "typed" or (place.way == "filtered" and is_first):
            self.add(place.sender, place.id, "lost", _ABSENT)
        else:
            self.add(place.sender, place.id, "same", _KEPT)

    def _common(self, one: Object, wire: str, other: Object, place: _Place) -> None:
        """Add the rows of a member that both revisions have."""
        definition = self.new.normal.definitions.get(other.key)
        if definition is None or definition.properties.get(wire) != ANY_MAP:
            self._values(one.fields[wire], other.fields[wire], place)
            return
        ours, theirs = _schema_check(self.old, one, wire), _schema_check(self.new, other, wire)
        if place.way != "typed":
            self.add(place.sender, place.id, "same")
        elif ANY in self.old.alternatives.of(one.fields[wire]):
            self.add(place.sender, place.id, "lost", "values that are no objects; objects pass")
        elif theirs is not None and theirs != ours:
            how = f"schemas whose {theirs.keyword} is not {theirs.value}; others pass"
            self.add(place.sender, place.id, "lost", how)
        else:
            self.add(place.sender, place.id, "same")

    # parts of all messages

    def conversions(self) -> None:
        """Add the rows of members that have another form in the new revision."""
        for each in decisions().conversions:
            message = self.rows.get(("server", each.place.partition(".")[0]))
            passes = message is not None and message.outcome != "lost"
            if passes and each.type in self.old.published - self.new.published:
                self.add("server", each.place, each.outcome, each.how)

    def metadata(self) -> None:
        """Add the rows of the protocol's keys of `_meta`."""
        keys, behaviour = self.old.facts.meta, self.new.facts.behaviour
        for sender in get_args(Role):
            how = "each side has its own; the progress passes"
            self.add(sender, f"params.{META}.progressToken", "own", how)
        for key in (keys.protocol_version, keys.client_info, keys.client_capabilities):
            if key is not None:
                self.add("client", f"params.{META}.{key}", "own", "each client has its own")
        if keys.log_level is not None and behaviour.log_level != "request":
            how = "a request sets the level for the session"
            self.add("client", f"params.{META}.{keys.log_level}", "renamed", how)
        for key in (keys.server_info, keys.subscription_id, keys.related_task):
            if key is not None:
                self.add("server", f"{META}.{key}", "own", "each session has its own")

    def unknown_members(self) -> None:
        """Add the rows of members that the old revision itself does not define."""
        lacks = f"that {self.old.name} does not define"
        how = f"members {lacks}"
        self.add("client", "params.*", "lost", f"{how}, at the first level")
        if not self.old.methods.inputs:  # otherwise the proxy refuses them
            self.add("client", "result.*", "degraded", f"blocks of kinds {lacks}")
        self.add("server", "result.*", "lost", f"{how}, in any object that is no map")
        self.add(
            "server", "params.*", "lost", f"{how}, in notifications that are sent anew", log="no"
        )

    def errors(self) -> None:
        """Add the rows of the codes of errors that differ."""
        old, new = self.old.facts.errors, self.new.facts.errors
        codes = {old.resource_not_found: "resource not found"}
        stated = (old.unsupported_revision, old.missing_capability, old.header_mismatch)
        for code in (*stated, old.url_elicitation_required, *(old.defined or ())):
            if code is not None:
                codes.setdefault(code, "")
        for code in sorted(codes):
            place = f"error.code={code}"
            is_reserved = new.defined is not None and code in _RESERVED_CODES
            if codes[code] and new.resource_not_found != code:
                self.add("server", place, "renamed", f"code {new.resource_not_found}")
            elif code in new.retired or (is_reserved and code not in (new.defined or ())):
                self.add("server", place, "degraded", f"code {_INTERNAL}; message and data pass")
            else:
                self.add("server", place, "same")


def params_of(side: Protocol, method: Method) -> Object:
    """The params of a message as one object, with the members of all forms that they have."""
    values = side.alternatives.of(reference(method.params)) if method.params else ()
    objects = [each for each in values if isinstance(each, Object)]
    if len(objects) == 1:
        return objects[0]
    return replace(
        EMPTY, fields={wire: node for one in objects for wire, node in one.fields.items()}
    )


def _key(alternatives: Sequence[Alternative]) -> str:
    """A key that is equal for equal alternatives."""
    return " | ".join(each.key for each in alternatives)


def _schema_check(side: Protocol, owner: Object, wire: str) -> Fixed | None:
    """The check of a member that is a JSON Schema with a fixed keyword."""
    definition = side.normal.definitions.get(owner.key)
    checks = () if definition is None else definition.checks
    return next((each for each in checks if isinstance(each, Fixed) and each.wire == wire), None)


def _constant(side: Protocol, each: Object, wire: str) -> str | None:
    """The only text that a member of an object may be; `None` for any other member."""
    values = side.alternatives.of(each.fields[wire]) if wire in each.fields else ()
    if len(values) != 1 or not isinstance(values[0], Constant):
        return None
    value: object = json.loads(values[0].text)
    return value if isinstance(value, str) else None
