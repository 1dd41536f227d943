"""One side of a comparison: the messages, types and facts of a revision or of a schema file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from mcpgen.diff.alternatives import Alternative, Alternatives, Array, Object
from mcpgen.diff.changes import OTHER, Message
from mcpgen.json_types import Node
from mcpgen.model import methods, schema_facts, schema_sources
from mcpgen.model.methods import Method, Methods
from mcpgen.model.name import Kind, Role, name_types
from mcpgen.model.normalize import normalize
from mcpgen.model.normalized import NormalizedSchema, reference
from mcpgen.schema import Schema, facts
from mcpgen.schema.facts import Facts
from mcpgen.schema.structure import subschemas, unescape

_ENVELOPES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("request", ("JSONRPCRequest",)),
    ("notification", ("JSONRPCNotification",)),
    ("success response", ("JSONRPCResultResponse", "JSONRPCResponse")),
    ("error response", ("JSONRPCErrorResponse", "JSONRPCError")),
)
"""The names of the definition of each kind of message in different revisions."""

_CONTENT = frozenset({"params", "result"})
"""Members of a message that the type of each method specifies."""


@dataclass(frozen=True)
class Slot:
    """A place where a value of a type is sent.

    Attributes:
        message: The message.
        node: The schema of the value.
    """

    message: Message
    node: Node


@dataclass(frozen=True)
class Protocol:
    """One side of a comparison.

    Attributes:
        name: The revision, or the user's name of the file.
        facts: The facts that its pages state.
        normal: Its types.
        methods: Its messages.
        marks: Types, and members as `Type.member`, that the schema marks as deprecated.
    """

    name: str
    facts: Facts
    normal: NormalizedSchema
    methods: Methods
    marks: frozenset[str] = frozenset()

    @cached_property
    def alternatives(self) -> Alternatives:
        """The values that the schemas allow."""
        return Alternatives(self.normal)

    def messages(self, sender: Role, kind: Kind) -> dict[str, Method]:
        """The messages of one direction by name, with requests inside results."""
        own = self.methods.of(sender, kind)
        inside = (
            each for each in self.methods.inputs if (sender, kind) == (each.sender, each.kind)
        )
        return {method.name: method for method in (*inside, *own)}

    def is_inside(self, method: Method) -> bool:
        """Whether a request occurs inside a result only, and is no message."""
        return method in self.methods.inputs and method not in self.methods.all

    def slots(self, method: Method) -> Iterator[Slot]:
        """The typed values of a message: its params and its result."""
        if method.params is not None:
            message = Message(method.sender, method.name)
            yield Slot(message, reference(method.params))
        if method.result is not None:
            message = Message(OTHER[method.sender], f"{method.name} result")
            yield Slot(message, reference(method.result))

    @cached_property
    def envelopes(self) -> Mapping[str, Object]:
        """The object of the envelope of each kind of message."""
        by_kind: dict[str, Object] = {}
        for text, candidates in _ENVELOPES:
            objects = (
                self.alternatives.object(name) for name in candidates if name in self.published
            )
            first = next((each for each in objects if each is not None), None)
            if first is not None:
                fields = {wire: node for wire, node in first.fields.items() if wire not in _CONTENT}
                by_kind[text] = replace(first, fields=fields)
        return by_kind

    @cached_property
    def published(self) -> frozenset[str]:
        """Names of types that the schema itself has."""
        return frozenset(self.normal.schema.definitions)

    @cached_property
    def types(self) -> frozenset[str]:
        """Names of the objects in messages. Unions and enumerations are invisible on the wire."""
        return self.published.intersection(self.users)

    def users_of(self, each: Object) -> frozenset[Message]:
        """The messages that contain a named object; empty for an unnamed one."""
        return self.users.get(each.key, frozenset()) if each.name else frozenset()

    @cached_property
    def errors(self) -> tuple[Object, ...]:
        """The types of error responses that define their own code."""
        objects = (self.alternatives.object(name) for name in sorted(self.published))
        return tuple(
            each
            for each in objects
            if each is not None and {"error", "jsonrpc"} <= each.fields.keys() and each.name
        )

    @cached_property
    def users(self) -> Mapping[str, frozenset[Message]]:
        """The messages that contain each object, by the object's key."""
        messages_by_key: dict[str, set[Message]] = {}
        for method in (*self.methods.all, *self.methods.inputs):
            for slot in self.slots(method):
                for key in self._reachable(self.alternatives.of(slot.node)):
                    messages_by_key.setdefault(key, set()).add(slot.message)
        in_methods = frozenset(messages_by_key)
        others = [(each, [Message("server", "error response")]) for each in self.errors]
        others += [
            (each, [Message(sender, text) for sender in OTHER])
            for text, each in self.envelopes.items()
        ]
        for each, messages in others:
            for key in self._reachable((each,)) - in_methods:
                messages_by_key.setdefault(key, set()).update(messages)
        return {key: frozenset(messages) for key, messages in messages_by_key.items()}

    def _reachable(self, alternatives: Sequence[Alternative]) -> set[str]:
        seen: set[str] = set()
        pending = list(alternatives)
        while pending:
            alternative = pending.pop()
            if isinstance(alternative, Array) and alternative.key not in seen:
                seen.add(alternative.key)
                pending += self.alternatives.of(alternative.items)
            elif isinstance(alternative, Object) and alternative.key not in seen:
                seen.add(alternative.key)
                for node in (*alternative.fields.values(), alternative.rest):
                    if node:
                        pending += self.alternatives.of(node)
        return seen


def load(old: str, new: str, *, errata: bool) -> tuple[Protocol, Protocol]:
    """Both sides of a comparison.

    Args:
        old: A revision by its name or as `latest`, or the path of a schema file.
        new: The revision or file to compare with, likewise.
        errata: Whether known defects of published schemas are corrected.

    Raises:
        UsageError: A side is neither a revision nor a file.
        SchemaError: A file is no schema of the protocol.
    """
    one, other = _read(old, errata), _read(new, errata)
    return _protocol(one, other.schema), _protocol(other, one.schema)


@dataclass(frozen=True)
class _Input:
    """A schema with its facts and the definitions of the revisions after it."""

    name: str
    schema: Schema
    facts: Facts
    newer: Sequence[Mapping[str, Node]]
    marks: frozenset[str]


def _read(word: str, errata: bool) -> _Input:
    path = Path(word)
    if path.suffix or path.is_file():
        source = schema_sources.of_file(path)
        loaded = schema_sources.load(source, errata)
        stated = schema_facts.facts_for(loaded, source.base, None).facts
        newer = schema_sources.newer_than(source.base, loaded)
        marks = _marks(source.file.document) if source.file is not None else frozenset[str]()
        return _Input(word, loaded, stated, newer, marks)
    (source,) = schema_sources.by_name((word,))
    loaded = schema_sources.load(source, errata)
    stated = facts.with_constants(facts.load(source.revision), loaded)
    newer = schema_sources.newer_than(source.revision, loaded)
    listed = (row.types for row in stated.pages.deprecated.values())
    return _Input(source.revision, loaded, stated, newer, frozenset(chain.from_iterable(listed)))


def _marks(document: Node) -> frozenset[str]:
    """The types and members that a schema deprecates, by keyword or by a tag in a description."""
    return frozenset(
        ".".join(unescape(token) for token in pointer.split("/")[2:] if token != "properties")
        for pointer, node in subschemas(document)
        if node.get("deprecated") is True or "@deprecated" in str(node.get("description", ""))
    )


def _protocol(own: _Input, other: Schema) -> Protocol:
    newer = (*own.newer, other.definitions)
    return replace(of_schema(own.schema, own.facts, own.name, newer), marks=own.marks)


def of_schema(
    loaded: Schema, stated: Facts, name: str, other: Sequence[Mapping[str, Node]]
) -> Protocol:
    """One side of a comparison, from a schema and its facts.

    Args:
        loaded: The schema.
        stated: The facts.
        name: The name for reports.
        other: Definitions of other schemas, which name inline objects of this schema.
    """
    # Without defaults: a required member with a default must still count as required.
    plain = normalize(loaded, replace(stated, defaults={}), other, for_python=False)
    named = name_types(plain, stated)
    derived = methods.derive(named.types, named.messages, stated)
    return Protocol(name, stated, named.types, derived)
