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

or over HTTP, by `connect("http://127.0.0.1:8000/mcp")`, or, without an event loop:

    with connect_sync(["python", "weather.py"]) as client:
        result = client.call_tool("forecast", {"city": "Oslo"})

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
    from .addresses import (
        safe_url,
    )
    from .asgi.events import (
        EventStore,
        MemoryEventStore,
        StoredEvent,
    )
    from .asgi.settings import (
        HttpSettings,
        Limits,
    )
    from .channel import (
        Channel,
    )
    from .client import (
        Client,
        ClientHandlers,
        connect,
    )
    from .client_side.caching import (
        Caching,
    )
    from .client_side.changes import (
        Change,
        ListeningAgain,
        NotificationFilter,
        PromptsChanged,
        ResourcesChanged,
        ResourceUpdated,
        ToolsChanged,
    )
    from .client_side.connecting import (
        Timeouts,
    )
    from .client_side.icons import (
        safe_icons,
    )
    from .client_side.model_choice import (
        choose_model,
    )
    from .client_sync import (
        SyncClient,
        SyncClientHandlers,
        connect_sync,
    )
    from .errors import (
        AnswerLostError,
        ConnectFailedError,
        ConnectionClosedError,
        HttpStatusError,
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
        SessionLostError,
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
    from .toolkit.asking.elicitation import (
        Accepted,
        Cancelled,
        Declined,
    )
    from .toolkit.asking.form_fields import (
        titles,
    )
    from .toolkit.asking.inputs import (
        InputRequired,
    )
    from .toolkit.asking.out_of_band import (
        URLElicitation,
        URLElicitationRequiredError,
    )
    from .toolkit.asking.roots import (
        Root,
    )
    from .toolkit.asking.sampling import (
        ModelPreferences,
        Sampled,
        SamplingMessage,
        ToolUse,
        ToolUseResult,
    )
    from .toolkit.caching import (
        CacheHint,
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
    from .toolkit.context import (
        Context,
    )
    from .toolkit.server import (
        Server,
    )
    from .toolkit.uris import (
        AnyPath,
    )

__all__ = [
    "UNSET",
    "UnsetType",
    "safe_url",
    "EventStore",
    "MemoryEventStore",
    "StoredEvent",
    "HttpSettings",
    "Limits",
    "Channel",
    "Client",
    "ClientHandlers",
    "connect",
    "Caching",
    "Change",
    "ListeningAgain",
    "NotificationFilter",
    "PromptsChanged",
    "ResourcesChanged",
    "ResourceUpdated",
    "ToolsChanged",
    "Timeouts",
    "safe_icons",
    "choose_model",
    "SyncClient",
    "SyncClientHandlers",
    "connect_sync",
    "AnswerLostError",
    "ConnectFailedError",
    "ConnectionClosedError",
    "HttpStatusError",
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
    "SessionLostError",
    "ToolError",
    "TransportError",
    "Exchange",
    "Hints",
    "hints_of",
    "REVISIONS",
    "ServerSession",
    "Accepted",
    "Cancelled",
    "Declined",
    "titles",
    "InputRequired",
    "URLElicitation",
    "URLElicitationRequiredError",
    "Root",
    "ModelPreferences",
    "Sampled",
    "SamplingMessage",
    "ToolUse",
    "ToolUseResult",
    "CacheHint",
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
    "Context",
    "Server",
    "AnyPath",
]

_HOMES = {
    "UNSET": "._wire",
    "UnsetType": "._wire",
    "safe_url": ".addresses",
    "EventStore": ".asgi.events",
    "MemoryEventStore": ".asgi.events",
    "StoredEvent": ".asgi.events",
    "HttpSettings": ".asgi.settings",
    "Limits": ".asgi.settings",
    "Channel": ".channel",
    "Client": ".client",
    "ClientHandlers": ".client",
    "connect": ".client",
    "Caching": ".client_side.caching",
    "Change": ".client_side.changes",
    "ListeningAgain": ".client_side.changes",
    "NotificationFilter": ".client_side.changes",
    "PromptsChanged": ".client_side.changes",
    "ResourcesChanged": ".client_side.changes",
    "ResourceUpdated": ".client_side.changes",
    "ToolsChanged": ".client_side.changes",
    "Timeouts": ".client_side.connecting",
    "safe_icons": ".client_side.icons",
    "choose_model": ".client_side.model_choice",
    "SyncClient": ".client_sync",
    "SyncClientHandlers": ".client_sync",
    "connect_sync": ".client_sync",
    "AnswerLostError": ".errors",
    "ConnectFailedError": ".errors",
    "ConnectionClosedError": ".errors",
    "HttpStatusError": ".errors",
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
    "SessionLostError": ".errors",
    "ToolError": ".errors",
    "TransportError": ".errors",
    "Exchange": ".exchange",
    "Hints": ".hints",
    "hints_of": ".hints",
    "REVISIONS": ".revisions",
    "ServerSession": ".sessions",
    "Accepted": ".toolkit.asking.elicitation",
    "Cancelled": ".toolkit.asking.elicitation",
    "Declined": ".toolkit.asking.elicitation",
    "titles": ".toolkit.asking.form_fields",
    "InputRequired": ".toolkit.asking.inputs",
    "URLElicitation": ".toolkit.asking.out_of_band",
    "URLElicitationRequiredError": ".toolkit.asking.out_of_band",
    "Root": ".toolkit.asking.roots",
    "ModelPreferences": ".toolkit.asking.sampling",
    "Sampled": ".toolkit.asking.sampling",
    "SamplingMessage": ".toolkit.asking.sampling",
    "ToolUse": ".toolkit.asking.sampling",
    "ToolUseResult": ".toolkit.asking.sampling",
    "CacheHint": ".toolkit.caching",
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
    "Context": ".toolkit.context",
    "Server": ".toolkit.server",
    "AnyPath": ".toolkit.uris",
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
