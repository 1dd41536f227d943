"""The first stage: the schema of a revision, corrected, with its facts and the names of later ones.

All that is read from disk is read here, but for texts and extensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcpgen import schema
from mcpgen.json_types import Node
from mcpgen.model import schema_facts, schema_sources
from mcpgen.model.fitting import FittedFacts
from mcpgen.model.schema_sources import Source
from mcpgen.schema import facts
from mcpgen.schema.errata import Erratum
from mcpgen.schema.facts import Facts


@dataclass(frozen=True)
class LoadedRevision:
    """The inputs of one revision.

    Attributes:
        schema: Its schema, corrected.
        fitted: Its facts, with those that are guesses or carried over.
        newer: The definitions of the revisions after it, oldest first, for their names.
    """

    schema: schema.Schema
    fitted: FittedFacts
    newer: Sequence[Mapping[str, Node]] = field(repr=False)

    @property
    def facts(self) -> Facts:
        """Its facts."""
        return self.fitted.facts


def load_revision(
    source: Source, *, errata: bool, own_errata: tuple[Erratum, ...] = ()
) -> LoadedRevision:
    """The inputs of the revision of a source.

    Args:
        source: The source.
        errata: Whether the known defects of published schemas are corrected.
        own_errata: Further corrections, which come after those.

    Raises:
        SchemaError: The file is not a schema of the protocol.
        ErrataError: A further correction does not fit.
        FactsError: The facts file is malformed.
    """
    loaded = schema_sources.load(source, errata)
    if own_errata:
        loaded = schema.correct(loaded, own_errata)
    newer = schema_sources.newer_than(source.base, loaded)
    if source.origin == "mcpgen":
        return LoadedRevision(loaded, FittedFacts(facts.load(source.revision)), newer)
    own = source.facts if source.facts_of is None else None
    return LoadedRevision(loaded, schema_facts.facts_for(loaded, source.base, own), newer)
