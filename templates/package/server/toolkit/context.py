"""What a registered function can ask and tell while it serves a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Raw

from ..._wire import members_of
from ...channel import RequestId
from ...protocol.capabilities import CAPABILITY, settings_of
from ...runtime.request_context import RequestContext
from .client_features.context_methods import ContextMethods
from .client_features.feature_settings import FeatureSettings

if TYPE_CHECKING:
    from ..server_session import ServerSession

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""Severity of a log message (RFC 5424), least first."""


class Context(ContextMethods):
    """The request being served, for the function that serves it.

    A parameter annotated with this class gets it, whatever its name. Its coroutines run in the
    event loop; a plain function, which runs in a thread, calls them by
    `anyio.from_thread.run(ctx.progress, 1)`.

    Attributes:
        exchange: The request with everything that came with it.
        state: What the server's `lifespan` yielded, or `None`.
    """

    __slots__ = ("state",)

    def __init__(self, exchange: RequestContext, state: Any, means: FeatureSettings) -> None:
        super().__init__(exchange, means)
        self.state = state

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request, as the client chose it."""
        return self.exchange.request_id

    @property
    def revision(self) -> str:
        """Name of the revision that the request is served by, such as `2025-06-18`."""
        return self.exchange.revision.name

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """How the client calls itself, as wire object, if it said so."""
        return self.exchange.peer_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declared, as wire object."""
        return self.exchange.peer_capabilities

    def client_extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings by which the client declares an extension; `None` if it does not.

        Without it, do what the core protocol has, or raise
        `MissingCapabilityError(("extensions", identifier), ...)`.

        Source: basic/versioning#extension-negotiation (2026-07-28).
        """
        if CAPABILITY not in members_of(self.exchange.revision.client_capabilities):
            return None
        return settings_of(self.exchange.peer_capabilities, identifier)

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request, empty if absent."""
        return self.exchange.meta

    @property
    def raw_params(self) -> Raw | None:
        """The params as they came, members included that no type knows."""
        return self.exchange.raw_params

    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress; nothing is sent if the client did not ask for it.

        Args:
            value: How far it is; each report has to say more than the one before.
            total: What `value` counts up to, if known.
            message: What is happening now.

        Source: basic/utilities/progress.
        """
        await self.exchange.progress(value, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants messages of this level.

        Args:
            level: Its severity.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        await self.exchange.log(level, data, logger)

    async def debug(self, data: Any, logger: str | None = None) -> None:
        """Log something of use while debugging."""
        await self.exchange.log("debug", data, logger)

    async def info(self, data: Any, logger: str | None = None) -> None:
        """Log something worth knowing."""
        await self.exchange.log("info", data, logger)

    async def warning(self, data: Any, logger: str | None = None) -> None:
        """Log something that may turn out wrong."""
        await self.exchange.log("warning", data, logger)

    async def error(self, data: Any, logger: str | None = None) -> None:
        """Log something that went wrong."""
        await self.exchange.log("error", data, logger)

    async def close_stream(self) -> None:
        """Close the connection that the answer is to come on, so that none is held open for long.

        The client comes back for what is said from then on, the result included; say so early in
        what takes long. Does nothing where a client would not come back: over other transports
        than Streamable HTTP, in revisions without polling, without a store of events.

        Source: basic/transports#sending-messages-to-the-server (2025-11-25).
        """
        await self.exchange.close_stream()

    @property
    def client(self) -> ServerSession:
        """What a server may ask and tell its client, typed: `create_message`, `elicit`, ...

        Each coroutine raises what `request` does.
        """
        from ..server_session import ServerSession  # of use to few tools, and not small

        return ServerSession(self.exchange)

    async def request(
        self, method: str, params: Any = None, *, timeout: float | None = None
    ) -> Any:
        """Ask the client something on behalf of this request.

        Args:
            method: Such as `elicitation/create`.
            params: Typed params or a wire object.
            timeout: Seconds to wait; `None` for no limit.

        Returns:
            The typed result.

        Raises:
            MissingCapabilityError: The client did not declare what it needs; nothing was sent.
            LocalProtocolError: The revision does not let a server ask; see `InputRequired`.
            RemoteError: The client refused.
            RequestTimeoutError: No answer in time.
        """
        return await self.exchange.request(method, params, timeout=timeout)
