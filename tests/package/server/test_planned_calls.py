"""Over streams, a call that is served by a plan and one that is not give the same answers."""

from __future__ import annotations

import asyncio
import json
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.protocol.receiver import Receiver
from mcpgen_runtime.server import planned_calls
from package.server.varied_tools import ADD, REQUESTS, varied_server
from package.wire import ALL, RawEnd, cancelled_notification, request, speaking_to

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("revision", ALL)]

LAST = {"jsonrpc": "2.0", "id": "last", "method": "no/such"}


@pytest.fixture(params=[True, False], ids=["planned", "whole"])
def plans_enabled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether calls may be served by a plan."""
    enabled: bool = request.param
    monkeypatch.setattr(planned_calls, "ENABLED", enabled)
    return enabled


async def messages_of(
    revision: str, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> list[bytes]:
    """Bytes that a server sends for some messages, with planned calls enabled or not."""
    monkeypatch.setattr(planned_calls, "ENABLED", enabled)
    received: list[bytes] = []
    async with speaking_to(varied_server(), revision) as end:
        for message in sent:
            for _ in range(2):  # the second repeats what the first stated
                await end.send(message)
                await until_answered(end, message["id"], received)
        await end.send(LAST)
        await until_answered(end, "last", received)
    return received


async def until_answered(end: RawEnd, id: Any, received: list[bytes]) -> None:
    with anyio.fail_after(10):
        while True:
            received.append(await end.channel.receive())
            answer = json.loads(received[-1])
            if "method" not in answer and answer.get("id") in (id, None):
                return


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("meta", [{}, {"progressToken": 5}], ids=["", "with progress"])
async def test_both_ways_send_the_same(
    revision: str, case: str, meta: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    method, params = REQUESTS[case]
    messages = [request(revision, method, params, meta=meta)]
    on_plan = await messages_of(revision, messages, monkeypatch, True)
    assert on_plan == await messages_of(revision, messages, monkeypatch, False)


@pytest.mark.parametrize("id", [7, "seven", 2**100, "x" * 1024, "x" * 1025, True])
async def test_both_ways_read_an_id_alike(
    revision: str, id: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [request(revision, "tools/call", ADD) | {"id": id}]
    on_plan = await messages_of(revision, messages, monkeypatch, True)
    assert on_plan == await messages_of(revision, messages, monkeypatch, False)


def record_requests(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that receivers register from now on."""
    registered: list[object] = []
    register = Receiver.register

    def recorded(self: Receiver, event: Any, stated: Any) -> None:
        registered.append(event)
        register(self, event, stated)

    monkeypatch.setattr(Receiver, "register", recorded)
    return registered


async def test_a_planned_call_makes_no_open_request(
    revision: str, plans_enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with speaking_to(varied_server(), revision) as end:
        await end.ask("tools/call", ADD)
        registered = record_requests(monkeypatch)
        answer = await end.ask("tools/call", ADD)
        assert answer["result"]["content"][0]["text"] == "3"
    assert bool(registered) is not plans_enabled


@pytest.mark.parametrize(("size", "is_planned"), [(65_536, True), (65_537, False)])
async def test_a_long_message_is_read_once(
    revision: str, size: int, is_planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_calls, "ENABLED", True)
    async with speaking_to(varied_server(), revision) as end:
        await end.ask("tools/call", ADD)
        registered = record_requests(monkeypatch)
        data = json.dumps(request(revision, "tools/call", ADD, id="long")).encode()
        await end.channel.send(OutgoingMessage(data.ljust(size)))
        await until_answered(end, "long", [])
    assert bool(registered) is not is_planned


async def test_a_call_reaches_the_tool_that_has_the_name_now(
    revision: str, plans_enabled: bool
) -> None:
    server = Server("changing")
    texts: list[str] = []
    server.add_tool(lambda: "before", name="tool", threads=False)
    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": "tool"})  # the next one repeats what this one stated
        for _ in range(2):
            answer = await end.ask("tools/call", {"name": "tool"})
            texts.append(answer["result"]["content"][0]["text"])
            server.remove_tool("tool")
            server.add_tool(lambda: "after", name="tool", threads=False)
    assert texts == ["before", "after"]


async def test_a_call_that_waits_is_cancelled(revision: str, plans_enabled: bool) -> None:
    server, ends = Server("slow"), list[str]()
    begun = anyio.Event()

    @server.tool()
    async def waits() -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")
        return "never"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/list")
        await end.ask("tools/call", {"name": "no-such"})  # states what the next one repeats
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        await begun.wait()
        await end.send(cancelled_notification(7))
        await end.send(request(revision, "tools/call", {"name": "no-such"}, id=7))
        answer = await end.receive()  # the id is free again; the cancelled call has no answer
        assert answer["id"] == 7
        assert "no-such" in json.dumps(answer)
    assert ends == ["cancelled"]


async def test_a_waiting_call_keeps_no_other_from_its_answer(
    revision: str, plans_enabled: bool
) -> None:
    server, may_end = Server("slow"), anyio.Event()

    @server.tool()
    async def waits() -> str:
        await may_end.wait()
        return "waited"

    @server.tool()
    async def ends() -> str:
        may_end.set()
        return "ended"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": "no-such"})
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        refused = await end.receive()
        assert "7 belongs to an open request" in refused["error"]["message"]
        await end.send(request(revision, "tools/call", {"name": "ends"}, id=8))
        texts = [(await end.receive())["result"]["content"][0]["text"] for _ in range(2)]
    assert texts == ["ended", "waited"]


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "waits"])
async def test_context_variables_of_a_tool_do_not_reach_the_next_call(
    revision: str, plans_enabled: bool, waits: bool
) -> None:
    server, state = Server("stateful"), ContextVar("state", default="clean")

    @server.tool()
    async def ends_at_once() -> str:
        before = state.get()
        state.set("used")
        return f"{before} {state.get()}"

    @server.tool()
    async def suspends() -> str:
        before = state.get()
        state.set("used")
        await anyio.lowlevel.checkpoint()
        return f"{before} {state.get()}"

    name = "suspends" if waits else "ends_at_once"
    async with speaking_to(server, revision) as end:
        for _ in range(3):
            answer = await end.ask("tools/call", {"name": name})
            assert answer["result"]["content"][0]["text"] == "clean used"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_context_outlives_its_call_without_harm(revision: str, plans_enabled: bool) -> None:
    server, later = Server("late"), list[asyncio.Task[None]]()

    @server.tool()
    async def leaves(ctx: Context) -> str:
        later.append(asyncio.create_task(speak(ctx)))
        return "left"

    async def speak(ctx: Context) -> None:
        await ctx.progress(1)

    async with speaking_to(server, revision) as end:
        for _ in range(3):
            answer = await end.ask("tools/call", {"name": "leaves"}, id=1)
            assert answer["result"]["content"][0]["text"] == "left"
            await later[-1]
        answer = await end.ask("tools/call", {"name": "leaves"}, id=1)
        assert "error" not in answer  # the id is not taken by what came late


async def test_deep_arguments_end_no_session(revision: str, plans_enabled: bool) -> None:
    server = Server("deep")

    @server.tool()
    async def waits(value: Any) -> str:
        await anyio.lowlevel.checkpoint()
        return "waited"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": "no-such"})
        for depth in (50, 150, *range(900, 1000, 3), 5000):
            deep = json.dumps(request(revision, "tools/call", {"name": "waits", "arguments": {}}))
            arguments = f'{{"value": {"[" * depth}1{"]" * depth}}}'
            await end.send(deep.replace('"arguments": {}', f'"arguments": {arguments}').encode())
            assert (await end.receive()).get("id") in (1, None)
