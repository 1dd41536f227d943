"""The sending half of a connection: what may go out, and in which form.

Requests, answers and cancellations are here, notifications in `notifying`.

Source: basic/index, basic/utilities or basic/patterns (cancellation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from .._wire import (
    UNWRITABLE,
    convert,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..channel import RequestId
from ..errors import (
    INTERNAL_ERROR,
    HeaderMismatchError,
    InternalError,
    LocalProtocolError,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
    ResourceNotFoundError,
)
from ..facts import Method, Revision
from ..foreign_text import safe_repr
from ..revision_facts import Facts
from . import jsonrpc
from .events import Send
from .lenient import recast
from .meta_keys import check_user_meta
from .notifications import CANCELLED
from .request_meta import Shared
from .requests import Call, InboundRequest
from .required_capabilities import missing
from .state import ConnectionState
from .subscriptions import SUBSCRIBE, UNSUBSCRIBE

RESERVED_CODES = range(-32099, -32019)
"""Error codes that belong to the specification. Source: basic/index#error-codes (2026-07-28)."""

_TOKEN = "progressToken"
_NOTHING: Mapping[str, Any] = {}


class Sender:
    """Builds the messages of one side and refuses those that a rule forbids."""

    def __init__(self, state: ConnectionState, shared: Shared) -> None:
        self._state = state
        self._stamps = shared.stamps
        self._encoded_stamps = shared.encoded_stamps

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        serving: RequestId | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        now: float = 0.0,
    ) -> tuple[int, bytes]:
        """Begin a request.

        Args:
            name: The method.
            params: Its typed params, or a wire object, or raw JSON; `None` for none.
            meta: What the user adds to `_meta`.
            progress: Whether progress is wanted.
            serving: The received request on whose behalf it is made, if any.
            timeout: Seconds until it counts as lost; progress starts them anew.
            limit: Seconds until it is lost whatever progress comes.
            now: This moment, on the caller's clock.

        Returns:
            Its id and the message.

        Raises:
            MethodNotFoundError: The agreed revision has no such request for this side.
            MissingCapabilityError: The peer did not declare what it needs.
            LocalProtocolError: It must not be sent now, `meta` breaks a rule, or the params have
                no JSON form.
        """
        revision, capabilities = self._peer(name, serving)
        method = self._state.outgoing_request(revision, name)
        if method is None:
            raise MethodNotFoundError(name)
        if params is not None and not isinstance(params, (msgspec.Struct, Mapping, Raw)):
            got = safe_repr(params)
            raise LocalProtocolError(f"{name}: expected an object as params, got {got}")
        self._check_declared(method, revision, params, capabilities)
        call = Call(method, revision, progress, timeout, None, None)
        if limit is not None:
            call.deadline = call.limit = now + limit
        call.extend(now)
        added = self._added_meta(revision, meta)
        identifier = self._state.calls.add(call)
        try:
            if progress:
                added = {**added, _TOKEN: identifier}
            shaped = _with_meta(params, added, self._encoded(revision, added))
            return identifier, jsonrpc.encode_request(identifier, name, shaped)
        except UNWRITABLE as error:
            self._state.calls.pop(identifier)
            what = f"{name}: params: no JSON form: {error_text(error)}"
            raise LocalProtocolError(what) from error

    def opening_request(
        self, revision: Revision, name: str, params: Mapping[str, Any]
    ) -> tuple[int, bytes]:
        """The request that opens a session, before anything is agreed: its id and the message."""
        method = revision.client_requests[name]
        identifier = self._state.calls.add(Call(method, revision, False, None, None, None))
        stamp = self._stamp(revision)
        shaped = _with_meta(params or None, stamp, stamp)
        if shaped is not UNSET and method.params is not None:
            shaped = convert(shaped, method.params)
        return identifier, jsonrpc.encode_request(identifier, name, shaped)

    def respond(self, identifier: RequestId, result: Any = None) -> bytes | None:
        """Answer a request.

        Args:
            identifier: Its id.
            result: The typed result, or a wire object that is converted into it (members that the
                revision does not have fall away); `None` for a result without members.

        Returns:
            The message, or `None` if no answer is wanted any more.

        Raises:
            InternalError: The result does not fit the method, or has no JSON form; `fail` has to
                follow.
            MissingCapabilityError: It asks for input that the client did not declare to give.
        """
        serving = self._state.serving.get(identifier)
        if serving is None:
            return None
        built = self._result(serving.method, serving.revision, result)
        self._check_input_requests(serving, built)
        try:
            message = jsonrpc.encode_result(identifier, built)
        except UNWRITABLE as error:
            what = f"{serving.method.name}: result: no JSON form: {error_text(error)}"
            raise InternalError(what) from error
        del self._state.serving[identifier]
        self._keep_subscription(serving)
        return message

    def fail(self, identifier: RequestId, error: ProtocolError) -> bytes | None:
        """Answer a request with an error; `None` if no answer is wanted any more."""
        serving = self._state.serving.get(identifier)
        if serving is None:
            return None
        message = refusal(identifier, error, serving.revision)
        del self._state.serving[identifier]
        return message

    def cancel(self, identifier: RequestId, reason: str | None = None) -> bytes | None:
        """Give up a request of ours.

        Returns:
            The notification to send, or `None`: it was answered already, or may not be cancelled.
        """
        call = self._state.calls.pop(identifier)
        if call is None or not call.revision.facts.method(call.method.name).cancellable:
            return None
        if CANCELLED not in call.revision.notifications_from(self._state.role):
            return None
        params: dict[str, Any] = {"requestId": identifier}
        if reason is not None:
            params["reason"] = reason
        return jsonrpc.encode_notification(CANCELLED, params)

    def abandoned(self, identifier: RequestId) -> bytes | None:
        """Give up a request of ours whose stream is closed for that.

        Returns:
            The notification to send; `None` also where closing the stream says it all.

        Source: basic/patterns/cancellation (2026-07-28: transport-specific cancellation).
        """
        call = self._state.calls.get(identifier)
        if call is not None and call.revision.facts.http.cancellation == "close":
            self._state.calls.pop(identifier)
            return None
        return self.cancel(identifier)

    def close_streams(self) -> list[Send]:
        """End all subscription streams from the server's side.

        Each gets its result, by which clients tell a graceful end, and then the cancellation that
        the page on cancellation asks for.

        Source: basic/patterns/subscriptions, basic/patterns/cancellation (2026-07-28).
        """
        sends: list[Send] = []
        for identifier in self._state.streams.ids():
            revision = self._state.serving[identifier].revision
            self._state.streams.close(identifier)
            key = revision.facts.meta.subscription_id
            message = self.respond(identifier, {"_meta": {key: identifier}})
            cancelled = jsonrpc.encode_notification(CANCELLED, {"requestId": identifier})
            sends += [Send(message, identifier)] if message is not None else []
            sends.append(Send(cancelled, identifier))
        return sends

    def _peer(self, name: str, serving: RequestId | None) -> tuple[Revision, Mapping[str, Any]]:
        """The revision of a request of ours, and what the peer declared for it."""
        if serving is not None and (open_request := self._state.serving.get(serving)) is not None:
            self._allow_request(open_request.revision, name)
            return open_request.revision, open_request.peer_capabilities
        session = self._state.session
        if session is None:
            raise LocalProtocolError(f"{name}: nothing was agreed with the peer yet")
        self._allow_request(session.revision, name)
        if not session.may_send(name):
            raise LocalProtocolError(f"{name}: the client has not confirmed the handshake yet")
        return session.revision, session.peer_capabilities

    def _allow_request(self, revision: Revision, name: str) -> None:
        if self._state.role == "server" and not revision.server_requests:
            raise LocalProtocolError(f"{name}: in {revision.name} a server sends no requests")

    def _check_declared(
        self, method: Method, revision: Revision, params: Any, capabilities: Mapping[str, Any]
    ) -> None:
        """Refuse to ask for what the peer did not declare."""
        path = missing(method, params, capabilities)
        if path is not None:
            raise MissingCapabilityError(path, f"{method.name} in {revision.name}")

    def _added_meta(self, revision: Revision, meta: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """`_meta` that a request gets: the revision's own keys, then the user's."""
        added = self._stamp(revision) if self._state.role == "client" else _NOTHING
        if meta:
            if not is_object(meta):
                raise LocalProtocolError(f"_meta: expected an object, got {safe_repr(meta)}")
            if _TOKEN in meta:
                raise LocalProtocolError("_meta.progressToken: ask for progress by its argument")
            check_user_meta(meta, revision.facts)
            added = {**meta, **added}
        level_key = revision.facts.meta.log_level
        if level_key is not None and self._state.log_level is not None:
            added = {level_key: self._state.log_level, **added}
        return added

    def _encoded(self, revision: Revision, meta: Mapping[str, Any]) -> Any:
        """`_meta` to be sent: if it is the stamp alone, then as the JSON that it always is."""
        if meta is not self._stamps.get(revision.name):
            return meta
        encoded = self._encoded_stamps.get(revision.name)
        if encoded is None:
            encoded = self._encoded_stamps[revision.name] = Raw(encode(meta))
        return encoded

    def _stamp(self, revision: Revision) -> Mapping[str, Any]:
        """What every request or every result of this side says in `_meta`."""
        stamp = self._stamps.get(revision.name)
        if stamp is None:
            own = self._state.describe(revision)
            keys = revision.facts.meta
            pairs: dict[str | None, Any]
            if self._state.role == "server":
                pairs = {keys.server_info: own.info}
            else:
                pairs = {
                    keys.protocol_version: revision.name,
                    keys.client_info: own.info,
                    keys.client_capabilities: own.capabilities,
                }
            stamp = {key: value for key, value in pairs.items() if key is not None}
            self._stamps[revision.name] = stamp
        return stamp

    def _result(self, method: Method, revision: Revision, result: Any) -> Any:
        built: Any = _NOTHING if result is None else result
        if not isinstance(built, (msgspec.Struct, Mapping, Raw)):
            raise InternalError(
                f"{method.name}: expected an object as result, got {safe_repr(built)}"
            )
        if method.result is not None and not _is_own_result(method, result):
            try:
                is_struct = isinstance(built, msgspec.Struct)
                built = (recast if is_struct else convert)(built, method.result)
            except UNWRITABLE as error:
                raise InternalError(f"{method.name}: result: {error_text(error)}") from None
        return self._stamped(built, revision)

    def _stamped(self, built: Any, revision: Revision) -> Any:
        """A result with what every result of a server says in `_meta`."""
        stamp = self._stamp(revision) if self._state.role == "server" else None
        if stamp and isinstance(built, msgspec.Struct) and "meta" in built.__struct_fields__:
            given: Any = getattr(built, "meta", None)
            meta = {**stamp, **given} if given else self._encoded(revision, stamp)
            return msgspec.structs.replace(built, meta=meta)
        return built

    def _check_input_requests(self, serving: InboundRequest, built: Any) -> None:
        """Refuse to ask for input of a kind that the client can't give.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        wanted = getattr(built, "input_requests", None)
        if wanted is None:
            return
        for asked in wanted.values():
            wire = to_builtins(asked)
            method = serving.revision.input_requests[wire["method"]]
            params = wire.get("params")
            self._check_declared(method, serving.revision, params, serving.peer_capabilities)

    def _keep_subscription(self, serving: InboundRequest) -> None:
        """Remember what a session subscribed to, once the server has agreed."""
        session = self._state.session
        if session is None:
            return
        if serving.method.name == SUBSCRIBE:
            session.subscriptions.add(serving.params.uri)
        elif serving.method.name == UNSUBSCRIBE:
            session.subscriptions.discard(serving.params.uri)


def _is_own_result(method: Method, value: object) -> bool:
    """Whether a result is one of the revision's own Structs, or encoded already."""
    return type(value) in method.result_structs or isinstance(value, Raw)


def refusal(identifier: RequestId | None, error: ProtocolError, revision: Revision) -> bytes:
    """An error as a message, with the code that the revision has for it."""
    facts = revision.facts
    shown: Any = identifier
    if identifier is None and facts.behaviour.unreadable_id == "omit":
        shown = UNSET
    return jsonrpc.encode_error(shown, _code(error, facts), str(error.message), error.data)


def _with_meta(params: Any, added: Mapping[str, Any], encoded: Any) -> Any:
    """Params with `_meta` merged in, in whatever form they are.

    Args:
        params: What the user gave.
        added: What `_meta` gets.
        encoded: The same, perhaps encoded already; for params that have no `_meta` themselves.
    """
    if not added:
        return UNSET if params is None else params
    if params is None:
        return {"_meta": encoded}
    if isinstance(params, msgspec.Struct):
        if "meta" not in params.__struct_fields__:
            return {**to_builtins(params), "_meta": encoded}
        given: Any = getattr(params, "meta", None)
        return msgspec.structs.replace(params, meta={**given, **added} if given else encoded)
    wire = msgspec.json.decode(params) if isinstance(params, Raw) else params
    given = wire.get("_meta")
    return {**wire, "_meta": {**given, **added} if given else encoded}


def _code(error: ProtocolError, facts: Facts) -> int:
    """The code that a revision has for an error; one that must not be sent becomes -32603."""
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
