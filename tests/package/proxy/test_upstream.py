"""Through a proxy, results, errors and notifications are those of the server behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
import pytest

from kit.asgi_client import asgi, fields_of
from kit.live import RawServer
from kit.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    RawEnd,
    encode_message,
    every,
    meta_of,
    request,
    speaking_to,
)
from mcpgen_runtime import Context, Server
from package.proxy.test_proxy import NEWEST, SESSION, across

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


CODE = -32002
"""The code of an unknown resource in revisions with a handshake."""


async def outcome(
    kind: str, sent: bytes, method: str, params: dict[str, Any], near: str, far: str
) -> tuple[dict[str, Any], Scripted]:
    """The response that a client gets to a request, and the server that has answered it."""
    server = Scripted(kind, sent)
    async with speaking_to(Server.proxy(server, name="front", revision=far), near) as client:
        line = await line_of(client, method, params)
    response: dict[str, Any] = json.loads(line)
    return response, server


@pytest.mark.parametrize(("near", "far"), [(ALL[-1], ALL[0]), (ALL[0], ALL[-1])])
async def test_an_unknown_resource_keeps_its_message_and_data(near: str, far: str) -> None:
    codes = {name: CODE if name in HANDSHAKE else -32602 for name in ALL}
    data = {"uri": "x:y", "own": [1.0]}
    error = json.dumps({"code": codes[far], "message": "gone", "data": data}).encode()
    response, _ = await outcome("error", error, "resources/read", {"uri": "x:y"}, near, far)
    assert response["error"] == {"code": codes[near], "message": "gone", "data": data}


@pytest.mark.parametrize(("near", "far"), [(ALL[0], ALL[-1]), (ALL[-1], ALL[0])])
async def test_members_that_nobody_defines_are_one_warning(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    frame = FRAME if far in PER_REQUEST else b""
    own = {f"own\x1b[31m{number}": number for number in range(500)}
    result = json.dumps({"tools": [], **own}).encode()[:-1] + frame + b"}"
    await outcome("result", result, "tools/list", {}, near, far)
    (line,) = [each for each in caplog.messages if " is lost: " in each]
    assert line.startswith("proxy 'front': result.* is lost: ")
    assert r"(tools/list.result.own\x1b[31m0)" in line


class Pick(msgspec.Struct):
    fruit: str
    name: str = ""


def orchard() -> Server:
    server = Server("orchard")

    @server.method("com.example/pick", params=Pick, result=dict)
    async def pick(params: Pick, ctx: Context) -> dict[str, Any]:
        await ctx.progress(1, 2)
        return {"picked": params.fruit, "by": params.name, "trace": ctx.meta.get("trace")}

    return server


@across
async def test_a_custom_request_passes_with_its_params_and_result(near: str, far: str) -> None:
    async with speaking_to(Server.proxy(orchard(), revision=far), near) as client:
        meta = {"trace": "t1", "progressToken": 7}
        answer = await client.ask(
            "com.example/pick", {"fruit": "fig", "name": "Ann"}, meta=meta, id=3
        )
        assert "result" in answer, answer
        result = answer["result"]
        assert (result["picked"], result["by"], result["trace"]) == ("fig", "Ann", "t1")
        assert near == NEWEST or "resultType" not in result
        assert [each["method"] for each in client.heard] == ["notifications/progress"]
        absent = await client.ask("com.example/none", {}, id=4)
        assert absent["error"]["code"] == -32601
        reserved = await client.ask("rpc.discover", {}, id=5)
        assert reserved["error"]["code"] == -32601


async def test_a_method_of_another_revision_is_no_custom_one() -> None:
    async with speaking_to(Server.proxy(orchard(), revision=SESSION), NEWEST) as client:
        answer = await client.ask("logging/setLevel", {"level": "info"})
        assert answer["error"]["code"] == -32601


async def test_custom_methods_do_not_pass_a_mounted_proxy() -> None:
    main = Server("main")
    main.mount(Server.proxy(orchard()), prefix="x")
    async with speaking_to(main, NEWEST) as client:
        answer = await client.ask("com.example/pick", {"fruit": "fig"})
        assert answer["error"]["code"] == -32601


class Raw(RawServer):
    """A server that asks `com.example/who` of its client when it is asked `com.example/hello`."""

    def __init__(self) -> None:
        super().__init__({"logging": {}})
        self.heard: list[dict[str, Any]] = []
        self.has_heard = anyio.Event()

    async def take(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "com.example/log"}:
                await self.send({"method": "notifications/message", "params": message["params"]})
            case {"method": "com.example/hello", "id": identifier}:
                self.asked = identifier
                await self.send({"method": "com.example/news", "params": {"name": "rain"}})
                question = {"method": "com.example/who", "params": {"name": "?"}}
                await self.send({"id": "who", **question})
            case {"method": "com.example/ask"}:
                question = {"method": "com.example/who", "params": {"name": "?"}}
                await self.send({"id": "unasked", **question})
            case {"id": "unasked"}:
                self.heard.append(message)
                self.has_heard.set()
            case {"id": "who"}:
                who = message.get("result", "unknown")
                await self.send({"id": self.asked, "result": {"who": who}})
            case {"method": str(), "id": identifier}:
                await self.send({"id": identifier, "error": {"code": -32601, "message": "no"}})
            case {"method": method} if method.startswith("com.example/"):
                self.heard.append(message)
                self.has_heard.set()


@pytest.mark.parametrize("near", [HANDSHAKE[0], SESSION])
async def test_custom_messages_of_the_server_reach_the_client(near: str) -> None:
    async with speaking_to(Server.proxy(Raw(), revision=SESSION), near) as client:
        await client.send({"jsonrpc": "2.0", "id": 9, "method": "com.example/hello"})
        news, question = [await client.receive() for _ in range(2)]
        assert (news["method"], news["params"]) == ("com.example/news", {"name": "rain"})
        assert (question["method"], question["params"]) == ("com.example/who", {"name": "?"})
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"name": "Ann"}}
        await client.send(answer)
        assert (await client.receive())["result"] == {"who": {"name": "Ann"}}


async def test_messages_about_no_call_reach_the_only_client() -> None:
    behind = Raw()
    async with speaking_to(Server.proxy(behind, revision=SESSION), SESSION) as client:
        said = {"level": "error", "data": "rain"}
        await client.send({"jsonrpc": "2.0", "method": "com.example/log", "params": said})
        message = await client.receive()
        assert (message["method"], message["params"]) == ("notifications/message", said)
        await client.send({"jsonrpc": "2.0", "method": "com.example/ask"})
        question = await client.receive()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"name": "Ann"}}
        await client.send(answer)
        with anyio.fail_after(10):
            await behind.has_heard.wait()
        assert behind.heard[-1]["result"] == {"name": "Ann"}


async def test_messages_without_a_form_for_the_client_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy = Server.proxy(Raw(), name="front", revision=SESSION)
    async with speaking_to(proxy, NEWEST) as client:
        answer = await client.ask("com.example/hello", {})
        assert answer["result"]["who"] == "unknown"
    for name in ("com.example/news", "com.example/who"):
        assert f"proxy 'front': {name} is lost" in caplog.text


@pytest.mark.parametrize("near", [SESSION, NEWEST])
async def test_a_custom_notification_of_a_client_reaches_the_server(near: str) -> None:
    behind = Raw()
    async with speaking_to(Server.proxy(behind, revision=SESSION), near) as client:
        params = {"name": "Ann", "uri": "x:y"}
        await client.send({"jsonrpc": "2.0", "method": "com.example/hi", "params": params})
        with anyio.fail_after(10):
            await behind.has_heard.wait()
        assert behind.heard[-1]["params"] == params


@pytest.mark.parametrize("near", [SESSION, NEWEST])
async def test_a_custom_notification_over_http_reaches_the_server(near: str) -> None:
    behind = Raw()
    params: dict[str, Any] = {"name": "Ann"}
    if near == NEWEST:
        params["_meta"] = meta_of(near)
    message = {"jsonrpc": "2.0", "method": "com.example/hi", "params": params}
    async with asgi(Server.proxy(behind, revision=SESSION)) as http:
        if near == SESSION:
            await http.initialize(near)
        assert (await http.post(message, **fields_of(near, message))).status == 202
        with anyio.fail_after(10):
            await behind.has_heard.wait()
    assert behind.heard[-1]["params"]["name"] == "Ann"
