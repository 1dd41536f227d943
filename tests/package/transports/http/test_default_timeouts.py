"""How long a client over HTTP waits by default for a server that stays silent."""

from __future__ import annotations

import json
from random import Random

import anyio
import pytest

from mcp_protocol import connect
from mcp_protocol.channel import MessageKind, OutgoingMessage
from mcp_protocol.errors import RemoteProtocolError, ResponseLostError, SessionLostError
from mcp_protocol.revisions import REVISIONS
from mcp_protocol.transports.http import http_client
from mcp_protocol.transports.http.http_channel import HttpChannel
from mcp_protocol.transports.http.http_client import HttpRequests
from package.client.simulation import MemoryReply, Network, simulate
from package.http_script import Forgetful, Script
from package.http_server import Asked, Reply
from package.transports.http.test_stream_pauses import URL, StreamResponse
from package.wire import SESSIONS, SSE_ONLY

REVISION = SESSIONS[-1]


async def stay_silent(asked: Asked, reply: Reply) -> None:
    await anyio.sleep_forever()


def reach(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script answer all requests to the origin of `URL`."""
    network = Network(Random(0), {"https://mcp.example": script}, lambda asked: (0.0, 0.0))
    monkeypatch.setattr(http_client, "open_library", lambda *_, **__: network)


@pytest.mark.parametrize(
    ("kind", "method", "shown"),
    [("notification", "ping", "ping"), ("response", "", "an answer"), ("error", "", "an answer")],
)
def test_a_message_without_an_answer_is_accepted_in_half_a_minute(
    kind: MessageKind, method: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = {"jsonrpc": "2.0", **({"method": method} if method else {"id": 1, "result": {}})}

    async def main() -> str:
        channel = HttpChannel(URL, REVISIONS, HttpRequests())
        message = OutgoingMessage(json.dumps(wire).encode(), kind, 1, method, REVISIONS[REVISION])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.run)
            with pytest.raises(ResponseLostError) as caught:
                await channel.send(message)
            await channel.close()
        return str(caught.value)

    script = Script(REVISION)
    script.on = {method or "response": stay_silent}
    reach(script, monkeypatch)
    assert simulate("asyncio", 0, main) == f"{URL}: {shown} was not accepted within 30 s"


def test_the_address_for_messages_arrives_within_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def open_stream(asked: Asked, reply: Reply) -> None:
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(b": a comment\n\n", silent=True)

    async def main() -> None:
        async with connect(URL, transport="sse", revision=SSE_ONLY[0]):
            raise AssertionError("it was opened")

    script = Script(SSE_ONLY[0])
    script.on = {"GET": open_stream}
    reach(script, monkeypatch)
    with pytest.raises(RemoteProtocolError, match=r"expected an event 'endpoint' within 5 s"):
        simulate("asyncio", 0, main)


@pytest.mark.parametrize("method", ["initialize", "notifications/initialized"])
def test_a_session_is_replaced_within_half_a_minute(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Forgetful(REVISION)
    reach(script, monkeypatch)

    async def main() -> float:
        async with connect(URL, revision=REVISION) as client:
            script.forgotten.add("s")
            script.once[method] = [stay_silent]
            before = anyio.current_time()
            with pytest.raises(SessionLostError, match=r"opened no other one within 30 s"):
                await client.call_tool("echo", {}, timeout=None)
            return anyio.current_time() - before

    assert simulate("asyncio", 0, main) == pytest.approx(30)


def test_ending_a_session_takes_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> float:
        async with connect(URL, revision=REVISION):
            before = anyio.current_time()
        return anyio.current_time() - before

    script = Script(REVISION, "s")
    script.on = {"DELETE": stay_silent}
    reach(script, monkeypatch)
    assert simulate("asyncio", 0, main) == pytest.approx(2)
