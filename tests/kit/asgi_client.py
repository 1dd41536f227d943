"""A client that calls an ASGI application in this process: each request is one call of it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, Unpack

import anyio
import anyio.abc

from kit.asgi_stream import SECONDS, App, Reply, Stream
from kit.wire import HANDSHAKE, INITIALIZED, LISTEN, encode_message, facts, initialize, request
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions

ALONE = frozenset({"shared", "sessions", "stateless", "sse_path", "events"})
"""Options of servers that have one worker in any case."""

Fields: TypeAlias = Mapping[str, str | None]

SESSION = "mcp-session-id"
"""The header field that names a session."""

SHARED: list[str] = []
"""Where `MCP_WORKERS` is set, the URL of the engine that the workers of each server share."""

WORKERS = 3
"""So many workers has a server then, and each request reaches a random one."""

JSON, SSE = "application/json", "text/event-stream"
BOTH = f"{JSON}, {SSE}"


class Http:
    """A client of one application."""

    def __init__(self, app: App, tasks: anyio.abc.TaskGroup, path: str) -> None:
        self.app = app
        self.path = path
        self.fields: dict[str, str | None] = {"host": "127.0.0.1:8000"}
        self.scope: dict[str, Any] = {}
        self.lifespans: list[Lifespan] = []
        self._tasks = tasks

    def another(self) -> Http:
        """Another client of the same application, that knows nothing of this one."""
        return Http(self.app, self._tasks, self.path)

    async def shut_down(self) -> None:
        """Have the application's lifespan end now."""
        assert self.lifespans
        async with anyio.create_task_group() as tasks:
            for each in self.lifespans:
                tasks.start_soon(each.end)

    async def post(self, message: Any, path: str | None = None, **fields: str | None) -> Reply:
        """POST a message: JSON, or bytes as they are. A field that is `None` is left out."""
        return await self.request("POST", message, path, **fields)

    async def get(self, path: str | None = None, **fields: str | None) -> Reply:
        """GET, and read to the end."""
        return await self.request("GET", None, path, **fields)

    async def delete(self, **fields: str | None) -> Reply:
        """DELETE."""
        return await self.request("DELETE", **fields)

    async def request(
        self, method: str, message: Any = None, path: str | None = None, **fields: str | None
    ) -> Reply:
        """Make a request, and read its answer to the end."""
        async with self.stream(method, message, path, fields=fields) as stream:
            await stream.end()
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()
            return Reply(stream)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        message: Any = None,
        path: str | None = None,
        *,
        parts: Sequence[bytes] | None = None,  # the body in pieces, instead of a message
        unfinished: bool = False,  # the rest of the body never comes
        begun: bool = True,  # wait for status and header fields
        fields: Mapping[str, str | None] = {},  # `None` leaves one out that `Http.fields` has
    ) -> AsyncIterator[Stream]:
        """Make a request, and read its answer as it comes; disconnects at the end of the block."""
        if parts is None:
            parts = [b"" if message is None else encode_message(message)]
        stream = Stream(parts, unfinished)
        self._tasks.start_soon(stream.run, self.app, self.scope_of(method, path, fields))
        try:
            if begun and not unfinished:
                await stream.started()
            yield stream
        finally:
            stream.disconnect()
        if stream.failure is not None:
            raise stream.failure

    async def initialize(
        self, revision: str, capabilities: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Open a session, which all later requests belong to; gives its result."""
        names = facts(revision).headers
        reply = await self.post(initialize(revision, capabilities))
        assert reply.status == 200, reply.body
        result: dict[str, Any] = reply.result
        self.fields[SESSION] = reply.fields.get(SESSION)
        if names.protocol_version is not None:
            self.fields[names.protocol_version.lower()] = result["protocolVersion"]
        assert (await self.post(INITIALIZED)).status == 202
        return result

    async def begin(self, revision: str, capabilities: Mapping[str, Any] | None = None) -> None:
        """Open a session, in revisions that have sessions."""
        if revision in HANDSHAKE:
            await self.initialize(revision, capabilities)

    async def ask(
        self, revision: str, method: str, params: Any = None, *, id: int | str = 1, **how: Any
    ) -> Reply:
        """POST a request of a revision, with the header fields that it has there."""
        message = request(revision, method, params, id=id, **how)
        return await self.post(message, **fields_of(revision, message))

    @asynccontextmanager
    async def asking(
        self,
        revision: str,
        method: str,
        params: Any = None,
        *,
        id: int | str = 1,
        begun: bool = True,
        **how: Any,
    ) -> AsyncIterator[Stream]:
        """Ask, and read the answer while it arrives; see `stream`."""
        message = request(revision, method, params, id=id, **how)
        fields = fields_of(revision, message)
        async with self.stream("POST", message, begun=begun, fields=fields) as stream:
            yield stream

    def listening(self, revision: str) -> AbstractAsyncContextManager[Stream]:
        """Open the stream of changes of tools: by GET in a session, else by a subscription."""
        if revision in HANDSHAKE:
            return self.stream("GET")
        return self.asking(revision, LISTEN, {"notifications": {"toolsListChanged": True}})

    def scope_of(self, method: str, path: str | None, fields: Fields) -> dict[str, Any]:
        """The ASGI connection scope of a request."""
        place, _, query = (self.path if path is None else path).partition("?")
        default: dict[str, str | None] = {"accept": BOTH}
        if method == "POST":
            default["content-type"] = JSON
        elif method == "GET":
            default["accept"] = SSE
        given = {name.lower().replace("_", "-"): value for name, value in fields.items()}
        merged = {**default, **self.fields, **given}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in merged.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            **self.scope,
        }


NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def fields_of(revision: str, message: Mapping[str, Any]) -> dict[str, str | None]:
    """The header fields that a POST of a revision without sessions has; none in the others."""
    if revision in HANDSHAKE:
        return {}
    names = facts(revision).headers
    assert names.protocol_version is not None
    assert names.method is not None
    assert names.name is not None
    fields: dict[str, str | None] = {
        names.protocol_version: revision,
        names.method: message["method"],
    }
    member = NAMED_BY.get(message["method"])
    if member is not None:
        fields[names.name] = message["params"][member]
    return fields


@asynccontextmanager
async def asgi(
    server: Any, *, path: str = "/mcp", lifespan: bool = True, **options: Unpack[ServerHttpOptions]
) -> AsyncIterator[Http]:
    """Run an application, or a server as one; gives a client of it.

    async with asgi(server) as http:
        reply = await http.post({"jsonrpc": "2.0", ...}, **{"MCP-Protocol-Version": "2025-06-18"})
        async with http.stream("GET") as stream:
            message = await stream.message()
    """
    if SHARED and hasattr(server, "asgi") and lifespan and not ALONE & options.keys():
        async with _several(server, path, options) as http:
            yield http
        return
    app = server.asgi(path, **options) if hasattr(server, "asgi") else server
    async with anyio.create_task_group() as tasks:
        http = Http(app, tasks, path)
        if not lifespan:
            yield http
        else:
            async with _lifespan_of(app, tasks) as only:
                http.lifespans = [only]
                yield http
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def speaking(
    server: Any,
    revision: str,
    capabilities: Mapping[str, Any] | None = None,
    **options: Unpack[ServerHttpOptions],
) -> AsyncIterator[Http]:
    """A client of a server as `asgi` runs it, with a session open in revisions that have them."""
    async with asgi(server, **options) as http:
        await http.begin(revision, capabilities)
        yield http


@asynccontextmanager
async def _lifespan_of(app: App, tasks: anyio.abc.TaskGroup) -> AsyncIterator[Lifespan]:
    """Run the lifespan of an application."""
    lifespan = Lifespan(app)
    tasks.start_soon(lifespan.run)
    await lifespan.begin()
    try:
        yield lifespan
    finally:
        await lifespan.end()


@asynccontextmanager
async def _several(server: Any, path: str, options: ServerHttpOptions) -> AsyncIterator[Http]:
    """Run workers of a server that share an engine, and send each request to a random one."""
    apps = [server.asgi(path, **{**options, "shared": SHARED[0]}) for _ in range(WORKERS)]
    choose = random.Random(7).choice

    async def any_of_them(scope: Any, receive: Any, send: Any) -> None:
        await choose(apps)(scope, receive, send)

    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        http = Http(any_of_them, tasks, path)
        http.lifespans = [await stack.enter_async_context(_lifespan_of(app, tasks)) for app in apps]
        with anyio.fail_after(SECONDS):
            while not all(is_reading(app) for app in apps):
                await anyio.sleep(0.001)
        yield http
        await stack.aclose()
        tasks.cancel_scope.cancel()


def is_reading(app: Any) -> bool:
    """Whether a worker hears of changes."""
    [state] = app._states.values()
    reads: bool = state.worker.is_reading
    return reads


class Lifespan:
    """The lifespan of an application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._asked, self._done = anyio.Event(), anyio.Event()
        self._to_app = deque(["lifespan.startup"])
        self._failure: str | None = None
        self._over = False

    async def run(self) -> None:
        """Have the application run it."""
        try:
            scope = {"type": "lifespan", "asgi": {"version": "3.0"}}
            await self._app(scope, self._receive, self._send)
        finally:
            self._over = True
            self._done.set()

    async def begin(self) -> None:
        """Wait until it has begun."""
        with anyio.fail_after(SECONDS):
            await self._done.wait()
        assert self._failure is None, self._failure

    async def end(self) -> None:
        """Have it end, with whatever the application has open. Idempotent."""
        if not self._over:
            self._over = True
            self._done = anyio.Event()
            self._to_app.append("lifespan.shutdown")
            self._asked.set()
            with anyio.fail_after(SECONDS, shield=True):
                await self._done.wait()
            assert self._failure is None, self._failure

    async def _receive(self) -> Mapping[str, Any]:
        while not self._to_app:
            await self._asked.wait()
        return {"type": self._to_app.popleft()}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"].endswith(".failed"):
            self._failure = message["message"]
        self._done.set()
