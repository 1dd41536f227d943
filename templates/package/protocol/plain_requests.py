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
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE
from ..channel import RequestId
from ..facts import Method, Revision
from . import jsonrpc
from .connection import Connection
from .lifecycle import Description, RequestMetadata, Session, State, declared
from .receiver import RequestReceived
from .request_meta import NO_META, lacks_meta
from .requests import encode_response
from .server_connection import FOLLOWING, ServerMeta, ServerReceiver

_STATEFUL = FOLLOWING | ServerReceiver.own_requests()
"""Requests that change or read the state of a connection."""


class _CallParams(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Params of a tool call that neither asks for more than a result nor repeats a question."""

    name: str
    arguments: Raw = Raw(b"{}")
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_Id: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=jsonrpc.ID_CHARACTERS)]
)


class PlainCall(msgspec.Struct, gc=False):
    """A tool call of any revision, read in one pass over its JSON."""

    jsonrpc: Literal["2.0"]
    id: _Id
    method: Literal["tools/call"]
    params: _CallParams


_decode_call = msgspec.json.Decoder(PlainCall).decode


def read_call(body: bytes) -> PlainCall | None:
    """The tool call that a body is; `None` for anything else, and for one with further params."""
    if b'"tools/call"' not in body:
        return None
    try:
        return _decode_call(body)
    except UNREADABLE:
        return None


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


def read_again(body: bytes, stated: RequestMetadata) -> PlainRequest:
    """The whole request in a body that `read_call` has read.

    Raises:
        RecursionError: Its arguments are nested too deeply.
    """
    message = jsonrpc.parse(body)
    assert isinstance(message, jsonrpc.Request)
    assert message.params is not None
    method = stated.revision.client_requests[message.method]
    params = method.decode_params(message.params)
    meta = NO_META if lacks_meta(bytes(message.params)) else params.meta
    return PlainRequest(message.id, method, params, message.params, meta, stated)


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


def _ready_session(connection: Connection, identifier: RequestId) -> Session | None:
    """The session of a connection, if it is ready for a request with an id."""
    session = connection.session
    if session is None or session.state is not State.READY or connection.is_open(identifier):
        return None
    return session


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
        session, raw = _ready_session(connection, message.id), message.params
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

    def in_session(self, call: PlainCall, connection: Connection) -> RequestMetadata | None:
        """The metadata of the session of a call without `_meta`; `None` if it admits no calls."""
        session = _ready_session(connection, call.id)
        params = call.params
        if (
            session is None
            or call.method not in session.admitted
            or params.meta is not UNSET
            or not lacks_meta(bytes(params.arguments))  # as `read_in_session` wants it
        ):
            return None
        return session.metadata

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
