"""Middleware of a client, as users write it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kit.live import live, text_of
from kit.wire import HANDSHAKE, PER_REQUEST, both_lifecycles
from mcpgen_runtime import (
    ClientNext,
    ClientRequest,
    RemoteError,
    Server,
    connect_sync,
    log_requests,
    replace,
)


def shop() -> Server:
    server = Server("shop")

    @server.tool()
    async def order(item: str) -> str:
        return f"ordered {item}"

    @server.resource("shop://items")
    def items() -> str:
        return "apple, pear"

    return server


@both_lifecycles
async def test_requests_pass_the_middleware_in_order_and_changed(revision: str) -> None:
    passed: list[Any] = []
    async with live(shop(), revision, capabilities={"roots": {"listChanged": True}}) as (
        client,
        record,
    ):

        @client.middleware
        async def outer(request: ClientRequest, next: ClientNext) -> Any:
            passed.append((request.method, request.target, request.is_notification))
            assert request.request_id is None
            assert (request.revision, request.transport) == (revision, "Recorded")
            result = await next(request.with_meta({"com.example/trace": "1"}))
            if not request.is_notification:
                assert request.request_id == record.sent[-1]["id"]
            return result

        @client.middleware
        async def inner(request: ClientRequest, next: ClientNext) -> Any:
            passed.append("inner")
            if request.method != "tools/call":
                return await next(request)
            params = replace(request.params, arguments={"item": "pear"})
            result = await next(request.with_params(params))
            text = result.content[0].text.upper()
            return replace(result, content=[replace(result.content[0], text=text)])

        result = await client.call_tool("order", {"item": "apple"}, meta={"own": 2})
        assert text_of(result) == "ORDERED PEAR"
        await client.read_resource("shop://items")
        assert b"order" in bytes(await client.request_raw("tools/list"))
        sent = record.sent[-3:]
        if revision in HANDSHAKE:
            await client.notify("notifications/roots/list_changed")
            sent.append(record.sent[-1])
    assert passed[:6] == [
        *(("tools/call", "order", False), "inner"),
        *(("resources/read", "shop://items", False), "inner"),
        *(("tools/list", None, False), "inner"),
    ]
    assert passed[6:] == (
        [("notifications/roots/list_changed", None, True), "inner"] if revision in HANDSHAKE else []
    )
    assert all(message["params"]["_meta"]["com.example/trace"] == "1" for message in sent)
    assert sent[0]["params"]["_meta"]["own"] == 2
    assert sent[0]["params"]["arguments"] == {"item": "pear"}


async def test_a_middleware_may_answer_a_request_that_is_then_not_sent() -> None:
    async with live(shop(), PER_REQUEST[-1]) as (client, record):
        calls = list[str]()

        @client.middleware
        async def count(request: ClientRequest, next: ClientNext) -> Any:
            calls.append(request.method)
            if request.target == "none":
                raise RemoteError(-32602, "not even asked")
            return await next(request)

        before = len(record.sent)
        with pytest.raises(RemoteError, match="not even asked"):
            await client.call_tool("none")
        assert len(record.sent) == before
        with pytest.raises(TypeError, match="coroutine function"):
            client.middleware(print)
    assert calls == ["tools/call"]


@both_lifecycles
def test_server_middleware_logs_requests_of_a_blocking_client(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        connect_sync(shop(), revision=revision) as client,
        caplog.at_level(logging.INFO, "mcpgen_runtime.requests"),
    ):
        client.middleware(log_requests())
        client.call_tool("order", {"item": "pear"})
        with pytest.raises(RemoteError):
            client.call_tool("none")
    logged: Any = [each for each in caplog.records if each.name == "mcpgen_runtime.requests"]
    assert [(each.mcp_method, each.mcp_target, each.mcp_outcome) for each in logged] == [
        ("tools/call", "order", "ok"),
        ("tools/call", "none", "error"),
    ]
    assert logged[1].mcp_error_code == -32602
    assert logged[1].mcp_request_id == logged[0].mcp_request_id + 1
