"""The application within others, behind middleware, and whoever runs its lifespan, or nobody."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import anyio
import anyio.to_thread
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from kit.asgi_client import SESSION, Http, asgi, fields_of
from kit.live import server_with
from kit.processes import PACKAGE_ROOT
from kit.web import Web
from kit.wire import HANDSHAKE, PER_REQUEST, SESSIONS, initialize, request
from mcpgen_runtime import Context, Server

pytestmark = pytest.mark.processes

REVISION = PER_REQUEST[-1]
STATE = {"name": "state"}
CALLER: ContextVar[str] = ContextVar("caller")


class Living:
    """A server with a lifespan."""

    def __init__(self) -> None:
        self.entered = self.left = 0
        self.failing = False
        self.server = Server("living", lifespan=self.lifespan)
        self.server.tool()(self.state)
        self.app = self.server.asgi()

    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[str]:
        if self.failing:
            raise RuntimeError("no database")
        self.entered += 1
        try:
            yield f"life {self.entered}"
        finally:
            self.left += 1

    async def state(self, ctx: Context) -> str:
        return str(ctx.state)


async def state_of(http: Http, revision: str = REVISION) -> str:
    return (await http.ask(revision, "tools/call", STATE)).text


@pytest.mark.parametrize("run", [True, False], ids=["lifespan is run", "nobody runs it"])
async def test_the_lifespan_is_entered_once_whoever_runs_it(run: bool) -> None:
    living = Living()
    for life in (1, 2):  # an application can be started again
        async with asgi(living.app, lifespan=run) as http:
            assert living.entered == (life if run else life - 1)
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(state_of, http)
            for revision in SESSIONS:
                client = http.another()
                await client.initialize(revision)
                assert await state_of(client, revision) == f"life {life}"
            assert (living.entered, living.left) == (life, life - 1)
            if not run:
                await living.app.end()
        assert (living.entered, living.left) == (life, life)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_one_application_serves_on_several_loops_in_turn(backend: str) -> None:
    living = Living()
    lost: list[int] = []

    async def run() -> None:
        async with asgi(living.app, lifespan=False) as http:
            assert await state_of(http) == f"life {living.entered}"
            http.fields[SESSION] = session
            lost.append((await http.ask(SESSIONS[-1], "tools/list")).status)
            del http.fields[SESSION]
            await http.initialize(SESSIONS[-1])
            sessions.append(str(http.fields[SESSION]))

    sessions = ["of no server"]
    for _ in range(3):
        session = sessions[-1]
        anyio.run(run, backend=backend)
        assert living.left == living.entered
    assert living.entered == 3
    assert lost == [404, 404, 404]


async def test_a_lifespan_that_fails_is_retried_with_the_next_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    living = Living()
    living.failing = True
    async with asgi(living.app, lifespan=False) as http:
        for _ in range(2):
            reply = await http.ask(REVISION, "tools/call", STATE)
            assert (reply.status, reply.error["code"]) == (503, -32603)
            assert "database" not in reply.error["message"]
        living.failing = False
        assert await state_of(http) == "life 1"
        await living.app.end()
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    causes = [str(record.exc_info[1]) for record in failures if record.exc_info]
    assert causes == ["no database"] * 2


@pytest.mark.parametrize(
    ("path", "root", "served", "others"),
    [
        ("/mcp", "", ["/mcp", "/mcp/"], ["/", "", "/mcp/x", "/mcpx", "/MCP", "//mcp"]),
        ("/mcp/", "", ["/mcp", "/mcp/"], ["/"]),
        ("/", "", ["/", ""], ["/mcp"]),
        ("/a/b", "", ["/a/b", "/a/b/"], ["/a", "/b"]),
        # A proxy may have taken the prefix away.
        ("/mcp", "/api", ["/api/mcp", "/mcp"], ["/api", "/api/", "/apis", ""]),
        ("/mcp", "/api/", ["/api/mcp"], []),
        ("/mcp", "/ap", [], ["/api/mcp"]),
        ("/mcp", "/mcp", ["/mcp/mcp"], ["/mcp", "/mcpmcp"]),
        ("/", "/api", ["/api", "/api/", ""], []),
    ],
)
async def test_the_endpoint_is_where_it_is_said_to_be(
    path: str, root: str, served: list[str], others: list[str]
) -> None:
    message = request(REVISION, "tools/list")
    fields = fields_of(REVISION, message)
    async with asgi(Web().server, path=path) as http:
        http.scope["root_path"] = root
        for each in served:
            assert (await http.post(message, each, **fields)).status == 200
        for each in others:
            reply = await http.post(message, each, **fields)
            assert (reply.status, path in reply.error["message"]) == (404, True)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda app: Starlette(routes=[Route("/mcp", app)]), "/mcp"),
        (
            lambda app: Starlette(routes=[Mount("/a", Starlette(routes=[Mount("/b", app)]))]),
            "/a/b/mcp",
        ),
        (lambda app: FastAPI(routes=[Mount("/api", app)]), "/api/mcp"),
    ],
)
async def test_it_works_in_an_application_that_runs_no_lifespan_of_it(make: Any, path: str) -> None:
    async with asgi(make(Living().app), path=path) as http:
        assert await state_of(http) == "life 1"
        for revision in SESSIONS:
            client = http.another()
            await client.initialize(revision)
            assert await state_of(client, revision) == "life 1"
            async with client.stream("GET") as stream:
                assert stream.status == 200


@pytest.mark.parametrize("revision", sorted(set(HANDSHAKE) - set(SESSIONS)))
async def test_a_package_of_the_older_transport_has_its_endpoints(revision: str) -> None:
    app = Web().only(revision)
    assert app.endpoint_path == "/sse"
    async with asgi(app, path="/sse") as http, http.stream("GET") as stream:
        place = urljoin("/sse", (await stream.event()).data.decode())
        assert (await http.post(initialize(revision), place)).status == 202
        assert (await stream.message())["result"]["protocolVersion"] == revision
        gone = await http.post(initialize(revision), "/mcp")
        assert (gone.status, "/sse" in gone.error["message"]) == (404, True)


@pytest.mark.parametrize(
    ("failing", "events"),
    [
        ("", ["lifespan.startup.complete", "lifespan.shutdown.complete"]),
        ("entry", ["lifespan.startup.failed"]),
        ("exit", ["lifespan.startup.complete", "lifespan.shutdown.failed"]),
    ],
)
async def test_a_host_is_told_how_the_lifespan_begins_and_ends(
    failing: str, events: list[str]
) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if failing == "entry":
            raise RuntimeError("no database")
        yield
        if failing == "exit":
            raise RuntimeError("no database")

    received = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": next(received)}

    async def send(message: Any) -> None:
        sent.append(message)

    app = Server("living", lifespan=lifespan).asgi()
    await app({"type": "lifespan"}, receive, send)
    assert [each["type"] for each in sent] == events
    assert ["no database" in each["message"] for each in sent if "message" in each] == [True] * (
        failing != ""
    )
    assert [*received] == (["lifespan.shutdown"] if failing == "entry" else [])


def test_the_application_needs_none_of_the_packages_of_the_extra(tmp_path: Path) -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(["starlette", "uvicorn", "httpx2", "httptools"]))
import asyncio
from mcpgen_runtime.server.chosen import Server
server = Server("alone")
app = server.asgi(sse_path="/sse")
sent = []
async def main():
    async def receive(): return {"type": "http.request", "body": b"{}"}
    async def send(message): sent.append(message)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    await app(scope, receive, send)
asyncio.run(main())
print(sent[0]["status"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE_ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.stderr, done.stdout) == ("", "400\n")


@pytest.mark.requirement("transport-security.authenticate")
@pytest.mark.parametrize("revision", [*SESSIONS, REVISION])
async def test_middleware_may_authenticate_and_handlers_know_the_user(revision: str) -> None:
    async def whoami() -> str:
        return CALLER.get()

    app = server_with(whoami).asgi()

    async def check(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            caller = dict(scope["headers"]).get(b"authorization")
            if caller is None:
                await PlainTextResponse("who are you?", 401)(scope, receive, send)
                return
            CALLER.set(caller.decode())
        await app(scope, receive, send)

    async with asgi(check) as http:
        for name in ("ann", "bob"):
            http.fields["authorization"] = name
            if name == "ann":
                await http.begin(revision)
            assert (await http.ask(revision, "tools/call", {"name": "whoami"})).text == name
            http.fields["authorization"] = None
            for method in ("POST", "GET", "DELETE"):
                assert (await http.request(method, None)).status == 401


async def test_web_sockets_are_turned_away() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing more is wanted of it")

    await Web().server.asgi()({"type": "websocket", "path": "/mcp"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1003}]


def test_changes_are_announced_though_an_event_loop_is_gone() -> None:
    web = Web()
    application = web.server.asgi()

    async def leave_open() -> None:
        async with asgi(application, lifespan=False) as http:
            await http.initialize(SESSIONS[-1])

    async def run() -> None:
        async with asgi(application) as http, http.listening(REVISION) as stream:
            await stream.message()
            web.server.remove_tool("logs")
            assert (await stream.message())["method"] == "notifications/tools/list_changed"

    gone = threading.Thread(target=anyio.run, args=(leave_open,))
    gone.start()
    gone.join()
    anyio.run(run)
    web.server.remove_tool("counts")
