"""Hand edits of a package as a patch: a unified diff that lies beside it.

A hunk is located by its lines, not by its line numbers: its context and the lines that it removes
must occur in a new text exactly once. If the context changed, fewer lines of it have to match, at
least one before and one after. A hunk that matches nowhere, or at several places, is a conflict:
nothing is written, and both sides are shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from mcpgen import paths
from mcpgen.errors import PatchError, UsageError, safe_text
from mcpgen.input_files import read_text
from mcpgen.package import manifest
from mcpgen.paths import relative_path

SUFFIX = ".patch"
"""The end of the file's name, behind the name of the package."""

MAX_BYTES = 1 << 20
"""Size of the largest patch, in bytes."""

MAX_HUNKS = 2_000
"""Limit of the hunks of a patch, each of which costs a search."""

MAX_LINES = 100_000
"""Limit of the lines of all hunks of a patch, context among them."""

_CONTEXTS = (3, 6, 12, 25, 50)
"""Numbers of context lines to try until each hunk of a file is unique in it."""

_SHOWN = 40
"""Limit of the lines of each side of a conflict that are shown."""

_SHOWN_CONFLICTS = 10
"""Limit of the conflicts that are shown; the rest is counted."""

_SEARCHED = 200
"""Limit of the lines of a hunk by which the place of a conflict is found."""

_TRIMS = 64
"""Limit of the numbers of context lines that are left out one by one; then each doubles."""


@dataclass(frozen=True)
class Patch:
    """The edits of a package.

    Attributes:
        path: The file.
        recorded: The path as the manifest records it: relative to the package's directory.
        digest: SHA-256 of its text.
        text: Its content when it was read.
    """

    path: Path
    recorded: str
    digest: str
    text: str

    @classmethod
    def of(cls, path: Path, directory: Path, text: str) -> Patch:
        """The patch of a package in a directory, with a text."""
        recorded = relative_path(path.resolve(), directory.resolve())
        return cls(path, recorded, manifest.fingerprint(text), text)

    @property
    def source(self) -> str:
        """The file, as errors name it."""
        return paths.shown_path(self.path)

    def files(self) -> Sequence[PatchedFile]:
        """The patched files, in order.

        Raises:
            PatchError: The text is no unified diff, or one that adds, removes or renames files.
        """
        try:
            patched = PatchSet.from_string(self.text)
        except UnidiffParseError as error:
            raise PatchError(self.source, "", "a unified diff", safe_text(str(error))) from error
        lines = sum(len(hunk) for each in patched for hunk in each)
        if lines > MAX_LINES:
            raise PatchError(self.source, "", f"hunks of {MAX_LINES} lines at most", f"{lines}")
        if not patched and self.text.strip():
            raise PatchError(self.source, "", "a unified diff", "another text")
        if sum(map(len, patched)) > MAX_HUNKS:
            raise PatchError(self.source, "", f"at most {MAX_HUNKS} hunks", "more")
        for each in patched:
            if "/dev/null" in (each.source_file, each.target_file) or each.is_rename:
                raise PatchError(
                    self.source,
                    "",
                    "changes of files alone",
                    f"another one of {safe_text(each.path)}",
                )
        return patched


def read(path: Path, directory: Path) -> Patch:
    """The patch in a file.

    Args:
        path: The file.
        directory: The package.

    Raises:
        UsageError: The file is not there.
        PatchError: It is too large, or no text.
    """
    if not path.is_file():
        raise UsageError(f"{path}: expected a patch, got no file")
    return Patch.of(path, directory, read_text(path, PatchError, "a unified diff", MAX_BYTES))


def recorded_path(directory: Path, recorded: str) -> Path:
    """Resolve the recorded path of the patch of a package; relative to here if below.

    Raises:
        UsageError: There is no file.
    """
    place = paths.recorded_place(directory, recorded)
    if not place.is_file():
        raise UsageError(
            f"{directory}: was made with the patch {safe_text(str(place))}, which is not there:"
            " name it with --patch FILE"
        )
    return place


def difference(written: Mapping[str, str], edited: Mapping[str, str]) -> str:
    """The edits, as a patch.

    Args:
        written: The files that mcpgen writes.
        edited: The edited files.
    """
    return "".join(
        _file_difference(path, written[path], edited[path])
        for path in sorted(edited)
        if written[path] != edited[path]
    )


def _file_difference(path: str, before: str, after: str) -> str:
    old, new = _lines(before), _lines(after)
    text = ""
    for context in (*_CONTEXTS, len(old)):
        rows = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=context)
        text = "".join(_terminate_line(row) for row in rows)
        hunks = PatchSet.from_string(text)[0]
        if all(len(_places(_sides(hunk)[0], before)) == 1 for hunk in hunks):
            break
    return text


def _lines(text: str) -> list[str]:
    """The lines of a text, split at line feeds only, which are kept."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _terminate_line(row: str) -> str:
    return row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"


def apply_patch(
    patch: Patch, files: Mapping[str, str], report: Callable[[str], None]
) -> dict[str, str]:
    """Apply the edits to the files of a package.

    The edits of a module of a removed revision go to the same module of the next newer revision.

    Args:
        patch: The edits.
        files: The files that mcpgen writes, without the manifest.
        report: Called with each note about edits that were moved or dropped.

    Raises:
        PatchError: The patch is malformed, or has conflicts.
    """
    result = dict(files)
    conflicts: list[str] = []
    count = 0
    for patched in patch.files():
        name = safe_text(patched.path)
        path = _path_now(patched.path, files)
        if path is None:
            report(f"{patch.source}: {name} is not in the package: its edits have no effect")
            continue
        if path != patched.path:
            report(
                f"{patch.source}: the edits of {name} go to {path}; mcpgen patch writes that down"
            )
        edits: list[_Edit] = []
        for hunk in patched:
            edit = _edit(hunk, result[path])
            if isinstance(edit, str):
                count += 1
                if count <= _SHOWN_CONFLICTS:
                    conflicts.append(_conflict(patch, path, hunk, edit, result[path]))
            else:
                edits.append(edit)
        result[path] = _apply_edits(edits, result[path])
    if rest := count - len(conflicts):
        conflicts.append(f"... {rest} more conflicts")
    if conflicts:
        raise PatchError(
            patch.source,
            "",
            "hunks that each fit one place",
            f"{count} in conflict with what mcpgen writes now; edit the patch, or remove"
            " the hunk, generate, edit anew and run mcpgen patch",
            "\n".join(conflicts),
        )
    return result


def moved_paths(patch: Patch, files: Mapping[str, str]) -> dict[str, str | None]:
    """The file that the edits of each patched path go to; `None` if there is none.

    Raises:
        PatchError: The patch is malformed.
    """
    return {each.path: _path_now(each.path, files) for each in patch.files()}


def _path_now(path: str, files: Mapping[str, str]) -> str | None:
    """The file that the edits of a path go to; `None` if there is none."""
    if path in files:
        return path
    folder, _, rest = path.partition("/")
    if not _is_of_revision(folder):
        return None
    now = sorted(name.partition("/")[0] for name in files if name.partition("/")[2] == rest)
    revisions = [name for name in now if _is_of_revision(name)]
    if not revisions:
        return None
    return f"{next((name for name in revisions if name > folder), revisions[-1])}/{rest}"


def _is_of_revision(folder: str) -> bool:
    """Whether a folder of a package belongs to a revision."""
    return folder.startswith("r") and not (paths.templates_dir() / "package" / folder).is_dir()


@dataclass(frozen=True, order=True)
class _Edit:
    """A span of a text, by character offsets, and its replacement."""

    start: int
    end: int
    text: str


def _apply_edits(edits: Sequence[_Edit], text: str) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edit(hunk: Hunk, text: str) -> _Edit | str:
    """The edit of a hunk in a text, or the reason of a conflict."""
    old, new = _sides(hunk)
    trims = [*_trims(hunk)]
    before, after = trims[-1]
    if not _places(old[before : len(old) - after], text):
        return "fits nowhere"
    for before, after in trims:
        part, replacement = old[before : len(old) - after], new[before : len(new) - after]
        places = _places(part, text)
        if len(places) == 1:
            start = places[0]
            return _Edit(start, start + len("".join(part)), "".join(replacement))
        if places:
            return "fits several places"
    return "fits nowhere"


def _sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """The old and the new lines of a hunk, without the last line end if a text has none."""
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in hunk:
        if line.line_type == "\\":
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        last = {"-": (old,), "+": (new,)}.get(line.line_type, (old, new))
        for side in last:
            side.append(line.value)
    return old, new


def _trims(hunk: Hunk) -> Iterator[tuple[int, int]]:
    """The numbers of context lines to leave out before and after, from none on."""
    kinds = [line.line_type for line in hunk if line.line_type != "\\"]
    changed = [number for number, kind in enumerate(kinds) if kind in "+-"]
    before, after = changed[0], len(kinds) - 1 - changed[-1]
    most = max(before, after, 1) - 1
    less = 0
    while less < most:
        yield min(less, max(before - 1, 0)), min(less, max(after - 1, 0))
        less += 1 if less < _TRIMS else less
    yield max(before - 1, 0), max(after - 1, 0)


def _places(part: Sequence[str], text: str) -> list[int]:
    """The offsets at which whole lines occur in a text, at most the first two."""
    joined = "".join(part)
    places: list[int] = []
    start = text.find(joined)
    while start >= 0 and len(places) < 2:
        if start == 0 or text[start - 1] == "\n":
            places.append(start)
        start = text.find(joined, start + 1)
    return places


def _conflict(patch: Patch, path: str, hunk: Hunk, why: str, text: str) -> str:
    """Both sides of a conflict, as lines."""
    old, new = _sides(hunk)
    now = _lines(text)
    searched = old[:_SEARCHED]
    match = difflib.SequenceMatcher(None, searched, now, autojunk=False).find_longest_match()
    start = max(match.b - match.a, 0)
    return "\n".join(
        (
            f"{path}: the hunk for line {hunk.source_start} {why}",
            f"<<<<<<< {patch.source}",
            *_excerpt(new),
            "||||||| as mcpgen wrote it when the patch was made",
            *_excerpt(old),
            "======= as mcpgen writes it now",
            *_excerpt(now[start : start + len(old)]),
            ">>>>>>>",
        )
    )


def _excerpt(lines: Sequence[str]) -> Iterator[str]:
    yield from (safe_text(line.removesuffix("\n")) for line in lines[:_SHOWN])
    if rest := len(lines[_SHOWN:]):
        yield f"... {rest} more lines"
