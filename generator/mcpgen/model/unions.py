"""The fourth stage: how the member of a union for a value is found, by a tag or by tests.

msgspec chooses the member itself if at most one member is an object, or if all objects have
different tags under one name. Any other union of objects gets tests, in an order in which the first
member whose tests pass is the right one. A union that cannot be decided becomes any JSON value,
with a note; as the params or the result of a message it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any, TypeAlias

from mcpgen.errors import SchemaError, format_value, safe_text
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.normalized import OWN_DEFAULT, Definition, NormalizedSchema, reference, target
from mcpgen.model.schema_queries import canonical
from mcpgen.schema import Note

MAX_LEVELS = 64
"""Limit of the nesting of unions. Official schemas have three levels."""

MAX_WAYS = 2000
"""Limit of the paths from a union to its objects through unions. Official schemas have some 20."""


@dataclass(frozen=True)
class Variant:
    """One member of an untagged union, with the tests that its values pass.

    Attributes:
        type: Name of the definition.
        required: The required members.
        consts: Member to the values it may have.
        inner: Member to names that the object in it must have.
        decides: Whether values that pass the tests can belong to no other member.
        nullable: Those of `required` for which null is a value, and not absence.
    """

    type: str
    required: tuple[str, ...] = ()
    consts: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    inner: tuple[tuple[str, tuple[str, ...]], ...] = ()
    decides: bool = True
    nullable: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecidedSchema:
    """A schema whose unions can all be decided.

    Attributes:
        types: The types, with any JSON value in place of undecidable unions.
        tests: The unions that need tests, by name, each with its members in order of trial.
    """

    types: NormalizedSchema
    tests: Mapping[str, tuple[Variant, ...]]


def decide_all(normal: NormalizedSchema, messages: Collection[str] = ()) -> DecidedSchema:
    """Decide the unions of a schema.

    A union without references to it may stay undecided, since no message contains it. The unions of
    all results of one side are an example: there the request decides the member. The members of an
    undecided union are tried in turn.

    Args:
        normal: The schema.
        messages: The definitions of params and results, which must not become any JSON value.

    Raises:
        SchemaError: Two members of a union of params or results cannot be distinguished, or unions
            are nested in too many ways.
    """
    order = _sort_inner_first(normal)
    used = _referred_names(normal) | set(messages)
    required = {name for message in messages for name in _aliases(normal, message)}
    tests: dict[str, tuple[Variant, ...]] = {}
    for name in order:
        definition = normal.definitions[name]
        if not definition.members:
            continue
        try:
            variants = _decide(normal, definition)
        except SchemaError as error:
            if name in required:
                raise
            variants = () if name in used else _order_undecided(normal, definition)
            if not variants:
                normal = _with_any_value(normal, definition, error)
        if variants:
            tests[name] = variants
    return DecidedSchema(
        normal, {name: tests[name] for name in normal.definitions if name in tests}
    )


def _aliases(normal: NormalizedSchema, name: str) -> Iterator[str]:
    """A name, and the names that it is an alias of."""
    while "$ref" in normal.definitions[name].node:
        yield name
        name = target(normal.definitions[name].node)
    yield name


def _with_any_value(
    normal: NormalizedSchema, definition: Definition, error: SchemaError
) -> NormalizedSchema:
    """Replace a union in a schema by any JSON value, with a note of the reason."""
    text = f"a union that nothing decides ({safe_text(error.came)}), taken as any JSON value"
    definitions = {**normal.definitions, definition.name: replace(definition, node={})}
    notes = (*normal.notes, Note(definition.pointer, text))
    return replace(normal, definitions=definitions, notes=notes)


def _order_undecided(normal: NormalizedSchema, definition: Definition) -> tuple[Variant, ...]:
    """The members of an undecided union: the most demanding first, open maps last.

    Members that most objects may have, such as `_meta`, do not count. Empty if a member has no
    name.
    """
    if not all("$ref" in member for member in definition.members):
        return ()
    variants: list[Variant] = []
    known: Counter[str] = Counter()
    for member in definition.members:
        whole = normal.resolve(member)
        members: Mapping[str, Node] = {}
        if whole is not None and whole.is_object:
            members = whole.properties
        required = () if whole is None else whole.required
        demanded = tuple(wire for wire in required if "const" not in members[wire])
        nullable = tuple(wire for wire in demanded if normal.allows_null(members[wire]))
        own = ((wire, (node["default"],)) for wire, node in members.items() if OWN_DEFAULT in node)
        consts = () if demanded else tuple(own)  # the only test of a member that demands nothing
        variants.append(Variant(target(member), demanded, consts, decides=False, nullable=nullable))
        known.update(members.keys())

    def rank(variant: Variant) -> tuple[bool, int]:
        telling = [wire for wire in variant.required if 2 * known[wire] <= len(definition.members)]
        return _is_map(normal, variant.type), -len(telling) - len(variant.consts)

    return tuple(sorted(variants, key=rank))


def _is_map(normal: NormalizedSchema, name: str) -> bool:
    definition = normal.definition(name)
    return definition is not None and "additionalProperties" in definition.node


def _sort_inner_first(normal: NormalizedSchema) -> Sequence[str]:
    """The names of all definitions, each union after the unions in it.

    Raises:
        SchemaError: Unions are nested in too many ways, with which the generated code grows.
    """
    inner = {
        name: [
            target(node)
            for node in (definition.node, *definition.members)
            if isinstance(node.get("$ref"), str)
        ]
        for name, definition in normal.definitions.items()
    }
    levels: dict[str, int] = {}
    ways: dict[str, int] = {}
    order = list(TopologicalSorter(inner).static_order())
    for name in order:
        levels[name] = 1 + max((levels[other] for other in inner[name]), default=0)
        ways[name] = sum(ways[other] for other in inner[name]) or 1
        if levels[name] > MAX_LEVELS or ways[name] > MAX_WAYS:
            expected = f"unions in at most {MAX_LEVELS} levels, with at most {MAX_WAYS} ways down"
            pointer = normal.definitions[name].pointer
            raise normal.schema.error(pointer, expected, "more")
    return order


def decide(normal: NormalizedSchema, names: Sequence[str], pointer: str) -> tuple[Variant, ...]:
    """The tests for a union of named objects; empty if tags distinguish them.

    Raises:
        SchemaError: Two objects cannot be distinguished; `pointer` is the place for the error.
    """
    every = (definition for name in names for definition in _objects(normal, name))
    objects = list({definition.name: definition for definition in every}.values())
    if len(objects) < 2 or _have_tags(objects):
        return ()
    return _put_in_order(normal, _drop_duplicates(objects), pointer)


def holds_object(normal: NormalizedSchema, node: Node) -> bool:
    """Whether a reference leads to an object, or to a union with one."""
    return bool(_objects(normal, target(node)))


def member_names(normal: NormalizedSchema, definition: Definition) -> tuple[str, ...]:
    """The named members of a union, including those of nested unions."""
    members: list[str] = []
    for member in definition.members:
        if "$ref" in member:
            members += [inner.name for inner in _objects(normal, target(member))] or [
                target(member)
            ]
    return tuple(dict.fromkeys(members))


def _decide(normal: NormalizedSchema, definition: Definition) -> tuple[Variant, ...]:
    """The tests for a union, empty if msgspec needs none.

    Raises:
        SchemaError: The union cannot be decided.
    """
    named = [target(member) for member in definition.members if "$ref" in member]
    variants = decide(normal, named, definition.pointer)
    others = list(_other_alternatives(normal, definition.node))
    if {} in others:  # any value at all
        return ()
    arrays = [node for node in others if node.get("type") == "array"]
    maps = [node for node in others if node.get("type") == "object"]
    objects = [each for name in named for each in _objects(normal, name)]
    expected = actual = ""
    if variants and others:
        expected, actual = "objects only, in a union without tags", format_value(named)
    elif len(arrays) > 1:
        expected, actual = "one kind of array in a union", f"{len(arrays)} kinds of array"
    elif len(maps) > 1 or (maps and objects):
        expected = "one kind of object in a union without tags"
        actual = "objects with members and maps" if objects else f"{len(maps)} kinds of map"
    if expected:
        raise normal.schema.error(definition.pointer, expected, actual)
    return variants


def _other_alternatives(normal: NormalizedSchema, union: Node) -> Iterator[Node]:
    """The alternatives of a union except objects, through names and unions, each once."""
    pending, seen = [union], set[str]()
    while pending:
        node = pending.pop()
        text = canonical(node)
        if text in seen:
            continue
        seen.add(text)
        if "$ref" in node:
            pending.append(normal.definitions[target(node)].node)
        elif "anyOf" in node:
            pending += node["anyOf"]
        elif "properties" not in node:
            yield node


def _objects(normal: NormalizedSchema, name: str) -> list[Definition]:
    """The objects that a name may stand for, through references and unions, each once."""
    objects: dict[str, Definition] = {}
    left, seen = [name], set[str]()
    while left:
        definition = normal.resolve(reference(left.pop()))
        if definition is None or definition.name in seen:
            continue
        seen.add(definition.name)
        if definition.is_object:
            objects[definition.name] = definition
        left += [target(member) for member in reversed(definition.members) if "$ref" in member]
    return list(objects.values())


def _have_tags(objects: Sequence[Definition]) -> bool:
    tags = [definition.tag for definition in objects]
    fields = {tag[0] for tag in tags if tag}
    return None not in tags and len(fields) == 1 and len(set(tags)) == len(tags)


def _drop_duplicates(objects: Sequence[Definition]) -> list[Definition]:
    """The objects, without those of the same shape as an earlier one."""
    shapes: dict[str, Definition] = {}
    for definition in objects:
        shapes.setdefault(str(definition.node), definition)
    return list(shapes.values())


def _put_in_order(
    normal: NormalizedSchema, objects: Sequence[Definition], pointer: str
) -> tuple[Variant, ...]:
    """Order members so that none accepts values of a later one."""
    tests = {
        (one.name, other.name): _tests(normal, one, other)
        for one in objects
        for other in objects
        if one is not other
    }
    left = [definition.name for definition in objects]
    ordered: list[str] = []
    while left:
        ready = (one for one in left if all(one == other or tests[one, other] for other in left))
        first = next(ready, None)
        if first is None:
            one, other = _undecided_pair(left, tests)
            raise normal.schema.error(
                pointer,
                "members that a const or a required property tells apart",
                f"{one} and {other}",
            )
        left.remove(first)
        ordered.append(first)
    by_name = {definition.name: definition for definition in objects}
    return tuple(
        _with_nullable(
            normal,
            by_name[one],
            _variant(one, [own for other in ordered if (own := tests.get((one, other)))]),
        )
        for one in ordered
    )


def _with_nullable(normal: NormalizedSchema, member: Definition, variant: Variant) -> Variant:
    """A member that knows for which of its required members null is a value."""
    nodes = {wire: member.properties[wire] for wire in variant.required if wire in member.required}
    nullable = tuple(wire for wire, node in nodes.items() if normal.allows_null(node))
    return replace(variant, nullable=nullable) if nullable else variant


_Test: TypeAlias = tuple[str, str, Any]
"""A kind of test (`consts`, `required`, `inner`), the tested member, and the expected content."""


def _undecided_pair(
    left: Sequence[str], tests: Mapping[tuple[str, str], Sequence[_Test]]
) -> tuple[str, str]:
    pairs = [(one, other) for one in left for other in left if one != other]
    stuck = (pair for pair in pairs if not tests[pair] and not tests[pair[1], pair[0]])
    return next(stuck, pairs[0])


def _tests(normal: NormalizedSchema, one: Definition, other: Definition) -> list[_Test]:
    """Every test that values of `one` pass and values of `other` fail."""
    mine, theirs = one.properties, other.properties
    tests: list[_Test] = []
    for wire, values in _fixed_values(one).items():
        if wire in _allowed_values(other) and not set(values) & set(_allowed_values(other)[wire]):
            tests.append(("consts", wire, values))
    tests += [("required", wire, None) for wire in one.required if wire not in theirs]
    for wire in one.required:
        inner, outer = normal.resolve(mine[wire]), normal.resolve(theirs.get(wire, {}))
        if inner is not None and outer is not None and inner.is_object and outer.is_object:
            names = [name for name in inner.required if name not in outer.properties]
            tests += [("inner", wire, name) for name in names]
    return tests or [("required", wire, None) for wire in _extra_member(one, other)]


def _extra_member(one: Definition, other: Definition) -> list[str]:
    """The only optional member that `one` has and `other` lacks, if all else is equal."""
    mine, theirs = one.properties, other.properties
    same = set(one.required) == set(other.required) and all(
        mine.get(wire) == node for wire, node in theirs.items()
    )
    extra = [wire for wire in mine if wire not in theirs]
    return extra if same and len(extra) == 1 else []


def _variant(name: str, others: Sequence[Sequence[_Test]]) -> Variant:
    """A member with few tests that distinguish it from each of the others."""
    chosen: list[_Test] = []
    left: list[Sequence[_Test]] = list(others)
    while left:
        counted = Counter(test for tests in left for test in tests)
        best = max(counted, key=counted.__getitem__)
        chosen.append(best)
        left = [tests for tests in left if best not in tests]
    return Variant(
        name,
        required=tuple(wire for kind, wire, _ in chosen if kind == "required"),
        consts=tuple((wire, want) for kind, wire, want in chosen if kind == "consts"),
        inner=tuple((wire, (want,)) for kind, wire, want in chosen if kind == "inner"),
    )


def _fixed_values(definition: Definition) -> dict[str, tuple[Any, ...]]:
    """The values of required members that have a fixed set of values."""
    values: dict[str, tuple[Any, ...]] = {}
    for wire, node in definition.properties.items():
        if wire in definition.required and "const" in node:
            values[wire] = (node["const"],)
        elif wire in definition.required and "enum" in node:
            values[wire] = tuple(node["enum"])
        elif OWN_DEFAULT in node:
            values[wire] = (node["default"],)
    return values


def _allowed_values(definition: Definition) -> dict[str, tuple[Any, ...]]:
    """The values of required members, and of optional ones with a default."""
    defaults = {
        wire: (node["default"],)
        for wire, node in definition.properties.items()
        if "default" in node
    }
    return defaults | _fixed_values(definition)


def _referred_names(normal: NormalizedSchema) -> frozenset[str]:
    """Every name that some definition refers to."""
    return frozenset(name for d in normal.definitions.values() for name in _targets(d.node))


def _targets(node: Json) -> Iterator[str]:
    if is_object(node):
        if isinstance(node.get("$ref"), str):  # and no member of that name
            yield target(node)
        for child in node.values():
            yield from _targets(child)
    elif is_array(node):
        for child in node:
            yield from _targets(child)
