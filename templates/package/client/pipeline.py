"""What the requests of a client go through: results that are known, input that is wanted first.

A call is answered from memory while its result is fresh. Otherwise it is sent, and sent again for
as long as the server wants input, or with better headers if it was refused for those. What passes
is noted: output schemas, marks, results that may be used again.

Source: basic/patterns/mrtr, basic/transports/streamable-http#client-behavior, server/utilities.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import anyio.lowlevel
import msgspec
from msgspec import Raw

from .._wire import UNREADABLE, to_builtins
from ..errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    McpError,
    MethodNotFoundError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
)
from ..facts import Method
from ..foreign_text import safe_repr
from ..protocol.lenient import result_decoder
from ..protocol.lifecycle import Session, declared
from ..protocol.notifications import RESOURCE_UPDATED
from ..revision_facts import Facts
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from ..runtime.stubs import typed_params
from .handler_validation import COMPLETE, Elicitations
from .output_schemas import OutputSchemas
from .response_cache import Key, ResponseCache
from .retries import TOOLS_CALL, Retries
from .session_restore import LASTING, SessionRestore
from .tool_param_headers import ToolParamHeaders

INPUT_ROUNDS = 16
"""How often in a row a server may ask for input before it answers."""

LIST_PAGES = 10_000
"""Pages of one list that are followed."""

LIST_ITEMS = 100_000
"""Items of one list that are kept, over all its pages."""

RESTORING_SECONDS = 10.0
"""How long a server may take for each request that is made again in a new session."""

TOOLS_LIST = "tools/list"
_REFUSED = (METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND)


@dataclass(frozen=True)
class Known:
    """What a client knows of a server from what it said.

    Attributes:
        cache: Results that may be used again.
        outputs: What the tools promise.
        marks: Which arguments of the tools headers repeat.
        reissuing: Which requests may be asked again if their answer is lost.
        elicitations: What its user is to do on web pages.
        standing: What it keeps for the session.
    """

    cache: ResponseCache
    outputs: OutputSchemas = field(default_factory=OutputSchemas)
    marks: ToolParamHeaders = field(default_factory=ToolParamHeaders)
    reissuing: Retries = field(default_factory=Retries)
    elicitations: Elicitations = field(default_factory=Elicitations)
    standing: SessionRestore = field(default_factory=SessionRestore)

    def listed(self, tools: Sequence[Any]) -> list[Any]:
        """Take note of typed tools; those that can be called are returned."""
        self.reissuing.listed(tools)
        return self.marks.listed(tools)

    def noticed(self, notification: str, params: Any, facts: Facts) -> bool:
        """Forget what a notification says has changed; gives whether it is news at all."""
        if notification == COMPLETE:
            return self.elicitations.completed(params.elicitation_id)
        stale = facts.method(notification).invalidates
        if TOOLS_LIST in stale:
            self.outputs.forget()
        for method in stale:
            self.cache.forget(method)
        if notification == RESOURCE_UPDATED:
            self.cache.forget_resource(params.uri)
        return True

    def missed(self) -> None:
        """Forget what may have changed while nothing could be heard of it."""
        self.outputs.forget()
        self.cache.clear()

    def session_lost(self) -> None:
        """Take note that the transport lost the session, and has opened another one."""
        self.missed()
        self.standing.lose()


class _Ask(msgspec.Struct, gc=False):
    """One request as its caller wants it sent, once or more often.

    Attributes:
        name: The method.
        meta: What to add to `_meta`.
        timeout: Seconds without answer or progress, each time it is sent.
        on_progress: Called with each report.
        recalled: Whether a result was known already.
    """

    name: str
    meta: Mapping[str, Any] | None
    timeout: float | None
    on_progress: OnProgress | None
    recalled: bool = False


class Requests:
    """The requests of an open session.

    Args:
        peer: An open peer.
        session: What was agreed.
        limit: Seconds until a call with a timeout counts as lost, whatever progress comes.
        list_limit: Seconds for all pages of a list together.
        answer: Answers what a server wants to know.
        known: What is known of the server.

    Attributes:
        rounds: How often in a row a server may ask for input.
    """

    def __init__(
        self,
        peer: Peer,
        session: Session,
        limit: float,
        list_limit: float,
        answer: Callable[[RequestContext], Awaitable[Any]],
        known: Known,
    ) -> None:
        self._peer = peer
        self._session = session
        self._limit = limit
        self._list_limit = list_limit
        self._answer = answer
        self.known = known
        self.rounds = INPUT_ROUNDS

    async def send(
        self,
        name: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a request as it is, and give its result as it comes."""
        result = await self._send(_Ask(name, meta, timeout, on_progress), params)
        if name == TOOLS_LIST:
            self.known.listed(result.tools)
        return result

    async def send_raw(self, name: str, params: Any, timeout: float | None) -> Raw:
        """The same, with the result as JSON."""
        send = partial(self._peer.callers.request_raw, name, params, timeout=timeout)
        raw: Raw = await self._answered(name, params, timeout, send)
        if name == TOOLS_LIST and self.known.marks.in_use:
            method = self._session.revision.client_requests[name]
            self.known.marks.listed(result_decoder(method)(raw).tools)
        return raw

    async def restore(self) -> None:
        """Have the server keep for a new session what it kept for the one that was lost."""
        ask = partial(self._peer.callers.request, timeout=RESTORING_SECONDS)
        await self.known.standing.restore(ask)

    def call(
        self,
        name: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Awaitable[Any]:
        """Get the result of a request whose params are given by Python names, `None` for none.

        Where a server may ask for input first, it gets what it asks, until it gives its result. A
        tool's structured result is held against the schema that the server listed for it.
        """
        return self._get(_Ask(name, meta, timeout, on_progress), self._params(name, fields))

    async def pages(
        self,
        name: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """Follow the cursors of a list to its end; one deadline holds for all pages together.

        A cursor of a page that was kept may have gone out of date; then the list is asked for anew.

        Source: server/utilities/pagination, server/utilities/caching#interaction-with-pagination.
        """
        method = self._session.revision.client_requests.get(name)
        if method is None or method.items is None:
            raise MethodNotFoundError(name)
        ask = _Ask(name, meta, timeout, None)
        with anyio.move_on_after(self._list_limit):
            try:
                return await self._follow(ask, method.items, fields)
            except RemoteError:
                if not ask.recalled:
                    raise
            self.known.cache.forget(name)
            return await self._follow(ask, method.items, fields)
        raise RequestTimeoutError(f"{name}, all pages", self._list_limit)

    async def _follow(self, ask: _Ask, items: str, fields: Mapping[str, Any]) -> list[Any]:
        """The items of all pages, within bounds: a server may name a next page for ever."""
        listed: list[Any] = []
        cursors: set[int] = set()  # their hashes: a cursor may be long
        cursor: str | None = None
        while True:
            result = await self._get(ask, self._params(ask.name, {**fields, "cursor": cursor}))
            listed += getattr(result, items)
            cursor = getattr(result, "next_cursor", None)  # a revision may have no pagination
            if cursor is None:
                return listed
            if hash(cursor) in cursors:
                raise RemoteProtocolError(
                    f"{ask.name}: nextCursor: expected a new cursor, got {safe_repr(cursor)} again"
                )
            cursors.add(hash(cursor))
            if len(cursors) >= LIST_PAGES or len(listed) > LIST_ITEMS:
                raise RemoteProtocolError(
                    f"{ask.name}: expected a list of at most {LIST_PAGES} pages and {LIST_ITEMS} "
                    f"items, got more; read it page by page"
                )

    def _params(self, name: str, fields: Mapping[str, Any]) -> Any:
        revision = self._session.revision
        return typed_params(revision.client_requests, name, fields, revision.name)

    async def _get(self, ask: _Ask, params: Any) -> Any:
        """The result of a request, from memory or from the server."""
        facts = self._session.revision.facts
        method = self._session.revision.client_requests[ask.name]
        cache = self.known.cache
        key: Key | None = None
        if method.cacheable:
            key = cache.key(ask.name, params, ask.meta, facts.meta.trace_keys)
            found = None if key is None else await self._recall(method, key)
            if found is not None:
                ask.recalled = True
                return self._noted(ask.name, found)
        drops = cache.drops
        sent = monotonic()
        try:
            result = await self._send(ask, params)
        except RemoteError as error:
            listed_by = facts.method(ask.name).listed_by
            if error.code in _REFUSED and listed_by is not None:
                cache.forget(listed_by)
            raise
        if facts.method(ask.name).input_required and hasattr(result, "input_requests"):
            result = await self._with_input(ask, params, result)
        elif key is not None:
            cache.keep(key, getattr(params, "uri", None), result, drops)
        if ask.name == TOOLS_CALL and self.known.outputs.promised(params.name):
            await self._check(params.name, result, ask.timeout, monotonic() - sent)
        return self._noted(ask.name, result)

    async def _check(self, tool: str, result: Any, timeout: float | None, elapsed: float) -> None:
        """Hold a tool's result against its schema, in what is left of the call's timeout.

        If progress kept the call alive for longer than that, it is the whole timeout again.
        """
        left = timeout if timeout is None or elapsed >= timeout else timeout - elapsed
        await self.known.outputs.check(tool, result, left)

    async def _recall(self, method: Method, key: Key) -> Any:
        """A result that is known and fresh; `None` if there is none. A closed client has none."""
        self._peer.callers.check_open()
        found = await self.known.cache.recall(key)
        if found is None:
            return None
        await anyio.lowlevel.checkpoint()
        try:
            return result_decoder(method)(found)
        except UNREADABLE:  # nested too deep to be read again just here
            return None

    def _noted(self, name: str, result: Any) -> Any:
        """A result, after a look at what it tells of the server's tools."""
        if name == TOOLS_LIST:
            usable = self.known.listed(result.tools)
            if len(usable) < len(result.tools):
                result = msgspec.structs.replace(result, tools=usable)
            self.known.outputs.listed(result.tools)
        return result

    def _send(self, ask: _Ask, params: Any) -> Awaitable[Any]:
        timeout = ask.timeout
        send = partial(
            self._peer.callers.request,
            ask.name,
            params,
            meta=ask.meta,
            timeout=timeout,
            limit=None if timeout is None else max(timeout, self._limit),
            on_progress=ask.on_progress,
        )
        return self._answered(ask.name, params, timeout, send)

    async def _answered(
        self, name: str, params: Any, timeout: float | None, send: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Send a request, and once more if it was refused for headers that can be put right."""
        if self.known.standing.lost:
            await self.restore()
        reissuing, facts = self.known.reissuing, self._session.revision.facts
        try:
            result = await reissuing.ask(name, params, send, facts)
        except RemoteError as error:
            if error.code == facts.errors.url_elicitation_required:
                self.known.elicitations.required(error.data)
            if not await self._listed_anew(name, error, timeout):
                raise
            return await reissuing.ask(name, params, send, facts)
        if name in LASTING:
            self.known.standing.noted(name, params)
        elif self.known.standing.lost:
            await self.restore()
        return result

    async def _listed_anew(self, name: str, error: RemoteError, timeout: float | None) -> bool:
        """List the tools again if a call was refused for its headers; whether that was done.

        Source: basic/transports/streamable-http#client-behavior (2026-07-28).
        """
        expected = self._session.revision.facts.errors.header_mismatch
        if name != TOOLS_CALL or error.code != expected or not self.known.marks.in_use:
            return False
        self.known.cache.forget(TOOLS_LIST)
        try:
            await self.pages(TOOLS_LIST, {}, None, timeout)
        except McpError:
            return False
        return True

    async def _with_input(self, ask: _Ask, params: Any, result: Any) -> Any:
        """Give a server the input it asks for, until it gives its result."""
        for _ in range(self.rounds):
            result = await self._send(ask, await self._retry(ask.name, params, result))
            if not hasattr(result, "input_requests"):
                return result
        raise RemoteProtocolError(f"{ask.name}: the server asked for input {self.rounds} times")

    async def _retry(self, name: str, params: Any, result: Any) -> dict[str, Any]:
        """The params of a request once more, with what its result asked for."""
        again: dict[str, Any] = to_builtins(params)
        if result.input_requests is None and result.request_state is None:
            raise RemoteProtocolError(f"{name}: the server asked for input, but not for what")
        if result.input_requests is not None:
            again["inputResponses"] = {
                key: await self._input(name, asked) for key, asked in result.input_requests.items()
            }
        if result.request_state is not None:
            again["requestState"] = result.request_state
        return again

    async def _input(self, name: str, asked: Any) -> Any:
        """Answer one thing that a server wants to know before it goes on."""
        session = self._session
        method = session.revision.input_requests[to_builtins(asked)["method"]]
        if not declared(session.own_capabilities, method.capability):
            path = ".".join(method.capability)
            raise RemoteProtocolError(
                f"{name}: the server asked for {method.name}, but this client has no {path}"
            )
        exchange = RequestContext(
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
        return to_builtins(await self._answer(exchange))
