"""Templates of the user for packages: overrides of mcpgen's, parts of these, and further files.

`DIR/package/client/async_client.py.jinja` replaces the template of that name. A copy of the
replaced template lies in `DIR/.originals` under the same name. With this copy, mcpgen detects and
shows later changes of the template; an outdated override is an error, since the package would
silently lack a correction.

Files whose names begin with `_` hold macros and parts that overrides import or include. Those in
`DIR/added` make files that mcpgen has no template for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mcpgen import __version__, paths
from mcpgen.errors import OutputError, TemplateError, UsageError, safe_text
from mcpgen.package import manifest
from mcpgen.paths import relative_path
from mcpgen.render.template_names import ADDED, MODELS, is_partial
from mcpgen.toml_records import nearest_name

ORIGINALS = ".originals"
"""The folder with the templates that overrides replace."""

_ROOMS = ("package", "stubs", "for_installed", "for_pydantic", MODELS)
_SUFFIXES = (".jinja", ".jinja2")

State: TypeAlias = Literal["current", "outdated"]


@dataclass(frozen=True)
class Overrides:
    """The templates of one directory.

    Attributes:
        directory: The directory.
        digests: SHA-256 of each file, by its path in the directory.
        path: The directory as a manifest records it: relative to the package's directory.
    """

    directory: Path
    digests: Mapping[str, str]
    path: str


def names() -> tuple[str, ...]:
    """The names of all templates that may be overridden, sorted."""
    root = paths.templates_dir()
    files = (path for room in _ROOMS for path in (root / room).rglob("*"))
    return tuple(
        sorted(path.relative_to(root).as_posix() for path in files if path.suffix in _SUFFIXES)
    )


def read(directory: Path, package: Path, *, trusted: bool) -> Overrides:
    """The overrides in a directory, for a package in another one.

    Args:
        directory: The directory.
        package: The directory of the package.
        trusted: Whether templates may do what code may do.

    Raises:
        UsageError: There is no such directory, or it has templates of models without trust.
        TemplateError: A file does not have the name of a template, or the template that it replaces
            is not recorded, or has changed since it was copied.
    """
    for name, state in states(directory).items():
        if state == "outdated":
            lines = sum(line[0] in "+-" for line in _changed_lines(directory, name))
            raise TemplateError(
                str(directory / name),
                None,
                f"expected an override of the template as it is in mcpgen {__version__}, got one of"
                f" another version (changed lines since: {lines}); see mcpgen templates diff"
                f" {directory}",
            )
    own = digests(directory)
    of_models = next((name for name in own if name.startswith(f"{MODELS}/")), None)
    if of_models is not None and not trusted:
        raise UsageError(
            f"{directory / of_models}: runs in datamodel-code-generator, which has no sandbox:"
            " give --trusted if you trust it"
        )
    return Overrides(directory, own, relative_path(directory, package.resolve()))


def digests(directory: Path) -> dict[str, str]:
    """SHA-256 of each file that counts as an override, by its path within the directory.

    Raises:
        UsageError: There is no such directory.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: expected a directory with templates, got none")
    return {name: manifest.file_fingerprint(directory / name) for name in _files(directory)}


def _files(directory: Path) -> list[str]:
    """The files in a directory, without hidden ones."""
    paths_within = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(
        path.as_posix()
        for path in paths_within
        if not any(part.startswith(".") for part in path.parts)
    )


def states(directory: Path) -> dict[str, State]:
    """Whether each override in a directory is current or outdated, by name.

    Raises:
        UsageError: There is no such directory.
        TemplateError: A file does not have the name of a template, or the template that it replaces
            is not recorded.
    """
    by_name: dict[str, State] = {}
    for name in digests(directory):
        if is_partial(name) or name.startswith(f"{ADDED}/"):
            continue
        _expect_name(name, str(directory / name))
        original = directory / ORIGINALS / name
        if not original.is_file():
            raise TemplateError(
                str(directory / name),
                None,
                f"expected the template that it replaces in {original}, got no file;"
                f" mcpgen templates accept {name} {directory} records the present one",
            )
        now = manifest.file_fingerprint(paths.templates_dir() / name)
        by_name[name] = "current" if manifest.file_fingerprint(original) == now else "outdated"
    return by_name


def _expect_name(name: str, place: str) -> None:
    known = names()
    if name not in known:
        near = nearest_name(name, known)
        meant = f"; did you mean {near}?" if near else "; mcpgen templates list has them all"
        raise TemplateError(
            place, None, f"expected the name of a template, got {safe_text(name, 300)}{meant}"
        )


def copy(name: str, directory: Path) -> Path:
    """Begin an override: copy a template to a directory, and record the original.

    Raises:
        TemplateError: There is no such template.
        OutputError: The override exists already, or the directory cannot be written.
    """
    _expect_name(name, str(directory))
    place = directory / name
    if place.exists():
        raise OutputError(f"{place}: expected no file yet, got an override; it was not touched")
    text = (paths.templates_dir() / name).read_text(encoding="utf-8")
    for path in (directory / ORIGINALS / name, place):
        _write(path, text)
    return place


def accept(name: str, directory: Path) -> None:
    """Record that an override fits the current version of the template that it replaces.

    Raises:
        TemplateError: There is no such template.
        UsageError: The directory has no override of the template.
        OutputError: The directory cannot be written.
    """
    _expect_name(name, str(directory))
    if not (directory / name).is_file():
        raise UsageError(f"{directory / name}: expected an override, got no file")
    text = (paths.templates_dir() / name).read_text(encoding="utf-8")
    _write(directory / ORIGINALS / name, text)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error


def changes(directory: Path) -> str:
    """A unified diff of the changes of templates since overrides of them were made.

    Raises:
        UsageError: There is no such directory.
        TemplateError: See `states`.
    """
    return "".join(
        line
        for name, state in states(directory).items()
        if state == "outdated"
        for line in _diff(directory, name)
    )


def _changed_lines(directory: Path, name: str) -> Iterator[str]:
    return (line for line in list(_diff(directory, name))[2:])


def _diff(directory: Path, name: str) -> Iterator[str]:
    import difflib  # a check of an unchanged package needs none

    before = (directory / ORIGINALS / name).read_text(encoding="utf-8", errors="replace")
    after = (paths.templates_dir() / name).read_text(encoding="utf-8")
    return difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
