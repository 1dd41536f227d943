"""Middleware of a server, as users write it, and the middleware that comes with the package."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kit.asgi_client import asgi
from kit.cached import Clock
from kit.live import server_with
from kit.wire import ALL, HANDSHAKE, PER_REQUEST
from mcpgen_runtime import (
    Context,
    Middleware,
    MiddlewareRequest,
    Next,
    Principal,
    ProtocolError,
    RemoteError,
    Server,
    ToolError,
    connect,
    limit_rate,
    log_requests,
    replace,
)
from mcpgen_runtime.testing import connected

NEWEST = ALL[-1]
both = pytest.mark.parametrize("revision", [HANDSHAKE[0], NEWEST])


def shop() -> Server:
    server = Server("shop")

    @server.tool()
    async def order(item: str) -> str:
        return f"ordered {item}"

    @server.tool()
    async def secret() -> str:
        return "secret"

    @server.resource("shop://items")
    def items() -> str:
        return "apple, pear"

    @server.prompt()
    def greet(name: str) -> str:
        return f"greet {name}"

    return server


@both
async def test_requests_of_any_method_pass_the_middleware_in_order(revision: str) -> None:
    server, passed = shop(), list[str]()

    @server.middleware
    async def outer(request: MiddlewareRequest, next: Next) -> Any:
        if request.is_notification or request.method in ("initialize", "server/discover"):
            return await next(request)
        passed.append(f"outer {request.method} {request.target}")
        result = await next(request)
        assert type(result).__module__.rpartition(".")[0].endswith(revision.replace("-", "_"))
        return result

    @server.middleware
    async def inner(request: MiddlewareRequest, next: Next) -> Any:
        if passed:
            passed.append("inner")
        return await next(request)

    async with connect(server, revision=revision) as client:
        await client.call_tool("order", {"item": "pear"})
        await client.list_tools()
        await client.read_resource("shop://items")
        await client.get_prompt("greet", {"name": "Ann"})
    assert passed[::2] == [
        "outer tools/call order",
        "outer tools/list None",
        "outer resources/read shop://items",
        "outer prompts/get greet",
    ]
    assert passed[1::2] == ["inner"] * 4


@both
async def test_middleware_sees_who_asks_and_changes_params_and_results(revision: str) -> None:
    server = shop()

    @server.middleware
    async def change(request: MiddlewareRequest, next: Next) -> Any:
        if request.method == "tools/list":
            result = await next(request)
            shown = [tool for tool in result.tools if tool.name != "secret"]
            return replace(result, tools=shown)
        if request.method == "tools/call":
            assert request.principal.subject == "ann"
            assert request.revision == revision
            assert (request.session_id is None) is (revision not in HANDSHAKE)
            arguments = {"item": "apple"}
            params = replace(request.params, arguments=arguments)
            return await next(request.with_params(params))
        return await next(request)

    ann = Principal("ann")
    async with connected(server, revision=revision, principal=ann) as pair:
        assert [tool.name for tool in await pair.client.list_tools()] == ["order"]
        result: Any = await pair.client.call_tool("order", {"item": "pear"})
    assert result.content[0].text == "ordered apple"


@both
async def test_the_model_reads_why_middleware_refused_a_tool(revision: str) -> None:
    server = shop()

    @server.middleware
    async def closed(request: MiddlewareRequest, next: Next) -> Any:
        if request.target in ("secret", "shop://items"):
            raise ToolError("we are closed")
        return await next(request)

    async with connected(server, revision=revision) as pair:
        refused: Any = await pair.client.call_tool("secret")
        assert (refused.is_error, refused.content[0].text) == (True, "we are closed")
        assert not (await pair.client.call_tool("order", {"item": "pear"})).is_error
        with pytest.raises(RemoteError):  # a resource has no such result
            await pair.client.read_resource("shop://items")


async def test_notifications_and_lifespan_state_reach_middleware() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[list[str]]:
        yield state

    state: list[str] = []
    server = Server("stateful", lifespan=lifespan)

    @server.tool()
    async def read(ctx: Context[list[str]]) -> str:
        return ctx.state[0]

    @server.middleware
    async def note(request: MiddlewareRequest, next: Next) -> Any:
        if request.is_notification:
            request.state.append(request.method)
        return await next(request)

    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        result: Any = await pair.client.call_tool("read")
    assert result.content[0].text == "notifications/initialized"


async def test_middleware_after_the_start_is_refused() -> None:
    server = shop()
    server.asgi()

    async def late(request: MiddlewareRequest, next: Next) -> Any: ...

    with pytest.raises(RuntimeError, match=r"before run\(\), serve\(\) or asgi\(\)"):
        server.middleware(late)


def test_an_object_that_is_no_middleware_is_told_from_one() -> None:
    def plain(request: MiddlewareRequest, next: Next) -> Any: ...

    class Unrelated:
        async def on_call_tool(self, request: MiddlewareRequest, next: Next) -> Any: ...

    class Related(Middleware):
        async def on_call_tool(self, request: MiddlewareRequest, next: Next) -> Any: ...

    wrong: list[tuple[Any, str]] = [
        (plain, "middleware: expected a coroutine function"),
        (Unrelated(), r"Unrelated, which has on_call_tool but is no Middleware"),
        (Unrelated, r"write class Unrelated\(Middleware\)"),
        (Related, r"got the class Related: pass Related\(\)"),
    ]
    for middleware, reason in wrong:
        with pytest.raises(TypeError, match=reason):
            shop().middleware(middleware)


async def test_each_request_is_logged_with_what_became_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def divide(by: int) -> float:
        return 1 / by

    server = server_with(divide)

    server.middleware(log_requests())
    caplog.set_level(logging.INFO, logger="mcpgen_runtime.requests")
    async with connected(server, revision=NEWEST, principal=Principal("ann")) as pair:
        await pair.client.call_tool("divide", {"by": 1})
        await pair.client.call_tool("divide", {"by": 0})
        with pytest.raises(RemoteError):
            await pair.client.call_tool("other")
    records = [vars(record) for record in caplog.records if "mcp_method" in vars(record)]
    calls = [record for record in records if record["mcp_method"] == "tools/call"]
    assert [
        (each["mcp_target"], each["mcp_outcome"], each["mcp_error_code"]) for each in calls
    ] == [
        ("divide", "ok", None),
        ("divide", "tool error", None),
        ("other", "error", -32602),
    ]
    assert {each["mcp_subject"] for each in calls} == {"ann"}
    assert calls[0]["message"].startswith("tools/call 'divide': ok in ")


async def test_a_log_names_a_session_without_telling_its_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, seen = shop(), list[str | None]()

    @server.middleware
    async def remember(request: MiddlewareRequest, next: Next) -> Any:
        seen.append(request.session_id)
        return await next(request)

    server.middleware(log_requests())
    caplog.set_level(logging.INFO, logger="mcpgen_runtime.requests")
    async with connected(server, revision=HANDSHAKE[0]) as pair:
        await pair.client.list_tools()
        await pair.client.list_tools()
    names = [vars(record)["mcp_session"] for record in caplog.records]
    [identifier] = set(seen)
    assert identifier is not None
    assert len(identifier) == 22  # 128 bits in base64url
    assert len(names) == len(seen)
    [name] = set(names)
    assert (len(name), name in identifier) == (12, False)


async def test_a_session_over_its_rate_is_refused_for_a_time() -> None:
    server, clock = shop(), Clock()

    def calls_only(request: MiddlewareRequest) -> str | None:
        return request.session_id if request.method == "tools/call" else request.method

    server.middleware(limit_rate(2, seconds=10, per=calls_only, clock=clock))
    async with connect(server, revision=HANDSHAKE[-1]) as client:
        for _ in range(2):
            await client.call_tool("secret")
        with pytest.raises(RemoteError, match="at most 2 requests in 10 seconds; retry in 5") as no:
            await client.call_tool("secret")
        assert (no.value.code, no.value.data) == (429, {"retryAfterSeconds": 5})
        async with connected(server, revision=HANDSHAKE[-1]) as other:
            await other.client.call_tool("secret")
        clock.now += 5
        await client.call_tool("secret")
    with pytest.raises(ValueError, match="expected positive numbers, got 0 requests"):
        limit_rate(0)
    with pytest.raises(ValueError, match="got 1 requests in 0 seconds"):
        limit_rate(1, seconds=0)
    per: Any = "tenant"
    with pytest.raises(ValueError, match="per: expected session, principal or a function"):
        limit_rate(1, per=per)


@pytest.mark.parametrize("per", ["session", "principal"])
async def test_without_sessions_a_principal_or_an_address_has_the_rate(per: Any) -> None:
    server = shop()
    server.middleware(limit_rate(1, seconds=3600, per=per))
    async with asgi(server) as http:
        http.scope["client"] = ("192.0.2.1", 1)
        first = await http.ask(PER_REQUEST[-1], "tools/list")
        http.scope["client"] = ("192.0.2.1", 2)
        second = await http.ask(PER_REQUEST[-1], "tools/list")
        http.scope["client"] = ("192.0.2.2", 1)
        third = await http.ask(PER_REQUEST[-1], "tools/list")
        http.scope["client"] = None
        unknown = [await http.ask(PER_REQUEST[-1], "tools/list") for _ in range(2)]
    assert "tools" in first.result
    assert second.messages[-1]["error"]["code"] == 429
    assert "tools" in third.result
    assert "tools" in unknown[0].result
    assert unknown[1].messages[-1]["error"]["code"] == 429
    async with connected(server, revision=NEWEST, principal=Principal("bob")) as pair:
        await pair.client.list_tools()


async def served(request: Any) -> str:
    """The rest of the middleware."""
    return f"{request.method} is served"


async def test_a_notification_over_the_rate_is_dropped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    limited: Any = limit_rate(1, per=lambda request: "all", clock=clock)
    note = SimpleNamespace(method="notifications/a", is_notification=True)
    assert await limited(note, served) == "notifications/a is served"
    assert await limited(note, served) is None
    assert caplog.messages == ["notifications/a was dropped: over the rate limit"]
    request = SimpleNamespace(method="a", is_notification=False)
    with pytest.raises(ProtocolError, match="at most 1 requests in 1 seconds; retry in 1 seconds"):
        await limited(request, served)
    clock.now += 1
    assert await limited(request, served) == "a is served"


@pytest.mark.parametrize("per", ["session", "principal"])
async def test_a_rate_is_that_of_a_session_or_a_principal(per: Any) -> None:
    limited: Any = limit_rate(1, per=per, clock=Clock())
    ann, bob = Principal("ann"), Principal("bob")
    ends = []
    for session, principal in (("1", ann), ("2", ann), ("1", bob)):
        request = SimpleNamespace(
            session_id=session, principal=principal, is_notification=False, method="a"
        )
        try:
            ends.append(await limited(request, served))
        except ProtocolError as error:
            ends.append(error.code)
    good = "a is served"
    assert ends == ([good, good, 429] if per == "session" else [good, 429, good])


async def test_the_sender_silent_longest_is_forgotten() -> None:
    limited: Any = limit_rate(1, seconds=10, per=lambda request: request.method, clock=Clock())
    for sender in (*range(10_001), 0):
        request = SimpleNamespace(method=sender, is_notification=False)
        assert await limited(request, served) == f"{sender} is served"
    with pytest.raises(ProtocolError, match="at most 1 requests"):
        await limited(SimpleNamespace(method=2, is_notification=False), served)
