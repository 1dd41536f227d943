"""A session with the server behind a proxy: requests of clients, and requests to clients."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol
from weakref import WeakSet

import anyio
import anyio.abc
import msgspec

from .._wire import (
    STRUCTS,
    UNREADABLE,
    UNWRITABLE,
    Raw,
    convert,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..client.async_client import Client
from ..client.chosen import TASK_CALLS
from ..client.group_requests import GroupSession
from ..client.listen import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from ..errors import (
    METHOD_NOT_FOUND,
    NO_DATA,
    RESOURCE_NOT_FOUND,
    InternalError,
    InvalidRequestError,
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
    RemoteError,
    ResourceNotFoundError,
)
from ..facts import Method, Revision, members_of
from ..foreign_text import WEB_SCHEMES
from ..protocol.lifecycle import missing_capability
from ..protocol.request_meta import is_reserved_key
from ..protocol.requests import (
    MESSAGE,
    PROGRESS,
    RESOURCE_UPDATED,
    custom_method,
    is_custom,
    sent_code,
)
from ..protocol.results import result_decoder
from ..revisions import REVISIONS
from ..runtime.pending_requests import OnProgress, PendingRequests
from ..runtime.request_context import RequestContext
from ..server.toolkit.client_features.input_required import ELICITATION_COMPLETE
from ..server.toolkit.dispatcher import Announce
from ..server.toolkit.foreign_results import Loss, Losses, convert_result, lost_members
from ..server.toolkit.registry import PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED
from .question_conversion import degraded_content, question_for, reply_for
from .waiting_calls import PassedCall, WaitingCalls

_PROGRESS_TOKEN = "progressToken"
_INPUT_REQUIRED = b'"input_required"'
_TASK = b'"task"'
_AUGMENTED = "tasks.requests.tools.call"  # the capability for tools as tasks, in 2025-11-25
_LISTS = {
    "tools": (ToolsChanged, TOOLS_CHANGED),
    "prompts": (PromptsChanged, PROMPTS_CHANGED),
    "resources": (ResourcesChanged, RESOURCES_CHANGED),
}
"""By capability: the class of the change, and the notification to clients."""

UNDECLARED = ("tasks",)
"""Capabilities that a proxy declares to neither side, so that their messages do not pass."""

_ROUTED = ("name", "uri", "ref", "cursor")  # params that a mount may have changed

_logger = logging.getLogger(__name__)

_PARAMS, _RESULT = "params", "result"
_UNKNOWN = "*"
"""The place of all members that the revision of a message does not define."""


class ReportLoss(Protocol):
    """Logs a row of `mcpgen diff A B --bridge` once; A is the revision of the message."""

    def __call__(self, row: str, reason: str, *, loss: Loss = "lost", example: str = "") -> None:
        """Report a loss.

        Args:
            row: The id of the row: a place, such as `tools/list.result.tools[].icons`.
            reason: Why.
            loss: Whether it is lost, or arrives in a form that says less.
            example: A place, from a peer, that the row stands for.
        """


class PassedMethods(Mapping[str, Method]):
    """The rows of all methods that no revision has, created on access."""

    def __getitem__(self, name: str) -> Method:
        method = custom_method(name)
        if method is None:
            raise KeyError(name)
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(())  # there are infinitely many

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


class Upstream:
    """A session with the server behind a proxy, and the handlers of the session's client.

    Args:
        name: Name of the proxy.
        announce: Announces changes to the clients of the proxy.
        report_loss: Called with a description of what can't be forwarded, and the reason.

    Attributes:
        label: The name of the server in error texts.
    """

    url_schemes: Collection[str] = WEB_SCHEMES
    mcp_custom_methods: Mapping[str, Method] = PassedMethods()

    def __init__(self, name: str, announce: Announce, report_loss: ReportLoss) -> None:
        self.label = f"the server behind proxy {name!r}"
        self._announce = announce
        self._report_loss = report_loss
        self._calls: dict[PassedCall, None] = {}
        self._clients: WeakSet[PendingRequests] = WeakSet()
        self._waiting = WaitingCalls()
        self._followed: dict[str, int] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._log_level: str | None = None
        self._has_begun = False

    @property
    def is_busy(self) -> bool:
        """Whether requests are being forwarded."""
        return bool(self._calls)

    def begin(self, client: Client, tasks: anyio.abc.TaskGroup) -> None:
        """Use an open session; tasks for notifications run in the task group.

        If an earlier session has ended, all lists and resources are announced as changed.
        """
        is_first, self._has_begun = not self._has_begun, True
        self._client = client
        self._tasks = tasks
        self._revision: Revision = client.session.revision
        self._log_level = None
        supported = {name: client.supports(f"{name}.listChanged") for name in _LISTS}
        if any(supported.values()):
            tasks.start_soon(self._announce_changes, supported)
        for uri in self._followed:
            tasks.start_soon(self._announce_updates, uri)
        if not is_first:
            for name, (_, changed) in _LISTS.items():
                if supported[name]:
                    self._announce(changed)
            for uri in self._followed:
                self._announce(RESOURCE_UPDATED, {"uri": uri})

    # requests of clients

    async def forward(self, request: RequestContext) -> Any:
        """Forward a request of a client to the server, and return the response.

        Raises:
            ProtocolError: The server responded with an error, with its code and data, or could not
                be reached.
        """
        self._clients.add(request.peer)
        facts = request.method.facts
        asks_by_request = bool(self._revision.server_requests)
        asks_meanwhile = asks_by_request or bool(facts.extension_results)  # by a task
        if asks_meanwhile and facts.input_required and not request.revision.server_requests:
            return await self._waiting.response(
                request, self._response, self._tasks, passes_states=not asks_by_request
            )
        return await self._response(PassedCall(request))

    async def notified(self, context: RequestContext) -> None:
        """Forward a notification of a client: custom, or of the server's revision."""
        self._clients.add(context.peer)
        name = context.method.name
        if is_custom(name):
            await self._client.notify(name, _custom_params(context))
            return
        if not context.method.capability or context.method.capability[0] in UNDECLARED:
            return
        if name in self._revision.client_notifications:
            await self._client.notify(name)
        else:
            self._report_loss(name, f"{self._revision_text()} has no such message")

    async def _response(self, call: PassedCall) -> Any:
        request = call.context
        name = request.method.name
        row = request.method if is_custom(name) else self._revision.client_requests.get(name)
        if row is None:
            raise MethodNotFoundError(name, f"{self.label} has no {name} ({self._revision_text()})")
        self._calls[call] = None
        try:
            result = await self._run_call(call, row, self._params(request, row))
            async with call.logging:
                return result
        except RemoteError as error:
            raise self._translate_error(error, request) from error
        except ProtocolError:
            raise
        except McpError as error:
            raise InternalError(f"{self.label} does not answer: {error}") from error
        finally:
            self._calls.pop(call, None)

    async def _run_call(self, call: PassedCall, row: Method, params: Mapping[str, Any]) -> Any:
        """Send a request; in revisions with server requests, ask the client for requested input."""
        request = call.context
        for _ in range(self._client.seen_as(GroupSession).rounds):
            raw = await self._call_server(call, row, params)
            if row.facts.extension_results and _TASK in bytes(raw):
                raw = await self._await_task(call, row, raw)
            if not row.facts.input_required or _INPUT_REQUIRED not in bytes(raw):
                return self._convert_result(raw, request)
            result: dict[str, Any] = msgspec.json.decode(raw)
            if result.get("resultType") != "input_required":
                return self._convert_result(raw, request)
            questions: Mapping[str, Any] = result.get("inputRequests") or {}
            if not request.revision.server_requests:
                _check_askable(request, questions)
                return raw
            params = {**params, **self._state_of(result)}
            if questions:
                params["inputResponses"] = {
                    key: await self._ask(call, each["method"], each.get("params"))
                    for key, each in questions.items()
                }
        raise InternalError(f"{self.label} asked for input too often")

    async def _call_server(self, call: PassedCall, row: Method, params: Mapping[str, Any]) -> Raw:
        """Send a request; call a tool as a task if the server requires a task."""
        try:
            return await self._send(call, row.name, params)
        except RemoteError as error:
            may_be_task = row.facts.runs_tool and self._client.supports(_AUGMENTED)
            if error.code != METHOD_NOT_FOUND or not may_be_task:
                raise
            if TASK_CALLS is None:
                raise
            tasks = TASK_CALLS()
        requests = self._client.seen_as(GroupSession).requests
        on_progress = self._on_progress(call)
        typed = row.decode_params(encode(params))
        meta = self._meta_of(call)
        result = await tasks.call_as_task(requests, typed, meta, None, on_progress, None)
        return Raw(encode(result))

    async def _await_task(self, call: PassedCall, row: Method, raw: Raw) -> Raw:
        """Wait for the result of the task if the server responded with a task."""
        try:
            created = result_decoder(row)(raw)
        except UNREADABLE:
            return raw
        if TASK_CALLS is None or not hasattr(created, "task_id"):
            return raw
        tasks = TASK_CALLS()
        requests, meta = self._client.seen_as(GroupSession).requests, self._meta_of(call)
        result = await tasks.follow_task(requests, created, row.name, meta, None, None)
        return Raw(encode(result))

    def _state_of(self, result: Mapping[str, Any]) -> dict[str, Any]:
        state = result.get("requestState")
        return {} if state is None else {"requestState": state}

    async def _send(self, call: PassedCall, name: str, params: Mapping[str, Any]) -> Raw:
        request = call.context
        await self._ask_for_logs(request)
        return await self._client.request_raw(
            name,
            Raw(encode(params)) if params else None,
            meta=self._meta_of(call),
            on_progress=self._on_progress(call),
        )

    def _on_progress(self, call: PassedCall) -> OnProgress | None:
        """A function that forwards progress, if the client requested progress."""
        if _PROGRESS_TOKEN not in call.context.meta:
            return None

        async def forward(value: float, total: float | None, message: str | None) -> None:
            if message is not None:
                self._report_absent(PROGRESS, ("message",), call.context.revision)
            await call.progress(value, total, message)

        return forward

    def _report_absent(self, name: str, members: Iterable[str], revision: Revision) -> None:
        """Report members of a notification that the revision of a client lacks."""
        own, theirs = (
            members_of(each.server_notifications[name].params)
            for each in (self._revision, revision)
        )
        for member in members:
            if member in own and member not in theirs:
                reason = f"{_client_text(revision)} has no such member"
                self._report_loss(f"{name}.{_PARAMS}.{member}", reason)

    def _meta_of(self, call: PassedCall) -> dict[str, Any]:
        """The members of `_meta` that the client added."""
        return _user_meta(call.context.meta, call.context.revision)

    async def _ask_for_logs(self, request: RequestContext) -> None:
        """Request log messages of the level that the client requested."""
        session = request.peer.connection.session
        key = request.revision.facts.meta.log_level
        level = request.meta.get(key) if key else session.log_level if session else None
        if level is None or level == self._log_level or not self._client.supports("logging"):
            return
        self._log_level = level
        if self._revision.facts.meta.log_level is not None:
            client: Any = self._client  # such a revision brings the member
            client.ask_for_logs(level)
        else:
            await self._client.request("logging/setLevel", {"level": level})

    def _params(self, request: RequestContext, row: Method) -> dict[str, Any]:
        """The params for the server, without `_meta`; members remain raw JSON."""
        raw, typed = request.raw_params, request.params
        members: dict[str, Any] = (
            {} if raw is None else msgspec.json.decode(raw, type=dict[str, Raw])
        )
        members.pop("_meta", None)
        if is_custom(row.name):
            return members
        for name in _ROUTED:
            value = getattr(typed, name, None)
            if isinstance(value, STRUCTS):  # members that its type lacks stay
                members[name] = {**msgspec.json.decode(members[name]), **to_builtins(value)}
            elif value is not None:
                members[name] = value
            elif name in members:
                del members[name]
        if self._revision is request.revision or row.params is None:
            return members
        wire: dict[str, Any] = msgspec.json.decode(encode(members))
        try:
            shaped: dict[str, Any] = to_builtins(
                convert({**row.default_params, **wire}, row.params)
            )
        except UNWRITABLE:
            return members  # the server validates them
        lost: Losses = {
            name: "lost" for name in wire if name not in shaped and wire[name] is not None
        }
        stated = {**request.method.default_params, **wire}
        own, receiver = request.method.params, self._revision_text()
        self._report(f"{row.name}.{_PARAMS}", lost, stated, own, receiver)
        return {name: members[name] for name in members if name in shaped}

    def _report(
        self, message: str, losses: Losses, wire: Mapping[str, Any], own: Any, receiver: str
    ) -> None:
        """Report losses by the rows of their places.

        Args:
            message: The method and the part of its request: the beginning of the ids of rows.
            losses: The losses, by place.
            wire: The params or the result before its conversion.
            own: Its type in its own revision.
            receiver: The other revision, in words.
        """
        if not losses:
            return
        part = message.rpartition(".")[2]
        unknown = _unknown_places(wire, own)
        for place, loss in losses.items():
            if unknown is None or place in unknown:
                reason = f"{receiver} has no place for members that their own revision lacks"
                self._report_loss(
                    f"{part}.{_UNKNOWN}", reason, loss=loss, example=f"{message}.{place}"
                )
            else:
                self._report_loss(f"{message}.{place}", f"{receiver} has no such member", loss=loss)

    def _convert_result(self, raw: Raw, request: RequestContext) -> Any:
        """Convert a result to the revision of the client."""
        if self._revision is request.revision:
            return raw
        name = request.method.name
        wire: dict[str, Any] = msgspec.json.decode(raw)
        if is_custom(name):
            if not request.revision.result_types:
                wire.pop("resultType", None)
            return wire
        try:
            typed, lost = convert_result(wire, request.method, self._revision, request.revision)
        except UNWRITABLE as error:
            raise InternalError(
                f"{self.label}: {name}: the result has no form in {request.revision.name}: "
                f"{error_text(error)}"
            ) from error
        own = self._revision.client_requests[name].result
        receiver = _client_text(request.revision)
        self._report(f"{name}.{_RESULT}", lost, wire, own, receiver)
        return typed

    def _translate_error(self, error: RemoteError, request: RequestContext) -> ProtocolError:
        """Convert an error of the server to an error for the client, with the same code."""
        uri, code = getattr(request.params, "uri", None), error.code
        is_unknown = error.code == RESOURCE_NOT_FOUND or (
            error.code == self._revision.facts.errors.resource_not_found
            and is_object(error.data)
            and "uri" in error.data
        )
        if uri is not None and is_unknown:
            if uri != _sent_uri(request):
                return ResourceNotFoundError(uri)
            code = request.revision.facts.errors.resource_not_found
        data = NO_DATA if error.data is None else error.data
        translated = ProtocolError(error.message, code=code, data=data)
        if sent_code(translated, request.revision.facts) is None:
            reason = f"{_client_text(request.revision)} has no such code"
            self._report_loss(f"error.code={error.code}", reason, loss="degraded")
        return translated

    def _revision_text(self) -> str:
        return f"{self._revision.name}, which the server speaks,"

    # changes

    async def follow(self, uri: str) -> None:
        """Subscribe to a resource, and announce its updates.

        Raises:
            ProtocolError: The server refused.
        """
        self._followed[uri] = self._followed.get(uri, 0) + 1
        if self._followed[uri] == 1:
            try:
                await self._tasks.start(self._announce_updates, uri)
            except RemoteError as error:
                del self._followed[uri]
                raise ProtocolError(error.message, code=error.code) from error
            except McpError as error:
                del self._followed[uri]
                raise InternalError(f"{self.label} does not answer: {error}") from error

    def follow_soon(self, uris: Collection[str]) -> None:
        """Subscribe to several resources without waiting; failures are logged."""
        for uri in uris:
            if uri not in self._followed:
                self._followed[uri] = 1
                self._tasks.start_soon(self._announce_updates, uri)

    def stop_following(self, uri: str) -> None:
        """Undo one `follow`."""
        left = self._followed.pop(uri, 0) - 1
        if left > 0:
            self._followed[uri] = left
        elif uri in self._scopes:
            self._scopes.pop(uri).cancel()

    async def _announce_updates(
        self, uri: str, *, task_status: anyio.abc.TaskStatus[None] | None = None
    ) -> None:
        """Announce updates of a resource until `stop_following`."""
        with anyio.CancelScope() as scope:
            self._scopes[uri] = scope
            try:
                async with self._client.listen(uris=[uri], idle_seconds=None) as changes:
                    if task_status is not None:
                        task_status.started()
                        task_status = None
                    async for change in changes:
                        if isinstance(change, ResourceUpdated):
                            self._announce(RESOURCE_UPDATED, {"uri": change.uri})
            except McpError as error:
                if task_status is not None:
                    raise
                _logger.warning("%s: updates of %r end: %s", self.label, uri, error)

    async def _announce_changes(self, supported: Mapping[str, bool]) -> None:
        """Announce changes of lists until the session ends."""
        names: dict[object, str] = dict(_LISTS.values())
        try:
            async with self._client.listen(
                tools=supported["tools"],
                prompts=supported["prompts"],
                resources=supported["resources"],
                idle_seconds=None,
            ) as changes:
                async for change in changes:
                    if type(change) in names:
                        self._announce(names[type(change)])
        except McpError as error:
            _logger.warning("%s: changes of its lists end: %s", self.label, error)

    # requests and notifications of the server

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """See `Handlers`."""
        if method.name in REVISIONS.newest().input_requests:
            return self._handle_question
        if is_custom(method.name):
            return self._handle_custom
        return self._handle_notice if method.name in (MESSAGE, ELICITATION_COMPLETE) else None

    async def _handle_question(self, params: Any, context: RequestContext) -> Any:
        """Ask a client, and return its answer to the server."""
        raw = context.raw_params
        if raw is None and params is not None:  # input requests in results have typed params only
            raw = Raw(encode(params))
        wire = {} if raw is None else msgspec.json.decode(raw, type=dict[str, Raw])
        return await self._answer(context.method.name, wire)

    async def _answer(self, name: str, wire: Mapping[str, Any]) -> Any:
        call = self._asking_call(name)
        if call is not None:
            return await self._ask(call, name, wire)
        clients = list(self._clients)
        if len(clients) == 1 and clients[0].connection.session is not None:
            revision = clients[0].connection.revision
            raw = await clients[0].request_raw(
                name, Raw(encode(self._convert_question(name, wire, revision)))
            )
            return self._convert_reply(name, raw, revision)
        raise self._unclear_error(name)

    async def _handle_custom(self, params: Any, context: RequestContext) -> Any:
        """Forward a custom request of the server to a client, or a notification to all clients."""
        name, wire = context.method.name, _custom_params(context)
        if context.request_id is not None:
            return await self._answer(name, wire)
        for client in list(self._clients):
            if client.connection.revision.server_requests:
                await client.notify(name, wire)
            else:
                revision = client.connection.revision.name
                self._report_loss(name, f"{revision}, which the client speaks, has no way for it")
        return None

    async def _ask(self, call: PassedCall, name: str, params: Mapping[str, Any] | None) -> Any:
        revision = call.context.revision
        try:
            raw = await call.ask(name, self._convert_question(name, params or {}, revision))
            return self._convert_reply(name, raw, revision)
        except RemoteError as error:
            data = NO_DATA if error.data is None else error.data
            raise ProtocolError(error.message, code=error.code, data=data) from error
        except (LocalProtocolError, MethodNotFoundError, MissingCapabilityError) as error:
            self._report_loss(name, str(error))
            raise

    def _convert_question(
        self, name: str, params: Mapping[str, Any], revision: Revision
    ) -> Mapping[str, Any]:
        """Convert the params of a server's request to the revision of a client."""
        wire = {key: value for key, value in params.items() if key != "_meta"}
        meta = msgspec.json.decode(encode(params.get("_meta")))
        if is_object(meta) and (kept := _user_meta(meta, self._revision)):
            wire["_meta"] = kept
        row = _input_request(name, revision)
        if row is None or revision is self._revision:
            return wire
        plain: dict[str, Any] = msgspec.json.decode(encode(wire))
        shaped = question_for(row, plain)
        degraded: Losses = dict.fromkeys(degraded_content(plain, shaped), "degraded")
        own = _input_request(name, self._revision)
        kind = None if own is None else own.params
        self._report(f"{name}.{_PARAMS}", degraded, plain, kind, _client_text(revision))
        return shaped

    def _convert_reply(self, name: str, raw: Raw, revision: Revision) -> Any:
        """Convert the answer of a client to the revision of the server."""
        row = _input_request(name, self._revision)
        if row is None or revision is self._revision:
            return raw
        wire: dict[str, Any] = msgspec.json.decode(raw)
        shaped = reply_for(row, wire)
        degraded: Losses = dict.fromkeys(degraded_content(wire, shaped), "degraded")
        own = _input_request(name, revision)
        kind = None if own is None else own.result
        self._report(f"{name}.{_RESULT}", degraded, wire, kind, self._revision_text())
        return Raw(encode(shaped))

    def _asking_call(self, name: str) -> PassedCall | None:
        """The call that a request of the server relates to; `None` if no call is open."""
        calls = list(self._calls)
        if not calls:
            return None
        if len({call.context.peer for call in calls}) > 1:
            raise self._unclear_error(name)
        if calls[-1].context.revision.server_requests or len(calls) == 1:
            return calls[-1]
        raise self._unclear_error(name)

    def _unclear_error(self, name: str) -> ProtocolError:
        why = "nothing says which of several calls, or of several clients, it is about"
        self._report_loss(name, why)
        return InvalidRequestError(f"{name}: {why}")

    async def _handle_notice(self, params: Any, context: RequestContext) -> None:
        """Forward a log message, or the end of an elicitation."""
        name, raw = context.method.name, context.raw_params
        wire: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
        if name != MESSAGE:
            for client in list(self._clients):
                revision = client.connection.revision
                if name in revision.server_notifications:
                    await client.notify(name, wire)
                else:
                    self._report_loss(name, f"{_client_text(revision)} has no such message")
            return
        own = wire.pop("_meta", {})
        meta = _user_meta(own, self._revision) if is_object(own) else {}
        wire |= {"_meta": meta} if meta else {}
        calls, clients = list(self._calls), list(self._clients)
        if calls and len({call.context.peer for call in calls}) == 1:
            self._report_absent(MESSAGE, wire, calls[-1].context.revision)
            async with calls[-1].logging:
                await calls[-1].context.notify(MESSAGE, wire)
        elif not calls and len(clients) == 1:
            self._report_absent(MESSAGE, wire, clients[0].connection.revision)
            await clients[0].notify(MESSAGE, wire)
        else:
            self._report_loss(MESSAGE, "nothing says which of several clients it is for")


def _client_text(revision: Revision) -> str:
    return f"{revision.name}, which the client speaks,"


def _unknown_places(wire: Mapping[str, Any], own: Any) -> Losses | None:
    """The members of a wire object that its own type lacks; `None` if it does not fit the type."""
    try:
        return lost_members(wire, to_builtins(convert(wire, own)))
    except UNWRITABLE:
        return None


def _sent_uri(request: RequestContext) -> Any:
    """The URI that the client sent, which a mount may have changed in the typed params."""
    raw = Raw(b"{}") if request.raw_params is None else request.raw_params
    params: dict[str, Any] = msgspec.json.decode(raw)
    return params.get("uri")


def _user_meta(meta: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """The members of `_meta` that do not belong to the protocol."""
    return {
        key: value
        for key, value in meta.items()
        if key != _PROGRESS_TOKEN and not is_reserved_key(key, revision.facts)
    }


def _input_request(name: str, revision: Revision) -> Method | None:
    """The row of a request for input, as request or inside results."""
    return revision.server_requests.get(name) or revision.input_requests.get(name)


def _custom_params(context: RequestContext) -> dict[str, Any]:
    """The params of a custom request or notification, without `_meta`."""
    raw = context.raw_params
    members: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
    members.pop("_meta", None)
    return members


def _check_askable(request: RequestContext, questions: Mapping[str, Any]) -> None:
    """Check that a client declared the capabilities for the requested input."""
    for question in questions.values():
        row = request.revision.input_requests.get(question["method"])
        path = (
            None
            if row is None
            else missing_capability(row, question.get("params"), request.peer_capabilities)
        )
        if path is not None:
            raise MissingCapabilityError(path, question["method"])
