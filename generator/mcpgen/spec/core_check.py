"""Checks that a schema has the names that the fixed modules of a package use.

Names of types are found by structure (see `fitting` and `normalize`). Names of methods and members
are on the wire, so a package cannot guess their changes. A schema that lacks a name that every
connection or every tool needs is refused, unless its facts declare the method absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from keyword import iskeyword

from mcpgen import schema
from mcpgen.errors import format_value, safe_text
from mcpgen.json_types import Node, is_object
from mcpgen.model.core_names import CoreMethod, core_names
from mcpgen.model.normalized import Definition, NormalizedSchema
from mcpgen.model.unions import member_names
from mcpgen.names import snake
from mcpgen.schema import Schema
from mcpgen.schema.keywords import types
from mcpgen.schema.structure import subschemas
from mcpgen.spec.packages import RevisionSpec, UnsetMember
from mcpgen.spec.values import Method

_CONTENT = "content"
_VALUE = "toolResult"
"""The member of a tool's result that a package writes if there is no `content`."""
_RUNS_TOOL = "runs_tool"


def expect_core(
    built: RevisionSpec,
    base: str,
    absent: Collection[str],
    *,
    peers: bool = True,
    server: bool = True,
) -> None:
    """Refuse a schema with whose names a package could not connect, or would have no tools.

    A schema with few methods of the protocol is not checked.

    Args:
        built: Everything about a revision of the user's.
        base: The nearest revision.
        absent: Methods that facts declare absent.
        peers: Whether the package has a client or a server.
        server: Whether the package has a server.

    Raises:
        SchemaError: A method or member is missing.
    """
    check, core = _Check(built, base), core_names()
    if not check.is_draft:
        return
    if not any(name in check.rows or name in absent for name in core.connecting):
        check.refuse_method(next(name for name in core.connecting if name in check.base_methods))
    rows = {**core.connecting, **(core.tools if peers else {}), **(core.items if server else {})}
    for name, method in rows.items():
        if name in absent:
            continue
        if name in check.rows:
            check.expect_members(name, method)
        elif name in core.tools:
            check.refuse_method(name)
    if peers:
        check.expect_place()
    check.expect_no_other_names()


class _Check:
    def __init__(self, built: RevisionSpec, base: str) -> None:
        self.normal: NormalizedSchema = built.models.normal
        self.schema: Schema = self.normal.schema
        self.rows: Mapping[str, Method] = {row.name: row for row in built.tables.client_requests}
        self.left = {each.name for each in _results_left_to_handlers(built)}
        self.near = schema.load(base).definitions
        self.base_methods = dict(_methods(self.near))
        self.known = {_VALUE} | {
            wire
            for row in schema.revisions()
            for _, node in subschemas(schema.known_document(row))
            for wire in node.get("properties", {})
        }

    @property
    def is_draft(self) -> bool:
        """Whether the schema has half of the revision's methods, as drafts of the protocol have."""
        own = dict(_methods(self.schema.definitions))
        return 2 * len(own.keys() & self.base_methods.keys()) >= len(self.base_methods)

    def refuse_method(self, method: str) -> None:
        """Raise an error for a method that the schema lacks, or has under another name."""
        message = self.base_methods.get(method, "")
        named = {name: wire for wire, name in _methods(self.schema.definitions)}
        own = named.get(message)
        actual = (
            f"{message} with the method {format_value(own)}" if own else "no request of this method"
        )
        raise self.schema.error(
            f"/$defs/{message if own else 'ClientRequest'}",
            f"{method}, by which packages know the request; if the protocol has none,"
            f" [methods] {format_value(method)} = false in --facts",
            actual,
        )

    def expect_members(self, method: str, core: CoreMethod) -> None:
        """Check the members of params and result that fixed modules read and write."""
        row = self.rows[method]
        for name, wires in ((row.params, core.params), (row.result, core.result)):
            definition = None if name is None else self.normal.definition(name)
            if definition is None:
                continue
            known = {wire for each in self._objects(definition) for wire in each.properties}
            for wire in wires:
                if wire not in known:
                    other = " (--parts types needs none)"
                    if name == row.result:
                        other = f" or [results.client] {format_value(method)} = [...] in --facts"
                    if method not in core_names().connecting:
                        other += (
                            f"; [methods] {format_value(method)} = false there leaves the request"
                            " to handlers"
                        )
                    raise self.schema.error(
                        definition.pointer,
                        f"{wire}, which packages read and write{other}",
                        format_value(sorted(known)),
                    )

    def _objects(self, definition: Definition) -> Iterator[Definition]:
        return _objects(self.normal, definition)

    def expect_place(self) -> None:
        """Refuse a result of a tool without a place for what the tool returned."""
        for row in self.rows.values():
            definition = self.normal.definition(row.result)
            if definition is None or not row.facts.get(_RUNS_TOOL):
                continue
            objects = [*self._objects(definition)]
            if not any(map(self._has_place, objects)):
                raise self.schema.error(
                    _owner(objects, _CONTENT, self.near).pointer,
                    f"{_CONTENT}, an array in which packages write and read what a tool returned;"
                    f" [methods.{format_value(row.name)}] {_RUNS_TOOL} = false in --facts leaves"
                    " the request to handlers",
                    format_value(sorted({wire for each in objects for wire in each.properties})),
                )

    def _has_place(self, result: Definition) -> bool:
        node = result.properties.get(_CONTENT)
        if node is None:
            return _VALUE in result.properties
        named = self.normal.resolve(node)
        kind = (named.node if named is not None else node).get("type", "array")
        return bool(kind == "array")

    def expect_no_other_names(self) -> None:
        """Refuse objects in which another name replaced that of a required member."""
        for names in core_names().owners.values():
            for name in names:
                own = self.normal.definitions.get(name)
                if own is None or name not in self.near or name in self.left:
                    continue
                gone = [w for w in self.near[name].get("required", ()) if w not in own.properties]
                added = [wire for wire in own.required if wire not in self.known]
                if gone and added:
                    raise self.schema.error(
                        f"{own.pointer}/required",
                        f"{gone[0]}, which packages write; if {added[0]} took its place,"
                        f" [defaults.{name}] {format_value(added[0])} = ... in --facts gives its"
                        " value",
                        format_value(list(own.required)),
                    )


def unset_members(built: RevisionSpec, base: str) -> Iterator[UnsetMember]:
    """Members that a schema requires in objects that a package makes, but that it does not set.

    Args:
        built: Everything about a revision of the user's.
        base: The nearest revision.
    """
    normal, near = built.models.normal, schema.load(base).definitions
    known = [_definitions(row) for row in schema.revisions()]
    left_results = [*_results_left_to_handlers(built)]
    left = {each.name for each in left_results}
    if left_results:
        yield UnsetMember(_owner(left_results, _CONTENT, near).name, _CONTENT, "tools", "absent")
    yield from _absent_members(built, near)
    for by, names in core_names().owners.items():
        for name in names:
            own = normal.definitions.get(name)
            if own is None or name in left:
                continue
            for wire in own.required:
                if wire == _VALUE:
                    continue
                if not any(wire in each.get(name, {}).get("properties", {}) for each in known):
                    yield UnsetMember(name, wire, by, "new")
                elif name in near and wire not in near[name].get("required", ()):
                    yield UnsetMember(name, wire, by, "optional")
            published = normal.schema.definitions.get(name, {}).get("properties", {})
            for wire, node in near.get(name, {}).get("properties", {}).items():
                now = published.get(wire)
                kinds, before = types(now) if is_object(now) else [], types(node)
                if kinds and not set(before) <= {*kinds}:
                    yield UnsetMember(name, wire, by, "retyped")


_DECORATORS = {
    "Tool": "tool",
    "Resource": "resource",
    "ResourceTemplate": "resource",
    "Prompt": "prompt",
}
"""The decorator that makes a kind of item."""
_OWN_OPTIONS = frozenset(
    {
        *("annotations", "cache", "description", "function", "icons", "input_schema", "meta"),
        *("mime_type", "name", "output_schema", "runner", "scopes", "size", "structured", "tags"),
        *("threads", "timeout", "title", "ui", "uri", "visibility"),
    }
)
"""Options that decorators have already."""


def item_options(built: RevisionSpec) -> Mapping[str, Mapping[str, str]]:
    """Members of items that no known revision has, by decorator: wire names by keyword."""
    known = [_definitions(row) for row in schema.revisions()]
    options: dict[str, dict[str, str]] = {}
    for name, decorator in _DECORATORS.items():
        own = built.models.normal.schema.definitions.get(name, {}).get("properties", {})
        for wire in own:
            keyword = snake(wire)
            is_new = not any(wire in each.get(name, {}).get("properties", {}) for each in known)
            is_free = keyword not in _OWN_OPTIONS and not iskeyword(keyword)
            if is_new and is_free and keyword.isidentifier() and keyword.isascii():
                options.setdefault(decorator, {})[keyword] = wire
    return options


def _results_left_to_handlers(built: RevisionSpec) -> Iterator[Definition]:
    """The results of tools without a place for what a tool returned, as facts state."""
    normal, method = built.models.normal, core_names().running
    for row in built.tables.client_requests:
        definition = normal.definition(row.result)
        if row.name == method and definition is not None and not row.facts.get(_RUNS_TOOL):
            yield from _objects(normal, definition)


def _owner(objects: Sequence[Definition], wire: str, near: Mapping[str, Node]) -> Definition:
    """The one of some results that has a member in the nearest revision, or the last."""
    has_it = (each for each in objects if wire in near.get(each.name, {}).get("properties", {}))
    return next(has_it, objects[-1])


def _absent_members(built: RevisionSpec, near: Mapping[str, Node]) -> Iterator[UnsetMember]:
    """Members of results that a server needs and the schema lacks, as facts state."""
    normal, core = built.models.normal, core_names()
    for row in built.tables.client_requests:
        method = {**core.tools, **core.items}.get(row.name)
        definition = normal.definition(row.result)
        if method is None or definition is None:
            continue
        objects = [*_objects(normal, definition)]
        known = {wire for each in objects for wire in each.properties}
        for wire in method.result:
            if objects and wire not in known:
                by = row.name.partition("/")[0]
                yield UnsetMember(_owner(objects, wire, near).name, wire, by, "absent")


def _objects(normal: NormalizedSchema, definition: Definition) -> Iterator[Definition]:
    """The objects of a union, or the definition itself."""
    for name in member_names(normal, definition) or (definition.name,):
        each = normal.definition(name)
        if each is not None:
            yield each


def _definitions(row: schema.RevisionEntry) -> Mapping[str, Node]:
    document = schema.known_document(row)
    definitions: Mapping[str, Node] = document.get("$defs") or document["definitions"]
    return definitions


def note(member: UnsetMember) -> str:
    """A note about a member that a package does not set."""
    side = "client or server" if member.definition == "Implementation" else "server"
    side = "client" if member.by == "client" else side
    wire = safe_text(member.wire)
    match member.why:
        case "absent":
            return f"{wire}: there is none; a server answers the request by handlers of its user"
        case "optional":
            return f"{wire}: a {side} sets it only where it is given"
        case "retyped":
            return f"{wire}: has another type; a {side} sets what fits in the known revisions"
        case "new":
            fact = f"[defaults.{member.definition}] {format_value(member.wire)} = ... in --facts"
            return f"{wire}: a {side} of the package does not set it; {fact} gives its value"


def _methods(definitions: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """The method and the definition's name of each message."""
    for name, node in definitions.items():
        method = node.get("properties", {}).get("method")
        if is_object(method) and isinstance(method.get("const"), str):
            yield method["const"], name
