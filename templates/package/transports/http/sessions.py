"""Sessions with a server over Streamable HTTP: opening, replacement and end.

A server may lose a session at any time. The client then opens a new session with the same
`initialize` request, and logs a warning. A message of a per-request revision has no session; any
other message belongs to one.

Source: basic/transports (session management, protocol version header, listening for messages from
the server).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import anyio

from ..._wire import decoder
from ...channel import OutgoingMessage, logger
from ...errors import (
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
    SessionLostError,
)
from ...facts import Lifecycle, Revision, Revisions
from ...framing.http_headers import JSON, is_visible_ascii
from ...framing.http_hosts import format_url
from ...framing.sse import MEDIA_TYPE
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.lifecycle import INITIALIZE, INITIALIZED
from ...revision_facts import Facts
from ...runtime.time_limits import HttpTimeouts
from ..memory import MessageQueue
from .http_client import LISTENING, POSTED, HeaderFields, HttpRequests, content_type
from .http_library import Response, Secrets
from .streamable_http import (
    EventStream,
    OnStream,
    Resume,
    StartSoon,
    StreamableHttp,
    parse_message,
)

_decode_object = decoder(dict[str, Any])


@dataclass(eq=False)
class ServerSessionState:
    """The result of one handshake.

    Attributes:
        agreed: The negotiated revision.
        facts: The facts that apply over HTTP: those of the negotiated revision, or of the offered
            revision if the negotiated revision does not have this transport.
        initialize: The request that opened the session; sent again to open another session.
        id: The session id from the server; `None` if there is none.
        initialized: The notification that confirmed the session; `None` before.
    """

    agreed: Revision
    facts: Facts
    initialize: OutgoingMessage
    id: str | None = field(repr=False)
    initialized: OutgoingMessage | None = None

    def __post_init__(self) -> None:
        headers = self.facts.headers
        fields: dict[str, str] = {}
        if headers.session is not None and self.id is not None:
            fields[headers.session] = self.id
        if headers.protocol_version is not None:
            fields[headers.protocol_version] = self.agreed.name
        self.fields: HeaderFields = fields
        self.posted: HeaderFields = {**POSTED, **fields}

    def is_lost(self, error: object) -> bool:
        """Whether an error means that the server has lost the session."""
        if self.id is None or not isinstance(error, HttpStatusError):
            return False
        return error.status == self.facts.http.unknown_session


class SessionHttp(StreamableHttp):
    """The connection to one endpoint: its posts, streams and session; see `StreamableHttp`."""

    def __init__(
        self,
        requests: HttpRequests,
        url: str,
        revisions: Revisions,
        received: MessageQueue,
        start_soon: StartSoon,
        timeouts: HttpTimeouts,
        fields_of: Callable[[OutgoingMessage], HeaderFields] | None = None,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
    ) -> None:
        super().__init__(requests, url, revisions, received, start_soon, timeouts, fields_of)
        self._revisions = revisions
        self._on_renewed = on_renewed
        self._on_stream = on_stream
        self._session: ServerSessionState | None = None
        self._renewing = anyio.Lock()
        self._listening: EventStream | None = None
        self._secrets = Secrets()

    async def end(self) -> None:
        """End the posts and the session, on the server too if it can be reached."""
        await super().end()
        session, self._session = self._session, None
        if session is not None and session.id is not None:
            with anyio.move_on_after(self._timeouts.ending):
                try:
                    response = await self._requests.open("DELETE", self._url, session.fields)
                    await self._requests.discard(response)
                except McpError as error:
                    logger.debug("the session was not ended: %s", error)
        self._secrets.clear()

    async def _post(self, message: OutgoingMessage) -> tuple[ServerSessionState | None, Response]:
        session = None if message.method == INITIALIZE else self._session
        if session is None:
            fields = POSTED if self._fields_of is None else {**POSTED, **self._fields_of(message)}
        else:
            fields = session.posted
        try:
            return session, await self._requests.open("POST", self._url, fields, message.data)
        except (ResponseLostError, HttpStatusError) as error:
            if _may_repeat(message, error):
                return session, await self._requests.open("POST", self._url, fields, message.data)
            if session is None or not session.is_lost(error):
                raise
        session = await self._replace(session)
        return session, await self._post_in(session, message)

    async def _post_in(self, session: ServerSessionState, message: OutgoingMessage) -> Response:
        """Post a message in a session that has just been opened.

        Raises:
            SessionLostError: The server has lost this session, too.
        """
        try:
            return await self._requests.open("POST", self._url, session.posted, message.data)
        except HttpStatusError as error:
            if not session.is_lost(error):
                raise
            where = format_url(self._url)
            text = f"{where}: the server forgot the session, and the new one as well"
            raise SessionLostError(text) from error

    def _accepted(self, message: OutgoingMessage, session: ServerSessionState | None) -> None:
        if message.method == INITIALIZED and session is not None:
            self._confirm(session, message)

    def _answered(self, message: OutgoingMessage, result: bytes | None, response: Response) -> None:
        if message.method == INITIALIZE and result is not None:
            self._session = session_of(message, result, response.header, self._revisions)
            if self._session is not None and self._session.id is not None:
                self._secrets.add(self._session.id)

    async def _lost(self, session: ServerSessionState | None, error: McpError) -> None:
        await self._renew_if_lost(session, error.__cause__)

    def _resume(self, session: ServerSessionState | None) -> Resume | None:
        if session is None or not session.facts.http.resumable:
            return None
        return lambda last_event_id: self._get(session, last_event_id)

    async def _get(self, session: ServerSessionState, last_event_id: str | None) -> Response:
        """Request an event stream: the events after the event with an id, or new events."""
        fields = {**LISTENING, **session.fields}
        name = session.facts.headers.last_event_id
        if name is not None and last_event_id:
            fields[name] = last_event_id
        return await self._requests.open("GET", self._url, fields)

    def _confirm(self, session: ServerSessionState, message: OutgoingMessage) -> None:
        """Open the standalone stream, after the server has accepted `notifications/initialized`."""
        session.initialized = message
        idle = 0
        if self._listening is not None:
            self._listening.scope.cancel()
            idle = self._listening.idle
        self._report_stream(None)
        if session.facts.http.standalone_stream:
            self._listening = stream = EventStream(
                self._requests,
                lambda last_event_id: self._get(session, last_event_id),
                self._on_message,
                None,
                self._timeouts,
            )
            stream.idle = idle
            self._start_soon(self._listen, stream, session)

    async def _on_message(self, data: bytes) -> None:
        """Receive a message that belongs to no request."""
        parsed = parse_message(data, self._session)
        await self._pass_on(parsed, parsed.results())

    async def _listen(self, stream: EventStream, session: ServerSessionState) -> None:
        failure: McpError
        with stream.scope:
            try:
                await stream.listen(self._report_stream)
                return
            except McpError as error:
                if stream.connected:
                    await self._renew_if_lost(session, error)
                failure = error
            except Exception as error:
                logger.exception("a stream of events failed")
                failure = ResponseLostError(f"{format_url(self._url)}: {error}")
            logger.debug("no stream of events without a request: %s", failure)
            if stream.connected and self._listening is stream:
                self._report_stream(failure)

    def _report_stream(self, failure: McpError | None) -> None:
        if self._on_stream is not None:
            self._on_stream(failure)

    async def _renew_if_lost(self, session: ServerSessionState | None, cause: object) -> None:
        """Replace the session if a refusal shows that it is lost; try only once."""
        if session is not None and session is self._session and session.is_lost(cause):
            try:
                await self._replace(session)
            except McpError as error:
                logger.warning("the server forgot the session: %s", error)

    async def _replace(self, lost: ServerSessionState) -> ServerSessionState:
        """Replace a lost session, and return the new session.

        Raises:
            SessionLostError: The server does not open a new session.
            McpError: The server cannot be reached, or refuses the request.
        """
        async with self._renewing:
            if self._session is None or self._session is lost:
                try:
                    await self._renew(lost)
                except BaseException:
                    self._session = lost  # the next message tries again
                    raise
            assert self._session is not None
            return self._session

    async def _renew(self, lost: ServerSessionState) -> None:
        seconds = self._timeouts.renewal
        forgot = f"{format_url(self._url)}: the server forgot the session, and"
        with anyio.move_on_after(seconds):
            await self._open_session(lost.initialize)
            session = self._session
            if session is None or session is lost or session.agreed is not lost.agreed:
                raise SessionLostError(f"{forgot} makes no other one in {lost.agreed.name}")
            logger.warning("%s forgot the session; another one was opened", format_url(self._url))
            if lost.initialized is not None:
                response = await self._post_in(session, lost.initialized)
                await self._requests.discard(response)
                self._confirm(session, lost.initialized)
                if self._on_renewed is not None:
                    self._on_renewed()
            return
        raise SessionLostError(f"{forgot} opened no other one within {seconds:g} s")

    async def _open_session(self, initialize: OutgoingMessage) -> None:
        """Open a session; the response may be JSON or an event of a stream."""
        _, response = await super()._post(initialize)
        identifier = initialize.id
        assert identifier is not None

        async def on_message(data: bytes) -> None:
            result = ParsedMessage.of(data).results().get(identifier)
            if result is not None:
                self._answered(initialize, result, response)
                stream.scope.cancel()
            else:
                await self._on_message(data)

        stream = EventStream(self._requests, None, on_message, identifier, self._timeouts)
        if content_type(response) == JSON:
            await on_message(await self._requests.read(response))
        elif content_type(response) == MEDIA_TYPE:
            with stream.scope:
                await stream.follow(response)
        else:
            raise await self._requests.unexpected_response(response, f"{JSON} or {MEDIA_TYPE}")


def _may_repeat(message: OutgoingMessage, error: ResponseLostError | HttpStatusError) -> bool:
    """Whether to post a message at once again that is no request, and harmless if it comes twice.

    Source: basic/lifecycle (`notifications/initialized`); a response settles its request once.
    """
    if not (message.is_response or message.method == INITIALIZED):
        return False
    return isinstance(error, ResponseLostError) or (error.is_outage and error.begun is None)


def facts_over_http(agreed: Revision, offered: Revision, revisions: Revisions) -> Facts:
    """The facts that apply over Streamable HTTP.

    A server may choose a revision that is older than the transport. The facts are then those of the
    offered revision, or of the oldest revision with a handshake and the transport.
    """
    for revision in chain((agreed, offered), revisions.of(Lifecycle.HANDSHAKE).values()):
        if revision.facts.transports.streamable_http is not None:
            return revision.facts
    return agreed.facts


def session_of(
    initialize: OutgoingMessage,
    result: bytes,
    header: Callable[[str], str | None],
    revisions: Revisions,
) -> ServerSessionState | None:
    """The session that a result of `initialize` opens; `None` if it names no known revision.

    Args:
        header: Returns a header field of the response with the result; `None` if absent. An empty
            session id is an absent one.

    Raises:
        RemoteProtocolError: The session id has characters other than visible ASCII.
    """
    version = _decode_object(result).get("protocolVersion")
    agreed = revisions.get(version) if isinstance(version, str) else None
    if agreed is None:
        return None
    facts = facts_over_http(agreed, initialize.revision or agreed, revisions)
    id = None if facts.headers.session is None else header(facts.headers.session) or None
    if id is not None and not is_visible_ascii(id):
        raise RemoteProtocolError(
            f"{facts.headers.session}: expected visible ASCII characters, came something else"
        )
    return ServerSessionState(agreed, facts, initialize, id)
