"""ping: either end answers it at once, in the revisions that have it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.ends import ASKED, answering_ends, ask, both, end_of
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS
from kit.wire import ClientEnd, ServerEnd, request, speaking_to
from mcpgen_runtime.errors import MethodNotFoundError, RemoteError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import RequestFailed, RequestReceived, ResponseReceived
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.chosen import Server


@pytest.mark.requirement("ping.no-params", "ping.answered", "ping.either-side")
@pytest.mark.parametrize(
    "params", [..., {}, {"_meta": {}}, {"_meta": {"x": 1}}, {"unknown": [1]}], ids=str
)
@pytest.mark.parametrize(("revision", "role"), answering_ends("ping.answered"))
def test_ping_is_answered_with_an_empty_result(revision: str, role: Role, params: Any) -> None:
    end = end_of(revision, role)
    message = {"jsonrpc": "2.0", "id": "p", "method": "ping", "params": params}
    if params is ...:
        del message["params"]
    assert end.say(message) == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    assert not any(isinstance(event, RequestReceived) for event in end.events)


@pytest.mark.requirement("ping.no-params")
@pytest.mark.parametrize(("revision", "role"), both("ping.no-params"))
def test_a_ping_has_no_params_but_meta(revision: str, role: Role) -> None:
    pair = Pair(revision)
    pair.ask(role, "ping")
    assert "params" not in pair.sent(role)[-1]
    pair.ask(role, "ping", meta={"com.example/x": 1}, progress=False)
    assert pair.sent(role)[-1]["params"] == {"_meta": {"com.example/x": 1}}
    assert len(pair.told(role, ResponseReceived)) == 2


@pytest.mark.requirement("ping.answered")
@pytest.mark.parametrize(("revision", "role"), answering_ends("ping.answered"))
def test_ping_does_not_wait_for_what_is_inbound_requests(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    for id in range(3):
        assert ask(end, ASKED[role], id=id) == []
    assert ask(end, "ping", id=9) == [{"jsonrpc": "2.0", "id": 9, "result": {}}]
    assert tuple(end.connection.state.inbound) == (0, 1, 2)


@pytest.mark.anyio
@pytest.mark.requirement("ping.answered")
@pytest.mark.parametrize("revision", revisions_holding("ping.answered"))
async def test_ping_is_answered_while_a_tool_works(revision: str) -> None:
    server, finish = Server("slow"), anyio.Event()

    @server.tool()
    async def work() -> str:
        await finish.wait()
        return "done"

    async with speaking_to(server, revision) as end:
        await end.send(request(revision, "tools/call", {"name": "work"}, id="work"))
        assert (await end.ask("ping"))["result"] == {}
        assert end.heard == []
        finish.set()
        assert (await end.receive())["id"] == "work"


@pytest.mark.requirement("ping.removed")
@pytest.mark.parametrize("revision", revisions_holding("ping.removed"))
def test_later_revisions_have_no_ping(revision: str) -> None:
    server, client = ServerEnd(revision), ClientEnd(revision)
    (answer,) = server.ask("ping", id=3)
    assert (answer["id"], answer["error"]["code"]) == (3, -32601)
    assert client.say({"jsonrpc": "2.0", "id": 3, "method": "ping"}) == []
    with pytest.raises(MethodNotFoundError):
        client.ask("ping")
    assert "ping" not in REVISIONS[revision].server_requests


@pytest.mark.requirement("seed-compat.missing-ping")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.missing-ping"))
def test_a_server_without_ping_fails_the_ping_and_nothing_else(revision: str) -> None:
    client = ClientEnd(revision)
    open_call = client.ask("tools/call", PARAMS["tools/call"])["id"]
    id = client.ask("ping")["id"]
    client.say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})
    (failed,) = client.events
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    client.say({"jsonrpc": "2.0", "id": open_call, "result": {"content": []}})
    assert isinstance(client.events[0], ResponseReceived)
