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
from msgspec import UNSET

from .._wire import UNREADABLE
from ..facts import Method, Revision
from . import jsonrpc
from .connection import Connection
from .lifecycle import Description, RequestMetadata, declared
from .request_meta import NO_META, lacks_meta
from .requests import encode_response
from .server_connection import FOLLOWING, ServerMeta, ServerReceiver
from .tool_calls import PlainCall, PlainRequest, ready_session

_STATEFUL = FOLLOWING | ServerReceiver.own_requests()
"""Requests that change or read the state of a connection."""


class _Plan(msgspec.Struct, frozen=True):
    """The parts that requests of one revision share.

    Attributes:
        description: The description of the server that declares the methods.
        methods: The requests that are declared, by wire name.
        own_meta: `_meta` of every result, empty for none; and the same, as JSON.
    """

    description: Description
    methods: Mapping[str, Method]
    own_meta: tuple[Mapping[str, Any], Any]


class PlainRequests:
    """Reads the requests of one server's clients, and encodes the responses to these.

    Args:
        describe: The description of the server, by revision.
        meta: `_meta` shared with the connections of the same requests.
    """

    def __init__(self, describe: Callable[[Revision], Description], meta: ServerMeta) -> None:
        self._describe = describe
        self._meta = meta
        self._plans: dict[str, _Plan] = {}

    def read(self, message: jsonrpc.Request) -> PlainRequest | None:
        """A request that repeats the `_meta` of the last one; `None` for any other."""
        reader = self._meta.reader
        stated, meta, raw = reader.last, reader.last_meta, message.params
        if stated is None or raw is None:
            return None
        method = self._plan(stated.revision).methods.get(message.method)
        if method is None:
            return None
        try:
            params = method.decode_params(raw)
        except (*UNREADABLE, RecursionError):
            return None
        if getattr(params, "meta", None) != meta:
            return None
        return PlainRequest(message.id, method, params, raw, params.meta, stated)

    def read_in_session(
        self, message: jsonrpc.Request, connection: Connection
    ) -> PlainRequest | None:
        """A request without `_meta` whose method the session has admitted; `None` for any other."""
        session, raw = ready_session(connection, message.id), message.params
        if session is None or raw is None:
            return None
        method = session.admitted.get(message.method)
        if (
            method is None
            or method.params is None
            or message.method in _STATEFUL
            or not lacks_meta(bytes(raw))
        ):
            return None
        try:
            params = method.decode_params(raw)
        except (*UNREADABLE, RecursionError):
            return None
        return PlainRequest(message.id, method, params, raw, NO_META, session.metadata)

    def stated(self, call: PlainCall) -> RequestMetadata | None:
        """The metadata of a call whose `_meta` was read before, byte for byte; `None` otherwise."""
        raw = call.params.meta
        return None if raw is UNSET else self._meta.reader.known(bytes(raw))

    def encode(self, request: PlainRequest, result: Any) -> bytes | None:
        """The success response to a request; `None` if a connection has to refuse the result."""
        stated = request.stated
        plan = self._plan(stated.revision)
        try:
            return encode_response(
                request.id,
                result,
                request.method,
                stated.revision,
                stated.peer_capabilities,
                *plan.own_meta,
            )
        except Exception:
            return None

    def _plan(self, revision: Revision) -> _Plan:
        """The plan of a revision, made anew when the description of the server has changed."""
        description = self._describe(revision)
        plan = self._plans.get(revision.name)
        if plan is None or plan.description is not description:
            plan = self._plans[revision.name] = self._new_plan(revision, description)
        return plan

    def _new_plan(self, revision: Revision, description: Description) -> _Plan:
        left_out = _STATEFUL | {revision.facts.behaviour.listen}
        methods = {
            name: method
            for name, method in revision.client_requests.items()
            if name not in left_out
            and method.params is not None
            and (not method.capability or declared(description.capabilities, method.capability))
        }
        return _Plan(description, methods, self._meta.of_results(revision, self._describe))
