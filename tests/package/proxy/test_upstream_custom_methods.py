"""Methods that the specification does not have, through a proxy."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from kit.live import RawServer
from kit.wire import HANDSHAKE, speaking_to
from mcpgen_runtime import Context, Server
from package.proxy.test_proxy import NEWEST, SESSION, across


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


async def test_a_log_message_about_no_call_reaches_the_only_client() -> None:
    async with speaking_to(Server.proxy(Raw(), revision=SESSION), SESSION) as client:
        said = {"level": "error", "data": "rain"}
        await client.send({"jsonrpc": "2.0", "method": "com.example/log", "params": said})
        message = await client.receive()
        assert (message["method"], message["params"]) == ("notifications/message", said)


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
