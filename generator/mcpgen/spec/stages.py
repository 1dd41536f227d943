"""The stages from a schema and its facts to the finished values of a revision.

Each once, in this order: schema, facts -> normalize -> methods -> unions -> docstrings, rpc_api ->
values. Nothing is read from disk here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcpgen import schema
from mcpgen.json_types import Node
from mcpgen.model import extensions, methods, normalize, rpc_api, schema_sources, unions
from mcpgen.model.docstrings import Texts
from mcpgen.model.extension_files import ExtensionFile
from mcpgen.schema import docs, facts
from mcpgen.spec import building
from mcpgen.spec.packages import ExtensionSpec, RevisionSpec


def revision_spec(
    loaded: schema.Schema,
    stated: facts.Facts,
    texts: docs.Docs,
    newer: Sequence[Mapping[str, Node]] | None = None,
    extension_files: Sequence[ExtensionFile] = (),
) -> RevisionSpec:
    """Everything about one revision.

    Args:
        loaded: Its schema.
        stated: Its facts.
        texts: The documentation of types.
        newer: The definitions of the revisions after it, for their names; by default those of
            mcpgen's revisions.
        extension_files: The extensions to add if their types fit.

    Raises:
        SchemaError: The schema has no plain form, a method has no result, a union has no test, or
            an extension does not fit.
    """
    if newer is None:
        newer = [
            schema_sources.definitions(row)
            for row in schema.revisions()
            if row.name > loaded.revision
        ]
    plain = normalize.normalize(loaded, stated, newer)
    complete, held_by_role = normalize.with_roles(plain)
    derived = methods.derive(complete, stated)
    decided = unions.decide_all(derived.normal, _params_and_results(derived))
    derived = replace(derived, normal=decided.normal)
    prose = Texts(loaded, texts)
    built = building.of_revision(
        loaded.revision,
        stated,
        derived,
        held_by_role,
        decided.tests,
        prose,
        rpc_api.derive(derived, prose),
    )
    if not extension_files:
        return built
    before = schema_sources.published_definitions(loaded)
    core = extensions.Core(loaded, before, stated, newer, derived, held_by_role)
    beside = extensions.merge_all(extension_files, core)
    fitting = tuple(_extension_spec(each, stated) for each in beside.fitting)
    return replace(built, extensions=fitting, unfit=beside.unfit)


def _extension_spec(extension: extensions.Extension, stated: facts.Facts) -> ExtensionSpec:
    prose = Texts(extension.schema, docs.Docs())
    derived = rpc_api.derive(extension.methods, prose, extension.core)
    return building.of_extension(extension, stated, prose, derived)


def _params_and_results(derived: methods.Methods) -> frozenset[str]:
    every = [*derived.all, *derived.inputs]
    return frozenset(name for m in every for name in (m.params, m.result) if name is not None)
