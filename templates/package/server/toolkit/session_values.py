"""Values that handlers keep in the sessions of clients. They end with the connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from ...errors import LocalProtocolError
from ...facts import Lifecycle
from ...protocol.connection import Connection
from ...runtime.request_context import RequestContext

_T = TypeVar("_T")


class SessionState:
    """The method that keeps values in a session; a base of `Context`."""

    __slots__ = ()

    request_context: RequestContext

    def session_state(self, kind: Callable[[], _T], *, expires: float | None = None) -> _T:
        """The value of a type that belongs to the client's session, made when it is first used.

            cart = ctx.session_state(Cart)

        It lasts as long as the session: over HTTP until the client ends it, or does nothing for
        `Limits.idle` seconds; over other transports until the client disconnects.

        Args:
            kind: The type, or another function that makes the value; one value per function.
            expires: Seconds without use after which the value is made again; `None` for never.

        Raises:
            LocalProtocolError: The request belongs to no session, as in 2026-07-28 and with
                `stateless=True`; or the session has too many values.
        """
        return _session_value(self.request_context, kind, expires)


_MOST_VALUES = 100  # of one session
_ALTERNATIVE = "return a handle to the client, and take it as an argument of later calls"


class _StoredValue(msgspec.Struct):
    value: Any
    last_used: float


_lock = threading.RLock()  # plain functions run in worker threads
_values: WeakKeyDictionary[Connection, dict[Any, _StoredValue]] = WeakKeyDictionary()


def connection_of_session(context: RequestContext, feature: str, alternative: str) -> Connection:
    """The connection of the session that a request belongs to.

    Args:
        context: The request.
        feature: Name of the feature that needs the session, for the error.
        alternative: What to do instead, for the error.

    Raises:
        LocalProtocolError: The request belongs to no session.
    """
    connection = context.peer.connection
    session = connection.session
    name = context.revision.name
    if session is None or context.revision.lifecycle is Lifecycle.PER_REQUEST:
        text = f"a request of {name} belongs to no session"
    elif session.lacks:
        text = f"in {name} it needs {session.lacks}"
    else:
        return connection
    raise LocalProtocolError(f"{feature}: {text}; instead, {alternative}")


def _session_value(
    context: RequestContext, make: Callable[[], _T], seconds: float | None = None
) -> _T:
    """The session's value for a function, which makes the value at the first use."""
    if seconds is not None and seconds <= 0:
        raise ValueError(f"session_state: expires: expected more than 0 seconds, got {seconds}")
    connection = connection_of_session(context, "session_state", _ALTERNATIVE)
    now = time.monotonic()
    with _lock:
        values = _values.setdefault(connection, {})
        stored = values.get(make)
        if stored is not None and seconds is not None and now - stored.last_used >= seconds:
            stored = None
        if stored is None:
            if make not in values and len(values) >= _MOST_VALUES:
                raise LocalProtocolError(
                    f"session_state: expected at most {_MOST_VALUES} types or functions in a "
                    "session; pass the same one in each call"
                )
            stored = values[make] = _StoredValue(make(), now)
        stored.last_used = now
    value: _T = stored.value
    return value
