"""Names that mean something to Python, to Jinja, to the libraries of models, or to a package."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

import jinja2.defaults
import msgspec
import pydantic

import mcpgen_runtime
from mcpgen_runtime import SyncClient, facts
from mcpgen_runtime._wire import Struct
from mcpgen_runtime.client.chosen import ClientFeatures
from mcpgen_runtime.client.group_base import GroupBase
from mcpgen_runtime.runtime.stubs import HandlersBase

STUB_BASES: tuple[type[Any], ...] = (ClientFeatures, SyncClient, GroupBase, HandlersBase)
"""Base classes of the rendered classes that have a method for each message."""

_OWNERS = (
    *(dict, list, str, object, int, type, msgspec.Struct, pydantic.BaseModel, Struct),
    *(builtins, mcpgen_runtime, facts, mcpgen_runtime.Client, mcpgen_runtime.Server, *STUB_BASES),
)
_WORDS = (
    *("class_name", "fields", "members", "optional", "always_sent", "tag", "doc", "extra", "ctx"),
    *("self", "cls", "params", "meta", "timeout", "result", "models", "methods", "revision"),
    *("UNSET", "Field", "Any", "Meta", "Literal", "Annotated", "TypeAliasType", "TYPE_CHECKING"),
    *("x-note", "URL", "_private", "a b", "2nd", "none", "true", "$ref", "\xe9t\xe9", "a/b"),
)

WORDS = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *jinja2.defaults.DEFAULT_NAMESPACE, *_WORDS}
)
"""Words of languages and of what renders, each with a meaning of its own."""

NAMES: tuple[str, ...] = tuple(sorted({name for owner in _OWNERS for name in dir(owner)} | WORDS))
"""All of them, sorted."""


def names_to_try(every: bool) -> tuple[str, ...]:
    """All of them, or all words and each twentieth of the others, which are attributes."""
    attributes = [name for name in NAMES if name not in WORDS]
    return NAMES if every else tuple(sorted([*WORDS, *attributes[::20]]))
