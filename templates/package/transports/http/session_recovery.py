"""The session with a server over Streamable HTTP: opening, replacement and end.

A server may lose a session at any time. The client then opens a new session with the same
`initialize` request, and logs a warning.

Source: basic/transports (session management, listening for messages from the server).
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from ...channel import OutgoingMessage, logger
from ...errors import HttpStatusError, McpError, ResponseLostError, SessionLostError
from ...facts import Revisions
from ...framing.http_headers import JSON
from ...framing.sse import MEDIA_TYPE
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.states import INITIALIZE, INITIALIZED
from ..memory import MessageQueue
from .event_stream import EventStream, OnMessage, OnStream, StartSoon
from .http_client import content_type
from .http_libraries import Response, Secrets
from .session import Endpoint, ServerSessionState, session_of
from .streamable_http import StreamableHttp, parse_message


class Sessions:
    """The session with a server, if there is one.

    Args:
        endpoint: The endpoint of the server.
        revisions: The revisions that the client supports.
        on_message: Called with each message of the standalone stream.
        start_soon: Starts a task.
        on_renewed: Called when a new session has replaced a lost session.
        on_stream: Called when the standalone stream is opened or cannot be reopened.

    Attributes:
        current: The session; `None` before initialization, and in revisions without sessions.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        revisions: Revisions,
        on_message: OnMessage,
        start_soon: StartSoon,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
    ) -> None:
        self.current: ServerSessionState | None = None
        self._endpoint = endpoint
        self._revisions = revisions
        self._on_message = on_message
        self._start_soon = start_soon
        self._on_renewed = on_renewed
        self._on_stream = on_stream
        self._renewing = anyio.Lock()
        self._listening: EventStream | None = None
        self._secrets = Secrets()

    def store_session(self, initialize: OutgoingMessage, result: bytes, response: Response) -> None:
        """Store the session that a response to `initialize` opened.

        Raises:
            RemoteProtocolError: The session id has characters other than visible ASCII.
        """
        self.current = session_of(initialize, result, response.header, self._revisions)
        if self.current is not None and self.current.id is not None:
            self._secrets.add(self.current.id)

    def confirm_session(self, session: ServerSessionState, message: OutgoingMessage) -> None:
        """Open the standalone stream, after the server has accepted `notifications/initialized`."""
        session.initialized = message
        idle = 0
        if self._listening is not None:
            self._listening.scope.cancel()
            idle = self._listening.idle
        self._report_stream(None)
        if session.facts.http.standalone_stream:
            self._listening = EventStream(
                self._endpoint.requests,
                lambda last_event_id: self._endpoint.get(session, last_event_id),
                self._on_message,
                None,
                self._endpoint.timeouts,
            )
            self._listening.idle = idle
            self._start_soon(self._listen, self._listening, session)

    async def replace_session(self, lost: ServerSessionState) -> ServerSessionState:
        """Replace a lost session, and return the new session.

        Raises:
            SessionLostError: The server does not open a new session.
            McpError: The server cannot be reached, or refuses the request.
        """
        async with self._renewing:
            if self.current is None or self.current is lost:
                try:
                    await self._renew_in_time(lost)
                except BaseException:
                    self.current = lost  # the next message tries again
                    raise
            assert self.current is not None
            return self.current

    def lost_twice_error(self) -> SessionLostError:
        """The error for a server that loses a new session at once."""
        return SessionLostError(
            f"{self._endpoint}: the server forgot the session, and the new one as well"
        )

    async def renew_if_lost(self, session: ServerSessionState | None, cause: object) -> None:
        """Replace the session if a refusal shows that it is lost; try only once."""
        if session is None or not isinstance(cause, HttpStatusError):
            return
        if session.is_lost(cause.status) and session is self.current:
            try:
                await self.replace_session(session)
            except McpError as error:
                logger.warning("the server forgot the session: %s", error)

    async def end(self) -> None:
        """End the session, on the server too if it can be reached. Idempotent."""
        if self._listening is not None:
            self._listening.scope.cancel()
        session, self.current = self.current, None
        if session is not None and session.id is not None:
            with anyio.move_on_after(self._endpoint.timeouts.ending):
                try:
                    await self._endpoint.delete(session)
                except McpError as error:
                    logger.debug("the session was not ended: %s", error)
        self._secrets.clear()

    async def _renew_in_time(self, lost: ServerSessionState) -> None:
        seconds = self._endpoint.timeouts.renewal
        with anyio.move_on_after(seconds):
            await self._renew(lost)
            return
        raise SessionLostError(
            f"{self._endpoint}: the server forgot the session, "
            f"and opened no other one within {seconds:g} s"
        )

    async def _renew(self, lost: ServerSessionState) -> None:
        initialize, initialized = lost.initialize, lost.initialized
        await self._open(initialize)
        session = self.current
        if session is None or session is lost or session.agreed is not lost.agreed:
            raise SessionLostError(
                f"{self._endpoint}: the server forgot the session, "
                f"and makes no other one in {lost.agreed.name}"
            )
        logger.warning("%s forgot the session; another one was opened", self._endpoint)
        if initialized is not None:
            await self._confirm(session, initialized)

    async def _confirm(self, session: ServerSessionState, initialized: OutgoingMessage) -> None:
        """Send `notifications/initialized` in the new session."""
        try:
            response = await self._endpoint.post(initialized, session)
        except HttpStatusError as error:
            if session.is_lost(error.status):
                raise self.lost_twice_error() from error
            raise
        await self._endpoint.requests.discard(response)
        self.confirm_session(session, initialized)
        if self._on_renewed is not None:
            self._on_renewed()

    async def _open(self, initialize: OutgoingMessage) -> None:
        """Open a session; the response may be JSON or an event of a stream."""
        response = await self._endpoint.post(initialize, None)
        requests, identifier = self._endpoint.requests, initialize.id
        assert identifier is not None

        async def on_message(data: bytes) -> None:
            result = ParsedMessage.of(data).results().get(identifier)
            if result is not None:
                self.store_session(initialize, result, response)
                stream.scope.cancel()
            else:
                await self._on_message(data)

        stream = EventStream(requests, None, on_message, identifier, self._endpoint.timeouts)
        if content_type(response) == JSON:
            await on_message(await requests.read(response))
        elif content_type(response) == MEDIA_TYPE:
            with stream.scope:
                await stream.follow(response)
        else:
            raise await requests.unexpected_response(response, f"{JSON} or {MEDIA_TYPE}")

    async def _listen(self, stream: EventStream, session: ServerSessionState) -> None:
        failure: McpError
        with stream.scope:
            try:
                await stream.listen(self._report_stream)
                return
            except HttpStatusError as error:
                if stream.connected:
                    await self.renew_if_lost(session, error)
                failure = error
            except McpError as error:
                failure = error
            except Exception as error:
                logger.exception("a stream of events failed")
                failure = ResponseLostError(f"{self._endpoint}: {error}")
            logger.debug("no stream of events without a request: %s", failure)
            if stream.connected and self._listening is stream:
                self._report_stream(failure)

    def _report_stream(self, failure: McpError | None) -> None:
        if self._on_stream is not None:
            self._on_stream(failure)


class SessionHttp(StreamableHttp):
    """The connection to one endpoint: its posts, streams and session; see `StreamableHttp`."""

    def __init__(
        self,
        endpoint: Endpoint,
        revisions: Revisions,
        received: MessageQueue,
        start_soon: StartSoon,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
    ) -> None:
        super().__init__(endpoint, revisions, received, start_soon)
        self._sessions = Sessions(
            endpoint, revisions, self._on_message, start_soon, on_renewed, on_stream
        )

    async def end(self) -> None:
        """Close all streams and end the session."""
        await super().end()
        await self._sessions.end()

    def _session_of(self, message: OutgoingMessage) -> ServerSessionState | None:
        return None if message.method == INITIALIZE else self._sessions.current

    async def _post_again(
        self,
        message: OutgoingMessage,
        session: ServerSessionState | None,
        error: ResponseLostError | HttpStatusError,
    ) -> tuple[ServerSessionState | None, Response]:
        if _may_repeat(message, error):
            return session, await self._endpoint.post(message, session)
        if session is None or not _is_lost(session, error):
            raise error
        session = await self._sessions.replace_session(session)
        try:
            return session, await self._endpoint.post(message, session)
        except HttpStatusError as again:
            if session.is_lost(again.status):
                raise self._sessions.lost_twice_error() from again
            raise

    def _accepted(self, message: OutgoingMessage, session: ServerSessionState | None) -> None:
        if message.method == INITIALIZED and session is not None:
            self._sessions.confirm_session(session, message)

    def _answered(self, message: OutgoingMessage, result: bytes | None, response: Response) -> None:
        if message.method == INITIALIZE and result is not None:
            self._sessions.store_session(message, result, response)

    async def _lost(self, session: ServerSessionState | None, error: McpError) -> None:
        await self._sessions.renew_if_lost(session, error.__cause__)

    async def _on_message(self, data: bytes) -> None:
        """Receive a message of the standalone stream."""
        parsed = parse_message(data, self._sessions.current)
        await self._pass_on(parsed, parsed.results())


def _may_repeat(message: OutgoingMessage, error: ResponseLostError | HttpStatusError) -> bool:
    """Whether to post a message at once again that is no request, and harmless if it comes twice.

    Source: basic/lifecycle (`notifications/initialized`); a response settles its request once.
    """
    if not (message.is_response or message.method == INITIALIZED):
        return False
    return isinstance(error, ResponseLostError) or (error.is_outage and error.begun is None)


def _is_lost(session: ServerSessionState, error: ResponseLostError | HttpStatusError) -> bool:
    """Whether an error means that the server has lost the session."""
    return isinstance(error, HttpStatusError) and session.is_lost(error.status)
