"""Builds the text of every file of a package from the names of its revisions. Writes nothing.

The stages of one revision, each once, are those of `mcpgen.spec.stages`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mcpgen.errors import safe_text
from mcpgen.model import exports, fact_checks, schema_facts
from mcpgen.model.load import LoadedRevision, load_revision
from mcpgen.model.name import results_by_rule
from mcpgen.model.normalize import normalize
from mcpgen.model.schema_sources import Source
from mcpgen.package import manifest
from mcpgen.package.build_request import BuildRequest, inputs
from mcpgen.render import tree
from mcpgen.render.datamodel import Worker
from mcpgen.render.formatting import format_modules
from mcpgen.schema import docs
from mcpgen.spec import core_check, stages
from mcpgen.spec.packages import RevisionSpec

_GUESS = 400
"""Limit of the characters of a guess in a report."""


def build(
    request: BuildRequest,
    report: Callable[[str], None] = lambda text: None,
    worker: Worker | None = None,
    form: tree.Form = format_modules,
) -> dict[str, str]:
    """The text of every file of a package by its path, the manifest included.

    Args:
        request: The package.
        report: Called with each note about a schema file: deviations from the schema, guessed
            facts, and the number of facts carried over.
        worker: The process that makes the models; this process if `None`.
        form: Converts rendered modules to their written form.

    Raises:
        McpgenError: A schema, its corrections, its facts, a template or a patch are wrong.
    """
    texts = docs.load()
    specs: list[RevisionSpec] = []
    origins: dict[str, manifest.Origin] = {}
    for source in request.sources:
        loaded = load_revision(source, errata=request.errata)
        specs.append(_spec_of(request, source, loaded, texts, report))
        origins[source.revision] = manifest.Origin(
            source.origin,
            loaded.schema.digest,
            inputs(source, request.errata),
            source.schema_path,
            source.facts_path,
        )
    _report_unfit(request, specs, report)
    own_templates = request.overrides.directory if request.overrides is not None else None
    files = tree.render_package(
        specs,
        request.package,
        request.selection,
        worker,
        own_templates,
        request.old_names,
        request.renamed_types,
        request.old_revisions,
        form,
    )
    names = exports.public_names(files["__init__.py"])
    if request.patch is not None:
        from mcpgen.package import patches  # few packages have one

        files = patches.apply_patch(request.patch, files, report)
    if request.gitattributes:
        files[manifest.GITATTRIBUTES] = "* linguist-generated\n"
    record = manifest.new(
        request.package,
        request.options,
        origins,
        files,
        request.templates,
        request.extension_origins,
        names,
        request.old_names,
        request.patch_origin,
        request.renamed_types,
        request.old_revisions,
    )
    return {**files, manifest.NAME: record.text()}


def _report_unfit(
    request: BuildRequest, specs: Sequence[RevisionSpec], report: Callable[[str], None]
) -> None:
    """Report the revisions that an extension does not fit.

    Raises:
        SchemaError: An extension fits none of the revisions.
    """
    for file in request.extensions:
        errors = [each.unfit.get(file.identifier) for each in specs]
        for each, error in zip(specs, errors, strict=True):
            if error is not None and all(errors):
                raise error
            if error is not None:
                report(f"note: {file.source}: not beside {safe_text(each.name)}: {error}")


def _spec_of(
    request: BuildRequest,
    source: Source,
    loaded: LoadedRevision,
    texts: docs.Docs,
    report: Callable[[str], None],
) -> RevisionSpec:
    """Everything about one revision of a package; reports notes about a user's schema file."""
    published, fitted = loaded.schema, loaded.fitted
    is_own = source.origin == "file"
    if is_own and request.strict:
        schema_facts.expect_all_stated(fitted, published.source)
    built = stages.revision_spec(published, loaded.facts, texts, loaded.newer, request.extensions)
    if not is_own:
        _report_extensions(built, report)
        return built
    stated = source.facts if source.facts_of is None else None
    absent: frozenset[str] = frozenset()
    if stated is not None:
        schema_facts.expect_methods(published, source.base, stated)
        absent = schema_facts.absent_methods(stated)
    fact_checks.expect_fitting(built.models.normal, fitted.facts, stated)
    parts = {*request.selection.parts}
    if parts != {"types"}:
        peers = bool(parts - {"types", "protocol"})
        server = bool(parts & {"all", "server"})
        core_check.expect_core(built, source.base, absent, peers=peers, server=server)
    for note in built.models.normal.notes:
        report(
            f"note: {published.source}#{safe_text(published.pointer(note.pointer))}: {note.text}"
        )
    unset = tuple(core_check.unset_members(built, source.base))
    for member in unset:
        pointer = safe_text(published.pointer(f"/$defs/{member.definition}/required"))
        report(f"note: {published.source}#{pointer}: {core_check.note(member)}")
    for guess in fitted.guesses:
        report(f"guess: {safe_text(str(guess), _GUESS)}")
    if carried := schema_facts.summary(fitted):
        report(f"carried over: {carried}; mcpgen facts {published.source} lists them")
    _report_extensions(built, report)
    return replace(built, unset=unset, item_options=core_check.item_options(built))


def _report_extensions(built: RevisionSpec, report: Callable[[str], None]) -> None:
    """Report where a package deviates from the extensions of a revision."""
    for extension in built.extensions:
        normal = extension.models.normal
        for note in normal.notes:
            pointer = safe_text(normal.schema.pointer(note.pointer))
            report(f"note: {normal.schema.source}#{pointer}: {note.text}")


def facts_text(source: Source) -> str:
    """All facts for a schema file, as the text of a facts file.

    Raises:
        SchemaError: The schema is malformed.
        FactsError: The facts file is malformed, or names a method that the schema does not have.
    """
    loaded = load_revision(source, errata=True)
    stated = source.facts if source.facts_of is None else None
    if stated is not None:
        schema_facts.expect_methods(loaded.schema, source.base, stated)
    plain = normalize(loaded.schema, loaded.facts, loaded.newer)
    fact_checks.expect_fitting(plain, loaded.facts, stated)
    by_rule = results_by_rule(plain, loaded.facts)
    return schema_facts.text_of(loaded.fitted, loaded.schema, source.base, stated, by_rule)
