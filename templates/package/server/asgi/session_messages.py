"""POSTs in sessions that are no single request: notifications, responses and batches.

The response to a POST without requests comes first, since a handler may wait for the next message
of the client. A batch has one response for all its requests, each of which is an exchange.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import anyio

from ...protocol import jsonrpc
from ...protocol.connection import Event, RequestReceived, Send
from ...protocol.handshake import FOLLOWING
from ...runtime.eager_tasks import run_eagerly
from . import http_response
from . import request as http
from .http_response import HttpResponse, Refused
from .http_session import HttpSession
from .open_exchanges import SessionExchanges
from .quotas import starts_work
from .session_exchange import SessionExchange
from .session_response import SessionResponse
from .settings import Limits


class SessionMessages:
    """The messages of one POST.

    Args:
        session: The session.
        exchanges: The open exchanges of all sessions.
        message: The message; `None` for a batch.
        messages: The message, or the messages of the batch.

    Attributes:
        attended: Whether a client waits for the end of the work.
    """

    attended = False

    def __init__(
        self,
        session: HttpSession,
        exchanges: SessionExchanges,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
    ) -> None:
        self._session = session
        self._exchanges = exchanges
        self._messages = messages
        self._is_batch = message is None
        self._requests = [each for each in messages if isinstance(each, jsonrpc.Request)]
        self._scope = anyio.CancelScope()

    async def serve(
        self,
        request: http.HttpRequest,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        """Respond to the POST.

        Raises:
            Refused: The messages are not served.
        """
        session = self._session
        refused = self._invalid_message()
        if refused is not None:
            first = self._messages[0]
            assert isinstance(first, jsonrpc.InvalidMessage)
            is_ours = first.response and first.id is not None  # it fails a request of this side
            await self._respond_then_handle(refused, self._receive() if is_ours else (), send)
            return
        self._check(session.settings.limits)
        kept = 0
        if not FOLLOWING.isdisjoint([each.method for each in self._requests]):
            kept = await session.reserve_message(len(body))
        events = self._receive()
        await session.store_changes()
        expected = sum(isinstance(event, (RequestReceived, Send)) for event in events)
        if not expected:
            accepted = HttpResponse(session.revision.facts.http.accepted)
            await self._respond_then_handle(accepted, events, send)
            return
        response = SessionResponse(request, receive, send, session.settings, session, expected)
        exchanges = [
            SessionExchange(session, self._exchanges, request, receive, send, event, None, response)
            for event in events
            if isinstance(event, RequestReceived)
            and event.id in session.peer.connection.state.inbound  # not cancelled by the batch
        ]
        try:
            await self._serve_batch(response, exchanges, events)
        finally:
            response.stop()
            self._exchanges.end(self)
            if kept:
                session.count_subscriptions(kept)
            if session.has_old_streams:
                with anyio.CancelScope(shield=True):
                    await session.discard_streams()

    async def fail(self, text: str) -> None:
        """Cancel the handlers of notifications and responses."""
        self._scope.cancel()

    def _invalid_message(self) -> HttpResponse | None:
        """The response to a POST that has one message, which is invalid."""
        first = self._messages[0]
        if len(self._messages) > 1 or not isinstance(first, jsonrpc.InvalidMessage):
            return None
        if self._is_batch and not self._session.revision.batching:
            return None
        return http_response.invalid_message(first)

    def _check(self, limits: Limits) -> None:
        """Check that the messages may be served.

        Raises:
            Refused: The revision has no batches, or a limit is reached.
        """
        session, requests = self._session, len(self._requests)
        if self._is_batch and not session.revision.batching:
            text = "expected one JSON-RPC message, got an array"
            raise Refused(http_response.refusal(session.revision.facts.http.rejected, text))
        if (requests and len(session.exchanges) + requests > limits.per_session) or (
            session.handling >= limits.per_session and any(map(starts_work, self._messages))
        ):
            raise Refused(http_response.over_limit("per_session"))
        # One place is counted already, as for each POST.
        if requests > 1 and not self._exchanges.quotas.has_room(requests - 1):
            raise Refused(http_response.over_limit("in_flight"))

    def _receive(self) -> Sequence[Event]:
        """Pass the messages to the protocol."""
        peer = self._session.peer
        now = anyio.current_time() if peer.callers.timed else 0.0
        if self._is_batch:
            return peer.connection.receive_batch(self._messages, now)
        return peer.connection.receive_message(self._messages[0], now)

    async def _respond_then_handle(
        self, response: HttpResponse, events: Sequence[Event], send: http.Send
    ) -> None:
        session = self._session
        session.users += 1
        with suppress(OSError):
            await response.send(send)
        session.leave()
        session.handling += 1
        try:
            with self._scope:
                await run_eagerly(self._handle(events), lambda: self._exchanges.abandon(self))
        finally:
            session.handling -= 1
            self._exchanges.end(self)

    async def _handle(self, events: Sequence[Event]) -> None:
        """Handle events other than requests, in order."""
        for event in events:
            if not isinstance(event, (RequestReceived, Send)):
                await self._session.peer.handle(event)

    async def _serve_batch(
        self,
        response: SessionResponse,
        exchanges: Sequence[SessionExchange],
        events: Sequence[Event],
    ) -> None:
        """Serve each request of a batch in its own task, all other events in one task.

        If a handler of the others still waits when all requests have their responses, the rest of
        the batch counts as abandoned from then on.
        """
        await response.start()
        for event in events:
            if isinstance(event, Send):
                await response.send(event.message)
        handled = anyio.Event()

        async def handle_others() -> None:
            with self._scope:
                await self._handle(events)
            handled.set()

        async def run(exchange: SessionExchange) -> None:
            exchange.in_batch = True
            if exchange is not exchanges[0]:  # whose place is that of the POST
                exchange.take_place()
            waiting = exchange.start()
            if waiting is not None:
                await waiting

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handle_others)
            async with anyio.create_task_group() as serving:
                for exchange in exchanges:
                    serving.start_soon(run, exchange)
            if response.unfinished:
                over = self._session.over
                await response.finish(http_response.session_ended() if over else None)
            if not handled.is_set():
                self._exchanges.abandon(self)
