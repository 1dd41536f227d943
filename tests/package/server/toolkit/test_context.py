"""The context of a function: state, progress, logs, the client, methods of one's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, request, speaking_to
from mcpgen_runtime.errors import MissingCapabilityError
from mcpgen_runtime.server.chosen import Context, Server

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


@every
async def test_the_lifespan_is_entered_for_a_client_and_gives_state(
    revision: str,
) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        events.append("open")
        yield server.name
        events.append("closed")

    server = Server("alive", lifespan=lifespan)

    @server.tool()
    async def state(context: Context) -> str:
        return f"{context.state} {context.request_id}"

    async with speaking_to(server, revision) as end:
        answer = await end.ask("tools/call", {"name": "state"}, id="x")
        assert answer["result"]["content"][0]["text"] == "alive x"
        assert events == ["open"]
    assert events == ["open", "closed"]


@pytest.mark.requirement("logging.message-shape", "logging.levels")
@every
async def test_a_context_knows_its_client_and_sends_progress_and_logs(revision: str) -> None:
    server = Server("told")

    @server.tool()
    async def tell(ctx: Context) -> str:
        await ctx.progress(1, total=2, message="half")
        await ctx.debug("d")
        await ctx.info("i", logger="l")
        await ctx.warning({"w": 1})
        await ctx.error(None)
        await ctx.log("alert", "a")
        assert ctx.raw_params is not None
        assert b'"unknown":1' in bytes(ctx.raw_params).replace(b" ", b"")
        assert ctx.meta["progressToken"] == "p"
        info = ctx.client_info or {}
        return f"{info.get('name')} {dict(ctx.client_capabilities)} {ctx.revision}"

    level = facts(revision).meta.log_level
    meta = {"progressToken": "p"} | ({} if level is None else {level: "warning"})
    async with speaking_to(server, revision) as end:
        if level is None:
            await end.ask("logging/setLevel", {"level": "warning"})
        params = {"name": "tell", "unknown": 1}
        answer = await end.ask("tools/call", params, meta=meta)
    assert answer["result"]["content"][0]["text"] == f"tester {{}} {revision}"
    progress, *logs = [message["params"] for message in end.heard]
    assert (progress["progressToken"], progress["progress"], progress["total"]) == ("p", 1, 2)
    assert [(log["level"], log["data"]) for log in logs] == [
        ("warning", {"w": 1}),
        ("error", None),
        ("alert", "a"),
    ]


class Sum(msgspec.Struct):
    total: int


class Numbers(msgspec.Struct):
    numbers: list[int]


@every
async def test_a_method_of_ones_own_is_typed_and_validated(revision: str) -> None:
    server = Server("own")

    @server.method("my/sum", params=Numbers, result=Sum)
    async def total(params: Numbers, ctx: Context) -> Sum:
        return Sum(sum(params.numbers))

    @server.method("my/nothing")
    async def nothing() -> None: ...

    async with speaking_to(server, revision) as end:
        assert (await end.ask("my/sum", {"numbers": [1, 2]}))["result"]["total"] == 3
        assert (await end.ask("my/sum", {"numbers": "x"}))["error"]["code"] == -32602
        assert "result" in await end.ask("my/nothing")
        assert (await end.ask("my/other"))["error"]["code"] == -32601


def logger(**settings: Any) -> Server:
    made = Server("logs", **settings)

    @made.tool()
    async def log(level: Any, ctx: Context) -> str:
        await ctx.log(level, {"at": level})
        return "logged"

    return made


async def call_logging_tool(
    revision: str, level: str, *, meta: Any = None, **settings: Any
) -> tuple[Any, list[str]]:
    """The answer of a tool that logs at a level, and the levels that were heard before it."""
    params = {"name": "log", "arguments": {"level": level}}
    async with speaking_to(logger(**settings), revision) as end:
        answer = await end.ask("tools/call", params, meta=meta)
        return answer, [message["params"]["level"] for message in end.heard]


LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.requirement("logging.levels")
@legacy
@pytest.mark.parametrize("level", LEVELS)
async def test_each_level_is_sent(revision: str, level: str) -> None:
    assert (await call_logging_tool(revision, level))[1] == [level]


@pytest.mark.requirement("logging.levels")
@every
@pytest.mark.parametrize("level", ["WARN", "fatal", "verbose"])
async def test_a_level_that_is_none_is_not_sent(revision: str, level: str) -> None:
    answer, heard = await call_logging_tool(revision, level)
    assert "error" in answer or answer["result"]["isError"] is True
    assert heard == []


@pytest.mark.requirement("logging.declare-capability-initialize")
@every
async def test_a_server_that_declares_no_logging_sends_none(revision: str) -> None:
    key = facts(revision).meta.log_level
    assert (await call_logging_tool(revision, "error", logging=False))[1] == []
    meta = None if key is None else {key: "debug"}
    assert (await call_logging_tool(revision, "error", meta=meta, logging=False))[1] == []


@pytest.mark.requirement("logging.per-request-level", "logging.set-level-removed")
@modern
async def test_a_request_without_a_level_gets_no_log_messages(revision: str) -> None:
    assert (await call_logging_tool(revision, "emergency"))[1] == []
    key = facts(revision).meta.log_level
    assert key is not None
    assert (await call_logging_tool(revision, "error", meta={key: "error"}))[1] == ["error"]
    async with speaking_to(logger(), revision) as end:
        assert (await end.ask("logging/setLevel", {"level": "info"}))["error"]["code"] == -32601


@pytest.mark.requirement("logging.request-scoped-only")
@modern
async def test_log_messages_belong_to_the_request_that_asked_for_them(revision: str) -> None:
    key, listen = facts(revision).meta.log_level, facts(revision).behaviour.listen
    assert key is not None
    assert listen is not None
    async with speaking_to(logger(), revision) as end:
        wanted = {"notifications": {"toolsListChanged": True}}
        await end.send(request(revision, listen, wanted, id="s", meta={key: "debug"}))
        await end.receive()
        params = {"name": "log", "arguments": {"level": "error"}}
        await end.ask("tools/call", params)
        assert end.heard == []
        await end.ask("tools/call", params, meta={key: "error"})
    (message,) = end.heard
    assert "_meta" not in message["params"]


@every
async def test_a_context_has_no_room_for_other_attributes(revision: str) -> None:
    server = Server("strict")

    @server.tool()
    async def has_dictionary(context: Context) -> str:
        return str(hasattr(context, "__dict__"))

    async with speaking_to(server, revision) as end:
        answer = await end.ask("tools/call", {"name": "has_dictionary"})
    assert answer["result"]["content"][0]["text"] == "False"


@legacy
async def test_the_client_is_asked_by_typed_coroutines_and_by_name(revision: str) -> None:
    server = Server("asks")

    @server.tool()
    async def roots(ctx: Context) -> str:
        typed = await ctx.client.list_roots()
        named = await ctx.request("roots/list", timeout=5)
        return f"{len(typed.roots)} {named.roots[0].uri}"

    params = {"name": "roots"}
    async with speaking_to(server, revision, {"roots": {}}) as end:
        await end.send(request(revision, "tools/call", params, id="call"))
        for _ in range(2):
            asked = await end.receive()
            assert asked["method"] == "roots/list"
            result = {"roots": [{"uri": "file:///a"}]}
            await end.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        answer = await end.receive()
    assert answer["result"]["content"][0]["text"] == "1 file:///a"


@legacy
async def test_a_client_that_cannot_answer_is_not_asked(revision: str) -> None:
    server = Server("asks")

    @server.tool()
    async def roots(ctx: Context) -> str:
        with pytest.raises(MissingCapabilityError, match="roots"):
            await ctx.client.list_roots()
        return "not asked"

    async with speaking_to(server, revision) as end:
        answer = await end.ask("tools/call", {"name": "roots"})
    assert answer["result"]["content"][0]["text"] == "not asked"
