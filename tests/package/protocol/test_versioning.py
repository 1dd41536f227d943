"""The revision of a server's session: agreed once by handshake, or named by each request."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import revisions_holding, with_another
from kit.samples import EVERY_SERVER_CAPABILITY, PARAMS, RESULTS
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    PER_REQUEST,
    ServerEnd,
    describe_as,
    initialize,
    meta_of,
    request,
)
from mcpgen_runtime import REVISIONS
from mcpgen_runtime.facts import Lifecycle, Revision, Revisions
from mcpgen_runtime.protocol.events import SendResponse
from mcpgen_runtime.protocol.lifecycle import Description
from mcpgen_runtime.protocol.server_connection import ServerConnection

VERSION = "io.modelcontextprotocol/protocolVersion"


def uninitialized_server(revisions: Revisions) -> ServerEnd:
    """A server of some revisions that nobody has spoken to yet."""
    server = ServerEnd(None)
    server.connection = ServerConnection(revisions, describe_as(EVERY_SERVER_CAPABILITY, "s"))
    return server


def asking_for(revision: str, version: Any, method: str = "tools/list") -> dict[str, Any]:
    """A request whose `_meta` names any version, or none if `...`."""
    meta = {**meta_of(revision), VERSION: version}
    message = request(revision, method, PARAMS[method], id="q")
    kept = {key: value for key, value in meta.items() if value is not ...}
    return {**message, "params": {**message["params"], "_meta": kept}}


@pytest.mark.requirement(
    "versioning.server-counter-offer",
    "versioning.identifier",
    "versioning.no-modern-in-initialize",
    revisions=HANDSHAKE,
)
@pytest.mark.parametrize(
    "asked", ["1900-01-01", "2099-01-01", "2025-6-18", "2025-06-18 ", "", "x", *PER_REQUEST]
)
def test_a_server_offers_its_newest_for_one_that_it_cannot_speak(asked: str) -> None:
    for revisions in (REVISIONS, *(REVISIONS.only(name) for name in HANDSHAKE)):
        server = uninitialized_server(revisions)
        (answer,) = server.say(initialize(asked))
        newest = revisions.of(Lifecycle.HANDSHAKE).newest().name
        assert answer["result"]["protocolVersion"] == newest == server.connection.revision.name


@pytest.mark.requirement("versioning.per-request-decision")
@pytest.mark.parametrize("revision", revisions_holding("versioning.per-request-decision"))
def test_each_request_is_served_by_the_revision_it_names(revision: str) -> None:
    server = uninitialized_server(with_another("2999-01-01"))
    for id, version in enumerate(("2999-01-01", revision, "2999-01-01")):
        server.say({**asking_for(revision, version), "id": id})
    served = [event.revision.name for event in server.requests()]
    assert served == ["2999-01-01", revision, "2999-01-01"]
    (known,) = server.say(asking_for(revision, revision, "server/discover"))
    assert known["result"]["supportedVersions"] == ["2999-01-01", *reversed(PER_REQUEST)]


@pytest.mark.requirement("versioning.unsupported-error", "versioning.unsupported-error-discover")
@pytest.mark.requirement("versioning.identifier", "jsonrpc.code-defined-meanings")
@pytest.mark.requirement("discover.meta-required")
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "no/such"])
@pytest.mark.parametrize("version", ["1900-01-01", "2026-07-28 ", HANDSHAKE[-1]])
@pytest.mark.parametrize("revision", revisions_holding("versioning.unsupported-error"))
def test_an_unserved_version_is_refused_with_the_served_ones(
    revision: str, version: str, method: str
) -> None:
    message = {**asking_for(revision, version), "method": method}
    for revisions in (REVISIONS, REVISIONS.only(revision)):
        server = uninitialized_server(revisions)
        (answer,) = server.say(message)
        assert (answer["id"], answer["error"]["code"]) == ("q", -32022)
        (known,) = server.say(asking_for(revision, revision, "server/discover"))
        supported = known["result"]["supportedVersions"]
        assert answer["error"]["data"] == {"supported": supported, "requested": version}
        assert revision in supported
        assert list(server.requests()) == []


@pytest.mark.requirement("meta.missing-required-rejected", "discover.meta-required")
@pytest.mark.requirement("capabilities.empty-object", "seed-compat.empty-params-modern")
@pytest.mark.parametrize(
    "params",
    [
        ...,
        {},
        {"_meta": {VERSION: PER_REQUEST[-1]}},
        {"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}},
        {"_meta": {**meta_of(PER_REQUEST[-1]), VERSION: 5}},
        {"_meta": {VERSION: PER_REQUEST[-1], "io.modelcontextprotocol/clientCapabilities": []}},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
@pytest.mark.parametrize("revision", revisions_holding("meta.missing-required-rejected"))
def test_a_request_without_what_its_meta_must_have_is_refused(
    revision: str, method: str, params: Any
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    if params is ...:
        del message["params"]
    for revisions in (REVISIONS, REVISIONS.only(revision)):
        server = uninitialized_server(revisions)
        (answer,) = server.say(message)
        assert (answer["id"], answer["error"]["code"]) == (1, -32602)
        assert list(server.requests()) == []


@pytest.mark.requirement("versioning.dual-era-server-dispatch", "seed-compat.empty-params-modern")
@pytest.mark.parametrize("revision", revisions_holding("versioning.dual-era-server-dispatch"))
@pytest.mark.parametrize("session", HANDSHAKE)
def test_one_connection_serves_a_session_and_stateless_requests(
    session: str, revision: str
) -> None:
    server = uninitialized_server(REVISIONS)
    (known,) = server.say(request(revision, "server/discover"))
    assert known["result"]["supportedVersions"] == list(PER_REQUEST)
    (agreed,) = server.say(initialize(session))
    assert agreed["result"]["protocolVersion"] == session
    server.say(INITIALIZED)
    server.say({"jsonrpc": "2.0", "id": "old", "method": "tools/list", "params": {}})
    server.say(request(revision, "tools/list", id="new"))
    served = {event.id: event.revision.name for event in server.requests()}
    assert served == {"old": session, "new": revision}
    for id, marked in (("old", False), ("new", True)):
        (message,) = server.send(SendResponse(id, RESULTS["tools/list"]))
        assert ("resultType" in message["result"]) is marked


@pytest.mark.requirement("versioning.modern-only-rejects-initialize", "lifecycle.no-handshake")
@pytest.mark.parametrize("asked", [*HANDSHAKE, *PER_REQUEST, "2099-01-01"])
@pytest.mark.parametrize("revision", revisions_holding("versioning.modern-only-rejects-initialize"))
def test_a_server_without_handshake_refuses_initialize_with_help(revision: str, asked: str) -> None:
    server = uninitialized_server(REVISIONS.only(revision))
    (answer,) = server.say(initialize(asked, id="i"))
    assert (answer["id"], answer["error"]["code"]) == ("i", -32602)
    assert revision in answer["error"]["message"]
    assert server.say(INITIALIZED) == []
    assert server.connection.session is None


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
