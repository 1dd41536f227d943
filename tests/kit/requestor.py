"""Peers of clients and servers with tasks on the wire, in memory and over HTTP; such a server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import mcpgen_runtime
from kit.asgi_client import Http, asgi
from kit.asgi_stream import SECONDS, Stream
from kit.wire import INITIALIZED, encode_message, initialize, opening_result
from mcpgen_runtime import (
    Context,
    OutgoingMessage,
    Principal,
    Server,
    StaticTokens,
    Tasks,
    connect,
)
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.runtime.request_context import ANONYMOUS, PRINCIPAL
from mcpgen_runtime.transports.memory import memory_pair

REVISION = "2025-11-25"
requirement = partial(pytest.mark.requirement, revisions=(REVISION,))
"""Names the ledger entries of that revision that a test proves."""

RELATED = "io.modelcontextprotocol/related-task"
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


@dataclass
class Name:
    name: str


class Work:
    """A server with tools that may be tasks, and what its tests steer and see of them."""

    def __init__(self, root: Any = mcpgen_runtime, **options: Any) -> None:
        self.server: Server = root.Server("work")
        self.tasks: Tasks = root.Tasks(self.server, **{"poll_interval": 0.2, **options})
        self.go = anyio.Event()
        self.ended = anyio.Event()

        async def waits() -> str:
            """Ends when the test says so."""
            try:
                await self.go.wait()
                return "done"
            finally:
                self.ended.set()

        async def stays() -> str:
            """Ends as it likes, cancelled or not."""
            with anyio.CancelScope(shield=True):
                await self.go.wait()
            self.ended.set()
            return "done"

        async def fails() -> str:
            raise root.InvalidParamsError("can't be done", code=1234, data={"why": 1})

        async def reports_an_error() -> str:
            raise root.ToolError("out of order")

        async def asks(ctx: Context) -> str:
            first = await ctx.elicit("Who?", Name)
            second = await ctx.elicit("And who?", Name)
            contents = [each.content.name for each in (first, second) if each.content]
            return " and ".join(contents)

        async def tells(ctx: Context) -> str:
            await self.go.wait()
            await ctx.progress(1, 2, "half")
            await ctx.progress(0.5)
            await ctx.info("hello")
            await self.tasks.report(ctx, "nearly")
            return "done"

        async def needs_a_task() -> str:
            return "done"

        async def plain() -> str:
            return "plain"

        tools: tuple[Any, ...] = (waits, stays, fails, reports_an_error, asks, tells)
        for tool in tools:
            if "ctx" in tool.__annotations__:
                tool.__annotations__["ctx"] = root.Context
            self.server.tool(runner=self.tasks)(tool)
        self.server.tool(runner=self.tasks.required)(needs_a_task)
        self.server.tool(plain)


class Requestor:
    """A client or a server on the wire."""

    def __init__(self, post: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        self.capabilities: dict[str, Any] = {}
        self.inbox: list[dict[str, Any]] = []
        self._post = post
        self._news = anyio.Event()
        self._last = 0

    def take(self, message: dict[str, Any]) -> None:
        """Take a message of the server, unless it is an event without data."""
        if message:
            self.inbox.append(message)
            self._news.set()

    async def until(self, wanted: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted, once it has come."""
        with anyio.fail_after(10):
            while True:
                for message in self.inbox:
                    if wanted(message):
                        self.inbox.remove(message)
                        return message
                self._news = anyio.Event()
                await self._news.wait()

    async def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request, and give its id."""
        self._last += 1
        await self._post({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    async def response(self, identifier: int) -> dict[str, Any]:
        """The response to a request."""
        return await self.until(lambda each: each.get("id") == identifier and "method" not in each)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a new request."""
        return await self.response(await self.begin(method, params))

    async def result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a new request."""
        response = await self.ask(method, params)
        assert "result" in response, response
        result: dict[str, Any] = response["result"]
        return result

    async def code(self, method: str, params: Mapping[str, Any]) -> int:
        """The code of the error that answers a new request."""
        response = await self.ask(method, params)
        assert "error" in response, response
        code: int = response["error"]["code"]
        return code

    async def called(self, method: str) -> dict[str, Any]:
        """The next request or notification of a method."""
        return await self.until(lambda each: each.get("method") == method)

    async def answer(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Answer a request of the server."""
        await self._post({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message as it is."""
        await self._post(message)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self._post({"jsonrpc": "2.0", "method": method, "params": params})

    async def start(self, tool: str, task: Any = None, **meta: Any) -> dict[str, Any]:
        """The new task of a call."""
        params: dict[str, Any] = {"name": tool, "arguments": {}, "task": task or {}}
        if meta:
            params["_meta"] = meta
        task = (await self.result("tools/call", params))["task"]
        assert isinstance(task, dict)
        return task

    async def reaches(self, task_id: str, status: str) -> dict[str, Any]:
        """The task, once it has a status."""
        with anyio.fail_after(10):
            while True:
                task = await self.result("tasks/get", {"taskId": task_id})
                if task["status"] == status:
                    return task
                assert task["status"] in ("working", "input_required")
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def requestor(
    transport: str,
    server: Server,
    subject: str | None = None,
    revision: str = REVISION,
    capabilities: Mapping[str, Any] = FORMS,
) -> AsyncIterator[Requestor]:
    """A session with a server."""
    opened = _over_http if transport == "http" else _in_memory
    async with opened(server, subject, revision, capabilities) as client:
        yield client


@asynccontextmanager
async def _in_memory(
    server: Server, subject: str | None, revision: str, capabilities: Mapping[str, Any]
) -> AsyncIterator[Requestor]:
    near, far = memory_pair()

    async def post(message: Any) -> None:
        await near.send(OutgoingMessage(encode_message(message)))

    async def read() -> None:
        while True:
            client.take(json.loads(await near.receive()))

    client = Requestor(post)
    async with anyio.create_task_group() as tasks:
        token = PRINCIPAL.set(Principal(subject) if subject else ANONYMOUS)
        tasks.start_soon(server.serve, far)
        PRINCIPAL.reset(token)
        tasks.start_soon(read)
        await post(initialize(revision, capabilities))
        opened = await client.until(lambda message: message.get("id") == "init")
        client.capabilities = opened["result"]["capabilities"]
        await post(INITIALIZED)
        yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _over_http(
    server: Server, subject: str | None, revision: str, capabilities: Mapping[str, Any]
) -> AsyncIterator[Requestor]:
    auth: Any = StaticTokens({f"token-{subject}": subject}) if subject else None
    async with asgi(server, auth=auth) as http:
        http.fields["authorization"] = f"Bearer token-{subject}" if subject else None
        async with connect_requestor(http, revision, capabilities) as client:
            yield client


@asynccontextmanager
async def connect_requestor(
    http: Http, revision: str = REVISION, capabilities: Mapping[str, Any] = FORMS
) -> AsyncIterator[Requestor]:
    """A session over a client, with a stream that it holds open by GET."""
    async with anyio.create_task_group() as tasks:

        async def post(message: Any) -> None:
            tasks.start_soon(send, "POST", message)
            await anyio.lowlevel.checkpoint()

        async def send(method: str, message: Any) -> None:
            async with http.stream(method, message) as stream:
                if stream.fields.get("content-type") != "text/event-stream":
                    await stream.end()
                    if stream.raw:
                        client.take(json.loads(stream.raw))
                    return
                with suppress(EOFError):
                    while True:
                        client.take(json.loads(await _data(stream) or b"{}"))

        client = Requestor(post)
        client.capabilities = (await http.initialize(revision, capabilities))["capabilities"]
        tasks.start_soon(send, "GET", None)
        yield client
        tasks.cancel_scope.cancel()


async def _data(stream: Stream) -> bytes:
    """The data of the next event, however long it takes."""
    while True:
        with anyio.move_on_after(SECONDS / 2):
            return (await stream.event()).data


@asynccontextmanager
async def asking_server(
    handlers: Any, revision: str = REVISION, **options: Any
) -> AsyncIterator[Requestor]:
    """A server on the wire, in a session with a client in memory."""
    near, far = memory_pair()

    async def post(message: Any) -> None:
        await far.send(OutgoingMessage(encode_message(message)))

    async def read() -> None:
        opening = json.loads(await far.receive())
        server.capabilities = opening["params"]["capabilities"]
        result = opening_result(revision, {})
        await post({"jsonrpc": "2.0", "id": opening["id"], "result": result})
        with suppress(EndOfChannel):
            while True:
                server.take(json.loads(await far.receive()))

    server = Requestor(post)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        async with connect(near, revision=revision, handlers=handlers, **options):
            await server.called("notifications/initialized")
            yield server
