"""The application behind middleware: what that may do before a request is routed."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount

from mcp_protocol.server.toolkit.server import Server
from package.asgi_client import asgi
from package.server.asgi.web import Web
from package.wire import PER_REQUEST, SESSIONS

pytestmark = pytest.mark.anyio

REVISION = PER_REQUEST[-1]
SECONDS = 10
CALLER: ContextVar[str] = ContextVar("caller")


class Checking:
    """Middleware that refuses who does not say who it is, and lets the handlers know who it was."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            caller = dict(scope["headers"]).get(b"authorization")
            if caller is None:
                fields = [(b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": fields})
                await send({"type": "http.response.body", "body": b""})
                return
            CALLER.set(caller.decode())
        await self.app(scope, receive, send)


@pytest.mark.requirement("transport-security.authenticate")
@pytest.mark.parametrize("revision", [*SESSIONS, REVISION])
async def test_who_asks_can_be_checked_in_front_and_is_known_to_handlers(revision: str) -> None:
    server = Server("guarded")

    @server.tool()
    async def whoami() -> str:
        return CALLER.get()

    async with asgi(Checking(server.asgi())) as http:
        http.fields["authorization"] = "ann"
        if revision in SESSIONS:
            await http.initialize(revision)
        reply = await http.ask(revision, "tools/call", {"name": "whoami"})
        assert reply.result["content"][0]["text"] == "ann"
        http.fields["authorization"] = None
        for method in ("POST", "GET", "DELETE"):
            assert (await http.request(method, None)).status == 401
        http.fields["authorization"] = "bob"
        reply = await http.ask(revision, "tools/call", {"name": "whoami"})
        assert reply.result["content"][0]["text"] == "bob"


async def test_leaving_is_noticed_through_middleware() -> None:
    web = Web()

    async def passing(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    middleware = [Middleware(BaseHTTPMiddleware, dispatch=passing)]
    app = Starlette(routes=[Mount("/", web.server.asgi())], middleware=middleware)
    async with asgi(app) as http:
        params = {"name": "counts", "arguments": {"to": 1, "wait": True}}
        async with http.asking(REVISION, "tools/call", params, meta={"progressToken": 1}) as stream:
            await stream.message()
        with anyio.fail_after(SECONDS):
            await stream.finished.wait()
        assert (await http.ask(REVISION, "tools/list")).status == 200
