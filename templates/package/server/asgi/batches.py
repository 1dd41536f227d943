"""Batches in sessions: one POST with several messages, and one response for all its requests.

Each request is an exchange. JSON responses are sent as one array.

Source: basic/transports#streamable-http (2025-03-26).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from ...channel import OutgoingMessage
from ...protocol import jsonrpc
from ...protocol.batch_parsing import parse_array, refuse_initialize
from ...protocol.events import Event, RequestReceived, Send
from ...protocol.handshake import FOLLOWING
from . import http_response
from .exchange import RESPONSES
from .http_response import HttpResponse, Receive, Refused
from .http_response import Send as AsgiSend
from .http_session import HttpSession, SessionExchange, SessionResponse
from .quotas import starts_work
from .request import HttpRequest
from .session_endpoint import PostedEvents, received_events
from .settings import HttpSettings


class BatchResponse(SessionResponse):
    """The JSON-RPC responses to a batch, and the messages that precede them.

    Args:
        request: The POST.
        receive: The ASGI receive callable.
        send: The ASGI send callable.
        session: The session.
        expected: Number of JSON-RPC responses.
    """

    def __init__(
        self,
        request: HttpRequest,
        receive: Receive,
        send: AsgiSend,
        session: HttpSession,
        expected: int,
    ) -> None:
        super().__init__(request, receive, send, session)
        self._left = expected
        self._documents: list[bytes] = []  # JSON-RPC responses that wait for others

    async def send(self, message: OutgoingMessage) -> None:
        """See `SessionResponse.send`."""
        if self.done or message.kind not in RESPONSES:
            await super().send(message)
            return
        self._left -= 1  # before other tasks send
        self.unfinished = self._left > 0
        if not (self._streaming or self.events_only):
            self._documents.append(message.data)
            if not self.unfinished:
                await self._end()
        elif self.unfinished and self.stream is None:
            await self._open((message.data,))
        elif self.unfinished and self.stream is not None:
            await self.stream.put(message.data)
        else:
            if self.stream is None:
                await self._open()
            await self._end(message.data)

    async def finish(self, instead: HttpResponse | None = None) -> None:
        """Do nothing when one of the requests was cancelled: the batch ends the response."""

    async def finish_all(self, instead: HttpResponse | None) -> None:
        """End the response although JSON-RPC responses are missing."""
        if instead is not None and not self._documents and self.stream is None:
            await self.respond(instead)
        else:
            await self._end()

    def stop(self) -> None:
        """Do nothing when one of the requests has ended."""

    def stop_all(self) -> None:
        """Count the client as gone, and stop waiting for its disconnect."""
        super().stop()

    async def _open(self, messages: Sequence[bytes] = ()) -> None:
        """Start the stream with the responses that wait, and other messages."""
        documents, self._documents = self._documents, []
        await super()._open((*documents, *messages))

    async def _end(self, last: bytes = b"") -> None:
        if self.stream is None and self._documents:
            body = b"[%b]" % b",".join(self._documents)
            await self.respond(HttpResponse(200, body, self.headers))
        else:
            await super()._end(last)


async def serve_batch(
    session: HttpSession,
    request: HttpRequest,
    messages: Sequence[jsonrpc.Message],
    body: bytes,
    receive: Receive,
    send: AsgiSend,
) -> None:
    """Respond to the POST of a batch.

    Raises:
        Refused: The messages are not served.
    """
    peer = session.peer
    first = messages[0]
    invalid = first if len(messages) == 1 and isinstance(first, jsonrpc.InvalidMessage) else None
    requests = [each for each in messages if isinstance(each, jsonrpc.Request)]
    kept = 0
    events: Sequence[Event] = ()
    if invalid is None:
        _check(session, messages, len(requests))
        if not FOLLOWING.isdisjoint([each.method for each in requests]):
            kept = await session.reserve_message(len(body))
        events = _received_events(session, messages)
        await session.store_changes()
    elif invalid.response and invalid.id is not None:  # it fails a request of this side
        events = _received_events(session, messages)
    others = PostedEvents(session, events)
    expected = sum(isinstance(event, (RequestReceived, Send)) for event in events)
    if invalid is not None:
        await others.serve(http_response.invalid_message(invalid), send)
        return
    if not expected:
        await others.serve(HttpResponse(session.revision.facts.http.accepted), send)
        return
    response = BatchResponse(request, receive, send, session, expected)
    exchanges = [
        SessionExchange(session, request, receive, send, event, None, response)
        for event in events
        if isinstance(event, RequestReceived)
        and event.id in peer.connection.state.inbound  # not cancelled by the batch
    ]
    try:
        await _serve(session, response, exchanges, events, others)
    finally:
        response.stop_all()
        session.open_exchanges.end(others)
        if kept:
            session.count_subscriptions(kept)


def _received_events(session: HttpSession, messages: Sequence[jsonrpc.Message]) -> list[Event]:
    return [
        event for each in refuse_initialize(messages) for event in received_events(session, each)
    ]


def _check(session: HttpSession, messages: Sequence[jsonrpc.Message], requests: int) -> None:
    """Check that the messages may be served.

    Raises:
        Refused: A limit is reached.
    """
    most = session.settings.limits.per_session
    if (requests and len(session.exchanges) + requests > most) or (
        session.handling >= most and any(map(starts_work, messages))
    ):
        raise Refused(http_response.over_limit("per_session"))
    # One place is counted already, as for each POST.
    if requests > 1 and not session.open_exchanges.quotas.has_room(requests - 1):
        raise Refused(http_response.over_limit("in_flight"))


async def _serve(
    session: HttpSession,
    response: BatchResponse,
    exchanges: Sequence[SessionExchange],
    events: Sequence[Event],
    others: PostedEvents,
) -> None:
    """Serve each request in its own task, all other events in one task.

    If a handler of the others still waits when all requests have their responses, the rest of the
    batch counts as abandoned from then on.
    """
    await response.start()
    for event in events:
        if isinstance(event, Send):
            await response.send(event.message)
    handled = anyio.Event()

    async def handle_others() -> None:
        await others.handle()
        handled.set()

    async def run(exchange: SessionExchange) -> None:
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
            await response.finish_all(http_response.session_ended() if session.over else None)
        if not handled.is_set():
            session.open_exchanges.abandon(others)


@dataclass(frozen=True)
class BatchSettings(HttpSettings):
    """Has batches in packages of revisions with them; a base of the settings."""

    parse_batch = staticmethod(parse_array)
    serve_batch = staticmethod(serve_batch)
