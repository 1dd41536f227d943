"""Notifications: never answered, never with an id, and only those that somebody asked to hear."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kit.ends import answer_request, asking_ends, both, end_of
from kit.rules import revisions_holding
from kit.samples import EVERY_SERVER_CAPABILITY, PARAMS
from kit.wire import ClientEnd, ServerEnd, describe_as, sent_request, sole, speaking_to
from mcpgen_runtime.channel import Channel, OutgoingMessage
from mcpgen_runtime.errors import MethodNotFoundError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    NotificationReceived,
    ReportProgress,
    SendLog,
    SendNotification,
    SendRequest,
)
from mcpgen_runtime.protocol.server_connection import ServerConnection
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.peer import Peer
from mcpgen_runtime.runtime.request_context import RequestContext


@pytest.mark.requirement("jsonrpc.notification-no-response")
@pytest.mark.requirement("seed-compat.request-without-id", "seed-compat.placeholder-method-names")
@pytest.mark.parametrize(
    "message",
    [
        {"method": "foo/bar"},
        {"method": "notification", "params": {}},
        {"method": "method-name", "params": []},
        {"method": "tools/list"},
        {"method": "roots/list"},
        {"method": "ping"},
        {"method": "initialize", "params": {}},
        {"method": "notifications/cancelled", "params": 5},
        {"method": "notifications/cancelled", "params": {"requestId": {}}},
        {"method": "notifications/cancelled", "params": {"requestId": 999}},
        {"method": "notifications/cancelled"},
        {"method": "notifications/progress", "params": {"progressToken": 1}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}},
        {"method": "notifications/message", "params": {"level": "loud", "data": 1}},
        {"method": "notifications/roots/list_changed", "params": "x"},
        {"method": "notifications/roots/list_changed", "params": {"_meta": 5}},
        {"method": "notifications/initialized", "params": None},
        {"method": 5},
        {"method": None},
        {"method": "foo", "jsonrpc": "1.0"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), both("jsonrpc.notification-no-response"))
def test_nothing_that_looks_like_a_notification_is_answered(
    revision: str, role: Role, message: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    assert end.say({"jsonrpc": "2.0", **message}) == []
    if role == "server":
        assert answer_request(end, 3)["id"] == 3


@pytest.mark.requirement("jsonrpc.notification-no-response")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_notification_of_the_table_reaches_the_application(revision: str) -> None:
    for role in ("server", "client"):
        end = end_of(revision, role)
        rows = REVISIONS[revision].notifications_from(other(role))
        for name in rows.keys() & PARAMS.keys():
            end.events.clear()
            assert end.say({"jsonrpc": "2.0", "method": name, "params": PARAMS[name]}) == []
            (event,) = end.events
            assert isinstance(event, NotificationReceived)
            assert event.method.name == name


class Clumsy:
    """An application that fails whatever comes."""

    async def handle(self, ctx: RequestContext) -> Any:
        raise LookupError("the secret of /home/user/server.py")

    async def notified(self, ctx: RequestContext) -> None:
        raise LookupError("the secret of /home/user/server.py")

    async def serve(self, channel: Channel) -> None:
        """Serve one client."""
        describe = describe_as(EVERY_SERVER_CAPABILITY, "server")
        await Peer(ServerConnection(REVISIONS, describe), channel, self).run()


@pytest.mark.anyio
@pytest.mark.requirement("jsonrpc.notification-no-response", "jsonrpc.code-internal-error")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-internal-error"))
async def test_a_failing_handler_answers_requests_and_no_notifications(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    notifications = REVISIONS[revision].client_notifications.keys() & PARAMS.keys()
    async with speaking_to(Clumsy(), revision) as end:
        for name in notifications:
            await end.send({"jsonrpc": "2.0", "method": name, "params": PARAMS[name]})
        for method in ("resources/read", "tools/list"):
            answer = await end.ask(method, PARAMS[method], id=method)
            assert end.heard == []
            assert answer["error"] == {"code": -32603, "message": "internal error"}


@pytest.mark.requirement("jsonrpc.notification-no-id")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.notification-no-id"))
def test_no_notification_has_an_id(revision: str) -> None:
    server, client = ServerEnd(revision), ClientEnd(revision)
    if "subscriptions/listen" in REVISIONS[revision].client_requests:
        server.ask("subscriptions/listen", PARAMS["subscriptions/listen"], id="s")
    server.ask("tools/call", PARAMS["tools/call"], id="a", meta={"progressToken": "t"})
    sent: list[OutgoingMessage | None] = [
        sole(server.connection.send(ReportProgress("a", 1, 2, "half"))),
        sole(
            client.connection.send(
                CancelRequest(
                    sent_request(client.connection.send(SendRequest("tools/list")))[0], "no more"
                )
            )
        ),
    ]
    for connection in (server.connection, client.connection):
        for name in REVISIONS[revision].notifications_from(connection.state.role):
            if name in PARAMS:
                sent += list(connection.send(SendNotification(name, PARAMS[name])))
    messages = [json.loads(message.data) for message in sent if message is not None]
    assert len(messages) >= 3
    assert all("id" not in message and "method" in message for message in messages)


@pytest.mark.requirement("jsonrpc.interaction-starts-at-client")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.interaction-starts-at-client"))
def test_a_server_says_nothing_that_no_client_asked_for(revision: str) -> None:
    server = ServerEnd(revision, speaks=revision)
    for name in REVISIONS[revision].server_notifications.keys() & PARAMS.keys():
        assert not server.connection.send(SendNotification(name, PARAMS[name]))
    assert sole(server.connection.send(SendLog(None, "emergency", "fire"))) is None
    server.ask("tools/list", id=1)
    for name in REVISIONS[revision].server_notifications.keys() & PARAMS.keys():
        assert not server.connection.send(SendNotification(name, PARAMS[name]))


@pytest.mark.parametrize(("revision", "role"), both("jsonrpc.version-member"))
def test_a_notification_that_no_spoken_revision_has_is_refused(revision: str, role: Role) -> None:
    with pytest.raises(MethodNotFoundError):
        end_of(revision, role).connection.send(SendNotification("notifications/no/such"))


@pytest.mark.requirement("jsonrpc.reissue-with-new-id")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.reissue-with-new-id"))
def test_a_request_of_a_closed_connection_is_sent_as_a_new_one(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    first, _ = sent_request(end.connection.send(SendRequest("tools/call", PARAMS["tools/call"])))
    assert end.connection.closed() == [first]
    again, message = sent_request(
        end.connection.send(SendRequest("tools/call", PARAMS["tools/call"]))
    )
    assert json.loads(message.data)["id"] == again != first
