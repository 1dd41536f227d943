"""The client's request pipeline: cache lookup, sending, retries, input rounds, validation.

`call` answers a request from the cache while the cached result is fresh. Otherwise `_send` sends
the request, and sends the request again if its response was lost and a repetition is safe, or once
with new parameter headers if the server refused the old ones. While the server answers with
requests for input, `_call` sends the input. Results update the `ServerState`.

A response that was lost leaves open whether the server acted on the request. Methods that are
idempotent by the specification are retried, and so are tools that the server lists as read-only or
idempotent. Any other loss is an error for the caller.

Source: basic/patterns/mrtr, basic/transports/streamable-http#client-behavior, server/utilities,
server/tools; changelog (2026-07-28: a broken response stream loses the request).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Raw

from .._wire import UNREADABLE, is_object, to_builtins
from ..errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    ConnectFailedError,
    McpError,
    MethodNotFoundError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseLostError,
)
from ..facts import Method
from ..foreign_text import safe_repr
from ..method_facts import MethodFacts
from ..protocol.lenient import result_decoder
from ..protocol.lifecycle import Session, declared
from ..protocol.notifications import RESOURCE_UPDATED
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from ..runtime.stubs import method_named, typed_params
from .call_headers import ToolParamHeaders
from .handler_validation import COMPLETE, Elicitations
from .output_schemas import OutputSchemas
from .response_cache import Key, ResponseCache
from .session_restore import LASTING, SessionRestore

INPUT_ROUNDS = 16
"""Times in a row that a server may ask for input before it answers."""

LIST_PAGES = 10_000
"""Pages of one list that are followed."""

LIST_ITEMS = 100_000
"""Items of one list that are kept, over all its pages."""

RESTORE_SECONDS = 10.0
"""Seconds for each request that is repeated in a new session."""

RETRY_PAUSES = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each retry of a request whose response was lost."""

TOOLS_LIST = "tools/list"

_REFUSED = (METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND)


class ServerState:
    """What a client remembers of a server: from its lists, its results and its notifications.

    Attributes:
        cache: Results that may be used again.
        output_schemas: The output schemas of the tools.
        param_headers: The arguments of tools that HTTP headers repeat.
        elicitations: The URL elicitations that are pending.
        session: The requests that a new session needs again.
    """

    def __init__(self, cache: ResponseCache) -> None:
        self.cache = cache
        self.output_schemas = OutputSchemas()
        self.param_headers = ToolParamHeaders()
        self.elicitations = Elicitations()
        self.session = SessionRestore()
        self._retryable_tools: set[str] = set()

    def tools_listed(self, tools: Sequence[Any]) -> list[Any]:
        """Store the annotations and parameter headers of typed tools.

        Returns:
            The tools that can be called.
        """
        for tool in tools:
            hints = getattr(tool, "annotations", None)
            flags = (
                getattr(hints, "read_only_hint", None),
                getattr(hints, "idempotent_hint", None),
            )
            if True in flags:
                self._retryable_tools.add(tool.name)
            else:
                self._retryable_tools.discard(tool.name)
        return self.param_headers.listed(tools)

    def retry_is_safe(self, facts: MethodFacts, params: Any) -> bool:
        """Whether a request may be sent again if its response was lost.

        Args:
            facts: The facts of its method.
            params: Its params: a Struct, a wire object or raw JSON, whose tool is unknown.
        """
        if facts.idempotent:
            return True
        if facts.listed_by != TOOLS_LIST:
            return False
        tool = params.get("name") if is_object(params) else getattr(params, "name", None)
        return isinstance(tool, str) and tool in self._retryable_tools

    def invalidate(self, notification: Method, params: Any) -> bool:
        """Drop the state that a notification declares stale.

        Returns:
            Whether the notification has news for handlers.
        """
        if notification.name == COMPLETE:
            return self.elicitations.completed(params.elicitation_id)
        stale = notification.facts.invalidates
        if TOOLS_LIST in stale:
            self.output_schemas.forget()
        for method in stale:
            self.cache.forget(method)
        if notification.name == RESOURCE_UPDATED:
            self.cache.forget_resource(params.uri)
        return True

    def notifications_missed(self) -> None:
        """Drop everything that may have changed while no notifications were received."""
        self.output_schemas.forget()
        self.cache.clear()

    def session_lost(self) -> None:
        """Drop what belongs to a session that the transport has replaced by a new one."""
        self.notifications_missed()
        self.session.lose()


class _Options(msgspec.Struct, gc=False):
    """How the caller wants a request sent, each time that it is sent.

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
    on_progress: OnProgress | None
    from_cache: bool = False


class RequestPipeline:
    """Sends the requests of an open session.

    Args:
        peer: An open peer.
        session: The negotiated session.
        limit: Seconds until a call with a timeout fails, whatever its progress.
        list_limit: Seconds for all pages of a list together.
        handle_input: Answers a request for input of the server.
        state: The state of the server, which results update.

    Attributes:
        rounds: Times in a row that a server may ask for input.
    """

    def __init__(
        self,
        peer: Peer,
        session: Session,
        limit: float,
        list_limit: float,
        handle_input: Callable[[RequestContext], Awaitable[Any]],
        state: ServerState,
    ) -> None:
        self._peer = peer
        self._session = session
        self._limit = limit
        self._list_limit = list_limit
        self._handle_input = handle_input
        self.state = state
        self.rounds = INPUT_ROUNDS

    async def send(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a request without cache and input rounds, and return its typed result."""
        options = self._options(method, meta, timeout, on_progress)
        result = await self._send(options, params)
        if method == TOOLS_LIST:
            self.state.tools_listed(result.tools)
        return result

    async def send_raw(self, method: str, params: Any, timeout: float | None) -> Raw:
        """Send a request without cache and input rounds, and return its result as JSON."""
        request = partial(self._peer.callers.request_raw, method, params, timeout=timeout)
        raw: Raw = await self._send(self._options(method, None, timeout), params, request)
        if method == TOOLS_LIST and self.state.param_headers.in_use:
            row = self._session.revision.client_requests[method]
            self.state.tools_listed(result_decoder(row)(raw).tools)
        return raw

    async def restore_session(self) -> None:
        """Repeat in a new session the requests whose effect ended with the lost one."""
        request = partial(self._peer.callers.request, timeout=RESTORE_SECONDS)
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

        The result may come from the cache. Requests of the server for input are answered, and
        structured results of tools are validated by the output schema that the server listed.
        """
        row = self._row(method)
        options = _Options(method, row.facts, meta, timeout, on_progress)
        return self._call(row, options, typed_params(row, fields, self._session.revision.name))

    async def pages(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """The items of all pages of a list, within one deadline.

        The cursor of a cached page may have expired; the list is then requested anew.

        Source: server/utilities/pagination, server/utilities/caching#interaction-with-pagination.
        """
        row = self._row(method)
        options = _Options(method, row.facts, meta, timeout, None)
        with anyio.move_on_after(self._list_limit):
            try:
                return await self._all_pages(row, options, fields)
            except RemoteError:
                if not options.from_cache:
                    raise
            self.state.cache.forget(method)
            return await self._all_pages(row, options, fields)
        raise RequestTimeoutError(f"{method}, all pages", self._list_limit)

    async def _all_pages(
        self, row: Method, options: _Options, fields: Mapping[str, Any]
    ) -> list[Any]:
        """The items of all pages, within bounds, since a server may name a next page forever."""
        method, items = row.name, row.items
        if items is None:
            raise MethodNotFoundError(method)
        collected: list[Any] = []
        cursors: set[int] = set()  # hashes, since a cursor may be long
        cursor: str | None = None
        while True:
            page = {**fields, "cursor": cursor}
            params = typed_params(row, page, self._session.revision.name)
            result = await self._call(row, options, params)
            collected += getattr(result, items)
            cursor = getattr(result, "next_cursor", None)  # a revision may have no pagination
            if cursor is None:
                return collected
            if hash(cursor) in cursors:
                raise RemoteProtocolError(
                    f"{method}: nextCursor: expected a new cursor, got {safe_repr(cursor)} again"
                )
            cursors.add(hash(cursor))
            if len(cursors) >= LIST_PAGES or len(collected) > LIST_ITEMS:
                raise RemoteProtocolError(
                    f"{method}: expected a list of at most {LIST_PAGES} pages and {LIST_ITEMS} "
                    f"items, got more; read it page by page"
                )

    def _row(self, method: str) -> Method:
        return method_named(self._session.revision.client_requests, method)

    def _options(
        self,
        method: str,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> _Options:
        """The options of a request by name, whose method may belong to an extension."""
        facts = self._session.revision.facts.method(method)
        return _Options(method, facts, meta, timeout, on_progress)

    async def _call(self, row: Method, options: _Options, params: Any) -> Any:
        """The result of a request, from the cache or from the server."""
        method, facts, cache = row.name, row.facts, self.state.cache
        key: Key | None = None
        if row.cacheable:
            trace_keys = self._session.revision.facts.meta.trace_keys
            key = cache.key(method, params, options.meta, trace_keys)
            cached = None if key is None else await self._cached(row, key)
            if cached is not None:
                options.from_cache = True
                return self._checked_tools(cached) if method == TOOLS_LIST else cached
        drops, started = cache.drops, monotonic()
        try:
            result = await self._send(options, params)
            if facts.input_required and hasattr(result, "input_requests"):
                result, key = await self._after_input(options, params, result), None
        except RemoteError as error:
            if error.code in _REFUSED and facts.listed_by is not None:
                cache.forget(facts.listed_by)
            raise
        if key is not None:
            cache.keep(key, getattr(params, "uri", None), result, drops)
        if facts.listed_by == TOOLS_LIST and self.state.output_schemas.promised(params.name):
            await self._validate(params.name, result, options.timeout, monotonic() - started)
        return self._checked_tools(result) if method == TOOLS_LIST else result

    async def _send(
        self,
        options: _Options,
        params: Any,
        request: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """Send a request; send it again where its response was lost or its headers were stale.

        Args:
            options: How to send the request.
            params: Its params.
            request: Sends the request, as a new one each time; the peer's `request` by default.
        """
        method, timeout = options.method, options.timeout
        request = request or partial(
            self._peer.callers.request,
            method,
            params,
            meta=options.meta,
            timeout=timeout,
            limit=None if timeout is None else max(timeout, self._limit),
            on_progress=options.on_progress,
        )
        session = self.state.session
        if session.lost:
            await self.restore_session()
        pauses = iter(RETRY_PAUSES)
        refreshed = retrying = False
        while True:
            try:
                result = await request()
                break
            except RemoteError as error:
                if error.code == self._session.revision.facts.errors.url_elicitation_required:
                    self.state.elicitations.required(error.data)
                if refreshed or not await self._refresh_param_headers(options, error):
                    raise
                refreshed = True
            except (ResponseLostError, ConnectFailedError) as error:
                if not retrying:
                    lost = isinstance(error, ResponseLostError)
                    retrying = lost and self.state.retry_is_safe(options.facts, params)
                pause = next(pauses, None)
                if not retrying or pause is None:
                    raise
                await anyio.sleep(pause)
        if method in LASTING:
            session.sent(method, params)
        elif session.lost:
            await self.restore_session()
        return result

    async def _refresh_param_headers(self, options: _Options, error: RemoteError) -> bool:
        """List the tools again if a call was refused for its parameter headers.

        Returns:
            Whether the tools were listed again.

        Source: basic/transports/streamable-http#client-behavior (2026-07-28).
        """
        expected = self._session.revision.facts.errors.header_mismatch
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

    async def _cached(self, row: Method, key: Key) -> Any:
        """A fresh cached result, or `None`. A closed client raises, as if it sent the request."""
        self._peer.callers.check_open()
        encoded = await self.state.cache.recall(key)
        if encoded is None:
            return None
        await anyio.lowlevel.checkpoint()
        try:
            return self._peer.connection.decode_result(row, encoded)
        except UNREADABLE:  # nested too deeply to be decoded at this depth of the stack
            return None

    def _checked_tools(self, result: Any) -> Any:
        """A page of tools without those that cannot be called; their schemas are stored."""
        usable = self.state.tools_listed(result.tools)
        if len(usable) < len(result.tools):
            result = msgspec.structs.replace(result, tools=usable)
        self.state.output_schemas.listed(result.tools)
        return result

    async def _validate(
        self, tool: str, result: Any, timeout: float | None, elapsed: float
    ) -> None:
        """Validate a tool's structured result within the rest of the call's timeout.

        If progress kept the call alive for longer than its timeout, the whole timeout applies.
        """
        left = timeout if timeout is None or elapsed >= timeout else timeout - elapsed
        await self.state.output_schemas.check(tool, result, left)

    async def _after_input(self, options: _Options, params: Any, result: Any) -> Any:
        """The result after the server has got the input that it asks for."""
        method = options.method
        for _ in range(self.rounds):
            again: dict[str, Any] = to_builtins(params)
            if result.input_requests is None and result.request_state is None:
                raise RemoteProtocolError(f"{method}: the server asked for input, but not for what")
            if result.input_requests is not None:
                again["inputResponses"] = {
                    key: await self._input(method, asked)
                    for key, asked in result.input_requests.items()
                }
            if result.request_state is not None:
                again["requestState"] = result.request_state
            result = await self._send(options, again)
            if not hasattr(result, "input_requests"):
                return result
        raise RemoteProtocolError(f"{method}: the server asked for input {self.rounds} times")

    async def _input(self, caller: str, asked: Any) -> Any:
        """The response to one request for input, made by the client's handler."""
        session = self._session
        method = session.revision.input_requests[to_builtins(asked)["method"]]
        if not declared(session.own_capabilities, method.capability):
            path = ".".join(method.capability)
            raise RemoteProtocolError(
                f"{caller}: the server asked for {method.name}, but this client has no {path}"
            )
        context = RequestContext(
            self._peer.callers,
            method,
            getattr(asked, "params", None),
            None,
            {},
            session.revision,
            None,
            session.peer_info,
            session.peer_capabilities,
        )
        return to_builtins(await self._handle_input(context))
