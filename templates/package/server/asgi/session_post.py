"""What one POST brings into a session: checked, taken in, served whether or not its client stays.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio

from ...errors import InternalError
from ...protocol import jsonrpc
from ...protocol.events import CancelReceived, Event, RequestReceived, Send
from ...protocol.notifications import FOLLOWING
from ...runtime.eager import pausing
from ...runtime.pending_requests import PARTING_SECONDS
from . import responses
from .http_session import HttpSession
from .load import starts_work
from .post_response import SessionResponse
from .settings import Limits


class SessionPost:
    """One POST.

    Args:
        session: The session it belongs to.
        limits: What is served at most.
        message: What it brought; `None` for a batch.
        body: The same as it came.

    Attributes:
        places: How many places it takes among the messages in flight.
        follows: Whether it changes which resources the client follows.
        reply: What answers it, if it asks for nothing, or is refused.
        batch: Whether its answers belong into one array.
        expected: How many answers there will be, unless a request is cancelled.
    """

    def __init__(
        self, session: HttpSession, limits: Limits, message: jsonrpc.Message | None, body: bytes
    ) -> None:
        self.batch = message is None
        self.expected = 0
        self.places = 1
        self.follows = False
        self._session = session
        self._parts: Sequence[jsonrpc.Message] = () if message is None else (message,)
        self._events: Sequence[Event] = ()
        self._asked: Sequence[RequestReceived] = ()
        self._answer: SessionResponse | None = None
        self._scope: anyio.CancelScope | None = None
        self.reply = self._refuse(limits, message, body)

    @property
    def attended(self) -> bool:
        """Whether its client is there for the answer, or back for it."""
        return self._answer is not None and self._answer.connected

    def take_in(self) -> None:
        """Have the protocol take it, unless it is refused."""
        message = self._parts[0] if self._parts else None
        lost = isinstance(message, jsonrpc.InvalidMessage) and message.response  # of a call of ours
        if self.reply is not None and not lost:
            return
        peer = self._session.peer
        now = anyio.current_time() if peer.callers.timed else 0.0
        if self.batch:
            self._events = peer.connection.receive_batch(self._parts, now)
        else:
            self._events = peer.connection.receive_message(self._parts[0], now)
        self._asked = [event for event in self._events if isinstance(event, RequestReceived)]
        sends = sum(isinstance(event, Send) for event in self._events)
        self.expected = len(self._asked) + sends
        if not self.expected and self.reply is None:
            self.reply = responses.Reply(self._session.revision.facts.http.accepted)

    async def take_note(self, on_wait: Callable[[], object]) -> None:
        """Do what is to be done for what asks for no answer.

        Args:
            on_wait: Called once if that has to wait for something.
        """
        self._session.notes += 1
        try:
            with anyio.CancelScope() as self._scope:
                await pausing(self._take(self._events), on_wait)
        finally:
            self._session.notes -= 1

    async def serve(self, answer: SessionResponse) -> None:
        """Answer what it asks."""
        session = self._session
        self._answer = answer
        for asked in self._asked:
            session.answers[asked.id] = answer
        try:
            await answer.begin()
            for event in self._events:
                if isinstance(event, Send):
                    await answer.send(event.message)
            await self._do()
            await answer.finish(responses.session_ended() if session.over else None)
        except anyio.get_cancelled_exc_class():  # by the host: see `TaskScope.outlive`
            with anyio.move_on_after(PARTING_SECONDS, shield=True), suppress(Exception):
                await self.give_up(responses.ENDING)
            raise
        finally:
            answer.leave()
            for asked in self._asked:
                if session.answers.get(asked.id) is answer:
                    del session.answers[asked.id]

    async def give_up(self, text: str) -> None:
        """Cancel what is still being served, and answer it with an error."""
        session = self._session
        for asked in self._asked:
            if session.answers.get(asked.id) is self._answer:
                message = session.peer.connection.fail(asked.id, InternalError(text))
                if message is not None:
                    try:
                        await session.send(message)
                    finally:
                        await session.peer.handle(CancelReceived(asked.id, text))
        if self._scope is not None:
            self._scope.cancel()

    async def _do(self) -> None:
        handle = self._session.peer.handle
        if len(self._events) == 1:
            if self._asked:
                await handle(self._asked[0])
            return
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            others = [e for e in self._events if not isinstance(e, (RequestReceived, Send))]
            if others:
                tasks.start_soon(self._take, others)
            open_requests = self._session.peer.connection.inbound_requests
            for asked in self._asked:
                if asked.id in open_requests:  # and not cancelled by the same batch
                    tasks.start_soon(handle, asked)

    async def _take(self, events: Sequence[Event]) -> None:
        """Do what events ask for, one after the other: however many come, it takes one task."""
        for event in events:
            if not isinstance(event, Send):
                await self._session.peer.handle(event)

    def _refuse(
        self, limits: Limits, message: jsonrpc.Message | None, body: bytes
    ) -> responses.Reply | None:
        session = self._session
        if isinstance(message, jsonrpc.InvalidMessage):
            return responses.malformed(message)
        if message is None:
            if not session.revision.batching:
                status = session.revision.facts.http.rejected
                return responses.refusal(status, "expected one JSON-RPC message, got an array")
            self._parts = parts = jsonrpc.parse_batch(body)
            if isinstance(parts[0], jsonrpc.InvalidMessage) and len(parts) == 1:
                return responses.malformed(parts[0])
        asked = [part for part in self._parts if isinstance(part, jsonrpc.Request)]
        if asked:
            self.places = len(asked)
            self.follows = any(each.method in FOLLOWING for each in asked)
            if len(session.answers) + len(asked) > limits.per_session:
                return responses.too_much("per_session")
        if session.notes >= limits.per_session and any(map(starts_work, self._parts)):
            return responses.too_much("per_session")
        return None
