"""Requests that are open on one connection, in both directions, responses, and notifications.

Both directions of a connection share a `ConnectionState`: roles, session, open requests. The ids of
requests of this side are a counter and never recur, as every revision requires. The progress token
of a request is its id, and therefore unique among open requests. A response has the result type and
the error codes of the revision of its request.

Source: basic/index (requests, responses, error codes, meta), basic/patterns/mrtr (2026-07-28);
basic/utilities or basic/patterns (cancellation, progress), server/utilities/logging.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from .._structs import encode_finite
from .._wire import (
    STRUCTS,
    UNREADABLE,
    UNWRITABLE,
    ValidationError,
    convert,
    decoder,
    error_text,
    is_object,
)
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    INTERNAL_ERROR,
    HeaderMismatchError,
    InternalError,
    InvalidParamsError,
    LocalProtocolError,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
    RemoteProtocolError,
    ResourceNotFoundError,
)
from ..facts import Lifecycle, Method, Revision, Revisions, Role, other
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .lifecycle import Description, Session, is_declared, missing_capability
from .request_meta import NO_META, check_user_meta, recast

if TYPE_CHECKING:
    from ..revision_facts import Facts

PROGRESS_TOKEN = "progressToken"
"""Member of a request's `_meta`."""

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"

OBJECTS: tuple[type, ...] = (*STRUCTS, Mapping, Raw)
"""Types of values that encode as objects."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424). Source: server/utilities/logging."""

_RESERVED_CODES = range(-32099, -32019)
"""Error codes that belong to the specification. Source: basic/index#error-codes (2026-07-28)."""

_logger = logging.getLogger(__name__)


Decode: TypeAlias = Callable[[bytes | Raw], Any]


def decoder_of(method: Method) -> Decode:
    """The decoder for results of a method, which are checked as a whole."""
    return decoder(method.result)


class InboundRequest(msgspec.Struct):
    """A request of the peer without response yet.

    Attributes:
        progress_token: The token for progress reports; `None` for no reports.
        log_level: The least level of log messages that the peer wants; `None` if not stated.
        progress: The last progress value.
    """

    method: Method
    revision: Revision
    params: Any
    progress_token: RequestId | None
    log_level: str | None
    peer_capabilities: Mapping[str, Any]
    progress: float | None = None

    def silence(self) -> None:
        """Send no progress and no log messages for the request, even if the peer asked for them."""
        self.progress_token = self.log_level = None

    def advance(self, value: float) -> bool:
        """Record a progress value; `False` if it must not be sent: unwanted, or not increased."""
        if self.progress_token is None or (self.progress is not None and value <= self.progress):
            return False
        self.progress = value
        return True


class OutboundRequest(msgspec.Struct):
    """A request of this side without response yet.

    Attributes:
        revision: The revision of the response.
        wants_progress: Whether the request has a progress token.
        timeout: Seconds without response or progress until it is lost; `None` for no limit.
        deadline: The time at which the timeout ends, on the caller's clock.
        limit: The time at which the request is lost despite progress.
        reads_result: Whether the result is decoded and checked.
    """

    method: Method
    revision: Revision
    wants_progress: bool = False
    timeout: float | None = None
    deadline: float | None = None
    limit: float | None = None
    reads_result: bool = True

    def extend(self, now: float) -> None:
        """Restart the timeout, within the limit."""
        if self.timeout is not None:
            deadline = now + self.timeout
            self.deadline = deadline if self.limit is None else min(deadline, self.limit)


class OutboundRequests:
    """The open requests of this side by id; `"7"` is not `7`.

    Attributes:
        has_strays: Whether a result came that belonged to no open request.
        prefix: The prefix of the ids; empty for ids that are numbers.
    """

    def __init__(self) -> None:
        self.has_strays = False
        self.prefix = ""
        self._open: dict[RequestId, OutboundRequest] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, request: OutboundRequest) -> RequestId:
        """Add a request and assign its id."""
        identifier = self.next_id
        self._last_id += 1
        self._open[identifier] = request
        return identifier

    def get(self, identifier: RequestId) -> OutboundRequest | None:
        """The open request with an id."""
        return self._open.get(identifier)

    def pop(self, identifier: RequestId) -> OutboundRequest | None:
        """Remove and return the open request with an id, if there is one."""
        return self._open.pop(identifier, None)

    def was_sent(self, identifier: RequestId) -> bool:
        """Whether a request had an id, so that its response may come late."""
        if not self.prefix:
            return isinstance(identifier, int) and 0 < identifier <= self._last_id
        return isinstance(identifier, str) and identifier.startswith(self.prefix)

    def similar(self, identifier: RequestId) -> RequestId | None:
        """The id of an open request that differs from an id by its type alone: 7 for `"7"`."""
        if isinstance(identifier, int):
            other: RequestId = str(identifier)
        elif identifier.isascii() and identifier.isdigit():
            other = int(identifier)
        else:
            return None
        return other if other in self._open else None

    @property
    def next_id(self) -> RequestId:
        """The id of the next request."""
        number = self._last_id + 1
        return f"{self.prefix}{number}" if self.prefix else number

    def ids(self) -> tuple[RequestId, ...]:
        """The ids of the open requests."""
        return tuple(self._open)

    def awaited(self) -> tuple[RequestId, ...]:
        """The ids of the open requests whose response may come now: not those of subscriptions."""
        return tuple(
            identifier
            for identifier, request in self._open.items()
            if request.method.name != request.revision.facts.behaviour.listen
        )

    def drain(self) -> list[RequestId]:
        """Remove all requests and return their ids."""
        identifiers = list(self._open)
        self._open.clear()
        return identifiers

    def deadline(self, identifier: RequestId) -> float | None:
        """The time at which a request is lost; progress may move it."""
        request = self._open.get(identifier)
        return None if request is None else request.deadline


class ConnectionState(msgspec.Struct, dict=True):
    """The state that both directions of a connection share.

    Attributes:
        role: The role of this side.
        revisions: The revisions to speak.
        describe: This side's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        result_decoder: Returns the decoder for results of a method.
        parse_batch: Parses batches, in revisions that have them.
        session: The session; `None` before the handshake, and where there is none.
        outbound: Requests that this side sent.
        inbound: Requests that the peer sent, by id.
        log_level: The least level of log messages that a client asks for in each request.
    """

    role: Role
    revisions: Revisions
    describe: Callable[[Revision], Description]
    extensions: Mapping[str, Method]
    result_decoder: Callable[[Method], Decode] = decoder_of
    parse_batch: jsonrpc.ParseBatch | None = None
    session: Session | None = None
    outbound: OutboundRequests = msgspec.field(default_factory=OutboundRequests)
    inbound: dict[RequestId, InboundRequest] = msgspec.field(
        default_factory=dict[RequestId, InboundRequest]
    )
    log_level: str | None = None

    @cached_property
    def peer_role(self) -> Role:
        """The role of the peer."""
        return other(self.role)

    @cached_property
    def newest(self) -> Revision:
        """The newest of the revisions."""
        return self.revisions.newest()

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self.session.revision if self.session is not None else self.newest

    def candidate_revisions(self) -> list[Revision]:
        """The revisions that a notification may belong to, the most likely first."""
        session = self.session
        agreed = [session.revision] if session is not None else []
        if self.role == "client" and agreed:
            return agreed
        per_request = self.revisions.of(Lifecycle.PER_REQUEST)
        return [*agreed, per_request.newest()] if per_request else agreed or [self.newest]

    def inbound_method(self, revision: Revision, name: str) -> Method | None:
        """A request that this side may receive."""
        is_client = self.role == "client"
        methods = revision.server_requests if is_client else revision.client_requests
        return methods.get(name) or self.extensions.get(name)

    def own_capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """The capabilities of this side: those of the session, or else the current ones."""
        session = self.session
        if session is not None and revision.lifecycle is Lifecycle.HANDSHAKE:
            return session.own_capabilities
        return self.describe(revision).capabilities

    def check_answerable(self, name: str) -> None:
        """Raise LocalProtocolError if a response of the peer would not reach the connection."""
        session = self.session
        if session is not None and session.lacks:
            raise LocalProtocolError(
                f"{name}: needs {session.lacks}: a response of the client would not find this "
                f"request. Serve {session.revision.name} with sessions of one process, or ask "
                "clients of a revision without sessions"
            )

    def request_target(
        self, name: str, params: Any, related_request_id: RequestId | None
    ) -> tuple[Revision, Method]:
        """The revision of a request to send, and its row in the method table.

        Raises:
            LocalProtocolError: The request must not be sent now.
            MethodNotFoundError: The revision has no such request for this side.
            MissingCapabilityError: The peer did not declare a required capability.
        """
        session = self.session
        if session is not None and related_request_id is None and not session.lacks:
            permitted = session.permitted.get(name)
            if permitted is not None:
                return session.revision, permitted
        related = None if related_request_id is None else self.inbound.get(related_request_id)
        source = related if related is not None else session
        if source is None:
            raise LocalProtocolError(f"{name}: nothing was agreed with the peer yet")
        revision = source.revision
        self.check_answerable(name)
        if self.role == "server" and not revision.server_requests:
            raise LocalProtocolError(f"{name}: in {revision.name} a server sends no requests")
        if isinstance(source, Session) and not source.may_send(name):
            raise LocalProtocolError(f"{name}: the client has not confirmed the handshake yet")
        listed = revision.requests_from(self.role).get(name) or self.extensions.get(name)
        method = listed or (custom_method(name) if self.role == "client" else None)
        if method is None:
            raise MethodNotFoundError(name, f"{revision.name} has no request {safe_text(name)}")
        check_required_capabilities(method, revision, params, source.peer_capabilities)
        if listed is not None and isinstance(source, Session):
            source.permit(listed)
        return revision, method

    def request_meta(self, revision: Revision, meta: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """`_meta` to add to a request: the revision's own keys, then the user's.

        Raises:
            LocalProtocolError: The user's `_meta` breaks a rule.
        """
        session = self.session
        added = NO_META if session is None else session.own_meta or NO_META
        if meta:
            if not is_object(meta):
                raise LocalProtocolError(f"_meta: expected an object, got {safe_repr(meta)}")
            if PROGRESS_TOKEN in meta:
                raise LocalProtocolError("_meta.progressToken: ask for progress by its argument")
            check_user_meta(meta, revision.facts)
            added = {**meta, **added}
        level_key = revision.facts.meta.log_level
        if level_key is not None and self.log_level is not None:
            added = {level_key: self.log_level, **added}
        return added

    def wants_log(self, level: str, revision: Revision, request: InboundRequest | None) -> bool:
        """Whether the client wants a log message of a level, for a request or for the session."""
        if revision.facts.behaviour.log_level == "request":
            least = None if request is None else request.log_level
            return least is not None and is_severe_enough(level, least)
        session = self.session
        return session is not None and is_severe_enough(level, session.log_level)

    def session_wants(self, session: Session, name: str) -> bool:
        """Whether a session allows a notification now, and declares its capability."""
        if session.revision.lifecycle is Lifecycle.PER_REQUEST:
            return self.role == "client"
        method = session.revision.notifications_from(self.role).get(name)
        if method is None:
            return name in self.extensions
        if not session.may_send(name):
            return False
        return not method.capability or is_declared(session.own_capabilities, method.capability)


def check_params(method: Method, params: Any) -> None:
    """Check the params of a request, `_meta` included, by the types of the revision.

    Raises:
        ValidationError: The revision has other params.
        UNWRITABLE: The params have no JSON form.
    """
    if method.params is not None and (method.params_required or params is not UNSET):
        method.decode_params(b"{}" if params is UNSET else encode_finite(params))


def decode_params(method: Method, params: Raw | None) -> Any:
    """Decode params; absent optional params decode like `{}`."""
    if params is None and method.params_required:
        raise InvalidParamsError(f"{method.name}: expected params, got nothing")
    if method.params is None:
        return None
    try:
        return method.decode_params(b"{}" if params is None else params)
    except UNREADABLE as error:
        raise InvalidParamsError(f"{method.name}: params: {error_text(error)}") from None


def check_result_type(request: OutboundRequest, result: Any) -> None:
    """Check that `resultType` has a value that this side supports, or is absent (in a draft)."""
    known = () if request.method.result is Any else request.revision.result_types
    got = getattr(result, "result_type", None)
    if known and got is not None and got not in known:
        added = request.method.facts.extension_results
        if added and any(base.__name__ in added for base in type(result).__mro__):
            return
        expected = ", ".join(sorted(known))
        raise RemoteProtocolError(
            f"{request.method.name}: resultType: expected one of {expected}, got {safe_repr(got)}"
        )


def encode_response(identifier: RequestId, result: Any, request: InboundRequest) -> bytes:
    """The JSON of a success response.

    Args:
        identifier: The request's id.
        result: The typed result, or a wire object; `None` for a result without members.
        request: The request.

    Raises:
        InternalError: The result does not fit the method, or has no JSON form.
    """
    method = request.method
    if type(result) not in method.result_structs:
        result = typed_result(method, result)
    try:
        return encode_finite(jsonrpc.ResultOut(result, identifier))
    except UNWRITABLE as error:
        text = f"{method.name}: result: no JSON form: {error_text(error)}"
        raise InternalError(text) from error


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
    response_id: Any = identifier
    if identifier is None and facts.behaviour.unreadable_id == "omit":
        response_id = UNSET
    code = sent_code(error, facts)
    if code is None:
        code = INTERNAL_ERROR
        _logger.warning(
            "the error code %r is none of %s, so %d is sent in its place: %s",
            error.code,
            revision.name,
            code,
            safe_text(str(error.message)),
        )
    data = jsonrpc.encode_error(response_id, code, str(error.message), error.data)
    return OutgoingMessage(data, "error", identifier, "", revision, identifier, error_code=code)


def check_required_capabilities(
    method: Method, revision: Revision, params: Any, capabilities: Mapping[str, Any]
) -> None:
    """Check that the peer declared the capabilities that a request to it requires.

    Raises:
        MissingCapabilityError: The peer did not declare one of them.
    """
    path = missing_capability(method, params, capabilities)
    if path is not None:
        raise MissingCapabilityError(path, f"{method.name} in {revision.name}")


def typed_result(method: Method, result: Any) -> Any:
    """Convert a result into the type of the revision; raw JSON is returned as passed."""
    value: Any = NO_META if result is None else result
    is_struct, is_raw = isinstance(value, STRUCTS), isinstance(value, Raw)
    if not isinstance(value, OBJECTS):
        raise InternalError(f"{method.name}: expected an object as result, got {safe_repr(value)}")
    if method.result is None or is_raw:
        return value
    try:
        return (recast if is_struct else convert)(value, method.result)
    except UNWRITABLE as error:
        raise InternalError(f"{method.name}: result: {error_text(error)}") from None


def sent_code(error: ProtocolError, facts: Facts) -> int | None:
    """The code of an error in a revision; `None` for a code that the revision must not send."""
    if isinstance(error, ResourceNotFoundError):
        return facts.errors.resource_not_found
    if isinstance(error, HeaderMismatchError) and facts.errors.header_mismatch is not None:
        return facts.errors.header_mismatch
    if isinstance(error, MissingCapabilityError) and facts.errors.missing_capability is not None:
        return facts.errors.missing_capability
    code = error.code
    if type(code) is not int or code in facts.errors.retired:
        return None
    if facts.errors.defined is not None and code in _RESERVED_CODES:
        return code if code in facts.errors.defined else None
    return code


def is_severe_enough(level: str, least: str | None) -> bool:
    """Whether a log message of `level` reaches the threshold `least`; `None` is no threshold.

    Levels that only the schema of a draft has reach every threshold; as a threshold they admit all.
    """
    if least not in LOG_LEVELS or level not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


def is_log_level(level: str, revision: Revision) -> bool:
    """Whether log messages of a revision may have a level."""
    if level in LOG_LEVELS:
        return True
    method = revision.server_notifications.get(MESSAGE)
    try:
        convert({"level": level, "data": None}, None if method is None else method.params)
    except UNWRITABLE:
        return False
    return True


def notification(
    role: Role,
    revision: Revision,
    name: str,
    params: Mapping[str, Any],
    related_request_id: RequestId | None = None,
) -> OutgoingMessage:
    """A notification with the params type of a revision; does not check whether it may be sent.

    Raises:
        LocalProtocolError: The params do not fit.
    """
    method = revision.notifications_from(role).get(name)
    shaped: Any = params or UNSET
    if method is not None and method.params is not None and params:
        try:
            shaped = convert(params, method.params)
        except ValidationError as error:
            raise LocalProtocolError(f"{name}: params: {error_text(error)}") from None
    data = jsonrpc.encode_notification(name, shaped)
    return OutgoingMessage(data, "notification", None, name, revision, related_request_id, params)


def cancellation(
    revision: Revision, params: Mapping[str, Any], related_request_id: RequestId | None = None
) -> OutgoingMessage:
    """The notification of a revision that cancels a request."""
    data = jsonrpc.encode_notification(CANCELLED, params)
    return OutgoingMessage(
        data, "notification", None, CANCELLED, revision, related_request_id, params
    )


METHOD_CHARACTERS = 200
"""Most characters of the name of a custom method."""


def custom_method(name: object) -> Method | None:
    """The row of a custom request with any params and result; `None` for a specified name."""
    if not (isinstance(name, str) and 0 < len(name) <= METHOD_CHARACTERS and is_custom(name)):
        return None
    return Method(
        name=name,
        kind="request",
        sender="client",
        params=None,
        params_required=False,
        result=Any,
        python_name=name.replace("/", "_"),
    )


def is_custom(name: str) -> bool:
    """Whether no revision has a method of this name, and JSON-RPC does not reserve it."""
    return not name.startswith("rpc.") and name not in _specified_names()


@cache
def _specified_names() -> frozenset[str]:
    """The names of all requests and notifications, of all revisions."""
    from ..revisions import REVISIONS  # few connections send custom requests

    return frozenset(
        name
        for revision in REVISIONS.values()
        for table in (
            revision.client_requests,
            revision.server_requests,
            revision.client_notifications,
            revision.server_notifications,
            revision.input_requests,
        )
        for name in table
    )
