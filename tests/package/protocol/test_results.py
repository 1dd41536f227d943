"""A list with an item that breaks the schema: the item is left out, and the others stay."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.rules import revision_fixture
from kit.scripted import connect_scripted
from kit.wire import ALL
from mcpgen_runtime import REVISIONS, RemoteProtocolError, encode
from mcpgen_runtime.protocol.results import result_decoder

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


@pytest.mark.parametrize(
    "wrong",
    [{"tools": {}}, {}, {"tools": [BAD_TOOL], "nextCursor": 7}, {"tools": [], "_meta": 1}],
    ids=json.dumps,
)
async def test_an_error_outside_the_items_stays_an_error(revision: str, wrong: Any) -> None:
    async with connect_scripted(revision, wrong) as (client, _):
        with pytest.raises(RemoteProtocolError, match="tools/list: result"):
            await client.list_tools()


TEXTS: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("results.json").read_text())
"""Results by method, as text in which a lone surrogate is a byte that is no UTF-8."""


@pytest.mark.structs("errors of msgspec, which a model of pydantic words otherwise")
@pytest.mark.parametrize("extra", [False, True])
def test_each_result_is_decoded_as_expected(
    extra: bool, snapshot: SnapshotAssertion, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    for method, texts in TEXTS.items():
        decode = result_decoder(REVISIONS[ALL[-1]].client_requests[method], extra)
        for text in texts:
            try:
                outcome = encode(decode(text.encode(errors="surrogateescape"))).decode()
            except msgspec.DecodeError as error:
                outcome = f"{type(error).__name__}: {error}"
            seen += ["", f"{method}: {text[:200]!a}", f"  {outcome}", *warnings_of(caplog)]
            caplog.clear()
    assert "\n".join(seen) == snapshot
