"""Client and server of the Model Context Protocol.

Revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.

Write a server:

    from mcp_protocol import Server

    server = Server("weather")

    @server.tool()
    def forecast(city: str) -> str: ...

    server.run()

Use one:

    from mcp_protocol import connect

    async with connect(["python", "weather.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

The messages of a revision are in its own subpackage, those of all revisions in `models`. Nothing
is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._wire import (
        UNSET,
        UnsetType,
    )
    from .channel import (
        Channel,
    )
    from .client import (
        Client,
        ClientHandlers,
        connect,
    )
    from .connecting import (
        Timeouts,
    )
    from .context import (
        Context,
    )
    from .errors import (
        ConnectionClosedError,
        InvalidParamsError,
        LocalProtocolError,
        McpError,
        MethodNotFoundError,
        MissingCapabilityError,
        MissingExtraError,
        ProtocolError,
        RemoteError,
        RemoteProtocolError,
        RequestCancelledError,
        RequestTimeoutError,
        ResourceNotFoundError,
        RevisionError,
        ServerStartError,
        ToolError,
        TransportError,
    )
    from .exchange import (
        Exchange,
    )
    from .hints import (
        Hints,
        hints_of,
    )
    from .revisions import (
        REVISIONS,
    )
    from .sessions import (
        ServerSession,
    )
    from .toolkit.completion import (
        Completion,
    )
    from .toolkit.content import (
        Annotations,
        Audio,
        Contents,
        EmbeddedResource,
        Icon,
        Image,
        Message,
        ResourceLink,
        Text,
        ToolAnnotations,
        ToolResult,
    )
    from .toolkit.inputs import (
        InputRequired,
    )
    from .toolkit.server import (
        Server,
    )

__all__ = [
    "UNSET",
    "UnsetType",
    "Channel",
    "Client",
    "ClientHandlers",
    "connect",
    "Timeouts",
    "Context",
    "ConnectionClosedError",
    "InvalidParamsError",
    "LocalProtocolError",
    "McpError",
    "MethodNotFoundError",
    "MissingCapabilityError",
    "MissingExtraError",
    "ProtocolError",
    "RemoteError",
    "RemoteProtocolError",
    "RequestCancelledError",
    "RequestTimeoutError",
    "ResourceNotFoundError",
    "RevisionError",
    "ServerStartError",
    "ToolError",
    "TransportError",
    "Exchange",
    "Hints",
    "hints_of",
    "REVISIONS",
    "ServerSession",
    "Completion",
    "Annotations",
    "Audio",
    "Contents",
    "EmbeddedResource",
    "Icon",
    "Image",
    "Message",
    "ResourceLink",
    "Text",
    "ToolAnnotations",
    "ToolResult",
    "InputRequired",
    "Server",
]

_HOMES = {
    "UNSET": "._wire",
    "UnsetType": "._wire",
    "Channel": ".channel",
    "Client": ".client",
    "ClientHandlers": ".client",
    "connect": ".client",
    "Timeouts": ".connecting",
    "Context": ".context",
    "ConnectionClosedError": ".errors",
    "InvalidParamsError": ".errors",
    "LocalProtocolError": ".errors",
    "McpError": ".errors",
    "MethodNotFoundError": ".errors",
    "MissingCapabilityError": ".errors",
    "MissingExtraError": ".errors",
    "ProtocolError": ".errors",
    "RemoteError": ".errors",
    "RemoteProtocolError": ".errors",
    "RequestCancelledError": ".errors",
    "RequestTimeoutError": ".errors",
    "ResourceNotFoundError": ".errors",
    "RevisionError": ".errors",
    "ServerStartError": ".errors",
    "ToolError": ".errors",
    "TransportError": ".errors",
    "Exchange": ".exchange",
    "Hints": ".hints",
    "hints_of": ".hints",
    "REVISIONS": ".revisions",
    "ServerSession": ".sessions",
    "Completion": ".toolkit.completion",
    "Annotations": ".toolkit.content",
    "Audio": ".toolkit.content",
    "Contents": ".toolkit.content",
    "EmbeddedResource": ".toolkit.content",
    "Icon": ".toolkit.content",
    "Image": ".toolkit.content",
    "Message": ".toolkit.content",
    "ResourceLink": ".toolkit.content",
    "Text": ".toolkit.content",
    "ToolAnnotations": ".toolkit.content",
    "ToolResult": ".toolkit.content",
    "InputRequired": ".toolkit.inputs",
    "Server": ".toolkit.server",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
