"""Tool calls that are served by plans, and heads of requests that were accepted before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest

from mcpgen_runtime import Context, Server, ToolError
from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.runtime.concurrency import never_suspends
from mcpgen_runtime.runtime.request_context import NETWORK
from mcpgen_runtime.server.asgi.request import (
    KEPT_BYTES,
    KEPT_HEADS,
    AcceptedHeads,
    HttpRequest,
    response_forms,
    whole_body,
)
from mcpgen_runtime.server.asgi.settings import Answers, Limits
from mcpgen_runtime.server.planned_calls import planned_calls, read_call
from package.asgi_client import SESSION, Http, asgi, fields_of
from package.client.simulation import ASYNCIO
from package.server.auth.guarded import challenge_in, protected_settings
from package.server.auth.issuer import bearer, token_of
from package.wire import HANDSHAKE, PER_REQUEST, STREAMABLE, encode_message, request


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


async def plain() -> None: ...


async def awaits() -> None:
    await anyio.lowlevel.checkpoint()


async def enters() -> None:
    async with anyio.create_task_group():
        pass


async def iterates(values: Any) -> None:
    async for _ in values:
        pass


async def yields() -> Any:
    yield 1


def returns() -> None: ...


async def defines() -> None:
    async def inside() -> None:
        await awaits()

    del inside


@pytest.mark.parametrize(
    ("function", "never"),
    [
        *((plain, True), (defines, True), (awaits, False), (enters, False), (iterates, False)),
        *((yields, False), (returns, False), (print, False), (asyncio.Event.wait, False)),
    ],
)
def test_code_says_whether_a_coroutine_may_suspend(
    function: Callable[..., Any], never: bool
) -> None:
    assert never_suspends(function) is never


def request_with(**fields: str) -> HttpRequest:
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": headers})


def test_few_heads_are_kept_whatever_clients_send() -> None:
    heads = AcceptedHeads(Limits(), "json")
    for number in range(2 * KEPT_HEADS):
        heads.add(request_with(accept=f"*/*;n={number}"))
        assert len(heads) <= KEPT_HEADS
    assert heads.find(request_with(accept=f"*/*;n={2 * KEPT_HEADS - 1}")) is True
    assert heads.find(request_with(accept="*/*;n=0")) is None


@pytest.mark.parametrize(("more", "is_kept"), [(0, True), (1, False)])
def test_a_long_head_is_not_kept(more: int, is_kept: bool) -> None:
    heads = AcceptedHeads(Limits(), "json")
    heads.add(request_with(origin="x" * (KEPT_BYTES - len("POST/mcp") + more)))
    assert len(heads) == is_kept


def test_a_head_that_comes_again_takes_no_other_place() -> None:
    heads = AcceptedHeads(Limits(), "json")
    for number in [*range(KEPT_HEADS), KEPT_HEADS - 1]:
        heads.add(request_with(accept=f"*/*;n={number}"))
    assert heads.find(request_with(accept="*/*;n=0")) is True
    heads.add(request_with(accept="another"))
    kept = [heads.find(request_with(accept=f"*/*;n={number}")) for number in (0, 1)]
    assert (kept, len(heads)) == ([None, True], KEPT_HEADS)


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({"content-length": "2000"}, True),
        ({"content-length": "2001"}, False),
        ({"content-length": "0" * 14 + "2000"}, True),
        ({"content-length": "0" * 15 + "2000"}, False),
        ({"content-length": ""}, False),
        ({"x-one": "1"}, True),
        ({"x-one": "1", "x-two": "2"}, False),
    ],
)
def test_the_limits_of_a_head_are_checked_each_time(fields: dict[str, str], is_found: bool) -> None:
    heads = AcceptedHeads(Limits(body=2000, fields=1), "json")
    heads.add(request_with())
    assert heads.find(request_with(**fields)) is (True if is_found else None)


BOTH, JSON, SSE = "application/json, text/event-stream", "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("accept", "forms"),
    [
        (None, [(False, False), (True, False), (False, True)]),
        (BOTH, [(False, False), (True, False), (False, True)]),
        ("*/*", [(False, False), (True, False), (False, True)]),
        (JSON, [(True, False)] * 3),
        ("application/*", [(True, False)] * 3),
        (SSE, [(False, True)] * 3),
        ("text/*;q=0.1", [(False, True)] * 3),
        (f"{JSON};q=0, {SSE}", [(False, True)] * 3),
        (f"{JSON};q=0.00, */*", [(False, True)] * 3),
        (f"{JSON};q=0.001, {SSE};Q=0", [(True, False)] * 3),
        (f"{JSON};v=0, {SSE}; q=0", [(True, False)] * 3),
        ("text/plain", [(True, True)] * 3),
        ("", [(True, True)] * 3),
    ],
)
def test_a_response_has_the_form_that_its_client_accepts(
    accept: str | None, forms: list[tuple[bool, bool]]
) -> None:
    """The second of each pair decides whether a plan may serve the call."""
    request = request_with(**({} if accept is None else {"accept": accept}))
    answers: list[Answers] = ["auto", "json", "sse"]
    assert [response_forms(request, each) for each in answers] == forms
    for each, (_, is_stream) in zip(answers, forms, strict=True):
        heads = AcceptedHeads(Limits(), each)
        assert heads.find(request) is None
        heads.add(request)
        assert heads.find(request) is not is_stream


def test_a_head_is_kept_without_credentials() -> None:
    heads = AcceptedHeads(Limits(), "json")
    heads.add(request_with(authorization="Bearer secret", cookie="secret"))
    assert "secret" not in repr(vars(heads))
    assert heads.find(request_with(authorization="Bearer other")) is True


@pytest.mark.parametrize(
    "fields",
    [
        *({"content-length": "5000000"}, {"content-length": "x"}, {"content-length": "9" * 30}),
        *({"origin": "http://elsewhere"}, {"content-type": "text/plain"}, {"host": "elsewhere"}),
        {f"x-{number}": "1" for number in range(200)},
    ],
)
def test_another_head_is_checked_anew(fields: dict[str, str]) -> None:
    heads = AcceptedHeads(Limits(), "json")
    heads.add(request_with())
    assert heads.find(request_with()) is True
    assert heads.find(request_with(**fields)) is None


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
async def test_a_plan_serves_only_principals_with_the_scopes_of_all(revision: str) -> None:
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
async def test_a_plan_has_the_context_of_its_own_request(revision: str, waits: bool) -> None:
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


def call_of(identifier: object = 1, length: int = 0, text: str = "", **params: Any) -> bytes:
    """The body of a call, filled up with spaces."""
    members = {"name": "a", "arguments": {"text": text}, **params}
    message = {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": members}
    return json.dumps(message).encode().ljust(length)


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        (call_of(), True),
        (call_of(_meta={}), True),
        (call_of(task={}), False),
        (call_of().replace(b"2.0", b"1.0"), False),
        (call_of().replace(b"tools/call", b"tools/list"), False),
        (call_of(length=400, text="[" * 198), True),
        (call_of(length=401, text="[" * 198), False),
        (call_of(length=401, text="[" * 197), True),
        (call_of(length=401, text="{" * 198), False),
        (call_of(2**63 - 1), True),
        (call_of(2**63), False),
        (call_of(-(2**63)), True),
        (call_of(-(2**63) - 1), False),
        (call_of("x" * 1024), True),
        (call_of("x" * 1025), False),
        (call_of(None), False),
        (call_of(1.5), False),
    ],
)
def test_a_call_is_read_in_one_pass_within_these_bounds(body: bytes, is_read: bool) -> None:
    assert (read_call(body) is not None) is is_read


def test_a_message_that_is_long_has_no_plan() -> None:
    metadata = SimpleNamespace(revision="one")
    connection = SimpleNamespace(is_open=lambda _: False, repeated_metadata=lambda _: metadata)
    peer: Any = SimpleNamespace(connection=connection)
    sought: list[tuple[Any, str]] = []
    read = planned_calls(lambda *sought_plan: sought.append(sought_plan))
    for length in (64 * 1024, 64 * 1024 + 1):
        assert read(call_of(length=length, _meta={}), peer) is None
    assert sought == [("one", "a")]


@pytest.mark.parametrize(
    ("message", "body"),
    [
        ({"type": "http.request", "body": b"a"}, b"a"),
        ({"type": "http.request", "body": b"a", "more_body": False}, b"a"),
        ({"type": "http.request"}, b""),
        ({"type": "http.request", "body": b"a", "more_body": True}, None),
        ({"type": "http.disconnect"}, None),
    ],
)
def test_a_body_is_whole_in_one_message_of_its_own(
    message: dict[str, Any], body: bytes | None
) -> None:
    assert whole_body(message) == body
