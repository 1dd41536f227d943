"""Requests that are read, and answered, without a connection of their own.

Most requests state nothing new: they repeat the `_meta` of the request before them, or belong to a
session that has admitted their method. Reading such a request changes no state, so its typed params
are all that is needed until a handler waits, fails or asks for its peer. `Connection.register` then
makes it an open request like any other.

Nothing is refused here. A request that is not certainly one of these is left to a `Connection`,
which also has the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from .._wire import UNREADABLE
from ..channel import RequestId
from ..errors import ProtocolError
from ..facts import Method, Revision
from . import jsonrpc
from .connection import Connection
from .lifecycle import Description, RequestMetadata, State, declared
from .notifications import FOLLOWING
from .receiver import Receiver, RequestReceived
from .request_meta import NO_META, MetaCache, lacks_meta
from .requests import encode_response

_STATEFUL = FOLLOWING | Receiver.own_requests("server")
"""Requests that change or read the state of a connection."""


class PlainRequest(msgspec.Struct, frozen=True):
    """A request that was read without a connection.

    Attributes:
        id: The request's id.
        method: Its row in the method table.
        params: Typed params.
        raw_params: The params as received.
        meta: Its `_meta`, empty if absent.
        stated: Its metadata: what it states itself, or what its session agreed.
    """

    id: RequestId
    method: Method
    params: Any
    raw_params: Raw
    meta: Mapping[str, Any]
    stated: RequestMetadata

    def event(self) -> RequestReceived:
        """The event that a connection makes of the request."""
        stated = self.stated
        return RequestReceived(
            self.id,
            self.method,
            self.params,
            self.raw_params,
            self.meta,
            stated.revision,
            stated.peer_info,
            stated.peer_capabilities,
        )


class PlainRequests:
    """Reads the requests of one server's clients, and encodes the responses to these.

    Args:
        describe: The description of the server, by revision.
        meta: `_meta` shared with the connections of the same requests.
    """

    def __init__(self, describe: Callable[[Revision], Description], meta: MetaCache) -> None:
        self._describe = describe
        self._meta = meta
        # Methods that a description declares, which change with it.
        self._declared: dict[str, tuple[Description, Mapping[str, Method]]] = {}

    def read(self, message: jsonrpc.Request) -> PlainRequest | None:
        """A request that repeats the `_meta` of the last one; `None` for any other."""
        reader = self._meta.reader
        stated, meta, raw = reader.last, reader.last_meta, message.params
        if stated is None or raw is None:
            return None
        method = self._methods(stated.revision).get(message.method)
        params = None if method is None else _decode(method, raw)
        if method is None or params is None or getattr(params, "meta", None) != meta:
            return None
        return PlainRequest(message.id, method, params, raw, params.meta, stated)

    def read_in_session(
        self, message: jsonrpc.Request, connection: Connection
    ) -> PlainRequest | None:
        """A request without `_meta` whose method the session has admitted; `None` for any other."""
        session, raw = connection.session, message.params
        if session is None or session.state is not State.READY or raw is None:
            return None
        method = session.admitted.get(message.method)
        if method is None or message.method in _STATEFUL or connection.is_open(message.id):
            return None
        params = _decode(method, raw) if lacks_meta(bytes(raw)) else None
        if params is None:
            return None
        return PlainRequest(message.id, method, params, raw, NO_META, session.metadata)

    def encode(self, request: PlainRequest, result: Any) -> bytes | None:
        """The success response to a request; `None` if a connection has to refuse the result."""
        stated = request.stated
        revision = stated.revision
        own = NO_META
        if revision.facts.meta.server_info is not None:
            own = self._meta.own("server", revision, self._describe)
        try:
            return encode_response(
                request.id,
                result,
                request.method,
                revision,
                stated.peer_capabilities,
                own,
                self._meta.encoded(revision, own) if own else own,
            )
        except ProtocolError:
            return None

    def _methods(self, revision: Revision) -> Mapping[str, Method]:
        """The requests of a revision that the server declares now, by wire name."""
        description = self._describe(revision)
        known = self._declared.get(revision.name)
        if known is None or known[0] is not description:
            left_out = _STATEFUL | {revision.facts.behaviour.listen}
            methods = {
                name: method
                for name, method in revision.client_requests.items()
                if name not in left_out
                and method.params is not None
                and (not method.capability or declared(description.capabilities, method.capability))
            }
            known = self._declared[revision.name] = (description, methods)
        return known[1]


def _decode(method: Method, raw: Raw) -> Any:
    """Typed params; `None` if they can't be decoded."""
    try:
        return method.decode_params(raw)
    except (*UNREADABLE, RecursionError):
        return None
