"""The client method that reads the user interface of a tool (MCP Apps).

Source: ext-apps/specification/2026-01-26/apps.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from .._wire import UNSET
from ..apps import MIME_TYPE, UiResource, resource_ui, ui_members, ui_of
from ..errors import McpError, RemoteProtocolError
from ..foreign_text import safe_repr

_LIST, _READ = "resources/list", "resources/read"


class AppCalls:
    """Adds `read_ui` to a client."""

    _requests: Any  # sends the requests of the client

    async def read_ui(self, tool: object, *, timeout: float | None = None) -> UiResource:
        """The user interface of a listed tool.

        The document is code of the server: show it in a sandbox, under `csp.policy`, from a
        separate origin, and let it call tools only after the user's consent.

        Args:
            tool: The tool, as `list_tools` returns it.
            timeout: Seconds for each request; `None` for no limit.

        Raises:
            ValueError: The tool has no user interface.
            RemoteError: The server answered with an error.
            RemoteProtocolError: The resource is not an MCP Apps document.
            RequestTimeoutError: No response in time.
        """
        uri = ui_of(tool).resource_uri
        if uri is None:
            name = safe_repr(getattr(tool, "name", tool))
            raise ValueError(f"tool {name}: expected one with a URI ui://... in _meta.ui")
        result = await self._requests.call(_READ, {"uri": uri}, None, timeout, None)
        contents = next((each for each in result.contents if each.uri == uri), None)
        mime_type = getattr(contents, "mime_type", None)
        if not isinstance(mime_type, str) or _normalize_mime_type(mime_type) != MIME_TYPE:
            raise RemoteProtocolError(
                f"{safe_repr(uri)}: expected {MIME_TYPE}, got {safe_repr(mime_type)}"
            )
        html, ui = _text_of(contents, uri), ui_members(getattr(contents, "meta", None))
        return resource_ui(uri, html, ui or await self._listed_ui(uri, timeout))

    async def _listed_ui(self, uri: str, timeout: float | None) -> Mapping[str, Any]:
        """The metadata in `resources/list` of a user interface, if exactly one server lists it."""
        try:
            resources = await self._requests.pages(_LIST, {}, None, timeout)
        except McpError:
            return {}  # a server need not list its user interfaces
        listed = [each for each in resources if each.uri == uri]
        return ui_members(getattr(listed[0], "meta", None)) if len(listed) == 1 else {}


def _normalize_mime_type(mime_type: str) -> str:
    return mime_type.replace(" ", "").replace('"', "").lower()


def _text_of(contents: Any, uri: str) -> str:
    """The document in contents of a resource.

    Raises:
        RemoteProtocolError: The contents are not UTF-8 text.
    """
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return text
    blob = getattr(contents, "blob", "")
    try:
        return base64.b64decode("" if blob is UNSET else blob, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, TypeError) as error:
        raise RemoteProtocolError(f"{safe_repr(uri)}: expected UTF-8: {error}") from None
