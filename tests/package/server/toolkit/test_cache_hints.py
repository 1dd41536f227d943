"""How long clients may keep what a server lists and shows: what leaves, and what can't be said."""

from __future__ import annotations

from typing import Any

import pytest

from kit.respondent import accept_result, connect_respondent
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST, speaking_to
from mcpgen_runtime import CacheHint, Context, InputRequired, Server
from requirements import EVERY_REVISION

modern = pytest.mark.parametrize("revision", revisions_holding("caching.hints-required"))

LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "discover": "server/discover",
}


def cached_server(cache: Any = None, **settings: Any) -> Server:
    """A server with three of all that can be listed, and a hint for one resource."""
    server = Server("cached", cache=cache, **settings)
    for name in "abc":
        server.tool(name=name)(lambda: "x")
        server.prompt(name=name)(lambda: "x")
        server.resource(f"x://{name}")(lambda: "x")
        server.resource(f"y://{name}/{{n}}")(lambda n: n)
    server.resource("x://kept", cache=CacheHint(60_000, "public"))(lambda: "x")
    server.resource("z://{n}", cache=CacheHint(5))(lambda n: n)

    @server.resource("x://asks", cache=CacheHint(60_000, "public"))
    async def asks(ctx: Context) -> str | InputRequired:
        return (await ctx.elicit("Sure?", bool)).action

    return server


def hint(result: Any) -> tuple[Any, Any]:
    """The two members of a hint; `None` for one that is not there."""
    return result.get("ttlMs"), result.get("cacheScope")


@pytest.mark.requirement(
    "caching.hints-required",
    "caching.public-crosses-authorization",
    "caching.ttl-without-list-changed",
)
@modern
@pytest.mark.parametrize(
    ("settings", "listed"),
    [
        ({}, (0, "private")),  # without settings nothing is promised
        ({"cache": CacheHint(1500, "public")}, (1500, "public")),
        ({"cache": CacheHint(1500, "public"), "list_changed": False}, (1500, "public")),
    ],
)
async def test_one_hint_holds_for_lists_and_each_resource_has_its_own(
    revision: str, settings: Any, listed: tuple[int, str]
) -> None:
    async with speaking_to(cached_server(**settings), revision) as end:
        hints = [hint((await end.ask(method))["result"]) for method in LISTS.values()]
        read = [
            hint((await end.ask("resources/read", {"uri": uri}))["result"])
            for uri in ("x://kept", "z://1", "y://a/1", "x://a")
        ]
    assert hints == [listed] * 5
    assert read == [(60_000, "public"), (5, "private"), (0, "private"), (0, "private")]


@modern
@pytest.mark.parametrize("listed", LISTS)
async def test_each_list_can_have_a_hint_of_its_own(revision: str, listed: str) -> None:
    async with speaking_to(cached_server({listed: CacheHint(7)}), revision) as end:
        hints = {name: hint((await end.ask(method))["result"]) for name, method in LISTS.items()}
    assert hints == {name: (7 if name == listed else 0, "private") for name in LISTS}


@pytest.mark.requirement("caching.same-scope-all-pages")
@modern
@pytest.mark.parametrize("method", list(LISTS.values())[:4])
async def test_all_pages_of_a_list_have_one_hint(revision: str, method: str) -> None:
    server = cached_server(CacheHint(9, "public"), page_size=1)
    hints = []
    async with speaking_to(server, revision) as end:
        params: dict[str, Any] = {}
        while True:
            result = (await end.ask(method, params))["result"]
            hints.append(hint(result))
            if "nextCursor" not in result:
                break
            params = {"cursor": result["nextCursor"]}
    assert len(hints) >= 3
    assert set(hints) == {(9, "public")}


@pytest.mark.requirement("caching.input-required-no-hints")
@modern
async def test_results_that_depend_on_input_are_not_cacheable(revision: str) -> None:
    answers = {"elicitation/create": accept_result(value=True)}
    async with connect_respondent(cached_server(), revision, answers) as client:
        last = await client.ask("resources/read", {"uri": "x://asks"})
        (first,) = client.rounds
    assert not {"ttlMs", "cacheScope"} & first.keys()
    assert hint(last["result"]) == (0, "private")


@pytest.mark.parametrize("revision", [name for name in ALL if name not in PER_REQUEST])
async def test_where_there_are_no_hints_none_leaves(revision: str) -> None:
    async with speaking_to(cached_server(CacheHint(9, "public")), revision, {}) as end:
        for name, method in LISTS.items():
            if name != "discover":
                assert hint((await end.ask(method))["result"]) == (None, None)
        read = await end.ask("resources/read", {"uri": "x://kept"})
    assert hint(read["result"]) == (None, None)


@pytest.mark.requirement(
    "caching.ttl-integer-ms",
    "caching.ttl-non-negative",
    "caching.scope-values",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    ("ttl", "scope", "kind"),
    [
        (-1, "private", ValueError),
        (1500.0, "private", TypeError),
        (True, "private", TypeError),
        (0, "shared", ValueError),
        (0, None, ValueError),
    ],
)
def test_a_hint_that_is_none_is_refused(ttl: Any, scope: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="expected"):
        CacheHint(ttl, scope)


@pytest.mark.parametrize("given", [5, "public", {"tools": 1000}, {"tool": CacheHint(1)}])
def test_invalid_cache_hints_are_refused_by_the_constructor(given: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"cache.*: expected .*(CacheHint|tools)"):
        Server("s", cache=given)
