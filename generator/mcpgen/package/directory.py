"""The directory of a package on disk: one run at a time, no links, no leftovers of dead runs.

A run replaces an old package by a new one with two renames: `PKG` becomes
`.PKG.mcpgen-XXXXXXXX.old`, then `.PKG.mcpgen-XXXXXXXX.new` becomes `PKG`. Runs on one directory
hold a lock, so its holder knows that folders of these names are of runs that died. If both are
there and `PKG` is not, the run died between its renames, and `.old` is the package.

The lock is a file beside the directory, where all runs find it, even runs in containers. It is
removed by the run that holds it; the system releases the lock of a run that dies.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path

from mcpgen.errors import OutputError
from mcpgen.package import manifest

LOCK_SECONDS = 60.0
"""Seconds that a run waits for another run on the same directory, which holds the lock briefly."""

_POLL_SECONDS = 0.02


@contextmanager
def hold_lock(target: Path) -> Generator[OSError | None]:
    """Lock a directory against other runs, and clean up after runs that died.

    Args:
        target: The directory, without links in its path.

    Yields:
        The reason why there is no lock, if the system refuses one. Then nothing may be written;
        reading is safe, since other runs are refused likewise.

    Raises:
        OutputError: Another run has held the lock for too long.
    """
    import filelock  # takes as long to import as a whole check

    path = target.with_name(f".{target.name}.mcpgen-lock")
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=LOCK_SECONDS, poll_interval=_POLL_SECONDS)
    except filelock.Timeout as error:
        raise OutputError(
            f"{target}: another run of mcpgen has held {path} for more than {LOCK_SECONDS:g} s"
        ) from error
    except OSError as error:
        yield error
        return
    try:
        clean_up(target)
        yield None
    finally:
        # Waiting runs notice that the file is gone, and begin anew. Windows removes it itself.
        with suppress(OSError):
            path.unlink()
        lock.release()


def temporary_folders(target: Path) -> tuple[Path, Path]:
    """Paths for a new package and the old one, beside the directory; neither exists."""
    import secrets  # only to write

    mark = secrets.token_hex(4)
    return _temporary(target, mark, "new"), _temporary(target, mark, "old")


def clean_up(target: Path) -> None:
    """Remove the temporary folders of dead runs; undo a run that died between its renames.

    A folder that cannot be removed stays. Both folders of a run stay if something else has replaced
    the package meanwhile: the old folder may hold files of the user.
    """
    import shutil  # as above

    for mark, parts in _leftover_folders(target).items():
        old = _temporary(target, mark, "old")
        if parts == {"new", "old"}:
            if os.path.lexists(target):
                continue
            old.rename(target)
        for part in parts:
            shutil.rmtree(_temporary(target, mark, part), ignore_errors=True)


def _temporary(target: Path, mark: str, part: str) -> Path:
    return target.with_name(f".{target.name}.mcpgen-{mark}.{part}")


def _leftover_folders(target: Path) -> dict[str, set[str]]:
    """The suffixes of the temporary folders beside the directory, by run."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.mcpgen-([0-9a-f]{{8}})\.(new|old)")
    folders: dict[str, set[str]] = {}
    with os.scandir(target.parent) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match is not None and entry.is_dir(follow_symlinks=False):
                folders.setdefault(match[1], set()).add(match[2])
    return folders


def read_manifest(target: Path) -> manifest.Manifest | None:
    """The manifest in a directory, or `None` if it has none.

    Raises:
        OutputError: The manifest, or a file that it names, is a link or lies behind one.
        ManifestError: The file cannot be read as a manifest.
    """
    refuse_links(target, [manifest.NAME])
    record = manifest.read(target)
    if record is not None:
        refuse_links(target, record.files)
    return record


def texts(target: Path) -> dict[str, str]:
    """The text of each file of a package on disk by path, without the manifest.

    Raises:
        OutputError: See `read_manifest`.
        ManifestError: Likewise.
    """
    record = read_manifest(target)
    paths = record.files if record is not None else ()
    return {path: (target / path).read_text(encoding="utf-8") for path in paths}


def refuse_links(target: Path, paths: Iterable[str]) -> None:
    """Refuse links at the paths of files that mcpgen writes, and of their folders.

    Args:
        target: The directory, which may be a link itself.
        paths: The files, relative to it.

    Raises:
        OutputError: There is a link; its target is not part of the package.
    """
    places = {place for path in paths for place in accumulate(path.split("/"), "{}/{}".format)}
    links = sorted(place for place in places if _is_link(target / place))
    if links:
        raise OutputError(
            f"{target}: expected files and directories, got a link: {links[0]};"
            " remove it: mcpgen follows no links inside a package"
        )


def _is_link(path: Path) -> bool:
    if sys.platform == "win32":
        tags = (stat.IO_REPARSE_TAG_SYMLINK, stat.IO_REPARSE_TAG_MOUNT_POINT)
        return os.path.lexists(path) and path.lstat().st_reparse_tag in tags
    return path.is_symlink()
