"""How many results a client keeps, and when it keeps none.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.client.client_settings import Caching
from mcp_protocol.errors import ConnectionClosedError
from package.client.cached import hinted, names, tools
from package.rules import holding
from package.scripted import scripted

caching = pytest.mark.parametrize("revision", holding("caching.freshness-formula"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@caching
@pytest.mark.parametrize("off", [False, Caching(entries=0), Caching(size=0)])
async def test_keeping_results_can_be_turned_off(revision: str, off: Any) -> None:
    async with scripted(revision, tools("a"), tools("b"), cache=off) as (client, _):
        assert [names(await client.list_tools()) for _ in range(2)] == [["a"], ["b"]]
        assert len(client.cache) == 0


@caching
async def test_what_is_not_used_for_longest_goes_first(revision: str) -> None:
    read = hinted("resources/read")
    async with scripted(revision, *[read] * 9, cache=Caching(entries=2)) as (client, server):
        for name in "ababcab":
            await client.read_resource(f"m://{name}")
        assert len(client.cache) == 2
    assert [sent["uri"][-1] for sent in server.asked()] == ["a", "b", "c", "a", "b"]


@caching
async def test_what_is_kept_is_bounded_in_bytes(revision: str) -> None:
    def sized(size: int) -> dict[str, Any]:
        return hinted("resources/read", contents=[{"uri": "m://x", "text": "x" * size}])

    answers = [sized(size) for size in (400, 400, 2000, 400)]
    async with scripted(revision, *answers, cache=Caching(size=1200)) as (client, server):
        for name in "abcaba":
            await client.read_resource(f"m://{name}")
            assert len(client.cache) <= 2
    assert [sent["uri"][-1] for sent in server.asked()] == ["a", "b", "c"]


@caching
async def test_what_is_given_is_the_callers_own(revision: str) -> None:
    async with scripted(revision, tools("a")) as (client, _):
        (await client.list_tools_page()).tools.clear()
        (await client.list_tools_page()).tools.clear()
        assert names(await client.list_tools()) == ["a"]


@caching
async def test_a_closed_client_answers_nothing_from_memory(revision: str) -> None:
    async with scripted(revision, tools("a")) as (client, _):
        await client.list_tools()
        await client.close()
        with pytest.raises(ConnectionClosedError):
            await client.list_tools()
