"""State of one session: values that handlers keep, and items visible to its client alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from kit.asgi_client import asgi
from kit.live import tool_names
from kit.wire import ALL, HANDSHAKE, SESSIONS, request, speaking_to
from mcpgen_runtime import CacheHint, Context, LocalProtocolError, RemoteError, Server
from mcpgen_runtime.testing import Pair, connected

outer = pytest.mark.parametrize("revision", [HANDSHAKE[0], HANDSHAKE[-1]])
TOOLS_CHANGED = "notifications/tools/list_changed"


@dataclass
class Cart:
    items: list[str] = field(default_factory=list[str])


def shop(**settings: Any) -> Server:
    server = Server("shop", **settings)

    @server.tool()
    def add(item: str, ctx: Context) -> str:  # runs in a worker thread
        cart = ctx.session_state(Cart)
        cart.items.append(item)
        return ",".join(cart.items)

    @server.tool()
    async def count_anew(ctx: Context) -> int:
        cart = ctx.session_state(Cart, expires=1e-9)
        cart.items.append("one")
        return len(cart.items)

    @server.tool()
    async def unlock(ctx: Context) -> None:
        await ctx.enable_components(tags={"premium"})

    @server.tool()
    def hide(name: str, ctx: Context) -> None:
        ctx.disable_components(name)  # type: ignore[unused-coroutine]  # blocks, in a worker thread

    @server.tool()
    async def reset(ctx: Context) -> None:
        await ctx.reset_visibility()

    @server.tool(tags={"premium"})
    async def forecast() -> str:
        return "sun"

    @server.resource("shop://gold", tags={"premium"})
    def gold() -> str:
        return "gold"

    server.disable(tags={"premium"})
    return server


async def call(pair: Pair, tool: str, **arguments: Any) -> str:
    result: Any = await pair.client.call_tool(tool, arguments)
    return str(result.content[0].text) if result.content else ""


@outer
async def test_a_value_lasts_as_long_as_its_session(revision: str) -> None:
    server = shop()
    async with (
        connected(server, revision=revision) as one,
        connected(server, revision=revision) as two,
    ):
        assert await call(one, "add", item="pear") == "pear"
        assert await call(one, "add", item="plum") == "pear,plum"
        assert await call(two, "add", item="fig") == "fig"
    async with connected(server, revision=revision) as three:
        assert await call(three, "add", item="nut") == "nut"


async def test_a_value_lasts_from_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    server, begin = Server("shop"), time.monotonic()
    now = begin
    monkeypatch.setattr(time, "monotonic", lambda: now)

    @server.tool()
    async def count(ctx: Context) -> int:
        with pytest.raises(ValueError, match="expected more than 0 seconds, got 0"):
            ctx.session_state(Cart, expires=0)
        cart = ctx.session_state(Cart, expires=10)
        cart.items.append("one")
        return len(cart.items)

    counts: list[str] = []
    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        for seconds in (0.0, 9.0, 18.0, 28.0):
            now = begin + seconds
            counts.append(await call(pair, "count"))
    assert counts == ["1", "2", "3", "1"]


async def test_the_last_rule_decides_until_they_are_reset() -> None:
    server = shop()
    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        everyone = await tool_names(pair.client)
        result = await pair.client.call_tool("hide", {"name": "nobody"})
        assert result.is_error
        assert not any(message.get("method") == TOOLS_CHANGED for message in pair.received)
        await call(pair, "unlock")
        await call(pair, "hide", name="forecast")
        await call(pair, "hide", name="add")
        with pytest.raises(RemoteError, match="unknown tool: 'add'"):
            await call(pair, "add", item="pear")
        assert await tool_names(pair.client) == [name for name in everyone if name != "add"]
        await call(pair, "unlock")
        assert "forecast" in await tool_names(pair.client)
        server.add_tool(lambda: "new", "later", tags={"premium"})  # a change for all
        assert "later" in await tool_names(pair.client)
        server.remove_tool("later")
        await call(pair, "reset")
        assert await tool_names(pair.client) == everyone


@pytest.mark.parametrize("is_mounted", [False, True])
async def test_a_list_by_rules_of_its_session_is_stale_at_once(is_mounted: bool) -> None:
    hint = CacheHint(1000, "public")
    server, outer = shop(cache=hint), Server("outer", cache=hint)
    outer.mount(server)
    hints: list[tuple[int, str]] = []
    async with speaking_to(outer if is_mounted else server, HANDSHAKE[-1]) as end:
        for tool in ("count_anew", "unlock"):
            await end.ask("tools/call", {"name": tool})
            await end.send(request(ALL[-1], "tools/list", id=tool))
            while (message := await end.receive()).get("id") != tool:
                assert message["method"].endswith("list_changed")
            hints.append((message["result"]["ttlMs"], message["result"]["cacheScope"]))
    assert hints == [(1000, "public"), (0, "private")]


async def test_a_session_shows_nothing_that_the_outer_server_hides() -> None:
    server, outer = shop(), Server("outer")
    server.enable(tags={"premium"})
    outer.mount(server)
    outer.disable("forecast")
    server.disable(tags={"premium"})
    async with connected(outer, revision=HANDSHAKE[-1]) as pair:
        await call(pair, "unlock")
        assert "forecast" not in await tool_names(pair.client)
        assert [each.uri for each in await pair.client.list_resources()] == ["shop://gold"]


@pytest.mark.parametrize(
    ("tool", "alternative"), [("count_anew", "return a handle"), ("unlock", "forbidden_items")]
)
async def test_without_a_session_the_error_names_what_works_instead(
    tool: str, alternative: str
) -> None:
    async with connected(shop(), revision=ALL[-1]) as pair:
        with pytest.raises(RemoteError, match="belongs to no session; instead, .*" + alternative):
            await call(pair, tool)
    async with asgi(shop(), stateless=True) as http:
        params = {"name": tool, "arguments": {}}
        reply = await http.post(request(SESSIONS[-1], "tools/call", params))
        assert "needs a session, and this server keeps none" in reply.json["error"]["message"]


async def test_a_session_has_so_many_values_and_rules() -> None:
    server = Server("many")

    @server.tool()
    async def keep(ctx: Context) -> str:
        kinds = [lambda number=number: number for number in range(101)]
        kept = [ctx.session_state(kind) for kind in kinds[:100]]
        with pytest.raises(LocalProtocolError, match="at most 100 types or functions"):
            ctx.session_state(kinds[100])
        return str(kept == [ctx.session_state(kind) for kind in kinds[:100]])

    @server.tool(tags={f"tag{number}" for number in range(101)})
    async def hide(ctx: Context) -> str:
        for number in range(100):
            await ctx.disable_components(tags={f"tag{number}"})
        await ctx.enable_components(tags={"tag99"})  # replaces a rule
        with pytest.raises(LocalProtocolError, match="at most 100 rules"):
            await ctx.disable_components(tags={"tag100"})
        return "hidden"

    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        assert await call(pair, "keep") == "True"
        assert await call(pair, "hide") == "hidden"
