"""Content as a client reads it: known blocks typed, and a bad one fails its call and no other."""

from __future__ import annotations

from typing import Any

import pytest

from kit.live import TEXT, text_of
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL
from mcpgen_runtime import RemoteProtocolError, to_builtins

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)

BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "hello"},
    "image": {"type": "image", "data": "+//+", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "YWJj", "mimeType": "audio/wav"},
    "resource_link": {"type": "resource_link", "uri": "x://a", "name": "a"},
    "resource": {"type": "resource", "resource": {"uri": "x://a", "text": "hello"}},
}
SINCE = {"audio": "content.audio-shape", "resource_link": "content.resource-link-shape"}
"""The ledger entry that says in which revisions a kind exists, unless it is all."""

KNOWN = [
    (revision, kind)
    for kind in BLOCKS
    for revision in (revisions_holding(SINCE[kind]) if kind in SINCE else ALL)
]
UNKNOWN = [(revision, kind) for revision in ALL for kind in BLOCKS if (revision, kind) not in KNOWN]


async def read(revision: str, block: Any) -> Any:
    """The block as a client reads it in a tool's result; the session has to live on."""
    async with connect_scripted(revision, {"content": [block]}, TEXT) as (client, _):
        try:
            return (await client.call_tool("t")).content[0]
        finally:
            assert text_of(await client.call_tool("t")) == "done"


@pytest.mark.requirement(
    "content.block-type-discriminates", "content.text-shape", "content.image-shape"
)
@pytest.mark.requirement(
    "content.audio-shape", "content.resource-link-shape", "content.embedded-shape"
)
@pytest.mark.requirement("content.unknown-fields-tolerated", "content.annotations-optional")
@pytest.mark.parametrize(("revision", "kind"), KNOWN)
async def test_each_kind_of_block_is_read_as_what_it_is(revision: str, kind: str) -> None:
    annotations = {"audience": ["user", "assistant"], "priority": 0.9}
    block = {**BLOCKS[kind], "annotations": annotations}
    content = await read(revision, {**block, "x": [1]})
    assert content.type == kind
    assert to_builtins(content) == block


@pytest.mark.requirement("content.meta-optional", "content.annotations-last-modified")
@pytest.mark.parametrize(
    ("revision", "kind"),
    [
        (revision, kind)
        for revision, kind in KNOWN
        if revision in revisions_holding("content.meta-optional")
    ],
)
async def test_blocks_keep_their_meta_and_the_text_of_their_dates(revision: str, kind: str) -> None:
    for date in ("2025-01-12T15:00:58Z", "last week"):
        block = {**BLOCKS[kind], "_meta": {"a/b": [1.0]}, "annotations": {"lastModified": date}}
        assert to_builtins(await read(revision, block)) == block


@pytest.mark.requirement("content.embedded-annotations-place")
@pytest.mark.parametrize("revision", revisions_holding("content.embedded-annotations-place"))
async def test_annotations_inside_an_embedded_resource_do_no_harm(revision: str) -> None:
    inner = {"uri": "x://a", "text": "hello", "annotations": {"priority": 0.5}}
    content = await read(revision, {"type": "resource", "resource": inner})
    assert (content.resource.uri, content.resource.text) == ("x://a", "hello")


BAD: dict[str, Any] = {
    "no type": {"text": "hello"},
    "unknown type": {"type": "video", "data": "YWJj", "mimeType": "video/webm"},
    "null type": {"type": None, "text": "hello"},
    "no text": {"type": "text"},
    "null text": {"type": "text", "text": None},
    "no data": {"type": "image", "mimeType": "image/png"},
    "no mimeType": {"type": "image", "data": "YWJj"},
    "neither text nor blob": {"type": "resource", "resource": {"uri": "x://a"}},
    "no uri": {"type": "resource", "resource": {"text": "hello"}},
    "unknown audience": {**BLOCKS["text"], "annotations": {"audience": ["system"]}},
    "audience is no list": {**BLOCKS["text"], "annotations": {"audience": "user"}},
    "priority above 1": {**BLOCKS["text"], "annotations": {"priority": 1.5}},
    "priority below 0": {**BLOCKS["text"], "annotations": {"priority": -1}},
    "text": "hello",
    "null": None,
    "list": [],
}


@pytest.mark.requirement("tools.client-validates-results", "content.block-type-discriminates")
@pytest.mark.requirement("content.text-shape", "content.image-shape", "content.embedded-shape")
@pytest.mark.requirement("content.annotations-audience", "content.annotations-priority")
@every
@pytest.mark.parametrize("block", BAD.values(), ids=BAD)
async def test_a_bad_block_fails_its_call_alone(revision: str, block: Any) -> None:
    with pytest.raises(RemoteProtocolError, match=r"tools/call: result: .*content\[0\]"):
        await read(revision, block)


@pytest.mark.requirement("content.no-audio-2024", "content.no-resource-link-before-2025-06")
@pytest.mark.parametrize(("revision", "kind"), UNKNOWN)
async def test_a_block_of_a_later_revision_is_none_here(revision: str, kind: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"Invalid value '{kind}'"):
        await read(revision, BLOCKS[kind])


@every
async def test_an_unreadable_result_can_still_be_passed_on_raw(revision: str) -> None:
    block = BAD["unknown type"]
    async with connect_scripted(revision, {"content": [BLOCKS["text"]], "x": block}) as (client, _):
        raw = bytes(await client.request_raw("tools/call", {"name": "t"}))
    assert b'"video"' in raw
