"""MCP Apps in lists of tools: what a client sees of user interfaces.

A client that does not show user interfaces gets the tools without them, and without those tools
that only a user interface may call. So does each client of a revision whose tools have no `_meta`.

Source: ext-apps/specification/2026-01-26/apps (visibility, capability negotiation).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from ..._wire import is_many
from ...apps import MIME_TYPE, UI, tool_ui
from ...protocol.lifecycle import settings_of
from ...runtime.request_context import RequestContext
from .registry import Listed, Registry
from .revision_types import field_type, structs_in

_META = "_meta"


class ToolRegistry(Registry[Any]):
    """The tools, of which clients without user interfaces see less."""

    async def page(self, request: RequestContext) -> Any:
        """A page of the list; for the arguments and errors see `Registry`."""
        listed = self.visible_items(request)
        if any(_has_ui(each) for each in listed.values()):
            return self.page_of(request, listed)
        return await super().page(request)

    def page_of(self, request: RequestContext, listed: Mapping[str, Listed]) -> Any:
        """The same for a list that is not the same for all."""
        if not (carries_meta(request.method.result) and shows_apps(request.peer_capabilities)):
            listed = {
                key: PlainTool(item) if _has_ui(item) else item
                for key, item in listed.items()
                if "model" in tool_ui(item.wire("any").get(_META)).visibility
            }
        return super().page_of(request, listed)


class PlainTool(msgspec.Struct, frozen=True):
    """A tool as clients without user interfaces see it."""

    item: Listed

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The tool without its user interface; see `Tool`."""
        wire = self.item.wire(structured_content)
        meta = {name: value for name, value in wire[_META].items() if name != "ui"}
        rest = {name: value for name, value in wire.items() if name != _META}
        return {**rest, _META: meta} if meta else rest


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities shows user interfaces."""
    settings = settings_of(capabilities, UI) or {}
    mime_types = settings.get("mimeTypes")
    return is_many(mime_types) and MIME_TYPE in mime_types


@cache
def carries_meta(result: Any) -> bool:
    """Whether the tools in a type of results have `_meta`, as those of older revisions have not."""
    return any(field_type(tool, _META) for tool in structs_in(field_type(result, "tools")))


def _has_ui(item: Listed) -> bool:
    return "ui" in (item.wire("any").get(_META) or {})
