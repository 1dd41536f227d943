"""What a package was made from, read from its manifest: the sources of its revisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcpgen import pipeline
from mcpgen.errors import UsageError, safe_text
from mcpgen.manifest import Manifest, Origin
from mcpgen.pipeline import Source


def sources(directory: Path, record: Manifest, named: Sequence[Source] = ()) -> tuple[Source, ...]:
    """The sources of a package, oldest first.

    Args:
        directory: The package.
        record: Its manifest.
        named: Schema files that the user named; they take the place of those in the manifest.

    Raises:
        UsageError: A schema file is not where the manifest says, or is of another revision; or the
            package has no revision of that name.
        SchemaError: A schema file cannot be read.
    """
    by_name = {source.revision: source for source in named}
    for name in by_name:
        if name not in record.revisions:
            has = ", ".join(record.revisions)
            raise UsageError(f"expected a schema file of {has}, got one of {name}")
    return tuple(
        by_name[name] if name in by_name else _source(directory, name, origin)
        for name, origin in record.revisions.items()
    )


def _source(directory: Path, name: str, origin: Origin) -> Source:
    if origin.origin == "mcpgen":
        return pipeline.known_source(name)
    path = directory / origin.schema
    facts = directory / origin.facts if origin.facts else None
    for file in (path, facts):
        if file is not None and not file.is_file():
            shown = safe_text(str(file)) if origin.schema else "a schema file"
            raise UsageError(
                f"revision {name} was made from {shown}, which is not there: name it with"
                " --schema FILE"
            )
    source = pipeline.file_source(path, facts)
    if source.revision != name:
        raise UsageError(
            f"{safe_text(str(path))}: expected the schema of revision {name}, got {source.revision}"
        )
    return source.recorded_in(directory)
