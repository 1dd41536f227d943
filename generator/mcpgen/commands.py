"""What the commands do, and what they say."""

from __future__ import annotations

from pathlib import Path

from mcpgen import check as checking
from mcpgen import facts, methods, normalize, output, pipeline, schema, schema_facts
from mcpgen.console import Console
from mcpgen.errors import UsageError
from mcpgen.methods import Methods


def requested(
    names: tuple[str, ...],
    directory: Path,
    schema_file: Path | None,
    facts_file: Path | None,
    *,
    errata: bool,
    strict: bool = False,
) -> pipeline.BuildRequest:
    """What to build, from the options of the command line.

    Raises:
        UsageError: The options do not go together, or name something unknown.
    """
    package = pipeline.package_name(directory)
    named = _named(schema_file, facts_file)
    if not names and named is None:
        raise UsageError("expected --revision R (a date, latest or all) or --schema FILE, got none")
    sources = pipeline.named_sources(names)
    if named is not None:
        if any(source.revision == named.revision for source in sources):
            raise UsageError(f"revision {named.revision} comes twice: by --revision and --schema")
        sources = tuple(sorted((*sources, named), key=lambda source: source.revision))
    if Path.cwd().is_relative_to(directory.resolve()):
        raise UsageError(f"-o {directory} holds the current directory: run mcpgen from outside it")
    return pipeline.BuildRequest(package, sources, errata, strict)


def _named(schema_file: Path | None, facts_file: Path | None) -> pipeline.Source | None:
    if schema_file is not None:
        return pipeline.file_source(schema_file, facts_file)
    if facts_file is not None:
        raise UsageError("expected --schema FILE with --facts, got --facts alone")
    return None


def generate(
    console: Console, request: pipeline.BuildRequest, directory: Path, *, force: bool
) -> None:
    """Build a package, write it, and say what was written and what to do next.

    Raises:
        McpgenError: An input is wrong, or the directory cannot be written.
    """
    output.expect_own(directory)
    names = ", ".join(source.revision for source in request.sources)
    for source in request.sources:
        if source.origin == "file":
            _say_what_it_is_taken_as(console, source, errata=request.errata)
    with console.progress(f"generating {request.package} ({names})"):
        notes: list[str] = []
        files = pipeline.build(request, notes.append)
    for note in notes:
        console.summary(note)
    written = output.write(directory, files, force=force)
    console.summary(f"{directory}: {_what(written)} ({names})")
    if written.changed:
        console.summary(f"next: {_next(request.package, directory)}")


def _say_what_it_is_taken_as(console: Console, source: pipeline.Source, *, errata: bool) -> None:
    console.summary(f"{source.schema}: taken as revision {source.revision}")
    near = schema.nearest_to(source.schema)
    nearest = near.entry.name == source.base
    why = f"the nearest: {near.why}" if nearest else "on which the facts file is based"
    changed = "" if source.facts_of else f", changed by {source.facts}"
    console.summary(f"facts: those of {source.base}, {why}{changed}")
    if errata:
        row, applied = schema.corrections_for(source.schema)
        count = _count(len(applied), "correction")
        console.summary(f"{source.schema}: {count} of {row.name} applied")


def _what(written: output.Written) -> str:
    if not written.changed:
        return f"unchanged, {_count(written.unchanged, 'file')}"
    counts = {
        "created": len(written.created),
        "updated": len(written.updated),
        "removed": len(written.removed),
        "unchanged": written.unchanged,
    }
    return ", ".join(f"{_count(count, 'file')} {what}" for what, count in counts.items() if count)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _next(package: str, directory: Path) -> str:
    parent = directory.resolve().parent
    command = f"python -m {package} --help"
    return command if parent == Path.cwd() else f"cd {directory.parent} && {command}"


def check(
    console: Console, directory: Path, schema_file: Path | None, facts_file: Path | None
) -> bool:
    """Whether a package is what mcpgen would write; says so, with reasons and a diff if not.

    Raises:
        McpgenError: The directory is not a package of mcpgen's, or an input is wrong.
    """
    report = checking.check(directory, _named(schema_file, facts_file))
    for revision, what in report.schema_changed.items():
        console.summary(f"the schema changed: {revision}: {what}")
    if report.generator_changed:
        console.summary(f"the generator changed: {report.generator_changed}")
    for path in report.edited:
        console.summary(f"edited by hand: {path}")
    for path in report.missing:
        console.summary(f"missing: {path}")
    if report.current:
        console.summary(f"{directory}: up to date")
        return True
    console.diff(report.diff)
    count = len(report.differing)
    console.summary(f"{directory}: {_count(count, 'file')} {'differs' if count == 1 else 'differ'}")
    return False


_HEADS = ("revision", "status", "lifecycle", "transports", "client sends", "server sends", "errata")


def list_revisions(console: Console) -> None:
    """List the revisions and what each has."""
    console.table(_HEADS, [_row(entry) for entry in schema.revisions()])


def _row(entry: schema.RevisionEntry) -> tuple[str, ...]:
    loaded, known = schema.load(entry.name), facts.load(entry.name)
    found = methods.derive(normalize.normalize(loaded, known), known)
    return (
        entry.name,
        entry.status,
        "handshake" if found.handshake else "per request",
        _transports(known.transports),
        _counts(found, "client"),
        _counts(found, "server"),
        str(len(loaded.errata)),
    )


def _transports(found: facts.Transports) -> str:
    names = {
        "stdio": found.stdio,
        "HTTP+SSE": found.http_sse,
        f"HTTP ({found.streamable_http})": found.streamable_http is not None,
    }
    return ", ".join(name for name, has in names.items() if has)


def _counts(found: Methods, sender: methods.Role) -> str:
    requests = len(found.of(sender, "request"))
    notifications = len(found.of(sender, "notification"))
    return f"{_count(requests, 'request')}, {_count(notifications, 'notification')}"


def facts_text(console: Console, schema_file: Path, facts_file: Path | None) -> None:
    """Print the facts that are used for a schema, as a facts file.

    Raises:
        McpgenError: One of the files is wrong.
    """
    source = pipeline.file_source(schema_file, facts_file)
    loaded = pipeline.load(source, errata=True)
    console.text(schema_facts.text_for(loaded, source.base, facts_file))


def verify(console: Console, checkout: Path) -> bool:
    """Whether our schemas have the structure of the official ones; names every difference.

    Raises:
        UsageError: The checkout lacks a file.
    """
    same = True
    for entry in schema.revisions():
        verdict = schema.verify(entry, checkout)
        for pointer, text in verdict.differences:
            console.text(f"{verdict.source}#{pointer}: {text}")
        count = len(verdict.differences)
        same = same and not count
        said = _count(count, "difference") if count else "same structure"
        other = "" if verdict.same_file else ", another file than the one on record"
        console.summary(f"{entry.name}: {said}{other}")
    return same


def errata(console: Console, typescript_file: Path, json_file: Path) -> None:
    """Print what corrects a schema in JSON to what its TypeScript says, as an errata file.

    Raises:
        SchemaError: One of the files cannot be read.
    """
    found = schema.disagreements(typescript_file, json_file)
    console.text(schema.errata_text(found) or "# the JSON says what the TypeScript says")
