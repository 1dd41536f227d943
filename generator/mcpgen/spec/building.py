"""Builds the values for templates of packages from schemas, facts and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from mcpgen import names
from mcpgen.errors import SchemaError
from mcpgen.json_types import Json
from mcpgen.model import merging, rpc_api
from mcpgen.model.docstrings import Doc, Texts, docstring
from mcpgen.model.extensions import Extension
from mcpgen.model.methods import Method, Methods
from mcpgen.model.normalized import Definition, NormalizedSchema
from mcpgen.model.parts import EVERYTHING, Selection, features
from mcpgen.model.rpc_api import RpcApi
from mcpgen.model.type_hints import HELD
from mcpgen.model.unions import DecidedSchema, Variant
from mcpgen.schema import revision_facts
from mcpgen.schema.facts import Facts
from mcpgen.spec import values as spec
from mcpgen.spec.packages import (
    ExtensionSpec,
    FactRow,
    ModelsSpec,
    PackageSpec,
    RevisionSpec,
    Type,
)

_RESULT_TYPE = "resultType"
_DATA = "data"
_TABLES = {
    "REVISION",
    "CLIENT_REQUESTS",
    "SERVER_REQUESTS",
    "CLIENT_NOTIFICATIONS",
    "SERVER_NOTIFICATIONS",
    "INPUT_REQUESTS",
}
"""The names of the tables in the module of the methods; no method's constant has one of them."""


def of_revision(
    facts: Facts,
    decided: DecidedSchema,
    roles: Mapping[str, str],
    methods: Methods,
    texts: Texts,
    derived: RpcApi,
    extensions: Sequence[ExtensionSpec],
    unfit: Mapping[str, SchemaError],
) -> RevisionSpec:
    """Everything about one revision.

    Args:
        facts: Its facts.
        decided: Its types.
        roles: Definitions by their role.
        methods: Its methods.
        texts: The docstrings.
        derived: The typed API.
        extensions: The extensions beside it, in order.
        unfit: The errors of extensions that do not fit, by identifier.
    """
    normal, name = decided.types, decided.types.schema.revision
    return RevisionSpec(
        name=name,
        folder=names.folder(name),
        lifecycle="HANDSHAKE" if methods.handshake else "PER_REQUEST",
        batching=methods.batching,
        types=tuple(normal.definitions),
        roles=roles,
        tables=_methods(normal, methods, facts),
        api=derived,
        facts=facts,
        fact_rows=_fact_rows(facts),
        extension_fact_rows=_extension_fact_rows(facts, methods),
        result_types=_result_types(facts, normal),
        models=ModelsSpec(
            normal,
            decided.tests,
            {name: _doc(d, texts, decided.tests) for name, d in normal.definitions.items()},
            texts,
            _with_value(normal, derived),
        ),
        extensions=tuple(extensions),
        unfit=unfit,
    )


def _with_value(normal: NormalizedSchema, derived: RpcApi) -> frozenset[str]:
    """The objects of tool results, unless a member has the name of the property."""
    results = (normal.definitions[name] for call in derived.client.requests for name in call.values)
    return frozenset(
        each.name
        for each in results
        if each.is_object and _DATA not in names.members(each.properties).values()
    )


def of_extension(
    extension: Extension, facts: Facts, texts: Texts, derived: RpcApi
) -> ExtensionSpec:
    """An extension beside a revision.

    Args:
        extension: The extension.
        facts: The facts of the revision.
        texts: The docstrings.
        derived: Its typed API.
    """
    normal, types, tests = extension.decided.types, extension.types, extension.decided.tests
    own = _methods(normal, extension.methods, facts)
    return ExtensionSpec(
        identifier=extension.file.identifier,
        module=extension.file.module,
        types=types,
        core=extension.core,
        methods=own,
        tables=_qualify_types(own, extension.core),
        api=derived,
        models=ModelsSpec(
            normal,
            tests,
            {name: _doc(normal.definitions[name], texts, tests) for name in types},
            texts,
        ),
        added_results=_added_results(extension, facts),
    )


def _added_results(extension: Extension, facts: Facts) -> Mapping[str, tuple[Variant, ...]]:
    """The results that an extension adds to methods, each with its constants as tests."""
    definitions = extension.decided.types.definitions
    added: dict[str, tuple[Variant, ...]] = {}
    for method, stated in sorted(facts.methods.items()):
        results = tuple(
            _constant_variant(definitions[name])
            for name in stated.extension_results
            if name in extension.types
        )
        if results:
            added[method] = results
    return added


def _constant_variant(definition: Definition) -> Variant:
    properties = definition.properties.items()
    consts = tuple((wire, (node["const"],)) for wire, node in properties if "const" in node)
    return Variant(definition.name, consts=consts)


def _qualify_types(methods: spec.Methods, core: frozenset[str]) -> spec.Methods:
    """Add its module to each type of the methods of an extension."""
    types = replace(HELD, core=core)

    def qualify(name: str | None) -> str | None:
        return None if name is None else types.type_named(name)

    def values(group: Sequence[spec.Method]) -> tuple[spec.Method, ...]:
        return tuple(
            replace(each, params=qualify(each.params), result=qualify(each.result))
            for each in group
        )

    return spec.Methods(
        values(methods.client_requests),
        values(methods.server_requests),
        values(methods.client_notifications),
        values(methods.server_notifications),
    )


def package(
    revisions: Sequence[RevisionSpec],
    name: str,
    selection: Selection = EVERYTHING,
    old_names: Sequence[str] = (),
    renamed_types: Mapping[str, str] | None = None,
) -> PackageSpec:
    """A package of some revisions, oldest first.

    Raises:
        UsageError: No revision has a transport that was selected.
    """
    ordered = sorted(revisions, key=lambda revision: revision.name)
    types = sorted({name for revision in ordered for name in revision.types})
    has = features(
        selection,
        [revision.facts for revision in ordered],
        {each.identifier for revision in ordered for each in revision.extensions},
    )
    if "returns" not in has.chosen:
        ordered = [replace(each, api=rpc_api.without_values(each.api)) for each in ordered]
    return PackageSpec(
        name=name,
        revisions=tuple(ordered),
        api=rpc_api.merge({revision.name: revision.api for revision in ordered}),
        types=tuple(
            Type(name, tuple(r.folder for r in ordered if name in r.types)) for name in types
        ),
        merged=merging.merge(
            [
                merging.Source(
                    r.name,
                    r.models.normal,
                    r.models.texts,
                    r.models.values if has.client else frozenset(),
                )
                for r in ordered
            ],
            names.RESERVED[selection.models],
        ),
        has=has,
        old_names=tuple(old_names),
        renamed_types=renamed_types or {},
    )


def _methods(normal: NormalizedSchema, methods: Methods, facts: Facts) -> spec.Methods:
    def values(group: Sequence[Method]) -> tuple[spec.Method, ...]:
        return tuple(_method(method, twice, normal, facts) for method in group)

    every = [*methods.all, *methods.inputs]
    twice = Counter(method.python_name for method in every)
    return spec.Methods(
        client_requests=values(methods.of("client", "request")),
        server_requests=values(methods.of("server", "request")),
        client_notifications=values(methods.of("client", "notification")),
        server_notifications=values(methods.of("server", "notification")),
        input_requests=values(methods.inputs),
    )


def _method(
    method: Method, twice: Counter[str], normal: NormalizedSchema, facts: Facts
) -> spec.Method:
    name = names.constant(method.python_name)
    constant = f"{method.sender.upper()}_{name}" if twice[method.python_name] > 1 else name
    return spec.Method(
        constant=f"{constant}_" if constant in _TABLES else constant,
        name=method.name,
        python_name=method.python_name,
        kind=method.kind,
        sender=method.sender,
        message=method.type,
        params=method.params,
        params_required=method.params_required,
        result=method.result,
        results=method.results,
        capability=method.capability,
        items=_items(method, normal),
        item=method.item,
        positional=method.positional,
        facts=_changed_facts(replace(facts.method(method.name), positional=())),
    )


def _items(method: Method, normal: NormalizedSchema) -> str | None:
    """Python name of the list in the result that has it."""
    if method.items is None:
        return None
    members_of_results = (
        names.members(normal.definitions[name].properties) for name in method.results
    )
    return next(members[method.items] for members in members_of_results if method.items in members)


def _fact_rows(facts: Facts) -> tuple[FactRow, ...]:
    kinds = {kind.name: getattr(facts, kind.name) for kind in fields(revision_facts.Facts)}
    del kinds["methods"]
    rows = (_fact_row(name, stated) for name, stated in kinds.items())
    return tuple(row for row in rows if row.values)


def _extension_fact_rows(facts: Facts, methods: Methods) -> tuple[FactRow, ...]:
    """The facts about methods that an extension adds to those of the schema."""
    known = {method.name for method in (*methods.all, *methods.inputs)}
    return tuple(
        _fact_row(name, replace(stated, positional=()))
        for name, stated in sorted(facts.methods.items())
        if name not in known and facts.method(name).extension
    )


def _fact_row(name: str, stated: Any) -> FactRow:
    """The facts in an instance of one of the classes of `revision_facts`."""
    return FactRow(name, stated.__class__.__name__, _changed_facts(stated))


def _changed_facts(stated: Any) -> Mapping[str, Any]:
    """The facts in an instance that differ from the defaults, by name."""
    return {
        item.name: value
        for item in fields(stated)
        if (value := getattr(stated, item.name)) != item.default
    }


def _result_types(facts: Facts, normal: NormalizedSchema) -> tuple[str, ...]:
    values: list[Json] = [table.get(_RESULT_TYPE) for table in facts.defaults.values()]
    values += [
        each.properties.get(_RESULT_TYPE, {}).get("const") for each in normal.definitions.values()
    ]
    return tuple(sorted({value for value in values if isinstance(value, str)}))


def _doc(definition: Definition, texts: Texts, tests: Mapping[str, tuple[Variant, ...]]) -> Doc:
    indented = definition.is_object or definition.name in tests
    tag = definition.tag[0] if definition.tag else None  # its declaration has its only value
    members = {wire: texts.member(definition, wire) for wire in definition.properties}
    return Doc(
        docstring([texts.summary(definition)], 4 if indented else 0, texts.source(definition)),
        {wire: docstring([text], 4) for wire, text in members.items() if text and wire != tag},
    )
