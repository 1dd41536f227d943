"""The error codes that a server sends: every kind of failure is provoked, and read on the wire.

Source: basic/index#error-codes (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.wire import PER_REQUEST, facts, meta_of, request, speaking_to
from mcpgen_runtime import Context, Server
from mcpgen_runtime.channel import OutgoingMessage
from package.protocol.test_jsonrpc_errors import LEGACY_RANGE

pytestmark = pytest.mark.processes

modern = pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-legacy-range-unused"))


def failures(revision: str) -> dict[str, tuple[Any, int]]:
    """Messages to send, each with the code of the error response that it provokes."""
    stamps = meta_of(revision) | {f"{facts(revision).meta.protocol_version}": "1999-01-01"}
    return {
        "no JSON": (b'{"jsonrpc"', -32700),
        "no object": (17, -32600),
        "a batch": ([request(revision, "tools/list")], -32600),
        "no version of JSON-RPC": ({"id": 1, "method": "tools/list"}, -32600),
        "an id that is no id": (request(revision, "tools/list") | {"id": {}}, -32600),
        "an unknown method": (request(revision, "no/such"), -32601),
        "a method of older revisions": (request(revision, "ping"), -32601),
        "no metadata": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, -32602),
        "an unknown revision": (request(revision, "tools/list", meta=stamps), -32022),
        "bad params": (request(revision, "tools/call", {"name": 5}), -32602),
        "an unknown tool": (request(revision, "tools/call", {"name": "none"}), -32602),
        "an unknown resource": (request(revision, "resources/read", {"uri": "x://y"}), -32602),
        "a prompt without its argument": (
            request(revision, "prompts/get", {"name": "greeting"}),
            -32602,
        ),
        "an unknown cursor": (request(revision, "tools/list", {"cursor": "none"}), -32602),
        "a handler that fails": (
            request(revision, "resources/read", {"uri": "memo://broken"}),
            -32603,
        ),
        "a missing capability": (request(revision, "tools/call", {"name": "asks"}), -32021),
    }


@pytest.mark.requirement("jsonrpc.code-legacy-range-unused", "jsonrpc.code-legacy-range-closed")
@modern
@pytest.mark.parametrize("failure", failures(PER_REQUEST[-1]))
async def test_no_error_response_has_a_code_of_the_legacy_range(
    revision: str, failure: str
) -> None:
    message, code = failures(revision)[failure]
    server = Server("failing")

    @server.tool()
    async def asks(ctx: Context) -> str:
        return str((await ctx.elicit("Who?", {"type": "object", "properties": {}})).action)

    @server.resource("memo://broken")
    def broken() -> str:
        raise RuntimeError("no luck")

    @server.prompt()
    def greeting(who: str) -> str:
        return who

    async with speaking_to(server, revision) as end:
        if isinstance(message, bytes):
            await end.channel.send(OutgoingMessage(message))
        else:
            await end.send(message)
        sent = (await end.receive())["error"]["code"]
    assert sent not in LEGACY_RANGE
    assert sent == code
