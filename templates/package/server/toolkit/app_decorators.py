"""MCP Apps of a server: tools with a user interface, and the documents that hosts show for them.

A client that does not show user interfaces gets the tools without them, and without those tools
that only a user interface may call. So does each client of a revision whose tools have no `_meta`.

Source: ext-apps/specification/2026-01-26/apps (resource discovery, capability negotiation).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping
from functools import cache
from os import PathLike
from typing import Any

import msgspec

from ..._wire import is_many, structs_in
from ...apps import MIME_TYPE, UI, VISIBILITIES, Csp, Permission, tool_ui, ui_wire
from ...foreign_text import is_uri
from ...protocol.lifecycle import CAPABILITY, settings_of
from ...runtime.request_context import RequestContext, checked_scopes
from .cache_hints import NO_CACHING, CacheHint
from .content import field_type, present_members
from .registry import Listed, checked_tags
from .resources import Resource
from .server import ServerKernel, wire_members
from .signatures import local_names
from .varying_registry import varying

_META = "_meta"
_DECLARED: Mapping[str, Any] = {CAPABILITY: {UI: {}}}

_logger = logging.getLogger(__name__)


class PlainTool(msgspec.Struct, frozen=True):
    """A tool as clients without user interfaces see it."""

    item: Listed

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The tool without its user interface; see `Tool`."""
        wire = self.item.wire(structured_content)
        meta = {name: value for name, value in wire[_META].items() if name != "ui"}
        rest = {name: value for name, value in wire.items() if name != _META}
        return {**rest, _META: meta} if meta else rest


class AppServer(ServerKernel):
    """A server with user interfaces of tools."""

    _unknown_uis: set[str]

    def _use_options(self, options: dict[str, Any]) -> None:
        self._unknown_uis = set()
        varying(self._dispatcher.registries)[0].view = self._tools_for
        super()._use_options(options)

    def ui(
        self,
        uri: str,
        html: str | PathLike[str] | Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        csp: Csp | None = None,
        permissions: Collection[Permission] = (),
        domain: str | None = None,
        prefers_border: bool | None = None,
        cache: CacheHint = NO_CACHING,
        scopes: Collection[str] = (),
        tags: Collection[str] = (),
    ) -> None:
        """Register a document as user interface of tools.

            server.ui("ui://weather/view.html", Path("view.html"))

        Args:
            uri: Its URI, which begins with `ui://`.
            html: The document: text, the path of a file, which is read for each request, or a
                function with the parameters of a resource's that returns text or bytes.
            name: Its name; the end of the URI by default.
            title: A name for display.
            description: What it is.
            csp: The origins that it may use; none by default.
            permissions: The capabilities of browsers that it asks for.
            domain: The origin that it wants to have, in the form of the host.
            prefers_border: Whether it wants a visible border; `None` leaves that to the host.
            cache: The cache hint of the document; always private if scopes are needed.
            scopes: Scopes that reading needs, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            FileNotFoundError: There is no such file.
            TypeError: The function has parameters that nothing gives.
            ValueError: The URI has another form or is registered already, the text has no HTML, or
                a permission is unknown.
        """
        check_ui_uri(uri, "uri")
        ui = ui_wire(csp, permissions, domain, prefers_border)
        required = checked_scopes(scopes)
        resource = UiDocument(
            html if callable(html) else _reader(html),
            uri,
            name=name or uri.rpartition("/")[2],
            mime_type=MIME_TYPE,
            members=wire_members(title, description, (), {"ui": ui} if ui else None),
            names=local_names(inspect.currentframe()),
            hint=cache.wire(private=required),
        )
        resource.scopes, resource.tags = required, checked_tags(tags)
        self._dispatcher.registries.resources.add(uri, resource)
        self._dispatcher.declare(_DECLARED)

    def _use_tool_options(self, options: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
        uri, visibility = options.pop("ui", None), options.pop("visibility", None)
        if uri is not None:
            check_ui_uri(uri, "ui")
        if visibility is not None:
            visibility = _checked_visibility(visibility)
        if ui := present_members(resourceUri=uri, visibility=visibility):
            self._dispatcher.declare(_DECLARED)
            members[_META] = {**members.get(_META, {}), "ui": ui}
        return super()._use_tool_options(options, members)

    def _tools_for(
        self, listed: Mapping[str, Listed], request: RequestContext
    ) -> Mapping[str, Listed]:
        """The tools as the client of a request may see them."""
        if not any(_has_ui(each) for each in listed.values()):
            return listed
        self._warn_of_unknown(listed)
        if carries_meta(request.method.result) and shows_apps(request.peer_capabilities):
            return {**listed}  # the page of all clients is that of those without user interfaces
        return {
            key: PlainTool(item) if _has_ui(item) else item
            for key, item in listed.items()
            if "model" in tool_ui(item.wire("any").get(_META)).visibility
        }

    def _warn_of_unknown(self, tools: Mapping[str, Listed]) -> None:
        """Log, once for each, the user interfaces of tools that are not registered."""
        dispatcher = self._dispatcher
        if not dispatcher.calls_tools_itself() or dispatcher.mounts:
            return  # others may serve them
        for key, tool in tools.items():
            uri = tool_ui(tool.wire("any").get(_META)).resource_uri
            is_known = uri is None or dispatcher.registries.resources.find(uri) is not None
            if uri is not None and not is_known and uri not in self._unknown_uis:
                self._unknown_uis.add(uri)
                _logger.warning("tool %r: its ui %r is not registered by server.ui", key, uri)


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities shows user interfaces."""
    settings = settings_of(capabilities, UI) or {}
    mime_types = settings.get("mimeTypes")
    return is_many(mime_types) and MIME_TYPE in mime_types


@cache
def carries_meta(result: Any) -> bool:
    """Whether the tools in a type of results have `_meta`; those of older revisions have none."""
    return any(field_type(tool, _META) for tool in structs_in(field_type(result, "tools")))


def check_ui_uri(uri: object, label: str) -> None:
    """Check the URI of a user interface.

    Raises:
        ValueError: It has another form.
    """
    if not isinstance(uri, str) or not uri.startswith("ui://") or "{" in uri or not is_uri(uri):
        raise ValueError(f"{label}: expected a URI such as ui://weather/view.html, got {uri!r}")


def _checked_visibility(visibility: Collection[str]) -> list[str]:
    if isinstance(visibility, str) or not visibility or {*visibility} - {*VISIBILITIES}:
        known = " or ".join(map(repr, VISIBILITIES))
        raise ValueError(f"visibility: expected a collection of {known}, got {visibility!r}")
    return [each for each in VISIBILITIES if each in visibility]


def _has_ui(item: Listed) -> bool:
    return "ui" in (item.wire("any").get(_META) or {})


class UiDocument(Resource):
    """A document whose metadata are sent both in the list and with the contents."""

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        contents = super()._contents(uri, value)
        meta = self._wire.get(_META)
        return [each if meta is None else {_META: meta, **each} for each in contents]


def _reader(html: str | PathLike[str]) -> Callable[[], Any]:
    """The function of a document that is a text or a file."""
    if not isinstance(html, str):
        from pathlib import Path  # takes long to import

        path = Path(html)
        if not path.is_file():
            raise FileNotFoundError(f"html: expected the path of a file, got {path}")
        return lambda: path.read_text("utf-8")
    if "<" not in html:
        raise ValueError(f"html: expected a document, or Path(...) of a file, got {html!r}")

    async def read() -> str:
        return html

    return read
