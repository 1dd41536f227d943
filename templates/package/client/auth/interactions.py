"""How a user is sent to an authorization server, and comes back: a browser, or by hand.

Source: RFC 8252, sections 7.3 and 8.3; OAuth 2.1, section 8.4.
"""

from __future__ import annotations

import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import isawaitable
from threading import Event, Thread
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from ...auth.registration import check_redirect_uri
from ...auth.steps import DeviceCode
from ...errors import AuthorizationError

_TICK = 0.05
_HEAD_SECONDS = 5.0  # for a request to the loopback address
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Authorization</title>"
    "<p>You can close this window and return to the application."
)


class UserAgent(NamedTuple):
    """A way to the user, ready for use.

    Attributes:
        redirect_uri: Where the user comes back to.
        visit: Sends the user to a URL and waits for the one that the user comes back by.
    """

    redirect_uri: str
    visit: Callable[[str], Awaitable[str]]


class Interaction(Protocol):
    """A way to the user."""

    def open(self) -> AbstractAsyncContextManager[UserAgent]:
        """Get ready for one authorization."""
        ...


class Loopback:
    """A browser on this machine, which comes back to a port of 127.0.0.1 that is open meanwhile.

    Args:
        port: The port; 0 for a free one. Some authorization servers want a fixed one.
        path: The path of the redirect URI.
        timeout: Seconds for the user to come back.
        open_url: Opens a URL in a browser, without a shell; false if there is none.
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
    async def open(self) -> AsyncGenerator[UserAgent]:
        """See `Interaction.open`.

        Raises:
            AuthorizationError: The port is taken.
        """
        try:
            server = _CallbackServer(self._port, self._path)
        except OSError:
            raise AuthorizationError(f"port {self._port} of 127.0.0.1 is taken") from None
        thread = Thread(target=partial(server.serve_forever, _TICK), daemon=True)
        thread.start()
        try:
            uri = f"http://127.0.0.1:{server.server_port}{self._path}"
            yield UserAgent(uri, partial(self._visit, server))
        finally:
            server.returned.set()  # ends the thread that waits for it
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(server.shutdown)
                server.server_close()

    async def _visit(self, server: _CallbackServer, url: str) -> str:
        opened = await to_thread.run_sync(self._open_url, url, abandon_on_cancel=True)
        if opened is False:
            raise AuthorizationError("no browser could be opened; use `Paste`")
        with anyio.move_on_after(self._timeout):
            await to_thread.run_sync(server.returned.wait, abandon_on_cancel=True)
            return f"http://127.0.0.1:{server.server_port}{server.target}"
        raise AuthorizationError(f"the user did not come back within {self._timeout:g} s")


class _CallbackServer(ThreadingHTTPServer):
    """Waits on a loopback address for one request to a path; others get 404."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, path: str) -> None:
        self.returned = Event()
        self.target = ""
        self.path = path
        super().__init__(("127.0.0.1", port), _CallbackHandler)

    def take(self, target: str) -> bool:
        """Take the target of a request; whether it is the one that was waited for."""
        split = urlsplit(target)
        if split.path != self.path or not split.query or self.returned.is_set():
            return False
        self.target = target
        self.returned.set()
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that breaks."""


class _CallbackHandler(BaseHTTPRequestHandler):
    """Answers one request, and writes no log: the target holds the code."""

    timeout = _HEAD_SECONDS
    server: Any  # a `_CallbackServer`

    def do_GET(self) -> None:
        """Answer with a page that says nothing of the outcome."""
        taken = self.server.take(self.path)
        body = _PAGE.encode() if taken else b""
        self.send_response(200 if taken else 404)
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
        """Name no software."""
        return "callback"


class Paste:
    """A user without a browser on this machine, who copies the URL there and the return back.

    Args:
        redirect_uri: Where the browser is sent in the end; nothing needs to be there.
        show: Shows the URL to the user.
        read: Gives the URL that the user was sent to in the end; runs in a thread.
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
        self._show(f"Open this URL, and paste the one that you are sent to:\n{url}")
        return (await to_thread.run_sync(self._read, abandon_on_cancel=True)).strip()


class Device:
    """Another device of the user, where a short code is typed (RFC 8628).

    Args:
        show: Shows the code; a function or a coroutine function. By default it is printed.
    """

    def __init__(self, show: Callable[[DeviceCode], Any] | None = None) -> None:
        self._show = show

    def open(self) -> AbstractAsyncContextManager[UserAgent]:
        """See `Interaction.open`: there is no browser to come back.

        Raises:
            AuthorizationError: Always.
        """
        raise AuthorizationError("`Device` has no redirect URI: use `connect`, or `Redirect`")

    async def show(self, code: DeviceCode) -> None:
        """Show the user a code."""
        if self._show is None:
            print(f"Open {code.verification_uri} and enter the code {code.user_code}")
            return
        shown = self._show(code)
        if isawaitable(shown):
            await shown


class Redirect:
    """A way to the user of one's own.

    Args:
        redirect_uri: Where the user comes back to: https, or loopback.
        visit: Sends the user to a URL and gives the one that the user comes back by.
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
            raise AuthorizationError("the user has to authorize: use `begin` and `finish`")
        returned = self._visit(url)
        return await returned if isawaitable(returned) else returned
