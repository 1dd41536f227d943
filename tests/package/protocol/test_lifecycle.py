"""The two lifecycles: the handshake and its sessions, requests that stand alone, and ping."""

from __future__ import annotations

from typing import Any

import pytest

from kit.ends import Pair, answering_ends, both, end_of
from kit.rules import revisions_holding, with_another
from kit.samples import EVERY_SERVER_CAPABILITY, PARAMS, RESULTS
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    PER_REQUEST,
    UPDATED,
    ClientEnd,
    ServerEnd,
    cancelled_notification,
    describe_as,
    every,
    facts,
    initialize,
    meta_of,
    request,
    sent_request,
)
from mcpgen_runtime import REVISIONS, LocalProtocolError, MissingCapabilityError, RemoteError
from mcpgen_runtime.errors import FrameError
from mcpgen_runtime.facts import Lifecycle, Revision, Revisions, Role
from mcpgen_runtime.protocol.events import (
    CloseStreams,
    Ignored,
    NotificationReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
    SendLog,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.lifecycle import Description
from mcpgen_runtime.protocol.server_connection import ServerConnection


@pytest.mark.requirement("lifecycle.initialize-first", "seed-compat.not-initialized-error")
@pytest.mark.parametrize("speaks", revisions_holding("lifecycle.initialize-first"))
def test_messages_before_initialize_are_refused_without_harm(speaks: str) -> None:
    server = ServerEnd(None, speaks=speaks)
    for method in REVISIONS[speaks].client_requests.keys() - {"ping", "initialize"}:
        (answer,) = server.say(request(speaks, method, PARAMS[method], id=method))
        assert (answer["id"], answer["error"]["code"]) == (method, -32600)
    for name in REVISIONS[speaks].client_notifications:
        server.say({"jsonrpc": "2.0", "method": name, "params": PARAMS.get(name, {})})
    assert [e for e in server.events if isinstance(e, NotificationReceived)] == []
    assert list(server.requests()) == []
    assert server.say(request(speaks, "ping")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    (answer,) = server.say(initialize(speaks))
    assert answer["result"]["protocolVersion"] == speaks


@pytest.mark.requirement("lifecycle.initialize-by-client", "seed-compat.initialize-empty-params")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-by-client"))
def test_initialize_needs_all_three_of_its_params(revision: str) -> None:
    server = ServerEnd(None)
    params = initialize(revision)["params"]
    lacking = [{key: params[key] for key in params.keys() - {name}} for name in params]
    for bad in (*lacking, *({**params, name: 5} for name in params), {}, None):
        (answer,) = server.say({**initialize(revision, id=1), "params": bad})
        assert (answer["id"], answer["error"]["code"]) == (1, -32602)
        assert server.connection.session is None
    (answer,) = server.say(initialize(revision))
    assert answer["result"]["protocolVersion"] == revision


@pytest.mark.requirement("lifecycle.initialize-result")
@pytest.mark.requirement("versioning.server-echo", "versioning.identifier")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-result"))
def test_the_server_answers_with_revision_capabilities_and_name(revision: str) -> None:
    server = ServerEnd(None, {"tools": {}})
    (answer,) = server.say(initialize(revision))
    assert server.connection.revision.name == revision
    assert answer["result"] == {
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "server", "version": "1"},
        "instructions": "be kind",
    }


@pytest.mark.requirement("lifecycle.respect-capabilities-must", "capabilities.respected-session")
@pytest.mark.requirement("capabilities.sampling-needs-declaration")
@pytest.mark.parametrize(("revision", "role"), both("capabilities.respected-session"))
def test_a_request_whose_capability_the_peer_lacks_is_not_sent(revision: str, role: Role) -> None:
    pair = Pair(revision, server={}, client={})
    rows = REVISIONS[revision].requests_from(role).values()
    gated = [row for row in rows if row.capability]
    assert gated
    before = len(pair.wire)
    for row in gated:
        with pytest.raises(MissingCapabilityError) as refused:
            pair.ask(role, row.name, PARAMS[row.name])
        assert refused.value.path == row.capability
    assert len(pair.wire) == before


@pytest.mark.requirement("lifecycle.shutdown-by-transport")
@pytest.mark.parametrize(("revision", "role"), both("lifecycle.shutdown-by-transport"))
def test_a_session_ends_without_a_word(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    id, _ = sent_request(end.connection.send(SendRequest("ping")))
    assert end.connection.closed() == [id]
    assert len(end.connection.state.outbound) == 0
    (answer,) = end.say(request(revision, "shutdown", id=1)) or [{}]
    assert answer["error"]["code"] == -32601


@pytest.mark.requirement("lifecycle.no-connection-context", "meta.request-fields-not-from-history")
@pytest.mark.requirement("capabilities.per-request", "capabilities.empty-object")
@pytest.mark.requirement("meta.client-info-optional-for-server")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.no-connection-context"))
def test_each_request_is_judged_by_its_own_meta(revision: str) -> None:
    server = ServerEnd(revision)
    keys = facts(revision).meta
    assert keys.client_info is not None
    first = {keys.client_info: {"name": "first", "version": "1"}}
    server.ask("tools/call", PARAMS["tools/call"], id=1, meta=first, capabilities={"roots": {}})
    bare = meta_of(revision)
    del bare[keys.client_info]
    call = request(revision, "tools/call", PARAMS["tools/call"], id=2)
    server.say({**call, "params": {**call["params"], "_meta": bare}})
    seen = [(event.id, event.peer_info, event.peer_capabilities) for event in server.requests()]
    assert seen == [(1, {"name": "first", "version": "1"}, {"roots": {}}), (2, None, {})]


@pytest.mark.requirement("lifecycle.stream-state-per-request")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.stream-state-per-request"))
def test_a_stream_ends_with_its_request_and_leaves_the_others(revision: str) -> None:
    server = ServerEnd(revision)

    def told() -> list[Any]:
        sent = server.connection.send(SendNotification("notifications/tools/list_changed"))
        return [message.related_request_id for message in sent]

    for id in ("a", "b"):
        server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id=id)
    server.say(cancelled_notification("a"))
    assert told() == ["b"]
    server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id="c")
    assert told() == ["b", "c"]
    server.send(CloseStreams())
    assert told() == []
    server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id="a")
    assert told() == ["a"]


@pytest.mark.requirement("ping.no-params", "ping.answered", "ping.either-side")
@pytest.mark.parametrize("params", [..., {}, {"_meta": {"x": 1}, "unknown": [1]}], ids=str)
@pytest.mark.parametrize(("revision", "role"), answering_ends("ping.answered"))
def test_ping_is_answered_with_an_empty_result(revision: str, role: Role, params: Any) -> None:
    end = end_of(revision, role)
    message = {"jsonrpc": "2.0", "id": "p", "method": "ping", "params": params}
    if params is ...:
        del message["params"]
    assert end.say(message) == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    assert not any(isinstance(event, RequestReceived) for event in end.events)


# Gateways exist that initialize by themselves and then forward the initialize of their client.
@pytest.mark.parametrize("first", revisions_holding("lifecycle.initialize-first"))
@pytest.mark.parametrize("second", revisions_holding("lifecycle.initialize-first"))
def test_a_second_initialize_begins_another_session(first: str, second: str) -> None:
    server = ServerEnd(first, client={"roots": {}})
    server.ask("tools/list", id=1)
    opening = initialize(second, {"sampling": {}}, id=2)
    assert server.say(opening) == ServerEnd(None).say(opening)
    session = server.connection.session
    assert session is not None
    assert (session.revision.name, session.peer_capabilities) == (second, {"sampling": {}})
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        server.send(SendRequest("roots/list"))
    (asked,) = server.connection.send(SendRequest("roots/list", related_request_id=1))
    assert asked.revision is not None
    assert asked.revision.name == first
    server.say(INITIALIZED)
    server.revision = second
    server.ask("tools/list", id=3)
    assert [event.revision.name for event in server.requests()] == [first, second]
    for id in (1, 3):
        (answer,) = server.send(SendResponse(id, {"tools": []}))
        assert answer["id"] == id


@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-first"))
def test_subscriptions_and_log_level_outlive_a_second_initialize(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("resources/subscribe", {"uri": "x://a"}, id=1)
    server.send(SendResponse(1, {}))
    server.ask("logging/setLevel", {"level": "error"}, id=2)
    before = server.connection.session
    (answer,) = server.say({**initialize(revision, id=2), "params": {}})
    assert (answer["id"], answer["error"]["code"]) == (2, -32602)
    assert server.connection.session is before
    server.say(initialize(revision, id=3))
    server.say(INITIALIZED)
    assert len(server.send(SendNotification(UPDATED, {"uri": "x://a"}))) == 1
    assert len(server.send(SendLog(None, "error", 1))) == 1
    assert server.send(SendLog(None, "warning", 1)) == []


@every
def test_a_frame_that_is_unreadable_is_answered_by_servers_alone(revision: str) -> None:
    (event,) = ServerEnd(revision).connection.receive(FrameError("too long"))
    assert isinstance(event, Send)
    assert event.message.error_code == -32700
    client = ClientEnd(revision).connection
    assert client.receive(FrameError("too long")) == [Ignored("too long")]


@pytest.mark.requirement("seed-compat.missing-ping")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.missing-ping"))
def test_a_server_without_ping_fails_the_ping_and_nothing_else(revision: str) -> None:
    client = ClientEnd(revision)
    call, ping = client.ask("tools/call", PARAMS["tools/call"]), client.ask("ping")
    failed = client.respond(ping, error={"code": -32601, "message": "no"})
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert isinstance(client.respond(call, result={"content": []}), ResponseReceived)


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


@pytest.mark.requirement("versioning.server-counter-offer", revisions=HANDSHAKE)
@pytest.mark.requirement("versioning.identifier", revisions=HANDSHAKE)
@pytest.mark.requirement("versioning.no-modern-in-initialize", revisions=HANDSHAKE)
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
