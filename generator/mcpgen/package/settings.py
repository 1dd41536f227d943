"""`[tool.mcpgen]` of a pyproject.toml: the packages of a project, for commands without options.

One package stands in the table itself, several in `[[tool.mcpgen.packages]]`. Paths are relative to
the file. Unknown keys are errors, since a misspelt key would have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgen import paths
from mcpgen.errors import SettingsError, UsageError
from mcpgen.input_files import check_json, read_text
from mcpgen.json_types import is_array, is_object
from mcpgen.model.choice import changed_features, selection, short_words
from mcpgen.model.parts import USED
from mcpgen.toml_records import MAX_BYTES, Place, convert, parse_toml

FILE = "pyproject.toml"

_TABLE = "/tool/mcpgen"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_ELSEWHERE = f"for one elsewhere: mcpgen -o DIR, or a {FILE} in a folder that holds both"
_SHARED = ("packages", "mirror", "render", "calls", "schemas_dir")
"""Keys of the table that are not about one package."""


@dataclass(frozen=True)
class PackageSettings:
    """One package.

    Attributes:
        output: Its directory.
        revisions: Dates, `latest` or `all`.
        parts: As for `--parts`.
        transports: As for `--transport`.
        features: As for `--features`; the text "used" stands for that word alone.
        sources: Files and folders of the program, with the word `used`; by default the folder of
            the package.
        models: As for `--models`; empty for msgspec.
        runtime: As for `--runtime`; empty for vendored.
        decoding: As for `--decoding`; empty for lenient.
        extra: As for `--extra`; a text stands for that word alone.
        mutability: As for `--mutability`; empty for frozen.
        schemas: Schema files, one revision each.
        facts: The facts file of the one schema file.
        errata: Whether known defects of published schemas are corrected.
        strict: Whether a fact that can only be guessed is an error.
        templates: Directory with templates that replace mcpgen's; empty for none.
        hooks: Commands to run after each generation, as lists of arguments; `{output}` in an
            argument stands for the directory of the package.
        extensions: Schema files of extensions, as for `--extension`.
        patch: The patch of `mcpgen patch`; empty for the patch that the package was made with.
        gitattributes: Whether a file tells Git that the package is generated.
        keep_old_modules: As for `--keep-old-modules`.
    """

    output: str
    revisions: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    models: str = ""
    runtime: str = ""
    schemas: tuple[str, ...] = ()
    facts: str = ""
    errata: bool = True
    strict: bool = False
    templates: str = ""
    hooks: tuple[tuple[str, ...], ...] = ()
    extensions: tuple[str, ...] = ()
    patch: str = ""
    gitattributes: bool = True
    keep_old_modules: bool = False
    sources: tuple[str, ...] = ()
    decoding: str = ""
    extra: tuple[str, ...] = ()
    mutability: str = ""


@dataclass(frozen=True)
class MirrorSettings:
    """A server that the project mirrors.

    Attributes:
        output: Directory of the generated modules, beside that of the first package.
        file: A file with its lists; empty if the server is asked.
        server: Its URL, the command that starts it, or `FILE#NAME` for an entry of a configuration.
        directory: The working directory of the command.
    """

    output: str
    file: str = ""
    server: str = ""
    directory: str = "."


@dataclass(frozen=True)
class RenderSettings:
    """A folder of templates to render.

    Attributes:
        templates: The folder.
        output: The directory to write to.
        revisions: Dates, `latest` or `all`.
        schemas: Schema files, one revision each.
        facts: The facts file of the one schema file.
        extensions: Schema files of extensions, as for `--extension`.
        errata: Whether known defects of published schemas are corrected.
        patch: The patch of `mcpgen patch`; empty for the patch that it was rendered with.
    """

    templates: str
    output: str
    revisions: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    facts: str = ""
    extensions: tuple[str, ...] = ()
    errata: bool = True
    patch: str = ""


@dataclass(frozen=True)
class Settings:
    """The settings of a project.

    Attributes:
        root: The folder of the file.
        packages: The packages, in order.
        mirror: The mirrored server, if there is one.
        schemas_dir: A folder of revisions of the user's own; empty for none.
        render: The folders of templates to render, in order.
        calls: The modules of `mcpgen mirror`, in order.
    """

    root: Path
    packages: tuple[PackageSettings, ...]
    mirror: MirrorSettings | None = None
    schemas_dir: str = ""
    render: tuple[RenderSettings, ...] = ()
    calls: tuple[str, ...] = ()

    @contextmanager
    def own_revisions(self) -> Generator[None]:
        """Use the revisions of the user's folder too, unless the command names another folder."""
        if not self.schemas_dir or paths.own_schema_dir() is not None:
            yield
            return
        with paths.own_schemas(paths.from_here(self.root / self.schemas_dir)):
            yield

    def directory(self, package: PackageSettings) -> Path:
        """The directory of a package."""
        return paths.from_here(self.root / package.output)

    def templates(self, package: PackageSettings) -> Path | None:
        """The directory of a package's own templates, if any."""
        return paths.from_here(self.root / package.templates) if package.templates else None

    def patch(self, package: PackageSettings) -> Path | None:
        """The patch of a package, if the settings name one."""
        return paths.from_here(self.root / package.patch) if package.patch else None

    def refusal(self, features: Sequence[str] = ()) -> str:
        """The error text that refuses options of a command, with the settings to write instead.

        Args:
            features: Words of `--features`, if any.
        """
        text = f"{FILE}: [tool.mcpgen] configures this project; "
        if features and len(self.packages) == 1:
            words = changed_features(self.packages[0].features, features)
            names = words if USED in words else short_words(selection(features=words).features)
            listed = ", ".join(f'"{name}"' for name in names)
            return f"{text}write features = [{listed}] there, and run mcpgen"
        return f"{text}change it, and run mcpgen without options"

    @property
    def calls_files(self) -> list[Path]:
        """The modules of `mcpgen mirror`."""
        return [paths.from_here(self.root / path) for path in self.calls]

    @property
    def mirror_directory(self) -> Path:
        """The directory of the mirror, which must exist in the settings."""
        assert self.mirror is not None
        return paths.from_here(self.root / self.mirror.output)

    @property
    def protocol(self) -> str:
        """Name of the first package, which lies beside the mirror."""
        return Path(self.packages[0].output).name


def find(start: Path) -> Settings | None:
    """The settings of the project around a folder; `None` if no file has settings.

    Raises:
        SettingsError: The file that comes first, from the folder upwards, is malformed.
    """
    for folder in (start, *start.parents):
        settings = read(folder)
        if settings is not None:
            return settings
    return None


def require(start: Path) -> Settings:
    """The settings of the project around a folder.

    Raises:
        UsageError: No file has settings.
        SettingsError: The file that comes first, from the folder upwards, is malformed.
    """
    settings = find(start)
    if settings is None:
        raise UsageError(
            "expected the directory of a package, or a pyproject.toml with [tool.mcpgen]"
        )
    return settings


def owner(directory: Path) -> Settings | None:
    """The settings of the project that lists a directory; `None` if no project does.

    The directory is that of a package, or that a folder of templates is rendered to.

    Raises:
        SettingsError: The file that comes first, from its folder upwards, is malformed.
    """
    place = directory.resolve()
    settings = find(place)
    if settings is None:
        return None
    outputs = [each.output for each in settings.packages]
    outputs += [each.output for each in settings.render]
    places = [(settings.root / output).resolve() for output in outputs]
    return settings if place in places else None


def read(folder: Path) -> Settings | None:
    """The settings in a folder; `None` if its pyproject.toml has no `[tool.mcpgen]`, or is missing.

    Raises:
        SettingsError: The file is no TOML, or the table is malformed.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    source = str(paths.from_here(path))
    text = read_text(path, SettingsError, "TOML text", MAX_BYTES)
    if "mcpgen" not in text:
        return None
    table = _table_in(text, source)
    if table is None:
        return None
    place = Place(source, SettingsError, _TABLE)
    check_json(table, f"{source}#{_TABLE}", SettingsError)
    packages = _packages(place.table(table), place)
    _check_outputs(folder, packages, place)
    rendered = convert({"render": table.get("render", [])}, _Rendered, place).render
    for number, each in enumerate(rendered):
        _check_render(folder, each, place.at("render").at(number))
    mirror = None
    if "mirror" in table:
        mirror = convert(table["mirror"], MirrorSettings, place.at("mirror"))
        _check_mirror(folder, mirror, packages, place.at("mirror"))
    schemas_dir: str = convert(table.get("schemas_dir", ""), str, place.at("schemas_dir"))
    calls: tuple[str, ...] = convert({"calls": table.get("calls", [])}, _Calls, place).calls
    for number, module in enumerate(calls):
        _expect_inside(folder, module, place.at("calls").at(number), "move it there")
    return Settings(folder, packages, mirror, schemas_dir, rendered, calls)


def _table_in(text: str, source: str) -> Any:
    tool = parse_toml(text, source, SettingsError).get("tool")
    return tool.get("mcpgen") if is_object(tool) else None


def _packages(table: dict[str, Any], place: Place) -> tuple[PackageSettings, ...]:
    own = {key: value for key, value in table.items() if key not in _SHARED}
    if {"render", "calls"} & table.keys() and "packages" not in table and not own:
        return ()
    if "packages" not in table:
        return (convert(_listed_features(own), PackageSettings, place),)
    if own:
        raise place.error("the keys of a package in [[tool.mcpgen.packages]] alone", sorted(own))
    rows: Any = table["packages"]
    if is_array(rows):
        rows = [_listed_features(row) for row in rows]
    packages: tuple[PackageSettings, ...] = convert({"packages": rows}, _Packages, place).packages
    if not packages:
        raise place.at("packages").error("a package at least", [])
    return packages


def _listed_features(row: Any) -> Any:
    """The settings of a package with `features = "used"`, or a text as `extra`, as lists."""
    if not is_object(row):
        return row
    features = {"features": [USED]} if row.get("features") == USED else {}
    extra = {"extra": [row["extra"]]} if isinstance(row.get("extra"), str) else {}
    return {**row, **features, **extra}


@dataclass(frozen=True)
class _Packages:
    """The array of tables."""

    packages: tuple[PackageSettings, ...]


@dataclass(frozen=True)
class _Rendered:
    """The array of tables of folders to render."""

    render: tuple[RenderSettings, ...]


@dataclass(frozen=True)
class _Calls:
    """The modules of `mcpgen mirror`."""

    calls: tuple[str, ...]


def _check_render(folder: Path, each: RenderSettings, place: Place) -> None:
    """Refuse a folder to render without revisions, or with paths outside of the project."""
    named = {"templates": each.templates, "output": each.output}
    for key, path in {**named, **({"patch": each.patch} if each.patch else {})}.items():
        if not path or Path(path).is_absolute():
            raise place.at(key).error("a path relative to the file", path)
        _expect_inside(folder, path, place.at(key), "move it there")
    if not each.revisions and not each.schemas:
        raise place.error("revisions or schemas", "neither")


def _check_outputs(folder: Path, packages: Sequence[PackageSettings], place: Place) -> None:
    """Refuse packages without revisions, outside of the project, or in the same directory."""
    seen: set[Path] = set()
    for number, package in enumerate(packages):
        at = place.at("packages").at(number) if len(packages) > 1 else place
        output = Path(package.output)
        if not package.output or output.is_absolute():
            raise at.at("output").error("a path relative to the file", package.output)
        _expect_inside(folder, package.output, at.at("output"), _ELSEWHERE)
        if package.patch:
            _expect_inside(folder, package.patch, at.at("patch"), "move the file there")
        if output in seen:
            raise at.at("output").error("a directory of its own for each package", package.output)
        seen.add(output)
        if not package.revisions and not package.schemas:
            raise at.error("revisions or schemas", "neither")
        for index, hook in enumerate(package.hooks):
            _check_hook(hook, at.at("hooks").at(index))


def _check_hook(hook: Sequence[str], place: Place) -> None:
    if not hook or not hook[0]:
        raise place.error("a program and its arguments", list(hook))
    for argument in hook:
        for name in _PLACEHOLDER.findall(argument):
            if name != "output":
                raise place.error("no placeholder but {output}", f"{{{name}}}")


def _expect_inside(folder: Path, path: str, place: Place, instead: str) -> None:
    """Refuse a path that leads out of the project, since a checkout may come from a stranger."""
    if not is_inside(folder, folder / path):
        expected = f"a path within the folder of {FILE}, links followed ({instead})"
        raise place.error(expected, path)


def is_inside(folder: Path, path: Path) -> bool:
    """Whether a path lies in a folder after links are resolved."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # links in a circle, or a NUL
        return False


def _check_mirror(
    folder: Path, mirror: MirrorSettings, packages: Sequence[PackageSettings], place: Place
) -> None:
    if bool(mirror.file) == bool(mirror.server):
        raise place.error("either file or server", "both" if mirror.file else "neither")
    if not packages:
        raise place.error("a package", "none")
    output, first = Path(mirror.output), Path(packages[0].output)
    if output.is_absolute() or output.parent != first.parent or output == first:
        raise place.at("output").error(f"a directory beside {packages[0].output}", mirror.output)
    _expect_inside(folder, mirror.output, place.at("output"), "a directory, not a link")
    parts = packages[0].parts
    if parts and "all" not in parts and not {"client", "server"} <= set(parts):
        raise place.error("a first package with the parts client and server", list(parts))
    if not output.name.isidentifier():
        raise place.at("output").error("a directory that Python can import", mirror.output)
