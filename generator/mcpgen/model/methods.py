"""The fifth stage: the methods of a revision, each message with what its facts say of it.

Types are finished before: this stage reads them and adds none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mcpgen import names, schema
from mcpgen.errors import format_value
from mcpgen.json_types import Node, is_object
from mcpgen.model.core_names import core_names
from mcpgen.model.name import MESSAGE_UNIONS, Kind, Message, Messages, Role
from mcpgen.model.normalized import NormalizedSchema, target
from mcpgen.model.unions import member_names
from mcpgen.schema.facts import Facts

_BATCH = "JSONRPCBatchRequest"
_CURSOR, _NEXT = "cursor", "nextCursor"
_LIST = "list"
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
    """All methods of a revision.

    Attributes:
        all: Every method, in the order of the schema's unions.
        inputs: Requests for input inside results of a server.
        batching: Whether a message may be a batch.
    """

    all: tuple[Method, ...]
    inputs: tuple[Method, ...] = ()
    batching: bool = False

    @property
    def handshake(self) -> bool:
        """Whether a session begins with `initialize`."""
        name = core_names().handshake
        return any(method.name == name and method.sender == "client" for method in self.all)

    def of(self, sender: Role, kind: Kind) -> tuple[Method, ...]:
        """The methods of one direction."""
        return tuple(m for m in self.all if m.sender == sender and m.kind == kind)


def derive(
    types: NormalizedSchema,
    messages: Messages,
    facts: Facts,
    capability: tuple[str, ...] | None = None,
) -> Methods:
    """The methods of a schema.

    Args:
        types: The finished types.
        messages: The messages.
        facts: The facts.
        capability: The capability that every method depends on; by default that of the facts.

    Raises:
        SchemaError: Two messages of one sender have one name.
    """
    table = _Table(types, facts, capability)
    methods = tuple(table.method(each) for each in messages.all)
    inputs = tuple(table.method(each) for each in messages.inputs)
    _check_unique(types, methods)
    _check_unique(types, inputs)
    return Methods(methods, inputs, _BATCH in types.definitions)


def _check_unique(types: NormalizedSchema, methods: Sequence[Method]) -> None:
    """Refuse two messages of one sender with the same name, on the wire or in Python."""
    seen: dict[tuple[Role, str, str], str] = {}
    for method in methods:
        for named in (("method", method.name), ("Python name", method.python_name)):
            other = seen.setdefault((method.sender, *named), method.type)
            if other != method.type:
                raise types.schema.error(
                    types.definitions[method.type].pointer,
                    f"a {named[0]} of its own",
                    f"{format_value(named[1])}, as {other} has",
                )


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
        if is_object(node) and "const" in node and name not in MESSAGE_UNIONS
    }


class _Table:
    def __init__(
        self, types: NormalizedSchema, facts: Facts, capability: tuple[str, ...] | None
    ) -> None:
        self._types = types
        self._facts = facts
        self._capability = capability
        self._known_types = _known_types(facts.revision)

    def method(self, message: Message) -> Method:
        name, whole = message.name, self._types.definitions[message.type]
        results = self._members(message.result)
        is_list = message.sender == "client" and name.rpartition("/")[2] == _LIST
        items, item = self._items(message.params, results, is_list)
        capability = self._facts.capability(name) if self._capability is None else self._capability
        return Method(
            name=name,
            kind=message.kind,
            sender=message.sender,
            type=message.type,
            python_name=names.message_name(self._known_types.get(name, message.type)),
            params=message.params,
            has_params="params" in whole.properties,
            params_required="params" in whole.required,
            result=message.result,
            results=results,
            capability=capability,
            items=items,
            item=item,
            runs_tool=self._facts.method(name).runs_tool,
            positional=self._positional(name, pages=_CURSOR in self._properties(message.params)),
            for_groups=self._is_for_groups(name),
        )

    def _positional(self, name: str, *, pages: bool) -> tuple[str, ...]:
        """The params that facts take by position; without such facts, the cursor of a list."""
        return self._facts.method(name).positional or ((_CURSOR,) if pages else ())

    def _is_for_groups(self, name: str) -> bool:
        """Whether a client of several servers can find the server of a message."""
        facts = self._facts.method(name)
        return facts.routed_by is not None or facts.named_by in _FINDING

    def _members(self, result: str | None) -> tuple[str, ...]:
        definition = None if result is None else self._types.definitions.get(result)
        if definition is None:
            return ()
        return member_names(self._types, definition) or (definition.name,)

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
        definition = None if name is None else self._types.definitions.get(name)
        return definition.properties if definition else {}
