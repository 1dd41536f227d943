"""The two lifecycles: the handshake and its sessions, requests that stand alone, and ping."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kit.ends import ASKED, answering_ends, both, end_of
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import EVERY_CLIENT_CAPABILITY, EVERY_SERVER_CAPABILITY, PARAMS
from kit.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    UPDATED,
    ClientEnd,
    ServerEnd,
    cancelled_notification,
    describe_as,
    encode_message,
    facts,
    initialize,
    meta_of,
    request,
    sent_messages,
    sent_request,
)
from mcpgen_runtime import (
    REVISIONS,
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteError,
)
from mcpgen_runtime.errors import FrameError
from mcpgen_runtime.facts import Role, other
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
from mcpgen_runtime.protocol.handshake import handshake_connection
from mcpgen_runtime.protocol.lifecycle import SERVER_MOVES, Session, State, Trigger
from requirements import EVERY_REVISION


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    """An initialize request that lacks one of its params."""
    params = {key: value for key, value in message["params"].items() if key != name}
    return {**message, "params": params}


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


@pytest.mark.requirement("lifecycle.initialize-by-client")
@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-by-client"))
def test_initialize_needs_all_three_of_its_params(revision: str, missing: str) -> None:
    server = ServerEnd(None)
    for bad in (
        without(initialize(revision, id=1), missing),
        {**initialize(revision, id=1), "params": {**initialize(revision)["params"], missing: 5}},
    ):
        (answer,) = server.say(bad)
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


@pytest.mark.requirement(
    "lifecycle.initialize-first", "lifecycle.initialized-notification", revisions=EVERY_REVISION
)
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("trigger", Trigger)
def test_the_server_serves_in_each_state_what_the_table_has(state: State, trigger: Trigger) -> None:
    revision = revisions_holding("lifecycle.initialize-first")[-1]
    server = ServerEnd(None, speaks=revision)
    steps = {State.NEW: 0, State.ANSWERED: 1, State.READY: 2}[state]
    opening = initialize(revision, {"roots": {}})
    for message in itertools.islice((opening, INITIALIZED), steps):
        server.say(message)
    server.events.clear()
    messages: dict[Trigger, Any] = {
        Trigger.INITIALIZE: opening,
        Trigger.INITIALIZED: INITIALIZED,
        Trigger.PING: request(revision, "ping"),
        Trigger.REQUEST: request(revision, "tools/list"),
        Trigger.NOTIFICATION: {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
    }
    refused = any("error" in answer for answer in server.say(messages[trigger]))
    told = any(isinstance(event, NotificationReceived) for event in server.events)
    reached = told or any(server.requests())
    served = not refused and (reached or trigger in (Trigger.INITIALIZE, Trigger.PING))
    twice = (state, trigger) == (State.READY, Trigger.INITIALIZED)
    assert served is ((state, trigger) in SERVER_MOVES and not twice)
    if SERVER_MOVES.get((state, trigger), state) is State.READY:
        server.send(SendRequest("roots/list"))
    else:
        with pytest.raises(LocalProtocolError, match=r"not confirmed|nothing was agreed"):
            server.send(SendRequest("roots/list"))


@pytest.mark.requirement("lifecycle.respect-capabilities-must", "capabilities.respected-session")
@pytest.mark.requirement("capabilities.sampling-needs-declaration")
@pytest.mark.parametrize(("revision", "role"), both("lifecycle.respect-capabilities-must"))
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


@pytest.mark.requirement("lifecycle.respect-version-must", "versioning.single-per-session")
@pytest.mark.parametrize(("revision", "role"), both("versioning.single-per-session"))
def test_a_session_has_the_methods_of_its_revision_and_no_other(revision: str, role: Role) -> None:
    pair = Pair(revision)
    own = REVISIONS[revision].requests_from(role)
    for method in {name for known in REVISIONS.values() for name in known.requests_from(role)}:
        if method not in own:
            with pytest.raises(MethodNotFoundError):
                pair.ask(role, method, PARAMS[method])
        elif method != "initialize":
            pair.ask(role, method, PARAMS[method])
            assert pair.sent(role)[-1]["method"] == method


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


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-first"))
def test_subscriptions_and_log_level_outlive_a_second_initialize(
    revision: str, missing: str
) -> None:
    server = ServerEnd(revision)
    server.ask("resources/subscribe", {"uri": "x://a"}, id=1)
    server.send(SendResponse(1, {}))
    server.ask("logging/setLevel", {"level": "error"}, id=2)
    before = server.connection.session
    (answer,) = server.say(without(initialize(revision, id=2), missing))
    assert (answer["id"], answer["error"]["code"]) == (2, -32602)
    assert server.connection.session is before
    server.say(initialize(revision, id=3))
    server.say(INITIALIZED)
    assert len(server.send(SendNotification(UPDATED, {"uri": "x://a"}))) == 1
    assert len(server.send(SendLog(None, "error", 1))) == 1
    assert server.send(SendLog(None, "warning", 1)) == []


def handshake_server() -> Any:
    """The connection of a server without per-request revisions, as a package of some has it."""
    spoken = REVISIONS.of(REVISIONS[HANDSHAKE[-1]].lifecycle)
    return handshake_connection(spoken, describe_as(EVERY_SERVER_CAPABILITY, "server"), {})


def test_a_server_without_per_request_revisions_waits_for_its_session() -> None:
    connection = handshake_server()
    assert not connection.has_subscriber(UPDATED, {"uri": "a"})
    assert connection.subscribed_uris() == set()
    (event,) = connection.receive(encode_message(INITIALIZED))
    assert event == Ignored("notifications/initialized: not expected now")
    (refusal,) = sent_messages(
        connection.receive(encode_message(request(HANDSHAKE[-1], "tools/list")))
    )
    assert refusal["error"]["message"] == "expected initialize first, got tools/list"
    assert connection.session is None


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_an_assumed_session_lacks_what_its_requests_need(revision: str) -> None:
    connection = handshake_server()
    connection.assume_session(
        Session(REVISIONS[revision], {}, EVERY_CLIENT_CAPABILITY), "a session of its own"
    )
    with pytest.raises(McpError, match="a session of its own"):
        connection.send(SendRequest("roots/list"))
    (event,) = connection.receive(encode_message(request(revision, "tools/list")))
    assert isinstance(event, RequestReceived)


@pytest.mark.parametrize("revision", ALL)
def test_a_frame_that_is_unreadable_is_answered_by_servers_alone(revision: str) -> None:
    (event,) = ServerEnd(revision).connection.receive(FrameError("too long"))
    assert isinstance(event, Send)
    assert event.message.error_code == -32700
    client = ClientEnd(revision).connection
    assert client.receive(FrameError("too long")) == [Ignored("too long")]


@pytest.mark.requirement("ping.no-params", "ping.answered")
@pytest.mark.parametrize(("revision", "role"), both("ping.no-params"))
def test_ping_has_no_params_but_meta_and_waits_for_no_request(revision: str, role: Role) -> None:
    pair = Pair(revision)
    pair.ask(other(role), ASKED[role])
    pair.ask(role, "ping")
    assert "params" not in pair.sent(role)[-1]
    pair.ask(role, "ping", meta={"com.example/x": 1}, progress=False)
    assert pair.sent(role)[-1]["params"] == {"_meta": {"com.example/x": 1}}
    assert len(pair.told(role, ResponseReceived)) == 2


@pytest.mark.requirement("seed-compat.missing-ping")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.missing-ping"))
def test_a_server_without_ping_fails_the_ping_and_nothing_else(revision: str) -> None:
    client = ClientEnd(revision)
    call, ping = client.ask("tools/call", PARAMS["tools/call"]), client.ask("ping")
    failed = client.respond(ping, error={"code": -32601, "message": "no"})
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert isinstance(client.respond(call, result={"content": []}), ResponseReceived)
