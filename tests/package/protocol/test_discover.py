"""server/discover: what a server without handshake tells about itself."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.samples import EVERY_SERVER_CAPABILITY, PARAMS
from kit.wire import PER_REQUEST, ClientEnd, ServerEnd, facts, request
from mcpgen_runtime.facts import Revision
from mcpgen_runtime.protocol.events import RequestFailed
from mcpgen_runtime.protocol.lifecycle import Description
from mcpgen_runtime.protocol.server_connection import ServerConnection
from mcpgen_runtime.revisions import REVISIONS


@pytest.mark.requirement("discover.implemented", "discover.result-shape", "discover.cache-hints")
@pytest.mark.requirement("discover.no-input-required", "jsonrpc.mandatory-parts-modern")
@pytest.mark.parametrize("speaks", [None, *PER_REQUEST])
@pytest.mark.parametrize("revision", revisions_holding("discover.implemented"))
def test_every_server_tells_what_it_speaks_and_who_it_is(revision: str, speaks: str | None) -> None:
    (answer,) = ServerEnd(revision, {}, speaks=speaks).ask("server/discover", id="d")
    assert answer == {
        "jsonrpc": "2.0",
        "id": "d",
        "result": {
            "resultType": "complete",
            "supportedVersions": list(PER_REQUEST),
            "capabilities": {},
            "instructions": "be kind",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "server", "version": "1"}},
        },
    }


@pytest.mark.requirement("discover.result-shape")
@pytest.mark.parametrize("revision", revisions_holding("discover.result-shape"))
def test_instructions_are_left_out_if_there_are_none(revision: str) -> None:
    def describe(_: Revision) -> Description:
        return Description({"name": "server", "version": "1"}, {})

    server = ServerEnd(None)
    server.connection = ServerConnection(REVISIONS, describe)
    (answer,) = server.say(request(revision, "server/discover"))
    assert "instructions" not in answer["result"]


@pytest.mark.requirement("discover.request-shape")
@pytest.mark.parametrize("more", [{}, {"x": 1}, {"supportedVersions": ["a"]}], ids=str)
@pytest.mark.parametrize("revision", revisions_holding("discover.request-shape"))
def test_further_params_of_a_discovery_are_ignored(revision: str, more: dict[str, Any]) -> None:
    (answer,) = ServerEnd(revision).ask("server/discover", more)
    assert answer["result"]["supportedVersions"] == list(PER_REQUEST)
    assert set(ClientEnd(revision).ask("server/discover")["params"]) == {"_meta"}


@pytest.mark.requirement("discover.capabilities-true", "capabilities.server-features-advertised")
@pytest.mark.parametrize("left_out", [None, *EVERY_SERVER_CAPABILITY])
@pytest.mark.parametrize("revision", revisions_holding("discover.capabilities-true"))
def test_a_request_is_served_if_its_capability_is_advertised(
    revision: str, left_out: str | None
) -> None:
    declared = {name: flag for name, flag in EVERY_SERVER_CAPABILITY.items() if name != left_out}
    server = ServerEnd(revision, declared)
    (answer,) = server.ask("server/discover")
    advertised = answer["result"]["capabilities"]
    for row in REVISIONS[revision].client_requests.values():
        if row.capability:
            answers = server.ask(row.name, PARAMS[row.name], id=row.name)
            refused = [answer["error"]["code"] for answer in answers]
            assert refused == ([] if row.capability[0] in advertised else [-32601])


@pytest.mark.requirement("discover.no-input-required")
@pytest.mark.parametrize("revision", revisions_holding("discover.no-input-required"))
def test_discovery_never_asks_for_input(revision: str) -> None:
    assert not facts(revision).method("server/discover").input_required
    client = ClientEnd(revision)
    wanted = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}
    client.say({"jsonrpc": "2.0", "id": client.ask("server/discover")["id"], "result": wanted})
    assert isinstance(client.events[0], RequestFailed)
