"""Requests that the specification does not have, as a new user writes them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from kit.live import server_with
from kit.respondent import refusal_code
from kit.wire import ALL, every, legacy, modern, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    Context,
    RemoteError,
    RequestContext,
    Server,
    connect,
    connect_sync,
    convert,
)


@dataclass
class Order:
    name: str
    count: int = 1


class OrderDict(TypedDict):
    name: str
    count: int


class OrderModel(BaseModel):
    name: str
    count: int = 1


def server_with_method(function: Any, **options: Any) -> Server:
    server = Server("shop")
    server.method("acme/thing", **options)(function)
    return server


def members(result: Any) -> dict[str, Any]:
    """A result without the members that each result of a revision has."""
    return {name: each for name, each in result.items() if name not in ("_meta", "resultType")}


def handlers() -> dict[str, Any]:
    """Functions that return their params and the revision."""

    async def untyped(params, ctx):  # type: ignore[no-untyped-def] # as users write it
        return {"params": params, "revision": ctx.revision}

    def in_thread(params, ctx):  # type: ignore[no-untyped-def] # as users write it
        ctx.progress(1)
        return {"params": params, "revision": ctx.revision}

    async def typed(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"params": params, "revision": ctx.revision}

    return {"untyped": untyped, "in a thread": in_thread, "typed": typed}


@every
@pytest.mark.parametrize("form", handlers())
async def test_a_custom_method_takes_params_and_context(revision: str, form: str) -> None:
    async with connect(server_with_method(handlers()[form]), revision=revision) as client:
        for params in ({"a": [1]}, {}, None):
            result = await client.request("acme/thing", params)
            assert members(result) == {"params": params or {}, "revision": revision}
        raw = msgspec.json.decode(await client.request_raw("acme/thing", {"a": 1}))
        assert members(raw) == {"params": {"a": 1}, "revision": revision}
    with connect_sync(server_with_method(handlers()[form]), revision=revision) as blocking:
        assert members(blocking.request("acme/thing"))["revision"] == revision
        with pytest.raises(RemoteError):
            blocking.request("acme/other")


@every
@pytest.mark.parametrize("result", [None, Order])
async def test_a_result_says_its_type_where_results_do(revision: str, result: Any) -> None:
    server = Server("ours")

    @server.method("acme/thing", result=result)
    async def thing() -> dict[str, str]:
        return {"name": "tea"}

    async with connect(server, revision=revision) as client:
        raw = msgspec.json.decode(await client.request_raw("acme/thing"))
    assert raw["name"] == "tea"
    expected = "complete" if REVISIONS[revision].result_types else None
    assert raw.get("resultType") == expected


async def test_a_custom_method_takes_what_it_names() -> None:
    def of_params(params):  # type: ignore[no-untyped-def] # as users write it
        return {"got": params}

    def of_context(ctx):  # type: ignore[no-untyped-def] # as users write it
        return {"got": ctx.meta.get("k")}

    def of_nothing() -> dict[str, Any]:
        return {"got": None}

    for function, got in ((of_params, {"a": 1}), (of_context, "v"), (of_nothing, None)):
        async with connect(server_with_method(function)) as client:
            result = await client.request("acme/thing", {"a": 1}, meta={"k": "v"})
            assert members(result) == {"got": got}
    with pytest.raises(TypeError, match="or of params and ctx, got none"):
        Server("ours").method("acme/thing", params=Order)(of_nothing)


@every
@pytest.mark.parametrize("kind", [Order, OrderDict, OrderModel])
@pytest.mark.parametrize("explicit", [True, False])
async def test_the_annotation_types_and_checks_the_params(
    revision: str, kind: Any, explicit: bool
) -> None:
    seen: list[Any] = []

    async def thing(params: Any) -> Any:
        seen.append(params)
        return params

    if not explicit:
        thing.__annotations__["params"] = kind
    server = server_with_method(thing, **({"params": kind} if explicit else {}))
    async with connect(server, revision=revision) as client:
        result = await client.request("acme/thing", {"name": "fig", "count": 2})
        assert members(result) == {"name": "fig", "count": 2}
        assert seen == [kind(name="fig", count=2)]
        for wrong in ({"name": 5, "count": 2}, {}, None):
            with pytest.raises(RemoteError) as info:
                await client.request("acme/thing", wrong)
            assert info.value.code == -32602
            assert "name" in str(info.value)


@every
@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, {}),
        ({"a": Order("fig")}, {"a": {"name": "fig", "count": 1}}),
        (Order("fig"), {"name": "fig", "count": 1}),
        (OrderModel(name="fig"), {"name": "fig", "count": 1}),
        *((value, None) for value in ("text", 5, [1], object())),
    ],
)
async def test_results_are_objects_of_any_kind(revision: str, value: Any, result: Any) -> None:
    async with connect(server_with_method(lambda: value), revision=revision) as client:
        if result is not None:
            assert members(await client.request("acme/thing")) == result
        else:
            with pytest.raises(RemoteError, match=r"method 'acme/thing': .*result") as info:
                await client.request("acme/thing")
            assert info.value.code == -32603


def test_a_function_of_other_parameters_is_refused() -> None:
    def two(first: int, second: int) -> None: ...

    def two_and_context(first: int, second: int, ctx: Context) -> None: ...

    for function in (lambda params, ctx, more: None, two, two_and_context, lambda *params: None):
        with pytest.raises(TypeError, match="method 'acme/thing': expected"):
            server_with_method(function)


def low_handlers(revision: str, heard: list[str] | None = None) -> Any:
    """An instance that lists one tool of its own and hears of cancelled requests."""
    module = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.server")
    models = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.models")

    class Handlers(module.ServerHandlers):  # type: ignore[name-defined,misc] # known at run time
        async def list_tools(self, params: Any, ctx: RequestContext) -> Any:
            tool = models.Tool(name="low", input_schema={"type": "object"})
            return models.ListToolsResult(tools=[tool])

        async def roots_list_changed(self, params: Any, ctx: RequestContext) -> None:
            assert heard is not None
            heard.append(ctx.method.name)

    return Handlers()


@every
async def test_a_handler_replaces_the_toolkit_for_its_method_alone(revision: str) -> None:
    async def high() -> str:
        return "high"

    async with speaking_to(server_with(high, handlers=[low_handlers(revision)]), revision) as end:
        listed = (await end.ask("tools/list"))["result"]["tools"]
        called = (await end.ask("tools/call", {"name": "high"}))["result"]
    assert [tool["name"] for tool in listed] == ["low"]
    assert called["content"][0]["text"] == "high"


@pytest.mark.requirement("capabilities.server-features-advertised")
@every
async def test_overridden_methods_are_declared_and_others_unknown(revision: str) -> None:
    server = Server("low", logging=False, handlers=[low_handlers(revision)])
    assert server.capabilities(REVISIONS[revision]) == {"tools": {}}
    async with speaking_to(server, revision) as end:
        assert len((await end.ask("tools/list"))["result"]["tools"]) == 1
        assert (await end.ask("tools/call", {"name": "low"}))["error"]["code"] == -32601
        assert (await end.ask("prompts/list"))["error"]["code"] == -32601


async def test_handlers_answer_for_their_own_revision_alone() -> None:
    server = Server("one", logging=False, handlers=[low_handlers(ALL[0])])
    assert server.capabilities(REVISIONS[ALL[-1]]) == {}
    with pytest.raises(ValueError, match="expected one set of handlers"):
        Server("two", handlers=[low_handlers(ALL[0]), low_handlers(ALL[0])])


@legacy
async def test_notifications_reach_their_handler(revision: str) -> None:
    heard: list[str] = []
    server = Server("hears", handlers=[low_handlers(revision, heard)])
    async with speaking_to(server, revision, {"roots": {"listChanged": True}}) as end:
        await end.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        await end.ask("ping")
    assert heard == ["notifications/roots/list_changed"]


ROOTS: dict[str, Any] = {"method": "roots/list"}


def asking_server(revision: str, as_type: bool) -> Server:
    """A server whose handler of calls asks for roots, until it gets its own state back."""
    module = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.server")
    row = REVISIONS[revision].client_requests["tools/call"]

    class Handlers(module.ServerHandlers):  # type: ignore[name-defined,misc] # known at run time
        async def call_tool(self, params: Any, ctx: RequestContext) -> Any:
            made: dict[str, Any] = {"content": [], "resultType": "complete"}
            if params.request_state != "mine":
                asked = {"inputRequests": {"where": ROOTS}, "requestState": "mine"}
                made = {**asked, "resultType": "input_required"}
            return convert(made, row.result) if as_type else made

    return Server("low", handlers=[Handlers()])


@pytest.mark.requirement("mrtr.capability-gate")
@modern
@pytest.mark.parametrize("as_type", [True, False])
async def test_a_handler_asks_for_declared_input_and_keeps_its_state(
    revision: str, as_type: bool
) -> None:
    call: dict[str, Any] = {"name": "low"}
    roots: dict[str, Any] = {"roots": {}}
    async with speaking_to(asking_server(revision, as_type), revision) as end:
        refused = await end.ask("tools/call", call, capabilities={"sampling": {}})
        asked = (await end.ask("tools/call", call, capabilities=roots))["result"]
        state = {"requestState": asked["requestState"]}
        last = (await end.ask("tools/call", {**call, **state}, capabilities=roots))["result"]
    assert (asked["inputRequests"], state["requestState"]) == ({"where": ROOTS}, "mine")
    assert last["resultType"] == "complete"
    assert refused["error"]["code"] == refusal_code(revision)
    assert refused["error"]["data"] == {"requiredCapabilities": {"roots": {}}}
