"""The sessions of a proxy with the server behind it: for each client, and after an end."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import Http, asgi
from kit.limits import SetLimit
from kit.live import expect_refusal, text_of
from kit.simulation import ASYNCIO, simulate
from kit.stdio_process import PATHS
from kit.wire import HANDSHAKE
from mcpgen_runtime import Context, Protected, RemoteError, Restart, Server, StaticTokens, connect
from mcpgen_runtime.testing import connected
from package.proxy.test_proxy import NEWEST, SESSION
from package.transports.test_transports_custom import queue_pair

STREAMABLE = HANDSHAKE[1:]
CRASHING = str(Path(__file__).parents[1] / "crashing_server.py")
far_side = pytest.mark.parametrize("far", [SESSION, NEWEST])


class Heard:
    """A channel that keeps the methods of the messages it receives."""

    def __init__(self, channel: Any, methods: list[str]) -> None:
        self._channel = channel
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def receive(self) -> bytes:
        data: bytes = await self._channel.receive()
        self._methods.append(json.loads(data).get("method"))
        return data


class Counted:
    """A server that numbers its sessions, from 1 on, and can end them."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.opened = 0
        self.open: set[int] = set()
        self._scopes: list[anyio.CancelScope] = []
        self.server = Server("counted", subscribe=True, lifespan=self._numbered)

        @self.server.tool()
        async def number(ctx: Context[int]) -> int:
            await ctx.info("asked")
            return ctx.state

        @self.server.tool()
        async def touch() -> None:
            self.server.resource_updated("memo://one")

        @self.server.tool()
        async def crash() -> None:
            self.end()
            await anyio.sleep_forever()

        @self.server.resource("memo://one")
        def one() -> str:
            return "one"

    def end(self) -> None:
        """End the sessions that are open."""
        for scope in self._scopes:
            scope.cancel()

    async def serve(self, channel: Any) -> None:
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            await self.server.serve(Heard(channel, self.methods))

    @asynccontextmanager
    async def _numbered(self, server: Server) -> AsyncIterator[int]:
        self.opened += 1
        number = self.opened
        self.open.add(number)
        try:
            yield number
        finally:
            self.open.remove(number)


async def number(http: Http, revision: str) -> int:
    """The number of the session with the server that a client's call uses."""
    reply = await http.ask(revision, "tools/call", {"name": "number", "arguments": {}})
    assert "result" in reply.messages[-1], reply.messages
    return int(reply.result["content"][0]["text"])


async def until(condition: Any) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()  # so that the other end knows as well


@far_side
@pytest.mark.parametrize("near", STREAMABLE)
async def test_each_http_session_has_its_own_session_with_the_server(near: str, far: str) -> None:
    behind = Counted()
    async with asgi(Server.proxy(behind, revision=far)) as http:
        assert behind.opened == 1  # the one that is shared
        other, third = http.another(), http.another()
        await http.initialize(near)
        await other.initialize(near)
        assert await number(http, near) == 2
        assert await number(other, near) == 3
        assert await number(http, near) == 2
        assert await number(third, NEWEST) == await number(third, NEWEST) == 1
        assert behind.open == {1, 2, 3}
        await http.delete()
        await until(lambda: behind.open == {1, 3})
        assert await number(other, near) == 3
    assert behind.open == set()


async def test_a_server_without_sessions_shares_one_behind_the_proxy() -> None:
    behind = Counted()
    async with asgi(Server.proxy(behind), stateless=True) as http:
        for each in (http, http.another()):
            await each.initialize(SESSION)
            assert await number(each, SESSION) == 1


@far_side
async def test_updates_and_log_levels_of_a_session_reach_no_other(far: str) -> None:
    behind = Counted()
    async with asgi(Server.proxy(behind, revision=far)) as http:
        other = http.another()
        for each, level in ((http, "info"), (other, "error")):
            await each.initialize(SESSION)
            await each.ask(SESSION, "logging/setLevel", {"level": level})
        await http.ask(SESSION, "resources/subscribe", {"uri": "memo://one"})
        async with http.stream("GET") as stream, other.stream("GET") as quiet:
            replies = [
                await each.ask(SESSION, "tools/call", {"name": "number", "arguments": {}})
                for each in (http, other)
            ]
            logged = [
                [m for m in reply.messages if m.get("method") == "notifications/message"]
                for reply in replies
            ]
            assert [len(each) for each in logged] == [1, 0]
            await other.ask(SESSION, "tools/call", {"name": "touch", "arguments": {}})
            update = await stream.message()
            assert update["method"] == "notifications/resources/updated"
            assert b"updated" not in quiet.raw


@far_side
async def test_the_least_recently_used_session_makes_room(
    far: str, set_limit: SetLimit, caplog: pytest.LogCaptureFixture
) -> None:
    set_limit("pkg.proxy.upstream_pool.MOST_SESSIONS", 2)
    behind = Counted()
    async with asgi(Server.proxy(behind, name="front", revision=far)) as http:
        clients = [http, http.another(), http.another()]
        for client in clients:
            await client.initialize(SESSION)
        assert [await number(client, SESSION) for client in clients] == [2, 3, 4]
        await until(lambda: behind.open == {1, 3, 4})
        assert "the server behind proxy 'front': more than 2 sessions" in caplog.text
        assert await number(clients[2], SESSION) == 4
        assert await number(clients[0], SESSION) == 5


@far_side
@pytest.mark.parametrize("near", [SESSION, NEWEST])
async def test_an_ended_session_is_reopened_by_the_next_request(near: str, far: str) -> None:
    behind = Counted()
    async with connect(Server.proxy(behind, name="front", revision=far), revision=near) as client:
        assert text_of(await client.call_tool("number")) == "1"
        with pytest.raises(RemoteError, match="the server behind proxy 'front' does not answer"):
            await client.call_tool("crash")
        assert text_of(await client.call_tool("number")) == "2"
        behind.end()
        await until(lambda: not behind.open)
        assert text_of(await client.call_tool("number")) == "3"


async def test_a_shared_session_belongs_to_no_user_of_the_proxy() -> None:
    behind = Counted()
    users: list[str] = []

    @behind.server.tool()
    async def who(ctx: Context[int]) -> None:
        users.append(ctx.principal.subject)

    token = "x" * 32
    auth = Protected(verifier=StaticTokens({token: "ann"}))
    async with asgi(Server.proxy(behind, revision=NEWEST), auth=auth) as http:
        http.fields["authorization"] = f"Bearer {token}"
        for _ in range(2):
            reply = await http.ask(NEWEST, "tools/call", {"name": "who", "arguments": {}})
            assert "result" in reply.messages[-1]
            behind.end()
            await until(lambda: not behind.open)
    assert users == ["", ""]


@far_side
@pytest.mark.parametrize("near", [SESSION, NEWEST])
async def test_log_messages_go_on_in_the_next_session(near: str, far: str) -> None:
    behind = Counted()
    async with connect(Server.proxy(behind, revision=far), revision=near) as client:
        logged: list[Any] = []
        if near == SESSION:
            await client.set_level("info")
        else:
            client.ask_for_logs("info")
        with client.on_log(lambda message: logged.append(message.data)):
            for count in (1, 2):
                for _ in range(2):
                    await client.call_tool("number")
                assert logged == ["asked"] * 2 * count
                assert behind.methods.count("logging/setLevel") == count * (far == SESSION)
                behind.end()
                await until(lambda: not behind.open)


@far_side
@pytest.mark.parametrize("tool", ["touch", "number"])
async def test_subscriptions_go_on_in_the_next_session(far: str, tool: str) -> None:
    behind = Counted()
    async with (
        connect(Server.proxy(behind, revision=far), revision=SESSION) as client,
        client.listen(tools=True, uris=["memo://one"]) as changes,
    ):
        behind.end()
        await until(lambda: not behind.open)
        await client.call_tool(tool)
        kinds = set[str]()
        with anyio.fail_after(10):
            while len(kinds) < 2:
                kinds.add(type(await anext(changes)).__name__)
    assert kinds == {"ResourceUpdated", "ToolsChanged"}


async def test_the_last_of_several_subscribers_ends_the_updates() -> None:
    behind = Counted()
    uri = {"uri": "memo://one"}
    async with asgi(Server.proxy(behind, revision=SESSION)) as http:
        await http.initialize(SESSION)
        for method in ("subscribe", "subscribe", "unsubscribe"):
            await http.ask(SESSION, f"resources/{method}", uri)
        await http.ask(SESSION, "tools/call", {"name": "number", "arguments": {}})
        assert "resources/unsubscribe" not in behind.methods
        await http.ask(SESSION, "resources/unsubscribe", uri)
        await until(lambda: "resources/unsubscribe" in behind.methods)
    assert behind.methods.count("resources/subscribe") == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("near", [SESSION, NEWEST])
async def test_an_ended_process_is_restarted_by_the_next_request(near: str, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    starts.touch()
    proxy = Server.proxy([sys.executable, CRASHING, str(starts)], env=PATHS)
    async with connect(proxy, revision=near) as client:
        with pytest.raises(RemoteError, match=r"does not answer: .*exit code 3"):
            await client.call_tool("crash")
        result = await client.call_tool("number")
        assert json.loads(text_of(result)) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_restart_of_connect_is_in_force_instead(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    starts.touch()
    command = [sys.executable, CRASHING, str(starts)]
    proxy = Server.proxy(command, env=PATHS, restart=Restart(limit=1, pauses=()))
    async with connect(proxy, revision=NEWEST) as client:
        with pytest.raises(RemoteError, match="started again"):
            await client.call_tool("crash")
        assert text_of(await client.call_tool("number")) == "2"
        with pytest.raises(RemoteError, match="started again"):
            await client.call_tool("crash")
        for _ in range(2):
            with pytest.raises(RemoteError, match="the limit of Restart"):
                await client.call_tool("number")
    assert starts.read_text().split() == ["start"] * 2


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
async def test_a_server_that_stays_away_is_tried_again_after_pauses() -> None:
    behind, attempts, is_away = Counted(), list[float](), False

    class Away:
        async def serve(self, channel: Any) -> None:
            if is_away:
                attempts.append(anyio.current_time())
                await channel.close()
            else:
                await behind.serve(channel)

    async with connect(Server.proxy(Away()), revision=NEWEST) as client:
        for number in ("1", "2"):  # the pauses begin anew after a session
            assert text_of(await client.call_tool("number")) == number
            is_away = True
            behind.end()
            await until(lambda: not behind.open)
            attempts.clear()
            for _ in range(300):
                with pytest.raises(RemoteError, match="does not answer"):
                    await client.call_tool("number")
                await anyio.sleep(0.5)
            pauses = [round(after - before, 1) for before, after in pairwise(attempts)]
            assert pauses == [0.5, 1, 5, 15, 60, 60]  # the first time it is tried again at once
            is_away = False
            await anyio.sleep(60)


async def test_a_proxy_ends_while_the_server_behind_is_silent() -> None:
    class Silent:
        async def serve(self, channel: Any) -> None:
            await anyio.sleep_forever()

    @asynccontextmanager
    async def failing(server: Server) -> AsyncIterator[None]:
        int("no database")
        yield

    outer = Server("outer")
    outer.mount(Server.proxy(Silent()), prefix="silent")
    outer.mount(Server("failing", lifespan=failing), prefix="failing")
    with anyio.fail_after(5), pytest.raises(ValueError, match="no database"):
        await expect_refusal(connected(outer, revision=NEWEST))


async def test_a_channel_is_used_once(tmp_path: Path) -> None:
    behind = Counted()
    near, far = queue_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(behind.serve, far)
        async with connect(Server.proxy(near), revision=NEWEST) as client:
            assert text_of(await client.call_tool("number")) == "1"
            behind.end()
            await until(lambda: not behind.open)
            with pytest.raises(RemoteError, match="does not answer: the connection is closed"):
                await client.call_tool("number")


async def test_a_refused_subscription_is_refused_each_time() -> None:
    behind = Counted()
    async with connect(Server.proxy(behind, revision=SESSION), revision=SESSION) as client:
        for _ in range(2):
            with pytest.raises(RemoteError, match="memo://none"):
                await client.request("resources/subscribe", {"uri": "memo://none"})
        assert behind.methods.count("resources/subscribe") == 2


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_server_that_cannot_be_reached_is_tried_less_and_less_often(backend: str) -> None:
    class Failing(Counted):
        is_up = True

        async def serve(self, channel: Any) -> None:
            tries.append(anyio.current_time())
            if self.is_up:
                await super().serve(channel)

    async def ask_for(client: Any, seconds: float) -> list[float]:
        """When the server is tried, while a client calls a tool each half second."""
        begin = anyio.current_time()
        tries.clear()
        while anyio.current_time() < begin + seconds:
            with pytest.raises(RemoteError, match="does not answer"):
                await client.call_tool("number")
            await anyio.sleep(0.5)
        return [each - begin for each in tries]

    async def main() -> None:
        behind = Failing()
        proxy = Server.proxy(behind, revision=NEWEST)
        async with connected(proxy, revision=NEWEST) as pair:
            for _ in range(2):
                assert text_of(await pair.client.call_tool("number"))
                behind.is_up = False
                behind.end()
                await until(lambda: not behind.open)
                rounds = await ask_for(pair.client, 150)
                assert rounds == [0, 0.5, 1.5, 6.5, 21.5, 81.5, 141.5]
                behind.is_up = True
                await anyio.sleep(51.5)  # to 60 s after the last time

    tries = list[float]()
    simulate(backend, 0, main)
