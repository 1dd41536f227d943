"""Subscriptions: which changes reach which stream or session, and how streams end."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from kit.wire import (
    LISTEN,
    UPDATED,
    ServerEnd,
    encode_message,
    legacy,
    request,
)
from mcpgen_runtime import InvalidParamsError, MissingCapabilityError
from mcpgen_runtime.protocol.events import (
    SendResponse,
)
from mcpgen_runtime.protocol.subscriptions import accepted_of_extensions


def listen(server: ServerEnd, id: Any, **wanted: Any) -> None:
    """Open a subscription stream."""
    (answer,) = server.ask(LISTEN, {"notifications": wanted}, id=id)
    assert answer["method"].endswith("/acknowledged")


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


@legacy
def test_a_subscription_begins_and_ends_with_its_response(revision: str) -> None:
    server, states = ServerEnd(revision).connection, list[bool]()
    for id, method in enumerate(("resources/subscribe", "resources/unsubscribe")):
        server.receive(encode_message(request(revision, method, {"uri": "memo://one"}, id=id)))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
        server.send(SendResponse(id, {}))
        states.append(server.has_subscriber(UPDATED, {"uri": "memo://one"}))
    assert states == [False, True, True, False]
