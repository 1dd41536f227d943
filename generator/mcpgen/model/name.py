"""The third stage: every type that the protocol needs has a name, with its role in the protocol.

The plain form names what the schema has. Beyond that, each side has an implementation and
capabilities, and each message has params and a result. A type for one of these that the schema
leaves without a name is added here; the stages after this one add none.

The unions of the schema tell the senders of messages. The result of a request `X` is the type that
the facts name, else the type in `XResultResponse`, else `XResult`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node
from mcpgen.model import schema_queries
from mcpgen.model.normalized import Definition, NormalizedSchema, reference, target
from mcpgen.model.schema_queries import META
from mcpgen.model.unions import member_names
from mcpgen.schema import Note
from mcpgen.schema.facts import Facts, Results

Role = Literal["client", "server"]
Kind = Literal["request", "notification"]

MESSAGE_UNIONS: Mapping[str, tuple[Role, Kind]] = {
    "ClientRequest": ("client", "request"),
    "ServerRequest": ("server", "request"),
    "ClientNotification": ("client", "notification"),
    "ServerNotification": ("server", "notification"),
}
"""The unions of messages, with the sender and the kind of each."""

_LONGEST = 200
_NAME_RULE = f"a method of 1 to {_LONGEST} characters that can be printed, no space at either end"
_INPUTS = "InputRequest"
"""The union of the requests for input inside results."""
_EMPTY_RESULT = "EmptyResult"

_ROLE_NAMES = {
    "implementation": "Implementation",
    "client_capabilities": "ClientCapabilities",
    "server_capabilities": "ServerCapabilities",
    "meta": "RequestMetaObject",
}
_ROLE_MEMBERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "implementation": (
        ("InitializeRequestParams", "clientInfo"),
        ("RequestMetaObject", "io.modelcontextprotocol/clientInfo"),
    ),
    "client_capabilities": (
        ("InitializeRequestParams", "capabilities"),
        ("RequestMetaObject", "io.modelcontextprotocol/clientCapabilities"),
    ),
    "server_capabilities": (
        ("InitializeResult", "capabilities"),
        ("DiscoverResult", "capabilities"),
    ),
    "meta": (("RequestParams", META),),
}
_EMPTY_OBJECT: Node = {"type": "object", "properties": {}, "required": []}


@dataclass(frozen=True)
class Message:
    """One request or notification in one direction, with its types.

    Attributes:
        name: The name of its method on the wire.
        kind: Request or notification.
        sender: The role of the sender.
        type: The definition of the whole message.
        params: The definition of its params; `None` for params without a named definition.
        result: The definition of its result; `None` for notifications.
    """

    name: str
    kind: Kind
    sender: Role
    type: str
    params: str | None
    result: str | None


@dataclass(frozen=True)
class Messages:
    """The messages of a schema.

    Attributes:
        all: Every message, in the order of the schema's unions.
        inputs: Requests for input inside results of a server.
    """

    all: tuple[Message, ...]
    inputs: tuple[Message, ...] = ()

    @property
    def exchanged(self) -> frozenset[str]:
        """The definitions of params and results."""
        every = (*self.all, *self.inputs)
        return frozenset(name for m in every for name in (m.params, m.result) if name is not None)


@dataclass(frozen=True)
class NamedSchema:
    """A schema in which every type has a name.

    Attributes:
        types: The types: those of the plain form, and those that were added.
        roles: The definition for each role: `implementation`, `client_capabilities`,
            `server_capabilities`, `meta`.
        messages: The messages.
    """

    types: NormalizedSchema
    roles: Mapping[str, str]
    messages: Messages


def name_types(plain: NormalizedSchema, facts: Facts) -> NamedSchema:
    """Name the types of roles and messages.

    Raises:
        SchemaError: A message has no method name, its params are no object, or no rule finds its
            result.
    """
    roles, added = _roles(plain)
    types = replace(plain, definitions={**plain.definitions, **added})
    table = _Table(types, facts)
    messages = [
        table.message(each, sender, kind)
        for union, (sender, kind) in MESSAGE_UNIONS.items()
        for each in _definitions(types, union)
    ]
    inputs = [table.message(each, "server", "request") for each in _definitions(types, _INPUTS)]
    return NamedSchema(table.complete(), roles, Messages(tuple(messages), tuple(inputs)))


def name_messages(
    plain: NormalizedSchema,
    facts: Facts,
    roles: Mapping[str, str],
    messages: Mapping[str, Sequence[str]],
) -> NamedSchema:
    """Name the types of some messages.

    A request without a result type gets the empty result, with a note.

    Args:
        plain: The schema.
        facts: Its facts.
        roles: The definition for each role.
        messages: The messages, by the name of the union that says who sends them.

    Raises:
        SchemaError: As for `name_types`.
    """
    table = _Table(plain, facts, without_result=_EMPTY_RESULT)
    every = [
        table.message(plain.definitions[each], *MESSAGE_UNIONS[union])
        for union, named in messages.items()
        for each in named
    ]
    return NamedSchema(table.complete(), roles, Messages(tuple(every)))


def results_by_rule(plain: NormalizedSchema, facts: Facts) -> Results:
    """The results that rules find and the schema has, for requests without results in the facts."""
    table = _Table(plain, facts)
    results: dict[Role, dict[str, tuple[str, ...]]] = {"client": {}, "server": {}}
    unions: Sequence[tuple[str, Role]] = (
        ("ClientRequest", "client"),
        ("ServerRequest", "server"),
        (_INPUTS, "server"),
    )
    for union, sender in unions:
        for message in _definitions(plain, union):
            method: Json = message.properties.get("method", {}).get("const")
            named = table.results(message, method, sender) if isinstance(method, str) else ()
            if (
                method not in table.stated_results(sender)
                and set(named) <= plain.definitions.keys()
            ):
                results[sender][method] = named
    return Results(results["client"], results["server"])


def _definitions(types: NormalizedSchema, union: str) -> Sequence[Definition]:
    """The definitions of the messages of a union."""
    definition = types.definitions.get(union)
    if definition is None:
        return ()
    named = member_names(types, definition) or (union,)
    messages = [types.resolve(reference(each)) for each in named]
    return [message for message in messages if message is not None]


class _Table:
    """The messages of a schema, with the types that they add."""

    def __init__(self, types: NormalizedSchema, facts: Facts, without_result: str = "") -> None:
        self._types = types
        self._facts = facts
        self._without_result = without_result
        self._notes: list[Note] = []
        self._added: dict[str, Definition] = {}

    def complete(self) -> NormalizedSchema:
        """The schema with the types that its messages need."""
        definitions = {**self._types.definitions, **self._added}
        return replace(
            self._types, definitions=definitions, notes=(*self._types.notes, *self._notes)
        )

    def message(self, message: Definition, sender: Role, kind: Kind) -> Message:
        properties = message.properties
        method: Json = properties.get("method", {}).get("const")
        if not isinstance(method, str):
            raise self._types.schema.error(
                f"{message.pointer}/properties",
                "a method with a const",
                format_value(list(properties)),
            )
        if not (method.isprintable() and method == method.strip() and 0 < len(method) <= _LONGEST):
            raise self._types.schema.error(
                f"{message.pointer}/properties/method/const", _NAME_RULE, format_value(method)
            )
        node = properties.get("params")
        if node is not None and self._is_no_object(node):
            raise self._types.schema.error(
                f"{message.pointer}/properties/params",
                "params that are an object",
                format_value(node),
            )
        params = target(node) if node and "$ref" in node else None
        result = self._result(message, method, sender) if kind == "request" else None
        return Message(method, kind, sender, message.name, params, result)

    def _is_no_object(self, node: Node) -> bool:
        """Whether a schema is that of a scalar or an array."""
        while "$ref" in node:
            node = self._types.definitions[target(node)].node
        return not {"const", "enum"}.isdisjoint(node) or node.get("type", "object") != "object"

    def _result(self, message: Definition, method: str, sender: Role) -> str:
        stem = message.name.removesuffix("Request")
        named = self.results(message, method, sender)
        for each in named:
            if each not in self._types.definitions:
                if self._without_result in self._types.definitions:
                    text = f"no type {stem}Result, taken as {self._without_result}"
                    self._notes.append(Note(message.pointer, text))
                    return self._without_result
                raise self._types.schema.error(
                    message.pointer, f"a result type for {method}, such as {stem}Result", "none"
                )
        return named[0] if len(named) == 1 else self._union(stem, named, message)

    def stated_results(self, sender: Role) -> Mapping[str, tuple[str, ...]]:
        """The results that the facts state, by method."""
        return self._facts.results.client if sender == "client" else self._facts.results.server

    def results(self, message: Definition, method: str, sender: Role) -> tuple[str, ...]:
        """The names of the results of a request, which the schema may lack."""
        stem = message.name.removesuffix("Request")
        return self.stated_results(sender).get(method) or self._response(stem) or (f"{stem}Result",)

    def _response(self, stem: str) -> tuple[str, ...] | None:
        response = self._types.definitions.get(f"{stem}ResultResponse")
        if response is None or not response.is_object:
            return None
        node = response.properties.get("result", {})
        if "$ref" in node:
            return (target(node),)
        published: Node = self._types.schema.definitions.get(response.name, {})
        open_result: Json = published.get("properties", {}).get("result", {})
        return (target(open_result),) if "$ref" in open_result else None

    def _union(self, stem: str, members: Sequence[str], message: Definition) -> str:
        """The union of several results, under the name that an `XResultResponse` would give it."""
        union = f"{stem}ResultResponseResult"
        node: Node = {"anyOf": [reference(member) for member in members]}
        if self._added.setdefault(union, Definition(union, node, message.pointer)).node != node:
            raise self._types.schema.error(
                message.pointer, f"one meaning for {union}", " and ".join(members)
            )
        return union


def _roles(plain: NormalizedSchema) -> tuple[Mapping[str, str], Mapping[str, Definition]]:
    """The definition for each role, and the definitions of roles that a schema lacks.

    Roles are used by every connection: the implementation and the capabilities of a side. Their
    definitions have the names of all dated revisions. If a schema lacks a name, the definition is
    the type of the member that holds the role's value; if there is none, an empty object.
    """
    added: dict[str, Definition] = {}
    by_role: dict[str, str] = {}
    for role, official in _ROLE_NAMES.items():
        by_role[role] = _role_type(plain, role) or official
        if official not in plain.definitions and by_role[role] == official:
            added[official] = Definition(official, _EMPTY_OBJECT, "/$defs")
    return by_role, added


def _role_type(plain: NormalizedSchema, role: str) -> str | None:
    """The object that a member refers to, if no definition has the name for the role."""
    if _ROLE_NAMES[role] in plain.definitions:
        return None
    for owner, wire in _ROLE_MEMBERS[role]:
        published: Node = plain.schema.definitions.get(owner, {})
        node = schema_queries.properties(published).get(wire, {})
        if "$ref" not in node and owner in plain.definitions:
            node = plain.definitions[owner].properties.get(wire, {})
        definition = plain.definition(target(node)) if "$ref" in node else None
        if definition is not None and definition.is_object:
            return definition.name
    return None
