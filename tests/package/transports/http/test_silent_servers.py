"""Servers over HTTP that stay silent or refuse: how long a client waits, and what it says."""

from __future__ import annotations

import json
from random import Random

import anyio
import pytest

from mcpgen_runtime import connect
from mcpgen_runtime.channel import MessageKind, OutgoingMessage
from mcpgen_runtime.errors import (
    HttpStatusError,
    RemoteProtocolError,
    ResponseLostError,
    SessionLostError,
)
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports.http.http_channel import HttpChannel
from mcpgen_runtime.transports.http.http_client import HttpRequests
from package.client.simulation import MemoryReply, Network, simulate, use_network
from package.http_script import Forgetful, Script
from package.http_server import Asked, Handler, Reply
from package.transports.http.test_stream_pauses import URL, StreamResponse
from package.wire import SESSIONS, SSE_ONLY

pytestmark = pytest.mark.processes

REVISION = SESSIONS[-1]


async def stay_silent(asked: Asked, reply: Reply) -> None:
    await anyio.sleep_forever()


def reach(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script answer all requests to the origin of `URL`."""
    network = Network(Random(0), {"https://mcp.example": script}, lambda asked: (0.0, 0.0))
    use_network(monkeypatch, network)


def open_older_transport(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect by HTTP+SSE to a server that handles the GET of the stream so."""

    async def main() -> None:
        async with connect(URL, transport="sse", revision=SSE_ONLY[0]):
            raise AssertionError("it was opened")

    script = Script(SSE_ONLY[0])
    script.on = {"GET": handler}
    reach(script, monkeypatch)
    simulate("asyncio", 0, main)


@pytest.mark.parametrize(
    ("kind", "method", "shown"),
    [("notification", "ping", "ping"), ("response", "", "an answer"), ("error", "", "an answer")],
)
def test_a_message_is_accepted_within_half_a_minute(
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

    with pytest.raises(RemoteProtocolError, match=r"expected an event 'endpoint' within 5 s"):
        open_older_transport(open_stream, monkeypatch)


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


@pytest.mark.parametrize(
    ("status", "advised"),
    [(300, True), (399, True), (404, True), (499, True), (401, False), (500, False), (199, False)],
)
def test_a_refused_stream_of_the_older_transport_is_explained(
    status: int, advised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(asked: Asked, reply: Reply) -> None:
        await reply.whole(status)

    with pytest.raises(HttpStatusError) as caught:
        open_older_transport(refuse, monkeypatch)
    text = f"expected a stream of events (over HTTP, {SSE_ONLY[0]} is spoken by HTTP+SSE alone)"
    assert (text in str(caught.value)) is advised


@pytest.mark.parametrize(
    ("events", "failure", "reason"),
    [
        (
            b"event: message\ndata: x\n\n",
            None,
            "expected an event 'endpoint' first, came 'message'",
        ),
        (b": none\n\n", None, "but the server closed the stream of events"),
        (b": none\n\n", ResponseLostError("cut"), "but the stream of events broke: cut"),
        (b": none\n\n", ValueError("odd"), "but the stream of events failed: odd"),
        (
            b"event: endpoint\ndata: https://other.example/b?secret\n\n",
            None,
            "expected an address of the same origin to post to, came 'https://other.example/b'",
        ),
        (
            b"event: endpoint\ndata: //[\n\n",
            None,
            "expected an address of the same origin to post to, came '//['",
        ),
    ],
)
def test_a_stream_of_the_older_transport_begins_with_an_address(
    events: bytes, failure: Exception | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_stream(asked: Asked, reply: Reply) -> None:
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(events, failure)

    with pytest.raises(RemoteProtocolError) as caught:
        open_older_transport(open_stream, monkeypatch)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "accepted"), [("s", True), ("\u00e9", False), ("a b", False), ("", True)]
)
def test_the_id_of_a_session_is_visible_ascii(
    ids: str, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> list[str]:
        async with connect(URL, revision=REVISION) as client:
            return [tool.name for tool in await client.list_tools()]

    script = Script(REVISION, ids)
    reach(script, monkeypatch)
    if accepted:
        assert simulate("asyncio", 0, main) == ["echo"]
    else:
        with pytest.raises(RemoteProtocolError, match="expected visible ASCII characters"):
            simulate("asyncio", 0, main)
