"""The README's larger server does what the README says of it, in every revision."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mcp_protocol import Server
from mcp_protocol.testing import connected
from package.wire import ALL
from package_single import examples

pytestmark = pytest.mark.anyio


@pytest.fixture
def city(monkeypatch: pytest.MonkeyPatch, root: Path) -> Server:
    """The server of the README, as a module of its own that found our package as `pkg`."""
    module = types.ModuleType("city")
    monkeypatch.setitem(sys.modules, "city", module)
    monkeypatch.setitem(sys.modules, "pkg", sys.modules["mcp_protocol"])
    source = examples()["city.py"]
    exec(compile(source, "city.py", "exec"), module.__dict__)
    server: Server = module.__dict__["server"]
    return server


@pytest.mark.parametrize("revision", ALL)
async def test_the_readmes_server_serves(city: Server, revision: str) -> None:
    async with connected(city, revision=revision) as pair:
        client: Any = pair.client
        population = await client.call_tool("population", {"city": "Oslo"})
        assert population.content[0].text == "400000"
        refused = await client.call_tool("forecast", {"city": "Atlantis"})
        assert (refused.is_error, refused.content[0].text) == (True, "no such city")
        found = await client.call_tool("forecast", {"city": "Oslo", "days": 1})
        assert '"degrees":20.5' in found.content[0].text
        now = await client.read_resource("city://Oslo/now")
        assert now.contents[0].text == "sun over Oslo"
        greeting = await client.get_prompt("greet", {"city": "Oslo"})
        assert greeting.messages[0].content.text == "Write a greeting to the people of Oslo."
