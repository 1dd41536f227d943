"""`Server.proxy` of a configuration: several servers behind one, each under its name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.live import text_of
from kit.stdio_process import PATHS
from kit.wire import ALL
from mcpgen_runtime import RemoteError, Restart, Server, TransportError, connect
from mcpgen_runtime.testing import connected
from package.proxy.test_proxy import NEWEST, shop, use_shop

BROKEN = [sys.executable, "-c", "raise SystemExit('no database')"]
every = pytest.mark.parametrize("revision", ALL)


def clock() -> Server:
    server = Server("clock")
    server.add_tool(lambda: "noon", name="time")
    return server


@every
async def test_names_of_several_servers_have_configured_prefixes(
    revision: str,
) -> None:
    proxy = Server.proxy({"mcpServers": {"shop": shop(), "clock": clock()}}, name="all")
    async with connected(proxy, revision=revision) as pair:
        client: Any = pair.client
        assert client.server_info["name"] == "all"
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["shop_order", "shop_book", "shop_fail", "clock_time"]
        assert text_of(await client.call_tool("clock_time")) == "noon"
        await use_shop(client, "shop_", "shop://shop/")


@every
async def test_one_server_alone_keeps_its_names_and_instructions(revision: str) -> None:
    proxy = Server.proxy({"mcpServers": {"shop": shop(), "off": {"disabled": True}}})
    async with connected(proxy, revision=revision) as pair:
        client: Any = pair.client
        assert client.instructions == "Order first."
        assert [tool.name for tool in await client.list_tools()] == ["order", "book", "fail"]


@every
async def test_a_failing_server_is_reported_and_the_others_are_served(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    servers = {"clock": clock(), "broken": {"command": BROKEN[0], "args": BROKEN[1:]}, "odd": {}}
    async with connected(Server.proxy({"mcpServers": servers}), revision=revision) as pair:
        client: Any = pair.client
        assert "server 'broken'" in caplog.text
        assert "no database" in caplog.text
        assert "mcpServers.odd: expected either command or url" in caplog.text
        assert [tool.name for tool in await client.list_tools()] == ["clock_time"]
        with pytest.raises(RemoteError, match="the server behind proxy 'broken' does not answer"):
            await client.call_tool("broken_any")
        with pytest.raises(RemoteError, match="unknown tool: 'odd_any'"):
            await client.call_tool("odd_any")


class Late:
    """A shop that refuses its first clients."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    async def serve(self, channel: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            await channel.close()
        else:
            await shop().serve(channel)


@every
async def test_a_server_that_is_up_later_is_found_at_the_next_use(revision: str) -> None:
    proxy = Server.proxy({"mcpServers": {"clock": clock(), "shop": Late(1)}})
    async with connected(proxy, revision=revision) as pair:
        client: Any = pair.client
        assert "pear" in text_of(await client.call_tool("shop_order", {"item": "pear"}))
        client.cache.clear()
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["clock_time", "shop_order", "shop_book", "shop_fail"]


async def test_a_configuration_without_any_usable_server_is_an_error() -> None:
    proxy = Server.proxy({"mcpServers": {"one": BROKEN, "two": BROKEN}})
    with pytest.raises(
        TransportError, match=r"(?s)none of the servers could be opened: one: .*; two: "
    ):
        async with connected(proxy):
            pass


async def test_restart_is_for_the_commands_of_a_configuration() -> None:
    servers = {"clock": clock(), "broken": {"command": BROKEN[0], "args": BROKEN[1:]}}
    proxy = Server.proxy({"mcpServers": servers}, restart=Restart())
    async with connected(proxy, revision=NEWEST) as pair:
        client: Any = pair.client
        assert text_of(await client.call_tool("clock_time")) == "noon"


async def test_the_path_of_a_file_is_a_configuration_too(tmp_path: Path) -> None:
    code = "from mcpgen_runtime import Server; s = Server('s'); s.add_tool(lambda: 'up', name='up')"
    words = [sys.executable, "-c", f"{code}; s.run()"]
    file = tmp_path / "servers.json"
    servers: dict[str, Any] = {"one": {"command": words[0], "args": words[1:], "env": PATHS}}
    file.write_text(json.dumps({"mcpServers": servers | {"two": {"url": "http://127.0.0.1:9/"}}}))
    async with connect(Server.proxy(file)) as client:
        assert text_of(await client.call_tool("one_up")) == "up"


def test_an_unusable_configuration_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.json"):
        Server.proxy(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"prefix: expected letters, digits.*got 'my shop'"):
        Server.proxy({"mcpServers": {"my shop": shop(), "clock": clock()}})
    with pytest.raises(ValueError, match=r"mcpServers\.shop: expected either command or url"):
        Server.proxy({"mcpServers": {"shop": {}}})
