"""MCP Apps of a server: the registration of tools with user interfaces, and of their documents.

Source: ext-apps/specification/2026-01-26/apps (resource discovery).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping
from os import PathLike
from typing import Any

from ...apps import MIME_TYPE, UI, VISIBILITIES, Csp, Permission, tool_ui, ui_wire
from ...foreign_text import is_uri
from ...protocol.lifecycle import CAPABILITY, merged_objects
from ...scopes import checked_scopes
from .content import present
from .decorators import Decorators
from .dependencies import local_names
from .registry import NO_CACHING, CacheHint, checked_tags

_logger = logging.getLogger(__name__)


class AppDecorators(Decorators):
    """The decorators, with user interfaces."""

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
        from .app_documents import UiDocument, reader  # loaded only if a server has documents

        check_ui_uri(uri, "uri")
        ui = ui_wire(csp, permissions, domain, prefers_border)
        if required := checked_scopes(scopes):
            cache = CacheHint(cache.ttl_ms, "private")
        resource = UiDocument(
            html if callable(html) else reader(html),
            uri,
            name=name or uri.rpartition("/")[2],
            mime_type=MIME_TYPE,
            members=present(title=title, description=description, _meta={"ui": ui} if ui else None),
            cache=cache,
            names=local_names(inspect.currentframe()),
        )
        resource.scopes, resource.tags = required, checked_tags(tags)
        self._resources.add(uri, resource)
        self._declare_apps()

    def _tool_meta(self, meta: Any, options: Mapping[str, Any]) -> Any:
        others = dict(options)
        uri, visibility = others.pop("ui", None), others.pop("visibility", None)
        super()._tool_meta(meta, others)
        if uri is None and visibility is None:
            return meta
        if uri is not None:
            check_ui_uri(uri, "ui")
        if visibility is not None:
            visibility = _checked_visibility(visibility)
        self._declare_apps()
        own: dict[str, Any] = {} if meta is None else dict(meta)
        return own | {"ui": present(resourceUri=uri, visibility=visibility)}

    def _declare_apps(self) -> None:
        declared = merged_objects(self._capabilities, {CAPABILITY: {UI: {}}})
        self._capabilities.update(declared)
        self._methods_changed()

    def _warn_of_missing_uis(self) -> None:
        """Log tools whose documents nobody registered, as far as all resources are known."""
        if self._low_level is not None or self._mounts is not None or self._is_open:
            return
        for key, tool in self._tools.items.items():
            uri = tool_ui(tool.wire("any").get("_meta")).resource_uri
            if uri is not None and self._resources.find(uri) is None:
                _logger.warning("tool %r: its ui %r is not registered by server.ui", key, uri)


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
