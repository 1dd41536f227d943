"""The templates: files below `templates/` with Jinja in them, and the values that they may write.

A template is named by its path from there, such as `package/revision/client.py.jinja`. Each value
that it writes is source made by the generator, a number or a plain name: `literals.source_text`.

A template may come from the checkout of a stranger, which `mcpgen check` renders: it runs in
Jinja's sandbox, and reaches neither modules, classes nor files.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping
from functools import cache as computed_once
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, TypeGuard

from jinja2 import (
    BytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    TemplateNotFound,
    TemplateSyntaxError,
    Undefined,
)
from jinja2.bccache import Bucket
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mcpgen import cache, paths
from mcpgen.errors import TemplateError, safe_text
from mcpgen.literals import Code, docstring, double_quoted, literal, source_text
from mcpgen.spec.packages import ModelsSpec

_KIND = "template"

REASON = 300
"""Characters of an error within a template that are shown."""


def render(name: str, overrides: Path | None = None, **values: object) -> str:
    """A template as text.

    Args:
        name: Its name.
        overrides: A directory whose templates replace those of the same name.
        values: The values for the template, by name.

    Raises:
        TemplateError: An override names a value that does not exist, writes one that is not safe,
            or is no template.
        ValueError: A template of mcpgen's writes a value that is not safe.
    """
    environment = _environment(paths.templates_dir(), overrides)
    try:
        return environment.get_template(name).render(values)
    except Exception as error:
        # Whatever an expression of the user's raises is told with its place.
        if overrides is not None and (place := place_within(overrides, error)) is not None:
            path, line = place
            reason = str(error)
            if isinstance(error, TemplateNotFound):
                reason = f"there is no template {error.name}"
            raise TemplateError(path, line, safe_text(reason, REASON)) from error
        raise


def place_within(directory: Path, error: Exception) -> tuple[str, int] | None:
    """The innermost line of an override in the traceback of an error."""
    if isinstance(error, TemplateSyntaxError):
        places = [(error.filename or error.name or "", error.lineno)]  # the lexer's have the latter
    else:
        frames = traceback.extract_tb(error.__traceback__)
        places = [(frame.filename, frame.lineno or 1) for frame in frames]
    inside = [place for place in places if Path(place[0]).is_relative_to(directory)]
    return inside[-1] if inside else None


def _safe_text(value: object) -> str:
    """The text that a template may write for a value.

    Raises:
        UndefinedError: There is no such value; its text names it.
        ValueError: See `literals.source_text`.
    """
    return str(value) if isinstance(value, Undefined) else source_text(value)


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


class SandboxedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of templates: sandboxed, and without attributes of mappings."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read an attribute: of finished values, not of what made them."""
        outside = isinstance(obj, type | ModuleType | PurePath) or isinstance(value, ModelsSpec)
        return not outside and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function; what a macro returns was written by a template, value by value."""
        result = super().call(context, obj, *args, **kwargs)
        return Code(result) if isinstance(obj, Macro) else result

    def getitem(self, obj: Any, argument: Any) -> Any:
        """The item of a mapping, or Jinja's value for any other object.

        Jinja and filters such as `map` fall back to an attribute of the name. That is wrong for a
        mapping, whose keys may come from a schema: it has attributes such as `items`.
        """
        if not _is_mapping(obj):
            return super().getitem(obj, argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)


class _CompiledTemplates(BytecodeCache):
    """Compiled templates of Jinja in the cache of mcpgen."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill a bucket from the cache, if it has an entry."""
        kept = cache.read(_KIND, self._key(bucket))
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store the content of a bucket in the cache."""
        cache.write(_KIND, self._key(bucket), bucket.bytecode_to_string())

    def _key(self, bucket: Bucket) -> str:
        """The key of a template: its name, its text and versions; the bucket has that of Python."""
        return hashlib.sha256(f"{bucket.key}{bucket.checksum}{_version()}".encode()).hexdigest()


@computed_once
def _version() -> str:
    return version("jinja2")


@computed_once
def _environment(root: Path, overrides: Path | None) -> SandboxedEnvironment:
    environment = SandboxedEnvironment(
        loader=FileSystemLoader([root] if overrides is None else [overrides, root]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=_safe_text,
        bytecode_cache=_CompiledTemplates() if overrides is None else None,
        cache_size=400 if overrides is None else 0,  # an override may come or go in between
    )
    write = partial(literal, write_text=double_quoted)  # as Black writes it
    filters: Mapping[str, Any] = {"literal": write, "docstring": docstring}
    environment.filters.update(filters)
    return environment
