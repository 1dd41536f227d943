"""`mcpgen patch`: write the hand edits of a package to a patch beside it.

Edits can be distinguished from other differences only if the package is otherwise what mcpgen
writes. So any other change is an error, to be resolved first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mcpgen.console import Console, count_of
from mcpgen.errors import McpgenError, OutputError, UsageError
from mcpgen.package import commands, manifest, output, package_cache, patches, rendering
from mcpgen.package import directory as directories
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.commands import PackageOptions
from mcpgen.package.patches import Patch


def patch(console: Console, directory: Path, file: Path | None, *, trusted: bool) -> None:
    """Write the edits of a package to a patch, which every later generation applies.

    Args:
        console: The output, which lists the patched files.
        directory: The package.
        file: The path of the patch if the package has none yet; by default `NAME.patch` beside the
            package.
        trusted: Whether templates of the user's own may do what code may do.

    Raises:
        McpgenError: The directory is not a package of mcpgen's, there are changes besides edits, or
            a file cannot be written. Nothing is written then.
    """
    record = directories.read_manifest(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a package of mcpgen's, got no {manifest.NAME}")
    recorded = directory / record.patch.file if record.patch.file else None
    is_named = file is not None and recorded is not None and file.resolve() == recorded.resolve()
    request = commands.update_request(
        PackageOptions(keeps_old_modules=True, patch=file if is_named else None, trusted=trusted),
        directory,
    )
    place = _place(request.patch, directory, file)
    if not output.edited_files(directory, record.files):
        _expect_whole(directory, record)
        _say(console, directory, _move(request, directory))
        return
    written = package_cache.build_package(replace(request, patch=None), _ignore)
    _expect_only_edits(request, directory, record, written)
    text = patches.difference(written, _edited_files(directory, record.files, written))
    if len(text.encode()) > patches.MAX_BYTES:
        raise UsageError(
            f"{directory}: expected edits of {patches.MAX_BYTES} bytes at most, got more: put what"
            " is large into a module of your own"
        )
    kept = Patch.of(place, directory, text) if text else None
    _write(
        directory, place, kept, package_cache.build_package(replace(request, patch=kept), _ignore)
    )
    _say(console, directory, kept)


def patch_rendered(console: Console, directory: Path, file: Path | None, *, trusted: bool) -> None:
    """Write the edits of a rendered directory to a patch, which every later rendering applies.

    Args:
        console: The output, which lists the patched files.
        directory: The directory.
        file: The path of the patch if there is none yet; by default `NAME.patch` beside the
            directory.
        trusted: Whether code of the folder of templates may run.

    Raises:
        McpgenError: It was not rendered, there are changes besides edits, or a file cannot be
            written. Nothing is written then.
    """
    request, record = rendering.recorded_request(directory, trusted=trusted)
    place = _place(request.patch, directory, file)
    now = rendering.build(request)
    for path in sorted({*now, *record.files} - {rendering.NAME}):
        same = path in now and manifest.fingerprint(now[path]) == record.files.get(path)
        if not same or not (directory / path).is_file():
            raise UsageError(
                f"{directory}: expected a directory that differs by edits alone, but {path} would"
                " be written otherwise; undo that, run mcpgen patch, then update"
            )
    written = rendering.build(replace(request, patch=None))
    text = patches.difference(written, _edited_files(directory, record.files, written))
    kept = Patch.of(place, directory, text) if text else None
    files = rendering.build(replace(request, patch=kept))
    before = place.read_text(encoding="utf-8") if place.is_file() else None
    try:
        _put(place, text or None)
        rendering.put(directory, files, force=True)
    except McpgenError:
        _put(place, before)
        raise
    _say(console, directory, kept)


def _move(request: BuildRequest, directory: Path) -> Patch | None:
    """The patch of a request, written anew if it names modules of revisions that are gone."""
    patch = request.patch
    if patch is None:
        return None
    written = package_cache.build_package(replace(request, patch=None), _ignore)
    moves = patches.moved_paths(patch, written)
    if None in moves.values() or all(path == now for path, now in moves.items()):
        return patch  # edits of a file that is left out would be lost
    edited = patches.apply_patch(patch, written, _ignore)
    text = patches.difference(written, {path: edited[path] for path in written})
    kept = Patch.of(patch.path, directory, text) if text else None
    files = package_cache.build_package(replace(request, patch=kept), _ignore)
    _write(directory, patch.path, kept, files)
    return kept


def _ignore(note: str) -> None:
    """Drop a note, which was shown when the package was generated."""


def _place(applied: Patch | None, directory: Path, file: Path | None) -> Path:
    """The path of the patch, which may not exist yet."""
    if applied is None:
        path = file or directory.with_name(directory.resolve().name + patches.SUFFIX)
        if path.exists():
            raise UsageError(
                f"{path}: expected no patch that the package is made without; mcpgen update"
                f" --force --patch {path} applies it, in place of the edits"
            )
        if path.resolve().is_relative_to(directory.resolve()):
            raise UsageError(f"{path}: expected a file outside of the package")
        return path
    present = applied.path
    if file is not None and file.resolve() != present.resolve():
        raise UsageError(
            f"{directory}: expected no other patch than {present}, which it has, got {file}"
        )
    return present


def _expect_whole(directory: Path, record: manifest.Manifest) -> None:
    """Refuse a package that lacks files."""
    for path in record.files:
        if not (directory / path).is_file():
            raise UsageError(
                f"{directory}: expected {path}, which is not there: mcpgen update {directory}"
                " writes it anew; fewer parts or features leave it out"
            )


def _expect_only_edits(
    request: BuildRequest, directory: Path, record: manifest.Manifest, written: dict[str, str]
) -> None:
    """Refuse a package that differs from mcpgen's output by more than edits."""
    _expect_whole(directory, record)
    if request.patch is not None:
        written = package_cache.build_package(request, _ignore)
    for path in sorted({*written, *record.files} - {manifest.NAME}):
        now = manifest.fingerprint(written[path]) if path in written else ""
        if now != record.files.get(path):
            raise UsageError(
                f"{directory}: expected a package that differs by edits alone, but {path} would be"
                " written otherwise: mcpgen, a schema, a template or the patch changed since; undo"
                " that, run mcpgen patch, then update"
            )


def _edited_files(
    directory: Path, recorded: Iterable[str], written: Mapping[str, str]
) -> dict[str, str]:
    """The files whose text differs from what mcpgen writes without a patch."""
    edited: dict[str, str] = {}
    for path in recorded:
        place = directory / path
        if manifest.file_fingerprint(place) == manifest.fingerprint(written[path]):
            continue
        try:
            edited[path] = place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise OutputError(f"{place}: expected text in UTF-8, got other bytes") from None
    return edited


def _write(directory: Path, place: Path, kept: Patch | None, files: dict[str, str]) -> None:
    """Write the patch and the package, or neither."""
    before = place.read_text(encoding="utf-8") if place.is_file() else None
    try:
        _put(place, kept.text if kept is not None else None)
        output.write(directory, files, force=True)
    except McpgenError:
        _put(place, before)
        raise


def _put(path: Path, text: str | None) -> None:
    """Write a file by one rename; remove the file if the text is `None`."""
    part = path.with_name(f".{path.name}.part")
    try:
        if text is None:
            path.unlink(missing_ok=True)
            return
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: nothing was written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _say(console: Console, directory: Path, kept: Patch | None) -> None:
    files = kept.files() if kept is not None else ()
    hunks = {each.path: len(each) for each in files}
    console.record(
        {
            "directory": str(directory),
            "file": str(kept.path) if kept is not None else None,
            "hunks": hunks,
        }
    )
    if kept is None:
        console.summary(f"{directory}: no edits")
        return
    for path, count in hunks.items():
        console.summary(f"{path}: {count_of(count, 'hunk')}")
    console.summary(f"{kept.path}: {count_of(len(hunks), 'file')}; commit it with the package")
