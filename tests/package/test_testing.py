"""What `testing` gives to those who build on the package."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol import RemoteError, RevisionError, Server
from mcp_protocol.r2025_06_18 import client as r2025_06_18
from mcp_protocol.testing import Pair, connected, pair_fixture
from package.wire import ALL, HANDSHAKE

pytestmark = pytest.mark.anyio


def weather_server() -> Server:
    """A server with one tool."""
    server = Server("weather", version="1.0")

    @server.tool()
    async def forecast(city: str) -> str:
        return f"{city}: sun"

    return server


weather = pair_fixture(weather_server)
old_weather = pair_fixture(weather_server(), revision=HANDSHAKE[0])


@pytest.mark.parametrize("revision", ALL)
async def test_a_pair_speaks_the_revision_that_is_asked_for(revision: str) -> None:
    async with connected(weather_server(), revision=revision) as pair:
        assert pair.client.revision == revision
        result: Any = await pair.client.call_tool("forecast", {"city": "Oslo"})
    assert result.content[0].text == "Oslo: sun"


async def test_what_passes_is_kept_as_it_is_on_the_wire(weather: Pair) -> None:
    with pytest.raises(RemoteError):
        await weather.client.call_tool("no such tool")
    asked, answered = weather.sent[-1], weather.received[-1]
    assert (asked["jsonrpc"], asked["method"]) == ("2.0", "tools/call")
    assert asked["params"]["name"] == "no such tool"
    assert (answered["id"], answered["error"]["code"]) == (asked["id"], -32602)


async def test_a_fixture_is_fresh_for_each_test(weather: Pair) -> None:
    assert not any(message.get("method") == "tools/call" for message in weather.sent)


async def test_a_fixture_may_pin_a_revision(old_weather: Pair) -> None:
    assert old_weather.client.revision == HANDSHAKE[0]
    assert [tool.name for tool in await old_weather.client.list_tools()] == ["forecast"]


async def test_the_client_of_a_pair_answers_with_its_handlers() -> None:
    class Home(r2025_06_18.ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": [{"uri": "file:///home"}]}

    server = Server("homes")

    @server.tool()
    async def home(ctx: Any) -> str:
        found = await ctx.request("roots/list")
        return str(found.roots[0].uri)

    handlers: Any = Home()
    async with connected(server, revision="2025-06-18", handlers=handlers) as pair:
        assert "roots/list" not in [message.get("method") for message in pair.received]
        assert pair.sent[0]["params"]["capabilities"] == {"roots": {}}


async def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(RevisionError, match="1999-01-01"):
        async with connected(weather_server(), revision="1999-01-01"):
            pass
