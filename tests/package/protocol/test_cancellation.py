"""Requests taken back: what is said about it, and what is ignored or comes too late.

Source: basic/utilities/cancellation; 2026-07-28: basic/patterns/cancellation.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from kit.ends import ASKED, answering_ends, ask, asking_ends, both, end_of
from kit.live import TEXT, FakeServer, live
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import (
    ALL,
    CANCELLED,
    HANDSHAKE,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    cancelled_notification,
    describe_as,
    request,
    sent_request,
    sole,
)
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import InternalError, RequestCancelledError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    CancelRequest,
    CloseStreams,
    Ignored,
    OpenSession,
    ReportProgress,
    RequestFailed,
    SendError,
    SendLog,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.chosen import Server
from package.protocol.traffic import whole_session

every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
IN_PROGRESS = "cancellation.in-progress-only"  # holds in every revision


def begin_request(revision: str, role: Role) -> tuple[Any, RequestId]:
    """An end and the id of a request that it has open."""
    end = end_of(revision, role)
    method = "tools/list" if role == "client" else "roots/list"
    identifier, _ = sent_request(end.connection.send(SendRequest(method)))
    return end, identifier


@pytest.mark.requirement(
    "cancellation.shape", "cancellation.shape-2025-11", "cancellation.either-side"
)
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
@pytest.mark.parametrize("reason", [None, "user went home"])
def test_a_cancellation_has_the_request_id_and_any_reason(
    revision: str, role: Role, reason: str | None
) -> None:
    end, id = begin_request(revision, role)
    message = sole(end.connection.send(CancelRequest(id, reason)))
    assert message is not None
    given = {} if reason is None else {"reason": reason}
    assert json.loads(message.data) == cancelled_notification(id, **given)


@pytest.mark.requirement("cancellation.in-progress-only", "cancellation.client-issued")
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
def test_only_an_open_request_of_ours_is_cancelled_and_only_once(revision: str, role: Role) -> None:
    end, id = begin_request(revision, role)
    assert isinstance(id, int)
    assert sole(end.connection.send(CancelRequest(id + 1))) is None
    assert sole(end.connection.send(CancelRequest(str(id)))) is None
    assert sole(end.connection.send(CancelRequest(id))) is not None
    assert sole(end.connection.send(CancelRequest(id))) is None
    end, id = begin_request(revision, role)
    end.say({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})
    assert sole(end.connection.send(CancelRequest(id))) is None


@pytest.mark.requirement("cancellation.client-issued")
@every
async def test_a_cancellation_can_not_be_sent_for_an_id_of_ones_choice(revision: str) -> None:
    async with live(Server("any"), revision) as (client, record):
        with pytest.raises(Exception, match="giving up the request itself"):
            await client.notify(CANCELLED, {"requestId": 1})
    assert record.sent_as(CANCELLED) == []


@pytest.mark.requirement("cancellation.not-initialize")
@pytest.mark.parametrize("revision", revisions_holding("cancellation.not-initialize"))
async def test_initialize_is_not_cancelled_when_the_client_gives_up(revision: str) -> None:
    client = ClientConnection(REVISIONS.only(revision), describe_as({}, "client"))
    assert (
        sole(client.send(CancelRequest(json.loads(sole(client.send(OpenSession())).data)["id"])))
        is None
    )
    silent = FakeServer(None)
    with anyio.move_on_after(0.05) as scope:
        async with connect(silent, revision=revision):
            pytest.fail("nobody answered")
    assert scope.cancelled_caught
    assert silent.closed
    assert ([said["method"] for said in silent.opening], silent.heard) == (["initialize"], [])


@pytest.mark.requirement("cancellation.not-initialize")
@pytest.mark.parametrize("revision", revisions_holding("cancellation.not-initialize"))
def test_a_server_goes_on_with_initialize_though_it_is_cancelled(revision: str) -> None:
    server = ServerEnd(None)
    message = request(revision, "initialize", id="i", params=ClientEnd(revision).opening["params"])
    (answer,) = server.say(message)
    assert server.say(cancelled_notification("i")) == []
    assert answer["result"]["protocolVersion"] == revision
    assert server.connection.session is not None


@pytest.mark.requirement("cancellation.same-direction")
@pytest.mark.parametrize(
    ("revision", "role"),
    [pair for pair in asking_ends(IN_PROGRESS) if pair[0] in HANDSHAKE],
)
def test_the_peer_can_not_cancel_a_request_that_we_sent(revision: str, role: Role) -> None:
    end, id = begin_request(revision, role)
    assert end.say(cancelled_notification(id)) == []
    assert len(end.connection.state.outbound) == 1
    assert sole(end.connection.send(CancelRequest(id))) is not None


@pytest.mark.requirement("cancellation.no-response", "cancellation.stops-processing")
@pytest.mark.parametrize(("revision", "role"), answering_ends(IN_PROGRESS))
@pytest.mark.parametrize("id", [7, "7", ""])
def test_a_cancelled_request_is_forgotten_and_not_answered(
    revision: str, role: Role, id: int | str
) -> None:
    end = end_of(revision, role)
    for started in (id, "other"):
        ask(end, ASKED[role], id=started)
    end.events.clear()
    assert end.say(cancelled_notification(id, reason="late")) == []
    assert list(end.events) == [CancelReceived(id, "late")]
    assert tuple(end.connection.state.inbound) == ("other",)
    assert sole(end.connection.send(SendResponse(id, RESULTS[ASKED[role]]))) is None
    assert sole(end.connection.send(SendError(id, InternalError("too late")))) is None
    assert sole(end.connection.send(SendResponse("other", RESULTS[ASKED[role]]))) is not None


@pytest.mark.requirement("cancellation.nothing-further", "stdio.cancel-server-silent")
@every
def test_nothing_more_is_said_about_a_cancelled_request(revision: str) -> None:
    pair = Pair(revision)
    key = pair.revision.facts.meta.log_level
    meta = None if key is None else {key: "debug"}
    id = pair.ask("client", "tools/call", PARAMS["tools/call"], progress=True, meta=meta)
    assert sole(pair.server.send(ReportProgress(id, 1))) is not None
    assert sole(pair.server.send(SendLog(id, "error", "on"))) is not None
    pair.deliver("client", sole(pair.client.send(CancelRequest(id))))
    assert sole(pair.server.send(ReportProgress(id, 2))) is None
    assert sole(pair.server.send(SendLog(id, "error", "on"))) is None
    assert sole(pair.server.send(SendResponse(id, TEXT))) is None


@pytest.mark.requirement("cancellation.invalid-ignored", "cancellation.may-be-ignored")
@pytest.mark.parametrize(("revision", "role"), both("cancellation.invalid-ignored"))
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        {"requestId": None},
        {"requestId": {}},
        {"requestId": 1.5},
        {"requestId": True},
        {"requestId": 999},
        {"requestId": "7"},
        {"requestId": 7, "reason": 5},
    ],
    ids=repr,
)
def test_a_cancellation_that_fits_nothing_is_ignored(
    revision: str, role: Role, params: Any
) -> None:
    end = end_of(revision, role)
    if (revision, role) in answering_ends(IN_PROGRESS):
        ask(end, ASKED[role], id=7)
    served = tuple(end.connection.state.inbound)
    end.events.clear()
    message = {"jsonrpc": "2.0", "method": CANCELLED}
    assert end.say(message if params is None else {**message, "params": params}) == []
    assert [type(event) for event in end.events] == [Ignored]
    assert tuple(end.connection.state.inbound) == served


@pytest.mark.requirement("cancellation.late-response-ignored")
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
@pytest.mark.parametrize(
    "answer", [{"result": {}}, {"error": {"code": 1, "message": "no"}}, {"result": 5}], ids=repr
)
def test_an_answer_that_comes_after_the_cancellation_is_ignored(
    revision: str, role: Role, answer: dict[str, Any]
) -> None:
    end, id = begin_request(revision, role)
    end.connection.send(CancelRequest(id))
    end.events.clear()
    assert end.say({"jsonrpc": "2.0", "id": id, **answer}) == []
    assert [type(event) for event in end.events] == [Ignored]


@pytest.mark.requirement("cancellation.server-references-listen")
@modern
def test_a_server_can_end_a_subscription_and_no_other_request(revision: str) -> None:
    client = ClientEnd(revision)
    call = client.ask("tools/call", PARAMS["tools/call"])
    listen = client.ask("subscriptions/listen", PARAMS["subscriptions/listen"])
    client.say(cancelled_notification(call["id"]))
    assert [type(event) for event in client.events] == [Ignored]
    client.say(cancelled_notification(listen["id"]))
    (event,) = client.events
    assert isinstance(event, RequestFailed)
    assert event.id == listen["id"]
    assert isinstance(event.error, RequestCancelledError)
    assert len(client.connection.state.outbound) == 1


@pytest.mark.requirement("cancellation.server-only-for-listen")
@modern
def test_a_server_cancels_nothing_but_subscriptions(revision: str) -> None:
    pair = whole_session(revision)
    for send in pair.server.send(CloseStreams()):
        pair.deliver("server", send)
    listened = [m["id"] for m in pair.sent("client") if m["method"] == "subscriptions/listen"]
    ended = [m["params"]["requestId"] for m in pair.sent("server") if m.get("method") == CANCELLED]
    assert ended == listened
    assert ended
