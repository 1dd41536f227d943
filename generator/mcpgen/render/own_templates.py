"""Templates of the user beside those that make files: parts, added ones, those of models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcpgen.errors import SettingsError
from mcpgen.render.template_names import MODELS
from mcpgen.spec.values import Revision, Type
from mcpgen.toml_records import Place, convert, parse_toml

FRONT_MATTER = re.compile(r"\A\{#---\r?\n(.*?)^---#\}", re.DOTALL | re.MULTILINE)
"""The comment with TOML that a template may begin with."""


@dataclass(frozen=True)
class OwnTemplates:
    """Templates of model classes that replace mcpgen's.

    Attributes:
        texts: Their texts by file, such as `own/models/msgspec.jinja2`.
        imports: What their modules import for them, such as `acme.base.Model`.
        types: The types of the revision, which they get as `spec`, by name.
    """

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    imports: tuple[str, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])

    def for_revision(self, revision: Revision | None) -> OwnTemplates:
        """The same templates with the types of a revision."""
        return self if revision is None else replace(self, types=revision.types_by_name)


NO_TEMPLATES = OwnTemplates()


@dataclass(frozen=True)
class _ModelsFrontMatter:
    """The comment that a template of model classes may begin with.

    Attributes:
        imports: What its modules import for it.
    """

    imports: tuple[str, ...] = ()


def read_models(directory: Path) -> OwnTemplates:
    """The templates of model classes in a directory of overrides.

    Raises:
        SettingsError: Front matter is malformed.
    """
    texts: dict[str, str] = {}
    imports: dict[str, None] = {}
    for path in sorted((directory / MODELS).rglob("*.jinja2")):
        texts[path.as_posix()] = text = path.read_text(encoding="utf-8")
        match = FRONT_MATTER.match(text)
        if match is not None:
            table = parse_toml(match[1], str(path), SettingsError)
            front: _ModelsFrontMatter = convert(
                table, _ModelsFrontMatter, Place(str(path), SettingsError)
            )
            imports.update(dict.fromkeys(front.imports))
    return OwnTemplates(texts, tuple(imports))
