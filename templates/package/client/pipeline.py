"""The client's request pipeline: cache lookup, sending, retries, input rounds, validation.

`call` returns a cached result while it is fresh. Otherwise `_send` sends the request, and repeats
the request if its response was lost and a retry is safe, or once with new parameter headers if the
server refused the old headers. While the server responds with requests for input, `_call` sends
the input. Results update the `ServerState`.

If a response was lost, the server may have acted on the request. Methods that are idempotent by the
specification are retried, and so are tools that the server lists as read-only or idempotent. For
other requests, a lost response is an error for the caller. A proxy that can't reach the server's
process, or gets no answer, refuses with a status such as 502, which is as good as a lost response.
A request that the server refused without having begun it is always retried.

Source: basic/patterns/mrtr, basic/transports/streamable-http#client-behavior, server/utilities,
server/tools; changelog (2026-07-28: a broken response stream loses the request).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Raw

from .._wire import UNREADABLE, encode, error_text, replace, to_builtins
from ..errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    ConnectFailedError,
    HttpStatusError,
    McpError,
    MethodNotFoundError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseLostError,
    TransportError,
    refusal_of,
    was_begun,
)
from ..facts import Method
from ..method_facts import MethodFacts
from ..protocol.lifecycle import Session, is_declared
from ..protocol.results import result_decoder
from ..runtime.pages import pages_of
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from ..runtime.stubs import typed_params
from .client_settings import ClientSettings
from .server_state import LASTING, TOOLS_LIST, Key, ServerState

if TYPE_CHECKING:  # most clients have no callbacks
    from ..protocol.connection import Connection
    from .callbacks import Callbacks

_HTTP = "HTTP"  # the name of the transport
_REFUSED = (METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND)
_MIXED = (
    "results to no request of this client came too: a gateway that sends each response to all of "
    "its clients mixes them up"
)


class _Options(msgspec.Struct, gc=False):
    """The options of a request, which apply to each time that it is sent.

    Attributes:
        method: The method.
        facts: Its facts.
        meta: Members to add to `_meta`.
        timeout: Seconds without response or progress.
        on_progress: Called with each progress notification.
        from_cache: Whether a cached result was used.
    """

    method: str
    facts: MethodFacts
    meta: Mapping[str, Any] | None
    timeout: float | None
    on_progress: OnProgress | None = None
    from_cache: bool = False


class TaskCalls(Protocol):
    """The interface of `tool_tasks`, which a package without tasks lacks."""

    async def follow_task(
        self,
        requests: RequestPipeline,
        created: Any,
        method: str,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        limit: float | None,
    ) -> Any:
        """Wait for the result of a request that the server answered by a task."""
        ...

    async def call_as_task(
        self,
        requests: RequestPipeline,
        params: Any,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
        limit: float | None,
    ) -> Any:
        """Call a tool that requires a task, and wait for the result."""
        ...


class RequestChain(Protocol):
    """The middleware of a client; see `ClientMiddlewareChain`."""

    async def request(self, peer: Peer, send: partial[Any]) -> Any:
        """Send a request through the middleware, and return its result."""
        ...

    async def notification(self, peer: Peer, name: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification through the middleware."""
        ...


class RequestHooks(msgspec.Struct):
    """The callbacks and the middleware of a session, which all its client objects share.

    Attributes:
        callbacks: Functions for log messages and progress; `None` before the first registration.
        chain: The middleware; `None` before the first registration.
    """

    callbacks: Callbacks | None = None
    chain: RequestChain | None = None


def may_have_begun(error: Exception, refusal: HttpStatusError | None) -> bool:
    """Whether a request failed for a while, and the server may have acted on it."""
    begun = was_begun(error.data) if isinstance(error, RemoteError) else None
    if begun is None and refusal is not None:
        begun = refusal.begun
    if begun is None:
        return isinstance(error, ResponseLostError) or (refusal is not None and refusal.is_outage)
    return begun


def _in_doubt(error: RemoteError | TransportError, method: str) -> Exception:
    """The error for a request that the server may have acted on; its text says so."""
    doubt = f"the server may or may not have worked on {method}"
    if isinstance(error, HttpStatusError):
        return error.with_more(doubt)
    if isinstance(error, RemoteError):
        return RemoteError(error.code, f"{error.message}; {doubt}", error.data, error.method)
    return ResponseLostError(f"{error}; {doubt}")


class RequestPipeline:
    """Sends the requests of an open session.

    Args:
        peer: An open peer.
        session: The negotiated session.
        settings: The settings of the client.
        handle_input: Calls the client's handler for a request for input.
        state: The state of the server, which results update.
        hooks: The callbacks and the middleware of the session.
        tasks: Returns the module `tool_tasks`; `None` in a package without tasks.

    Attributes:
        rounds: Rounds in a row in which a server may ask for input.
        peer: As passed.
        session: As passed.
        timeouts: The timeouts of the client.
    """

    def __init__(
        self,
        peer: Peer,
        session: Session,
        settings: ClientSettings,
        handle_input: Callable[[RequestContext], Awaitable[Any]],
        state: ServerState,
        hooks: RequestHooks,
        tasks: Callable[[], TaskCalls | None],
    ) -> None:
        self.peer = peer
        self.session = session
        self.timeouts = settings.timeouts
        self._limits = settings.limits
        self._handle_input = handle_input
        self.hooks = hooks
        self._task_calls = tasks
        self.state = state
        self.rounds = settings.limits.input_rounds

    @property
    def connection(self) -> Connection:
        """The protocol state of the session."""
        return self.peer.connection

    async def send(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a request without cache and input rounds, and return its typed result."""
        result = await self._send(self._options(method, meta, timeout, on_progress), params)
        if method == TOOLS_LIST:
            self.state.store_tools(result.tools)
        return result

    async def send_raw(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Raw:
        """Send a request without cache and input rounds; returns its result as unchecked JSON."""
        request: partial[Any] = partial(
            self.peer.callers.request_raw,
            method,
            params,
            meta=meta,
            timeout=timeout,
        )
        options = self._options(method, meta, timeout, on_progress)
        raw: Raw = await self._send(options, params, request)
        if method == TOOLS_LIST and self.state.param_headers.in_use:
            with suppress(*UNREADABLE):  # the caller gets unreadable results too
                self.state.store_tools(result_decoder(self._row(method))(raw).tools)
        return raw

    async def restore_session(self) -> None:
        """Repeat the requests whose effect was lost with the previous session."""
        request = partial(self.peer.callers.request, timeout=self.timeouts.restore)
        await self.state.session.restore(request)

    def call(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Awaitable[Any]:
        """Call a method with params by Python names; `None` leaves a param out.

        The result may come from the cache. Requests for input are passed to the client's handlers,
        and structured results of tools are validated by the output schema that the server listed.
        """
        row = self._row(method)
        options = _Options(method, row.facts, meta, timeout, on_progress)
        return self._call(row, options, typed_params(row, fields, self.session.revision.name))

    async def begin(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Like `call` without the cache, but return a task if the server responds with one.

        Requests for input are passed to the client's handlers; the result is not validated.
        """
        row = self._row(method)
        options = _Options(method, row.facts, meta, timeout, on_progress)
        params = typed_params(row, fields, self.session.revision.name)
        result = await self._send(options, params)
        if row.facts.input_required and hasattr(result, "input_requests"):
            result = await self._provide_input(options, params, result)
        return result

    async def late_result(
        self, method: str, wire: Mapping[str, Any] | Raw, tool: str | None, timeout: float | None
    ) -> Any:
        """Decode and validate the result of a request that another message contained.

        Args:
            method: The request.
            wire: The result as wire object or JSON.
            tool: The tool whose output schema validates the result, if any.
            timeout: Seconds for the validation.

        Raises:
            RemoteProtocolError: The value is not a result of the request.
        """
        row = self._row(method)
        try:
            result = self.peer.connection.result_decoder(row)(encode(wire))
        except UNREADABLE as error:
            raise RemoteProtocolError(f"{method}: result: {error_text(error)}") from None
        if any(hasattr(result, member) for member in ("task", "task_id", "input_requests")):
            raise RemoteProtocolError(f"{method}: expected the final result, got another request")
        if tool is not None and self.state.output_schemas.has_schema(tool):
            await self.state.output_schemas.check(tool, result, timeout)
        return result

    async def pages(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """The items of all pages of a list, within one deadline.

        The cursor of a cached page may have expired; the whole list is then requested again.

        Source: server/utilities/pagination, server/utilities/caching#interaction-with-pagination.
        """
        row = self._row(method)
        options = _Options(method, row.facts, meta, timeout)
        with anyio.move_on_after(self.timeouts.listing):
            try:
                return await self._all_pages(row, options, fields)
            except RemoteError:
                if not options.from_cache:
                    raise
            self.state.cache.forget(method)
            return await self._all_pages(row, options, fields)
        raise RequestTimeoutError(f"{method}, all pages", self.timeouts.listing)

    async def _all_pages(
        self, row: Method, options: _Options, fields: Mapping[str, Any]
    ) -> list[Any]:
        """The items of all pages, within limits, since a server may send endless pages."""
        method, items, limits = row.name, row.items, self._limits
        if items is None:
            raise MethodNotFoundError(method)
        collected: list[Any] = []

        async def request(cursor: str | None) -> tuple[list[Any], str | None]:
            params = typed_params(row, {**fields, "cursor": cursor}, self.session.revision.name)
            result = await self._call(row, options, params)
            if not hasattr(result, items):
                expected = f"{method}: expected a page with {items}"
                raise RemoteProtocolError(f"{expected}, got {type(result).__name__}")
            # a revision may have no pagination
            return getattr(result, items), getattr(result, "next_cursor", None)

        bounds = {"pages": limits.list_pages, "items": limits.list_items}
        async for page in pages_of(request, method, **bounds):
            collected += page
        return collected

    def _row(self, method: str) -> Method:
        revision = self.session.revision
        row = revision.client_requests.get(method)
        if row is None:
            from .handler_checks import absent_method

            raise absent_method(revision, method)
        return row

    def _options(
        self,
        method: str,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> _Options:
        """The options of a request; the method may belong to an extension."""
        facts = self.session.revision.facts.method(method)
        return _Options(method, facts, meta, timeout, on_progress)

    async def _call(self, row: Method, options: _Options, params: Any) -> Any:
        """The result of a request, from the cache or from the server."""
        facts, state = row.facts, self.state
        cache = state.cache
        key: Key | None = None
        if row.cacheable:
            trace_keys = self.session.revision.facts.meta.trace_keys
            key = cache.key(row.name, params, options.meta, trace_keys)
            cached = None if key is None else await self._read_cached(row, key)
            if cached is not None:
                options.from_cache = True
                return self._filter_tools(cached) if row.name == TOOLS_LIST else cached
        drops, started = cache.drops, monotonic()
        try:
            if state.task_support and state.requires_task(facts, params):
                result = await self._call_as_task(options, params)
            else:
                result = await self._send(options, params)
            if facts.input_required and hasattr(result, "input_requests"):
                result, key = await self._provide_input(options, params, result), None
            if facts.extension_results and hasattr(result, "task_id"):
                result = await self._await_task(options, result)
        except RemoteError as error:
            if error.code in _REFUSED and facts.listed_by is not None:
                cache.forget(facts.listed_by)
            raise
        if key is not None:
            cache.keep(key, getattr(params, "uri", None), result, drops)
        if facts.listed_by == TOOLS_LIST and state.output_schemas.has_schema(params.name):
            await self._validate(params.name, result, options.timeout, monotonic() - started)
        return self._filter_tools(result) if row.name == TOOLS_LIST else result

    async def _send(
        self,
        options: _Options,
        params: Any,
        request: partial[Any] | None = None,
    ) -> Any:
        """Send a request; repeat it if its response was lost or its headers were stale.

        Args:
            options: How to send the request.
            params: Its params.
            request: Sends the request with a new id; by default the peer's `request`.
        """
        method, timeout, session = options.method, options.timeout, self.state.session
        on_progress = options.on_progress
        if self.hooks.callbacks is not None:
            on_progress = self.hooks.callbacks.with_progress(on_progress)
        sending: partial[Any]
        if request is not None:
            sending = partial(request, on_progress=on_progress)
        else:
            sending = partial(
                self.peer.callers.request,
                method,
                params,
                meta=options.meta,
                timeout=timeout,
                limit=self._limit(timeout),
                on_progress=on_progress,
            )
        if self.hooks.chain is not None:
            sending = partial(self.hooks.chain.request, self.peer, sending)
        if session.lost:
            await self.restore_session()
        pauses = iter(self.timeouts.retries)
        refreshed = retrying = False
        while True:
            try:
                result = await sending()
                break
            except (RemoteError, TransportError) as error:
                if isinstance(error, RemoteError):
                    if error.code == self.session.revision.facts.errors.url_elicitation_required:
                        self.state.elicitations.add_from_error(error.data)
                    if not refreshed and await self._refresh_param_headers(options, error):
                        refreshed = True
                        continue
                refusal = refusal_of(error)
                if may_have_begun(error, refusal):
                    retrying = await self._retry_is_safe(options, params)
                    if not retrying:
                        raise _in_doubt(error, method) from error
                elif isinstance(error, RemoteError) and refusal is None:
                    retrying = was_begun(error.data) is False
                elif not isinstance(error, ConnectFailedError):
                    raise
                pause = self.timeouts.pause_after(refusal, next(pauses, None))
                if not retrying or pause is None:
                    raise
                await anyio.sleep(pause)
        if method in LASTING:
            session.record_request(method, params)
        elif session.lost:
            await self.restore_session()
        return result

    async def _retry_is_safe(self, options: _Options, params: Any) -> bool:
        """Whether a request may be sent again although the server may have acted on it.

        Over HTTP, where another process may serve that, the tools are listed if they were not yet.
        """
        state, facts = self.state, options.facts
        is_unlisted = facts.listed_by == TOOLS_LIST and not state.has_listed_tools
        if is_unlisted and self.peer.transport == _HTTP:
            with suppress(McpError):
                await self.pages(TOOLS_LIST, {}, None, options.timeout)
        return state.retry_is_safe(facts, params)

    async def _refresh_param_headers(self, options: _Options, error: RemoteError) -> bool:
        """List the tools again if a call was refused for its parameter headers.

        Returns:
            Whether the tools were listed again.

        Source: basic/transports/streamable-http#client-behavior (2026-07-28).
        """
        expected = self.session.revision.facts.errors.header_mismatch
        if not options.facts.param_headers or error.code != expected:
            return False
        if not self.state.param_headers.in_use:
            return False
        self.state.cache.forget(TOOLS_LIST)
        try:
            await self.pages(TOOLS_LIST, {}, None, options.timeout)
        except McpError:
            return False
        return True

    async def _read_cached(self, row: Method, key: Key) -> Any:
        """A fresh cached result, or `None`. A closed client raises, as for a sent request."""
        self.peer.callers.check_open()
        encoded = await self.state.cache.recall(key)
        if encoded is None:
            return None
        await anyio.lowlevel.checkpoint()
        try:
            return self.peer.connection.result_decoder(row)(encoded)
        except UNREADABLE:  # nested too deeply to be decoded at this depth of the stack
            return None

    def _filter_tools(self, result: Any) -> Any:
        """Store the schemas of a page of tools; returns the page without unusable tools."""
        if not hasattr(result, "tools"):  # another result of a draft
            return result
        usable = self.state.store_tools(result.tools)
        if len(usable) < len(result.tools):
            result = replace(result, tools=usable)
        self.state.output_schemas.store(result.tools)
        return result

    async def _validate(
        self, tool: str, result: Any, timeout: float | None, elapsed: float
    ) -> None:
        """Validate a tool's structured result within the rest of the call's timeout.

        If progress kept the call alive for longer than its timeout, the whole timeout applies.
        """
        left = timeout if timeout is None or elapsed >= timeout else timeout - elapsed
        try:
            await self.state.output_schemas.check(tool, result, left)
        except RemoteProtocolError as error:
            if not self.connection.state.outbound.strays:
                raise
            raise RemoteProtocolError(f"{error}; {_MIXED}") from None

    async def _provide_input(self, options: _Options, params: Any, result: Any) -> Any:
        """Send the input that the server requests, until it returns a result."""
        method = options.method
        for _ in range(self.rounds):
            again: dict[str, Any] = to_builtins(params)
            if result.input_requests is None and result.request_state is None:
                raise RemoteProtocolError(f"{method}: the server asked for input, but not for what")
            if result.input_requests is not None:
                again["inputResponses"] = {
                    key: await self.input_response(method, input_request)
                    for key, input_request in result.input_requests.items()
                }
            if result.request_state is not None:
                again["requestState"] = result.request_state
            result = await self._send(options, again)
            if not hasattr(result, "input_requests"):
                return result
        raise RemoteProtocolError(f"{method}: the server asked for input {self.rounds} times")

    async def _await_task(self, options: _Options, created: Any) -> Any:
        """Wait for the result of the task that the server created."""
        tasks, timeout = self._task_calls(), options.timeout
        if tasks is None:  # a package without tasks decodes no task
            return created
        return await tasks.follow_task(
            self, created, options.method, options.meta, timeout, self._limit(timeout)
        )

    async def _call_as_task(self, options: _Options, params: Any) -> Any:
        """Call a tool that requires a task, and wait for the result."""
        tasks, timeout = self._task_calls(), options.timeout
        if tasks is None:
            return await self._send(options, params)
        return await tasks.call_as_task(
            self, params, options.meta, timeout, options.on_progress, self._limit(timeout)
        )

    def _limit(self, timeout: float | None) -> float | None:
        """Seconds for a request, regardless of progress."""
        return None if timeout is None else max(timeout, self.timeouts.limit)

    async def input_response(self, method: str, input_request: Any) -> Any:
        """The response of the client's handler to a request for input."""
        session = self.session
        row = session.revision.input_requests[to_builtins(input_request)["method"]]
        if not is_declared(session.own_capabilities, row.capability):
            path = ".".join(row.capability)
            raise RemoteProtocolError(
                f"{method}: the server asked for {row.name}, but this client has no {path}"
            )
        context = RequestContext(
            self.peer.callers,
            row,
            getattr(input_request, "params", None),
            None,
            {},
            session.revision,
            None,
            session.peer_info,
            session.peer_capabilities,
        )
        return to_builtins(await self._handle_input(context))
