"""The module `testing`, for users who test what they built on the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kit.live import server_with
from kit.wire import HANDSHAKE
from mcpgen_runtime import RemoteError, RevisionError, Server
from mcpgen_runtime.testing import Pair, connected, contract, pair_fixture

pytestmark = pytest.mark.costly


def weather_server() -> Server:
    """A server with one tool."""

    async def forecast(city: str) -> str:
        return f"{city}: sun"

    return server_with(forecast)


weather = pair_fixture(weather_server)
old_weather = pair_fixture(weather_server(), revision=HANDSHAKE[0])


async def test_messages_are_recorded_as_sent_on_the_wire(weather: Pair) -> None:
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


async def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(RevisionError, match="1999-01-01"):
        async with connected(weather_server(), revision="1999-01-01"):
            pass


async def test_a_contract_needs_mcpgen_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcpgen.contract.testing", None)
    with pytest.raises(ModuleNotFoundError, match="needs mcpgen: install"):
        await contract(weather_server(), "server.contract.json")


CHILD = """
import asyncio, sys
import anyio
import pytest
from mcpgen_runtime import Server
from mcpgen_runtime.testing import Pair, pair_fixture

def make() -> Server:
    server = Server("weather")

    @server.tool()
    async def forecast(city: str) -> str:
        await anyio.sleep(0)
        return f"{city}: sun"

    return server

DECORATOR
weather = pair_fixture(make, **options)

MARK
async def test_a_call(weather: Pair) -> None:
    result = await weather.client.call_tool("forecast", {"city": "Oslo"})
    assert result.content[0].text == "Oslo: sun"

MARK
async def test_a_fresh_session(weather: Pair) -> None:
    assert not any(each.get("method") == "tools/call" for each in weather.sent)
    with anyio.fail_after(10):
        await weather.client.call_tool("forecast", {"city": "Oslo"})

class TestInClass:
    MARK
    async def test_another_call(self, weather: Pair) -> None:
        await weather.client.list_tools()
"""
DECORATED = "import pytest_asyncio; options = {'fixture': pytest_asyncio.fixture}"
PLAIN = "options = {}"
ASYNCIO = ("-o", "asyncio_default_fixture_loop_scope=function", "--asyncio-mode")
NO_ASYNCIO = ("-p", "no:asyncio")
BY_ASYNCIO, BY_ANYIO = "@pytest.mark.asyncio", "@pytest.mark.anyio"
RUNS = {
    "asyncio, auto": ((*ASYNCIO, "auto"), "", PLAIN, 3),
    "asyncio, strict": ((*ASYNCIO, "strict"), BY_ASYNCIO, DECORATED, 3),
    "anyio beside asyncio": ((*ASYNCIO, "strict"), BY_ANYIO, PLAIN, 6),
    "anyio": (NO_ASYNCIO, BY_ANYIO, PLAIN, 6),
}
"""By name: options of pytest, mark of the tests, how the fixture is made, tests that pass."""


@pytest.mark.parametrize("name", RUNS)
def test_a_fixture_has_the_event_loop_of_the_running_plugin(name: str, tmp_path: Path) -> None:
    options, mark, decorator, passed = RUNS[name]
    if "asyncio" in name:
        pytest.importorskip("pytest_asyncio")
    text = CHILD.replace("DECORATOR", decorator).replace("MARK", mark)
    (tmp_path / "test_child.py").write_text(text, "utf-8")
    plugins = ("-panyio", *(() if options[:2] == NO_ASYNCIO else ("-ppytest_asyncio.plugin",)))
    words = ("-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", f"{tmp_path}", "-W", "error")
    child = subprocess.run(
        [sys.executable, *words, *plugins, *options, "-p", "no:cacheprovider", "test_child.py"],
        cwd=tmp_path,
        env={
            "PYTHONPATH": f"{Path(__file__).parents[2] / 'generated'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # others take half of the time
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert f"{passed} passed" in child.stdout, child.stdout + child.stderr
