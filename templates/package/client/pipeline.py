"""The client's request pipeline: sending, retries, validation of results.

If a response was lost, the server may have acted on the request. Methods that are idempotent by the
specification are retried, and so are tools that the server lists as read-only or idempotent. For
other requests, a lost response is an error for the caller. A proxy that can't reach the server's
process, or gets no answer, refuses with a status such as 502, which is as good as a lost response.
A request that the server refused without having begun it is always retried.

Modules of other revisions and of features derive from `RequestPipeline`: the response cache, input
rounds, parameter headers, tasks. The page `chosen` has the class with those of the package.

Source: basic/transports/streamable-http#client-behavior, server/utilities, server/tools; changelog
(2026-07-28: a broken response stream loses the request).
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec import Raw

from .._wire import replace
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
from ..protocol.lifecycle import Session
from ..runtime.pages import pages_of
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.stubs import typed_params
from .application import ClientApplication
from .server_state import LASTING, TOOLS_LIST

if TYPE_CHECKING:
    from ..protocol.connection import Connection

_HTTP = "HTTP"  # the name of the transport
_REFUSED = (METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND)
_MIXED = (
    "results to no request of this client came too: a gateway that sends each response to all of "
    "its clients mixes them up"
)


class RequestOptions(msgspec.Struct, gc=False):
    """The options of a request, which apply to each time that it is sent.

    Attributes:
        method: The method.
        facts: Its facts.
        meta: Members to add to `_meta`.
        timeout: Seconds without response or progress.
        on_progress: Called with each progress notification.
        from_cache: Whether a cached result was used.
        had_input: Whether the server asked for input.
        is_refreshed: Whether the parameter headers were refreshed.
    """

    method: str
    facts: MethodFacts
    meta: Mapping[str, Any] | None
    timeout: float | None
    on_progress: OnProgress | None = None
    from_cache: bool = False
    had_input: bool = False
    is_refreshed: bool = False


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
        application: The settings, the handlers and the middleware of the client, and the state of
            the server.
    """

    def __init__(self, peer: Peer, session: Session, application: ClientApplication) -> None:
        self.peer = peer
        self.session = session
        self.application = application
        self.state = application.server_state
        self.timeouts = application.settings.timeouts
        self._limits = application.settings.limits

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
        result = await self.send_with(self._options(method, meta, timeout, on_progress), params)
        if method == TOOLS_LIST:
            self._usable_tools(result.tools)
        return result

    def send_raw(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request without cache and input rounds; returns its result as unchecked JSON."""
        request: partial[Any] = partial(
            self.peer.callers.request_raw,
            method,
            params,
            meta=meta,
            timeout=timeout,
        )
        options = self._options(method, meta, timeout, on_progress)
        return self.send_with(options, params, request)

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

        Structured results of tools are validated by the output schema that the server listed.
        """
        row = self.session.revision.client_requests.get(method) or self.row(method)
        options = RequestOptions(method, row.facts, meta, timeout, on_progress)
        return self._call(row, options, typed_params(row, fields, self.session.revision.name))

    async def pages(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """The items of all pages of a list, within one deadline.

        Source: server/utilities/pagination.
        """
        row = self.row(method)
        with anyio.move_on_after(self.timeouts.listing):
            options = RequestOptions(method, row.facts, meta, timeout)
            return await self._all_pages(row, options, fields)
        raise RequestTimeoutError(f"{method}, all pages", self.timeouts.listing)

    async def _all_pages(
        self, row: Method, options: RequestOptions, fields: Mapping[str, Any]
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

    def row(self, method: str) -> Method:
        """The row of a method.

        Raises:
            AbsentMethodError: The revision has no such method.
        """
        row = self.session.revision.client_requests.get(method)
        if row is None:
            from .handler_checks import absent_method

            raise absent_method(self.session.revision, method)
        return row

    def _options(
        self,
        method: str,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> RequestOptions:
        """The options of a request; the method may belong to an extension."""
        facts = self.session.revision.facts.method(method)
        return RequestOptions(method, facts, meta, timeout, on_progress)

    def _call(self, row: Method, options: RequestOptions, params: Any) -> Coroutine[Any, Any, Any]:
        """The result of a request; the module of the cache overrides this."""
        return self._call_server(row, options, params)

    async def _call_server(self, row: Method, options: RequestOptions, params: Any) -> Any:
        """The result of a request, which the server sends."""
        facts, support, started = row.facts, self.state.task_support, monotonic()
        try:
            if support and facts.runs_tool and support.get(params.name) == "required":
                result = await self._call_as_task(options, params)
            else:
                result = await self.send_with(options, params)
            if (facts.input_required and hasattr(result, "input_requests")) or (
                facts.extension_results and hasattr(result, "task_id")
            ):
                result = await self._finish(options, params, result)
        except RemoteError as error:
            if error.code in _REFUSED and facts.listed_by is not None:
                self.state.forget((facts.listed_by,))
            raise
        if facts.listed_by == TOOLS_LIST and self.state.output_schemas.has_schema(params.name):
            await self._validate(params.name, result, options.timeout, monotonic() - started)
        return self._filter_tools(result) if row.name == TOOLS_LIST else result

    async def _call_as_task(self, options: RequestOptions, params: Any) -> Any:
        """The result of a tool that requires a task."""
        return await self.send_with(options, params)

    async def _finish(self, options: RequestOptions, params: Any, result: Any) -> Any:
        """The final result of a request that the server answered by a request or a task."""
        return result

    async def send_with(
        self,
        options: RequestOptions,
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
        on_progress, application = options.on_progress, self.application
        if application.with_progress is not None:
            on_progress = application.with_progress(on_progress)
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
                limit=None if timeout is None else max(timeout, self.timeouts.limit),
                on_progress=on_progress,
            )
        if application.chain is not None:
            sending = partial(application.chain.request, self.peer, sending)
        if session.lost:
            await self.restore_session()
        pauses = iter(self.timeouts.retries)
        retrying = False
        while True:
            try:
                result = await sending()
                break
            except (RemoteError, TransportError) as error:
                if isinstance(error, RemoteError) and await self._refused(options, error):
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

    async def _retry_is_safe(self, options: RequestOptions, params: Any) -> bool:
        """Whether a request may be sent again although the server may have acted on it.

        Over HTTP, where another process may serve that, the tools are listed if they were not yet.
        """
        state, facts = self.state, options.facts
        is_unlisted = facts.listed_by == TOOLS_LIST and not state.has_listed_tools
        if is_unlisted and self.peer.transport == _HTTP:
            with suppress(McpError):
                await self.pages(TOOLS_LIST, {}, None, options.timeout)
        return state.retry_is_safe(facts, params)

    async def _refused(self, options: RequestOptions, error: RemoteError) -> bool:
        """Note what a refusal says; returns whether to send the request again at once."""
        if error.code == self.session.revision.facts.errors.url_elicitation_required:
            self.state.elicitations.add_from_error(error.data)
        return False

    def _usable_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Store what a list says of its tools; returns the tools that can be called."""
        self.state.store_tools(tools)
        return tools

    def _filter_tools(self, result: Any) -> Any:
        """Store the schemas of a page of tools; returns the page without unusable tools."""
        if not hasattr(result, "tools"):  # another result of a draft
            return result
        usable = self._usable_tools(result.tools)
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
            if not self.connection.state.outbound.has_strays:
                raise
            raise RemoteProtocolError(f"{error}; {_MIXED}") from None

    def limit_of(self, timeout: float | None) -> float | None:
        """Seconds for a request, regardless of progress."""
        return None if timeout is None else max(timeout, self.timeouts.limit)
