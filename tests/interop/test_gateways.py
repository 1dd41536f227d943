"""Gateways between pipes and HTTP, both ways: our client, our server, or both at their ends."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from interop.processes import ENVIRONMENT, HERE, LOOPBACK, NPM, OURS, run_server, starting
from interop.revisions import HANDSHAKE, STATELESS
from mcpgen_runtime import connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

NODE_MODULES = NPM / "node_modules"
OFFICIAL = (sys.executable, str(HERE / "official_server.py"))
READY = r"http://127\.0\.0\.1:\d+/"


def supergateway(release: str) -> str:
    return str(NODE_MODULES / release / "dist" / "index.js")


def remote(release: str, way: str) -> tuple[str, ...]:
    script = str(NODE_MODULES / release / "dist" / "proxy.js")
    return (script, "--allow-http", "--transport", f"{way}-only")


TO_HTTP: dict[str, tuple[str, ...]] = {
    "supergateway 4 http": (supergateway("supergateway"), "--streamableHttp"),
    "supergateway 4 sse": (supergateway("supergateway"), "--sse"),
    "supergateway 3 http": (supergateway("supergateway-3"), "--streamableHttp"),
    "supergateway 3 sse": (supergateway("supergateway-3"), "--sse"),
    "mcp-remote 0.15 http": remote("mcp-remote", "http"),
    "mcp-remote 0.15 sse": remote("mcp-remote", "sse"),
    "mcp-remote 0.1 http": remote("mcp-remote-0.1", "http"),
    "mcp-remote 0.1 sse": remote("mcp-remote-0.1", "sse"),
}
"""Gateways that a client talks to over pipes, and the arguments before the URL of the server."""

KNOWS_NO_SESSIONS = frozenset({"mcp-remote 0.15 http"})

TO_STDIO: dict[str, tuple[str, ...]] = {
    f"supergateway {release} {way}": (supergateway(folder), *arguments)
    for release, folder in (("4", "supergateway"), ("3", "supergateway-3"))
    for way, arguments in {
        "sse": (),
        "stateless": ("--outputTransport", "streamableHttp"),
        "stateful": ("--outputTransport", "streamableHttp", "--stateful"),
    }.items()
}
"""Gateways that a client talks to over HTTP."""

SPOKEN = {"sse": HANDSHAKE, "stateful": HANDSHAKE[1:], "stateless": HANDSHAKE[-1:]}
"""The revisions that clients are pinned to; one alone where each request costs a process."""

ONE_CLIENT = frozenset({"supergateway 3 sse"})
"""Gateways that end when a second client comes."""


@pytest.fixture(scope="module")
def url_of() -> Iterator[Callable[[str], str]]:
    """URL of a server by its name and its way; it is started when first asked for."""
    commands = {
        "ours http": (*OURS, "127.0.0.1:0"),
        "official http": (*OFFICIAL, "http"),
        "official sse": (*OFFICIAL, "sse"),
    }
    with starting() as start:

        def url(name: str) -> str:
            if name == "ours sse":
                return url("ours http").replace("/mcp", "/sse")
            return start(*commands[name])

        yield url


def kept_in(folder: Path) -> dict[str, str]:
    """The environment of gateways that keep their files in a folder."""
    return {**ENVIRONMENT, "HOME": str(folder), "MCP_REMOTE_CONFIG_DIR": str(folder)}


environment = pytest.fixture(lambda tmp_path: kept_in(tmp_path))


def to_http(gateway: str, url: str) -> list[str]:
    """The command of a gateway to a URL: the URL stands after the script, or after its option."""
    script, *arguments = TO_HTTP[gateway]
    if gateway.startswith("mcp-remote"):
        return ["node", script, url, *arguments]
    return ["node", script, *arguments, url, "--logLevel", "none"]


async def visit(client: Any) -> None:
    """Use a server through a gateway with our client, or with that of the official SDK."""
    listed = await client.list_tools()
    assert "add" in [tool.name for tool in getattr(listed, "tools", listed)]
    assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
    [text] = (await client.read_resource("city://Oslo/weather")).contents
    assert text.text == "sun in Oslo"


@pytest.mark.parametrize("gateway", TO_HTTP)
async def test_a_client_of_all_revisions_works_behind_a_gateway(
    gateway: str, url_of: Callable[[str], str], environment: dict[str, str]
) -> None:
    """Release 3 of supergateway ends at the probe, and is started anew."""
    command = to_http(gateway, url_of(f"ours {gateway.rpartition(' ')[2]}"))
    async with connect(command, env=environment) as client:
        assert client.revision == (STATELESS if gateway in KNOWS_NO_SESSIONS else HANDSHAKE[-1])
        await visit(client)


@pytest.mark.parametrize("server", ["ours", "official"])
@pytest.mark.parametrize("gateway", TO_HTTP)
async def test_a_client_of_one_revision_works_behind_a_gateway(
    gateway: str, server: str, url_of: Callable[[str], str], environment: dict[str, str]
) -> None:
    revision = HANDSHAKE[0] if server == "ours" else HANDSHAKE[-1]
    command = to_http(gateway, url_of(f"{server} {gateway.rpartition(' ')[2]}"))
    async with connect(command, revision=revision, env=environment) as client:
        assert client.revision == revision
        await visit(client)


@pytest.mark.parametrize("gateway", TO_HTTP)
async def test_the_official_client_meets_our_server_behind_a_gateway(
    gateway: str, url_of: Callable[[str], str], environment: dict[str, str]
) -> None:
    command, *arguments = to_http(gateway, url_of(f"ours {gateway.rpartition(' ')[2]}"))
    start = mcp.StdioServerParameters(command=command, args=arguments, env=environment)
    async with mcp.Client(mcp.stdio_client(start), mode="legacy", cache=None) as client:
        await visit(client)


@pytest.fixture(scope="module", params=TO_STDIO)
def gateway_to_ours(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Callable[[], str]]]:
    """A gateway to our server over pipes: its name, and what says where a test finds it."""
    name: str = request.param
    environment = kept_in(tmp_path_factory.mktemp("gateway"))
    with ExitStack() as running:

        def start() -> str:
            url: str = running.enter_context(serving_stdio(name, OURS, environment))
            return url

        yield name, start if name in ONE_CLIENT else cache(start)


def serving_stdio(gateway: str, server: Sequence[str], environment: dict[str, str]) -> Any:
    """Run a gateway to a server over pipes; yields the URL up to the path."""
    command = ("node", "--require", LOOPBACK, *TO_STDIO[gateway], "--stdio", shlex.join(server))
    return run_server(*command, says=READY, environment=environment)


def path_of(gateway: str) -> str:
    return "sse" if gateway.endswith("sse") else "mcp"


async def test_clients_take_turns_with_our_stdio_server_by_a_gateway(
    gateway_to_ours: tuple[str, Callable[[], str]],
) -> None:
    gateway, url_now = gateway_to_ours
    url = url_now()
    for revision in [None] if gateway in ONE_CLIENT else [None, *SPOKEN[gateway.split()[2]]]:
        async with connect(url + path_of(gateway), revision=revision) as client:
            assert client.revision in (revision or (HANDSHAKE[-1], STATELESS))
            await visit(client)


async def test_the_official_client_uses_our_stdio_server_by_a_gateway(
    gateway_to_ours: tuple[str, Callable[[], str]],
) -> None:
    gateway, url_now = gateway_to_ours
    url = url_now()
    way = sse_client if gateway.endswith("sse") else streamable_http_client
    async with mcp.Client(way(url + path_of(gateway)), mode="legacy", cache=None) as client:
        await visit(client)


@pytest.mark.parametrize("gateway", ["supergateway 4 sse", "supergateway 4 stateful"])
async def test_our_client_uses_the_official_stdio_server_by_a_gateway(
    gateway: str, environment: dict[str, str]
) -> None:
    with serving_stdio(gateway, OFFICIAL, environment) as url:
        async with connect(url + path_of(gateway)) as client:
            await visit(client)
