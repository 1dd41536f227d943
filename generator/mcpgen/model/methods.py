"""The messages of a revision, with sender, params and result.

The unions of the schema tell the senders. The result of a request `X` is the type that the
facts name, else the type in `XResultResponse`, else `XResult`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from mcpgen import names, schema
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.core_names import core_names
from mcpgen.model.normalized import Definition, NormalizedSchema, reference, target
from mcpgen.model.unions import member_names
from mcpgen.schema import Note
from mcpgen.schema.facts import Facts, Results

Role = Literal["client", "server"]
Kind = Literal["request", "notification"]

_UNIONS: Mapping[str, tuple[Role, Kind]] = {
    "ClientRequest": ("client", "request"),
    "ServerRequest": ("server", "request"),
    "ClientNotification": ("client", "notification"),
    "ServerNotification": ("server", "notification"),
}
_LONGEST = 200
_NAME_RULE = f"a method of 1 to {_LONGEST} characters that can be printed, no space at either end"
_INPUTS = "InputRequest"
"""The union of the requests for input inside results."""
_BATCH = "JSONRPCBatchRequest"
_CURSOR, _NEXT = "cursor", "nextCursor"
_LIST = "list"
_EMPTY_RESULT = "EmptyResult"
"""The last part of the names of list requests."""
_FINDING = ("name", "uri")
"""Members of params by which a client of several servers finds the server of a request."""


@dataclass(frozen=True)
class Method:
    """One request or notification in one direction.

    Attributes:
        name: The wire's name.
        kind: Request or notification.
        sender: The role of the sender.
        type: The definition of the whole message.
        python_name: Its name in Python: `call_tool`.
        params: The definition of its params; `None` for params without a named definition.
        has_params: Whether the message may have params.
        params_required: Whether the message must have params.
        result: The definition of its result; `None` for notifications.
        results: The definitions that the result may be.
        capability: Path of the required capability.
        items: Wire name of the list in the result of a list request.
        item: Definition of the items of that list.
        runs_tool: Whether it runs a tool, whose result has a value.
        positional: Wire names of the params that are taken by position, in this order.
        for_groups: Whether a client of several servers can send it.
    """

    name: str
    kind: Kind
    sender: Role
    type: str
    python_name: str
    params: str | None
    has_params: bool
    params_required: bool
    result: str | None
    results: tuple[str, ...]
    capability: tuple[str, ...]
    items: str | None
    item: str | None
    runs_tool: bool
    positional: tuple[str, ...]
    for_groups: bool


@dataclass(frozen=True)
class Methods:
    """All messages of a revision.

    Attributes:
        normal: The schema, with the unions of results that methods need.
        all: Every method, in the order of the schema's unions.
        inputs: Requests for input inside results of a server.
    """

    normal: NormalizedSchema
    all: tuple[Method, ...]
    inputs: tuple[Method, ...]

    @property
    def handshake(self) -> bool:
        """Whether a session begins with `initialize`."""
        name = core_names().handshake
        return any(method.name == name and method.sender == "client" for method in self.all)

    @property
    def batching(self) -> bool:
        """Whether a message may be a batch."""
        return _BATCH in self.normal.definitions

    def of(self, sender: Role, kind: Kind) -> tuple[Method, ...]:
        """The methods of one direction."""
        return tuple(m for m in self.all if m.sender == sender and m.kind == kind)


def derive(normal: NormalizedSchema, facts: Facts) -> Methods:
    """The methods of a schema.

    Raises:
        SchemaError: A message has no method name, its params are no object, or no rule finds its
            result.
    """
    table = _Table(normal, facts)
    methods = [
        table.method(message, sender, kind)
        for union, (sender, kind) in _UNIONS.items()
        for message in _messages(normal, union)
    ]
    inputs = [table.method(message, "server", "request") for message in _messages(normal, _INPUTS)]
    _check_unique(normal, methods)
    _check_unique(normal, inputs)
    definitions = {**normal.definitions, **table.added}
    return Methods(replace(normal, definitions=definitions), tuple(methods), tuple(inputs))


def derive_some(
    normal: NormalizedSchema, facts: Facts, messages: Mapping[str, Sequence[str]]
) -> Methods:
    """The methods of some messages, by the name of the union that says who sends them.

    A request without a result type gets the empty result, with a note.

    Raises:
        SchemaError: As for `derive`.
    """
    table = _Table(normal, facts, without_result=_EMPTY_RESULT)
    methods = [
        table.method(normal.definitions[name], *_UNIONS[union])
        for union, named in messages.items()
        for name in named
    ]
    _check_unique(normal, methods)
    definitions = {**normal.definitions, **table.added}
    notes = (*normal.notes, *table.notes)
    normal = replace(normal, definitions=definitions, notes=notes)
    return Methods(normal, tuple(methods), ())


def results_by_rule(normal: NormalizedSchema, facts: Facts) -> Results:
    """The results that rules find and the schema has, for requests without results in the facts."""
    table = _Table(normal, facts)
    results: dict[Role, dict[str, tuple[str, ...]]] = {"client": {}, "server": {}}
    unions: Sequence[tuple[str, Role]] = (
        ("ClientRequest", "client"),
        ("ServerRequest", "server"),
        (_INPUTS, "server"),
    )
    for union, sender in unions:
        for message in _messages(normal, union):
            method: Json = message.properties.get("method", {}).get("const")
            named = table.results(message, method, sender) if isinstance(method, str) else ()
            if (
                method not in table.stated_results(sender)
                and set(named) <= normal.definitions.keys()
            ):
                results[sender][method] = named
    return Results(results["client"], results["server"])


def _check_unique(normal: NormalizedSchema, methods: Sequence[Method]) -> None:
    """Refuse two messages of one sender with the same name, on the wire or in Python."""
    seen: dict[tuple[Role, str, str], str] = {}
    for method in methods:
        for named in (("method", method.name), ("Python name", method.python_name)):
            other = seen.setdefault((method.sender, *named), method.type)
            if other != method.type:
                raise normal.schema.error(
                    normal.definitions[method.type].pointer,
                    f"a {named[0]} of its own",
                    f"{format_value(named[1])}, as {other} has",
                )


def _messages(normal: NormalizedSchema, union: str) -> Sequence[Definition]:
    definition = normal.definitions.get(union)
    if definition is None:
        return ()
    named = member_names(normal, definition) or (union,)
    messages = [normal.resolve(reference(name)) for name in named]
    return [message for message in messages if message is not None]


@cache
def _known_types(revision: str) -> Mapping[str, str]:
    """The definition of each message of a known revision, by method; of the latest for others.

    A draft may call a definition otherwise: users know the message by its method.
    """
    known = {row.name for row in schema.revisions()}
    definitions = schema.load(revision if revision in known else schema.latest().name).definitions
    methods = {name: node.get("properties", {}).get("method") for name, node in definitions.items()}
    return {
        node["const"]: name
        for name, node in methods.items()
        if is_object(node) and "const" in node and name not in _UNIONS
    }


class _Table:
    def __init__(self, normal: NormalizedSchema, facts: Facts, without_result: str = "") -> None:
        self.normal = normal
        self.facts = facts
        self.without_result = without_result
        self.notes: list[Note] = []
        self.added: dict[str, Definition] = {}
        self.known_types = _known_types(facts.revision)

    def method(self, message: Definition, sender: Role, kind: Kind) -> Method:
        properties = message.properties
        name: Json = properties.get("method", {}).get("const")
        if not isinstance(name, str):
            raise self.normal.schema.error(
                f"{message.pointer}/properties",
                "a method with a const",
                format_value(list(properties)),
            )
        if not (name.isprintable() and name == name.strip() and 0 < len(name) <= _LONGEST):
            raise self.normal.schema.error(
                f"{message.pointer}/properties/method/const", _NAME_RULE, format_value(name)
            )
        node = properties.get("params")
        if node is not None and self._is_no_object(node):
            raise self.normal.schema.error(
                f"{message.pointer}/properties/params",
                "params that are an object",
                format_value(node),
            )
        params = target(node) if node and "$ref" in node else None
        result = self._result(message, name, sender) if kind == "request" else None
        results = self._members(result)
        is_list = sender == "client" and name.rpartition("/")[2] == _LIST
        items, item = self._items(params, results, is_list)
        return Method(
            name=name,
            kind=kind,
            sender=sender,
            type=message.name,
            python_name=names.message_name(self.known_types.get(name, message.name)),
            params=params,
            has_params=node is not None,
            params_required="params" in message.required,
            result=result,
            results=results,
            capability=self.facts.capability(name),
            items=items,
            item=item,
            runs_tool=self.facts.method(name).runs_tool,
            positional=self._positional(name, pages=_CURSOR in self._properties(params)),
            for_groups=self._is_for_groups(name),
        )

    def _positional(self, name: str, *, pages: bool) -> tuple[str, ...]:
        """The params that facts take by position; without such facts, the cursor of a list."""
        return self.facts.method(name).positional or ((_CURSOR,) if pages else ())

    def _is_for_groups(self, name: str) -> bool:
        """Whether a client of several servers can find the server of a message."""
        facts = self.facts.method(name)
        return facts.routed_by is not None or facts.named_by in _FINDING

    def _is_no_object(self, node: Node) -> bool:
        """Whether a schema is that of a scalar or an array."""
        while "$ref" in node:
            node = self.normal.definitions[target(node)].node
        fixed = "const" in node or "enum" in node
        return fixed or node.get("type", "object") != "object"

    def _members(self, result: str | None) -> tuple[str, ...]:
        definition = self._definition(result)
        if definition is None:
            return ()
        return member_names(self.normal, definition) or (definition.name,)

    def _definition(self, name: str | None) -> Definition | None:
        return None if name is None else self.added.get(name) or self.normal.definitions.get(name)

    def _result(self, message: Definition, method: str, sender: Role) -> str:
        stem = message.name.removesuffix("Request")
        named = self.results(message, method, sender)
        for name in named:
            if name not in self.normal.definitions:
                if self.without_result in self.normal.definitions:
                    text = f"no type {stem}Result, taken as {self.without_result}"
                    self.notes.append(Note(message.pointer, text))
                    return self.without_result
                raise self.normal.schema.error(
                    message.pointer, f"a result type for {method}, such as {stem}Result", "none"
                )
        return named[0] if len(named) == 1 else self._union(stem, named, message)

    def stated_results(self, sender: Role) -> Mapping[str, tuple[str, ...]]:
        """The results that the facts state, by method."""
        return self.facts.results.client if sender == "client" else self.facts.results.server

    def results(self, message: Definition, method: str, sender: Role) -> tuple[str, ...]:
        """The names of the results of a request, which the schema may lack."""
        stem = message.name.removesuffix("Request")
        return self.stated_results(sender).get(method) or self._response(stem) or (f"{stem}Result",)

    def _response(self, stem: str) -> tuple[str, ...] | None:
        response = self.normal.definitions.get(f"{stem}ResultResponse")
        if response is None or not response.is_object:
            return None
        node = response.properties.get("result", {})
        if "$ref" in node:
            return (target(node),)
        published: Node = self.normal.schema.definitions.get(response.name, {})
        open_result: Json = published.get("properties", {}).get("result", {})
        return (target(open_result),) if "$ref" in open_result else None

    def _union(self, stem: str, members: Sequence[str], message: Definition) -> str:
        """The union of several results, under the name that an `XResultResponse` would give it."""
        name = f"{stem}ResultResponseResult"
        node: Node = {"anyOf": [reference(member) for member in members]}
        if self.added.setdefault(name, Definition(name, node, message.pointer)).node != node:
            raise self.normal.schema.error(
                message.pointer, f"one meaning for {name}", " and ".join(members)
            )
        return name

    def _items(
        self, params: str | None, results: Sequence[str], is_list: bool
    ) -> tuple[str | None, str | None]:
        """The member with the list in one of the results, and the definition of its items.

        A paginated result is recognized by its cursors. In revisions without pagination, the result
        of a method whose name ends as that of a list request is recognized by its only array.
        """
        pages = _CURSOR in self._properties(params)
        for properties in map(self._properties, results):
            arrays = {
                wire: target(node["items"])
                for wire, node in properties.items()
                if node.get("type") == "array" and "$ref" in node["items"]
            }
            if pages and _NEXT in properties:
                return next(iter(arrays.items()), (None, None))
            if is_list and not pages and _NEXT not in properties and len(arrays) == 1:
                return next(iter(arrays.items()))
        return None, None

    def _properties(self, name: str | None) -> Mapping[str, Node]:
        definition = self._definition(name)
        return definition.properties if definition else {}
