"""The public values of a revision, from its plain form, its methods and its facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mcpgen import names
from mcpgen.json_types import Json, Node
from mcpgen.model import schema_queries
from mcpgen.model.docstrings import Texts
from mcpgen.model.normalized import (
    ANY_MAP,
    Check,
    Constant,
    Definition,
    Fixed,
    NormalizedSchema,
    Range,
    target,
)
from mcpgen.model.schema_queries import META
from mcpgen.model.unions import Variant, member_names
from mcpgen.schema import Note
from mcpgen.schema.facts import Facts
from mcpgen.spec import values as spec
from mcpgen.spec.packages import ExtensionSpec, ModelsSpec, RevisionSpec

_BOUNDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
}
_NOT_PUBLIC = frozenset(
    {"capabilities", "defaults", "methods", "pages", "renamed", "results", "revision", "source"}
)
"""Facts that control generation, or that the values have elsewhere."""
_LIFECYCLES: Mapping[str, Any] = {"HANDSHAKE": "handshake", "PER_REQUEST": "per-request"}


def describe_revision(built: RevisionSpec) -> spec.Revision:
    """The values of a revision."""
    loaded = built.models.normal.schema
    return spec.Revision(
        name=built.name,
        python_name=built.folder,
        lifecycle=_LIFECYCLES[built.lifecycle],
        batching=built.batching,
        types=_types(built.models, built.types),
        methods=built.tables,
        roles=built.roles,
        result_types=built.result_types,
        facts=_facts(built.facts),
        extensions=tuple(_extension(each) for each in built.extensions),
        errata=tuple(spec.Erratum(**vars(each)) for each in loaded.errata),
        deprecations=tuple(
            spec.Deprecation(name, each.since, each.instead, each.types)
            for name, each in built.facts.pages.deprecated.items()
        ),
        notes=tuple(_notes(built.models.normal.notes)),
        digest=loaded.digest,
    )


def _extension(built: ExtensionSpec) -> spec.Extension:
    return spec.Extension(
        identifier=built.identifier,
        module=built.module,
        types=_types(built.models, built.types),
        methods=built.methods,
        added_results={
            method: tuple(each.type for each in variants)
            for method, variants in built.added_results.items()
        },
    )


def _notes(notes: Iterable[Note]) -> Iterator[spec.Note]:
    for note in notes:
        yield spec.Note(note.pointer, note.text, note.is_lossy)


def _facts(facts: Facts) -> Mapping[str, Mapping[str, Any]]:
    tables: dict[str, dict[str, Any]] = asdict(facts)
    return {name: table for name, table in tables.items() if name not in _NOT_PUBLIC}


def _types(models: ModelsSpec, types: Iterable[str]) -> tuple[spec.Type, ...]:
    normal, texts = models.normal, models.texts
    return tuple(
        _type(normal.definitions[name], normal, models.unions.get(name, ()), texts)
        for name in types
    )


def _type(
    definition: Definition, normal: NormalizedSchema, tests: Sequence[Variant], texts: Texts
) -> spec.Type:
    named = spec.Type(
        name=definition.name,
        kind="object",
        is_inline=definition.name not in normal.schema.definitions,
        doc=texts.summary(definition),
        page=texts.docs.page(texts.schema.revision, definition.name),
        pointer=normal.schema.pointer(definition.pointer),
    )
    published: Node = normal.schema.definitions.get(definition.name, {})
    named = replace(named, is_open=schema_queries.is_open(published))
    if definition.node == ANY_MAP and META in schema_queries.properties(published):
        # A map in packages, so that nothing is lost; the schema knows one member of it.
        return replace(named, members=(_meta_of(definition, published, texts),))
    if definition.is_object:
        tag = definition.tag[0] if definition.tag else None
        return replace(named, members=tuple(_members(definition, normal, texts)), tag=tag)
    named, expression = replace(named, is_open=False), _expression(definition.node)
    if not definition.members or expression.kind != "union":
        return replace(named, kind="alias", type=expression)
    union = _union(definition, normal, tests)
    return replace(named, kind="union", type=expression, union=union)


def _meta_of(definition: Definition, published: Node, texts: Texts) -> spec.Member:
    """The member `_meta` of an object without other members."""
    node: Node = schema_queries.properties(published)[META]
    return spec.Member(
        name=META,
        python_name=names.snake(META),
        type=replace(_expression(ANY_MAP), object_type=target(node) if "$ref" in node else None),
        required=META in published.get("required", ()),
        doc=texts.member(definition, META),
    )


def _members(
    definition: Definition, normal: NormalizedSchema, texts: Texts
) -> Iterator[spec.Member]:
    python = names.members(definition.properties)
    object_types = dict(definition.object_types)
    for wire, node in definition.properties.items():
        object_type = object_types.get(wire)
        expression = _with_checks(_expression(node), wire, definition.checks)
        if object_type in normal.definitions and expression.kind == "map":
            expression = replace(expression, object_type=object_type)
        yield spec.Member(
            name=wire,
            python_name=python[wire],
            type=expression,
            required=wire in definition.required or wire in definition.demanded,
            nullable=normal.allows_null(node),
            has_default="default" in node,
            default=node.get("default"),
            doc=texts.member(definition, wire),
        )


def _with_checks(
    expression: spec.TypeExpression, wire: str, checks: Iterable[Check]
) -> spec.TypeExpression:
    """A type with the checks of its member."""
    for check in checks:
        if check.wire != wire:
            continue
        match check:
            case Range():
                limits = dict(zip(check.keywords, _ends(check), strict=True))
                bounds = {_BOUNDS[keyword]: value for keyword, value in limits.items()}
                expression = replace(expression, bounds=replace(expression.bounds, **bounds))
            case Constant():
                expression = spec.TypeExpression("literal", values=(check.value,))
            case Fixed():
                fixed = {**expression.fixed, check.keyword: check.value}
                expression = replace(expression, fixed=fixed)
    return expression


def _ends(check: Range) -> list[Json]:
    return [value for value in (check.least, check.most) if value is not None]


def _expression(node: Node) -> spec.TypeExpression:
    if "$ref" in node:
        return spec.TypeExpression("reference", name=target(node))
    if "const" in node:
        return spec.TypeExpression("literal", values=(node["const"],))
    if "enum" in node:
        return spec.TypeExpression("literal", values=tuple(node["enum"]))
    if "anyOf" in node:
        return _any_of([_expression(each) for each in node["anyOf"]])
    bounds = spec.Bounds(**{_BOUNDS[key]: node[key] for key in _BOUNDS if key in node})
    match node.get("type"):
        case "array":
            return spec.TypeExpression("array", items=_expression(node["items"]), bounds=bounds)
        case "object":
            items = _expression(node.get("additionalProperties") or {})
            return spec.TypeExpression("map", items=items, bounds=bounds)
        case "null" | "boolean" | "integer" | "number" | "string" as kind:
            return spec.TypeExpression(kind, bounds=bounds)
        case _:
            return spec.TypeExpression("any")


_INTEGER, _NUMBER = spec.TypeExpression("integer"), spec.TypeExpression("number")


def _any_of(alternatives: Sequence[spec.TypeExpression]) -> spec.TypeExpression:
    """A union; integers are numbers, so a number with an integer beside it is a number alone."""
    if _NUMBER in alternatives:
        alternatives = [each for each in alternatives if each != _INTEGER]
    if len(alternatives) == 1:
        return alternatives[0]
    return spec.TypeExpression("union", alternatives=tuple(alternatives))


def _union(
    definition: Definition, normal: NormalizedSchema, tests: Sequence[Variant]
) -> spec.Union:
    if tests:
        return spec.Union("members", alternatives=tuple(_alternative(each) for each in tests))
    members = (normal.definitions[name] for name in member_names(normal, definition))
    objects = [each for each in members if each.is_object]
    tags = {each.tag[0] for each in objects if each.tag}
    by_tag = len(objects) > 1 and len(tags) == 1 and all(each.tag for each in objects)
    alternatives = tuple(
        spec.Alternative(each.name, each.tag[1] if by_tag and each.tag else None)
        for each in objects
    )
    return spec.Union("tag" if by_tag else "kind", tags.pop() if by_tag else None, alternatives)


def _alternative(variant: Variant) -> spec.Alternative:
    return spec.Alternative(
        variant.type,
        required=variant.required,
        constants=dict(variant.consts),
        inner=dict(variant.inner),
        nullable=variant.nullable,
        decides=variant.decides,
    )
