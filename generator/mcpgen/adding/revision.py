"""Makes a revision from a schema file: its structure, digest, facts and errata. Writes nothing.

The facts and corrections start from those of the revision whose structure is nearest, or from those
of the revision itself if it exists already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcpgen import schema
from mcpgen.adding import facts_text
from mcpgen.adding.reviews import Review, reviews
from mcpgen.diff.compare import Diff, compare
from mcpgen.diff.protocol import of_schema
from mcpgen.errors import format_value
from mcpgen.json_types import Node
from mcpgen.model import fact_checks, fitting, schema_facts
from mcpgen.model.fitting import FittedFacts
from mcpgen.schema import (
    Disagreements,
    Erratum,
    Nearest,
    RevisionEntry,
    Schema,
    SchemaFile,
    docs,
    facts,
)
from mcpgen.schema import errata as corrections
from mcpgen.schema.docs import Docs
from mcpgen.schema.facts import Facts
from mcpgen.schema.revision_facts import Draft
from mcpgen.schema.revisions import Status
from mcpgen.spec import stages
from mcpgen.spec.packages import RevisionSpec

_ENVELOPE = frozenset({"jsonrpc", "method", "id"})
"""Members that no type describes."""


@dataclass(frozen=True)
class Addition:
    """A revision to be written.

    Attributes:
        entry: Its row in the list of revisions.
        files: The files of its folder, by name.
        base: The revision that facts and corrections were carried over from.
        nearest: The nearest revision, and how much structure it shares.
        reviews: The facts that a person has to check.
        errata: The corrections of the base that still apply.
        unmatched: The corrections of the base that do not apply.
        undocumented: Types, and fields as `Type.field`, that docs.toml does not describe.
        notes: The places where a package deviates from the schema.
        diff: The comparison with the previous revision; `None` if there is none.
    """

    entry: RevisionEntry
    files: Mapping[str, str]
    base: str
    nearest: Nearest
    reviews: tuple[Review, ...]
    errata: tuple[Erratum, ...]
    unmatched: tuple[Erratum, ...]
    undocumented: tuple[str, ...]
    notes: tuple[str, ...]
    diff: Diff | None


def addition(path: Path, name: str, status: Status, stated: Path | None) -> Addition:
    """Make a revision from a schema file.

    Args:
        path: The schema file, in JSON or TypeScript.
        name: The revision, a date.
        status: Whether it may still change.
        stated: A facts file with the facts that are known already.

    Raises:
        SchemaError: The file is no schema of the protocol, or no package can be made from it.
        FactsError: The facts file is malformed, or names an unknown method.
    """
    file = schema.read_file(path)
    base = _base(file, name, stated)
    known = corrections.read_errata(base.folder / "errata.toml")
    errata = corrections.select_fitting(file.document, known)
    loaded = file.corrected_schema(errata, name)
    texts = docs.load()
    fitted = _facts(loaded, base, stated)
    built = stages.revision_spec(loaded, fitted.facts, texts)
    fact_checks.expect_fitting(built.models.normal, fitted.facts, stated)
    to_review = reviews(fitted, loaded, texts)
    unmatched = tuple(erratum for erratum in known if erratum not in errata)
    document = schema.structure(file.document)
    files = {
        "schema.json": json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        "facts.toml": facts_text.text(fitted.facts, base.name, to_review),
        "errata.toml": _errata_text(name, base.name, errata, unmatched),
    }
    return Addition(
        RevisionEntry(
            name, status, hashlib.sha256(path.read_bytes()).hexdigest(), schema.digest(document)
        ),
        files,
        base.name,
        file.nearest,
        to_review,
        errata,
        unmatched,
        tuple(_undocumented_names(built, name, texts)),
        tuple(f"{note.pointer}: {note.text}" for note in loaded.notes),
        _changes(loaded, fitted.facts),
    )


def _base(file: SchemaFile, name: str, stated: Path | None) -> RevisionEntry:
    """The base revision: that of the facts file, else the revision itself, else the nearest."""
    based_on = schema_facts.read(stated).based_on if stated is not None else None
    if based_on is None and name in {row.name for row in schema.revisions()}:
        based_on = name
    return schema.entry(based_on or file.nearest.entry.name)


def _facts(loaded: Schema, base: RevisionEntry, stated: Path | None) -> FittedFacts:
    """The facts of the revision, without those about a draft that followed another revision."""
    fitted = schema_facts.facts_for(loaded, base.name, stated)
    if stated is not None:
        schema_facts.expect_methods(loaded, base.name, stated)
    if loaded.revision == base.name:
        return fitted
    carried = fitted.carried
    if loaded.digest == base.digest:  # the schema is the same, but its pages may differ
        methods = fitting.methods_of(loaded)
        rows = schema_facts.carried_facts(fitted.facts, facts.load(base.name), (), methods)
        carried = tuple(rows)
    own_draft = stated is not None and schema_facts.read(stated).has("/draft")
    return replace(
        fitted,
        facts=replace(
            fitted.facts,
            revision=loaded.revision,
            draft=fitted.facts.draft if own_draft else Draft(),
        ),
        carried=tuple(fact for fact in carried if not fact.pointer.startswith("/draft/")),
    )


def _errata_text(
    name: str, base: str, errata: tuple[Erratum, ...], unmatched: tuple[Erratum, ...]
) -> str:
    """The text of errata.toml."""
    others = [f"{name}: defects of the published schema, as {base} has them."]
    if not (errata or unmatched):
        others = [f"{name}: no defects of the published schema are known."]
    others += [
        f"Does not match any more: {format_value(erratum.pointer, 200)}" for erratum in unmatched
    ]
    return schema.errata_text(Disagreements(errata, tuple(others))) + "\n"


def _undocumented_names(built: RevisionSpec, revision: str, texts: Docs) -> list[str]:
    """Types and fields that docs.toml does not describe."""
    undocumented: list[str] = []
    for name, definition in built.models.normal.definitions.items():
        if not texts.type_doc(revision, name):
            undocumented.append(name)
        members: Node = definition.node.get("properties", {})
        undocumented += (
            f"{name}.{wire}"
            for wire in members
            if wire not in _ENVELOPE and not texts.field_doc(revision, name, wire)
        )
    return undocumented


def _changes(loaded: Schema, stated: Facts) -> Diff | None:
    """The changes from the previous revision; `None` for the first revision."""
    older = [row for row in schema.revisions() if row.name < loaded.revision]
    if not older:
        return None
    before = schema.load(older[-1].name)
    newer = [schema.load(row.name).definitions for row in schema.revisions()[len(older) :]]
    old = of_schema(before, facts.load(before.revision), before.revision, [loaded.definitions])
    return compare(old, of_schema(loaded, stated, loaded.revision, [*newer, before.definitions]))
