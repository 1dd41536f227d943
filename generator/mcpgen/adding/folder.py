"""Write a revision into a folder of revisions: its files and its row in the list, or nothing.

Both are made in a temporary folder beside the list, and renamed into place. A run that fails or is
interrupted undoes its renames; leftovers of a killed run are removed by the next run. Runs on one
folder wait for each other.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from mcpgen.errors import OutputError, UsageError
from mcpgen.package import directory as directories
from mcpgen.schema.revisions import LIST, RevisionEntry, read_revisions

_LIST_HEAD = """\
# Revisions of the Model Context Protocol, in addition to those of mcpgen, oldest first.
#
# name      the revision
# status    final, or draft while it may still change
# official  sha256 of the file that it was added from
# digest    digest of that file's structure (mcpgen.schema.digest)
"""
_ROW = re.compile(r'^\[\[revision\]\]\nname = "([^"]*)"\n', re.MULTILINE)


def refuse_present(folder: Path, name: str) -> None:
    """Refuse to add a revision that a folder has already.

    Raises:
        UsageError: The folder has the revision.
        RevisionsError: The list of revisions is malformed.
    """
    rows = read_revisions(folder / LIST) if (folder / LIST).is_file() else ()
    if (folder / name).exists() or name in {row.name for row in rows}:
        raise UsageError(f"{folder} has revision {name}; --force writes it anew")


def write(
    folder: Path, entry: RevisionEntry, files: Mapping[str, str], *, force: bool = False
) -> None:
    """Write a revision.

    Args:
        folder: The folder of revisions, which is made if missing.
        entry: The row for the list of revisions.
        files: The files of the revision's folder, by name.
        force: Overwrite an existing revision.

    Raises:
        UsageError: The revision exists already.
        OutputError: The folder cannot be written; it is unchanged then.
        RevisionsError: The list of revisions is malformed.
    """
    target = folder.resolve()
    is_new = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        try:
            with directories.hold_lock(target / LIST) as no_lock:
                if no_lock is not None:
                    raise no_lock
                if not force:
                    refuse_present(folder, entry.name)
                _write(target, entry, files)
        except BaseException:
            if is_new:
                target.rmdir()
            raise
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise OutputError(f"{folder}: nothing was written: {reason}") from error


def _write(target: Path, entry: RevisionEntry, files: Mapping[str, str]) -> None:
    fresh, _ = directories.temporary_folders(target / LIST)
    place, aside = target / entry.name, fresh / "replaced"
    try:
        (fresh / entry.name).mkdir(parents=True)
        for name, text in files.items():
            (fresh / entry.name / name).write_text(text, encoding="utf-8", newline="\n")
        (fresh / LIST).write_text(_with_row(target / LIST, entry), encoding="utf-8", newline="\n")
        read_revisions(fresh / LIST)
        _exchange(fresh, place, aside)
    finally:
        directories.clean_up(target / LIST)


def _exchange(fresh: Path, place: Path, aside: Path) -> None:
    """Rename the new folder and the new list into place; undo the first rename on failure."""
    try:
        if place.exists():
            place.rename(aside)
        (fresh / place.name).rename(place)
        (fresh / LIST).replace(place.parent / LIST)
    except BaseException:
        if not (fresh / place.name).exists():
            place.rename(fresh / place.name)
        if aside.exists():
            aside.rename(place)
        raise


def _with_row(path: Path, entry: RevisionEntry) -> str:
    """The text of a list with a further row, in order; the other rows stay unchanged."""
    text = path.read_text(encoding="utf-8") if path.is_file() else _LIST_HEAD
    starts = [match.start() for match in _ROW.finditer(text)]
    ends = [*starts[1:], len(text)]
    head = text[: starts[0]] if starts else text
    rows = {
        match[1]: text[match.start() : end].strip()
        for match, end in zip(_ROW.finditer(text), ends, strict=bool(starts))
    }
    rows[entry.name] = "\n".join(
        [
            "[[revision]]",
            f'name = "{entry.name}"',
            f'status = "{entry.status}"',
            f'official = "{entry.official}"',
            f'digest = "{entry.digest}"',
        ]
    )
    return "\n\n".join([head.strip(), *(rows[name] for name in sorted(rows))]) + "\n"
