"""Events and answers that a connection makes of received messages, by exact values."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from kit.samples import RESULTS
from kit.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    UPDATED,
    ClientEnd,
    ServerEnd,
    describe_as,
    encode_message,
    facts,
    request,
    sent_request,
    sole,
)
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    InternalError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestLost,
)
from mcpgen_runtime.facts import Lifecycle, Role
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    CloseStreams,
    Ignored,
    Opened,
    OpenFailed,
    OpenSession,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
    SendRequest,
    SendResponse,
    StepTimedOut,
)
from mcpgen_runtime.protocol.initialization import Initialization
from mcpgen_runtime.protocol.lifecycle import Session, State
from mcpgen_runtime.protocol.probe import Probe
from mcpgen_runtime.protocol.requests import ConnectionState
from mcpgen_runtime.revisions import REVISIONS

every = pytest.mark.parametrize("revision", ALL)
sessions = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


def notification(method: str, **params: Any) -> dict[str, Any]:
    """A notification on the wire."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


@every
def test_a_client_has_no_subscribers(revision: str) -> None:
    connection = ClientEnd(revision).connection
    assert connection.subscribed_uris() == set()
    assert not connection.has_subscriber("notifications/resources/updated", {"uri": "memo://one"})
    assert not connection.send(CloseStreams())


@every
def test_results_have_no_extra_members_by_default(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    result = {**(RESULTS["tools/list"] or {}), "total": 5}
    client.say({"jsonrpc": "2.0", "id": id, "result": result})
    (event,) = client.events
    assert isinstance(event, ResponseReceived)
    kind = REVISIONS[revision].client_requests["tools/list"].result
    assert type(event.result) is kind


@every
def test_progress_extends_a_timeout_from_moment_zero_by_default(revision: str) -> None:
    client = ClientEnd(revision)
    id, _ = sent_request(
        client.connection.send(SendRequest("tools/list", timeout=5.0, progress=True))
    )
    assert client.connection.state.outbound.deadline(id) == 5.0
    data = encode_message(notification("notifications/progress", progressToken=id, progress=0.5))
    assert client.connection.receive(data, 2.0) == [ProgressReceived(id, 0.5, None, None)]
    assert client.connection.state.outbound.deadline(id) == 7.0
    client.connection.receive(data)
    assert client.connection.state.outbound.deadline(id) == 5.0


@modern
def test_a_server_takes_notifications_that_name_a_subscription(revision: str) -> None:
    server = ServerEnd(revision)
    key = facts(revision).meta.subscription_id or ""
    server.ask("tools/list", id=1)
    params = {"requestId": 1, "reason": "enough", "_meta": {key: "7"}}
    events = server.connection.receive(
        encode_message(notification("notifications/cancelled", **params))
    )
    assert events == [CancelReceived(1, "enough")]


@every
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"id": 77, "result": {}}, "result for 77, which is no open request"),
        ({"id": 77, "error": {"code": 5, "message": "x\x1b"}}, "error 5 about 77: x"),
        ({"id": None, "error": {"code": 5, "message": "x"}}, "error 5 about the connection: x"),
        (
            notification("notifications/cancelled", requestId=77),
            "cancelled: 77 is no open request",
        ),
        (
            notification("notifications/progress", progressToken=77, progress=1),
            "progress for 77, which nobody asked for",
        ),
        (notification("notifications/own"), "unknown notification notifications/own"),
    ],
    ids=str,
)
def test_a_message_about_nothing_open_is_dropped_with_a_reason(
    revision: str, message: dict[str, Any], reason: str
) -> None:
    client = ClientEnd(revision)
    strays = client.connection.state.outbound.strays
    (event,) = client.connection.receive(encode_message({"jsonrpc": "2.0", **message}))
    assert isinstance(event, Ignored)
    assert event.reason.startswith(reason)
    assert client.connection.state.outbound.strays - strays == ("result" in message)


@every
@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"result": {"tools": 5}}, RemoteProtocolError),
        ({"result": 5}, RemoteProtocolError),
        ({"result": {}, "error": {"code": 1, "message": "both"}}, RemoteProtocolError),
        ({"error": {"code": -32000, "message": "busy", "data": [1]}}, RemoteError),
        ({"error": 5}, RemoteProtocolError),
    ],
    ids=str,
)
def test_a_response_that_is_no_result_fails_its_request(
    revision: str, members: dict[str, Any], error: type[McpError]
) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    (event,) = client.connection.receive(encode_message({"jsonrpc": "2.0", "id": id, **members}))
    assert isinstance(event, RequestFailed)
    assert event.id == id
    assert type(event.error) is error
    assert "tools/list" in str(event.error)
    assert len(client.connection.state.outbound) == 0
    if isinstance(event.error, RemoteError):
        failure = event.error
        assert (failure.code, failure.message, failure.data) == (-32000, "busy", [1])


@sessions
def test_null_params_are_absent_params(revision: str) -> None:
    server = ServerEnd(revision)
    absent: list[dict[str, Any]] = [{}, {"params": None}, {"params": {}}]
    for params in absent:
        server.say({"jsonrpc": "2.0", "id": str(params), "method": "tools/list", **params})
    lists = [event for event in server.events if isinstance(event, RequestReceived)]
    assert [event.id for event in lists] == ["{}", "{'params': None}", "{'params': {}}"]
    (refusal,) = server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    assert refusal["error"]["message"] == "tools/call: expected params, got nothing"
    (refusal,) = server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": None})
    assert refusal["error"]["message"] == "tools/call: expected params, got nothing"


@every
def test_an_id_that_is_open_is_refused_and_stays_open(revision: str) -> None:
    server = ServerEnd(revision)
    assert server.ask("tools/list", id=1) == []
    (refusal,) = server.ask("tools/list", id=1)
    assert refusal["error"]["message"] == "id 1 belongs to an open request"
    assert refusal["id"] == 1
    assert sole(server.connection.send(SendResponse(1, RESULTS["tools/list"] or {}))) is not None
    assert server.ask("tools/list", id=1) == []


def opened_by(connection: ClientConnection, **answer: Any) -> list[Any]:
    """The events of the answer to the open request of the negotiation."""
    (id,) = connection.state.outbound.ids()
    return connection.receive(encode_message({"jsonrpc": "2.0", "id": id, **answer}))


def shook_hands(revision: str) -> dict[str, Any]:
    """A result of `initialize`."""
    info = {"name": "server", "version": "1"}
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": info}


DISCOVERED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "capabilities": {}}
UNKNOWN = {"code": -32601, "message": "unknown"}


@pytest.mark.parametrize(
    "answer",
    [{"error": UNKNOWN}, {"result": {**DISCOVERED, "supportedVersions": [HANDSHAKE[-1]]}}],
    ids=["error", "result"],
)
def test_each_message_of_an_opening_is_marked_as_such(answer: dict[str, Any]) -> None:
    connection = ClientConnection(REVISIONS, describe_as({}, "client"))
    assert sole(connection.send(OpenSession())).method == "server/discover"
    assert isinstance(connection.step, Probe)
    (following,) = opened_by(connection, **answer)
    assert (following.message.method, following.opens) == ("initialize", True)
    assert isinstance(connection.step, Initialization)
    confirmation, opened = opened_by(connection, result=shook_hands(HANDSHAKE[-1]))
    assert confirmation == Send(confirmation.message, opens=True)
    assert confirmation.message.method == "notifications/initialized"
    assert opened == Opened(REVISIONS[HANDSHAKE[-1]])
    assert connection.state.outbound.ids() == ()
    assert connection.first_step is None
    id, _ = sent_request(connection.send(SendRequest("ping")))
    answered = connection.receive(encode_message({"jsonrpc": "2.0", "id": id, "result": {}}))
    assert [type(event) for event in answered] == [ResponseReceived]


def test_a_probe_that_is_refused_late_is_ignored() -> None:
    connection = ClientConnection(REVISIONS, describe_as({}, "client"))
    probe = sole(connection.send(OpenSession()))
    (following,) = connection.receive(StepTimedOut())
    assert (following.message.method, following.opens) == ("initialize", True)
    late = encode_message({"jsonrpc": "2.0", "id": probe.id, "error": UNKNOWN})
    assert connection.receive(late) == [Ignored("server/discover was refused, late")]
    confirmation, _ = opened_by(connection, result=shook_hands(HANDSHAKE[0]))
    assert confirmation.message.method == "notifications/initialized"


def test_a_probe_that_is_answered_late_takes_the_handshake_back() -> None:
    connection = ClientConnection(REVISIONS, describe_as({}, "client"))
    probe = sole(connection.send(OpenSession()))
    (following,) = connection.receive(StepTimedOut())
    result = {**DISCOVERED, "supportedVersions": [PER_REQUEST[-1]]}
    late = encode_message({"jsonrpc": "2.0", "id": probe.id, "result": result})
    assert connection.receive(late) == [Opened(REVISIONS[PER_REQUEST[-1]])]
    assert connection.state.outbound.ids() == ()
    stray = {"jsonrpc": "2.0", "id": following.message.id, "result": shook_hands(HANDSHAKE[-1])}
    (event,) = connection.receive(encode_message(stray))
    assert isinstance(event, Ignored)


def test_after_a_handshake_no_answer_to_the_probe_is_expected() -> None:
    connection = ClientConnection(REVISIONS, describe_as({}, "client"))
    probe = sole(connection.send(OpenSession()))
    (following,) = connection.receive(StepTimedOut())
    result = shook_hands(HANDSHAKE[-1])
    connection.receive(
        encode_message({"jsonrpc": "2.0", "id": following.message.id, "result": result})
    )
    assert connection.state.outbound.ids() == ()
    late = encode_message({"jsonrpc": "2.0", "id": probe.id, "error": UNKNOWN})
    text = f"error -32601 about {probe.id}: unknown, which is no open request any more"
    assert connection.receive(late) == [Ignored(text)]


def state_of(role: Role, spoken: tuple[str, ...], agreed: str | None) -> ConnectionState:
    """The state of a connection that speaks all revisions or those with a handshake."""
    revisions = REVISIONS if spoken is ALL else REVISIONS.of(Lifecycle.HANDSHAKE)
    state = ConnectionState(role, revisions, describe_as({"now": {}}, role), {})
    if agreed is not None:
        state.session = Session(
            revision=REVISIONS[agreed],
            own_capabilities={"then": {}},
            peer_capabilities={},
            peer_info={},
            instructions=None,
            state=State.READY,
        )
    return state


@pytest.mark.parametrize(
    ("role", "spoken", "agreed", "candidates"),
    [
        ("client", ALL, HANDSHAKE[0], [HANDSHAKE[0]]),
        ("client", ALL, None, [PER_REQUEST[-1]]),
        ("client", HANDSHAKE, None, [HANDSHAKE[-1]]),
        ("server", ALL, HANDSHAKE[0], [HANDSHAKE[0], PER_REQUEST[-1]]),
        ("server", ALL, None, [PER_REQUEST[-1]]),
        ("server", HANDSHAKE, HANDSHAKE[0], [HANDSHAKE[0]]),
        ("server", HANDSHAKE, None, [HANDSHAKE[-1]]),
    ],
)
def test_a_notification_belongs_to_one_of_a_few_revisions(
    role: Role, spoken: tuple[str, ...], agreed: str | None, candidates: list[str]
) -> None:
    state = state_of(role, spoken, agreed)
    assert [each.name for each in state.candidate_revisions()] == candidates


def test_a_session_keeps_the_capabilities_that_it_began_with() -> None:
    states = [state_of("server", ALL, agreed) for agreed in (HANDSHAKE[0], None)]
    own = [
        [*state.own_capabilities(REVISIONS[name])]
        for state in states
        for name in (HANDSHAKE[0], PER_REQUEST[-1])
    ]
    assert own == [["then"], ["now"], ["now"], ["now"]]


@sessions
def test_a_subscription_begins_and_ends_with_its_response(revision: str) -> None:
    server, states = ServerEnd(revision).connection, list[bool]()
    for id, method in enumerate(("resources/subscribe", "resources/unsubscribe")):
        server.receive(encode_message(request(revision, method, {"uri": "memo://one"}, id=id)))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
        server.send(SendResponse(id, {}))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
    assert states == [False, True, True, False]


@every
def test_a_result_without_json_form_is_refused(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    result = {**(RESULTS["tools/list"] or {}), "_meta": {"a": object()}}
    with pytest.raises(InternalError, match="tools/list: result: "):
        server.connection.send(SendResponse(1, result))
    with pytest.raises(InternalError, match="tools/list: expected an object as result, got 5"):
        server.connection.send(SendResponse(1, 5))
    assert tuple(server.connection.state.inbound) == (1,)


@sessions
def test_a_result_in_json_is_sent_as_passed(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    message = sole(server.connection.send(SendResponse(1, Raw(b'{"own":1}'))))
    assert message is not None
    assert b'"result":{"own":1}' in message.data


@every
def test_a_connection_that_ended_has_no_open_requests(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    ended = [client.connection.closed() for _ in range(2)]
    assert (ended, len(client.connection.state.outbound)) == ([[id], []], 0)


@pytest.mark.parametrize("failure", [RemoteProtocolError("no"), ConnectionClosedError("gone")])
def test_a_negotiation_that_fails_ends_with_its_error(failure: McpError) -> None:
    connection = ClientConnection(REVISIONS.only(HANDSHAKE[-1]), describe_as({}, "client"))
    identifier, _ = sent_request(connection.send(OpenSession()))
    lost = RequestLost(identifier, failure)
    assert connection.receive(lost) == [OpenFailed(failure)]
    assert connection.state.outbound.ids() == ()
    ignored = Ignored(f"{identifier}, which is no open request: {failure}")
    assert connection.receive(lost) == [ignored]
