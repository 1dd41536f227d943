"""The endpoint of a server over Streamable HTTP, header fields of messages, and sessions.

Source: basic/transports (session management, protocol version header); 2026-07-28:
basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from ..._wire import decoder
from ...channel import OutgoingMessage
from ...errors import RemoteProtocolError
from ...facts import Lifecycle, Revision, Revisions
from ...framing.http_headers import is_visible_ascii
from ...revision_facts import Facts
from ...runtime.time_limits import HttpTimeouts
from .http_client import LISTENING, POSTED, HeaderFields, HttpRequests
from .http_libraries import Response, format_url

ParamHeaders: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""Returns the encoded parameter headers for a tool's name and arguments."""

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

    def is_lost(self, status: int) -> bool:
        """Whether a status means that the server has lost the session."""
        return self.id is not None and status == self.facts.http.unknown_session


class Endpoint:
    """The endpoint of a server.

    A message of a per-request revision has no session; any other message belongs to a session.

    Args:
        requests: Sends HTTP requests.
        url: URL of the endpoint.
        timeouts: Timeouts.
        fields_of: Returns the header fields that a message has besides; `None` for none.

    Attributes:
        requests: As passed.
        url: As passed.
        timeouts: As passed.
    """

    def __init__(
        self,
        requests: HttpRequests,
        url: str,
        timeouts: HttpTimeouts,
        fields_of: Callable[[OutgoingMessage], HeaderFields] | None = None,
    ) -> None:
        self.requests = requests
        self.url = url
        self.timeouts = timeouts
        self._fields_of = fields_of

    def __str__(self) -> str:
        return format_url(self.url)

    def fields(self, message: OutgoingMessage, session: ServerSessionState | None) -> HeaderFields:
        """The header fields of a message."""
        if session is not None:
            return session.posted
        return POSTED if self._fields_of is None else {**POSTED, **self._fields_of(message)}

    async def post(self, message: OutgoingMessage, session: ServerSessionState | None) -> Response:
        """Post a message; see `HttpRequests.open`."""
        fields = self.fields(message, session)
        return await self.requests.open("POST", self.url, fields, message.data)

    async def get(self, session: ServerSessionState, last_event_id: str | None) -> Response:
        """Request an event stream: the events after the event with an id, or new events."""
        fields = {**LISTENING, **session.fields}
        name = session.facts.headers.last_event_id
        if name is not None and last_event_id:
            fields[name] = last_event_id
        return await self.requests.open("GET", self.url, fields)

    async def delete(self, session: ServerSessionState) -> None:
        """End a session on the server."""
        response = await self.requests.open("DELETE", self.url, session.fields)
        await self.requests.discard(response)


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
