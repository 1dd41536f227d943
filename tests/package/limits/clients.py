"""Limits of clients: lists, results, times, authorization, locks."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from kit.auth_answers import PRM_URL, RESOURCE, World, around, discover_server, json_response
from kit.live import FakeServer
from kit.scripted import ScriptedServer, connect_scripted
from kit.wire import PER_REQUEST
from mcpgen_runtime import (
    AddressRules,
    AuthorizationError,
    ClientLimits,
    McpError,
    Timeouts,
    connect,
)
from mcpgen_runtime.auth.address_rules import AddressCheck
from mcpgen_runtime.auth.flows import code_flow
from mcpgen_runtime.auth.registration import ClientProfile
from mcpgen_runtime.client.lock.lock_file import changed_pointers
from mcpgen_runtime.command_masking import masked_command
from package.client.lock.locking import SHOP, ListingServer, locked, record
from package.limits.table import is_valid, limit, succeeds

NEWEST = PER_REQUEST[-1]


def pages(*sizes: int) -> list[dict[str, Any]]:
    """A list of pages with so many tools."""
    names, schema = (f"t{number}" for number in itertools.count()), {"type": "object"}
    tools = ([{"name": next(names), "inputSchema": schema} for _ in range(size)] for size in sizes)
    *answers, last = ({"tools": each, "nextCursor": f"{page}"} for page, each in enumerate(tools))
    return [*answers, {"tools": last["tools"]}]


async def is_listed(answers: list[dict[str, Any]], **how: Any) -> bool:
    """Whether a client takes a list."""
    async with connect_scripted(NEWEST, *answers, **how) as (client, _):
        return await succeeds(client.list_tools())


limit("ClientLimits.list_pages", 4)(
    lambda amount, limits: is_listed(pages(*[1] * amount), limits=limits)
)
limit("ClientLimits.list_items", 6)(
    lambda amount, limits: is_listed(pages(amount - 1, 1), limits=limits)
)


@limit("ClientLimits.input_rounds", 3)
async def rounds_of_input(amount: int, limits: ClientLimits) -> bool:
    again = {"resultType": "input_required", "inputRequests": {}, "requestState": "again"}
    done = {"content": [{"type": "text", "text": "done"}]}
    async with connect_scripted(NEWEST, *[again] * amount, done, limits=limits) as (client, _):
        return await succeeds(client.call_tool("any"))


@limit("Timeouts.opening", 20)
async def seconds_of_an_opening(amount: int, timeouts: Timeouts) -> bool:
    class Slow(FakeServer):
        async def agree_to_open(self, message: Any) -> None:
            await anyio.sleep(amount - 0.5)
            await super().agree_to_open(message)

    try:
        async with connect(Slow(NEWEST), revision=NEWEST, timeouts=timeouts):
            return True
    except McpError:
        return False


@limit("Timeouts.listing", 100)
async def seconds_of_a_list(amount: int, timeouts: Timeouts) -> bool:
    class Slow(ScriptedServer):
        async def answer(self, request: Any, result: Any) -> None:
            if "tools" in result:
                await anyio.sleep((amount - 0.5) / 5)
            await super().answer(request, result)

    server = Slow(NEWEST, pages(1, 1, 1, 1, 1))
    async with connect(server, revision=NEWEST, timeouts=timeouts) as client:
        return await succeeds(client.list_tools())


@limit("pkg.auth.address_rules.URL_CHARACTERS", 100)
def url_of_an_authorization_server(amount: int) -> bool:
    check = AddressCheck("https://mcp.example/mcp", AddressRules())
    url = "https://a.example/".ljust(amount, "a")
    return is_valid(check.check, url, "token_endpoint", errors=AuthorizationError)


@limit("pkg.client.lock.lock_file.MAX_BYTES", 20_000)
async def file_of_a_lock(amount: int) -> bool:
    with TemporaryDirectory() as folder:
        path = Path(folder, "lock.json")
        await record(path)
        path.write_bytes(path.read_bytes().ljust(amount))
        try:
            async with locked(path, ListingServer()):
                return True
        except McpError:
            return False


@limit("pkg.client.lock.lock_file.SHOWN_POINTERS", 5)
def pointers_of_a_difference(amount: int) -> bool:
    old, new = (
        {"name": "a", "inputSchema": {f"{number}": value for number in range(amount)}}
        for value in (1, 2)
    )
    return len(changed_pointers("tools", old, new)) == amount


@limit("pkg.client.lock.server_lock.MAX_ITEM", 500)
async def stored_item(amount: int) -> bool:
    item: dict[str, Any] = {"name": "new", "description": "", "inputSchema": {"type": "object"}}
    item["description"] = "x" * (amount - len(json.dumps(item)))
    with TemporaryDirectory() as folder:
        path = Path(folder, "lock.json")
        await record(path)
        server = ListingServer({**SHOP, "tools": [*SHOP["tools"], item]})
        async with locked(path, server) as client:
            await client.list_tools()
            (difference,) = client.lock_differences
            return difference.new is not None


@limit("pkg.client.lock.server_lock.MAX_DIFFERENCES", 5)
async def stored_differences(amount: int) -> bool:
    with TemporaryDirectory() as folder:
        path = Path(folder, "lock.json")
        await record(path)
        more = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(amount)]
        server = ListingServer({**SHOP, "tools": [*SHOP["tools"], *more]}, page=amount + 10)
        async with locked(path, server) as client:
            await client.list_tools()
            return len(client.lock_differences) == amount


@limit("pkg.command_masking.COMMAND_TEXT")
def shown_command(amount: int) -> bool:
    words = ["a" * 99] * (amount // 100)
    text = " ".join([*words, "b" * (amount - 100 * len(words))])
    return "characters" not in masked_command(text.split())


@limit("pkg.auth.flows.VISIT_CHARACTERS", 2000)
def url_for_a_browser(amount: int) -> bool:
    def visited(scope: str) -> str | None:
        world = World({f"GET {PRM_URL}": json_response({**RESOURCE, "scopes_supported": [scope]})})
        server = discover_server(world)
        try:
            world.run(code_flow(around(), ClientProfile("Agent"), server, (scope,)))
        except AuthorizationError:
            return None
        return world.visited[0]

    shortest = visited("a")
    assert shortest is not None
    return visited("a" * (amount - len(shortest) + 1)) is not None
