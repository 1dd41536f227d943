"""A client of both kinds behind gateways that forward whatever it asks as a client of a session."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.asgi_client import SESSION, Http, asgi
from kit.live import text_of
from kit.web import Web
from kit.wire import HANDSHAKE, SESSIONS, encode_message, modern, request
from mcpgen_runtime import Channel, OutgoingMessage, connect

pytestmark = pytest.mark.processes

VERSION = "mcp-protocol-version"
DISCOVER = "server/discover"

old_header = pytest.mark.parametrize("header", [None, *SESSIONS], ids=str)


@modern
@old_header
@pytest.mark.parametrize("with_meta", [True, False], ids=["meta", "no meta"])
@pytest.mark.parametrize("session", [None, *SESSIONS], ids=str)
async def test_a_discovery_with_an_old_header_is_answered_in_a_session_or_none(
    revision: str, header: str | None, with_meta: bool, session: str | None
) -> None:
    bare: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": DISCOVER, "params": {}}
    message = request(revision, DISCOVER) if with_meta else bare
    async with asgi(Web().server) as http:
        if session is not None:
            await http.initialize(session)
        reply = await http.post(message, **{VERSION: header})
        assert (reply.status, reply.error["code"], reply.json["id"]) == (200, -32601, 1)
        assert SESSION not in reply.fields
        if session is not None:
            assert (await http.ask(session, "ping")).result == {}


class Gateway(Channel):
    """A channel as a client of an older revision, which may open a session before its client."""

    def __init__(self, http: Http, opens: str | None) -> None:
        self.forwarded: list[str] = []
        self._http = http
        self._opens = opens
        self._to_client, self._answers = anyio.create_memory_object_stream[bytes](9)

    async def receive(self) -> bytes:
        return await self._answers.receive()

    async def send(self, message: OutgoingMessage) -> None:
        self.forwarded.append(message.method)
        if self._opens is not None:
            await self._http.initialize(self._opens)
            self._opens = None
        reply = await self._http.post(message.data)
        if SESSION in reply.fields:
            self._http.fields[SESSION] = reply.fields[SESSION]
        if reply.status == 200:  # of anything else it tells nothing
            await self._to_client.send(encode_message(reply.json))

    async def close(self) -> None:
        self._to_client.close()
        self._answers.close()


@pytest.mark.parametrize("opens", [None, *SESSIONS], ids=str)
async def test_a_client_that_probes_through_a_gateway_gets_a_session(opens: str | None) -> None:
    async with asgi(Web().server) as http:
        gateway = Gateway(http, opens)
        async with connect(gateway) as client:
            assert client.revision == HANDSHAKE[-1]
            result = await client.call_tool("echo", {"text": "through"})
            assert text_of(result) == "through"
    opening = [DISCOVER, "initialize", "notifications/initialized"]
    assert gateway.forwarded == [*opening, "tools/call"]
