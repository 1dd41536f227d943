"""Requests that stand for themselves: one POST, one connection, one answer or stream.

Source: basic/transports/streamable-http, basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import anyio
import anyio.lowlevel

from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import (
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    EndOfChannel,
    InternalError,
    ProtocolError,
)
from ...protocol import jsonrpc
from ...protocol.connection import Connection
from ...protocol.events import CancelReceived, NotificationReceived, RequestReceived, Send
from ...protocol.responses import error_response
from ...revision_facts import Facts
from ...runtime.eager import pausing
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS
from ..serving import Service, Session
from . import request as http
from . import responses
from .header_validation import Claim, PerRequestRules
from .lifespan import TaskScope
from .load import Holder, Load
from .settings import HttpSettings
from .sse_response import SseResponse, until_gone
from .stream_limits import StreamLimits

_UNAVAILABLE = 503


class PostResponse(Channel):
    """The way back of one POST: one JSON document, or events.

    It is events once something comes before the answer, or nothing for too long.

    Args:
        request: What is answered.
        send: The ASGI application's way out.
        settings: How to answer.
        statuses: HTTP status by JSON-RPC code.
        other: The status of an error whose code has none of its own.

    Attributes:
        wire: The stream, if it comes to one.
        other: As given; it may change.
        done: Whether the answer is out, or none is wanted any more.
    """

    __slots__ = (
        "_events_only",
        "_json_only",
        "_send",
        "_statuses",
        "done",
        "other",
        "wire",
    )

    def __init__(
        self,
        request: http.Incoming,
        send: http.Send,
        settings: HttpSettings,
        statuses: Mapping[int, int],
        other: int,
    ) -> None:
        self._send = send
        self._statuses = statuses
        self._json_only, self._events_only = http.forms(request, settings.answers)
        self.wire = SseResponse(send, settings.limits.send_seconds)
        self.other = other
        self.done = False

    async def receive(self) -> bytes:
        """Nothing comes this way: the POST itself was the message."""
        raise EndOfChannel("a POST brings one message")

    async def send(self, message: OutgoingMessage) -> None:
        """Send the answer, or what comes before it; nothing after that.

        Raises:
            ConnectionClosedError: The client is gone.
        """
        if self.done:
            await anyio.lowlevel.checkpoint()  # a handler that only talks is cancelled here
            return
        answers = message.is_response
        if answers:
            self.done = True
        wire = self.wire
        if not wire.used:
            code = message.error_code
            if answers and (code is not None or not self._events_only):
                # An error has a status of its own, for which it is never too late till now.
                status = 200 if code is None else self._statuses.get(code, self.other)
                await self.reply(responses.Reply(status, message.data))
                return
            if self._json_only and not answers:
                return
            await wire.open()
        await wire.event(message.data)
        if answers:
            await wire.close()

    async def watch(self, receive: http.Receive, seconds: float | None) -> None:
        """Wait until the client leaves, while the answer takes long.

        Args:
            receive: Tells when it leaves.
            seconds: Seconds of silence after which the stream is opened, or gets a comment; `None`
                for never. Where the answer has to come on a stream, that is opened at once.
        """
        with suppress(ConnectionClosedError):
            if self._events_only:
                await self._open_early()
            await until_gone(receive, self.wire, seconds, self._open_early)

    async def reply(self, reply: responses.Reply) -> None:
        """Send one document, and let nothing follow."""
        self.done = True
        await reply.send(self._send)

    async def close(self) -> None:
        """End what is still open, and let nothing follow."""
        self.done = True
        await self.wire.close()

    async def _open_early(self) -> None:
        """Begin the stream before there is anything to say, unless the answer is to be JSON."""
        if not (self.done or self.wire.used or self._json_only):
            with anyio.CancelScope(shield=True):  # an answer that comes now ends the watching
                await self.wire.open()


class StatelessEndpoint:
    """Answers the POSTs of revisions without sessions.

    Args:
        service: What is served.
        settings: How.
        rules: What those revisions ask of header fields.
        background: Runs what watches for clients that leave.
        streams: The streams that stay open.
        load: What all clients take together.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        rules: PerRequestRules,
        background: TaskScope,
        streams: StreamLimits,
        load: Load,
    ) -> None:
        self._load = load
        self._service = service
        self._settings = settings
        self._rules = rules
        self._background = background
        self._streams = streams
        facts = rules.facts or Facts()
        self._statuses = _statuses(facts)
        self._http = facts.http
        self._calls: set[_Call] = set()

    async def give_up_all(self, text: str) -> None:
        """Answer the requests being served with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for call in list(self._calls):
                tasks.start_soon(call.give_up, text)

    async def post(
        self,
        request: http.Incoming,
        message: jsonrpc.Message | None,
        claim: Claim,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
    ) -> None:
        """Answer one POST, in a scope that is cancelled when the client leaves.

        `message` is `None` for a batch.
        """
        if isinstance(message, jsonrpc.Request):
            answer = PostResponse(
                request, send, self._settings, self._statuses, self._http.rejected
            )
            try:
                self._rules.check(request, message, claim)
            except ProtocolError as error:
                await answer.send(self._refusal(message.id, error))
            else:
                await self._request(message, answer, request, receive, scope)
        elif isinstance(message, jsonrpc.Notification):
            await (await self._notification(request, message)).send(send)
        elif isinstance(message, jsonrpc.InvalidMessage):
            await responses.malformed(message).send(send)
        elif message is None:
            text = "expected one JSON-RPC message, got an array"
            await responses.refusal(self._http.rejected, text).send(send)
        else:
            text = "expected a request or a notification, got a response"
            await responses.refusal(self._http.rejected, text).send(send)

    async def _notification(
        self, request: http.Incoming, message: jsonrpc.Notification
    ) -> responses.Reply:
        try:
            self._rules.check_notification(request, message)
        except ProtocolError as error:
            return responses.Reply(self._http.rejected, self._refusal(None, error).data)
        connection = self._connection()
        peer = Peer(connection, _Nowhere(), self._service.application)
        for event in connection.receive_message(message):
            if isinstance(event, NotificationReceived):
                await peer.handle(event)
        return responses.Reply(self._http.accepted)

    async def _request(
        self,
        message: jsonrpc.Request,
        answer: PostResponse,
        request: http.Incoming,
        receive: http.Receive,
        scope: anyio.CancelScope,
    ) -> None:
        connection = self._connection()
        peer = Peer(connection, answer, self._service.application)
        for event in connection.receive_message(message):
            if isinstance(event, RequestReceived):
                await self._serve(peer, event, answer, receive, scope)
            elif isinstance(event, Send) and connection.inbound_requests:
                await self._listen(peer, message, event.message, answer, request, receive)
            else:
                await peer.handle(event)

    async def _serve(
        self,
        peer: Peer,
        event: RequestReceived,
        answer: PostResponse,
        receive: http.Receive,
        scope: anyio.CancelScope,
    ) -> None:
        """Have one request answered, unless the client leaves before that."""
        answer.other = 200
        watching: anyio.CancelScope | None = None
        call = _Call(peer, event.id, answer)

        def watch() -> None:
            nonlocal watching
            watching = anyio.CancelScope()
            self._calls.add(call)
            answer.wire.on_cut = leave
            self._background.start_soon(self._watch, receive, watching, answer)

        def leave() -> None:
            answer.done = True
            self._background.start_soon(_cancel, peer, event.id)

        try:
            await pausing(peer.handle(event, scope), watch)
        finally:
            answer.wire.on_cut = None
            self._calls.discard(call)
            if not answer.done:  # the host cancelled this task
                with anyio.CancelScope(shield=True):
                    await call.give_up(responses.ENDING)
            if watching is not None:
                watching.cancel()
            await answer.close()

    async def _watch(
        self, receive: http.Receive, scope: anyio.CancelScope, answer: PostResponse
    ) -> None:
        with scope:
            await answer.watch(receive, self._settings.keep_alive)

    async def _listen(
        self,
        peer: Peer,
        message: jsonrpc.Request,
        acknowledgement: OutgoingMessage,
        answer: PostResponse,
        request: http.Incoming,
        receive: http.Receive,
    ) -> None:
        """Keep a subscription open until the client leaves or the server ends."""
        memory = self._load.memory
        ending = anyio.Event()
        holder = Holder(ending.set)
        with self._streams.place() as granted:
            refused = http.check_events(request, id=message.id)
            if refused is None and not granted:
                refused = responses.too_much("streams", id=message.id)
            if refused is None and not await memory.reserve(len(message.params or b""), holder):
                refused = responses.too_much("session_bytes", id=message.id)
            if refused is not None:
                await answer.reply(refused)
                return
            self._load.in_flight -= 1  # it has a place among the streams
            try:
                gone = await self._announce(peer, acknowledgement, answer, receive, ending)
            finally:
                self._load.in_flight += 1
                memory.close(holder)
        if not gone:
            for last in peer.connection.close_streams():
                await answer.send(last)
        peer.connection.stream_closed(message.id)
        await answer.close()

    async def _announce(
        self,
        peer: Peer,
        acknowledgement: OutgoingMessage,
        answer: PostResponse,
        receive: http.Receive,
        ending: anyio.Event,
    ) -> bool:
        """Send what is announced until one side leaves; gives whether it was the client."""
        session = Session(peer)

        async def work() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.send_announced)
                await ending.wait()
                tasks.cancel_scope.cancel()

        with self._service.sessions.joined(session):
            await answer.wire.open()
            await answer.wire.event(acknowledgement.data)
            return await self._streams.hold(receive, answer.wire, self._settings.keep_alive, work)

    def _connection(self) -> Connection:
        service, rules = self._service, self._rules
        return Connection(
            "server", rules.revisions, service.describe, service.extensions, rules.meta_cache
        )

    def _refusal(self, identifier: RequestId | None, error: ProtocolError) -> OutgoingMessage:
        return error_response(identifier, error, self._rules.revisions.newest())


class _Call:
    """A request that is being served."""

    __slots__ = ("_answer", "_id", "_peer")

    def __init__(self, peer: Peer, identifier: RequestId, answer: PostResponse) -> None:
        self._peer = peer
        self._id = identifier
        self._answer = answer

    async def give_up(self, text: str) -> None:
        """Answer it with an error, for which a client that reads has a second, and cancel it."""
        peer, answer = self._peer, self._answer
        message = peer.connection.fail(self._id, InternalError(text))
        if message is not None:
            answer.other = _UNAVAILABLE
            with (
                anyio.move_on_after(PARTING_SECONDS) as waiting,
                suppress(Exception),
            ):  # of the host
                await answer.send(message)
            if waiting.cancelled_caught:
                answer.wire.cut()
        await peer.handle(CancelReceived(self._id, text))


class _Nowhere(Channel):
    """The way back of a notification: there is none."""

    async def receive(self) -> bytes:
        raise EndOfChannel("a POST brings one message")

    async def send(self, message: OutgoingMessage) -> None:
        raise ConnectionClosedError("a notification is not answered")

    async def close(self) -> None:
        pass


async def _cancel(peer: Peer, identifier: RequestId) -> None:
    """Cancel a request whose client has left."""
    for event in peer.connection.stream_closed(identifier):
        await peer.handle(event)


def _statuses(facts: Facts) -> dict[int, int]:
    """HTTP status by JSON-RPC code."""
    pairs = (
        (METHOD_NOT_FOUND, facts.http.unknown_method),
        (facts.errors.header_mismatch, facts.http.header_mismatch),
        (facts.errors.unsupported_revision, facts.http.unsupported_revision),
        (facts.errors.missing_capability, facts.http.missing_capability),
    )
    return {code: status for code, status in pairs if code is not None and status is not None}
