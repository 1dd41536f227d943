"""A server's address over Streamable HTTP, and the session that a handshake with it opened.

Source: basic/transports (session management, protocol version header); 2026-07-28:
basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..._wire import decoder
from ...errors import RemoteProtocolError
from ...facts import Lifecycle, Revision, Revisions
from ...framing.http_headers import is_visible_ascii
from ...protocol.lifecycle import INITIALIZE
from ...revision_facts import Facts
from .envelope import Envelope, ParamHeaders, request_fields
from .http_client import LISTENING, POSTED, HeaderFields, HttpRequests
from .http_errors import shown
from .http_libraries import Response

_decode_object = decoder(dict[str, Any])


@dataclass(eq=False)
class ServerSessionState:
    """The result of one handshake.

    Attributes:
        agreed: The negotiated revision.
        facts: The facts that apply over HTTP: those of the negotiated revision, or of the offered
            one if the negotiated one does not have this transport.
        initialize: The request that opened the session; sent again to open another one.
        id: The id that the server gave the session; `None` if it gave none.
        initialized: The notification that confirmed the session; `None` before.
    """

    agreed: Revision
    facts: Facts
    initialize: Envelope
    id: str | None = field(repr=False)
    initialized: Envelope | None = None

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
        """Whether a status says that the server has forgotten the session."""
        return self.id is not None and status == self.facts.http.unknown_session


class Endpoint:
    """One address of a server.

    A message that names its revision stands alone; any other belongs to a session.

    Args:
        requests: Makes HTTP requests.
        url: The address.
        param_headers: Makes the parameter headers of a tool call.

    Attributes:
        requests: The same.
        url: The same.
    """

    def __init__(
        self, requests: HttpRequests, url: str, param_headers: ParamHeaders | None = None
    ) -> None:
        self.requests = requests
        self.url = url
        self._param_headers = param_headers
        self._revision: Revision | None = None

    def __str__(self) -> str:
        return shown(self.url)

    def fields(self, message: Envelope, session: ServerSessionState | None) -> HeaderFields:
        """The header fields of a message."""
        if session is not None:
            return session.posted
        if message.method == INITIALIZE:
            return POSTED
        # A notification does not name its revision in its body, but has the header field.
        self._revision = message.revision or self._revision
        if self._revision is None:
            return POSTED
        facts = self._revision.facts
        fields = request_fields(message, facts, self._param_headers)
        if facts.headers.protocol_version is not None:
            fields[facts.headers.protocol_version] = self._revision.name
        return {**POSTED, **fields}

    async def post(self, message: Envelope, session: ServerSessionState | None) -> Response:
        """Post a message; see `HttpRequests.open`."""
        fields = self.fields(message, session)
        return await self.requests.open("POST", self.url, fields, message.body)

    async def get(self, session: ServerSessionState, last_event_id: str | None) -> Response:
        """Request a stream of events: those after an event, or new ones."""
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
    offered revision, or of the oldest one with a handshake that has the transport.
    """
    for revision in chain((agreed, offered), revisions.of(Lifecycle.HANDSHAKE).values()):
        if revision.facts.transports.streamable_http is not None:
            return revision.facts
    return agreed.facts


def session_of(
    initialize: Envelope, result: bytes, header: Callable[[str], str | None], revisions: Revisions
) -> ServerSessionState | None:
    """The session that a result of `initialize` opens; `None` if it names no known revision.

    Args:
        header: Gives a header field of the response with the result; `None` for none.

    Raises:
        RemoteProtocolError: The session id has characters other than visible ASCII.
    """
    agreed = revisions.get(_version(result))
    if agreed is None:
        return None
    params = b"{}" if initialize.params is None else bytes(initialize.params)
    offered = revisions.get(_version(params), agreed)
    facts = facts_over_http(agreed, offered, revisions)
    id = None if facts.headers.session is None else header(facts.headers.session)
    if id is not None and not is_visible_ascii(id):
        raise RemoteProtocolError(
            f"{facts.headers.session}: expected visible ASCII characters, came something else"
        )
    return ServerSessionState(agreed, facts, initialize, id)


def _version(members: bytes) -> str:
    version = _decode_object(members).get("protocolVersion")
    return version if isinstance(version, str) else ""
