"""Results that a client keeps: how many, how long, for what, and what makes them stale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest

from kit.cached import Clock, cacheable_result, names, tools
from kit.live import FakeServer, handlers_with
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import CHANGED, UPDATED
from mcpgen_runtime import Caching, ConnectionClosedError, RemoteError, connect

pytestmark = pytest.mark.on_asyncio

CACHING = revisions_holding("caching.freshness-formula")
caching = pytest.mark.parametrize("revision", CACHING)
Ask = Callable[[Any], Any]

CACHEABLE: Mapping[str, Ask] = {
    "tools/list": lambda client: client.list_tools(),
    "prompts/list": lambda client: client.list_prompts(),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("memo://one"),
}
each = pytest.mark.parametrize("method", CACHEABLE)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.requirement(
    "caching.freshness-formula",
    "caching.ttl-positive-fresh",
    "caching.refetch-when-stale",
    "caching.no-auto-polling",
    "caching.polling-jitter",
    "caching.ttl-is-hint",
    "caching.ttl-without-list-changed",
    "caching.private-same-authorization",
)
@caching
@each
@pytest.mark.parametrize("scope", ["private", "public"])
async def test_a_result_is_used_while_fresh_and_fetched_again_later(
    revision: str, method: str, scope: str, clock: Clock
) -> None:
    ask = CACHEABLE[method]
    answers = [cacheable_result(method, 2000, scope)] * 2
    async with connect_scripted(revision, *answers, cache=Caching(clock=clock)) as (client, server):
        first = await ask(client)
        clock.pass_ms(1999)
        again = await ask(client)
        assert again == first
        assert again is not first
        assert len(server.heard) == 1
        clock.pass_ms(1)
        await anyio.wait_all_tasks_blocked()
        assert len(server.heard) == 1  # what nobody asks for is not polled, nor at any interval
        assert await ask(client) == first
        assert [request["method"] for request in server.heard] == [method] * 2


@pytest.mark.requirement("caching.freshness-formula")
@caching
async def test_discovery_results_are_cached(revision: str, clock: Clock) -> None:
    class Discovered(FakeServer):
        async def agree_to_open(self, message: Mapping[str, Any]) -> None:
            result = {"supportedVersions": [revision], "capabilities": {}}
            await self.answer(message, {**result, "ttlMs": 2000, "cacheScope": "public"})

    server = Discovered(revision)
    async with connect(server, revision=revision, cache=Caching(clock=clock)) as client:
        for _ in range(2):
            assert (await client.discover()).supported_versions == [revision]
        assert len(server.opening) == 2  # the first one is that of the client's own opening
        clock.pass_ms(2000)
        await client.discover()
        assert len(server.opening) == 3


@pytest.mark.requirement(
    "caching.ttl-zero-stale", "caching.ttl-absent-zero", "caching.ttl-negative-zero"
)
@caching
@each
@pytest.mark.parametrize("ttl", [0, -5, None, "60000", 0.5])
async def test_without_a_valid_lifetime_a_result_is_stale_at_once(
    revision: str, method: str, ttl: Any
) -> None:
    without = {name: value for name, value in cacheable_result(method).items() if name != "ttlMs"}
    answers = [without if ttl is None else cacheable_result(method, ttl)] * 2
    async with connect_scripted(revision, *answers) as (client, server):
        for _ in range(2):
            await CACHEABLE[method](client)
    assert len(server.heard) == 2


@pytest.mark.requirement(
    "caching.private-not-shared", "caching.public-shareable", "caching.scope-values"
)
@caching
@pytest.mark.parametrize("scope", ["private", "secret", "PUBLIC", 5, None])
async def test_private_results_are_used_for_one_user_only(
    revision: str, scope: Any, clock: Clock
) -> None:
    settings = Caching(clock=clock)
    read = cacheable_result("resources/read", scope=scope)
    mine = connect_scripted(revision, tools("a", scope="public"), read, read, cache=settings)
    yours = connect_scripted(revision, tools("b", scope="public"), read, cache=settings)
    async with mine as (my_client, asked), yours as (your_client, other):
        for client in (my_client, your_client):
            await client.list_tools()
            assert (await client.read_resource("memo://one")).cache_scope == "private"
        assert (len(asked.heard), len(other.heard)) == (2, 2)
        my_client.cache.forget_private()  # as if the token were another one now
        assert names(await my_client.list_tools()) == ["a"]
        await my_client.read_resource("memo://one")
        assert [request["method"] for request in asked.heard[2:]] == ["resources/read"]


@caching
@pytest.mark.parametrize("cache", [None, False, Caching(entries=0), Caching(size=0)])
async def test_typed_requests_of_an_open_client_are_answered_from_memory_if_wanted(
    revision: str, cache: Any
) -> None:
    how = {} if cache is None else {"cache": cache}
    async with connect_scripted(revision, *[tools("a")] * 5, **how) as (client, server):
        for _ in range(2):  # what the caller does with a result does not reach the cache
            (await client.list_tools_page()).tools.clear()
        await client.request("tools/list")
        await client.request_raw("tools/list")
        assert names(await client.list_tools()) == ["a"]
        assert len(server.heard) == (3 if cache is None else 5)
        assert len(client.cache) == (cache is None)
        await client.close()
        with pytest.raises(ConnectionClosedError):
            await client.list_tools()


@pytest.mark.requirement("caching.key-method-and-params")
@caching
async def test_a_result_answers_the_same_request_and_no_other(revision: str, clock: Clock) -> None:
    reads = [
        cacheable_result("resources/read", contents=[{"uri": "m://x", "text": at}]) for at in "abcd"
    ]
    answers = (*reads, tools("a"), tools("b"), cacheable_result("prompts/list"))

    async def read(uri: str, **how: Any) -> str:
        text: str = (await client.read_resource(uri, **how)).contents[0].text
        return text

    async with connect_scripted(revision, *answers, cache=Caching(clock=clock)) as (client, server):
        tenants = ({"com.example/tenant": 1}, {"com.example/tenant": 2})
        for _ in range(2):
            assert [await read("m://1"), await read("m://2")] == ["a", "b"]
            assert [await read("m://1", meta=tenant) for tenant in tenants] == ["c", "d"]
        traced = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        assert await read("m://1", meta=traced) == "a"
        assert await read("m://1", timeout=5, on_progress=print) == "a"
        for _ in range(2):
            assert names((await client.list_tools_page()).tools) == ["a"]
            assert names((await client.list_tools_page("c")).tools) == ["b"]
            await client.list_prompts()
    assert len(server.heard) == len(answers)


@pytest.mark.requirement("caching.input-required-no-hints", "caching.no-cache-of-retries")
@caching
async def test_results_that_required_input_are_not_cached(revision: str) -> None:
    wants = {"resultType": "input_required", "requestState": "s", "ttlMs": 60_000}
    asks = {**wants, "inputRequests": {"r": {"method": "roots/list"}}}
    read = cacheable_result("resources/read")
    answers = (wants, read, asks, read, read)
    roots = handlers_with(list_roots={"roots": []})
    async with connect_scripted(revision, *answers, handlers=roots) as (client, server):
        for _ in range(4):
            await client.read_resource("memo://one")
    assert len(server.heard) == len(answers)


MADE_STALE = [
    (CHANGED["toolsListChanged"], {}, {"tools/list"}),
    (CHANGED["promptsListChanged"], {}, {"prompts/list"}),
    (CHANGED["resourcesListChanged"], {}, {"resources/list", "resources/templates/list"}),
    (UPDATED, {"uri": "memo://one"}, {"resources/read"}),
    (UPDATED, {"uri": "memo://one/part"}, {"resources/read"}),
    (UPDATED, {"uri": "memo://one-and-all"}, set[str]()),
    ("notifications/message", {"level": "info", "data": 1}, set[str]()),
]


@pytest.mark.requirement("caching.notification-invalidates", "caching.ttl-with-list-changed")
@caching
@pytest.mark.parametrize(("notification", "params", "stale"), MADE_STALE)
async def test_a_notification_makes_what_it_speaks_of_stale(
    revision: str, notification: str, params: Any, stale: set[str], clock: Clock
) -> None:
    answers = [cacheable_result(method) for method in CACHEABLE]
    answers += [
        answer for method, answer in zip(CACHEABLE, answers, strict=True) if method in stale
    ]
    async with connect_scripted(revision, *answers, cache=Caching(clock=clock)) as (client, server):
        for ask in CACHEABLE.values():
            await ask(client)
        await server.notify(notification, params)
        await anyio.wait_all_tasks_blocked()
        for ask in CACHEABLE.values():
            await ask(client)
    sent = [request["method"] for request in server.heard]
    assert set(sent[len(CACHEABLE) :]) == stale
    assert len(sent) == len(answers)


@pytest.mark.requirement(
    "caching.pages-independent", "caching.expired-page-refetch", "caching.pages-ttl-may-differ"
)
@caching
async def test_each_page_of_a_list_is_kept_for_itself(revision: str, clock: Clock) -> None:
    pages = (
        tools("a", ttl=1000, nextCursor="two"),
        tools("b", ttl=60_000, nextCursor="three"),
        tools("c", "a", ttl=1000),
        tools("a2", ttl=1000, nextCursor="two"),
        tools("c2"),
    )
    async with connect_scripted(revision, *pages, cache=Caching(clock=clock)) as (client, server):
        for _ in range(2):
            assert names(await client.list_tools()) == ["a", "b", "c", "a"]
        clock.pass_ms(2000)
        assert names(await client.list_tools()) == ["a2", "b", "c2"]
    asked = [sent.get("cursor") for sent in server.asked()]
    assert asked == [None, "two", "three", None, "three"]


@pytest.mark.requirement("caching.invalid-cursor-discards")
@caching
async def test_an_outdated_cursor_has_the_whole_list_fetched_anew(
    revision: str, clock: Clock
) -> None:
    answers = (
        tools("a", nextCursor="old"),
        tools("b", ttl=1000),
        {"error": {"code": -32602, "message": "no such cursor"}},
        tools("c", nextCursor="new"),
        {"error": {"code": -32602, "message": "no such cursor either"}},
    )
    async with connect_scripted(revision, *answers, cache=Caching(clock=clock)) as (client, server):
        await client.list_tools()
        clock.pass_ms(2000)
        with pytest.raises(RemoteError, match="either"):
            await client.list_tools()
    assert [sent.get("cursor") for sent in server.asked()] == [None, "old", "old", None, "new"]


@pytest.mark.requirement("caching.snapshot-refetch", "caching.no-cross-page-consistency")
@caching
async def test_to_see_a_list_as_a_whole_one_clears_the_cache(revision: str) -> None:
    pages = (tools("a", nextCursor="x"), tools("a"), tools("b"))
    async with connect_scripted(revision, *pages) as (client, server):
        assert names(await client.list_tools()) == ["a", "a"]
        client.cache.clear()
        assert names(await client.list_tools()) == ["b"]
    assert [sent.get("cursor") for sent in server.asked()] == [None, "x", None]


@pytest.mark.requirement("caching.notification-invalidates")
@caching
@pytest.mark.parametrize(
    "drop", ["notification", "clear", "forget", "forget_private", "forget_resource"]
)
async def test_a_result_requested_before_a_drop_is_not_kept(revision: str, drop: str) -> None:
    words = {"forget": ("tools/list",), "forget_resource": ("memo://one",)}.get(drop, ())
    method = "resources/read" if drop == "forget_resource" else "tools/list"
    async with connect_scripted(revision) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(CACHEABLE[method], client)
            await anyio.wait_all_tasks_blocked()
            if drop == "notification":
                await server.notify(CHANGED["toolsListChanged"], {})
            else:
                getattr(client.cache, drop)(*words)
            await server.answer(server.heard[0], cacheable_result(method))
        assert len(client.cache) == 0


@pytest.mark.requirement("caching.early-refetch")
@caching
@pytest.mark.parametrize(
    ("ask", "listing"),
    [
        (lambda client: client.call_tool("x"), "tools/list"),
        (lambda client: client.get_prompt("x"), "prompts/list"),
        (lambda client: client.read_resource("memo://x"), "resources/list"),
    ],
)
async def test_a_server_that_forgot_its_list_is_asked_for_it_again(
    revision: str, ask: Ask, listing: str
) -> None:
    unknown = {"error": {"code": -32602, "message": "unknown"}}
    busy = {"error": {"code": -32603, "message": "busy"}}
    listed = cacheable_result(listing)
    async with connect_scripted(revision, listed, busy, unknown, listed) as (client, server):
        await CACHEABLE[listing](client)
        for _ in range(2):
            with pytest.raises(RemoteError):
                await ask(client)
            await CACHEABLE[listing](client)
    assert [request["method"] for request in server.heard].count(listing) == 2


@caching
@pytest.mark.parametrize(
    ("bound", "sizes", "wanted", "asked"),
    [
        (Caching(entries=2), [4] * 5, "abacabc", "abcbc"),  # the least recently used goes
        (Caching(size=1200), [400, 400, 2000, 400, 400], "abcabdba", "abcda"),
    ],
    ids=["entries", "bytes"],
)
async def test_cached_results_are_bounded_in_number_and_bytes(
    revision: str, bound: Caching, sizes: list[int], wanted: str, asked: str
) -> None:
    answers = [
        cacheable_result("resources/read", contents=[{"uri": "m://x", "text": "x" * size}])
        for size in sizes
    ]
    async with connect_scripted(revision, *answers, cache=bound) as (client, server):
        for name in wanted:
            await client.read_resource(f"m://{name}")
            assert len(client.cache) <= 2
    assert [sent["uri"][-1] for sent in server.asked()] == [*asked]
