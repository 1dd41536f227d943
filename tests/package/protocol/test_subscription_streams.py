"""Subscriptions: which changes reach which stream or session, and how streams end."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from kit.wire import (
    CHANGED,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    ClientEnd,
    ServerEnd,
    cancelled_notification,
    encode_message,
    every,
    legacy,
    modern,
    request,
    sent_request,
    sole,
    tag,
)
from mcpgen_runtime import InvalidParamsError, MissingCapabilityError
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    CancelRequest,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.subscriptions import accepted_of_extensions


def listen(server: ServerEnd, id: Any, **wanted: Any) -> None:
    """Open a subscription stream."""
    (answer,) = server.ask(LISTEN, {"notifications": wanted}, id=id)
    assert answer["method"].endswith("/acknowledged")


@modern
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


def test_a_filter_may_have_subjects_of_extensions() -> None:
    rows = [
        SimpleNamespace(
            name=f"notifications/{member}",
            capability=("extensions", "a.b/tasks"),
            facts=SimpleNamespace(subscription=member, extension=extension),
        )
        for member, extension in (("taskIds", True), ("listChanged", False), (None, True))
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


@every
def test_a_closed_stream_cancels_as_its_revision_says(revision: str) -> None:
    connection = ClientEnd(revision).connection
    id, _ = sent_request(connection.send(SendRequest("tools/list")))
    message = sole(connection.send(CancelRequest(id, stream_closed=True)))
    assert (message is None) is (revision in PER_REQUEST)
    assert len(connection.state.outbound) == 0
    assert sole(connection.send(CancelRequest(id, stream_closed=True))) is None


@legacy
def test_a_subscription_begins_and_ends_with_its_response(revision: str) -> None:
    server, states = ServerEnd(revision).connection, list[bool]()
    for id, method in enumerate(("resources/subscribe", "resources/unsubscribe")):
        server.receive(encode_message(request(revision, method, {"uri": "memo://one"}, id=id)))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
        server.send(SendResponse(id, {}))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
    assert states == [False, True, True, False]


@modern
def test_a_server_takes_notifications_that_name_a_subscription(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    message = cancelled_notification(1, reason="enough", _meta={tag(revision): "7"})
    assert server.connection.receive(encode_message(message)) == [CancelReceived(1, "enough")]
