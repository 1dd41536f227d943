"""The session that a request belongs to, for handlers that keep something per session."""

from __future__ import annotations

import secrets
from weakref import WeakKeyDictionary

from ...protocol.connection import Connection
from ...runtime.request_context import RequestContext

_ID_BYTES = 16

_ids: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()


def session_id(context: RequestContext) -> str | None:
    """The id of the session; random over a transport without ids, `None` without a session."""
    peer = context.peer
    identifier = peer.channel.session_id
    session = peer.connection.session
    if identifier is not None or session is None or session.stateless:
        return identifier
    return _ids.setdefault(peer.connection, secrets.token_urlsafe(_ID_BYTES))
