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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from jinja2 import FileSystemLoader, StrictUndefined, TemplateNotFound, Undefined

from mcpgen import paths
from mcpgen.errors import McpgenError, SettingsError, TemplateError, safe_text
from mcpgen.input_files import read_text
from mcpgen.literals import source_text
from mcpgen.render import own_code
from mcpgen.render.folder_settings import (
    SETTINGS,
    FolderSettings,
    FrontMatter,
    read_front_matter,
    read_settings,
)
from mcpgen.render.template_filters import filters_for
from mcpgen.render.template_names import is_partial
from mcpgen.render.templates import REASON, SandboxedEnvironment, place_within
from mcpgen.spec.naming import rename
from mcpgen.spec.values import Extension, Method, Revision, Specification, Type
from mcpgen.toml_records import MAX_BYTES, Place

_SUFFIX = ".jinja"
_PYTHON = (".py", ".pyi")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"\w+")
_LOOPS = ("revision", "extension", "type", "method", "difference")
_OF_REVISION = frozenset({"extension", "type", "method"})


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


def render_folder(folder: Path, specification: Specification, *, trusted: bool) -> dict[str, str]:
    """The text of every file that a folder makes, by path, sorted.

    Args:
        folder: The folder.
        specification: The values.
        trusted: Whether templates may do what code may do, and filters and a formatter of the
            folder may run.

    Raises:
        SettingsError: The settings are malformed, or ask for code of the folder without trust.
        TemplateError: A template cannot be rendered, its output cannot be formatted, or two make
            the same file.
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


@dataclass(frozen=True)
class _Job:
    """One file to write.

    Attributes:
        template: The path of the template, or of the file to copy.
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
        """The file and the values of the loops, in words."""
        words = _words(self.values)
        return f" ({self.path}: {words})" if words else f" ({self.path})"


def _words(values: Mapping[str, Any]) -> str:
    """The values of loops in words, for an error."""
    return ", ".join(f"{name} {safe_text(_label(each))}" for name, each in values.items())


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
        filters = dict(filters_for(settings.quotes))
        if settings.filters:
            filters |= own_code.read_filters(folder, settings.filters)
        self._python = self._environment(_source, filters, trusted=trusted)
        self._other = self._environment(None, filters, trusted=trusted)

    def _environment(
        self,
        finalize: Callable[[object], object] | None,
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

    def render(self) -> dict[str, str]:
        """The text of every file by its path, sorted."""
        jobs: dict[str, _Job] = {}
        for name in files_of(self._folder):
            if name in (SETTINGS, self._settings.filters) or is_partial(name):
                continue
            for job in self._jobs(name):
                self._expect_own_path(job, jobs)
                jobs[job.path] = job
        for job in jobs.values():
            self._expect_no_file_around(job, jobs)
        return {path: self._text_of(jobs[path]) for path in sorted(jobs)}

    def _expect_own_path(self, job: _Job, others: Mapping[str, _Job]) -> None:
        if not paths.is_file_path(job.path):
            expected = f"expected {paths.FILE_PATH}, got {safe_text(job.path)}"
            self._fail(job.template, None, f"{expected}{_about(job.values)}")
        if job.path in others:
            other = others[job.path].template
            by = "it made before" if other == job.template else f"{other} makes"
            expected = "expected a path of its own for each file"
            self._fail(job.template, None, f"{expected}, got {job.path}, which {by}")

    def _expect_no_file_around(self, job: _Job, others: Mapping[str, _Job]) -> None:
        for parent in PurePosixPath(job.path).parents:
            if parent.as_posix() in others:
                other = others[parent.as_posix()].template
                expected = f"expected a folder {parent} for {job.path}"
                self._fail(job.template, None, f"{expected}, got a file, which {other} makes")

    def _jobs(self, name: str) -> Iterator[_Job]:
        """The files that a file of the folder makes."""
        if not name.endswith(_SUFFIX):
            yield _Job(name, name, {}, format=False)
            return
        front = read_front_matter(self._read(name), self._folder / name)
        path = front.path or name.removesuffix(_SUFFIX)
        for values in self._combinations(self._loops(name, front, path), {}):
            if not front.where or self._evaluate(name, front.where, values):
                yield _Job(name, self._path(name, path, values), values, front.format)

    def _loops(self, name: str, front: FrontMatter, path: str) -> list[str]:
        """The loops that front matter and the path of a template name, the outer ones first."""
        loops: set[str] = {front.loop} if front.loop else set()
        for placeholder in _PLACEHOLDER.finditer(path):
            first = _NAME.search(placeholder[1])
            loop = first[0] if first else placeholder[1]
            if loop not in _LOOPS:
                expected = f"expected one of {', '.join(_LOOPS)} in braces"
                line = self._line_of(name, placeholder[0])
                self._fail(name, line, f"{expected}, got {safe_text(loop)}")
            loops.add(loop)
        if loops & _OF_REVISION:
            loops.add("revision")
        return [loop for loop in _LOOPS if loop in loops]

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
        if revision is None:  # the outer loop
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
        """The value of an expression in a path or in front matter."""
        try:
            compiled = self._other.compile_expression(expression, undefined_to_none=False)
            result = compiled(**values)
            if isinstance(result, Undefined):
                str(result)  # raises the error that names it
        except Exception as error:  # whatever an expression of the user's raises
            reason = f"{safe_text(expression)}: {safe_text(str(error), REASON)}{_about(values)}"
            self._fail(template, self._line_of(template, expression), reason, error)
        return result

    def _line_of(self, template: str, text: str) -> int | None:
        """The line of a template with a text of its front matter; `None` for one of its path."""
        lines = enumerate(self._read(template).splitlines(), 1)
        return next((number for number, line in lines if text in line), None)

    def _read(self, name: str) -> str:
        return read_text(self._folder / name, SettingsError, "text", MAX_BYTES)

    def _text_of(self, job: _Job) -> str:
        """The text of one file."""
        if not job.template.endswith(_SUFFIX):
            return self._read(job.template)
        is_python = job.path.endswith(_PYTHON)
        environment = self._python if is_python else self._other
        values = dict(job.values)
        if "revision" not in values and len(self._specification.revisions) == 1:
            values["revision"] = self._specification.latest
        try:
            text = environment.get_template(job.template).render(values)
        except Exception as error:  # whatever an expression of the user's raises
            place = place_within(self._folder, error) or place_within(self._folder.resolve(), error)
            path, line = place or (str(self._folder / job.template), None)
            reason = str(error)
            if isinstance(error, TemplateNotFound):
                reason = f"there is no template {error.name}"
            raise TemplateError(path, line, f"{safe_text(reason, REASON)}{job.about}") from error
        if not is_python or not job.format:
            return text
        try:
            return own_code.format_module(job.path, text, self._settings, self._folder)
        except McpgenError as error:
            self._fail(job.template, None, f"{error}{_about(job.values)}", error)

    def _fail(
        self, template: str, line: int | None, reason: str, cause: Exception | None = None
    ) -> NoReturn:
        raise TemplateError(str(self._folder / template), line, reason) from cause


def _about(values: Mapping[str, Any]) -> str:
    """The values that a file was to be made for, at the end of an error."""
    return f" ({_words(values)})" if values else ""
