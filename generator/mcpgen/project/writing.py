"""Write a new project: all files or none.

All files are written to a folder beside the project's directory, which is then renamed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from mcpgen.errors import OutputError
from mcpgen.package import directory as directories
from mcpgen.package import manifest


def expect_free(directory: Path) -> None:
    """Check that a directory for a new project is missing or empty.

    Raises:
        OutputError: The directory has content, or is a file.
    """
    if os.path.lexists(directory) and not directory.is_dir():
        raise OutputError(f"{directory}: expected a new or an empty directory, got a file")
    try:
        taken = directory.is_dir() and any(directory.iterdir())
    except OSError as error:
        raise OutputError(f"{directory}: cannot be read: {error.strerror}") from error
    if taken:
        raise OutputError(
            f"{directory}: expected a new or an empty directory, got one with files in it; it was"
            " not touched"
        )


def write_project(directory: Path, files: Mapping[str, str]) -> None:
    """Write a new project.

    Args:
        directory: The directory, missing or empty.
        files: Text by path within the project.

    Raises:
        OutputError: The directory is not free, or cannot be written.
    """
    target = directory.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with directories.hold_lock(target) as no_lock:
            expect_free(target)
            if no_lock is not None:
                raise no_lock
            fresh, _ = directories.temporary_folders(target)
            try:
                for path, text in files.items():
                    place = fresh / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text, encoding="utf-8", newline="\n")
                if target.is_dir():
                    target.rmdir()
                fresh.rename(target)
            finally:
                directories.clean_up(target)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise OutputError(f"{directory}: nothing was written: {reason}") from error


def differing_files(directory: Path, files: Mapping[str, str]) -> list[str]:
    """The files that are missing in a directory, or whose text differs.

    Raises:
        OutputError: A file is a link.
    """
    directories.refuse_links(directory, files)
    return [
        path
        for path, text in files.items()
        if not (directory / path).is_file()
        or manifest.file_fingerprint(directory / path) != manifest.fingerprint(text)
    ]


def write_files(directory: Path, files: Mapping[str, str]) -> bool:
    """Write changed files into a directory, each by a rename; return whether any changed.

    Raises:
        OutputError: A file is a link, or cannot be written.
    """
    target = directory.resolve()
    changed = differing_files(target, files)
    if not changed:
        return False
    try:
        with directories.hold_lock(target) as no_lock:
            if no_lock is not None:
                raise no_lock
            fresh, _ = directories.temporary_folders(target)
            try:
                fresh.mkdir()
                target.mkdir(exist_ok=True)
                for path in changed:
                    (fresh / path).write_text(files[path], encoding="utf-8", newline="\n")
                for path in changed:
                    (fresh / path).replace(target / path)
            finally:
                directories.clean_up(target)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise OutputError(f"{directory}: not all was written: {reason}") from error
    return True
