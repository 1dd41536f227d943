"""Reads revisions, schema files and extensions, and returns their finished values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from mcpgen.errors import UsageError
from mcpgen.model import extension_files, schema_sources
from mcpgen.model.extension_files import ExtensionFile
from mcpgen.model.load import load_revision
from mcpgen.model.schema_sources import Source
from mcpgen.schema import docs
from mcpgen.schema.errata import Erratum
from mcpgen.spec import describing, differences, stages
from mcpgen.spec.packages import RevisionSpec
from mcpgen.spec.values import SPEC_VERSION, Specification


def load(
    *revisions: str,
    schemas: Sequence[Path] = (),
    facts_file: Path | None = None,
    extensions: Sequence[Path] = (),
    errata: bool = True,
) -> Specification:
    """The values of some revisions.

    Args:
        revisions: Their names: a date, `latest` or `all`.
        schemas: Schema files in JSON or TypeScript, a revision each.
        facts_file: The facts file of the one schema file.
        extensions: Schema files of extensions to have beside them.
        errata: Whether the known defects of published schemas are corrected.

    Raises:
        UsageError: There is no such revision, or none is named.
        SchemaError: A file is no schema of the protocol, or an extension fits no revision.
        FactsError: The facts file is malformed.
    """
    files = [schema_sources.of_file(path, facts_file) for path in schemas]
    sources = [*schema_sources.by_name(revisions), *files]
    beside = [extension_files.read(path) for path in extensions]
    return load_sources(sources, beside, errata=errata)


def load_sources(
    sources: Sequence[Source],
    extensions: Sequence[ExtensionFile] = (),
    *,
    errata: bool = True,
    own_errata: Mapping[str, tuple[Erratum, ...]] = MappingProxyType({}),
) -> Specification:
    """The values of the revisions of some sources, oldest first.

    Args:
        sources: The sources.
        extensions: The extensions to have beside them.
        errata: Whether the known defects of published schemas are corrected.
        own_errata: Further corrections by revision, which come after those.

    Raises:
        UsageError: There are no sources.
        SchemaError: See `load`.
        FactsError: A facts file is malformed.
        ErrataError: A further correction does not fit.
    """
    if not sources:
        raise UsageError("expected a revision (a date, latest or all) or a schema file, got none")
    built = [
        _build(source, extensions, own_errata.get(source.revision, ()), errata=errata)
        for source in sources
    ]
    return specification(sorted(built, key=lambda each: each.name))


def specification(built: Sequence[RevisionSpec]) -> Specification:
    """The values of revisions, given oldest first.

    Raises:
        SchemaError: An extension fits none of them.
    """
    for identifier in built[0].unfit:
        errors = [each.unfit.get(identifier) for each in built]
        if errors[0] is not None and all(errors):
            raise errors[0]
    revisions = tuple(describing.describe_revision(each) for each in built)
    neighbours = tuple(differences.compare(*pair) for pair in pairwise(revisions))
    return Specification(SPEC_VERSION, revisions, neighbours)


def _build(
    source: Source,
    extensions: Sequence[ExtensionFile],
    own_errata: tuple[Erratum, ...],
    *,
    errata: bool,
) -> RevisionSpec:
    loaded = load_revision(source, errata=errata, own_errata=own_errata)
    return stages.revision_spec(loaded.schema, loaded.facts, docs.load(), loaded.newer, extensions)
