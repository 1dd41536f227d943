"""The stages from a schema and its facts to the finished values of a revision.

Each ends in a frozen value of its own, which the next one reads:

| Stage | Value | What is finished |
| --- | --- | --- |
| `load` | `LoadedRevision` | the corrected schema, its facts |
| `normalize` | `NormalizedSchema` | every inline object and union is a type |
| `name` | `NamedSchema` | the types of roles, params and results; the messages |
| `unions` | `DecidedSchema` | how the members of each union are told apart |
| `methods` | `Methods` | each message with its facts |
| `spec` | `RevisionSpec` | all of it, with texts and the typed API |

Nothing is read from disk here but the definitions of mcpgen's revisions, for their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpgen import schema
from mcpgen.json_types import Node
from mcpgen.model import extensions, methods, rpc_api, schema_sources, unions
from mcpgen.model.docstrings import Texts
from mcpgen.model.extension_files import ExtensionFile
from mcpgen.model.name import name_types
from mcpgen.model.normalize import normalize
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
    named = name_types(normalize(loaded, stated, newer), stated)
    decided = unions.decide_all(named.types, named.messages.exchanged)
    derived = methods.derive(decided.types, named.messages, stated)
    beside = extensions.Beside()
    if extension_files:
        before = schema_sources.published_definitions(loaded)
        core = extensions.Core(loaded, before, stated, newer, decided.types, derived, named.roles)
        beside = extensions.merge_all(extension_files, core)
    prose = Texts(loaded, texts)
    return building.of_revision(
        stated,
        decided,
        named.roles,
        derived,
        prose,
        rpc_api.derive(decided.types, derived, prose),
        [_extension_spec(each, stated) for each in beside.fitting],
        beside.unfit,
    )


def _extension_spec(extension: extensions.Extension, stated: facts.Facts) -> ExtensionSpec:
    prose = Texts(extension.schema, docs.Docs())
    api = rpc_api.derive(extension.decided.types, extension.methods, prose, extension.core)
    return building.of_extension(extension, stated, prose, api)
