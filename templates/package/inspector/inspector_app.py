"""The page of the inspector as an ASGI application, and its server.

    GET  /?token=...        the page
    GET  /sandbox/KEY       the sandbox of a user interface, at localhost: see `app_sandbox`
    GET  /events?after=N    the events after a number, as JSON; waits for an event
    GET  /trace             the messages of all sessions so far, as a trace: see `runtime.trace`
    POST /actions/NAME      runs an action of the page; returns {"result": ...} or {"error": ...}

The application controls the inspected server with the rights of the user. So it listens on loopback
only, and every request carries a secret token: the page in its URL, its requests in a header field,
which pages of other origins can't set. `Host` and `Origin` must be those of the application. The
policy of the page allows only its own script, and no text of a server as HTML.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import anyio
import msgspec

from .._wire import encode, is_object
from ..client import command_line
from ..client.application import Handlers
from ..client.base import ClientBase
from ..errors import McpError, RemoteError
from ..runtime.command_table import DONE
from ..runtime.task_scope import TaskScope
from ..server.asgi import uvicorn_adapter
from ..server.asgi.host_origin import HostOriginValidator
from ..server.asgi.http_response import (
    HttpResponse,
    Receive,
    Refused,
    Scope,
    Send,
    not_allowed,
    refusal,
)
from ..server.asgi.request import Disconnected, HttpRequest, RequestBodies, check_body
from ..server.asgi.settings import HttpSettings
from .app_sandbox import PATH as SANDBOXES
from .app_sandbox import sandbox_page
from .inspector_session import CAPABILITIES, ActionError, InspectorSession

ADDRESS = ("127.0.0.1", 0)
"""Loopback, at any free port."""

_POLL_SECONDS = 25.0  # that a request for events waits
_DRAIN_SECONDS = 0.5
_NONCE = "{{nonce}}"
_ACTIONS = "/actions/"

_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'; "
    "frame-src {sandboxes}; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class InspectorApplication:
    """Serves the page, and runs its actions in a session.

    Args:
        session: The session.

    Attributes:
        settings: The settings of HTTP, for `uvicorn_adapter`.
    """

    def __init__(self, session: InspectorSession) -> None:
        self.settings = HttpSettings()
        self._session = session
        self._token = secrets.token_urlsafe(24)
        self._bodies = RequestBodies(self.settings.limits)
        self._background: TaskScope | None = None
        self._validator: HostOriginValidator | None = None

    @property
    def endpoint_path(self) -> str:
        """The path of the page, with the token."""
        return f"/?token={self._token}"

    def allow_hosts(self, names: Collection[str]) -> None:
        """Do nothing: only the host of the address is allowed."""

    async def start(self) -> None:
        """Start to open the session."""
        self._background = TaskScope(nullcontext, self._session.events.close, self._session.run)
        await self._background.start()

    def start_drain(self) -> None:
        """Finish the requests that wait for events."""
        self._session.events.close()

    async def end(self) -> None:
        """Close the session."""
        if self._background is not None:
            await self._background.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        request = HttpRequest(scope)
        try:
            await self._serve(request, receive, send)
        except Refused as refused:
            await self._bodies.respond(refused, request, receive, send)

    async def _serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        refused = self._refuse(request)
        if refused is not None:
            raise Refused(refused, "unread")
        if request.path.startswith(_ACTIONS):
            with suppress(Disconnected):
                await self._act(request, receive, send)
        elif request.path == "/events":
            query = parse_qs(request.query.decode("latin-1"))
            after = query.get("after", ["0"])[0]
            number = int(after) if after.isdecimal() and len(after) < 16 else 0
            events = await self._session.events.after(number, _POLL_SECONDS)
            await HttpResponse(200, events, _HEADERS).send(send)
        elif request.path == "/trace":
            await HttpResponse(200, self._session.events.trace(), _HEADERS).send(send)
        else:
            await self._send_page(request, send)

    async def _send_page(self, request: HttpRequest, send: Send) -> None:
        """Send the page or a sandbox, with a policy that allows only its own code."""
        host, port = request.server or ("127.0.0.1", None)
        own = f"http://{host}:{port}"
        fields = self._session.sandbox.fields(request.path, own)
        if fields is None:
            nonce = secrets.token_urlsafe(18)
            text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
            policy = _POLICY.format(nonce=nonce, sandboxes=f"http://localhost:{port}")
            fields = {"Content-Security-Policy": policy}
            body = text.replace(_NONCE, nonce).encode()
        else:
            body = sandbox_page(own).encode()
        headers = {
            **_HEADERS,
            **fields,
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": f"{len(body)}",
        }
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    def _refuse(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a request that does not come from the page; `None` to accept it."""
        if request.path.startswith(SANDBOXES):
            return self._refuse_sandbox(request)
        if self._validator is None:
            host, port = request.server or ("127.0.0.1", None)
            own = f"{host}:{port}"
            self._validator = HostOriginValidator([own], [f"http://{own}"], 403)
        self._validator.check(request)
        is_page, is_action = request.path == "/", request.path.startswith(_ACTIONS)
        if not is_page and not is_action and request.path not in ("/events", "/trace"):
            return refusal(404, "there is no such page")
        if is_page:
            tokens = parse_qs(request.query.decode("latin-1")).get("token", [""])
            token = tokens[0]
        else:
            token = (request.field("Authorization") or "").removeprefix("Bearer ")
        if not compare_digest(token.encode(), self._token.encode()):
            return refusal(403, "expected the token of the URL that `inspect --web` printed")
        if request.method != ("POST" if is_action else "GET"):
            return not_allowed("POST" if is_action else "GET")
        if is_action:
            check_body(request, self.settings.limits)
        return None

    def _refuse_sandbox(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a request for a sandbox, at its own origin; `None` to accept it."""
        _, port = request.server or ("", None)
        if request.field("Host") != f"localhost:{port}":
            return refusal(403, "expected the host localhost")
        if request.method != "GET":
            return not_allowed("GET")
        if self._session.sandbox.fields(request.path, "") is None:
            return refusal(404, "there is no such sandbox")
        return None

    async def _act(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Run an action of the page; cancel the action if the page disconnects."""
        body = await self._bodies.read(receive)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                answer = await self._answer(request.path.removeprefix(_ACTIONS), body)
                await HttpResponse(200, encode(answer), _HEADERS).send(send)
                tasks.cancel_scope.cancel()
        finally:
            self._bodies.release(body)

    async def _answer(self, name: str, body: bytes) -> Mapping[str, Any]:
        try:
            members = msgspec.json.decode(body)
            if not is_object(members):
                raise ActionError("expected a JSON object")
            return {"result": await self._session.act(name, members)}
        except RemoteError as error:
            return {"error": {"text": str(error), "code": error.code, "data": error.data}}
        except (ActionError, McpError, msgspec.DecodeError, RecursionError) as error:
            return {"error": {"text": str(error).encode(errors="replace").decode()}}


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel a scope when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def run(chosen: argparse.Namespace) -> int:
    """Serve the page for a target until SIGINT or SIGTERM; print its URL on standard error.

    Args:
        chosen: The parsed command line of `inspect`.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ListenFailedError: There is no free port.
    """

    def open_client(
        revision: str | None, handlers: Handlers
    ) -> AbstractAsyncContextManager[ClientBase]:
        return command_line.open_target(
            chosen, revision, handlers=handlers, capabilities=CAPABILITIES, cache=False, extra=True
        )

    _, revisions = chosen.package.client()
    session = InspectorSession(open_client, chosen.target, revisions, chosen.revision)

    def show(url: str) -> None:
        print(f"serving at {url}", file=sys.stderr, flush=True)

    uvicorn_adapter.run(InspectorApplication(session), ADDRESS, _DRAIN_SECONDS, show)
    return DONE
