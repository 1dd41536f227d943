"""A list with an item that breaks the schema: the item is left out, and the others stay."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from kit.rules import revision_fixture
from kit.scripted import connect_scripted
from kit.wire import ALL, modern
from mcpgen_runtime import REVISIONS, RemoteProtocolError, ValidationError
from mcpgen_runtime.protocol.results import NAMED_ITEMS, drop_malformed_members, result_decoder

revision = revision_fixture(ALL)

pytestmark = pytest.mark.on_asyncio


LISTS: Mapping[str, tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = {
    "tools/list": (
        "list_tools",
        "tools",
        {"inputSchema": {"type": "object"}},
        {"inputSchema": {"properties": {}}},
    ),
    "prompts/list": ("list_prompts", "prompts", {}, {"arguments": [{"required": True}]}),
    "resources/list": ("list_resources", "resources", {"uri": "x://a"}, {"uri": 7}),
    "resources/templates/list": (
        "list_resource_templates",
        "resourceTemplates",
        {"uriTemplate": "x://{a}"},
        {},
    ),
}
"""Per list: the client's method, the member with the items, and what a good and a bad item have."""

MISSHAPEN: tuple[Any, ...] = (None, 7, "name", [], {}, {"name": None}, {"name": 7})


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


BAD_TOOL: Mapping[str, Any] = {"name": "bad", "inputSchema": {"properties": {}}}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("method", LISTS)
async def test_a_bad_item_is_left_out_and_the_others_keep_their_order(
    revision: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask, member, good, bad = LISTS[method]
    items = [{"name": name, **(bad if name == "bad" else good)} for name in ("z", "bad", "a", "m")]
    async with connect_scripted(revision, {member: items}) as (client, _):
        result = await getattr(client, ask)()
    assert [item.name for item in result] == ["z", "a", "m"]
    [warning] = warnings_of(caplog)
    assert warning.startswith(f"{method}: {member}[1] 'bad' is left out: ")


async def test_the_cursor_of_a_page_with_a_bad_item_is_followed(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    pages = (
        {"tools": [tool("a"), BAD_TOOL], "nextCursor": "2"},
        {"tools": [BAD_TOOL], "nextCursor": "3"},
        {"tools": [BAD_TOOL], "nextCursor": "4"},
        {"tools": [BAD_TOOL, tool("b")], "nextCursor": None},
    )
    async with connect_scripted(revision, *pages) as (client, server):
        assert [each.name for each in await client.list_tools()] == ["a", "b"]
    assert [params.get("cursor") for params in server.asked()] == [None, "2", "3", "4"]
    assert len(warnings_of(caplog)) == 4


@pytest.mark.parametrize("item", MISSHAPEN, ids=json.dumps)
async def test_an_item_of_any_other_shape_costs_itself(revision: str, item: Any) -> None:
    async with connect_scripted(revision, {"tools": [item, tool("a"), item]}) as (client, _):
        assert [each.name for each in await client.list_tools()] == ["a"]


async def test_an_unreadable_number_or_byte_drops_only_its_item(revision: str) -> None:
    row = REVISIONS[revision].client_requests["tools/list"]
    whole = json.dumps({"resultType": "complete", "tools": [tool("a"), "HERE", tool("b")]})
    for item in (b'{"name": 1e999}', b'{"name": "\xff"}', b'{"name": 1' + b"0" * 5000 + b"}"):
        page = result_decoder(row)(whole.encode().replace(b'"HERE"', item))
        assert [each.name for each in page.tools] == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [{"tools": {}}, {}, {"tools": [BAD_TOOL], "nextCursor": 7}, {"tools": [], "_meta": 1}],
    ids=json.dumps,
)
async def test_an_error_outside_the_items_stays_an_error(revision: str, wrong: Any) -> None:
    async with connect_scripted(revision, wrong) as (client, _):
        with pytest.raises(RemoteProtocolError, match="tools/list: result"):
            await client.list_tools()


async def test_a_page_names_its_first_bad_items_and_counts_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connect_scripted(ALL[-1], {"tools": [BAD_TOOL] * (NAMED_ITEMS + 7)}) as (client, _):
        assert await client.list_tools() == []
    *named, counted = warnings_of(caplog)
    assert len(named) == NAMED_ITEMS
    assert counted == "tools/list: tools: 7 more are left out"


HINTS = {"ttlMs": 0, "cacheScope": "public"}


@modern
def test_a_result_that_is_malformed_elsewhere_is_refused(revision: str) -> None:
    decode = result_decoder(REVISIONS[revision].client_requests["resources/read"])
    result = {"contents": [{"uri": "memo://a", "text": "a"}], "resultType": "complete", **HINTS}
    assert decode(json.dumps({**result, "ttlMs": -1}).encode()).contents[0].text == "a"
    for wrong in ({**result, "contents": 5}, {**result, "ttlMs": -1, "contents": 5}):
        with pytest.raises(ValidationError):
            decode(json.dumps(wrong).encode())


@pytest.mark.parametrize(
    ("members", "kept"),
    [
        (HINTS, HINTS),
        *(({**HINTS, "ttlMs": ttl}, {"cacheScope": "public"}) for ttl in (-1, True, "5", None)),
        *(({**HINTS, "cacheScope": scope}, {"ttlMs": 0}) for scope in ("own", None, ["a"])),
        (
            {"capabilities": {"extensions": {"a.b/c": 5, "a.b/d": {}}}},
            {"capabilities": {"extensions": {"a.b/d": {}}}},
        ),
        ({"capabilities": 5}, {"capabilities": 5}),
    ],
)
def test_malformed_hints_of_a_result_count_as_absent(
    members: dict[str, Any], kept: dict[str, Any]
) -> None:
    result = dict(members)
    assert drop_malformed_members(result) is (members != kept)
    assert result == kept
