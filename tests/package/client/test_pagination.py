"""Lists in pages, as a client follows them: by cursors that mean nothing to it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from kit.scripted import connect_scripted
from kit.wire import every
from mcpgen_runtime import (
    InvalidParamsError,
    RemoteProtocolError,
)

pytestmark = pytest.mark.on_asyncio


ITEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tools/list": ("tools", {"inputSchema": {"type": "object"}}),
    "prompts/list": ("prompts", {}),
    "resources/list": ("resources", {"uri": "x://a"}),
    "resources/templates/list": ("resourceTemplates", {"uriTemplate": "x://{a}"}),
}
"""The member that holds the items of a list, and what an item has beside its name."""

CALLS = {
    "tools/list": "list_tools",
    "prompts/list": "list_prompts",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
}

ODD = ["", " ", "0", "null", "\u00e9\u4e16\U0001f600", "a\nb\t\x00c", '{"page": 2}', "x" * 10_000]
"""Texts that a client could mistake for something else than a cursor."""


def page(method: str, names: str, **more: Any) -> dict[str, Any]:
    """A page with an item for each letter."""
    member, rest = ITEMS[method]
    return {member: [{"name": name, **rest} for name in names], **more}


def tools(names: str, **more: Any) -> dict[str, Any]:
    return page("tools/list", names, **more)


@pytest.mark.requirement(
    "pagination.continue-with-cursor", "pagination.operations", "pagination.missing-is-end"
)
@pytest.mark.requirement("pagination.both-flows", "prompts.client-pagination")
@pytest.mark.requirement("pagination.no-fixed-page-size")
@every
@pytest.mark.parametrize("method", ITEMS)
@pytest.mark.parametrize("cursors", [(), ("c1", "c2")], ids=["one page", "three pages"])
async def test_a_list_is_followed_to_the_page_without_a_cursor(
    revision: str, method: str, cursors: tuple[str, ...]
) -> None:
    pages = [page(method, "ab", nextCursor=cursor) for cursor in cursors] + [page(method, "ab")]
    async with connect_scripted(revision, *pages) as (client, server):
        items = await getattr(client, CALLS[method])()
    assert [item.name for item in items] == ["a", "b"] * len(pages)
    assert {request["method"] for request in server.heard} == {method}
    assert server.asked() == [{}, *({"cursor": cursor} for cursor in cursors)]


@pytest.mark.requirement("pagination.cursor-no-format", "pagination.cursor-no-parse")
@pytest.mark.requirement("pagination.empty-cursor-is-valid")
@every
async def test_a_cursor_is_sent_back_as_it_came(revision: str) -> None:
    pages = [tools(str(n), nextCursor=cursor) for n, cursor in enumerate(ODD)]
    async with connect_scripted(revision, *pages, tools("")) as (client, server):
        assert len(await client.list_tools()) == len(ODD)
    assert [params.get("cursor") for params in server.asked()] == [None, *ODD]


@pytest.mark.requirement("pagination.cursor-no-format", "pagination.cursor-no-parse")
@every
async def test_page_by_page_a_cursor_is_the_callers(revision: str) -> None:
    async with connect_scripted(revision, tools("a", nextCursor=""), tools("b")) as (
        client,
        server,
    ):
        first = await client.list_tools_page()
        second = await client.list_tools_page(first.next_cursor)
        with pytest.raises(InvalidParamsError, match="cursor"):
            await client.list_tools_page(7)
    assert [tool.name for tool in (*first.tools, *second.tools)] == ["a", "b"]
    assert not second.next_cursor
    assert server.asked() == [{}, {"cursor": ""}]


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


@every
@pytest.mark.parametrize("cursors", ["2", "23", "2343"], ids=len)
async def test_a_list_whose_cursor_comes_again_ends_with_a_warning(
    revision: str, cursors: str, caplog: pytest.LogCaptureFixture
) -> None:
    cycle = [tools(f"{at}", nextCursor=cursor) for at, cursor in enumerate(cursors)]
    async with connect_scripted(revision, rest=itertools.cycle(cycle)) as (client, server):
        names = [tool.name for tool in await client.list_tools()]
        first_again = len(set(cursors)) + 1
        assert names == [str(at % len(cursors)) for at in range(first_again)]
        assert len(server.asked()) == first_again
        assert len((await client.list_tools_page()).tools) == 1
    (warning,) = warned(caplog)
    assert warning.startswith("tools/list: the list ends at nextCursor '")


REFUSED = {"error": {"code": -32602, "message": "cursor: unknown"}}


@every
@pytest.mark.parametrize("method", ITEMS)
@pytest.mark.parametrize("count", [1, 2])
async def test_a_list_ends_at_an_empty_cursor_that_is_refused(
    revision: str, method: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    pages = [page(method, "ab", nextCursor="x"), page(method, "cd", nextCursor="")][-count:]
    async with connect_scripted(revision, *pages, REFUSED) as (client, _):
        names = [item.name for item in await getattr(client, CALLS[method])()]
    assert names == [*"abcd"][-2 * count :]
    (warning,) = warned(caplog)
    assert "ends at an empty nextCursor, refused" in warning
    assert "cursor: unknown" in warning


@every
@pytest.mark.parametrize("count", [1, 2])
async def test_a_list_ends_at_an_empty_cursor_for_its_first_page(
    revision: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    pages = [tools("ab", nextCursor="x"), tools("cd", nextCursor="")][-count:]
    async with connect_scripted(revision, rest=itertools.cycle(pages)) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == [*"abcd"][-2 * count :]
    (warning,) = warned(caplog)
    assert warning == "tools/list: the list ends at an empty nextCursor, for the first page"


NO_CURSORS: list[Any] = [7, False, {}, ["c"]]
NO_PAGES: list[Any] = [{"tools": None}, {"nextCursor": None}, {"tools": {}}]


@every
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        *(({"tools": [], "nextCursor": cursor}, "nextCursor") for cursor in NO_CURSORS),
        *((page, "") for page in NO_PAGES),
    ],
    ids=str,
)
async def test_a_malformed_page_fails_the_list_alone(revision: str, bad: Any, reason: str) -> None:
    async with connect_scripted(revision, bad, tools("b")) as (client, _):
        with pytest.raises(RemoteProtocolError, match=rf"tools/list: result: .*{reason}"):
            await client.list_tools()
        assert len(await client.list_tools()) == 1


@pytest.mark.requirement("pagination.cursor-no-persist")
@every
@pytest.mark.parametrize("method", ITEMS)
async def test_null_is_no_cursor_and_a_new_session_starts_its_lists_anew(
    revision: str, method: str
) -> None:
    for cursor in ("kept?", None):
        last = page(method, "a", nextCursor=None)
        pages = [page(method, "a", nextCursor=cursor), last] if cursor else [last]
        async with connect_scripted(revision, *pages) as (client, server):
            items = await getattr(client, CALLS[method])()
            assert [item.name for item in items] == ["a"] * len(pages)
        assert server.asked() == [{}, {"cursor": "kept?"}][: len(pages)]
