"""Middleware that keeps results for a time, and that cuts long ones."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kit.cached import Clock
from kit.live import handlers_with, server_with
from kit.requestor import Work, requestor
from kit.respondent import accept_result
from kit.wire import ALL, PER_REQUEST, both_lifecycles, every
from mcpgen_runtime import (
    Context,
    Image,
    Principal,
    Server,
    ToolError,
    cache_results,
    connect,
    limit_results,
)
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.on_asyncio


def shop() -> Server:
    """A server whose results count the calls."""
    server_calls: list[str] = []

    def count(name: str) -> str:
        server_calls.append(name)
        return f"{name} {len(server_calls)}"

    async def price(item: str) -> str:
        text = count(item)
        if item == "nothing":
            raise ToolError(text)
        return text

    server = server_with(price)

    server.add_tool(lambda item: count(item), "order")
    server.add_resource(lambda: count("items"), "shop://items", name="items")
    server.add_prompt(lambda name: count(name), "greet")
    return server


async def text(client: Any, tool: str, item: str) -> str:
    value: str = (await client.call_tool(tool, {"item": item})).content[0].text
    return value


@every
async def test_a_result_is_kept_for_its_target_and_params(revision: str) -> None:
    server, clock = shop(), Clock()
    server.middleware(cache_results(60, ["price", "shop://items", "greet"], clock=clock))
    async with connect(server, revision=revision) as client:
        client.cache.clear()
        assert await text(client, "price", item="pear") == "pear 1"
        assert await text(client, "price", item="pear") == "pear 1"
        assert await text(client, "price", item="apple") == "apple 2"
        assert await text(client, "order", item="pear") == "pear 3"
        assert await text(client, "order", item="pear") == "pear 4"
        for _ in range(2):
            client.cache.clear()
            assert (await client.read_resource("shop://items")).contents[0].text == "items 5"
            prompt = await client.get_prompt("greet", {"name": "Ann"})
            assert prompt.messages[0].content.text == "Ann 6"
        clock.now += 60
        assert await text(client, "price", item="pear") == "pear 7"
        assert await text(client, "price", item="nothing") == "nothing 8"
        assert await text(client, "price", item="nothing") == "nothing 9"


async def test_principals_and_revisions_share_no_results() -> None:
    server = shop()
    server.middleware(cache_results(60, ["price"]))
    ann, bob = Principal("ann"), Principal("bob")
    texts: list[str] = []
    for principal, revision in ((ann, ALL[-1]), (bob, ALL[-1]), (ann, ALL[0]), (ann, ALL[-1])):
        async with connected(server, revision=revision, principal=principal) as pair:
            texts.append(await text(pair.client, "price", item="pear"))
    assert texts == ["pear 1", "pear 2", "pear 3", "pear 1"]


@both_lifecycles
async def test_questions_are_asked_though_results_are_kept(revision: str) -> None:
    calls = itertools.count(1)

    async def seat(ctx: Context) -> str:
        answer = await ctx.elicit("Which row?", int, key="row")
        return f"{answer.content} {next(calls)}"

    server, guest = server_with(seat), handlers_with(elicit=accept_result(value=12))
    server.middleware(cache_results(60, ["seat"]))
    async with connected(server, revision=revision, handlers=guest) as pair:
        assert await pair.client.call_tool("seat", returns=str) == "12 1"
        if revision in PER_REQUEST:  # the answers are those of one request
            assert await pair.client.call_tool("seat", returns=str) == "12 2"


async def test_so_many_results_are_kept_the_newest_ones() -> None:
    server, clock = shop(), Clock()
    server.middleware(cache_results(60, ["price"], size=2, clock=clock))
    async with connected(server, revision=ALL[-1]) as pair:
        texts: list[str] = []
        for item, seconds in (("a", 30), ("b", 30), ("a", 0), ("c", 0), ("a", 0), ("b", 0)):
            texts.append(await text(pair.client, "price", item))
            clock.now += seconds
    # a is made anew when its time is over, so that c takes the place of b
    assert texts == ["a 1", "b 2", "a 3", "c 4", "a 3", "b 5"]


def writer() -> Server:
    server = Server("writer")

    @server.tool(structured=False)
    async def write(*, lengths: list[int]) -> list[Any]:
        return [*("x" * length for length in lengths), Image(data=b"PNG", mime_type="image/png")]

    @server.tool()
    async def count(upto: int) -> list[int]:
        return list(range(upto))

    return server


@every
async def test_long_texts_are_cut_and_say_so(revision: str) -> None:
    server = writer()
    server.middleware(limit_results(10))
    async with connected(server, revision=revision) as pair:
        result = await pair.client.call_tool("write", {"lengths": [8, 5, 1]})
        *texts, image = result.content
        assert [each.text for each in texts] == [
            "x" * 8,
            "xx\n[cut: 2 of 5 characters]",
            "\n[cut: 0 of 1 characters]",
        ]
        assert image.mime_type == "image/png"
        short = await pair.client.call_tool("write", {"lengths": [10]})
        assert short.content[0].text == "x" * 10


async def test_a_task_passes_the_limit_of_results() -> None:
    work = Work()
    work.server.middleware(limit_results(10))
    async with requestor("memory", work.server) as client:
        assert (await client.start("waits"))["status"] == "working"


@pytest.mark.parametrize("revision", ["2025-06-18", ALL[-1]])
async def test_a_structured_value_that_is_too_long_is_an_error(revision: str) -> None:
    server = writer()
    server.middleware(limit_results(100, tools=["count"]))
    async with connected(server, revision=revision) as pair:
        assert not (await pair.client.call_tool("count", {"upto": 9})).is_error
        failed = await pair.client.call_tool("count", {"upto": 90})
        assert failed.is_error
        assert "characters, more than 100: ask for less" in failed.content[0].text
        other = await pair.client.call_tool("write", {"lengths": [200]})
        assert len(other.content[0].text) == 200


def test_numbers_and_names_of_middleware_are_checked() -> None:
    with pytest.raises(ValueError, match="expected positive numbers, got 1000 results for 0"):
        cache_results(0, ["a"])
    with pytest.raises(ValueError, match="expected positive numbers, got 0 results for 1 seconds"):
        cache_results(1, ["a"], size=0)
    cache_results(0.1, ["a"], size=1)
    with pytest.raises(TypeError, match="targets: expected a collection of strings, got 'a'"):
        cache_results(1, "a")
    with pytest.raises(ValueError, match="characters: expected at least 1, got 0"):
        limit_results(0)
    limit_results(1)
    with pytest.raises(TypeError, match="tools: expected a collection of strings, got 'a'"):
        limit_results(1, "a")
