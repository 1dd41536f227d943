"""A package made from the tiny schema beside this file: its output is small enough to read."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mcpgen import schema
from mcpgen.render import tree
from mcpgen.schema import docs, facts
from mcpgen.spec import stages
from mcpgen.spec.packages import RevisionSpec

TINY = Path(__file__).parent / "tiny"
REVISION = "2030-01-01"


@cache
def tiny_spec() -> RevisionSpec:
    """Everything about the tiny schema."""
    return stages.revision_spec(
        schema.load_file(TINY / "schema.json", revision=REVISION),
        facts.load_file(TINY / "facts.toml", REVISION),
        docs.load_file(TINY / "docs.toml"),
    )


@cache
def tiny_package() -> dict[str, str]:
    """Its package: every file by its path."""
    return tree.render_package([tiny_spec()], "tiny")
