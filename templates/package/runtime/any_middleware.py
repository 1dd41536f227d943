"""What middleware of clients and of servers have in common, for middleware that fits both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from ..channel import RequestId
from ..facts import Role


class MiddlewareMessage(Protocol):
    """A request or notification: a `MiddlewareRequest` of a server, or a `ClientRequest`."""

    @property
    def role(self) -> Role:
        """The side whose middleware this is; a client sends the message, a server handles it."""
        ...

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        ...

    @property
    def is_notification(self) -> bool:
        """Whether no response is expected."""
        ...

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request; `None` for a notification, and on a client until it was sent."""
        ...

    @property
    def target(self) -> str | None:
        """Name of the tool or prompt, or URI of the resource; `None` if there is none."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta`; on a client the members that are added to it."""
        ...

    def with_meta(self, meta: Mapping[str, Any]) -> Self:
        """The same message with more members in `_meta`, for `next`."""
        ...

    @property
    def revision(self) -> str:
        """Name of the revision of the message."""
        ...

    @property
    def session_id(self) -> str | None:
        """Id of the session, where it is known."""
        ...

    @property
    def transport(self) -> str:
        """Name of the transport, such as `stdio`, `HTTP` and `memory`."""
        ...


Message = TypeVar("Message", bound=MiddlewareMessage)


class AnyMiddleware(Protocol):
    """Middleware for `Server.middleware` and for `Client.middleware`."""

    def __call__(
        self, request: Message, next: Callable[[Message], Awaitable[Any]], /
    ) -> Awaitable[Any]:
        """The result of a request."""
        ...
