"""The merged types of several revisions: for each name, one class or alias that fits all.

A name that is an object in every revision that has it becomes a class with the members of all. A
name that is no object in any revision becomes an alias for the union. A name that is an object in
some revisions only becomes an alias too: the object then counts as the member of the union with its
shape, or gets a class of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from mcpgen import names
from mcpgen.json_types import Node
from mcpgen.literals import Code, literal
from mcpgen.model.docstrings import Texts, docstring
from mcpgen.model.normalized import Definition, NormalizedSchema, reference, target
from mcpgen.model.type_hints import MERGED, annotation, names_in, union

_OBJECT = "Object"
"""The suffix of a class for an object whose own name is an alias."""


@dataclass(frozen=True)
class Source:
    """The definitions of one revision.

    Attributes:
        revision: Its name.
        normal: The definitions in plain form.
        texts: The documentation of the definitions.
        values: The definitions of tool results, which have a value.
    """

    revision: str
    normal: NormalizedSchema
    texts: Texts
    values: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Member:
    """A member of a merged class.

    Attributes:
        name: Its Python name.
        type: Its type; with `None` if it is missing or optional in a revision, and with `UnsetType`
            if null is a value of an optional member.
        default: Its default as Python source; empty for a member that must be given.
        doc: Its docstring, quotes included; may be empty.
    """

    name: str
    type: Code
    default: Code
    doc: Code


@dataclass(frozen=True)
class Class:
    """A class for an object.

    Attributes:
        name: Its name.
        doc: Its docstring, quotes included.
        members: The members of all revisions; those that must be given come first.
        other_names: Other names of the object in revisions.
        has_value: Whether its objects are tool results.
    """

    name: str
    doc: Code
    members: tuple[Member, ...]
    other_names: tuple[str, ...]
    has_value: bool


@dataclass(frozen=True)
class Alias:
    """A name for a union or another type that is no object."""

    name: str
    type: Code
    doc: Code


@dataclass(frozen=True)
class Merged:
    """The merged types of a package.

    Attributes:
        classes: Sorted by name.
        aliases: The aliases, each after those that it refers to.
        lacking: By revision and the revision's name of an object: members that other revisions
            have.
    """

    classes: tuple[Class, ...] = ()
    aliases: tuple[Alias, ...] = ()
    lacking: Mapping[str, Mapping[str, tuple[str, ...]]] = field(
        default_factory=dict[str, Mapping[str, tuple[str, ...]]]
    )


def merge(sources: Sequence[Source], reserved: Collection[str] = ()) -> Merged:
    """The merged types of revisions, given oldest first; none for a single revision.

    Args:
        sources: The definitions of each revision.
        reserved: Python names that no member has.
    """
    if len(sources) < 2:
        return Merged()
    return _Merger(tuple(reversed(sources)), reserved).merge()


@dataclass(frozen=True)
class _Occurrence:
    """A definition in the revision that has it."""

    source: Source
    definition: Definition

    @property
    def revision(self) -> str:
        return self.source.revision


@dataclass(frozen=True)
class _MemberOccurrence:
    """A member of an object, in the revision that has it."""

    occurrence: _Occurrence
    wire: str

    @property
    def node(self) -> Node:
        return self.occurrence.definition.properties[self.wire]

    @property
    def is_required(self) -> bool:
        return self.wire in self.occurrence.definition.required

    @property
    def tag(self) -> str | None:
        """The value that distinguishes the object in a union, if this member is the tag."""
        tag = self.occurrence.definition.tag
        return tag[1] if tag is not None and tag[0] == self.wire else None

    @property
    def is_always_there(self) -> bool:
        return self.is_required or "default" in self.node

    @property
    def may_be_null(self) -> bool:
        """Whether null is a value of the optional member, so that absence needs another value."""
        return not self.is_always_there and self.occurrence.source.normal.allows_null(self.node)

    @property
    def default(self) -> str | None:
        """The default of the member as text; `None` without a default."""
        fixed = self.node["const"] if self.is_required and "const" in self.node else None
        value = self.node.get("default", fixed)
        return literal(value) if isinstance(value, str | int | float) else None


class _Merger:
    """Merges the definitions of sources, given newest first."""

    def __init__(self, sources: Sequence[Source], reserved: Collection[str]) -> None:
        self._revisions = len(sources)
        self._reserved = reserved
        self._objects: dict[str, list[_Occurrence]] = {}
        self._others: dict[str, list[_Occurrence]] = {}
        for source in sources:
            for name, definition in source.normal.definitions.items():
                group = self._objects if definition.is_object else self._others
                group.setdefault(name, []).append(_Occurrence(source, definition))
        self._class_names = {name: self._class_name(name) for name in self._objects}

    def merge(self) -> Merged:
        """Merge all types."""
        objects: dict[str, list[_Occurrence]] = {}
        for name in sorted(self._objects, key=lambda each: each != self._class_names[each]):
            objects.setdefault(self._class_names[name], []).extend(self._objects[name])
        lacking: dict[str, dict[str, tuple[str, ...]]] = {}
        classes: list[Class] = []
        for name, group in sorted(objects.items()):
            members = _members(group, self._reserved)
            classes.append(self._class(name, group, members))
            for occurrence in group:
                properties = occurrence.definition.properties
                own = set(names.members(properties, self._reserved).values())
                if missing := tuple(member for member in members if member not in own):
                    lacking.setdefault(occurrence.revision, {})[occurrence.definition.name] = (
                        missing
                    )
        return Merged(tuple(classes), self._aliases(), lacking)

    def _class_name(self, name: str) -> str:
        """The name of the class for an object."""
        unions = self._others.get(name, [])
        if not unions:
            return name
        fitting = [
            {
                member
                for union in unions
                for member in _similar_members(occurrence.definition, union)
            }
            for occurrence in self._objects[name]
        ]
        if all(members == fitting[0] for members in fitting) and len(fitting[0]) == 1:
            return next(iter(fitting[0]))
        class_name = name + _OBJECT
        while class_name in self._objects or class_name in self._others:
            class_name += _OBJECT
        return class_name

    def _class(
        self,
        name: str,
        group: Sequence[_Occurrence],
        members: Mapping[str, Sequence[_MemberOccurrence]],
    ) -> Class:
        newest = group[0]
        texts = newest.source.texts
        paragraphs = [texts.summary(newest.definition), self._revisions_note(group)]
        merged = [self._member(each, members[each], group) for each in members]
        other_names = sorted({occurrence.definition.name for occurrence in group} - {name})
        return Class(
            name,
            docstring(paragraphs, 4, texts.source(newest.definition)),
            tuple(sorted(merged, key=lambda member: bool(member.default))),
            tuple(other_names),
            all(occurrence.definition.name in occurrence.source.values for occurrence in group),
        )

    def _member(
        self, name: str, same: Sequence[_MemberOccurrence], group: Sequence[_Occurrence]
    ) -> Member:
        newest = same[0]
        text = newest.occurrence.source.texts.member(newest.occurrence.definition, newest.wire)
        everywhere = len(same) == len(group)
        if text and not everywhere:
            text = f"{text}\n\n{_list_revisions(member.occurrence.revision for member in same)}"
        kind = annotation(
            _merge_nodes([(m.occurrence.source.normal, m.node) for m in same]), MERGED
        )
        default = next((m.default for m in same if m.default is not None), None)
        if everywhere and newest.tag is not None and len({m.tag for m in same}) == 1:
            default = literal(newest.tag)
        elif any(m.may_be_null for m in same):
            kind, default = union([kind, "UnsetType", "None"]), "UNSET"
        elif not everywhere or not all(m.is_always_there for m in same):
            kind, default = _add_none(kind), "None"
        elif default is None and not all(m.is_required for m in same):
            kind, default = _add_none(kind), "None"  # the default is a list or an object
        return Member(
            name,
            kind,
            Code(default or ""),
            docstring(text.split("\n\n"), 4) if text else Code(""),
        )

    def _revisions_note(self, group: Sequence[_Occurrence]) -> str:
        """The sentence that names the revisions of an object; empty if all revisions have it."""
        having = {occurrence.revision for occurrence in group}
        return _list_revisions(having) if len(having) < self._revisions else ""

    def _aliases(self) -> tuple[Alias, ...]:
        """The aliases, each after those that it refers to."""
        types: dict[str, Node] = {}
        for name, group in self._others.items():
            nodes = [(occurrence.source.normal, occurrence.definition.node) for occurrence in group]
            if name in self._objects:
                nodes.append((group[0].source.normal, reference(self._class_names[name])))
            types[name] = _merge_nodes(nodes)
        return tuple(
            Alias(name, annotation(types[name], MERGED), self._alias_doc(name))
            for name in _sort_aliases(types)
        )

    def _alias_doc(self, name: str) -> Code:
        newest = self._others[name][0]
        texts = newest.source.texts
        return docstring([texts.summary(newest.definition)], 0, texts.source(newest.definition))


def _members(
    group: Sequence[_Occurrence], reserved: Collection[str]
) -> dict[str, list[_MemberOccurrence]]:
    """The members of an object in all revisions by Python name, newest first."""
    members: dict[str, list[_MemberOccurrence]] = {}
    for occurrence in group:
        for wire, name in names.members(occurrence.definition.properties, reserved).items():
            members.setdefault(name, []).append(_MemberOccurrence(occurrence, wire))
    return members


def _similar_members(definition: Definition, union: _Occurrence) -> Iterator[str]:
    """The members of a union with the shape of an object, or with more optional members."""
    for node in union.definition.members:
        member = union.source.normal.resolve(node)
        if (
            member is not None
            and member.is_object
            and set(member.required) == set(definition.required)
            and member.properties.keys() >= definition.properties.keys()
        ):
            yield member.name


def _add_none(kind: Code) -> Code:
    return kind if kind == "Any" else union([kind, "None"])


def _list_revisions(revisions: Iterable[str]) -> str:
    return f"Only in {', '.join(sorted(revisions))}."


def _merge_nodes(nodes: Sequence[tuple[NormalizedSchema, Node]]) -> Node:
    """Merge schemas into one that allows the values of all; lists and maps are merged too."""
    kinds = {annotation(node) for _, node in nodes}
    if len(kinds) == 1:
        return nodes[0][1]
    parts = [(normal, part) for normal, node in nodes for part in _parts(normal, node)]
    items: list[tuple[NormalizedSchema, Node]] = []
    values: list[tuple[NormalizedSchema, Node]] = []
    fixed: list[object] = []
    rest: list[Node] = []
    for normal, part in parts:
        if annotation(part) == "Any":
            return {}
        if "const" in part or "enum" in part:
            fixed += [part["const"]] if "const" in part else part["enum"]
        elif part.get("type") == "array":
            items.append((normal, part["items"]))
        elif part.get("type") == "object":
            values.append((normal, part.get("additionalProperties", {})))
        else:
            rest.append(part)
    if fixed:
        rest.append({"enum": list({(type(value), value): value for value in fixed}.values())})
    if items:
        rest.append({"type": "array", "items": _merge_nodes(items)})
    if values:
        rest.append({"type": "object", "additionalProperties": _merge_nodes(values)})
    return rest[0] if len(rest) == 1 else {"anyOf": rest}


def _parts(normal: NormalizedSchema, node: Node) -> Iterator[Node]:
    """The variants of a union, through names of types without objects."""
    if "anyOf" in node:
        for part in node["anyOf"]:
            yield from _parts(normal, part)
    elif "$ref" in node and _is_plain(normal, node):
        yield from _parts(normal, normal.definitions[target(node)].node)
    else:
        yield node


def _is_plain(normal: NormalizedSchema, node: Node) -> bool:
    """Whether a reference leads to a definition that refers to no other."""
    definition = normal.definitions.get(target(node))
    if definition is None or definition.is_object:
        return False
    return "models" not in names_in(annotation(definition.node))


def _sort_aliases(types: dict[str, Node]) -> list[str]:
    """The names of aliases, each after those that it refers to.

    A circle of aliases, which no single revision has, is broken by allowing any value for one of
    them.
    """
    while True:
        graph = {
            name: [each for each in names_in(annotation(node, MERGED)) if each in types]
            for name, node in sorted(types.items())
        }
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            types[error.args[1][0]] = {}
