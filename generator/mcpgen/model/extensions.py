"""An extension beside a revision, by the same stages: its types and its methods.

The definitions of both are normalized together, so that those of the extension may refer to those
of the revision. The result for the revision's definitions must not depend on the extension: its
module of models is the same with and without extensions. A message of an extension has the members
that all messages of the revision have: `_meta`, and `resultType` where results have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcpgen import schema
from mcpgen.errors import SchemaError, format_value
from mcpgen.json_types import Node
from mcpgen.model import extension_files, methods, unions
from mcpgen.model.extension_files import ExtensionFile
from mcpgen.model.methods import Methods
from mcpgen.model.name import Messages, NamedSchema, name_messages
from mcpgen.model.normalize import DIRECTIONS, normalize
from mcpgen.model.normalized import ANY_MAP, OWN_DEFAULT, Definition, NormalizedSchema, reference
from mcpgen.model.unions import DecidedSchema
from mcpgen.schema.facts import Facts

CAPABILITY = "extensions"
"""The member of the capabilities of either side that declares extensions."""

_ROLES = ("client_capabilities", "server_capabilities")
_UNIONS = {
    ("client", "request"): "ClientRequest",
    ("server", "request"): "ServerRequest",
    ("client", "notification"): "ClientNotification",
    ("server", "notification"): "ServerNotification",
}
_REQUEST, _NOTIFICATION, _RESULT = "RequestParams", "NotificationParams", "Result"


@dataclass(frozen=True)
class Core:
    """The revision that an extension is for.

    Attributes:
        loaded: Its schema.
        published: Its definitions before they were corrected.
        facts: Its facts.
        newer: The definitions of later revisions, for their names.
        types: Its finished types.
        methods: Its methods.
        roles: Definitions with a role.
    """

    loaded: schema.Schema
    published: Mapping[str, Node]
    facts: Facts
    newer: Sequence[Mapping[str, Node]]
    types: NormalizedSchema
    methods: Methods
    roles: Mapping[str, str]

    @property
    def has_extensions(self) -> bool:
        """Whether both sides declare extensions in the revision."""
        definitions = self.types.definitions
        return all(CAPABILITY in definitions[self.roles[role]].properties for role in _ROLES)


@dataclass(frozen=True)
class Extension:
    """An extension beside one revision.

    Attributes:
        file: The file it is from.
        schema: The schema of the revision with its definitions.
        core: Names of the definitions of the revision.
        decided: All types, with tests for unions of its own.
        methods: Its methods.
    """

    file: ExtensionFile
    schema: schema.Schema
    core: frozenset[str]
    decided: DecidedSchema
    methods: Methods

    @property
    def types(self) -> tuple[str, ...]:
        """Names of its own definitions."""
        return tuple(name for name in self.decided.types.definitions if name not in self.core)


@dataclass(frozen=True)
class Beside:
    """The extensions beside a revision.

    Attributes:
        fitting: The extensions whose types fit, in order.
        unfit: The errors of the others, by identifier.
    """

    fitting: tuple[Extension, ...] = ()
    unfit: Mapping[str, SchemaError] = field(default_factory=dict[str, SchemaError])


def merge_all(files: Sequence[ExtensionFile], core: Core) -> Beside:
    """The extensions for a revision.

    Raises:
        SchemaError: As for `merge`, if both sides declare extensions in the revision; or two
            extensions have one method.
    """
    merged: list[Extension] = []
    unfit: dict[str, SchemaError] = {}
    seen: dict[tuple[str, str], ExtensionFile] = {}
    for file in files:
        try:
            extension = merge(file, core)
        except SchemaError as error:
            if core.has_extensions:
                raise
            unfit[file.identifier] = error
            continue
        for method in extension.methods.all:
            other = seen.setdefault((method.sender, method.name), file)
            if other is not file:
                expected = f"a method that {other.identifier} does not have"
                raise file.error(method.type, expected, format_value(method.name))
        merged.append(extension)
    return Beside(tuple(merged), unfit)


def merge(file: ExtensionFile, core: Core) -> Extension:
    """An extension for a revision.

    Raises:
        SchemaError: A definition collides with one of the revision or has no plain form, refers to
            one that neither has, or is that of a method that the revision has already.
    """
    every = core.loaded.definitions
    file = file.beside(every)
    own = extension_files.own_definitions(file, (every, core.published))
    sent = extension_files.messages(file, own)
    definitions = extension_files.simplify(own, every)
    merged = schema.add_definitions(core.loaded, file.file, definitions)
    both = normalize(merged, core.facts, core.newer)
    _check_same(file, definitions, both, normalize(core.loaded, core.facts, core.newer))
    core_types = core.types.definitions
    added = {
        name: _without_defaults(each)
        for name, each in both.definitions.items()
        if name not in core_types
    }
    notes = (note for note in both.notes if note.pointer.split("/")[2] in {*definitions, *added})
    plain = NormalizedSchema(
        merged, {**core_types, **added}, (*notes, *extension_files.absent_members(file))
    )
    for union in DIRECTIONS:
        base = _REQUEST if union.endswith("Request") else _NOTIFICATION
        for message in sent.of(union):
            plain = _with_base_params(plain, message, base, core_types)
    named = name_messages(plain, core.facts, core.roles, sent.by_union)
    _check_messages(file, core, named.messages)
    decided = unions.decide_all(_complete_members(named, core), named.messages.exchanged)
    return Extension(
        file,
        merged,
        frozenset(core_types),
        DecidedSchema(
            decided.types,
            {name: tests for name, tests in decided.tests.items() if name in added},
        ),
        methods.derive(decided.types, named.messages, core.facts, (CAPABILITY, file.identifier)),
    )


def _complete_members(named: NamedSchema, core: Core) -> NormalizedSchema:
    """The types of the messages of an extension, with the members that those of a revision have."""
    types = _without_types_of_unchecked(named, core.facts)
    results: set[str] = set()
    for message in named.messages.all:
        whole = None if message.result is None else types.definitions[message.result]
        if whole is not None:
            results.update(unions.member_names(types, whole) or (whole.name,))
    for name in sorted(results - core.types.definitions.keys()):
        types = _with_members_of(types, name, _RESULT)
    return types


def _check_same(
    file: ExtensionFile,
    own: Iterable[str],
    both: NormalizedSchema,
    alone: NormalizedSchema,
) -> None:
    """Refuse definitions that change the plain form of the revision's own ones."""
    for name in own:
        if name in alone.definitions:
            raise file.error(name, f"a name that no type of {alone.schema.revision} has", name)
    for name, definition in alone.definitions.items():
        if both.definitions.get(name) != definition:
            raise file.error(name, f"a name that {name} of the revision does not have", name)


def _without_defaults(definition: Definition) -> Definition:
    """A definition without defaults that come from the facts of the revision."""
    members = {
        wire: {key: part for key, part in node.items() if key not in ("default", OWN_DEFAULT)}
        for wire, node in definition.properties.items()
    }
    if members == definition.properties:
        return definition
    stated = [wire for wire, node in definition.properties.items() if "default" in node]
    required = [*definition.required, *stated]
    node = {**definition.node, "properties": members, "required": required}
    return replace(definition, node=node)


def _check_messages(file: ExtensionFile, core: Core, messages: Messages) -> None:
    known = {(method.sender, method.name) for method in core.methods.all}
    unions_of_core = {(method.sender, method.kind) for method in core.methods.all}
    for method in messages.all:
        if (method.sender, method.name) in known:
            expected = f"a method that {core.loaded.revision} does not have"
            raise file.error(method.type, expected, format_value(method.name))
        if (method.sender, method.kind) not in unions_of_core:
            union = _UNIONS[method.sender, method.kind]
            expected = f"no {union}: {core.loaded.revision} has none"
            raise file.error(method.type, expected, format_value(method.name))


def _with_base_params(
    normal: NormalizedSchema, name: str, base: str, core: Iterable[str]
) -> NormalizedSchema:
    """Add the members of all params to the params of a message in a schema."""
    message = normal.definitions[name]
    params = message.properties.get("params")
    if params is not None and "$ref" in params:
        definition = normal.resolve(params)
        return (
            normal
            if definition is None or definition.name in core
            else _with_members_of(normal, definition.name, base)
        )
    if params == ANY_MAP and base in normal.definitions:
        members = {**message.properties, "params": reference(base)}
        return _with_node(normal, message, {**message.node, "properties": members})
    if params is not None:
        expected = "params that are an object with members"
        raise normal.schema.error(
            f"{message.pointer}/properties/params", expected, format_value(params)
        )
    if base not in normal.definitions or not normal.definitions[base].required:
        return normal
    return _with_node(
        normal,
        message,
        {
            **message.node,
            "properties": {**message.properties, "params": reference(base)},
            "required": [*message.required, "params"],
        },
    )


def _without_types_of_unchecked(named: NamedSchema, facts: Facts) -> NormalizedSchema:
    """The schema, with any object as the type of params that handlers validate themselves."""
    normal = named.types
    for method in named.messages.all:
        definition = None if method.params is None else normal.definition(method.params)
        if definition is not None:
            any_object: Node = {
                wire: {"type": "object", "additionalProperties": {}}
                for wire in facts.method(method.name).unchecked
                if wire in definition.properties
            }
            node = {**definition.node, "properties": {**definition.properties, **any_object}}
            normal = _with_node(normal, definition, node) if any_object else normal
    return normal


def _with_members_of(normal: NormalizedSchema, name: str, base: str) -> NormalizedSchema:
    """Add the members of one object to another object, or to each object of a union."""
    definition, other = normal.definition(name), normal.definition(base)
    if definition is None or other is None or not other.is_object:
        return normal
    for member in unions.member_names(normal, definition) or (definition.name,):
        each = normal.definitions[member]
        if each.is_object:
            stated = {
                wire: node
                for wire, node in other.properties.items()
                if wire not in each.properties or {**node, **each.properties[wire]} == node
            }
            defaults = {wire for wire, node in stated.items() if "default" in node}
            required = dict.fromkeys((*each.required, *other.required))
            node = {
                **each.node,
                "properties": {**other.properties, **each.properties, **stated},
                "required": [wire for wire in required if wire not in defaults],
            }
            normal = _with_node(normal, each, node)
    return normal


def _with_node(normal: NormalizedSchema, definition: Definition, node: Node) -> NormalizedSchema:
    changed = replace(definition, node=node)
    return replace(normal, definitions={**normal.definitions, definition.name: changed})
