"""MCP Apps: the metadata of user interfaces of tools, as servers write and hosts read it.

A tool names an HTML document, a resource with a URI `ui://...`, which a host shows in a sandbox:

    tool        _meta.ui   {"resourceUri": "ui://weather/view.html", "visibility": ["model", "app"]}
    resource    _meta.ui   {"csp": {...}, "permissions": {...}, "domain": ..., "prefersBorder": ...}

Members that do not have the form of the specification are treated as absent, and thus allow
nothing.

Source: ext-apps/specification/2026-01-26/apps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from ._wire import is_many, is_object

UI = "io.modelcontextprotocol/ui"
"""The extension's identifier."""

MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of the documents."""

UI_EXTENSION: Mapping[str, Any] = {UI: {"mimeTypes": [MIME_TYPE]}}
"""The extension as clients declare it: `capabilities={"extensions": UI_EXTENSION}`."""

Visibility: TypeAlias = Literal["model", "app"]
"""The callers of a tool: the model, or the user interface."""

Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboard_write"]
"""A capability of browsers that a user interface asks for."""

VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)

_PERMISSIONS: Mapping[str, Permission] = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboardWrite": "clipboard_write",
}
"""The permissions by their names on the wire."""

DOMAINS_CHARACTERS = 4096
"""Most characters of the origins of one kind in a document of a server; the rest is left out."""

_ORIGIN = re.compile(r"(?:https?|wss?)://(?:\*\.)?[A-Za-z0-9.-]+(?::(?:\d+|\*))?")


@dataclass(frozen=True)
class Csp:
    """The origins that a user interface may use, such as `https://*.example.com`; by default none.

    Attributes:
        connect_domains: Origins of network requests.
        resource_domains: Origins of scripts, styles, images, fonts and media.
        frame_domains: Origins of frames inside.
        base_uri_domains: Origins of base URIs.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: A value is not an origin of HTTP or WebSocket.
    """

    connect_domains: Collection[str] = ()
    resource_domains: Collection[str] = ()
    frame_domains: Collection[str] = ()
    base_uri_domains: Collection[str] = ()

    def __post_init__(self) -> None:
        for name, domains in vars(self).items():
            if isinstance(domains, str):
                raise TypeError(f"{name}: expected a collection of origins, got {domains!r}")
            for domain in domains:
                if not _ORIGIN.fullmatch(domain):
                    raise ValueError(
                        f"{name}: expected an origin such as https://example.com, got {domain!r}"
                    )
            object.__setattr__(self, name, tuple(domains))

    @property
    def policy(self) -> str:
        """The Content-Security-Policy under which a host shows the user interface."""
        resources = " ".join(self.resource_domains)
        inline = f"'self' 'unsafe-inline' {resources}"
        directives = {
            "default-src": "'none'",
            "script-src": inline,
            "style-src": inline,
            "connect-src": " ".join(self.connect_domains) or "'none'",
            "img-src": f"'self' data: {resources}",
            "font-src": f"'self' data: {resources}",
            "media-src": f"'self' data: {resources}",
            "frame-src": " ".join(self.frame_domains) or "'none'",
            "object-src": "'none'",
            "base-uri": " ".join(self.base_uri_domains) or "'self'",
            "form-action": "'none'",
        }
        return "; ".join(f"{name} {value.rstrip()}" for name, value in directives.items())


class UiToolOptions(TypedDict, total=False):
    """Further options of `Server.tool`.

    Attributes:
        ui: URI of the document that shows the tool's results, as registered by `Server.ui`.
        visibility: The allowed callers: `model`, `app` (the document), or both, the default.
    """

    ui: str
    visibility: Collection[Visibility]


@dataclass(frozen=True)
class ToolUi:
    """The user interface of a tool, as the tool states it.

    Attributes:
        resource_uri: URI of the document; `None` for a tool without one.
        visibility: The allowed callers.
    """

    resource_uri: str | None = None
    visibility: frozenset[Visibility] = frozenset(VISIBILITIES)


@dataclass(frozen=True)
class UiResource:
    """The user interface of a tool, as a server provides it: untrusted code for a sandbox.

    Attributes:
        uri: The URI of the resource.
        html: The document.
        csp: The origins that the document may use.
        permissions: The capabilities of browsers that the document requests.
        domain: The origin that the document requests; its form depends on the host.
        prefers_border: Whether a visible border is preferred; `None` leaves that to the host.
    """

    uri: str
    html: str
    csp: Csp = Csp()
    permissions: frozenset[Permission] = frozenset()
    domain: str | None = None
    prefers_border: bool | None = None


def ui_of(tool: Any) -> ToolUi:
    """The user interface of a listed tool of any revision."""
    return tool_ui(getattr(tool, "meta", None))


def tool_ui(meta: Any) -> ToolUi:
    """The user interface of a tool, read from the tool's `_meta`."""
    ui = ui_members(meta)
    uri = ui.get("resourceUri")
    if uri is None and is_object(meta):
        uri = meta.get("ui/resourceUri")  # the name before the published version
    visibility = ui.get("visibility")
    if not is_many(visibility):
        visibility = VISIBILITIES
    return ToolUi(
        uri if isinstance(uri, str) and uri.startswith("ui://") else None,
        frozenset(each for each in VISIBILITIES if each in visibility),
    )


def ui_members(meta: Any) -> Mapping[str, Any]:
    """The member `ui` of `_meta`; empty if there is none."""
    ui: Any = meta.get("ui") if is_object(meta) else None
    return ui if is_object(ui) else {}


def resource_ui(uri: str, html: str, ui: Mapping[str, Any]) -> UiResource:
    """A user interface from its document and the member `ui` in `_meta` of the resource."""
    csp, permissions = ui.get("csp"), ui.get("permissions")
    domain, border = ui.get("domain"), ui.get("prefersBorder")
    domains = {
        name: _origins(csp.get(_wire_name(name)) if is_object(csp) else None)
        for name in Csp.__dataclass_fields__
    }
    requested: Iterable[str] = permissions if is_object(permissions) else ()
    return UiResource(
        uri,
        html,
        Csp(**domains),
        frozenset(_PERMISSIONS[name] for name in requested if name in _PERMISSIONS),
        domain if isinstance(domain, str) else None,
        border if isinstance(border, bool) else None,
    )


def ui_wire(
    csp: Csp | None,
    permissions: Collection[Permission],
    domain: str | None,
    prefers_border: bool | None,
) -> dict[str, Any]:
    """The wire object for the member `ui` in `_meta` of a resource.

    Raises:
        ValueError: A permission is unknown.
    """
    if unknown := [each for each in permissions if each not in _PERMISSIONS.values()]:
        allowed = ", ".join(_PERMISSIONS.values())
        raise ValueError(f"permissions: expected {allowed}, got {', '.join(map(repr, unknown))}")
    names = [name for name, each in _PERMISSIONS.items() if each in permissions]
    domains = {_wire_name(name): list(each) for name, each in vars(csp or Csp()).items() if each}
    members: dict[str, Any] = {
        "csp": domains or None,
        "permissions": {name: {} for name in names} or None,
        "domain": domain,
        "prefersBorder": prefers_border,
    }
    return {name: value for name, value in members.items() if value is not None}


def _wire_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.title() for each in rest)


def _origins(values: Any) -> tuple[str, ...]:
    """The values that are valid origins, each once: others must not reach a security policy, which
    is a header field of bounded length."""
    if not is_many(values):
        return ()
    left = DOMAINS_CHARACTERS
    origins: dict[str, None] = {}
    for each in values:
        if isinstance(each, str) and len(each) <= left and _ORIGIN.fullmatch(each):
            if each not in origins:
                left -= len(each)
            origins[each] = None
    return tuple(origins)
