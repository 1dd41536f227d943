"""A request of a session over HTTP, which goes on if its client disconnects.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio

from ...channel import OutgoingMessage
from ...errors import INTERRUPTED, InternalError, ProtocolError
from ...protocol.connection import CancelReceived
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import RequestContext
from . import http_response
from .exchange import Exchange
from .http_response import SHUTTING_DOWN
from .http_session import HttpSession
from .open_exchanges import SessionExchanges
from .session_response import SessionResponse


class SessionExchange(Exchange):
    """A request in a session, its owner; see `Exchange`.

    Attributes:
        in_batch: Whether the request is part of a batch, which ends the response.
        kept: Bytes reserved for a change of subscriptions.
    """

    _owner: HttpSession
    exchanges: SessionExchanges
    response: SessionResponse | None
    kept: int | None = None
    in_batch: bool = False

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        return self.response is not None and self.response.connected

    async def serve_on_trio(self) -> None:
        """See `Exchange`; in a task of the lifespan, which goes on if the POST is cancelled."""
        with anyio.CancelScope() as scope:
            try:
                await self.exchanges.background.outlive(scope, self.serve)
            except anyio.get_cancelled_exc_class():
                self._leave_post()
                raise

    def new_response(self) -> SessionResponse:
        """See `Exchange`."""
        session = self._owner
        response = SessionResponse(
            self._request, self._receive, self._send, session.settings, session
        )
        session.users -= 1  # the response counts the client
        return response

    def begin(self) -> PendingRequests:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        peer = session.peer
        if not self.in_batch:
            session.users += 1
        session.exchanges[identifier] = self
        peer.scopes[identifier] = self
        exchanges = self.exchanges
        exchanges.open[self] = None
        if exchanges.added is not None:
            exchanges.wake()
        return peer.callers

    async def stream(self, context: RequestContext) -> Any:
        """See `Exchange`."""
        await self.writer().start()
        return await self._owner.service.application.handle(context)

    def respond(self, result: Any) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None  # and its id may be that of another request
        message = session.peer.connection.respond(identifier, result)
        session.exchanges.pop(identifier, None)
        return message

    def respond_failure(self, failure: ProtocolError) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None
        session.exchanges.pop(identifier, None)
        return session.peer.error_response(self.event, failure)

    async def reply(self, message: OutgoingMessage | None) -> None:
        """See `Exchange`."""
        if self._owner.stores:
            await self._owner.store_changes()
        if message is not None:
            await (self.response or self.writer()).send(message)
        else:
            await self._finish()

    async def close_stream(self) -> None:
        """Close the connection of the response; the client resumes the stream."""
        await self.writer().close_stream()

    async def cancelled(self) -> None:
        """See `Exchange`."""
        if self.cancel_called:  # the client cancelled the request
            await self._finish()
        else:  # the server ends
            await self.fail(SHUTTING_DOWN)

    async def host_cancelled(self, task: asyncio.Future[None]) -> None:
        """See `Exchange`; the request goes on."""
        self._leave_post()

    def take_place(self) -> None:
        """Take a place among the messages in flight, besides that of the POST."""
        self.places += 1
        self.exchanges.quotas.in_flight += 1

    def _leave_post(self) -> None:
        """Go on without the POST, which the host cancelled: its client is gone."""
        if self in self.exchanges.open:
            self.take_place()
            self.exchanges.abandon(self)

    async def watch(self) -> None:
        """See `Exchange`. If the client disconnects, the whole POST is abandoned."""
        response = self.writer()
        await response.watch()
        if response.disconnected:
            for exchange in list(self.exchanges.open):
                if exchange.response is response:
                    self.exchanges.abandon(exchange)

    async def fail(self, text: str) -> None:
        """See `Exchange`; responds for up to `PARTING_SECONDS`."""
        session, identifier = self._owner, self.event.id
        if session.exchanges.get(identifier) is not self:
            return
        message = session.peer.connection.fail(identifier, InternalError(text, data=INTERRUPTED))
        if message is not None:
            with (
                anyio.move_on_after(PARTING_SECONDS, shield=True) as waiting,
                suppress(Exception),  # exceptions of the ASGI server
            ):
                await session.send(message)
            if waiting.cancelled_caught and self.response is not None:
                self.response.sse.abort()
            await session.peer.handle(CancelReceived(identifier, text))

    async def end(self) -> None:
        """See `Exchange`."""
        session, identifier, exchanges = self._owner, self.event.id, self.exchanges
        scopes = session.peer.scopes
        if session.exchanges.get(identifier) is self:
            del session.exchanges[identifier]
        if scopes.get(identifier) is self:
            del scopes[identifier]
        del exchanges.open[self]
        if exchanges.abandoned:
            exchanges.end(self)
        exchanges.quotas.in_flight -= self.places
        if self.in_batch:
            return
        if self.response is None:
            session.leave()
        else:
            self.response.stop()
        if self.kept is not None:
            session.count_subscriptions(self.kept)
        if (session.ended or session.listening) and session.has_old_streams:
            with anyio.CancelScope(shield=True):
                await session.discard_streams()

    async def _finish(self) -> None:
        """End the response of a request that was cancelled, or whose session has ended."""
        if not self.in_batch:
            with anyio.CancelScope(shield=True):
                over = self._owner.over
                await self.writer().finish(http_response.session_ended() if over else None)
