"""Calls as hosts make them: each has its own context, is made once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import anyio
import anyio.lowlevel
import msgspec
import pytest

from mcpgen_runtime import Context, Server, ToolError
from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.runtime.peer import Peer
from mcpgen_runtime.runtime.request_context import NETWORK
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import SESSION, Http, asgi, fields_of
from package.client.simulation import ASYNCIO
from package.server.auth.guarded import challenge_in, protected_settings
from package.server.auth.issuer import bearer, token_of
from package.server.varied_tools import ADD, varied_server
from package.wire import HANDSHAKE, PER_REQUEST, STREAMABLE, encode_message, request

pytestmark = pytest.mark.processes


def adding_server() -> Server:
    server = Server("adds")

    @server.tool()
    async def add(a: int, b: int) -> str:
        return str(a + b)

    return server


async def prepare_call(http: Http, revision: str, **arguments: Any) -> dict[str, Any]:
    """A call of `add`, after the client has called it before."""
    if revision in HANDSHAKE and SESSION not in http.fields:
        await http.initialize(revision)
    message = request(revision, "tools/call", {"name": "add", "arguments": arguments})
    await http.post(message, **fields_of(revision, message))
    return message


async def text_of(http: Http, revision: str, message: dict[str, Any]) -> Any:
    reply = await http.post(message, **fields_of(revision, message))
    if "error" in reply.json:
        return reply.error["message"]
    return reply.result["content"][0]["text"]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_refused_head_is_refused_after_others_too(revision: str) -> None:
    async with asgi(adding_server()) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        good = fields_of(revision, message)
        bad = {
            **dict.fromkeys(("host", "origin"), "http://elsewhere.example"),
            "content-type": "text/plain",
            "accept": "text/plain",
            "content-encoding": "gzip",
        }
        for name, value in bad.items():
            assert (await http.post(message, **good)).status == 200
            assert (await http.post(message, **{**good, name: value})).status >= 400, name


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_each_tool_is_called_as_it_is_registered_now(revision: str) -> None:
    server = adding_server()
    async with asgi(server) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        assert await text_of(http, revision, message) == "3"
        server.remove_tool("add")
        assert "unknown tool" in await text_of(http, revision, message)

        @server.tool(name="add")
        async def multiply(a: float, b: float) -> str:
            return str(a * b)

        for _ in range(2):
            assert await text_of(http, revision, message) == "2.0"
        server.disable("add")
        assert "unknown tool" in await text_of(http, revision, message)


Level = Literal["low", "high"]
TEXTS = ["plain", "null", "100 % of %(id)b", 'quotes "', "\u00e9\u2028", "", "x" * 100_000]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_texts_of_every_kind_arrive_as_they_are(revision: str) -> None:
    server = Server("echo")

    @server.tool()
    async def add(
        text: str,
        levels: list[Level] | None = None,
        more: dict[str, Annotated[int, msgspec.Meta(ge=1)]] | None = None,
    ) -> str:
        return f"{text}{levels or ''}{more or ''}"

    async with asgi(server) as http:
        for text in TEXTS:
            message = await prepare_call(http, revision, text=text)
            message["id"] = text[:1000]
            assert await text_of(http, revision, message) == text
        message = await prepare_call(http, revision, text="", levels=["low"], more={"a": 1})
        assert await text_of(http, revision, message) == "['low']{'a': 1}"
        message = await prepare_call(http, revision, text="", more={"a": 0})
        assert "more" in await text_of(http, revision, message)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
@pytest.mark.parametrize("error", [ToolError, InvalidParamsError, ValueError, anyio.EndOfStream])
async def test_a_function_is_called_once_however_it_ends(
    revision: str, error: type[Exception]
) -> None:
    server, calls = Server("fails"), list[str]()

    @server.tool()
    async def add(text: str, more: dict[str, int]) -> str:
        calls.append(text)
        raise error("no")

    async with asgi(server) as http:
        for text, more in (("", {}), ("[" * 500, {"a": 1}), ("x", {"_meta": 1})):
            calls.clear()
            message = await prepare_call(http, revision, text=text, more=more)
            await text_of(http, revision, message)
            assert calls == [text, text]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", STREAMABLE)
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_call_is_made_once_though_its_client_left(
    revision: str, waits: bool, is_sent: bool
) -> None:
    server, calls = Server("counts"), list[int]()

    async def add(a: int, b: int) -> str:
        calls.append(a)
        if waits:
            await anyio.lowlevel.checkpoint()
        return str(a + b)

    async def add_at_once(a: int, b: int) -> str:
        calls.append(a)
        return str(a + b)

    server.tool(name="add")(add if waits else add_at_once)
    sent = list[MutableMapping[str, Any]]()

    async def send(each: MutableMapping[str, Any]) -> None:
        if not is_sent:
            raise OSError("the client left")
        sent.append(each)

    async with asgi(server) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        calls.clear()
        scope = http.scope_of("POST", None, fields_of(revision, message))
        for arrives in (True, False):
            queue = asyncio.Queue[MutableMapping[str, Any]]()
            if arrives:
                queue.put_nowait(parts(encode_message(message))[0])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(http.app, scope, queue.get, send)
                await anyio.wait_all_tasks_blocked()
                if not arrives:
                    queue.put_nowait(parts(encode_message(message))[0])
    assert calls == [1, 1]
    assert [each["type"] for each in sent] == (
        ["http.response.start", "http.response.body"] * 2 if is_sent else []
    )


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_only_principals_with_the_scopes_are_served(revision: str) -> None:
    async with asgi(adding_server(), auth=protected_settings()) as http:
        http.fields["authorization"] = bearer(token_of())
        message = await prepare_call(http, revision, a=1, b=2)
        assert await text_of(http, revision, message) == "3"
        http.fields["authorization"] = bearer(token_of(scope="other"))
        refused = await http.post(message, **fields_of(revision, message))
        assert refused.status == 403
        assert "mcp:read" in challenge_in(refused).parameters["scope"].split()


async def post_at_once(http: Http, revision: str, message: dict[str, Any]) -> tuple[int, bytes]:
    """Post a message that has arrived with its head; the status and the body of the response."""
    queue, sent = asyncio.Queue[MutableMapping[str, Any]](), list[MutableMapping[str, Any]]()
    queue.put_nowait(parts(encode_message(message))[0])

    async def send(each: MutableMapping[str, Any]) -> None:
        sent.append(each)

    scope = http.scope_of("POST", None, fields_of(revision, message))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(http.app, scope, queue.get, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_call_that_is_there_at_once_needs_a_token_too(revision: str) -> None:
    async with asgi(adding_server(), auth=protected_settings()) as http:
        http.fields["authorization"] = bearer(token_of())
        message = await prepare_call(http, revision, a=1, b=2)
        assert (await post_at_once(http, revision, message))[0] == 200
        http.fields["authorization"] = None
        assert (await post_at_once(http, revision, message))[0] == 401


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", STREAMABLE)
@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_has_the_context_of_its_own_request(revision: str, waits: bool) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield "state"

    server = Server("tells", lifespan=lifespan)

    async def add(a: int, ctx: Context) -> str:
        if waits:
            await anyio.lowlevel.checkpoint()
        assert ctx.http_request is not None
        tenant = ctx.http_request.headers["x-tenant"]
        return f"{tenant} {ctx.http_request.client} {NETWORK.get()} {ctx.state}"

    server.tool()(add)
    async with asgi(server) as http:
        http.fields["x-tenant"] = "a"
        await prepare_call(http, revision, a=1)
        for tenant, address in (("b", "192.0.2.1"), ("c", "192.0.2.2")):
            http.fields["x-tenant"] = tenant
            http.scope["client"] = (address, 1)
            message = request(revision, "tools/call", {"name": "add", "arguments": {"a": 1}})
            network = address if revision in PER_REQUEST else "127.0.0.1"  # of the session
            expected = f"{tenant} {(address, 1)} {network} state"
            assert await text_of(http, revision, message) == expected
            assert expected.encode() in (await post_at_once(http, revision, message))[1]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("arrives", [True, False], ids=["at once", "later"])
async def test_a_call_that_its_client_cancels_is_not_made_again(
    revision: str, arrives: bool
) -> None:
    server, calls = Server("waits"), list[str]()
    is_ready = False

    @server.tool()
    async def add(a: int, b: int) -> str:
        calls.append("begun")
        try:
            if is_ready:
                await anyio.sleep_forever()
        except BaseException:
            calls.append("cancelled")
            raise
        return str(a + b)

    sent = list[MutableMapping[str, Any]]()

    async def send(each: MutableMapping[str, Any]) -> None:
        sent.append(each)

    app = server.asgi()
    async with asgi(app) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        calls.clear()
        is_ready = True
        scope = http.scope_of("POST", None, fields_of(revision, message))
        queue = asyncio.Queue[MutableMapping[str, Any]]()
        body = parts(encode_message(message))[0]
        if arrives:
            queue.put_nowait(body)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.app, scope, queue.get, send)
            await anyio.wait_all_tasks_blocked()
            if not arrives:
                queue.put_nowait(body)
                await anyio.wait_all_tasks_blocked()
            queue.put_nowait({"type": "http.disconnect"})
        assert (calls, sent) == (["begun", "cancelled"], [])
        assert app.counts["requests"] == 0


def parts(*bodies: bytes) -> list[dict[str, Any]]:
    """The messages of ASGI with which a body arrives in parts."""
    return [
        {"type": "http.request", "body": body, "more_body": at < len(bodies)}
        for at, body in enumerate(bodies, 1)
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_body_may_come_after_its_head_in_parts(revision: str) -> None:
    async with asgi(adding_server(), limits=Limits(body_seconds=0.05)) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        scope = http.scope_of("POST", None, fields_of(revision, message))
        body, sent = encode_message(message), list[MutableMapping[str, Any]]()

        async def send(each: MutableMapping[str, Any]) -> None:
            sent.append(each)

        for messages in (parts(body), parts(body[:9], body[9:]), parts(b"", body, b"")):
            queue = asyncio.Queue[MutableMapping[str, Any]]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(http.app, scope, queue.get, send)
                await anyio.wait_all_tasks_blocked()
                for each in messages:
                    queue.put_nowait(each)
                    await anyio.wait_all_tasks_blocked()
            assert b'"3"' in sent[-1]["body"]
        sent.clear()
        await http.app(scope, asyncio.Queue[MutableMapping[str, Any]]().get, send)
        assert sent[0]["status"] == 408


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_body_that_is_there_at_once_is_served(revision: str) -> None:
    async with asgi(adding_server()) as http:
        message = await prepare_call(http, revision, a=1, b=2)
        scope = http.scope_of("POST", None, fields_of(revision, message))
        sent = list[MutableMapping[str, Any]]()

        async def receive() -> MutableMapping[str, Any]:
            return parts(encode_message(message))[0]

        async def send(each: MutableMapping[str, Any]) -> None:
            sent.append(each)

        await http.app(scope, receive, send)
        assert (sent[0]["status"], b'"3"' in sent[1]["body"]) == (200, True)


IDS: list[Any] = [7, "seven", 2**100, "x" * 1024]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_response_has_the_id_of_its_request(revision: str) -> None:
    async with asgi(adding_server()) as http:
        for identifier in IDS:
            message = {**await prepare_call(http, revision, a=1, b=2), "id": identifier}
            reply = await http.post(message, **fields_of(revision, message))
            assert reply.json["id"] == identifier
        for identifier in (2**129, "x" * 1025, True):
            message = {**await prepare_call(http, revision, a=1, b=2), "id": identifier}
            reply = await http.post(message, **fields_of(revision, message))
            assert (reply.status, "error" in reply.json) == (400, True)


async def begin(http: Http, revision: str) -> None:
    if revision in HANDSHAKE:
        await http.initialize(revision)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_context_outlives_its_call_without_harm(revision: str) -> None:
    server, later = Server("late"), list[asyncio.Task[None]]()

    @server.tool()
    async def leaves(ctx: Context) -> str:
        later.append(asyncio.create_task(speak(ctx)))
        return "left"

    async def speak(ctx: Context) -> None:
        await ctx.progress(1)
        assert ctx.request_id == 1

    async with asgi(server.asgi()) as http:
        await begin(http, revision)
        message = request(revision, "tools/call", {"name": "leaves"}, meta={"progressToken": 1})
        for _ in range(3):
            reply = await http.post(message, **fields_of(revision, message))
            assert reply.result["content"][0]["text"] == "left"
            await later[-1]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_header_fields_are_compared_with_the_body(revision: str) -> None:
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        message = request(revision, "tools/call", ADD)
        fields = fields_of(revision, message)
        assert (await http.post(message, **fields)).status == 200
        for name, value in fields.items():
            if value is None or name == "mcp-session-id":
                continue
            reply = await http.post(message, **{**fields, name: "2000-01-01"})
            assert reply.status == 400, name


@pytest.mark.anyio
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_call_leaves_nothing_behind(revision: str) -> None:
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        for name in ("add", "waits", "reports"):
            arguments = ADD["arguments"] if name == "add" else {}
            message = request(revision, "tools/call", {"name": name, "arguments": arguments})
            for _ in range(2):
                await http.post(message, **fields_of(revision, message))
        sent: list[MutableMapping[str, Any]] = []

        async def send(each: MutableMapping[str, Any]) -> None:
            sent.append(each)

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": encode_message(message), "more_body": False}

        message = request(revision, "tools/call", ADD)
        scope = http.scope_of("POST", None, fields_of(revision, message))
        gc.collect()
        before = len([each for each in gc.get_objects() if type(each) is Peer])
        for _ in range(3):
            await http.app(scope, receive, send)
        gc.collect()
        assert len([each for each in gc.get_objects() if type(each) is Peer]) == before
