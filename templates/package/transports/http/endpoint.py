"""The address of a server over Streamable HTTP, and the HTTP requests that it gets.

Source: basic/transports (Streamable HTTP); 2026-07-28: basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...facts import Revision
from ...protocol.lifecycle import INITIALIZE
from .http_client import LISTENING, POSTED, HttpRequests
from .outgoing import Outgoing, ParamHeaders, request_fields
from .response import Response, shown
from .session import HttpSession

if TYPE_CHECKING:
    import httpx2


class Endpoint:
    """One address.

    What a message says of itself decides which fields it gets: one that names its revision stands
    alone; any other belongs to a session.

    Args:
        requests: Makes HTTP requests.
        url: The address.
        param_headers: Makes the fields that repeat arguments of tools.

    Attributes:
        requests: The same.
        url: The same.
    """

    def __init__(
        self, requests: HttpRequests, url: httpx2.URL, param_headers: ParamHeaders | None = None
    ) -> None:
        self.requests = requests
        self.url = url
        self._param_headers = param_headers
        self._stated: Revision | None = None

    def __str__(self) -> str:
        return shown(self.url)

    async def post(self, message: Outgoing, session: HttpSession | None) -> Response:
        """Post a message; see `HttpRequests.open`."""
        own = self._stateless(message) if session is None else session.fields()
        return await self.requests.open("POST", self.url, {**POSTED, **own}, message.body)

    async def get(self, session: HttpSession, last_event_id: str | None) -> Response:
        """Ask for a stream of events: what follows an event, or what comes from now on."""
        fields = {**LISTENING, **session.fields()}
        name = session.facts.headers.last_event_id
        if name is not None and last_event_id:
            fields[name] = last_event_id
        return await self.requests.open("GET", self.url, fields)

    async def delete(self, session: HttpSession) -> None:
        """Let the server know that a session is not needed any more."""
        response = await self.requests.open("DELETE", self.url, session.fields())
        await self.requests.discard(response)

    def _stateless(self, message: Outgoing) -> Mapping[str, str]:
        if message.method == INITIALIZE:
            return {}
        # A notification does not name its revision, yet has a header for it.
        self._stated = message.revision or self._stated
        if self._stated is None:
            return {}
        facts = self._stated.facts
        fields = request_fields(message, facts, self._param_headers)
        if facts.headers.protocol_version is not None:
            fields[facts.headers.protocol_version] = self._stated.name
        return fields
