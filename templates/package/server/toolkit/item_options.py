"""Options of a tool, for functions that pass them on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict

from .content import Icon, ToolAnnotations
from .tools import FromSignature, ToolRunner


class ToolOptions(TypedDict, total=False):
    """The options of `Server.tool`, which describes them."""

    title: str | None
    description: str | None
    annotations: ToolAnnotations | Mapping[str, Any] | None
    icons: Sequence[Icon]
    meta: Mapping[str, Any] | None
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | FromSignature | None
    scopes: Collection[str]
    timeout: float | None
    tags: Collection[str]
    runner: ToolRunner | None
