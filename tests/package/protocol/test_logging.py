"""Log messages: which reach a client, when, and in what shape."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.live import FakeServer, live, server_with
from kit.rules import revision_fixture, revisions_holding
from kit.samples import EVERY_SERVER_CAPABILITY, PARAMS
from kit.wire import ALL, INITIALIZED, ClientEnd, ServerEnd, facts, initialize, modern
from mcpgen_runtime import Client, ClientHandlers, Context, connect
from mcpgen_runtime.protocol.events import Ignored, NotificationReceived, SendLog
from mcpgen_runtime.protocol.requests import LOG_LEVELS

revision = revision_fixture(ALL)

MESSAGE = "notifications/message"
by_session = pytest.mark.parametrize("revision", revisions_holding("logging.set-level-request"))


def level_key(revision: str) -> str:
    """The key of `_meta` by which a request asks for log messages."""
    key = facts(revision).meta.log_level
    assert key is not None
    return key


def serving_request(
    revision: str, capabilities: Any = EVERY_SERVER_CAPABILITY, **meta: Any
) -> ServerEnd:
    """A server that serves the request "x", whose sender wants all log messages there are."""
    server = ServerEnd(revision, capabilities)
    key = facts(revision).meta.log_level
    wanted = {key: "debug"} if key else {}
    server.ask("tools/call", PARAMS["tools/call"], id="x", meta={**wanted, **meta})
    return server


def levels_sent(server: ServerEnd, id: str = "x") -> list[str]:
    """The levels of which a message on behalf of a request goes out."""
    return [level for level in LOG_LEVELS if server.send(SendLog(id, level, "text"))]


@pytest.mark.requirement("logging.set-level-request", "logging.set-level-threshold")
@pytest.mark.requirement("logging.default-without-set-level")
@by_session
@pytest.mark.parametrize("level", LOG_LEVELS)
def test_from_the_level_that_was_set_upwards_all_are_sent(revision: str, level: str) -> None:
    server = serving_request(revision)
    assert levels_sent(server) == list(LOG_LEVELS)
    assert len(server.send(SendLog(None, "debug", "of no request"))) == 1
    (answer,) = server.ask("logging/setLevel", {"level": "emergency"}, id="e")
    assert answer == {"jsonrpc": "2.0", "id": "e", "result": {}}
    assert levels_sent(server) == ["emergency"]
    server.ask("logging/setLevel", {"level": level}, id="l")
    assert levels_sent(server) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])


@pytest.mark.requirement("logging.invalid-level-error", "logging.levels")
@by_session
@pytest.mark.parametrize("level", ["verbose", "WARN", 3, None])
def test_a_level_that_can_not_be_set_leaves_the_former(revision: str, level: Any) -> None:
    server = serving_request(revision)
    server.ask("logging/setLevel", {"level": "error"}, id="e")
    (answer,) = server.ask("logging/setLevel", {"level": level}, id="l")
    assert answer["error"]["code"] == -32602
    assert levels_sent(server)[0] == "error"


@by_session
def test_a_log_message_may_come_before_the_confirmation(revision: str) -> None:
    server = ServerEnd(None)
    assert server.send(SendLog(None, "error", "nobody there")) == []
    server.say(initialize(revision))
    assert len(server.send(SendLog(None, "error", "soon"))) == 1
    server.say(INITIALIZED)
    assert len(server.send(SendLog(None, "error", "now"))) == 1


@pytest.mark.requirement("logging.per-request-level", "logging.per-request-threshold")
@modern
@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_request_gets_messages_of_the_level_it_asks_for(revision: str, level: str) -> None:
    server = serving_request(revision, **{level_key(revision): level})
    server.ask("tools/call", PARAMS["tools/call"], id="y")
    assert levels_sent(server) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])
    assert levels_sent(server, "y") == []


@pytest.mark.requirement("logging.invalid-level-error-2026", "logging.levels")
@modern
@pytest.mark.parametrize("level", ["verbose", "WARN", 3])
def test_a_request_with_an_unknown_log_level_is_not_served(revision: str, level: Any) -> None:
    server = ServerEnd(revision)
    (answer,) = server.ask("tools/call", PARAMS["tools/call"], meta={level_key(revision): level})
    assert answer["error"]["code"] == -32602
    assert list(server.requests()) == []


@pytest.mark.requirement("logging.message-shape", "logging.validate-data")
@pytest.mark.parametrize(
    "params", [{"level": "info"}, {"data": 1}, {"level": "loud", "data": 1}, []], ids=repr
)
def test_a_malformed_log_message_is_dropped_and_the_next_heard(revision: str, params: Any) -> None:
    client = ClientEnd(revision)
    message = {"jsonrpc": "2.0", "method": MESSAGE}
    assert client.say({**message, "params": params}) == []
    assert [type(event) for event in client.events] == [Ignored]
    client.say({**message, "params": {"level": "info", "data": None}})
    (event,) = client.events
    assert isinstance(event, NotificationReceived)
    assert (event.params.level, event.params.data) == ("info", None)


class Listener(ClientHandlers):
    """Keeps the log messages it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    async def logging_message(self, params: Any, ctx: Any) -> None:
        self.heard.append((params.level, params.data))


async def talk(ctx: Context) -> str:
    for number in range(3):
        await ctx.debug(number)
    await ctx.log("alert", {"last": True})
    return "said"


@pytest.mark.requirement("logging.per-request-threshold", "logging.request-scoped-only")
async def test_messages_are_heard_in_order_before_the_result(revision: str) -> None:
    listener = Listener()
    async with live(server_with(talk), revision, handlers=listener) as (client, record):
        client.ask_for_logs("debug")
        await client.call_tool("talk")
        assert listener.heard == [*(("debug", n) for n in range(3)), ("alert", {"last": True})]
        kinds = [message.get("method", "answer") for message in record.received[-5:]]
        assert kinds == [MESSAGE] * 4 + ["answer"]


@pytest.mark.requirement("logging.set-level-threshold")
@by_session
async def test_a_client_sets_the_level_of_its_session(revision: str) -> None:
    listener = Listener()
    async with live(server_with(talk), revision, handlers=listener) as (client, _):
        for set_level, heard in ((client.set_level, 1), (client.seen_as(Client).set_level, 2)):
            await set_level("error")
            await client.call_tool("talk")
            assert [level for level, _ in listener.heard] == ["alert"] * heard


@pytest.mark.requirement("logging.rate-limit")
async def test_a_client_flooded_with_logs_still_gets_its_answer(revision: str) -> None:
    server = FakeServer(revision)
    listener = Listener()

    async def flood() -> None:
        call = await server.next()
        for number in range(5000):
            await server.notify(MESSAGE, {"level": "info", "data": number})
        await server.answer(call, {"tools": [], "ttlMs": 0, "cacheScope": "private"})

    async with (
        connect(server, revision=revision, handlers=listener) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(flood)
        with anyio.fail_after(30):
            assert await client.list_tools() == []
    assert [data for _, data in listener.heard] == list(range(5000))


async def test_a_log_handler_that_waits_or_fails_delays_no_answer(revision: str) -> None:
    go_on = anyio.Event()

    class Slow(Listener):
        async def logging_message(self, params: Any, ctx: Any) -> None:
            await super().logging_message(params, ctx)
            await go_on.wait()
            self.heard.append(("after", params.data))
            raise ValueError("broken")

    listener = Slow()
    async with live(server_with(talk), revision, handlers=listener) as (client, _):
        client.ask_for_logs("debug")
        with anyio.fail_after(10):
            for _ in range(2):
                await client.call_tool("talk")
        assert listener.heard
        go_on.set()
        await anyio.wait_all_tasks_blocked()
    assert len(listener.heard) == 16
