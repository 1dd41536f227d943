"""A package made from the tiny schema beside this file: its output is small enough to read."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mcpgen import docs, facts, pipeline, render, schema
from mcpgen.spec import RevisionSpec

TINY = Path(__file__).parent / "tiny"
REVISION = "2030-01-01"


@cache
def tiny_spec() -> RevisionSpec:
    """Everything about the tiny schema."""
    return pipeline.revision_spec(
        schema.load_file(TINY / "schema.json", revision=REVISION),
        facts.load_file(TINY / "facts.toml", REVISION),
        docs.load_file(TINY / "docs.toml"),
    )


@cache
def tiny_package() -> dict[str, str]:
    """Its package: every file by its path."""
    return render.render_package([tiny_spec()], "tiny")
