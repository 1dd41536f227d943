"""Interaction with the user: browser and loopback redirect, copy and paste, device code.

Source: RFC 8252, sections 7.3 and 8.3; OAuth 2.1, section 8.4.
"""

from __future__ import annotations

import time
import webbrowser
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import isawaitable
from threading import BoundedSemaphore, Event, Thread
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from ...auth.flows import has_same_state
from ...auth.registration import check_redirect_uri
from ...auth.steps import DeviceCode
from ...errors import AuthorizationError

_TICK = 0.05
_HEAD_SECONDS = 5.0  # for a request to the loopback address
_PAGE = "<!doctype html><meta charset=utf-8><title>Authorization</title><p>"
_PAGES = {
    HTTPStatus.OK: f"{_PAGE}You can close this window and return to the application.",
    HTTPStatus.BAD_REQUEST: f"{_PAGE}This is not the response that the application waits for.",
}

CALLBACK_REQUESTS = 16
"""Most concurrent requests to the loopback address; further connections are closed."""


PROMPTS = 6
"""Times within `PROMPT_SECONDS` that a user is asked to authorize a client for one MCP server."""

PROMPT_SECONDS = 300.0
"""The seconds in which `PROMPTS` are counted."""


class PromptLimit:
    """Limits how often an `OAuth` asks its users, however often an MCP server refuses tokens.

    Args:
        now: Returns the time, in seconds since any moment.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._prompts: dict[str, deque[float]] = {}

    def check(self, server: str) -> None:
        """Check that a user may be asked once more.

        Raises:
            AuthorizationError: The user was asked `PROMPTS` times within `PROMPT_SECONDS`.
        """
        recent = self._prompts.get(server, deque[float]())
        if len(recent) < PROMPTS:
            return
        left = recent[0] + PROMPT_SECONDS - self._now()
        if left > 0:
            raise AuthorizationError(
                f"the user was asked to authorize {PROMPTS} times within {PROMPT_SECONDS:g} s;"
                f" the server may require the next authorization in {left:.0f} s"
            )

    def add(self, server: str) -> None:
        """Record that a user is asked now.

        Raises:
            AuthorizationError: See `check`.
        """
        self.check(server)
        self._prompts.setdefault(server, deque(maxlen=PROMPTS)).append(self._now())


class UserAgent(NamedTuple):
    """An interaction that is ready to receive the authorization response.

    Attributes:
        redirect_uri: The redirect URI.
        visit: Sends the user to a URL. Returns the redirect URI with the authorization response.
    """

    redirect_uri: str
    visit: Callable[[str], Awaitable[str]]


class Interaction(Protocol):
    """How the user authorizes."""

    def open(self) -> AbstractAsyncContextManager[UserAgent]:
        """Prepare for one authorization."""
        ...


class Loopback:
    """A browser on this machine, and a temporary HTTP server at 127.0.0.1 as redirect URI.

    Args:
        port: The port; 0 for the port of the last registration if it is free, or else any free
            port. Some authorization servers require a fixed port.
        path: The path of the redirect URI.
        timeout: Time limit for the user, in seconds.
        open_url: Opens a URL in a browser, without a shell. Returns false if there is no browser.
    """

    def __init__(
        self,
        port: int = 0,
        path: str = "/callback",
        timeout: float = 300.0,
        open_url: Callable[[str], Any] = webbrowser.open,
    ) -> None:
        self._port = port
        self._path = path
        self._timeout = timeout
        self._open_url = open_url

    @asynccontextmanager
    async def open(self, registered: Sequence[str] = ()) -> AsyncGenerator[UserAgent]:
        """See `Interaction.open`.

        Args:
            registered: The redirect URIs that the client is registered with. If no port is
                configured, their ports are tried first: not every authorization server accepts
                another port.

        Raises:
            AuthorizationError: The port is in use.
        """
        try:
            server = self._bind(registered)
        except OSError:
            raise AuthorizationError(f"port {self._port} of 127.0.0.1 is in use") from None
        thread = Thread(target=partial(server.serve_forever, _TICK), daemon=True)
        thread.start()
        try:
            yield UserAgent(self._uri(server.server_port), partial(self._visit, server))
        finally:
            server.returned.set()  # ends the waiting thread
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(server.shutdown)
                server.server_close()

    def _bind(self, registered: Sequence[str]) -> _CallbackServer:
        for uri in () if self._port else registered:
            port = urlsplit(uri).port
            if port and uri == self._uri(port):
                with suppress(OSError):
                    return _CallbackServer(port, self._path)
        return _CallbackServer(self._port, self._path)

    def _uri(self, port: int) -> str:
        return f"http://127.0.0.1:{port}{self._path}"

    async def _visit(self, server: _CallbackServer, url: str) -> str:
        server.expect(url)
        opened = await to_thread.run_sync(self._open_url, url, abandon_on_cancel=True)
        if opened is False:
            raise AuthorizationError("no browser could be opened; use `Paste`")
        with anyio.move_on_after(self._timeout):
            await to_thread.run_sync(server.returned.wait, abandon_on_cancel=True)
            return f"http://127.0.0.1:{server.server_port}{server.target}"
        raise AuthorizationError(f"the user did not authorize within {self._timeout:g} s")


class _CallbackServer(ThreadingHTTPServer):
    """Accepts one authorization response at a path of a loopback address.

    Other requests to the path get status 400, and requests to other paths 404. Any web page can
    send requests to a loopback address, so these requests do not end the authorization.
    """

    target = ""

    def __init__(self, port: int, path: str) -> None:
        self.returned = Event()
        self.path = path
        self._url: str | None = None
        self._slots = BoundedSemaphore(CALLBACK_REQUESTS)
        super().__init__(("127.0.0.1", port), _CallbackHandler)

    def expect(self, url: str) -> None:
        """Accept the response to an authorization request, by its URL."""
        self._url = url

    def accept(self, target: str) -> HTTPStatus:
        """Accept the target of a request if it is the awaited response; returns its status."""
        split = urlsplit(target)
        if split.path != self.path:
            return HTTPStatus.NOT_FOUND
        is_awaited = self._url is not None and not self.returned.is_set()
        if not split.query or not is_awaited or not has_same_state(target, self._url or ""):
            return HTTPStatus.BAD_REQUEST
        self.target = target
        self.returned.set()
        return HTTPStatus.OK

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it while too many are open."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections."""


class _CallbackHandler(BaseHTTPRequestHandler):
    """Responds to one request, without a log, because the target contains the code."""

    timeout = _HEAD_SECONDS
    server: Any  # a `_CallbackServer`

    def do_GET(self) -> None:
        """Respond with a page that does not mention the outcome."""
        status = self.server.accept(self.path)
        body = _PAGES.get(status, "").encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def version_string(self) -> str:
        """A neutral name in the `Server` header."""
        return "callback"


class Paste:
    """A user without a browser on this machine, who copies the URLs between the machines.

    Args:
        redirect_uri: The redirect URI; no server needs to listen there.
        show: Shows text with the URL to the user.
        read: Returns the URL that the browser was redirected to; runs in a thread.
    """

    def __init__(
        self,
        redirect_uri: str = "http://127.0.0.1:33418/callback",
        show: Callable[[str], Any] = print,
        read: Callable[[], str] = input,
    ) -> None:
        check_redirect_uri(redirect_uri)
        self._redirect_uri = redirect_uri
        self._show = show
        self._read = read

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[UserAgent]:
        """See `Interaction.open`."""
        yield UserAgent(self._redirect_uri, self._visit)

    async def _visit(self, url: str) -> str:
        self._show(f"Open this URL, and paste the URL that you are redirected to:\n{url}")
        return (await to_thread.run_sync(self._read, abandon_on_cancel=True)).strip()


class Device:
    """Another device of the user, where the user enters a short code (RFC 8628).

    Args:
        show: Shows the code; a function or a coroutine function. By default, the code is printed.
    """

    def __init__(self, show: Callable[[DeviceCode], Any] | None = None) -> None:
        self._show = show

    def open(self) -> AbstractAsyncContextManager[UserAgent]:
        """See `Interaction.open`. The device flow has no redirect URI.

        Raises:
            AuthorizationError: Always.
        """
        raise AuthorizationError("`Device` has no redirect URI: use `connect`, or `Redirect`")

    async def show(self, code: DeviceCode) -> None:
        """Show the user a code."""
        if self._show is None:
            print(f"Open {code.verification_uri} and enter the code {code.user_code}")
            return
        result = self._show(code)
        if isawaitable(result):
            await result


class Redirect:
    """An interaction that the application implements.

    Args:
        redirect_uri: The redirect URI: https, or http to loopback.
        visit: Sends the user to a URL and returns the redirect URI with the authorization response;
            may be a coroutine function. `None` for `OAuth.begin` only.
    """

    def __init__(
        self,
        redirect_uri: str,
        visit: Callable[[str], str | Awaitable[str]] | None = None,
    ) -> None:
        check_redirect_uri(redirect_uri)
        self._redirect_uri = redirect_uri
        self._visit = visit

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[UserAgent]:
        """See `Interaction.open`."""
        yield UserAgent(self._redirect_uri, self._send)

    async def _send(self, url: str) -> str:
        if self._visit is None:
            raise AuthorizationError(
                "the user has to authorize: give `visit`, or use `begin` and `finish`"
            )
        response_url = self._visit(url)
        return await response_url if isawaitable(response_url) else response_url
