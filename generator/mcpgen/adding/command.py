"""`mcpgen schema add`: the command and its report."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from mcpgen import paths
from mcpgen.adding import folder as folders
from mcpgen.adding.reviews import by_pages
from mcpgen.adding.revision import Addition, addition
from mcpgen.adding.work import work_of
from mcpgen.console import Console, count_of
from mcpgen.diff import report
from mcpgen.errors import UsageError, format_value, safe_text
from mcpgen.schema.revisions import LIST, Status

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NAMES = 8
"""Limit of the names in one line."""


@dataclass(frozen=True)
class Options:
    """The options of the command line.

    Attributes:
        schema: The schema file.
        revision: The name of the revision.
        draft: Whether the revision may still change.
        facts: A facts file with the facts that are known already.
        force: Whether to overwrite an existing revision.
    """

    schema: Path
    revision: str
    draft: bool
    facts: Path | None
    force: bool


def add(console: Console, options: Options) -> None:
    """Add a revision to the user's folder of revisions, or to `schema/` of a checkout.

    Raises:
        UsageError: The revision is no date or exists already, or no folder is named.
        InputError: The schema or the facts file is wrong.
        OutputError: The folder cannot be written.
    """
    _expect_date(options.revision)
    folder = _folder()
    if not options.force:
        folders.refuse_present(folder, options.revision)
        if paths.revision_dir(options.revision).is_dir():
            raise UsageError(f"mcpgen has revision {options.revision}; --force goes before it")
    is_new = folder != paths.schema_dir() and not (folder / LIST).is_file()
    with paths.own_schemas(None) if is_new else nullcontext():
        status: Status = "draft" if options.draft else "final"
        added = addition(options.schema, options.revision, status, options.facts)
    folders.write(folder, added.entry, added.files, force=options.force)
    console.record(_record(added, folder))
    for line in _lines(added, folder):
        console.summary(line)


def _expect_date(word: str) -> None:
    """Refuse the name of a revision that is no date: folders of packages are named after dates."""
    try:
        if _DATE.fullmatch(word) is None:
            raise ValueError
        date.fromisoformat(word)
    except ValueError:
        actual = format_value(word)
        raise UsageError(f"--revision: expected a date as YYYY-MM-DD, got {actual}") from None


def _folder() -> Path:
    own = paths.own_schema_dir()
    if own is None and not paths.is_checkout():
        raise UsageError(
            "expected --schemas DIR or the variable MCPGEN_SCHEMAS: this mcpgen is installed, and"
            " its own schemas are not to be changed"
        )
    return own or paths.schema_dir()


def _lines(added: Addition, folder: Path) -> Iterator[str]:
    """The report: the added files, and the remaining work."""
    name = added.entry.name
    place = paths.shown_path(folder / name)
    yield f"{place}: added, {added.entry.status}"
    yield f"nearest: {added.nearest.entry.name}: {added.nearest.why}"
    for note in added.notes:
        yield f"note: {safe_text(note, 400)}"
    yield (
        f"errata.toml: of the corrections of {added.base}, {len(added.errata)} still match and"
        f" {len(added.unmatched)} do not"
    )
    for erratum in added.unmatched:
        yield f"  does not match any more: {safe_text(erratum.pointer)}"
    guesses = [review for review in added.reviews if review.reason]
    carried = [review for review in added.reviews if not review.reason]
    yield f"facts.toml: {len(guesses)} {'guess' if len(guesses) == 1 else 'guesses'} to check"
    for review in guesses:
        value, reason = format_value(review.value), safe_text(review.reason)
        yield f"  {safe_text(review.pointer)} = {value}: {reason}"
        yield from (f"    {page}" for page in review.pages)
    yield f"facts.toml: {count_of(len(carried), 'fact')} as in {added.base} to check"
    for counts, pages in by_pages(carried):
        tables = ", ".join(f"{table} {count}" for table, count in counts.items())
        yield f"  {tables}" if pages else f"  {tables}, on the page of each method"
        yield from (f"    {page}" for page in pages)
    yield f"docs.toml: {_missing(added.undocumented)}"
    yield f"left to a person: {work_of(added).text()}"
    if added.diff is not None:
        yield f"changes: {report.headline(added.diff)}"
        yield f"next: mcpgen diff {added.diff.old} {added.diff.new}{_schemas_option(folder)}"


def _schemas_option(folder: Path) -> str:
    """The option that names a folder of revisions; empty if commands find it without."""
    named = os.environ.get(paths.SCHEMAS_VARIABLE)
    if folder == paths.schema_dir() or (named and Path(named) == folder):
        return ""
    return f" --schemas {shlex.quote(str(folder))}"


def _missing(names: tuple[str, ...]) -> str:
    if not names:
        return "every type and field is described"
    listed = ", ".join(safe_text(name) for name in names[:_NAMES])
    rest = len(names[_NAMES:])
    more = f" and {rest} more" if rest else ""
    return f"{len(names)} types and fields are not described: {listed}{more}"


def _record(added: Addition, folder: Path) -> dict[str, object]:
    """The result as a JSON object."""
    return {
        "revision": added.entry.name,
        "folder": str(folder / added.entry.name),
        "status": added.entry.status,
        "official": added.entry.official,
        "digest": added.entry.digest,
        "base": added.base,
        "nearest": added.nearest.entry.name,
        "review": [asdict(review) for review in added.reviews],
        "errata": [erratum.pointer for erratum in added.errata],
        "unmatched_errata": [erratum.pointer for erratum in added.unmatched],
        "undocumented": added.undocumented,
        "work": asdict(work_of(added)),
        "notes": added.notes,
        "changes": dict(added.diff.counts) if added.diff is not None else None,
    }
