"""Tool calls that are read in one pass, and answered without becoming open requests.

Most calls state nothing new: they repeat the `_meta` of the request before them, or belong to a
session that has admitted calls. Reading such a call changes no state, so nothing else is needed
until its function waits, fails or asks for its peer. `Connection.register` then makes it an open
request like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE
from ..channel import RequestId
from ..facts import Method
from . import jsonrpc
from .connection import Connection
from .lifecycle import RequestMetadata, Session, State
from .receiver import RequestReceived
from .request_meta import NO_META, lacks_meta


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


_SHALLOW = 400  # bytes, which can't be nested so deeply that reading them exceeds the stack
_MOST_BRACKETS = 200  # of a longer body, for the same reason


def read_call(body: bytes) -> PlainCall | None:
    """The tool call that a body is; `None` for anything else.

    Nor is it one with further params, or with as many brackets as a body that is nested deeply.
    """
    if b'"tools/call"' not in body:
        return None
    if len(body) > _SHALLOW and body.count(b"{") + body.count(b"[") > _MOST_BRACKETS:
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
    """The whole request in a body that `read_call` has read."""
    message = jsonrpc.parse(body)
    assert isinstance(message, jsonrpc.Request)
    assert message.params is not None
    method = stated.revision.client_requests[message.method]
    params = method.decode_params(message.params)
    meta = NO_META if lacks_meta(bytes(message.params)) else params.meta
    return PlainRequest(message.id, method, params, message.params, meta, stated)


def ready_session(connection: Connection, identifier: RequestId) -> Session | None:
    """The session of a connection, if it is ready for a request with an id."""
    session = connection.session
    if session is None or session.state is not State.READY or connection.is_open(identifier):
        return None
    return session


def session_of(call: PlainCall, connection: Connection) -> RequestMetadata | None:
    """The metadata of the session of a call without `_meta`; `None` if it admits no calls."""
    session = ready_session(connection, call.id)
    params = call.params
    if (
        session is None
        or call.method not in session.admitted
        or params.meta is not UNSET
        or not lacks_meta(bytes(params.arguments))  # `_meta` may stand in them
    ):
        return None
    return session.metadata
