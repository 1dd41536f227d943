"""What one POST brings into a session: checked, taken in, served whether or not its client stays.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from ..core import jsonrpc
from ..core.events import Event, RequestReceived, Send
from . import replies
from .answers import SessionAnswer
from .sessions import HttpSession
from .settings import Limits

_REFUSED = 400


class SessionPost:
    """One POST.

    Args:
        session: The session it belongs to.
        limits: What is served at most.
        message: What it brought; `None` for a batch.
        body: The same as it came.

    Attributes:
        reply: What answers it, if it asks for nothing, or is refused.
        batch: Whether its answers belong into one array.
        expected: How many answers there will be, unless a request is cancelled.
    """

    def __init__(
        self, session: HttpSession, limits: Limits, message: jsonrpc.Message | None, body: bytes
    ) -> None:
        self.batch = message is None
        self.expected = 0
        self._session = session
        self._events: Sequence[Event] = ()
        self._asked: Sequence[RequestReceived] = ()
        self.reply = self._refuse(limits, message, body)
        if self.reply is None or (isinstance(message, jsonrpc.Malformed) and message.response):
            self._take_in(message, body)

    async def take_note(self) -> None:
        """Do what is to be done for what asks for no answer."""
        for event in self._events:
            if not isinstance(event, Send):
                await self._session.peer.take(event)

    async def serve(self, answer: SessionAnswer) -> None:
        """Answer what it asks; a client that leaves changes nothing about that."""
        session = self._session
        for asked in self._asked:
            session.answers[asked.id] = answer
        try:
            with anyio.CancelScope(shield=True):
                for event in self._events:
                    if isinstance(event, Send):
                        await answer.send(event.message, event.about)
                await self._do()
                await answer.finish(replies.session_ended() if session.over else None)
        finally:
            answer.leave()
            for asked in self._asked:
                if session.answers.get(asked.id) is answer:
                    del session.answers[asked.id]

    async def _do(self) -> None:
        take = self._session.peer.take
        if len(self._events) == 1:
            if self._asked:
                await take(self._asked[0])
            return
        async with anyio.create_task_group() as tasks:
            for event in self._events:
                if not isinstance(event, (RequestReceived, Send)):
                    tasks.start_soon(take, event)
            open_requests = self._session.peer.connection.being_served
            for asked in self._asked:
                if asked.id in open_requests:  # and not cancelled by the same batch
                    tasks.start_soon(take, asked)

    def _refuse(
        self, limits: Limits, message: jsonrpc.Message | None, body: bytes
    ) -> replies.Reply | None:
        if isinstance(message, jsonrpc.Malformed):
            return replies.malformed(message)
        asked = int(isinstance(message, jsonrpc.Request))
        if message is None:
            if not self._session.revision.batching:
                return replies.refusal(_REFUSED, "expected one JSON-RPC message, got an array")
            parts = jsonrpc.parse_batch(body)
            if isinstance(parts[0], jsonrpc.Malformed) and len(parts) == 1:
                return replies.malformed(parts[0])
            asked = sum(isinstance(part, jsonrpc.Request) for part in parts)
        if asked and len(self._session.answers) + asked > limits.per_session:
            return replies.too_much("per_session")
        return None

    def _take_in(self, message: jsonrpc.Message | None, body: bytes) -> None:
        peer = self._session.peer
        now = anyio.current_time() if peer.callers.timed else 0.0
        if message is None:
            self._events = peer.connection.receive(body, now)
        else:
            self._events = peer.connection.take(message, now)
        self._asked = [event for event in self._events if isinstance(event, RequestReceived)]
        sends = sum(isinstance(event, Send) for event in self._events)
        self.expected = len(self._asked) + sends
        if not self.expected and self.reply is None:
            self.reply = replies.ACCEPTED
