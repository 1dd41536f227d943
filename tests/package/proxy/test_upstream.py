"""Through a proxy, results, errors and notifications are those of the server behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kit.live import RawServer
from kit.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    RawEnd,
    encode_message,
    request,
    speaking_to,
)
from mcpgen_runtime import Server

every = pytest.mark.parametrize("revision", ALL)

OWN = (
    b'"z-own" : [ {}, [], null, 1.0, 1, 1e2, "\\u00e9/", 123456789012345678901234567890 ],'
    b' "a-own":{"n":null}, "_meta":{ "x":1.0, "e":{} }'
)
ANNOTATED = b'"annotations":{}, "type":"text", "text":"t", "own":0.0'
RESULTS: Mapping[str, tuple[dict[str, Any], bytes]] = {
    "tools/list": ({}, b'{"tools":[{"own":{}, "name":"t", "inputSchema":{"type":"object"}}], %s}'),
    "tools/call": (
        {"name": "t", "arguments": {"b": 1.0, "a": [{}, None]}},
        b'{"structuredContent":{"b":1.0, "a":{}}, "content":[{' + ANNOTATED + b"}], %s}",
    ),
    "prompts/list": ({}, b'{"prompts":[ {"name":"p", "arguments":[]} ], %s}'),
    "prompts/get": (
        {"name": "p"},
        b'{"messages":[{"role":"user", "own":[], "content":{' + ANNOTATED + b"}}], %s}",
    ),
    "resources/list": ({}, b'{"resources":[{"uri":"x:y", "name":"r", "size":3.0}], %s}'),
    "resources/templates/list": ({}, b'{"resourceTemplates":[], "nextCursor":"", %s}'),
    "resources/read": ({"uri": "x:y"}, b'{"contents":[{"uri":"x:z", "text":"", "own":{}}], %s}'),
    "completion/complete": (
        {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": ""},
        },
        b'{"completion":{"own":1.0, "values":[]}, %s}',
    ),
    "com.example/own": ({"b": 1.0, "a": {}}, b"{%s}"),
}
FRAME = b', "ttlMs":0, "resultType":"complete", "cacheScope":"private"'
_TOKEN = "progressToken"


def result_of(method: str, revision: str) -> bytes:
    members = OWN + (FRAME if revision in PER_REQUEST else b"")
    return RESULTS[method][1].replace(b"%s", members)


class Scripted(RawServer):
    """A server that answers with the JSON that it was given."""

    def __init__(self, kind: str, outcome: bytes, *before: bytes) -> None:
        super().__init__()
        self._answer = b'"%s": %s' % (kind.encode(), outcome)
        self._before = before
        self.params: Any = None

    async def take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            return
        identifier = encode_message(message["id"])
        answer = self._answer
        if message["method"] == "logging/setLevel":
            answer = b'"result": {}'
        else:
            self.params = message.get("params")
            token = encode_message((self.params or {}).get("_meta", {}).get(_TOKEN))
            for each in self._before:
                await self.send(b'{"jsonrpc":"2.0", %s}' % each.replace(b"%s", token))
        await self.send(b'{"jsonrpc":"2.0", "id":%s, %s}' % (identifier, answer))


async def line_of(client: RawEnd, method: str, params: Mapping[str, Any], **how: Any) -> bytes:
    """The response to a request, as bytes; notifications before it are kept."""
    await client.send(request(client.revision, method, params, id=7, **how))
    client.heard = []
    while True:
        line = await client.channel.receive()
        message = json.loads(line)
        if "method" not in message:
            return line
        client.heard.append(message)


@every
@pytest.mark.parametrize("method", RESULTS)
async def test_a_result_of_the_same_revision_passes_byte_for_byte(
    method: str, revision: str
) -> None:
    result = result_of(method, revision)
    server = Scripted("result", result)
    async with speaking_to(Server.proxy(server, revision=revision), revision) as client:
        params, _ = RESULTS[method]
        line = await line_of(client, method, params)
    assert result in line
    sent = {name: value for name, value in (server.params or {}).items() if name != "_meta"}
    assert json.dumps(sent) == json.dumps(params)


@every
async def test_a_cursor_that_states_nothing_is_not_passed_on(revision: str) -> None:
    server = Scripted("result", result_of("tools/list", revision))
    async with speaking_to(Server.proxy(server, revision=revision), revision) as client:
        assert b"result" in await line_of(client, "tools/list", {"cursor": None})
    assert "cursor" not in (server.params or {})


@every
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_the_members_of_a_result_pass_a_mounted_proxy(method: str, revision: str) -> None:
    result = result_of(method, revision)
    main = Server("main")
    main.mount(Server.proxy(Scripted("result", result), revision=revision), prefix="m")
    async with speaking_to(main, revision) as client:
        params, _ = RESULTS[method]
        line = await line_of(client, method, {**params, "name": "m_" + params["name"]})
    assert result in line


@every
@pytest.mark.parametrize("method", RESULTS)
@pytest.mark.parametrize(
    "error",
    [
        b'{"code":-32602, "message":"wrong", "data":{"z":1.0, "uri":"x:y", "a":{}}}',
        b'{"code":-32603, "message":"", "data":[ ]}',
        b'{"code":77, "message":"own", "data":0.0}',
        b'{"code":77, "message":"own"}',
    ],
)
async def test_an_error_keeps_code_message_and_data(
    error: bytes, method: str, revision: str
) -> None:
    server = Scripted("error", error)
    async with speaking_to(Server.proxy(server, revision=revision), revision) as client:
        line = await line_of(client, method, RESULTS[method][0])
    assert json.dumps(json.loads(line)["error"]) == json.dumps(json.loads(error))


@every
async def test_numbers_and_kinds_that_nobody_knows_pass(revision: str) -> None:
    result = b'{"content":[{"type":"hologram"}], "own":1e999' + FRAME + b"}"
    server = Scripted("result", result)
    async with speaking_to(Server.proxy(server, revision=revision), revision) as client:
        assert result in await line_of(client, "tools/call", RESULTS["tools/call"][0])


@pytest.mark.parametrize("near", ALL)
@pytest.mark.parametrize("far", ALL)
async def test_no_empty_metadata_comes_into_a_result(near: str, far: str) -> None:
    own = b'"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}'
    result = b'{"content":[], %s %s}' % (own, FRAME if far in PER_REQUEST else b"")
    server = Scripted("result", result)
    async with speaking_to(Server.proxy(server, revision=far), near) as client:
        line = await line_of(client, "tools/call", RESULTS["tools/call"][0])
    assert json.loads(line)["result"].get("_meta") != {}


@every
async def test_notifications_keep_their_values(revision: str) -> None:
    data = {"b": 1.0, "a": {}, "l": [], "n": None}
    said: dict[str, Any] = {"level": "error", "logger": "l", "data": data}
    said |= {"_meta": {"x": 1.0}} if revision >= "2025-11-25" else {}
    server = Scripted(
        "result",
        result_of("tools/call", revision),
        b'"method":"notifications/message", "params":%s' % json.dumps(said).encode(),
        b'"method":"notifications/progress",'
        b' "params":{"progressToken":%s, "progress":1.0, "total":2}',
    )
    meta: dict[str, Any] = {_TOKEN: "own"}
    meta |= {"io.modelcontextprotocol/logLevel": "info"} if revision in PER_REQUEST else {}
    async with speaking_to(Server.proxy(server, revision=revision), revision) as client:
        if revision in HANDSHAKE:
            await client.ask("logging/setLevel", {"level": "info"})
        await line_of(client, "tools/call", RESULTS["tools/call"][0], meta=meta)
        logged, progress = (each["params"] for each in client.heard)
    assert json.dumps(logged, sort_keys=True) == json.dumps(said, sort_keys=True)
    assert progress == {"progressToken": "own", "progress": 1.0, "total": 2}
    assert json.dumps([progress["progress"], progress["total"]]) == "[1.0, 2]"
