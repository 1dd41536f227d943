"""Runs flows: HTTP requests, records in the store, and interaction with the user.

The HTTP requests follow no redirects, send no cookies, and reach permitted addresses only.

Source: security best practices (server-side request forgery).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from inspect import isawaitable
from typing import Any, TypeVar

import anyio

from ...auth.discovery import DOCUMENT_LIMIT
from ...auth.steps import (
    Call,
    Fetch,
    Fetched,
    Flow,
    Load,
    Pause,
    PrepareRedirect,
    Save,
    ShowCode,
    Step,
    Visit,
)
from ...errors import AuthorizationError, McpError
from ...framing.http_headers import media_type
from ...framing.http_hosts import format_url
from ...framing.sse import MEDIA_TYPE
from ...transports.http.http_library import Httpx2Library, Permits
from .interactions import Device, Interaction, Loopback, UserAgent
from .stores import Store

FETCH_SECONDS = 30.0
"""Time limit for a request and its response, in seconds."""

Result = TypeVar("Result")

_FIELDS = ("content-type", "dpop-nonce", "www-authenticate")


class FlowDriver:
    """Runs flows, one at a time.

    Args:
        fetcher: Makes HTTP requests.
        store: Stores records.
        interaction: The interaction with the user; `None` if there is no user.
        on_prompt: Called before the user is sent to a URL or shown a code; may raise.
    """

    def __init__(
        self,
        fetcher: AuthFetcher,
        store: Store,
        interaction: Interaction | None = None,
        on_prompt: Callable[[], None] = lambda: None,
    ) -> None:
        self._fetcher = fetcher
        self._store = store
        self._interaction = interaction
        self._on_prompt = on_prompt

    async def run(self, flow: Flow[Result]) -> Result:
        """Run a flow to its result.

        Raises:
            McpError: The flow or one of its steps failed.
        """
        async with AsyncExitStack() as stack:
            answer: Any = None
            agent: UserAgent | None = None
            try:
                while True:
                    step = flow.send(answer)
                    if isinstance(step, PrepareRedirect):
                        await stack.aclose()  # closes the earlier interaction
                        agent = await stack.enter_async_context(self._open_agent(step.registered))
                        answer = agent.redirect_uri
                    else:
                        answer = await self._answer(step, agent)
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                flow.close()
        raise AssertionError("the stack swallows no exception")

    def _open_agent(self, registered: tuple[str, ...]) -> AbstractAsyncContextManager[UserAgent]:
        """Open the interaction; a loopback interaction prefers a registered redirect URI."""
        if self._interaction is None:
            raise AuthorizationError("the flow requires a user, and no interaction is configured")
        if isinstance(self._interaction, Loopback):
            return self._interaction.open(registered)
        return self._interaction.open()

    async def _answer(self, step: Step, agent: UserAgent | None) -> Any:
        if isinstance(step, Visit | ShowCode):
            self._on_prompt()
        match step:
            case Fetch():
                return await self._fetcher.fetch(step)
            case Load(key):
                return await self._store.load(key)
            case Save(key, record):
                return await self._store.save(key, record)
            case Call(function, arguments):
                value = function(*arguments)
                return await value if isawaitable(value) else value
            case Pause(seconds):
                return await anyio.sleep(seconds)
            case ShowCode(code) if isinstance(self._interaction, Device):
                return await self._interaction.show(code)
            case Visit(url) if agent is not None:
                return await agent.visit(url)
            case _:
                raise AssertionError("a flow yields only steps that fit its interaction")


class AuthFetcher:
    """Makes the HTTP requests of flows, over separate connections.

    Args:
        permits: Returns whether a connection may be made to an IP address.
        seconds: Time limit for a request and its response, in seconds.

    Raises:
        MissingExtraError: httpx2 is not installed.
    """

    def __init__(self, permits: Permits, seconds: float = FETCH_SECONDS) -> None:
        self._seconds = seconds
        self._library = Httpx2Library(seconds, seconds, permits)

    async def fetch(self, step: Fetch) -> Fetched:
        """Make a request.

        Raises:
            AuthorizationError: No response arrived in time.
            ConnectFailedError: The connection failed, or the address is not permitted.
            ResponseLostError: The connection broke.
            FrameError: The body is too long.
        """
        with anyio.move_on_after(self._seconds):
            try:
                response = await self._library.send(step.method, step.url, step.fields, step.body)
            except McpError as error:
                raise error from None
            fields = {name: response.header(name) or "" for name in _FIELDS}
            if media_type(fields["content-type"]) == MEDIA_TYPE:
                await response.close()
                return Fetched(response.status, fields)  # an event stream may never end
            body = await response.read(DOCUMENT_LIMIT, self._seconds, self._seconds)
            return Fetched(response.status, fields, body)
        raise AuthorizationError(f"{format_url(step.url)}: no response within {self._seconds:g} s")

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._library.close()
