"""Attributes of outgoing messages that transports read, compared with the message's JSON."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from kit.pair import Pair
from kit.samples import EVERY_SERVER_CAPABILITY
from kit.wire import (
    CHANGED,
    HANDSHAKE,
    INITIALIZED,
    LISTEN,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    describe_as,
    encode_message,
    facts,
    request,
    sent_request,
    sole,
    tag,
)
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import (
    InvalidParamsError,
    LocalProtocolError,
    MethodNotFoundError,
    MissingCapabilityError,
    ProtocolError,
)
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    CloseStreams,
    Ignored,
    ReportProgress,
    RequestReceived,
    Send,
    SendError,
    SendLog,
    SendNotification,
    SendRequest,
)
from mcpgen_runtime.protocol.jsonrpc import parse
from mcpgen_runtime.protocol.lifecycle import State
from mcpgen_runtime.protocol.server_connection import ServerConnection
from mcpgen_runtime.protocol.subscriptions import accepted_of_extensions
from mcpgen_runtime.revisions import REVISIONS
from package.protocol.traffic import whole_session

ALL = tuple(REVISIONS)


def kind_on_the_wire(message: OutgoingMessage) -> str:
    """The kind of a message by the members of its JSON."""
    wire = json.loads(message.data)
    if "method" in wire:
        return "request" if "id" in wire else "notification"
    return "response" if "result" in wire else "error"


@pytest.mark.parametrize("revision", ALL)
def test_kind_id_and_method_are_those_of_the_json(revision: str) -> None:
    messages = whole_session(revision).messages
    assert {message.kind for message in messages} == {
        "request",
        "notification",
        "response",
        "error",
    }
    for message in messages:
        wire = json.loads(message.data)
        assert message.kind == kind_on_the_wire(message)
        assert message.is_response == ("method" not in wire)
        assert message.id == wire.get("id")
        assert message.method == wire.get("method", "")
        assert message.error_code == wire.get("error", {}).get("code")


@pytest.mark.parametrize("revision", ALL)
def test_messages_about_a_received_request_name_it(revision: str) -> None:
    for message in whole_session(revision).messages:
        wire = json.loads(message.data)
        if message.is_response:
            assert message.related_request_id == wire["id"]
        elif message.method == "notifications/progress":
            # The token of a request of ours is its id.
            assert message.related_request_id == wire["params"]["progressToken"]


@pytest.mark.parametrize("revision", ALL)
def test_messages_name_the_agreed_revision(revision: str) -> None:
    pair = Pair(revision)
    pair.ask("client", "tools/list")
    pair.answer("server", InvalidParamsError("no"))
    assert {str(message.revision and message.revision.name) for message in pair.messages} == {
        revision
    }


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("other", ALL)
def test_a_result_of_another_revision_becomes_one_of_its_own(revision: str, other: str) -> None:
    foreign = REVISIONS[other].client_requests["tools/list"].result
    assert foreign is not None
    pair = Pair(revision)
    pair.ask("client", "tools/list")
    pair.answer("server", foreign(tools=[]))
    assert pair.wire[-1][1]["result"]["tools"] == []


def params_of(message: OutgoingMessage | None) -> Any:
    """The params of a message without `_meta`."""
    assert message is not None
    params = json.loads(message.data)["params"]
    params.pop("_meta", None)
    return params


@pytest.mark.parametrize("revision", ALL)
def test_progress_states_what_is_given_and_grows(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1, meta={"progressToken": "t"})
    connection = server.connection
    assert params_of(sole(connection.send(ReportProgress(1, 1)))) == {
        "progressToken": "t",
        "progress": 1,
    }
    assert sole(connection.send(ReportProgress(1, 1, 3, "again"))) is None
    more = {"total": 3} if revision == ALL[0] else {"total": 3, "message": "half"}
    assert params_of(sole(connection.send(ReportProgress(1, 2, 3, "half")))) == {
        "progressToken": "t",
        "progress": 2,
        **more,
    }
    with pytest.raises(LocalProtocolError, match="expected a finite number, got inf"):
        connection.send(ReportProgress(1, float("inf")))
    assert sole(connection.send(ReportProgress(2, 1))) is None


@pytest.mark.parametrize("revision", ALL)
def test_a_log_message_states_what_is_given(revision: str) -> None:
    server, level = ServerEnd(revision), facts(revision).meta.log_level
    server.ask("tools/list", id=1, meta={level: "info"} if level else {})
    connection = server.connection
    assert params_of(sole(connection.send(SendLog(1, "info", 5)))) == {
        "level": "info",
        "data": 5,
    }
    named = {"level": "error", "data": [1], "logger": "me"}
    assert params_of(sole(connection.send(SendLog(1, "error", [1], "me")))) == named
    marked = sole(connection.send(SendLog(1, "error", 5, None, {"com.example/a": 1})))
    assert marked is not None
    if revision in (HANDSHAKE[-1], *PER_REQUEST):
        assert json.loads(marked.data)["params"]["_meta"] == {"com.example/a": 1}
    assert sole(connection.send(SendLog(2, "error", 5))) is None
    assert (sole(connection.send(SendLog(None, "error", 5))) is None) is (revision in PER_REQUEST)
    with pytest.raises(LocalProtocolError, match=r"expected one of debug, .*got 'loud'"):
        connection.send(SendLog(1, "loud", 5))


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("reason", [None, "", "enough"])
def test_a_cancellation_states_its_reason_if_there_is_one(
    revision: str, reason: str | None
) -> None:
    connection = ClientEnd(revision).connection
    id, _ = sent_request(connection.send(SendRequest("tools/list")))
    expected = {"requestId": id} if reason is None else {"requestId": id, "reason": reason}
    assert params_of(sole(connection.send(CancelRequest(id, reason)))) == expected
    assert sole(connection.send(CancelRequest(id))) is None
    assert len(connection.state.outbound) == 0


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("limits", "deadline"),
    [
        ({}, None),
        ({"timeout": 5.0}, 5.0),
        ({"limit": 7.0}, 7.0),
        ({"timeout": 5.0, "limit": 7.0}, 5.0),
        ({"timeout": 9.0, "limit": 7.0}, 7.0),
        ({"timeout": 5.0, "now": 10.0}, 15.0),
        ({"limit": 7.0, "now": 10.0}, 17.0),
    ],
    ids=str,
)
def test_the_deadline_of_a_request_is_counted_from_now(
    revision: str, limits: dict[str, float], deadline: float | None
) -> None:
    connection = ClientEnd(revision).connection
    how: dict[str, Any] = dict(limits)
    now = how.pop("now", 0.0)
    id, _ = sent_request(connection.send(SendRequest("tools/list", **how), now))
    assert connection.state.outbound.deadline(id) == deadline
    assert connection.state.outbound.ids() == (id,)


@pytest.mark.parametrize("revision", ALL)
def test_params_that_are_no_object_are_refused_before_sending(revision: str) -> None:
    connection = ClientEnd(revision).connection
    for params, text in (
        ([1], r"tools/list: expected an object as params, got \[1\]"),
        ({"cursor": 5}, "tools/list: params: Expected `str"),
        ({"cursor": "a", "x": object()}, "tools/list: params: no JSON form"),
    ):
        with pytest.raises(LocalProtocolError, match=text):
            connection.send(SendRequest("tools/list", params))
    assert len(connection.state.outbound) == 0


def listen(server: ServerEnd, id: Any, **wanted: Any) -> None:
    """Open a subscription stream."""
    (answer,) = server.ask(LISTEN, {"notifications": wanted}, id=id)
    assert answer["method"].endswith("/acknowledged")


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_streams_end_with_a_result_and_a_cancellation(revision: str) -> None:
    server = ServerEnd(revision)
    listen(server, 1, toolsListChanged=True)
    listen(server, "b", resourceSubscriptions=["memo://b"])
    connection, key = server.connection, tag(revision)
    updated = "notifications/resources/updated"
    assert connection.has_subscriber(updated, {"uri": "memo://b"})
    assert not connection.has_subscriber(updated, {"uri": "memo://a"})
    assert connection.subscribed_uris() == {"memo://b"}
    messages = list(connection.send(CloseStreams()))
    assert [(each.kind, each.related_request_id) for each in messages] == [
        *(("response", 1), ("notification", 1)),
        *(("response", "b"), ("notification", "b")),
    ]
    results = [json.loads(each.data)["result"]["_meta"][key] for each in messages[::2]]
    assert results == [1, "b"]
    assert [params_of(each) for each in messages[1::2]] == [{"requestId": 1}, {"requestId": "b"}]
    assert not connection.send(CloseStreams())
    assert connection.subscribed_uris() == set()
    assert tuple(connection.state.inbound) == ()


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_a_change_goes_to_each_stream_that_selects_it(revision: str) -> None:
    server = ServerEnd(revision)
    listen(server, 1, toolsListChanged=True)
    listen(server, 2, toolsListChanged=True, promptsListChanged=True)
    server.ask("tools/list", id=3)
    connection, key = server.connection, tag(revision)
    for member, ids in (("toolsListChanged", [1, 2]), ("promptsListChanged", [2])):
        messages = list(
            connection.send(SendNotification(CHANGED[member], {"_meta": {"com.example/a": 1}}, 3))
        )
        assert [each.related_request_id for each in messages] == ids
        metas = [json.loads(each.data)["params"]["_meta"] for each in messages]
        assert metas == [{"com.example/a": 1, key: id} for id in ids]
    assert not connection.send(SendNotification(CHANGED["resourcesListChanged"], {}, 3))
    connection.closed()
    assert not connection.send(SendNotification(CHANGED["toolsListChanged"]))


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_without_sessions_a_notification_goes_with_a_request(revision: str) -> None:
    server = ServerEnd(revision, speaks=revision)
    (event,) = (server.ask("tools/list", id=1), *server.requests())[1:]
    assert isinstance(event, RequestReceived)
    level = {"level": "info", "data": 1}
    assert not server.connection.send(SendNotification("notifications/message", level, 1))
    assert not server.connection.send(SendNotification("notifications/message", level, 7))
    acknowledged = "notifications/subscriptions/acknowledged"
    assert not server.connection.send(SendNotification(acknowledged, {"notifications": {}}, 1))
    with pytest.raises(MethodNotFoundError):
        server.connection.send(SendNotification("notifications/own", {}, 1))
    with pytest.raises(LocalProtocolError, match="giving up the request itself"):
        server.connection.send(SendNotification("notifications/cancelled", {"requestId": 1}, 1))


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_in_a_session_updates_are_of_resources_that_are_followed(revision: str) -> None:
    server = ServerEnd(revision)
    updated = "notifications/resources/updated"
    assert not server.connection.send(SendNotification(updated, {"uri": "memo://a"}))
    session = server.connection.session
    assert session is not None
    session.subscriptions.add("memo://a")
    (message,) = list(server.connection.send(SendNotification(updated, {"uri": "memo://a"})))
    assert params_of(message) == {"uri": "memo://a"}
    assert not server.connection.send(SendNotification(updated, {"uri": "memo://b"}))


def extension_row(member: str | None, *path: str, extension: bool = True) -> Any:
    """A notification of a server that streams may subscribe to."""
    own = SimpleNamespace(subscription=member, extension=extension)
    return SimpleNamespace(name=f"notifications/{member}", capability=path, facts=own)


def test_a_filter_may_have_subjects_of_extensions() -> None:
    rows = [
        extension_row("taskIds", "extensions", "a.b/tasks"),
        extension_row("listChanged", "extensions", "a.b/tasks", extension=False),
        extension_row(None, "extensions", "a.b/tasks"),
    ]
    revision: Any = SimpleNamespace(server_notifications=dict(enumerate(rows)))
    both: dict[str, Any] = {"extensions": {"a.b/tasks": {}}}

    def accepted(own: Any, peer: Any, wanted: Any) -> Any:
        params = Raw(json.dumps({"notifications": {**wanted, "listChanged": ["a"]}}).encode())
        return list(accepted_of_extensions(params, revision, own, peer))

    name = "notifications/taskIds"
    assert accepted(both, both, {"taskIds": ["a", "b", "a"]}) == [(name, "taskIds", ["a", "b"])]
    assert accepted(both, both, {}) == accepted({}, both, {"taskIds": ["a"]}) == []
    assert list(accepted_of_extensions(None, revision, both, both)) == []
    with pytest.raises(MissingCapabilityError, match="taskIds of a subscription"):
        accepted(both, {}, {"taskIds": ["a"]})
    for wrong in ("a", 5, ["a", 5], {"a": 1}):
        with pytest.raises(InvalidParamsError, match="taskIds: expected a list of texts"):
            accepted(both, both, {"taskIds": wrong})


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_a_server_is_told_of_resources_that_a_stream_follows(revision: str) -> None:
    subscribed = list[Any]()
    describe = describe_as(EVERY_SERVER_CAPABILITY, "server")
    connection = ServerConnection(REVISIONS, describe, on_subscription=subscribed.append)
    for id, wanted in ((1, {"resourceSubscriptions": ["memo://a"]}), (2, {})):
        message = request(revision, LISTEN, {"notifications": wanted}, id=id)
        (event,) = connection.receive(encode_message(message))
        assert isinstance(event, Send)
        assert params_of(event.message) == {"notifications": wanted}
    assert subscribed == [["memo://a"]]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_server_of_all_revisions_takes_notifications_in_turn(revision: str) -> None:
    session = ServerEnd(revision).connection.session
    assert session is not None
    assert (session.state, session.confirmed) == (State.READY, True)
    unopened = ServerEnd(None, speaks=revision)
    unopened.say(INITIALIZED)
    assert unopened.events == [Ignored("notifications/initialized: not expected now")]
    known = ServerEnd(revision)
    assert known.ask("tools/list", id=1, meta={"com.example/a": 1}) == []
    assert len([*known.requests()]) == 1


@pytest.mark.parametrize("revision", ALL)
def test_a_closed_stream_cancels_as_its_revision_says(revision: str) -> None:
    connection = ClientEnd(revision).connection
    id, _ = sent_request(connection.send(SendRequest("tools/list")))
    message = sole(connection.send(CancelRequest(id, stream_closed=True)))
    assert (message is None) is (revision in PER_REQUEST)
    assert len(connection.state.outbound) == 0
    assert sole(connection.send(CancelRequest(id, stream_closed=True))) is None


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_progress_of_a_client_counts_from_moment_zero_by_default(revision: str) -> None:
    connection = ServerEnd(revision).connection
    id, _ = sent_request(connection.send(SendRequest("roots/list", timeout=5.0, progress=True)))
    params = {"progressToken": id, "progress": 1}
    data = encode_message({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    for receive in (
        lambda *now: connection.receive(data, *now),
        lambda *now: connection.receive(parse(data), *now),
    ):
        deadlines = []
        for now in ((2.0,), ()):
            receive(*now)
            deadlines.append(connection.state.outbound.deadline(id))
        assert deadlines == [7.0, 5.0]


@pytest.mark.parametrize(
    ("code", "sent"),
    [(-32100, -32100), (-32099, -32603), (-32023, -32603), (-32020, -32020), (-32019, -32019)],
)
@pytest.mark.parametrize("revision", PER_REQUEST)
def test_codes_of_the_specification_are_not_for_other_errors(
    revision: str, code: int, sent: int
) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    message = sole(server.connection.send(SendError(1, ProtocolError("own", code=code))))
    assert message is not None
    assert message.error_code == json.loads(message.data)["error"]["code"] == sent
    assert sole(server.connection.send(SendError(1, ProtocolError("own")))) is None
