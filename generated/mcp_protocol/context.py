"""What a registered function can ask and tell while it serves a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from .channel import RequestId
from .exchange import Exchange

if TYPE_CHECKING:
    from .sessions import ServerSession

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""Severity of a log message (RFC 5424), least first."""


class Context:
    """The request being served, for the function that serves it.

    A parameter annotated with this class gets it, whatever its name. Its coroutines run in the
    event loop; a plain function, which runs in a thread, calls them by
    `anyio.from_thread.run(ctx.progress, 1)`.

    Attributes:
        exchange: The request with everything that came with it.
        state: What the server's `lifespan` yielded, or `None`.
    """

    __slots__ = ("exchange", "state")

    def __init__(self, exchange: Exchange, state: Any = None) -> None:
        self.exchange = exchange
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

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request, empty if absent."""
        return self.exchange.meta

    @property
    def raw_params(self) -> Raw | None:
        """The params as they came, members included that no type knows."""
        return self.exchange.raw_params

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """Answers to what an earlier `InputRequired` asked, as wire objects by its keys.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        found: Any = getattr(self.exchange.params, "input_responses", None)
        return msgspec.to_builtins(found) if found else {}

    @property
    def request_state(self) -> str | None:
        """State of an earlier `InputRequired`, as the client gave it back: not to be trusted.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        found: Any = getattr(self.exchange.params, "request_state", None)
        return found if isinstance(found, str) else None

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

    @property
    def client(self) -> ServerSession:
        """What a server may ask and tell its client, typed: `create_message`, `elicit`, ...

        Each coroutine raises what `request` does.
        """
        from .sessions import ServerSession  # of use to few tools, and not small

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
        """
        return await self.exchange.request(method, params, timeout=timeout)
