"""Tools as a client calls and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from kit.live import TEXT, live, text_of
from kit.rules import revisions_holding
from kit.samples import PARAMS
from kit.scripted import connect_scripted
from kit.wire import ALL, facts, speaking_to
from mcpgen_runtime import REVISIONS, Hints, InvalidParamsError, RemoteError, Server, hints_of
from mcpgen_runtime.facts import Lifecycle

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)


class Name(StrEnum):
    ECHO = "echo"


@pytest.mark.requirement("tools.call-request-shape")
@every
@pytest.mark.parametrize(
    ("given", "params"),
    [
        (("echo",), {"name": "echo"}),
        (("echo", {}), {"name": "echo", "arguments": {}}),
        (("echo", {"text": "\u00e9", "n": [1, 1.0, None]}), ...),
        (("echo", MappingProxyType({"a": (1, 2)})), {"name": "echo", "arguments": {"a": [1, 2]}}),
        (
            (Name.ECHO, {"deep": [{"a": {}}]}),
            {"name": "echo", "arguments": {"deep": [{"a": {}}]}},
        ),
    ],
    ids=["name alone", "no arguments", "values", "mapping", "deep"],
)
async def test_a_call_names_the_tool_and_has_arguments_as_one_object(
    revision: str, given: tuple[Any, ...], params: Any
) -> None:
    async with connect_scripted(revision, TEXT) as (client, server):
        assert text_of(await client.call_tool(*given)) == "done"
    wanted = {"name": given[0], "arguments": given[1]} if params is ... else params
    assert server.asked() == [wanted]
    assert server.heard[0]["method"] == "tools/call"


BAD_CALLS: list[tuple[Any, ...]] = [
    *((3,), (None,)),
    *(("echo", bad) for bad in ([], [("text", "x")], "x", 3, {3: 4})),
]


@pytest.mark.requirement("tools.call-request-shape")
@every
@pytest.mark.parametrize("given", BAD_CALLS, ids=str)
async def test_a_malformed_call_is_refused_before_it_is_sent(
    revision: str, given: tuple[Any, ...]
) -> None:
    async with connect_scripted(revision, TEXT) as (client, server):
        with pytest.raises(InvalidParamsError, match=r"^tools/call: Expected"):
            await client.call_tool(*given)
        await client.call_tool("echo")
    assert server.asked() == [{"name": "echo"}]


@pytest.mark.requirement("tools.is-error-default-false")
@every
@pytest.mark.parametrize(
    ("more", "failed"),
    [({}, False), ({"isError": False}, False), ({"isError": True}, True)],
    ids=str,
)
async def test_a_result_is_a_success_unless_it_says_otherwise(
    revision: str, more: Mapping[str, Any], failed: bool
) -> None:
    async with connect_scripted(revision, {**TEXT, **more}) as (client, _):
        result = await client.call_tool("echo")
    assert bool(result.is_error) is failed


@pytest.mark.requirement("tools.annotation-defaults")
@pytest.mark.parametrize("revision", revisions_holding("tools.annotation-defaults"))
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, Hints(False, True, False, True)),
        ({}, Hints(False, True, False, True)),
        ({"title": "T", "x": 1}, Hints(False, True, False, True)),
        ({"readOnlyHint": True}, Hints(True, True, False, True)),
        ({"destructiveHint": False, "openWorldHint": False}, Hints(False, False, False, False)),
        ({"idempotentHint": True, "readOnlyHint": False}, Hints(False, True, True, True)),
    ],
)
async def test_hints_that_a_tool_leaves_out_have_their_defaults(
    revision: str, said: Any, meant: Hints
) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    tools = {"tools": [tool if said is None else {**tool, "annotations": said}]}
    async with connect_scripted(revision, tools) as (client, _):
        (listed_tool,) = await client.list_tools()
    assert hints_of(listed_tool) == meant


@pytest.mark.requirement("tools.name-case-sensitive")
@every
async def test_names_are_told_apart_by_case(revision: str) -> None:
    server = Server("cases")
    for name in ("get", "Get"):
        server.tool(name)(lambda name=name: name)
    async with live(server, revision) as (client, _):
        assert [text_of(await client.call_tool(name)) for name in ("Get", "get")] == ["Get", "get"]
    async with speaking_to(server, revision) as end:
        assert (await end.ask("tools/call", {"name": "GET"}))["error"]["code"] == -32602


FEATURES = ("tools/", "resources/", "prompts/", "completion/")


@pytest.mark.requirement("tools.request-meta-required")
@pytest.mark.parametrize("revision", revisions_holding("tools.request-meta-required"))
async def test_every_request_says_what_it_is_judged_by(revision: str) -> None:
    assert REVISIONS[revision].lifecycle is Lifecycle.PER_REQUEST
    keys = facts(revision).meta
    stated = {keys.protocol_version: revision, keys.client_capabilities: {}}
    methods = [name for name in REVISIONS[revision].client_requests if name.startswith(FEATURES)]
    refusals = [{"error": {"code": -32602, "message": "no"}}] * len(methods)
    async with connect_scripted(revision, *refusals) as (client, server):
        for method in methods:
            with pytest.raises(RemoteError, match="code -32602"):
                await client.request(method, PARAMS[method])
    assert [request["method"] for request in server.heard] == methods
    said = [request["params"]["_meta"] for request in server.heard]
    assert [{key: meta[key] for key in stated} for meta in said] == [stated] * len(methods)
