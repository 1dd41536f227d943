"""Base classes of the rendered stubs of extensions. Both sides must declare an extension.

Source: basic/versioning#extension-negotiation (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import MissingCapabilityError
from ..facts import Method
from ..protocol.lifecycle import CAPABILITY, settings_of
from ..protocol.requests import notification
from .request_context import RequestContext
from .stubs import HandlersBase, SessionBase, method_named, wire_params


class ExtensionHandlers(HandlersBase):
    """Base of the handler stubs of an extension.

    A request of a peer that does not declare the extension is refused, and a notification dropped.
    """

    mcp_stubs = True

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The coroutine function of a subclass for a method; `None` if it was not overridden."""
        handler = super().mcp_handler(method)
        if handler is None or method.capability[:1] != (CAPABILITY,):
            return handler

        async def handle_if_declared(params: Any, ctx: RequestContext) -> Any:
            identifier = method.capability[1]
            if _is_declared(ctx, identifier):
                return await handler(params, ctx)
            if ctx.request_id is not None:
                raise MissingCapabilityError((CAPABILITY, identifier), method.name)
            return None

        return handle_if_declared


class ExtensionSession(SessionBase):
    """Messages of a server on behalf of the request that it handles.

    A notification that subscriptions can filter goes to the subscription streams that include it;
    any other notification goes to the client of the request, on the stream of its response.
    """

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name, if the client declares the extension."""
        context = self._context
        revision = context.revision
        method = method_named(revision.server_notifications, name)
        params = wire_params(method, fields, revision.name)
        if method.facts.subscription is not None:
            await context.notify(name, params)
        elif _is_declared(context, method.capability[1]):
            message = notification("server", revision, name, params or {}, context.request_id)
            await context.peer.send(message)


def _is_declared(context: RequestContext, identifier: str) -> bool:
    """Whether the peer declares an extension, and in a session this side too.

    True for a notification without a session, which carries no capabilities.
    """
    session = context.peer.connection.session
    if session is None and context.request_id is None:
        return True
    if settings_of(context.peer_capabilities, identifier) is None:
        return False
    return session is None or settings_of(session.own_capabilities, identifier) is not None
