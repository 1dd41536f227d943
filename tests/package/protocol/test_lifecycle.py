"""The two lifecycles as a server sees them: the handshake, and requests that stand alone."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from kit.ends import both, end_of
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import (
    ALL,
    INITIALIZED,
    ClientEnd,
    ServerEnd,
    facts,
    initialize,
    meta_of,
    request,
    sent_request,
    sole,
)
from mcpgen_runtime.errors import LocalProtocolError, MethodNotFoundError, MissingCapabilityError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import (
    CloseStreams,
    NotificationReceived,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.lifecycle import SERVER_MOVES, State, Trigger
from mcpgen_runtime.revisions import REVISIONS
from requirements import EVERY_REVISION


def properties(root: Path, revision: str, name: str) -> set[str]:
    """The members that a definition of a revision's schema has."""
    schema = json.loads((root / "schema" / revision / "schema.json").read_text("utf-8"))
    return set(schema.get("definitions", schema.get("$defs"))[name]["properties"])


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    """An initialize request that lacks one of its params."""
    params = {key: value for key, value in message["params"].items() if key != name}
    return {**message, "params": params}


@pytest.mark.requirement("lifecycle.initialize-first")
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
    (answer,) = server.say(initialize(speaks))
    assert answer["result"]["protocolVersion"] == speaks


@pytest.mark.requirement("lifecycle.initialize-first", "ping.answered")
@pytest.mark.parametrize("speaks", [None, *revisions_holding("lifecycle.initialize-first")])
def test_ping_is_answered_in_every_state_of_the_handshake(speaks: str | None) -> None:
    server = ServerEnd(None, speaks=speaks)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    revision = speaks or revisions_holding("lifecycle.initialize-first")[-1]
    for message in (None, initialize(revision), INITIALIZED):
        if message is not None:
            server.say(message)
        assert server.say(ping) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


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
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-result"))
def test_the_server_answers_with_revision_capabilities_and_name(revision: str) -> None:
    (answer,) = ServerEnd(None, {"tools": {}}).say(initialize(revision))
    assert answer["result"] == {
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "server", "version": "1"},
        "instructions": "be kind",
    }


# Gateways exist that initialize by themselves and then forward the initialize of their client, and
# others whose clients share one server process. No page forbids to answer each of these.
@pytest.mark.parametrize("first", revisions_holding("lifecycle.initialize-first"))
@pytest.mark.parametrize("second", revisions_holding("lifecycle.initialize-first"))
@pytest.mark.parametrize("confirmed", [False, True], ids=["answered", "ready"])
def test_a_second_initialize_is_answered_as_the_first_would_be(
    first: str, second: str, confirmed: bool
) -> None:
    server = ServerEnd(None)
    server.say(initialize(first, {"sampling": {}}))
    if confirmed:
        server.say(INITIALIZED)
    fresh = ServerEnd(None).say(initialize(second, {"roots": {}}, id=2))
    assert server.say(initialize(second, {"roots": {}}, id=2)) == fresh
    session = server.connection.session
    assert session is not None
    assert (session.revision.name, session.peer_capabilities) == (second, {"roots": {}})


@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-first"))
def test_after_a_second_initialize_the_server_waits_again(
    revision: str,
) -> None:
    server = ServerEnd(revision)
    server.say(initialize(revision, {"roots": {}}, id=2))
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        server.connection.send(SendRequest("roots/list"))
    server.events.clear()
    server.say(INITIALIZED)
    assert [type(event) for event in server.events] == [NotificationReceived]
    server.connection.send(SendRequest("roots/list"))


@pytest.mark.parametrize("first", revisions_holding("lifecycle.initialize-first"))
@pytest.mark.parametrize("second", revisions_holding("lifecycle.initialize-first"))
def test_inbound_requests_outlive_a_second_initialize(first: str, second: str) -> None:
    server = ServerEnd(first)
    server.ask("tools/list", id=1)
    server.say(initialize(second, id=2))
    server.say(INITIALIZED)
    server.revision = second
    server.ask("tools/list", id=3)
    assert [event.revision.name for event in server.requests()] == [first, second]
    for id in (1, 3):
        answer = sole(server.connection.send(SendResponse(id, {"tools": []})))
        assert answer is not None
        assert json.loads(answer.data)["id"] == id


@pytest.mark.parametrize("first", revisions_holding("lifecycle.initialize-first"))
@pytest.mark.parametrize("second", revisions_holding("lifecycle.initialize-first"))
def test_a_related_request_goes_to_the_peer_of_its_request(first: str, second: str) -> None:
    server = ServerEnd(first, client={"roots": {}})
    server.ask("tools/list", id=1)
    server.say(initialize(second, id=2))
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        server.connection.send(SendRequest("roots/list"))
    _, message = sent_request(
        server.connection.send(SendRequest("roots/list", related_request_id=1))
    )
    assert message.revision.name == first


@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-first"))
def test_subscriptions_and_log_level_outlive_a_second_initialize(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("resources/subscribe", {"uri": "x://a"}, id=1)
    server.connection.send(SendResponse(1, {}))
    server.ask("logging/setLevel", {"level": "error"}, id=2)
    server.say(initialize(revision, id=3))
    session = server.connection.session
    assert session is not None
    assert (session.subscriptions, session.log_level) == ({"x://a"}, "error")


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialize-first"))
def test_a_second_initialize_that_is_refused_changes_nothing(revision: str, missing: str) -> None:
    server = ServerEnd(revision)
    before = server.connection.session
    (answer,) = server.say(without(initialize(revision, id=2), missing))
    assert (answer["id"], answer["error"]["code"]) == (2, -32602)
    assert server.connection.session is before
    server.connection.send(SendRequest("roots/list"))


@pytest.mark.requirement("lifecycle.initialize-first", revisions=EVERY_REVISION)
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
        server.connection.send(SendRequest("roots/list"))
    else:
        with pytest.raises(LocalProtocolError, match=r"not confirmed|nothing was agreed"):
            server.connection.send(SendRequest("roots/list"))


@pytest.mark.requirement("lifecycle.initialized-notification")
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.initialized-notification"))
def test_a_server_asks_nothing_before_the_client_is_ready(revision: str) -> None:
    server = ServerEnd(None)
    server.say(initialize(revision, {"roots": {}}))
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        server.connection.send(SendRequest("roots/list"))
    assert not server.connection.send(SendNotification("notifications/tools/list_changed"))
    server.connection.send(SendRequest("ping"))
    server.say(INITIALIZED)
    server.connection.send(SendRequest("roots/list"))
    assert len(server.connection.send(SendNotification("notifications/tools/list_changed"))) == 1


@pytest.mark.requirement("lifecycle.respect-capabilities-must", "capabilities.respected-session")
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


@pytest.mark.requirement(
    "lifecycle.respect-version-must", "versioning.single-per-session", revisions=EVERY_REVISION
)
def test_sessions_of_one_server_have_shapes_of_their_revisions(root: Path) -> None:
    pairs = [Pair(revision) for revision in revisions_holding("versioning.single-per-session")]
    for pair in pairs:
        pair.ask("client", "tools/list")
    for pair in pairs:
        pair.answer("server", RESULTS["tools/list"])
        answered = pair.sent("server")[-1]["result"]["tools"][0]
        known = properties(root, pair.revision.name, "Tool")
        assert set(answered) == known & {"name", "title", "inputSchema", "annotations"}
    assert properties(root, ALL[0], "Tool") != properties(root, ALL[-1], "Tool")


@pytest.mark.requirement("lifecycle.shutdown-by-transport")
@pytest.mark.parametrize(("revision", "role"), both("lifecycle.shutdown-by-transport"))
def test_a_session_ends_without_a_word(revision: str, role: Role) -> None:
    for known in REVISIONS.values():
        words = {*known.requests_from(role), *known.notifications_from(role)}
        assert words.isdisjoint({"shutdown", "exit"})
    end = end_of(revision, role)
    id, _ = sent_request(end.connection.send(SendRequest("ping")))
    assert end.connection.closed() == [id]
    assert len(end.connection.state.outbound) == 0
    (answer,) = end.say(request(revision, "shutdown", id=1)) or [{}]
    assert answer["error"]["code"] == -32601


@pytest.mark.requirement("lifecycle.no-handshake")
@pytest.mark.parametrize("speaks", [None, *revisions_holding("lifecycle.no-handshake")])
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.no-handshake"))
def test_any_request_may_be_the_first(revision: str, speaks: str | None) -> None:
    for method in REVISIONS[revision].client_requests:
        server = ServerEnd(revision, speaks=speaks)
        answers = server.ask(method, PARAMS[method])
        assert not any("error" in answer for answer in answers)
        assert answers or [event.method.name for event in server.requests()] == [method]
        assert server.connection.session is None


@pytest.mark.requirement("lifecycle.removed-methods", "ping.removed")
@pytest.mark.parametrize("speaks", [None, *revisions_holding("lifecycle.removed-methods")])
@pytest.mark.parametrize("revision", revisions_holding("lifecycle.removed-methods"))
def test_methods_of_the_handshake_revisions_are_gone(revision: str, speaks: str | None) -> None:
    earlier = [known for known in REVISIONS.values() if "initialize" in known.client_requests]
    gone = {name for known in earlier for name in known.client_requests}
    gone -= set(REVISIONS[revision].client_requests)
    assert gone >= {"initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/get"}
    server, client = ServerEnd(revision, speaks=speaks), ClientEnd(revision)
    for method in gone:
        (answer,) = server.ask(method, PARAMS.get(method), id=method)
        assert (answer["id"], answer["error"]["code"]) == (method, -32601)
        with pytest.raises(MethodNotFoundError):
            client.ask(method)
    for name in ("notifications/initialized", "notifications/roots/list_changed"):
        with pytest.raises(MethodNotFoundError):
            client.connection.send(SendNotification(name))


@pytest.mark.requirement("lifecycle.no-connection-context", "meta.request-fields-not-from-history")
@pytest.mark.requirement("capabilities.per-request")
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
    changed = "notifications/tools/list_changed"
    for id in ("a", "b"):
        server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id=id)
    server.say(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}
    )
    assert [
        send.related_request_id for send in server.connection.send(SendNotification(changed))
    ] == ["b"]
    server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id="c")
    assert [
        send.related_request_id for send in server.connection.send(SendNotification(changed))
    ] == ["b", "c"]
    server.connection.send(CloseStreams())
    assert not server.connection.send(SendNotification(changed))
    server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id="a")
    assert [
        send.related_request_id for send in server.connection.send(SendNotification(changed))
    ] == ["a"]


@pytest.mark.parametrize(("revision", "role"), both("lifecycle.shutdown-by-transport"))
def test_the_peer_of_each_end_is_the_other_one(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    session = end.connection.session
    assert session is not None
    assert session.peer_info == {
        "name": "tester" if role == "server" else other(role),
        "version": "1",
    }
