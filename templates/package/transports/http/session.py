"""What is known of a server over Streamable HTTP: the agreement, and the session if it made one.

Source: basic/transports (session management, protocol version header).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..._wire import decoder
from ...errors import RemoteProtocolError
from ...facts import Lifecycle, Revision, Revisions
from ...framing.http_headers import is_visible_ascii
from ...revision_facts import Facts
from .outgoing import Outgoing

_decode_object = decoder(dict[str, Any])


@dataclass(eq=False)
class HttpSession:
    """One agreement by handshake.

    Attributes:
        agreed: The revision that was agreed.
        facts: What holds over HTTP: that revision's, or if it knows nothing of this transport,
            those of the one that was offered.
        initialize: The request that it came from; sent again to open another session.
        id: What the server calls the session; `None` if it made none.
        initialized: The notification that confirmed it; `None` before.
    """

    agreed: Revision
    facts: Facts
    initialize: Outgoing
    id: str | None = field(repr=False)
    initialized: Outgoing | None = None

    def fields(self) -> dict[str, str]:
        """The header fields of each HTTP request in this session."""
        headers = self.facts.headers
        fields: dict[str, str] = {}
        if headers.session is not None and self.id is not None:
            fields[headers.session] = self.id
        if headers.protocol_version is not None:
            fields[headers.protocol_version] = self.agreed.name
        return fields

    def is_lost(self, status: int) -> bool:
        """Whether a status says that the server knows the session no more."""
        return self.id is not None and status == self.facts.http.unknown_session


def facts_over_http(agreed: Revision, offered: Revision, revisions: Revisions) -> Facts:
    """What holds over Streamable HTTP, whichever revision was agreed.

    A server may agree on a revision that is older than the transport: then what was offered counts,
    or the oldest handshake that knows the transport.
    """
    for revision in chain((agreed, offered), revisions.of(Lifecycle.HANDSHAKE).values()):
        if revision.facts.transports.streamable_http is not None:
            return revision.facts
    return agreed.facts


def session_of(
    initialize: Outgoing, result: bytes, headers: Mapping[str, str], revisions: Revisions
) -> HttpSession | None:
    """The session that a result of `initialize` makes; `None` if nothing was agreed by it.

    Args:
        headers: The header fields of the response that it came with.

    Raises:
        RemoteProtocolError: The id of the session is not made of visible ASCII characters.
    """
    agreed = revisions.get(_version(result))
    if agreed is None:
        return None
    params = b"{}" if initialize.params is None else bytes(initialize.params)
    offered = revisions.get(_version(params), agreed)
    facts = facts_over_http(agreed, offered, revisions)
    id = None if facts.headers.session is None else headers.get(facts.headers.session)
    if id is not None and not is_visible_ascii(id):
        raise RemoteProtocolError(
            f"{facts.headers.session}: expected visible ASCII characters, came something else"
        )
    return HttpSession(agreed, facts, initialize, id)


def _version(members: bytes) -> str:
    version = _decode_object(members).get("protocolVersion")
    return version if isinstance(version, str) else ""
