"""A server's connection with a handshake alone: what its session has, and what comes before it."""

from __future__ import annotations

from typing import Any

import pytest

from kit.samples import EVERY_SERVER_CAPABILITY
from kit.wire import (
    EVERY_CLIENT_CAPABILITY,
    HANDSHAKE,
    INITIALIZED,
    UPDATED,
    ClientEnd,
    describe_as,
    encode_message,
    initialize,
    sent_messages,
    sent_request,
)
from mcpgen_runtime.errors import FrameError, InvalidParamsError, McpError
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    Ignored,
    RequestReceived,
    Send,
    SendRequest,
)
from mcpgen_runtime.protocol.handshake import check_subscriptions, handshake_connection
from mcpgen_runtime.protocol.lifecycle import Session, State
from mcpgen_runtime.revisions import REVISIONS

sessions = pytest.mark.parametrize("revision", HANDSHAKE)
CHARACTERS = 262_144


def new_connection(revision: str | None = None, extensions: Any = None) -> Any:
    """A server's connection, with a session of a revision if one is named."""
    spoken = REVISIONS.of(REVISIONS[HANDSHAKE[-1]].lifecycle)
    describe = describe_as(EVERY_SERVER_CAPABILITY, "server")
    connection = handshake_connection(spoken, describe, extensions or {})
    if revision is not None:
        connection.receive(encode_message(initialize(revision, EVERY_CLIENT_CAPABILITY)))
        connection.receive(encode_message(INITIALIZED))
    return connection


def ask(connection: Any, method: str, id: Any = 1, **params: Any) -> Any:
    """The only event of a request, or the error that it is answered with."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    (event,) = events = connection.receive(encode_message(message))
    return sent_messages(events)[0] if isinstance(event, Send) else event


@pytest.mark.parametrize(
    ("uris", "allowed"),
    [
        ([f"{n}" for n in range(1000)], True),
        ([f"{n}" for n in range(1001)], False),
        (["x" * CHARACTERS], True),
        (["x" * CHARACTERS, ""], True),
        (["x" * CHARACTERS, "y"], False),
    ],
    ids=["1000", "1001", "longest", "and none", "and one"],
)
@sessions
def test_a_session_follows_limited_resources(revision: str, uris: list[str], allowed: bool) -> None:
    connection = new_connection(revision)
    connection.session.subscriptions |= set(uris[1:])
    event = ask(connection, "resources/subscribe", uri=uris[0])
    if allowed:
        check_subscriptions(uris)
        assert isinstance(event, RequestReceived)
    else:
        with pytest.raises(InvalidParamsError, match="at most 1000 resources to follow, with 2621"):
            check_subscriptions(uris)
        assert event["error"]["code"] == -32602
    assert len(connection.state.outbound) == 0


def test_before_a_session_there_is_nothing_to_report() -> None:
    connection = new_connection()
    assert not connection.has_subscriber(UPDATED, {"uri": "a"})
    assert connection.subscribed_uris() == set()
    (event,) = connection.receive(encode_message(INITIALIZED))
    assert event == Ignored("notifications/initialized: not expected now")
    refusal = ask(connection, "tools/list")
    assert refusal["error"]["message"] == "expected initialize first, got tools/list"
    assert ask(connection, "ping")["result"] == {}
    assert connection.session is None


@sessions
def test_subscriptions_of_a_session_are_those_of_its_client(revision: str) -> None:
    connection = new_connection(revision)
    connection.session.subscriptions.add("a")
    assert [connection.has_subscriber(UPDATED, {"uri": uri}) for uri in "ab"] == [True, False]
    uris = connection.subscribed_uris()
    assert uris == {"a"}
    assert uris is not connection.session.subscriptions


@sessions
def test_a_handshake_is_confirmed_once_by_a_message_in_turn(revision: str) -> None:
    connection = new_connection()
    connection.receive(encode_message(initialize(revision, EVERY_CLIENT_CAPABILITY)))
    assert (connection.session.state, connection.session.confirmed) == (State.ANSWERED, False)
    (event,) = connection.receive(encode_message(INITIALIZED))
    assert event.method.name == "notifications/initialized"
    assert (connection.session.state, connection.session.confirmed) == (State.READY, True)
    (event,) = connection.receive(encode_message(INITIALIZED))
    assert event == Ignored("the handshake was confirmed already")


@pytest.mark.parametrize("revision", HANDSHAKE[:-1])
def test_another_initialize_begins_a_session_and_keeps_its_level(revision: str) -> None:
    connection = new_connection(HANDSHAKE[-1])
    connection.session.subscriptions.add("a")
    ask(connection, "logging/setLevel", level="error")
    message = initialize(revision, EVERY_CLIENT_CAPABILITY)
    message["params"]["clientInfo"] = 5
    (refused,) = connection.receive(encode_message(message))
    assert isinstance(refused, Send)
    session = connection.session
    assert (session.revision.name, session.state) == (HANDSHAKE[-1], State.READY)
    (answer,) = connection.receive(encode_message(initialize(revision, EVERY_CLIENT_CAPABILITY)))
    assert answer.message.revision.name == revision
    assert connection.session.revision.name == revision
    assert connection.session.log_level == "error"
    assert connection.session.subscriptions == {"a"}
    session = connection.session
    assert (session.state, session.confirmed) == (State.ANSWERED, False)


@sessions
def test_an_assumed_session_lacks_what_its_requests_need(revision: str) -> None:
    connection = new_connection()
    session = Session(REVISIONS[revision], {}, EVERY_CLIENT_CAPABILITY)
    connection.assume_session(session, "a session of its own")
    assert connection.session is session
    assert session.own_capabilities.keys() >= {"tools", "resources"}
    with pytest.raises(McpError, match="a session of its own"):
        connection.send(SendRequest("roots/list"))
    assert isinstance(ask(connection, "tools/list"), RequestReceived)


@sessions
def test_requests_of_a_process_begin_with_its_prefix(revision: str) -> None:
    connection = new_connection(revision)
    connection.state.outbound.prefix = "p-"
    ids = [sent_request(connection.send(SendRequest("roots/list")))[0] for _ in range(2)]
    assert len(set(ids)) == 2
    assert all(id.startswith("p-") for id in ids)


@sessions
def test_so_many_methods_are_known_to_be_allowed(revision: str) -> None:
    row = REVISIONS[revision].client_requests["ping"]
    connection = new_connection(revision, {f"own/{n}": row for n in range(250)})
    for n in range(250):
        assert isinstance(ask(connection, f"own/{n}", id=n), Send | dict)
    assert len(connection.session.admitted) == 200


@sessions
def test_a_frame_that_is_unreadable_is_answered_by_servers_alone(revision: str) -> None:
    connection = new_connection(revision)
    (event,) = connection.receive(FrameError("too long"))
    assert event.message.error_code == -32700
    client = ClientEnd(revision).connection
    assert client.receive(FrameError("too long")) == [Ignored("too long")]


@sessions
def test_a_cancelled_request_is_closed_with_its_reason(revision: str) -> None:
    connection = new_connection(revision)
    ask(connection, "tools/list", id="a")
    params = {"requestId": "a", "reason": "enough"}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert connection.receive(encode_message(message)) == [CancelReceived("a", "enough")]
    assert isinstance(ask(connection, "tools/list", id="a"), RequestReceived)
