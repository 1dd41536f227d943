"""The protocol as data: frozen values of revisions, their types, methods, facts and differences.

What a schema, its errata and its facts say is in them, resolved: every object and union has a name,
each message its direction, params and result, each union a way to tell its members apart. They are
the same values that the templates of mcpgen's packages see, and the form of `mcpgen export --spec`.
Text is that of the schema or of its documentation, as it is: not yet Python, Markdown or anything
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from mcpgen.json_types import Json

SPEC_VERSION = "1.0"
"""The version of these values: `MAJOR.MINOR`.

A new member raises MINOR. A member that goes, is renamed or means something else raises MAJOR.
"""

Role: TypeAlias = Literal["client", "server"]
"""A side of a connection."""

TypeKind: TypeAlias = Literal[
    "any",
    "null",
    "boolean",
    "integer",
    "number",
    "string",
    "literal",
    "array",
    "map",
    "reference",
    "union",
]
"""The form of a type."""


FactValue: TypeAlias = bool | int | str | tuple[int | str, ...] | None
"""The value of a fact: as `revision_facts` and `method_facts` have it."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a value beyond its type; `None` for a limit that the schema does not state.

    Attributes:
        minimum: The least number.
        maximum: The greatest number.
        exclusive_minimum: The number that a value is greater than.
        exclusive_maximum: The number that a value is less than.
        multiple_of: The number that a value is a multiple of.
        min_length: The least number of characters.
        max_length: The greatest number of characters.
        pattern: The regular expression that is found in a text.
        min_items: The least number of items.
        max_items: The greatest number of items.
        min_properties: The least number of members of a map.
        max_properties: The greatest number of members of a map.
    """

    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: int | float | None = None
    exclusive_maximum: int | float | None = None
    multiple_of: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None


NO_BOUNDS = Bounds()
"""The limits of a type without any."""


@dataclass(frozen=True)
class TypeExpression:
    """The type of a member, of an item, or of a name that stands for a type.

    Attributes:
        kind: Its form, which says what of the other attributes it has.
        name: Of a reference: the type.
        values: Of a literal: the values, one or more.
        items: Of an array: the type of its items; of a map: that of its values.
        alternatives: Of a union: two types or more, in the order of the schema.
        bounds: The limits of its values.
        fixed: Of a map that is a JSON Schema: keywords with the value that each must have.
        object_type: Of a map that stands for an object which the schema leaves open: the type with
            the members that the schema knows, such as that of `_meta`; `None` without one.
    """

    kind: TypeKind
    name: str | None = None
    values: tuple[Json, ...] = ()
    items: TypeExpression | None = None
    alternatives: tuple[TypeExpression, ...] = ()
    bounds: Bounds = NO_BOUNDS
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])
    object_type: str | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """The types that it names, each once."""
        inner = (*self.alternatives, *([self.items] if self.items else []))
        names = (self.name, self.object_type, *(name for each in inner for name in each.references))
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True)
class Member:
    """A member of an object.

    Attributes:
        name: Its name on the wire.
        python_name: Its name in Python: unique within the object, no keyword.
        type: The type of its value.
        required: Whether the schema requires it.
        nullable: Whether null is a value of it, and not absence.
        has_default: Whether a value is taken where a peer leaves it out.
        default: That value, as the facts of the revision state it; null without one.
        doc: Its meaning; empty without a description.
    """

    name: str
    python_name: str
    type: TypeExpression
    required: bool
    nullable: bool = False
    has_default: bool = False
    default: Json = None
    doc: str = ""


@dataclass(frozen=True)
class Alternative:
    """A member of a union that is an object, and the tests that its values alone pass.

    Attributes:
        type: The object.
        tag: The value of the union's discriminator; `None` in a union without one.
        required: Members that a value has.
        constants: Members with the values that each may have.
        inner: Members that are objects, with the members that each has in turn.
        nullable: Those of `required` for which null is a value.
        decides: Whether a value that passes can belong to no other alternative.
    """

    type: str
    tag: Json = None
    required: tuple[str, ...] = ()
    constants: Mapping[str, tuple[Json, ...]] = field(default_factory=dict[str, tuple[Json, ...]])
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    nullable: tuple[str, ...] = ()
    decides: bool = True


@dataclass(frozen=True)
class Union:
    """How the members of a union are told apart.

    Attributes:
        by: `tag`: the objects have a member with a different constant each; `members`: the first
            alternative whose tests a value passes, in their order; `kind`: the kind of the JSON
            value, for there is one object at most.
        discriminator: The name on the wire of the member with the constant, for `tag`.
        alternatives: The objects, those of nested unions among them; for `members` in the order of
            the tests.
    """

    by: Literal["tag", "members", "kind"]
    discriminator: str | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class Type:
    """A type with a name.

    Attributes:
        name: Its name: that of the schema, or for an inline object the name that a later revision
            gives it, or else that of its owner and of the members that lead to it.
        kind: An object with members, a union, or an alias of any other type.
        type: Of a union and of an alias: the type that it stands for; `None` for an object.
        members: Of an object: its members, in the order of the schema.
        tag: Of an object that unions tell by a constant: the member's name on the wire.
        union: Of a union: how its members are told apart.
        is_open: Of an object: whether the schema declares that it may have any further members.
        is_inline: Whether the schema has it without a name of its own, within another type.
        doc: Its meaning; never empty.
        page: The page of the specification about it, such as `server/tools`; empty without one.
        pointer: Its place in the schema.
    """

    name: str
    kind: Literal["object", "union", "alias"]
    type: TypeExpression | None = None
    members: tuple[Member, ...] = ()
    tag: str | None = None
    union: Union | None = None
    is_open: bool = False
    is_inline: bool = False
    doc: str = ""
    page: str = ""
    pointer: str = ""

    @property
    def required(self) -> tuple[Member, ...]:
        """The members that the schema requires."""
        return tuple(member for member in self.members if member.required)

    @property
    def optional(self) -> tuple[Member, ...]:
        """The other members."""
        return tuple(member for member in self.members if not member.required)

    @property
    def references(self) -> tuple[str, ...]:
        """The types that it names, each once."""
        expressions = (*([self.type] if self.type else []), *(each.type for each in self.members))
        return tuple(dict.fromkeys(name for each in expressions for name in each.references))


@dataclass(frozen=True)
class Method:
    """A request or notification in one direction.

    Attributes:
        constant: Its name as a constant of Python: `CALL_TOOL`; begins with the sender where both
            sides send it.
        name: Its name on the wire: `tools/call`.
        python_name: Its name in Python: `call_tool`.
        kind: Request or notification.
        sender: The side that sends it.
        message: The type of the whole message.
        params: The type of the params; `None` where they have no name, or there are none.
        params_required: Whether the message must have params.
        result: The type of the result; `None` for a notification.
        results: The objects that the result may be.
        capability: The path of the capability that it depends on: of the receiver for a request,
            of the sender for a notification; empty for none.
        items: Of a list request: the Python name of the list in its result.
        item: Of a list request: the type of the items.
        positional: The params, by their names on the wire, that a call takes by position.
        facts: Facts that differ from the defaults, by name.
    """

    constant: str
    name: str
    python_name: str
    kind: Literal["request", "notification"]
    sender: Role
    message: str
    params: str | None
    params_required: bool
    result: str | None
    results: tuple[str, ...]
    capability: tuple[str, ...]
    items: str | None
    item: str | None
    positional: tuple[str, ...]
    facts: Mapping[str, FactValue]


@dataclass(frozen=True)
class Methods:
    """Methods by sender and kind, each group in the order of the schema.

    Attributes:
        client_requests: Requests of clients.
        server_requests: Requests of servers.
        client_notifications: Notifications of clients.
        server_notifications: Notifications of servers.
        input_requests: Requests of servers that are sent inside results.
    """

    client_requests: tuple[Method, ...] = ()
    server_requests: tuple[Method, ...] = ()
    client_notifications: tuple[Method, ...] = ()
    server_notifications: tuple[Method, ...] = ()
    input_requests: tuple[Method, ...] = ()

    @property
    def all(self) -> tuple[Method, ...]:
        """Every method, each once."""
        return (
            *self.client_requests,
            *self.server_requests,
            *self.client_notifications,
            *self.server_notifications,
            *self.input_requests,
        )

    @property
    def with_facts(self) -> tuple[Method, ...]:
        """The methods with facts, one for each name, sorted."""
        methods = {method.name: method for method in self.all if method.facts}
        return tuple(methods[name] for name in sorted(methods))


@dataclass(frozen=True)
class Extension:
    """An extension beside a revision.

    Attributes:
        identifier: The identifier by which both sides declare it.
        module: A name for its module in Python.
        types: Its own types; they may refer to those of the revision.
        methods: Its methods.
        added_results: Types that it adds to the results of methods of the revision, by method.
    """

    identifier: str
    module: str
    types: tuple[Type, ...]
    methods: Methods
    added_results: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True)
class Erratum:
    """A correction of the published schema.

    Attributes:
        pointer: The place in the published schema.
        old: The published value.
        new: The right value.
        reason: The reason, in one sentence.
        source: The evidence.
    """

    pointer: str
    old: Json
    new: Json
    reason: str
    source: str


@dataclass(frozen=True)
class Note:
    """A place where these values say less than the schema.

    Attributes:
        pointer: The place in the schema.
        text: The difference.
        is_lossy: Whether information is lost there.
    """

    pointer: str
    text: str
    is_lossy: bool


@dataclass(frozen=True)
class Deprecation:
    """A feature that a revision deprecates.

    Attributes:
        name: The feature.
        since: The revision that deprecated it first.
        instead: The replacement, in words; may be empty.
        types: Types, and members as `Type.member`, that are deprecated with it.
    """

    name: str
    since: str
    instead: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class Revision:
    """One revision of the protocol.

    Attributes:
        name: Its name, a date.
        python_name: Its name in Python: `r2025_06_18`.
        lifecycle: Whether a session begins with a handshake, or each request says what it is about.
        batching: Whether messages may come in batches.
        types: All types: those of the schema in its order, each followed by its inline ones.
        methods: All methods.
        roles: Types by their role: `implementation`, `client_capabilities`, `server_capabilities`,
            `meta`.
        result_types: Values of `resultType`; empty if results have no such member.
        facts: What only the prose says, by table and name; every fact of `revision_facts.Facts`
            but those about methods.
        extensions: The extensions beside it.
        errata: The corrections of the published schema.
        deprecations: The deprecated features.
        notes: The places where these values say less than the schema.
        digest: The fingerprint of the structure of the published schema.
    """

    name: str
    python_name: str
    lifecycle: Literal["handshake", "per-request"]
    batching: bool
    types: tuple[Type, ...]
    methods: Methods
    roles: Mapping[str, str]
    result_types: tuple[str, ...]
    facts: Mapping[str, Mapping[str, FactValue]]
    extensions: tuple[Extension, ...] = ()
    errata: tuple[Erratum, ...] = ()
    deprecations: tuple[Deprecation, ...] = ()
    notes: tuple[Note, ...] = ()
    digest: str = ""

    @cached_property
    def types_by_name(self) -> Mapping[str, Type]:
        """The types by name, those of the extensions among them."""
        own = {each.name: each for each in self.types}
        return own | {each.name: each for ext in self.extensions for each in ext.types}

    @property
    def objects(self) -> tuple[Type, ...]:
        """The types that are objects."""
        return tuple(each for each in self.types if each.kind == "object")

    @property
    def unions(self) -> tuple[Type, ...]:
        """The types that are unions."""
        return tuple(each for each in self.types if each.kind == "union")

    @property
    def aliases(self) -> tuple[Type, ...]:
        """All other types."""
        return tuple(each for each in self.types if each.kind == "alias")

    @property
    def sorted_types(self) -> tuple[Type, ...]:
        """The types, each after those that it names, except in a cycle."""
        placed: dict[str, Type] = {}
        begun: set[str] = set()
        by_name = {each.name: each for each in self.types}

        def place(each: Type) -> None:
            begun.add(each.name)
            for name in each.references:
                if name in by_name and name not in begun:
                    place(by_name[name])
            placed[each.name] = each

        for each in self.types:
            if each.name not in begun:
                place(each)
        return tuple(placed.values())


@dataclass(frozen=True)
class Change:
    """A difference of two neighbouring revisions.

    Attributes:
        kind: Added, removed, or changed.
        of: The kind of value: a type, a member of one, a method, or a fact.
        name: The value: `Tool`, `Tool.title`, `client tools/call`, `http.accepted`.
        attribute: Of a changed value: the attribute that differs, such as `required`; else empty.
        before: The attribute in the older revision, as in the JSON form; null if added.
        after: The attribute in the newer revision, likewise; null if removed.
    """

    kind: Literal["added", "removed", "changed"]
    of: Literal["type", "member", "method", "fact"]
    name: str
    attribute: str = ""
    before: Json = None
    after: Json = None


@dataclass(frozen=True)
class Difference:
    """The changes from one revision to the next of a specification.

    Attributes:
        older: The name of the older revision.
        newer: The name of the newer one.
        changes: The changes: types, members, methods, facts, each in the order of the newer one.
    """

    older: str
    newer: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Specification:
    """Revisions of the protocol, oldest first, with the differences of neighbours.

    Attributes:
        spec_version: The version of these values; see `SPEC_VERSION`.
        revisions: The revisions.
        differences: The differences of each revision from the one before it.
    """

    spec_version: str
    revisions: tuple[Revision, ...]
    differences: tuple[Difference, ...] = ()

    @property
    def latest(self) -> Revision:
        """The newest revision."""
        return self.revisions[-1]

    def revision(self, name: str) -> Revision:
        """The revision of a name.

        Raises:
            LookupError: There is none.
        """
        for each in self.revisions:
            if each.name == name:
                return each
        raise LookupError(f"expected one of {', '.join(r.name for r in self.revisions)}: {name}")
