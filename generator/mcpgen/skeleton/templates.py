"""Rendering of the templates for projects: every value is a literal, a checked name, or TOML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcpgen import paths
from mcpgen.json_types import Json
from mcpgen.literals import Code, checked, docstring, literal
from mcpgen.toml_records import toml_value


def rendered(name: str, **values: object) -> str:
    """A template of `templates/project` as text.

    Raises:
        ValueError: A value is neither source made by the generator nor a plain name.
    """
    return _environment().get_template(name).render(values)


def verbatim(name: str) -> str:
    """A file of `templates/project` as it is."""
    return (paths.templates_dir() / "project" / name).read_text(encoding="utf-8")


def toml(value: Json) -> Code:
    """A value as TOML, in ASCII."""
    return Code(toml_value(value))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(paths.templates_dir() / "project"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=checked,
    )
    filters: Mapping[str, Any] = {"literal": literal, "docstring": docstring}
    environment.filters.update(filters)
    return environment
