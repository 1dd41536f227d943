"""A folder of the user's templates, rendered with the values of `mcpgen.spec`.

Each file `NAME.jinja` makes a file `NAME`; other files are copied. Names in braces in a path loop:
`{revision}/{type|snake}.py.jinja` makes a file per type of each revision. A template may say so in
front matter instead, a comment of Jinja with TOML in it. Files and folders that begin with `_` hold
what other templates import or include, unless they begin with `__`.

Templates run in the sandbox. A template that makes Python writes names, numbers and source alone:
text goes through the filters `literal`, `docstring` and `comment`. All others write any text.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn

from jinja2 import FileSystemLoader, StrictUndefined, TemplateNotFound, Undefined

from mcpgen.errors import McpgenError, OutputError, SettingsError, TemplateError, safe_text
from mcpgen.input_files import read_text
from mcpgen.literals import WIDTH, Code, source_text
from mcpgen.render.formatting import format_modules
from mcpgen.render.own_templates import FRONT_MATTER, is_partial
from mcpgen.render.template_filters import FILTERS
from mcpgen.render.templates import SandboxedEnvironment, place_within
from mcpgen.schema.errata import Erratum
from mcpgen.schema.revisions import revisions
from mcpgen.spec.naming import Naming, rename
from mcpgen.spec.values import Extension, Method, Revision, Specification, Type
from mcpgen.toml_records import MAX_BYTES, Place, convert, parse_toml, read_toml

SETTINGS = "render.toml"
"""The file with the settings of a folder."""

_SUFFIX = ".jinja"
_PYTHON = (".py", ".pyi")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"\w+")
_LOOPS = ("revision", "extension", "type", "method", "difference")
_OF_REVISION = frozenset({"extension", "type", "method"})
_REASON = 300
"""Characters of an error within a template that are shown."""
_FORMAT_SECONDS = 60.0


@dataclass(frozen=True)
class FolderSettings:
    """`render.toml`.

    Attributes:
        naming: The names of types and members.
        values: Values for the templates, by name.
        errata: Corrections of schemas by revision, after those that mcpgen has; their pointers
            begin with `/$defs/`.
        filters: A module in the folder whose public functions are filters; empty for none.
        format: What formats Python files: Black, or nothing.
        quotes: The quotes of texts that Black writes: double, or as the templates write them.
        line_length: The length of lines for Black.
        formatter: A command that formats Python files in place of Black: it reads a file on
            standard input and prints it formatted; `{path}` stands for its path.
    """

    naming: Naming = field(default_factory=Naming)
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    errata: Mapping[str, tuple[Erratum, ...]] = field(
        default_factory=dict[str, tuple[Erratum, ...]]
    )
    filters: str = ""
    format: Literal["black", "none"] = "black"
    quotes: Literal["double", "any"] = "double"
    line_length: int = WIDTH
    formatter: tuple[str, ...] = ()

    @property
    def runs_code(self) -> bool:
        """Whether rendering runs code of the folder, beside sandboxed templates."""
        return bool(self.filters or self.formatter)


@dataclass(frozen=True)
class FrontMatter:
    """The comment that a template may begin with.

    Attributes:
        loop: The value that there is a file for; empty for the loops that the path names.
        where: An expression that chooses the values; empty for all.
        path: The path of the file, with names in braces; empty for that of the template.
        format: Whether a Python file is formatted.
    """

    loop: Literal["", "revision", "extension", "type", "method", "difference"] = ""
    where: str = ""
    path: str = ""
    format: bool = True


def read_settings(folder: Path) -> FolderSettings:
    """The settings of a folder; the defaults without a file.

    Raises:
        SettingsError: The file is malformed.
    """
    path = folder / SETTINGS
    if not path.is_file():
        return FolderSettings()
    table, place = read_toml(path, SettingsError)
    settings: FolderSettings = convert(table, FolderSettings, place)
    return settings


def read_errata(folder: Path, rendered: Collection[str]) -> Mapping[str, tuple[Erratum, ...]]:
    """The corrections of a folder, by revision.

    Args:
        folder: The folder.
        rendered: The revisions to render.

    Raises:
        SettingsError: The settings are malformed, or name a revision that is neither rendered nor
            one of mcpgen's.
    """
    settings = read_settings(folder)
    known = {*rendered, *(row.name for row in revisions())}
    tables = {"errata": settings.errata, "naming/revisions": settings.naming.revisions}
    for key, table in tables.items():
        for name in table:
            if name not in known:
                place = Place(str(folder / SETTINGS), SettingsError, f"/{key}")
                raise place.at(name).error(f"one of the revisions {', '.join(sorted(known))}", name)
    return settings.errata


def files_of(folder: Path) -> list[str]:
    """The files of a folder that make its output, by path, sorted; hidden ones are left out.

    Raises:
        TemplateError: A link leads out of the folder, whose text would be shown.
    """
    entries = [*folder.rglob("*")]
    root = folder.resolve()
    for path in entries:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise TemplateError(
                str(path), None, "expected a file of the folder, got a link out of it"
            )
    inside = (path.relative_to(folder) for path in entries if path.is_file())
    return sorted(
        path.as_posix()
        for path in inside
        if not any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    )


def render_folder(
    folder: Path, specification: Specification, *, trusted: bool = False
) -> dict[str, str]:
    """The text of every file that a folder makes, by path, sorted.

    Args:
        folder: The folder.
        specification: The values.
        trusted: Whether templates may do what code may do, and filters and a formatter of the
            folder may run.

    Raises:
        SettingsError: The settings are malformed, or ask for code of the folder without trust.
        TemplateError: A template cannot be rendered, or two make the same file.
        OutputError: A command that formats fails.
    """
    settings = read_settings(folder)
    if settings.runs_code and not trusted:
        place = Place(str(folder / SETTINGS), SettingsError)
        key = "filters" if settings.filters else "formatter"
        raise place.at(key).error("--trusted with code of the folder", "none")
    naming = Place(str(folder / SETTINGS), SettingsError, "/naming")
    values = rename(specification, settings.naming, naming)
    return _Folder(folder, settings, values, trusted=trusted).render()


class _TrustedEnvironment(SandboxedEnvironment):
    """The environment of templates that may do what code may do."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read an attribute: always."""
        return True

    def is_safe_callable(self, obj: Any) -> bool:
        """Whether a template may call a value: always."""
        return True


def _source(value: object) -> str:
    """The source that a template of a Python file may write for a value."""
    return str(value) if isinstance(value, Undefined) else source_text(value)


def _text(value: object) -> object:
    """The text that any other template may write for a value."""
    return str(value) if isinstance(value, Undefined) else value


@dataclass(frozen=True)
class _Job:
    """One file to write.

    Attributes:
        template: The path of the template.
        path: The path of the file.
        values: The values of the loops, by name.
        format: Whether the file is formatted if it is Python.
    """

    template: str
    path: str
    values: Mapping[str, Any]
    format: bool

    @property
    def about(self) -> str:
        """The values of the loops in words."""
        words = [f"{name} {safe_text(_label(each))}" for name, each in self.values.items()]
        return f" ({self.path}{': ' if words else ''}{', '.join(words)})"


def _label(value: Any) -> str:
    """The name of a value for an error."""
    match value:
        case Extension():
            return value.identifier
        case Revision() | Type() | Method():
            return value.name
        case _:
            return f"{value.older} to {value.newer}"


class _Folder:
    """Renders one folder."""

    def __init__(
        self,
        folder: Path,
        settings: FolderSettings,
        specification: Specification,
        *,
        trusted: bool,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._specification = specification
        filters = {**FILTERS, **(self._own_filters() if settings.filters else {})}
        self._python = self._environment(_source, filters, trusted=trusted)
        self._other = self._environment(_text, filters, trusted=trusted)

    def _environment(
        self,
        finalize: Callable[[object], object],
        filters: Mapping[str, Callable[..., Any]],
        *,
        trusted: bool,
    ) -> SandboxedEnvironment:
        kind = _TrustedEnvironment if trusted else SandboxedEnvironment
        environment = kind(
            loader=FileSystemLoader(self._folder),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=finalize,
        )
        environment.filters.update(filters)
        own: Mapping[str, Any] = {"spec": self._specification, "values": self._settings.values}
        environment.globals.update(own)
        return environment

    def _own_filters(self) -> dict[str, Callable[..., Any]]:
        """The public functions of the module that the settings name."""
        path = self._folder / self._settings.filters
        module = _import_file(path)
        own = {
            name: function
            for name, function in vars(module).items()
            if callable(function) and not name.startswith("_")
            if getattr(function, "__module__", "") == module.__name__
        }
        return {name: partial(_as_code, function) for name, function in own.items()}

    def render(self) -> dict[str, str]:
        files: dict[str, str] = {}
        templates: dict[str, str] = {}
        for name in files_of(self._folder):
            if name in (SETTINGS, self._settings.filters) or is_partial(name):
                continue
            if not name.endswith(_SUFFIX):
                self._add(files, templates, name, name, self._read(name))
                continue
            for job in self._jobs(name):
                self._add(files, templates, name, job.path, self._render(job))
        return {path: files[path] for path in sorted(files)}

    def _add(
        self,
        files: dict[str, str],
        templates: dict[str, str],
        template: str,
        path: str,
        text: str,
    ) -> None:
        if path in files:
            other = templates[path]
            by = "it made before" if other == template else f"{other} makes"
            self._fail(
                template, None, f"expected a path of its own for each file, got {path}, which {by}"
            )
        files[path], templates[path] = text, template

    def _read(self, name: str) -> str:
        return read_text(self._folder / name, SettingsError, "text", MAX_BYTES)

    def _jobs(self, name: str) -> Iterator[_Job]:
        """The files that a template makes."""
        front = self._front_matter(name)
        path = front.path or name.removesuffix(_SUFFIX)
        loops: set[str] = {front.loop} if front.loop else set()
        for placeholder in _PLACEHOLDER.finditer(path):
            first = _NAME.search(placeholder[1])
            loops.add(first[0] if first else placeholder[1])
        unknown = sorted(loops.difference(_LOOPS))
        if unknown:
            expected = f"one of {', '.join(_LOOPS)} in braces"
            self._fail(name, 1, f"expected {expected}, got {safe_text(unknown[0])}")
        if loops & _OF_REVISION:
            loops.add("revision")
        order = [loop for loop in _LOOPS if loop in loops]
        for values in self._combinations(order, {}):
            if not front.where or self._evaluate(name, front.where, values):
                yield _Job(name, self._path(name, path, values), values, front.format)

    def _front_matter(self, name: str) -> FrontMatter:
        match = FRONT_MATTER.match(self._read(name))
        if match is None:
            return FrontMatter()
        source = str(self._folder / name)
        table = parse_toml(match[1], source, SettingsError)
        front: FrontMatter = convert(table, FrontMatter, Place(source, SettingsError))
        return front

    def _combinations(
        self, loops: Sequence[str], outer: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        """The values of nested loops."""
        if not loops:
            yield outer
            return
        first, *rest = loops
        for value in self._values(first, outer.get("revision")):
            yield from self._combinations(rest, {**outer, first: value})

    def _values(self, loop: str, revision: Revision | None) -> Sequence[Any]:
        if loop == "difference":
            return self._specification.differences
        if loop == "revision" or revision is None:
            return self._specification.revisions
        by_loop: Mapping[str, Sequence[Any]] = {
            "extension": revision.extensions,
            "type": revision.types,
            "method": revision.methods.all,
        }
        return by_loop[loop]

    def _path(self, template: str, path: str, values: Mapping[str, Any]) -> str:
        """The path of a file, with values in place of the names in braces."""

        def text_for(match: re.Match[str]) -> str:
            expression = match[1].strip()
            value = values.get(expression)
            if isinstance(value, Revision | Method):
                return value.python_name
            if isinstance(value, Extension):
                return value.module
            if isinstance(value, Type):
                return value.name
            return str(self._evaluate(template, expression, values))

        return _PLACEHOLDER.sub(text_for, path)

    def _evaluate(self, template: str, expression: str, values: Mapping[str, Any]) -> Any:
        try:
            compiled = self._other.compile_expression(expression, undefined_to_none=False)
            result = compiled(**values)
            if isinstance(result, Undefined):
                str(result)  # raises the error that names it
        except Exception as error:  # whatever an expression of the user's raises
            words = [f"{name} {safe_text(_label(each))}" for name, each in values.items()]
            at = f" ({', '.join(words)})" if words else ""
            reason = safe_text(str(error), _REASON)
            self._fail(template, 1, f"{safe_text(expression)}: {reason}{at}", error)
        return result

    def _render(self, job: _Job) -> str:
        is_python = job.path.endswith(_PYTHON)
        environment = self._python if is_python else self._other
        values = dict(job.values)
        if "revision" not in values and len(self._specification.revisions) == 1:
            values["revision"] = self._specification.latest
        try:
            text = environment.get_template(job.template).render(values)
        except Exception as error:  # whatever an expression of the user's raises
            place = place_within(self._folder.resolve(), error) or place_within(self._folder, error)
            path, line = place or (str(self._folder / job.template), 1)
            reason = str(error)
            if isinstance(error, TemplateNotFound):
                reason = f"there is no template {error.name}"
            text = f"{safe_text(reason, _REASON)}{job.about}"
            raise TemplateError(path, line, text) from error
        return self._format(job, text) if is_python and job.format else text

    def _format(self, job: _Job, text: str) -> str:
        settings = self._settings
        if settings.formatter:
            return _run_formatter(settings.formatter, job.path, text, self._folder)
        if settings.format == "none":
            return text
        try:
            if settings.quotes == "double" and settings.line_length == WIDTH:
                return format_modules({job.path: text})[job.path]
            return _format_with_black(job.path, text, settings)
        except McpgenError as error:
            self._fail(job.template, None, f"{error}{job.about}", error)

    def _fail(
        self, template: str, line: int | None, reason: str, cause: Exception | None = None
    ) -> NoReturn:
        raise TemplateError(str(self._folder / template), line, reason) from cause


def _as_code(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of the user's; text that it returns counts as source."""
    result = function(*args, **kwargs)
    return Code(result) if isinstance(result, str) else result


def _import_file(path: Path) -> ModuleType:
    place = util.spec_from_file_location(f"_mcpgen_filters_{path.stem}", path)
    if place is None or place.loader is None or not path.is_file():
        raise OutputError(f"{path}: expected a module of Python with filters, got no file")
    module = util.module_from_spec(place)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        place.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def _format_with_black(path: str, text: str, settings: FolderSettings) -> str:
    from black import format_str  # takes long to import
    from black.mode import Mode, TargetVersion
    from black.parsing import InvalidInput

    mode = Mode(
        target_versions={TargetVersion.PY311},
        line_length=settings.line_length,
        string_normalization=settings.quotes == "double",
        is_pyi=path.endswith(".pyi"),
    )
    try:
        return format_str(text, mode=mode)
    except InvalidInput as error:
        raise OutputError(f"black could not format {path}: {safe_text(str(error))}") from error


def _run_formatter(command: Sequence[str], path: str, text: str, folder: Path) -> str:
    """The text that a command prints for a text on its standard input.

    Raises:
        OutputError: The command cannot be started, takes too long or fails.
    """
    words = [word.replace("{path}", path) for word in command]
    try:
        done = subprocess.run(
            words,
            input=text.encode(),
            capture_output=True,
            check=False,
            cwd=folder,
            timeout=_FORMAT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutputError(f"{words[0]}: could not format {path}: {error}") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        reason = safe_text(last[0], _REASON) if last else f"exit code {done.returncode}"
        raise OutputError(f"{words[0]}: could not format {path}: {reason}")
    return done.stdout.decode()
