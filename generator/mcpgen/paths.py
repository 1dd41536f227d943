"""Where the data of mcpgen lies: in a source checkout, or inside the installed wheel.

A wheel carries `schema/`, `templates/` and one file of `generated/` as `mcpgen/_data/`; a checkout
has them at its top.
Users may have a folder of revisions of their own beside these, which has the form of `schema/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from mcpgen.errors import UsageError, safe_text

PACKAGE = Path(__file__).resolve().parent

SCHEMAS_VARIABLE = "MCPGEN_SCHEMAS"
"""The environment variable that names a user's folder of revisions."""

_own_schemas: ContextVar[Path | None] = ContextVar("own_schemas")


def data_root(package: Path = PACKAGE) -> Path:
    """The directory that holds `schema/` and `templates/`."""
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent.parent


def is_checkout() -> bool:
    """Whether mcpgen runs from a source checkout, whose `schema/` can be added to."""
    return data_root() == PACKAGE.parent.parent


def schema_dir() -> Path:
    """The directory with one folder for each revision that comes with mcpgen."""
    return data_root() / "schema"


def own_schema_dir() -> Path | None:
    """The user's folder of revisions: from `own_schemas`, else from the environment variable."""
    named = os.environ.get(SCHEMAS_VARIABLE)
    return _own_schemas.get(Path(named) if named else None)


@contextmanager
def own_schemas(folder: Path | None) -> Generator[None]:
    """Take the revisions in a folder in addition to those that come with mcpgen; `None`: none."""
    token = _own_schemas.set(folder)
    try:
        yield
    finally:
        _own_schemas.reset(token)


def is_own_revision(name: str) -> bool:
    """Whether a revision lies in the user's folder, which takes precedence over mcpgen's."""
    own = own_schema_dir()
    return own is not None and (own / name).is_dir()


def revision_dir(name: str) -> Path:
    """The folder of a revision; it need not exist."""
    own = own_schema_dir()
    return own / name if own is not None and is_own_revision(name) else schema_dir() / name


def templates_dir() -> Path:
    """The directory with the templates of packages and models."""
    return data_root() / "templates"


def interface_file() -> Path:
    """The list of the names that packages on an installed runtime use of it."""
    return data_root() / "generated" / "interface.txt"


def relative_path(path: Path, directory: Path) -> str:
    """The relative path of a file from a directory; the file's name if there is none."""
    try:
        return Path(os.path.relpath(path, directory)).as_posix()
    except ValueError:  # on another drive
        return path.name


def expect_of_project(place: Path, directory: Path) -> None:
    """Refuse a file or folder outside of a package's project, which only its record names.

    A package of others may name any file, whose text errors would show.

    Raises:
        UsageError: It is outside.
    """
    if not is_of_project(place, directory):
        raise UsageError(
            f"{directory}: expected files of its project, got {safe_text(str(place))}, which only"
            " its mcpgen.json names: name it with --schema, --patch, --extension or --templates, or"
            " move it below the folder with pyproject.toml"
        )


_PROJECT_MARKS = ("pyproject.toml", ".git", ".hg")
"""A folder with one of these holds a project."""

_INPUT_SUFFIXES = frozenset({".json", ".ts", ".mts", ".cts", ".toml", ".patch"})


def is_of_project(place: Path, directory: Path) -> bool:
    """Whether a file or folder that only the record of a package names belongs to its project.

    The project is the nearest folder around the package with `pyproject.toml` or a repository of
    Git or Mercurial; without one, the package, and input files and folders of templates beside it.
    Links are followed.
    """
    target, package = place.resolve(), directory.resolve()
    root = next(
        (
            folder
            for folder in (package, *package.parents)
            if any((folder / mark).exists() for mark in _PROJECT_MARKS)
        ),
        None,
    )
    if root is not None:
        return target.is_relative_to(root)
    is_folder = target.name[:1] != "." and (target.is_dir() or not target.exists())
    is_input = target.suffix in _INPUT_SUFFIXES or is_folder
    is_beside = target.parent == package.parent and is_input
    return is_beside or target.is_relative_to(package)


def recorded_place(directory: Path, recorded: str) -> Path:
    """Resolve a path that a package records from its directory; relative to here if below.

    Raises:
        UsageError: It leads out of the project.
    """
    place = Path(os.path.normpath(directory.resolve() / recorded))
    expect_of_project(place, directory)
    return from_here(place)


def from_here(path: Path) -> Path:
    """An absolute path, relative to the current directory if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def shown_path(path: Path) -> str:
    """A path for messages: relative to the root of mcpgen's data, other paths unchanged."""
    root = data_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


FILE_PATH = "a relative path of letters, digits, '.', '-' and '_' between single '/'"
"""Matches the path of a written file; see `is_file_path`."""

_PART = r"\w(?:[\w.-]*[\w-])?"
_is_file_path = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII).fullmatch


def is_file_path(path: str) -> bool:
    """Whether a text is a path of a written file: relative, normalized, the same everywhere."""
    return _is_file_path(path) is not None
