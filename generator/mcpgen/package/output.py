"""Writing a package to disk: all of it, or nothing.

A new tree is made beside the directory and replaces it by two renames, so a failure at any point
leaves the directory unchanged. Files that the user added are copied; files that only an earlier run
wrote are removed. Runs on one directory wait for each other.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mcpgen import paths
from mcpgen.console import count_of
from mcpgen.errors import OutputError, format_value
from mcpgen.package import directory as directories
from mcpgen.package import manifest

_SHOWN = 5

Recorded: TypeAlias = Callable[[Path], Mapping[str, str]]
"""Reads the fingerprints of the files that were written to a directory, by path."""


@dataclass(frozen=True)
class Written:
    """The result of writing a package, as paths within it.

    Attributes:
        created: New files.
        updated: Files whose text changed.
        removed: Files of an earlier run that this one does not write.
        unchanged: The number of files that did not change.
    """

    created: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    @property
    def changed(self) -> bool:
        """Whether any file on disk changed."""
        return bool(self.created or self.updated or self.removed)

    @property
    def summary(self) -> str:
        """The numbers of files, in words."""
        if not self.changed:
            return f"unchanged, {count_of(self.unchanged, 'file')}"
        counts = {
            "created": len(self.created),
            "updated": len(self.updated),
            "removed": len(self.removed),
            "unchanged": self.unchanged,
        }
        return ", ".join(
            f"{count_of(count, 'file')} {what}" for what, count in counts.items() if count
        )


def write(
    directory: Path,
    files: Mapping[str, str],
    *,
    force: bool = False,
    record: str = manifest.NAME,
    recorded: Recorded | None = None,
) -> Written:
    """Write a package, or other rendered files with a record, to a directory.

    Args:
        directory: The directory: missing, empty, or a package that mcpgen wrote before.
        files: Text by path within the package; the manifest is one of them.
        force: Overwrite files that were edited by hand.
        record: The path of the manifest.
        recorded: Reads the fingerprints of the files that were last written to a directory; by
            default from the manifest of a package.

    Raises:
        OutputError: The directory is something else, holds edited files, or cannot be written.
    """
    target = directory.resolve()
    _refuse_outside(target, files)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with directories.hold_lock(target) as no_lock:
            old = (recorded or _recorded_fingerprints)(target)
            directories.refuse_links(target, files)
            if not force:
                _refuse_edited(target, old, files, record)
            plan = _plan(target, old, files)
            if plan.changed:
                if no_lock is not None:
                    raise no_lock
                _replace(target, old, files)
    except OSError as error:
        text = error.strerror or str(error)
        raise OutputError(f"{directory}: nothing was written: {text}") from error
    return plan


def expect_own(directory: Path) -> None:
    """Check that mcpgen may write a package to a directory.

    Raises:
        OutputError: The directory holds something that mcpgen did not write.
    """
    target = directory.resolve()
    with directories.hold_lock(target):
        _recorded_fingerprints(target)


def _recorded_fingerprints(target: Path) -> Mapping[str, str]:
    """The fingerprints of the files that mcpgen last wrote to a directory; none if it is new."""
    if not target.exists():
        return {}
    if not target.is_dir():
        raise OutputError(f"{target}: expected a directory, got a file")
    record = directories.read_manifest(target)
    if record is not None:
        return record.files
    if any(target.iterdir()):
        raise OutputError(
            f"{target}: expected an empty directory or a package of mcpgen's, got one without"
            f" {manifest.NAME}; it was not touched"
        )
    return {}


def edited_files(target: Path, record: Mapping[str, str]) -> list[str]:
    """Recorded files whose text on disk differs from the written text."""
    return [
        path
        for path, digest in record.items()
        if (target / path).is_file() and manifest.file_fingerprint(target / path) != digest
    ]


def _refuse_outside(target: Path, files: Mapping[str, str]) -> None:
    for path in files:
        if not manifest.is_file_path(path):
            raise OutputError(
                f"{target}: expected {paths.FILE_PATH} to write, got {format_value(path)}"
            )


def _refuse_edited(
    target: Path, old: Mapping[str, str], files: Mapping[str, str], record: str
) -> None:
    """Refuse to overwrite files of the user: edited files, and own files at the same paths."""
    in_the_way = [path for path in files if path not in old and path != record]
    suspects = [
        *edited_files(target, old),
        *(path for path in in_the_way if (target / path).is_file()),
    ]
    lost = [path for path in suspects if _differs(target / path, files.get(path))]
    if lost:
        named = ", ".join(sorted(lost)[:_SHOWN])
        rest = len(lost[_SHOWN:])
        more = f" and {rest} more" if rest else ""
        raise OutputError(
            f"{target}: edited by hand: {named}{more}; keep the changes with mcpgen patch,"
            " move them to files of your own, or overwrite them with --force"
        )


def _differs(path: Path, text: str | None) -> bool:
    return text is None or manifest.file_fingerprint(path) != manifest.fingerprint(text)


def _plan(target: Path, old: Mapping[str, str], files: Mapping[str, str]) -> Written:
    present = {path for path in files if (target / path).is_file()}
    updated = sorted(path for path in present if _differs(target / path, files[path]))
    return Written(
        created=tuple(sorted(files.keys() - present)),
        updated=tuple(updated),
        removed=tuple(sorted(path for path in old.keys() - files if (target / path).is_file())),
        unchanged=len(present) - len(updated),
    )


def _replace(target: Path, old: Mapping[str, str], files: Mapping[str, str]) -> None:
    import shutil  # takes long to import, and only writing needs it

    fresh, aside = directories.temporary_folders(target)
    try:
        # Written before the user's files are copied, so that no link can redirect a write.
        for path, text in files.items():
            _write_file(fresh / path, text)
        if target.exists():
            shutil.copymode(target, fresh)
            _keep_own(target, fresh, {*old, *files})
        _swap(target, fresh, aside)
    finally:
        directories.clean_up(target)


def _keep_own(source: Path, fresh: Path, written: set[str]) -> None:
    """Copy the files of a directory that mcpgen did not write, without byte code."""
    import shutil  # as above

    for folder, names, files in os.walk(source):
        here = Path(folder).relative_to(source)
        links = [name for name in names if (source / here / name).is_symlink()]
        names[:] = [name for name in names if name != "__pycache__" and name not in links]
        for name in [*files, *links]:
            path = here / name
            if path.as_posix() not in written:
                if os.path.lexists(fresh / path):
                    raise FileExistsError(errno.EEXIST, f"{os.strerror(errno.EEXIST)}: {path}")
                (fresh / here).mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / path, fresh / path, follow_symlinks=False)


def _write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _swap(target: Path, fresh: Path, aside: Path) -> None:
    """Replace `target` by `fresh`; an old `target` is moved to `aside`.

    On failure, `clean_up` moves it back.
    """
    if target.exists():
        target.rename(aside)
    fresh.rename(target)
