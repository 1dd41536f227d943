"""POSTs of revisions without sessions: their header fields, and the response to each.

Header fields repeat values of the body; both have to agree. Each POST has its own connection, and
one response or stream.

Source: basic/transports/streamable-http (2026-07-28: request metadata, backward compatibility),
basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import anyio
import msgspec
from msgspec import UNSET, Raw

from ..._wire import UNREADABLE, decoder
from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import (
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    EndOfChannel,
    HeaderMismatchError,
    InternalError,
    InvalidParamsError,
    ProtocolError,
    UnsupportedRevisionError,
)
from ...facts import Lifecycle, Revision, Revisions
from ...foreign_text import safe_repr, safe_text
from ...framing import http_headers
from ...protocol import jsonrpc
from ...protocol.lifecycle import RequestMetadata
from ...protocol.param_headers import ParamHeadersOf, value_at
from ...protocol.plain_requests import PlainRequests
from ...protocol.receiver import CancelReceived, NotificationReceived, RequestReceived, Send
from ...protocol.requests import error_response
from ...protocol.server_connection import ServerConnection, ServerMeta
from ...protocol.tool_calls import PlainCall, PlainRequest
from ...revision_facts import Facts, Headers
from ...runtime.concurrency import pausing
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.request_context import NETWORK
from ...runtime.task_scope import TaskScope
from ..serving import AnnouncementQueue, Service
from . import http_response
from . import request as http
from .http_response import SHUTTING_DOWN, HttpResponse
from .plain_calls import Opened, PlainService
from .quotas import Quotas, StreamMemory
from .response_writer import PostResponse
from .settings import ServerHttpSettings

BodyValues: TypeAlias = Any
"""Values of a message that header fields repeat: `meta.revision`, `arguments`, and names.

A member that the message does not have is UNSET. `None` stands for params of the wrong type.
"""

_ARGUMENTS = "arguments"
_META = "_meta"
_decode_any = decoder(Any)
_UNAVAILABLE = 503
_WATCH_INTERVAL = 0.25  # seconds between two looks at the calls that wait, at most


class StatelessEndpoint:
    """Serves the revisions without sessions.

    Args:
        service: What is served.
        settings: How it is served.
        background: Runs the tasks that wait for clients to disconnect.
        quotas: What all clients use together.

    Attributes:
        headers: The rules of these revisions for header fields.
        requests: Reads requests the plain way.
    """

    def __init__(
        self, service: Service, settings: ServerHttpSettings, background: TaskScope, quotas: Quotas
    ) -> None:
        self.headers = HeaderValidator(service.revisions, service.param_headers_of)
        self._quotas = quotas
        self._service = service
        self._settings = settings
        self._background = background
        facts = self.headers.facts or Facts()
        self._statuses = _statuses(facts)
        self._http = facts.http
        self._calls = _WaitingCalls(settings.keep_alive)
        quotas.find_disconnected.append(self._calls.watch_all)
        self.requests = PlainRequests(service.describe, self.headers.meta_cache)

    async def watch(self) -> None:
        """Watch the clients of calls that wait for long, until cancelled."""
        await self._calls.watch()

    def watch_all(self) -> None:
        """Watch the clients of all calls that wait now."""
        self._calls.watch_all()

    async def fail_all(self, text: str) -> None:
        """Respond to all calls with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for call in self._calls:
                tasks.start_soon(call.fail, text)

    async def post(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Message | None,
        values: BodyValues,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
    ) -> None:
        """Respond to one POST.

        Args:
            request: The POST.
            message: The message in its body; `None` for a batch.
            values: The values of the message that header fields repeat.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller; cancelled when the request is cancelled.
        """
        if not isinstance(message, jsonrpc.Request):
            await (await self._take(request, message)).send(send)
            return
        response = self._response_of(request, receive, send)
        try:
            self.headers.check(request, message, values)
        except ProtocolError as error:
            await response.send(self._refusal(message.id, error))
            return
        connection = self._connection()
        peer = Peer(connection, response, self._service.application)
        NETWORK.set(http.network_of(request.client))
        for event in connection.receive_message(message):
            if isinstance(event, RequestReceived):
                call = _Call(self._calls, self._background, peer, event.id, response)
                await self._serve(call, event, scope)
            elif isinstance(event, Send) and connection.inbound_requests:
                await self._listen(peer, message, event.message, request, receive, response)
            else:
                await peer.handle(event)

    def admit(
        self, request: http.HttpRequest, call: PlainCall
    ) -> tuple[RequestMetadata, None] | None:
        """The metadata of a call; see `PlainEndpoint`."""
        stated = self.requests.stated(call)
        if stated is None or not self.headers.agree(
            request, stated.revision, call.method, call.params
        ):
            return None
        return stated, None

    def read(
        self, request: http.HttpRequest, message: jsonrpc.Request
    ) -> tuple[PlainRequest, None] | None:
        """A request; see `PlainEndpoint`."""
        plain = self.requests.read(message)
        if (
            plain is None
            or not self.headers.agree(
                request, plain.stated.revision, plain.method.name, plain.params
            )
            or http.response_forms(request, self._settings.answers)[1]
        ):
            return None
        NETWORK.set(http.network_of(request.client))
        return plain, None

    def open(self, served: PlainService) -> Opened:
        """Make a request an open one; see `PlainEndpoint`."""
        response = self._response_of(*served.post)
        response.done = served.done
        response.created = served.since or response.created
        connection, event = self._connection(), served.request().event()
        peer = Peer(connection, response, self._service.application)
        call = _Call(self._calls, self._background, peer, event.id, response)
        if not served.done:
            connection.register(event, served.stated)
            if served.scope is not None:  # the handler may wait, now or later
                peer.begin(event.id, served.scope)
                call.wait()
        return peer.callers, partial(self._serve, call, event)

    def wait(self, served: PlainService) -> None:
        """Have a request observed when its handler has waited for long; see `PlainEndpoint`."""
        self._calls.add(served)

    def stop_waiting(self, served: PlainService) -> None:
        """Record that the handler of a request has ended; see `PlainEndpoint`."""
        self._calls.discard(served)

    def _response_of(
        self, request: http.HttpRequest, receive: http.Receive, send: http.Send
    ) -> PostResponse:
        """The response to a request, for errors of its head at first."""
        return PostResponse(
            request,
            receive,
            send,
            self._settings,
            statuses=self._statuses,
            other_status=self._http.rejected,
        )

    async def _serve(
        self,
        call: _Call,
        event: RequestReceived,
        scope: anyio.CancelScope,
        handler: Awaitable[Any] | None = None,
    ) -> None:
        """Serve a request.

        Args:
            call: The request.
            event: The same, as its connection has it.
            scope: The scope of the caller.
            handler: Gives the result, if the handler was begun already.
        """
        response = call.response
        response.other_status = 200
        try:
            await pausing(call.peer.handle(event, scope, handler), call.wait)
        finally:
            if call.waits or not response.done:
                await call.end()

    async def _take(
        self, request: http.HttpRequest, message: jsonrpc.Message | None
    ) -> HttpResponse:
        """The response to a POST that is no request; a notification is handled first."""
        if isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        if not isinstance(message, jsonrpc.Notification):
            got = (
                "one JSON-RPC message, got an array"
                if message is None
                else "a request or a notification, got a response"
            )
            return http_response.refusal(self._http.rejected, f"expected {got}")
        try:
            self.headers.check_notification(request, message)
        except ProtocolError as error:
            return HttpResponse(self._http.rejected, self._refusal(None, error).data)
        connection = self._connection()
        peer = Peer(connection, _NoChannel(), self._service.application)
        for event in connection.receive_message(message):
            if isinstance(event, NotificationReceived):
                await peer.handle(event)
        return HttpResponse(self._http.accepted)

    async def _listen(
        self,
        peer: Peer,
        message: jsonrpc.Request,
        acknowledgement: OutgoingMessage,
        request: http.HttpRequest,
        receive: http.Receive,
        response: PostResponse,
    ) -> None:
        """Keep a subscription open until the client disconnects or the server ends the stream."""
        memory, streams = self._quotas.memory, self._quotas.streams
        refused = http.check_events(request, id=message.id)
        if refused is None and not streams.enter():
            refused = http_response.over_limit("streams", id=message.id)
        if refused is not None:
            await response.respond(refused)
            return
        self._quotas.in_flight -= 1  # counted among the streams meanwhile
        scope = anyio.CancelScope()
        stream = StreamMemory(scope.cancel)
        try:
            if not await memory.reserve(len(message.params or b""), stream):
                await response.respond(http_response.over_limit("session_bytes", id=message.id))
                return
            disconnected = await self._announce(peer, acknowledgement, receive, response, scope)
        finally:
            self._quotas.in_flight += 1
            streams.leave()
            memory.close(stream)
        if not disconnected:
            for last in peer.connection.close_streams():
                await response.send(last)
        peer.connection.stream_closed(message.id)
        await response.close()

    async def _announce(
        self,
        peer: Peer,
        acknowledgement: OutgoingMessage,
        receive: http.Receive,
        response: PostResponse,
        scope: anyio.CancelScope,
    ) -> bool:
        """Send announcements until one side ends the stream; whether the client did."""
        queue = AnnouncementQueue(peer)
        self._service.announcer.add(queue)
        try:
            await response.open_stream()
            await response.sse.event(acknowledgement.data)
            queue.send_by(self._background.start_soon)
            keep_alive = self._settings.keep_alive
            return await self._quotas.streams.hold(receive, response.sse, keep_alive, scope)
        finally:
            self._service.announcer.remove(queue)
            queue.hold()

    def _connection(self) -> ServerConnection:
        service, headers = self._service, self.headers
        return ServerConnection(
            headers.revisions,
            service.describe,
            service.extensions,
            headers.meta_cache,
            admit=service.admit,
            on_subscription=service.on_subscription,
        )

    def _refusal(self, identifier: RequestId | None, error: ProtocolError) -> OutgoingMessage:
        return error_response(identifier, error, self.headers.revisions.newest())


class _WaitingCalls:
    """The calls whose handlers wait.

    Most handlers wait for a short time. A task that waits for the client to disconnect would cost
    more than the call, so one task looks at all calls from time to time, and has those watched that
    it meets. Those that came the plain way are open requests from then on.

    Args:
        keep_alive: Seconds of silence after which a stream is opened, or gets a comment; `None` for
            never.
    """

    def __init__(self, keep_alive: float | None) -> None:
        self._interval = (
            _WATCH_INTERVAL if keep_alive is None else min(_WATCH_INTERVAL, keep_alive / 2)
        )
        self._calls: set[_Call | PlainService] = set()
        self._added: anyio.Event | None = None

    def __iter__(self) -> Iterator[_Call]:
        for call in list(self._calls):
            if isinstance(call, PlainService):
                self._calls.discard(call)
                call.observe()  # adds it as an open request
        return iter([call for call in self._calls if isinstance(call, _Call)])

    def add(self, call: _Call | PlainService) -> None:
        """Add a call."""
        self._calls.add(call)
        if self._added is not None:
            self._added.set()
            self._added = None

    def discard(self, call: _Call | PlainService) -> None:
        """Remove a call."""
        self._calls.discard(call)

    async def watch(self) -> None:
        """Have calls watched, until cancelled."""
        while True:
            if not self._calls:
                self._added = anyio.Event()
                await self._added.wait()
            await anyio.sleep(self._interval)
            self.watch_all()

    def watch_all(self) -> None:
        """Have all calls watched that wait now."""
        for call in self:
            if not call.watched:
                call.watch()


class _Call:
    """A request that is being served.

    Args:
        calls: The calls whose handlers wait.
        background: Runs the tasks that watch and cancel.
        peer: The protocol of the request.
        identifier: Id of the request.
        response: The response.

    Attributes:
        peer: As passed.
        response: As passed.
        waits: Whether the handler had to wait.
        watched: Whether a task waits for the client to disconnect.
    """

    __slots__ = ("_background", "_calls", "_id", "peer", "response", "waits", "watched")

    def __init__(
        self,
        calls: _WaitingCalls,
        background: TaskScope,
        peer: Peer,
        identifier: RequestId,
        response: PostResponse,
    ) -> None:
        self._calls = calls
        self._background = background
        self.peer = peer
        self._id = identifier
        self.response = response
        self.waits = self.watched = False

    def wait(self) -> None:
        """Record that the handler has to wait; a call that waits for long is watched."""
        self.waits = True
        self._calls.add(self)
        self.response.call_on_abort(self._on_abort)
        if self.response.events_only:  # the stream begins at once
            self.watch()

    def watch(self) -> None:
        """Wait for the client to disconnect."""
        self.watched = True
        self._background.start_soon(self.response.watch)

    async def end(self) -> None:
        """End the response; with an error if there was none, because the host cancelled."""
        response = self.response
        response.stop_watching()
        self._calls.discard(self)
        if not response.done:
            with anyio.CancelScope(shield=True):
                await self.fail(SHUTTING_DOWN)
        await response.close()

    async def fail(self, text: str) -> None:
        """Respond with an error and cancel the request; the client has a second to read."""
        peer, response = self.peer, self.response
        message = peer.connection.fail(self._id, InternalError(text))
        if message is not None:
            response.other_status = _UNAVAILABLE
            with (
                anyio.move_on_after(PARTING_SECONDS) as waiting,
                suppress(Exception),  # the host's own
            ):
                await response.send(message)
            if waiting.cancelled_caught:
                response.sse.abort()
        await peer.handle(CancelReceived(self._id, text))

    def _on_abort(self) -> None:
        self.response.done = True
        self._background.start_soon(self._cancel)

    async def _cancel(self) -> None:
        for event in self.peer.connection.stream_closed(self._id):
            await self.peer.handle(event)


class _NoChannel(Channel):
    """The channel of a notification, which has no response."""

    async def receive(self) -> bytes:
        raise EndOfChannel("a POST brings one message")

    async def send(self, message: OutgoingMessage) -> None:
        raise ConnectionClosedError("a notification is not answered")

    async def close(self) -> None:
        pass


def _statuses(facts: Facts) -> dict[int, int]:
    """HTTP status by JSON-RPC error code."""
    pairs = (
        (METHOD_NOT_FOUND, facts.http.unknown_method),
        (facts.errors.header_mismatch, facts.http.header_mismatch),
        (facts.errors.unsupported_revision, facts.http.unsupported_revision),
        (facts.errors.missing_capability, facts.http.missing_capability),
    )
    return {code: status for code, status in pairs if code is not None and status is not None}


class HeaderValidator:
    """Compares header fields with the body of a POST.

    Args:
        revisions: All revisions that are served.
        param_headers_of: Arguments of a tool that header fields repeat.

    Attributes:
        revisions: The revisions without sessions.
        facts: The facts of the newest of them; `None` if there is none.
        meta_cache: `_meta` that all connections of these revisions share.
    """

    def __init__(self, revisions: Revisions, param_headers_of: ParamHeadersOf) -> None:
        self.revisions = revisions.of(Lifecycle.PER_REQUEST)
        self.facts: Facts | None = self.revisions.newest().facts if self.revisions else None
        self.meta_cache = ServerMeta(self.revisions)
        self._others = frozenset(revisions) - frozenset(self.revisions)
        self._other_values = frozenset(name.encode() for name in self._others)
        self._version_values = frozenset(name.encode() for name in self.revisions)
        self._param_headers_of = param_headers_of
        facts = self.facts or Facts()
        self._version_key = http.field_key(facts.headers.protocol_version or "")
        self._method_key = http.field_key(facts.headers.method or "")
        self._name_key = http.field_key(facts.headers.name or "")
        self._attributes = {name: f"named_{i}" for i, name in enumerate(sorted(facts.name_members))}
        self._decode = _values_decoder(facts.meta.protocol_version or "", self._attributes)
        self._no_values: BodyValues = self._decode(b"{}")

    def values_of(self, message: jsonrpc.Message | None) -> BodyValues:
        """The values of a message that header fields repeat; a batch has none."""
        if not isinstance(message, jsonrpc.Request) or message.params is None:
            return self._no_values
        try:
            return self._decode(message.params)
        except UNREADABLE:
            return None

    def applies(
        self, request: http.HttpRequest, message: jsonrpc.Message | None, values: BodyValues
    ) -> bool:
        """Whether the header or the body of a POST names a revision without sessions.

        For `server/discover` only the header counts: gateways that know older revisions only
        forward that request like any other, and their header says how later requests will come.
        """
        facts = self.facts
        if facts is None:
            return False
        if _revision(values) is not None and not http.is_discovery(message):
            return True
        value = request.headers.get(self._version_key)
        if value is None or value in self._other_values:
            return False
        return request.field(facts.headers.protocol_version) not in self._others

    def named_by(self, request: http.HttpRequest) -> bool:
        """Whether the header of a request names a revision without sessions."""
        named = None if self.facts is None else request.field(self.facts.headers.protocol_version)
        return named is not None and named in self.revisions

    def check(
        self, request: http.HttpRequest, message: jsonrpc.Request, values: BodyValues
    ) -> None:
        """Compare the header fields of a request with its body.

        Raises:
            HeaderMismatchError: They differ, or a field is missing.
            UnsupportedRevisionError: The revision is none of these.
            InvalidParamsError: The params have the wrong type.
        """
        facts = self.facts
        assert facts is not None
        headers = facts.headers
        self._check_revision(request, values, facts)
        if values is None:
            raise InvalidParamsError("params: expected an object, and one as its _meta")
        if request.headers.get(self._method_key, b"").decode("latin-1") != message.method:
            _check_value(
                request, headers.method, message.method, encoded=not message.method.isascii()
            )
        stated = facts.method(message.method)
        if stated.named_by is None:
            return
        name = getattr(values, self._attributes[stated.named_by])
        if not isinstance(name, str):
            return  # invalid; the body is refused later
        value = request.headers.get(self._name_key, b"").decode("latin-1")
        if value != name or not _is_plain(name):
            _check_value(request, headers.name, name, encoded=True)
        if stated.param_headers and headers.param_prefix is not None:
            param_headers = self._param_headers_of(name)
            if param_headers:
                arguments = _decoded(values.arguments)
                _check_arguments(request, headers.param_prefix, param_headers, arguments)

    def agree(
        self, request: http.HttpRequest, revision: Revision, method: str, params: object
    ) -> bool:
        """Whether the header fields of a request are certainly those that `check` wants."""
        headers = request.headers
        if (
            headers.get(self._version_key) != revision.name.encode()
            or headers.get(self._method_key) != method.encode()
        ):
            return False
        stated = revision.facts.method(method)
        if stated.named_by is None:
            return True
        name = getattr(params, stated.named_by, None)
        return (
            isinstance(name, str)
            and _is_plain(name)
            and headers.get(self._name_key) == name.encode()
            and not (stated.param_headers and self._param_headers_of(name))
        )

    def check_notification(self, request: http.HttpRequest, message: jsonrpc.Notification) -> None:
        """Compare the header fields that a notification has with its body.

        Raises:
            HeaderMismatchError: They differ.
            UnsupportedRevisionError: The revision is none of these.
        """
        assert self.facts is not None
        headers: Headers = self.facts.headers
        named = request.field(headers.protocol_version)
        if named is not None and named not in self.revisions:
            raise self._unsupported(named, self.facts)
        if request.field(headers.method) is not None:
            _check_value(
                request, headers.method, message.method, encoded=not message.method.isascii()
            )

    def _check_revision(self, request: http.HttpRequest, values: BodyValues, facts: Facts) -> None:
        field = facts.headers.protocol_version
        stated = _revision(values)
        value = request.headers.get(self._version_key)
        if value in self._version_values and value.decode() == stated:
            return
        named = request.field(field)
        if named is None:
            supported = ", ".join(self.meta_cache.reader.supported)
            raise HeaderMismatchError(f"{field}: expected one of {supported}, got nothing")
        if stated is not None and stated != named:
            raise HeaderMismatchError(
                f"{field}: the header says {safe_repr(named, 80)}, the body {safe_repr(stated, 80)}"
            )
        if named not in self.revisions:
            raise self._unsupported(named, facts)

    def _unsupported(self, named: str, facts: Facts) -> UnsupportedRevisionError:
        code = facts.errors.unsupported_revision
        return UnsupportedRevisionError(safe_text(named), self.meta_cache.reader.supported, code)


def _values_decoder(key: str, attributes: Mapping[str, str]) -> Callable[[bytes | Raw], BodyValues]:
    """A decoder of params for the values that header fields repeat.

    Args:
        key: The key of `_meta` that names the revision.
        attributes: Attribute of the result by each member that names a thing.
    """
    meta = msgspec.defstruct(
        "_StatedMeta", [("revision", Any, UNSET)], rename={"revision": key}, gc=False
    )
    values = msgspec.defstruct(
        "_BodyValues",
        [
            *((attribute, Any, UNSET) for attribute in attributes.values()),
            (_ARGUMENTS, Raw | msgspec.UnsetType, UNSET),
            ("meta", meta | msgspec.UnsetType, UNSET),
        ],
        rename={"meta": _META, **{to: member for member, to in attributes.items()}},
        gc=False,
    )
    decode: Callable[[bytes | Raw], BodyValues] = msgspec.json.Decoder(values).decode
    return decode


def _revision(values: BodyValues) -> str | None:
    """The revision that a request's own `_meta` names."""
    if values is None or values.meta is UNSET:
        return None
    named = values.meta.revision
    return named if isinstance(named, str) else None


def _decoded(arguments: Any) -> Any:
    """Arguments as JSON values.

    Raises:
        InvalidParamsError: They can't be decoded.
    """
    try:
        return None if arguments is UNSET else _decode_any(arguments)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params.arguments: {error}") from None


def _check_arguments(
    request: http.HttpRequest,
    prefix: str,
    param_headers: Mapping[tuple[str, ...], str],
    arguments: Any,
) -> None:
    """Compare the parameter headers of a tool call with its arguments."""
    for path, name in param_headers.items():
        value = value_at(arguments, path)
        field = f"{prefix}{name}"
        if value is not None:
            _check_value(request, field, value, encoded=True)
        elif (header := request.field(field)) is not None:
            raise HeaderMismatchError(
                f"{field}: the header says {safe_repr(header, 80)}, the body nothing"
            )


def _check_value(
    request: http.HttpRequest, field: str | None, expected: Any, *, encoded: bool = False
) -> None:
    """Refuse a field that is missing or differs from the value in the body."""
    if field is None:
        return
    value = request.field(field)
    if value is None:
        raise HeaderMismatchError(f"{field}: expected {safe_repr(expected, 80)}, got nothing")
    if value == expected and (not encoded or _is_plain(value)):
        return
    try:
        same = encoded and http_headers.says(value, expected)
    except ValueError as error:
        raise HeaderMismatchError(f"{field}: {error}") from None
    if not same:
        raise HeaderMismatchError(
            f"{field}: the header says {safe_repr(value, 80)}, the body {safe_repr(expected, 80)}"
        )


def _is_plain(value: str) -> bool:
    """Whether a value is certainly not encoded."""
    return value.isascii() and value.isprintable() and not value.startswith("=?")
