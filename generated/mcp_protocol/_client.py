"""What every client face stands on: calls, pages, input requests, and the user's handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Raw

from ._faces import typed_params
from ._wire import UNSET, convert, is_object, to_builtins
from .core.lifecycle import Description, Session, declared
from .errors import (
    LocalProtocolError,
    MethodNotFoundError,
    RemoteProtocolError,
    RequestCancelledError,
)
from .exchange import Exchange
from .facts import Method, Revision
from .peer import Peer
from .structured import OutputSchemas
from .waiting import OnChange, OnProgress

INPUT_ROUNDS = 16
"""How often in a row a server may ask for input before it answers."""

PAGES = 10_000
"""How many pages of a list are followed; a server that never ends a list must not fill memory."""


class Handlers(Protocol):
    """What a client answers and hears: a rendered `ClientHandlers` is one."""

    def mcp_handler(self, method: Method) -> Callable[[Any, Exchange], Any] | None:
        """The user's own coroutine function for a method; `None` if it was not overridden."""
        ...


class ClientBase:
    """An open session with a server. The rendered faces add a coroutine for each request.

    Args:
        peer: An open peer.
        application: What answers the server's input requests.
        limit: Seconds until a call with a timeout counts as lost, whatever progress comes.

    Attributes:
        session: What was agreed with the server.
    """

    def __init__(self, peer: Peer, application: ClientApplication, limit: float) -> None:
        if peer.session is None:
            raise LocalProtocolError("nothing was agreed with the server yet")
        self.session: Session = peer.session
        self._peer = peer
        self._application = application
        self._limit = limit

    @property
    def revision(self) -> str:
        """The revision that both sides speak, such as `2025-06-18`."""
        return self.session.revision.name

    @property
    def server_info(self) -> Mapping[str, Any]:
        """How the server calls itself, as wire object; empty if it did not say."""
        return self.session.peer_info or {}

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        """What the server declared, as wire object."""
        return self.session.peer_capabilities

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self.session.instructions

    def supports(self, capability: str) -> bool:
        """Whether the server declared a capability, such as `tools` or `resources.subscribe`."""
        return declared(self.session.peer_capabilities, tuple(capability.split(".")))

    async def request(
        self,
        name: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send any request by its wire name, with params as wire object or raw JSON.

        Args:
            name: The method.
            params: Its params; `None` for none.
            meta: What to add to `_meta`.
            timeout: Seconds without answer or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each report; asks for them.

        Returns:
            The typed result.

        Raises:
            RemoteError: The server answered with an error.
            RequestTimeoutError: No answer in time.
        """
        return await self._ask(name, params, meta, timeout, on_progress)

    async def request_raw(
        self,
        name: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        timeout: float | None = None,
    ) -> Raw:
        """Like `request`, but give the result as it came: for gateways, nothing is lost."""
        return await self._peer.request_raw(name, params, timeout=timeout)

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification by its wire name."""
        await self._peer.notify(name, params)

    async def listen(
        self,
        wanted: Mapping[str, Any],
        on_change: OnChange,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Subscribe to changes, and hear of them until the server ends the subscription.

        To end it yourself, cancel the task that waits here.

        Args:
            wanted: Which changes, as wire object, such as `{"toolsListChanged": True}`.
            on_change: Called with each notification of this subscription, here in this task. The
                first one says by its params which part of `wanted` the server agreed to.
            meta: What to add to `_meta`.

        Raises:
            MethodNotFoundError: The revision has no such subscriptions.
            ConnectionClosedError: The connection was lost. The server forgets subscriptions; over
                the next connection they have to be made again.

        Source: basic/patterns/subscriptions (2026-07-28).
        """
        name = self.session.revision.facts.listen
        if name is None:
            raise MethodNotFoundError("subscriptions/listen")
        params = {"notifications": dict(wanted)}
        with suppress(RequestCancelledError):
            await self._peer.request(name, params, meta=meta, on_change=on_change)

    async def close(self) -> None:
        """End the session. Works from any task; open requests fail with ConnectionClosedError."""
        await self._peer.close()

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages with each request, in revisions where requests do so.

        Args:
            level: The least level wanted; `None` for no messages.

        Source: server/utilities/logging (2026-07-28).
        """
        self._peer.connection.ask_for_logs(level)

    async def _ask(
        self,
        name: str,
        params: Any,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Any:
        limit = None if timeout is None else max(timeout, self._limit)
        return await self._peer.request(
            name, params, meta=meta, timeout=timeout, limit=limit, on_progress=on_progress
        )

    async def _call(
        self,
        name: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Any:
        """Send a request whose params are given by Python names; UNSET ones are left out.

        Where a server may ask for input first, it gets what it asks, until it gives its result.
        The timeout holds for each round. A tool's structured result is held against the schema
        that the server listed for it.
        """
        revision = self.session.revision
        params = typed_params(revision.client_requests, name, fields, revision.name)
        result = await self._ask(name, params, meta, timeout, on_progress)
        if name in revision.facts.input_required:
            rounds = 0
            while hasattr(result, "input_requests"):
                if rounds == INPUT_ROUNDS:
                    raise RemoteProtocolError(f"{name}: the server asked for input {rounds} times")
                rounds += 1
                again = await self._with_input(name, params, result)
                result = await self._ask(name, again, meta, timeout, on_progress)
        if name == "tools/list":
            self._application.outputs.listed(result.tools)
        elif name == "tools/call":
            self._application.outputs.check(params.name, result)
        return result

    async def _with_input(self, name: str, params: Any, result: Any) -> dict[str, Any]:
        """The params of a request once more, with what its result asked for.

        Source: basic/patterns/mrtr (2026-07-28).
        """
        again: dict[str, Any] = to_builtins(params)
        if result.input_requests is not UNSET:
            answers = {
                key: await self._input(name, ask) for key, ask in result.input_requests.items()
            }
            again["inputResponses"] = answers
        if result.request_state is not UNSET:
            again["requestState"] = result.request_state
        return again

    async def _input(self, name: str, asked: Any) -> Any:
        """Answer one thing that a server wants to know before it goes on."""
        session = self.session
        method = session.revision.input_requests[to_builtins(asked)["method"]]
        if not declared(session.own_capabilities, method.capability):
            path = ".".join(method.capability)
            raise RemoteProtocolError(
                f"{name}: the server asked for {method.name}, but this client has no {path}"
            )
        params = getattr(asked, "params", UNSET)
        exchange = Exchange(
            self._peer,
            method,
            None if params is UNSET else params,
            None,
            {},
            session.revision,
            None,
            session.peer_info,
            session.peer_capabilities,
        )
        answer = await self._application.handle(exchange)
        if isinstance(answer, Mapping):
            answer = convert(answer, method.result)
        return to_builtins(answer)

    async def _pages(
        self,
        name: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """Follow the cursors of a list to its end. They may be any text, even the same one again.

        Source: server/utilities/pagination.
        """
        method = self.session.revision.client_requests.get(name)
        if method is None or method.items is None:
            raise MethodNotFoundError(name)
        found: list[Any] = []
        last: list[Any] = []
        cursor: Any = UNSET
        for _ in range(PAGES):
            result = await self._call(name, {**fields, "cursor": cursor}, meta, timeout, None)
            page = getattr(result, method.items)
            found += page
            if result.next_cursor is UNSET:
                return found
            if page and page == last and cursor == result.next_cursor:
                raise RemoteProtocolError(f"{name}: the page after cursor {cursor!r} leads nowhere")
            last, cursor = page, result.next_cursor
        raise RemoteProtocolError(f"{name}: the list did not end within {PAGES} pages")


@dataclass(frozen=True)
class Identity:
    """How a client introduces itself, as wire objects.

    Attributes:
        info: Name and version, and what else an `Implementation` may say.
        capabilities: What the user declares beyond what the handlers show.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]


class ClientApplication:
    """Serves a server's requests with the user's handlers.

    Args:
        handlers: The user's handlers, or `None`.
        identity: How the client introduces itself.

    Attributes:
        outputs: What the server's tools promise; forgotten when the server says that they changed.
    """

    def __init__(self, handlers: Handlers | None, identity: Identity) -> None:
        self.outputs = OutputSchemas()
        self._handlers = handlers
        self._identity = identity
        self._descriptions: dict[str, Description] = {}

    def describe(self, revision: Revision) -> Description:
        """Name and capabilities, in the shape of a revision."""
        known = self._descriptions.get(revision.name)
        if known is None:
            capabilities = _announceable(self._identity.capabilities, revision)
            for method in (*revision.server_requests.values(), *revision.input_requests.values()):
                if method.capability and self._handler(method) is not None:
                    _declare(capabilities, method.capability)
            known = Description(
                _shaped(self._identity.info, revision.implementation),
                _shaped(capabilities, revision.client_capabilities),
            )
            self._descriptions[revision.name] = known
        return known

    async def handle(self, exchange: Exchange) -> Any:
        """Answer one of the server's requests.

        Raises:
            MethodNotFoundError: The user has no handler for it.
        """
        handler = self._handler(exchange.method)
        if handler is None:
            raise MethodNotFoundError(exchange.method.name)
        return await handler(exchange.params, exchange)

    async def notified(self, exchange: Exchange) -> None:
        """Pass one of the server's notifications on."""
        if exchange.method.name == "notifications/tools/list_changed":
            self.outputs.forget()
        handler = self._handler(exchange.method)
        if handler is not None:
            await handler(exchange.params, exchange)

    def _handler(self, method: Method) -> Callable[[Any, Exchange], Any] | None:
        return None if self._handlers is None else self._handlers.mcp_handler(method)


def _announceable(capabilities: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """A copy, without `listChanged` where the revision has no notification to announce it by."""
    known = {method.capability for method in revision.client_notifications.values()}
    made = dict(capabilities)
    for name, value in capabilities.items():
        if is_object(value):
            flags = made[name] = dict(value)
            if (name, "listChanged") not in known:
                flags.pop("listChanged", None)
    return made


def _declare(capabilities: dict[str, Any], path: tuple[str, ...]) -> None:
    here = capabilities
    for name in path:
        here = here.setdefault(name, {})


def _shaped(wire: Mapping[str, Any], kind: Any) -> Mapping[str, Any]:
    """A wire object with the members that a type has, and no other."""
    shaped: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return shaped
