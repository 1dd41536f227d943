"""Responses to the peer's requests: results and errors in the shape of a revision.

Source: basic/index (responses, error codes, meta), basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from .._wire import (
    STRUCTS,
    UNWRITABLE,
    convert,
    error_text,
    has_member,
    replace,
    to_builtins,
)
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    INTERNAL_ERROR,
    HeaderMismatchError,
    InternalError,
    MissingCapabilityError,
    ProtocolError,
    ResourceNotFoundError,
)
from ..facts import Method, Revision
from ..foreign_text import safe_repr
from . import jsonrpc
from .capabilities import missing
from .lenient import recast
from .notifications import SUBSCRIBE, UNSUBSCRIBE
from .request_meta import NO_META
from .state import ConnectionState, InboundRequest

if TYPE_CHECKING:
    from ..revision_facts import Facts

_OBJECTS: tuple[type, ...] = (*STRUCTS, Mapping, Raw)
"""Types of values that encode as objects."""

RESERVED_CODES = range(-32099, -32019)
"""Error codes that belong to the specification. Source: basic/index#error-codes (2026-07-28)."""


def success_response(
    state: ConnectionState, identifier: RequestId, result: Any
) -> OutgoingMessage | None:
    """Answer an inbound request; see `Connection.respond`."""
    request = state.inbound.get(identifier)
    if request is None:
        return None
    typed = result
    if type(result) not in request.method.result_structs:
        typed = _typed_result(request.method, result)
    if state.role == "server" and request.revision.facts.meta.server_info is not None:
        typed = _with_server_meta(state, typed, request.revision)
    if (input_requests := getattr(typed, "input_requests", None)) is not None:
        _check_input_requests(request, input_requests)
    try:
        data = jsonrpc.encode_result(identifier, typed)
    except UNWRITABLE as error:
        text = f"{request.method.name}: result: no JSON form: {error_text(error)}"
        raise InternalError(text) from error
    del state.inbound[identifier]
    if state.session is not None:
        if request.method.name == SUBSCRIBE:
            state.session.subscriptions.add(request.params.uri)
        elif request.method.name == UNSUBSCRIBE:
            state.session.subscriptions.discard(request.params.uri)
    return OutgoingMessage(data, "response", identifier, "", request.revision, identifier)


def error_response(
    identifier: RequestId | None, error: ProtocolError, revision: Revision
) -> OutgoingMessage:
    """An error response, with the code that the revision defines for the error.

    Args:
        identifier: The request's id; `None` if it could not be read.
        error: The error.
        revision: The revision of the request.

    Raises:
        EncodingError: The error's message or data has no JSON form.
    """
    facts = revision.facts
    shown: Any = identifier
    if identifier is None and facts.behaviour.unreadable_id == "omit":
        shown = UNSET
    code = _code(error, facts)
    data = jsonrpc.encode_error(shown, code, str(error.message), error.data)
    return OutgoingMessage(data, "error", identifier, "", revision, identifier, error_code=code)


def check_required_capabilities(
    method: Method, revision: Revision, params: Any, capabilities: Mapping[str, Any]
) -> None:
    """Check that the peer declared what a request to it requires.

    Raises:
        MissingCapabilityError: The peer did not.
    """
    path = missing(method, params, capabilities)
    if path is not None:
        raise MissingCapabilityError(path, f"{method.name} in {revision.name}")


def _typed_result(method: Method, result: Any) -> Any:
    """A result in the revision's own type; raw JSON stays as given."""
    given: Any = NO_META if result is None else result
    is_struct, is_raw = isinstance(given, STRUCTS), isinstance(given, Raw)
    if not isinstance(given, _OBJECTS):
        raise InternalError(f"{method.name}: expected an object as result, got {safe_repr(given)}")
    if method.result is None or is_raw:
        return given
    try:
        return (recast if is_struct else convert)(given, method.result)
    except UNWRITABLE as error:
        raise InternalError(f"{method.name}: result: {error_text(error)}") from None


def _with_server_meta(state: ConnectionState, result: Any, revision: Revision) -> Any:
    """A result with the `_meta` that every result of a server has."""
    own = state.meta.own("server", revision, state.describe)
    if own and isinstance(result, STRUCTS) and has_member(type(result), "meta"):
        existing: Any = getattr(result, "meta", None)
        meta = {**own, **existing} if existing else state.meta.encoded(revision, own)
        return replace(result, meta=meta)
    return result


def _check_input_requests(request: InboundRequest, input_requests: Mapping[str, Any]) -> None:
    """Check that the client declared what each input request requires.

    Source: basic/patterns/mrtr (2026-07-28).
    """
    for input_request in input_requests.values():
        wire = to_builtins(input_request)
        method = request.revision.input_requests[wire["method"]]
        params = wire.get("params")
        check_required_capabilities(method, request.revision, params, request.peer_capabilities)


def _code(error: ProtocolError, facts: Facts) -> int:
    """The code that a revision defines for an error; a code that must not be sent is -32603."""
    if isinstance(error, ResourceNotFoundError):
        return facts.errors.resource_not_found
    if isinstance(error, HeaderMismatchError) and facts.errors.header_mismatch is not None:
        return facts.errors.header_mismatch
    if isinstance(error, MissingCapabilityError) and facts.errors.missing_capability is not None:
        return facts.errors.missing_capability
    code = error.code
    if type(code) is not int or code in facts.errors.retired:
        return INTERNAL_ERROR
    if facts.errors.defined is not None and code in RESERVED_CODES:
        return code if code in facts.errors.defined else INTERNAL_ERROR
    return code
