"""Messages as JSON arrays: one revision has them, the others refuse them whole."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.samples import RESULTS
from kit.wire import INITIALIZED, ClientEnd, ServerEnd, initialize, request
from mcpgen_runtime import REVISIONS
from mcpgen_runtime.protocol.batch_parsing import parse_array, parse_batch
from mcpgen_runtime.protocol.events import NotificationReceived, ResponseReceived, SendResponse
from mcpgen_runtime.protocol.jsonrpc import Failure, ParsedMessage

BATCHED = revisions_holding("jsonrpc.batch-receive")
UNBATCHED = [revision for revision in REVISIONS if revision not in BATCHED]
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
batched = pytest.mark.parametrize("revision", BATCHED)
unbatched = pytest.mark.parametrize("revision", UNBATCHED)


@pytest.mark.requirement("jsonrpc.batch-receive", "jsonrpc.batch-response")
@pytest.mark.requirement("seed-compat.batch-in-2025-03-26")
@batched
def test_each_request_of_a_batch_is_served_without_notifications(revision: str) -> None:
    server = ServerEnd(revision)
    ping, listing = request(revision, "ping", id=1), request(revision, "tools/list", id="two")
    answers = server.say([ping, ROOTS_CHANGED, listing])
    assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert [event.id for event in server.requests()] == ["two"]
    assert len([event for event in server.events if isinstance(event, NotificationReceived)]) == 1
    (message,) = server.send(SendResponse("two", RESULTS["tools/list"]))
    assert message["result"]["tools"][0]["name"] == "echo"


@pytest.mark.requirement("jsonrpc.batch-response")
@pytest.mark.parametrize(
    ("batch", "codes"),
    [
        ([], [-32600]),
        ([1, [], {}], [-32600] * 3),
        ([ROOTS_CHANGED, INITIALIZED], []),
        ([{"jsonrpc": "2.0", "id": 5, "result": {}}], []),
    ],
    ids=repr,
)
@batched
def test_each_bad_part_of_a_batch_has_an_error_of_its_own(
    revision: str, batch: list[Any], codes: list[int]
) -> None:
    server = ServerEnd(revision)
    good = request(revision, "ping", id="good")
    assert [answer["error"]["code"] for answer in server.say(batch)] == codes
    if not batch:
        (answer,) = server.say(b"[{},")
        assert (answer["error"]["code"], answer.get("id")) == (-32700, None)
    else:
        *refused, last = server.say([*batch, good])
        assert [answer["error"]["code"] for answer in refused] == codes
        assert last == {"jsonrpc": "2.0", "id": "good", "result": {}}


@pytest.mark.requirement("jsonrpc.batch-receive")
@batched
def test_a_client_takes_a_batch_of_responses_and_of_requests(revision: str) -> None:
    client = ClientEnd(revision)
    ids = [client.ask("tools/list")["id"] for _ in range(2)]
    results = [{"jsonrpc": "2.0", "id": id, "result": RESULTS["tools/list"]} for id in ids]
    assert client.say(results) == []
    assert [event.id for event in client.events if isinstance(event, ResponseReceived)] == ids
    answers = client.say([request(revision, "ping", id=id) for id in (1, 2)])
    assert [answer["id"] for answer in answers] == [1, 2]


@pytest.mark.requirement("jsonrpc.batch-no-initialize")
@batched
def test_initialize_is_refused_inside_a_batch_and_served_outside(revision: str) -> None:
    for batch in ([initialize(revision)], [initialize(revision), INITIALIZED]):
        server = ServerEnd(None)
        (answer,) = server.say(batch)
        assert answer["error"]["code"] == -32600
        assert server.connection.session is None
        (answer,) = server.say(initialize(revision))
        assert answer["result"]["protocolVersion"] == revision
        refused, pong = server.say([initialize(revision, id=1), request(revision, "ping", id=2)])
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.requirement("jsonrpc.batch-removed", "jsonrpc.batch-undefined")
@pytest.mark.requirement("seed-compat.batch-outside-2025-03-26")
@unbatched
def test_other_revisions_refuse_an_array_whole_and_go_on(revision: str) -> None:
    server = ServerEnd(revision)
    batch = [request(revision, method, id=id) for id, method in ((1, "tools/list"), (2, "ping"))]
    (answer,) = server.say(batch)
    assert answer["error"]["code"] == -32600
    assert answer.get("id") is None
    assert list(server.requests()) == []
    server.ask("tools/list", id=3)
    assert [event.id for event in server.requests()] == [3]


@pytest.mark.requirement("jsonrpc.batch-removed")
@unbatched
def test_a_client_of_another_revision_takes_no_answer_in_a_batch(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    answer = {"jsonrpc": "2.0", "id": id, "result": RESULTS["tools/list"]}
    assert client.say([answer]) == []
    assert len(client.connection.state.outbound) == 1
    client.say(answer)
    assert len(client.connection.state.outbound) == 0


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_array_of_a_million_parts_takes_no_memory(revision: str) -> None:
    body = b"[" + b"1," * 1_000_000 + b"1]"
    server = ServerEnd(revision)
    tracemalloc.start()
    try:
        (refused,) = server.say(body)
        assert len(parse_array(body)) == 1
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()
    assert refused["error"]["code"] == -32600


def test_a_parsed_batch_gives_the_results_by_request() -> None:
    messages: list[dict[str, Any]] = [
        {"id": 1, "result": {"a": 1}},
        {"id": "2", "error": {"code": 1, "message": "x"}},
        {"id": 3, "result": []},
        {"error": {"code": 1, "message": "of the connection"}},
        {"id": 5, "method": "m"},
        {"id": 6},
    ]
    data = b" \n" + json.dumps([{"jsonrpc": "2.0", **each} for each in messages]).encode()
    parsed = ParsedMessage.of(data, parse_batch)
    assert parsed.is_batch
    assert parsed.results() == {1: b'{"a": 1}', "2": None, 3: None, 6: None}
    assert parsed.error_response() is None
    alone = ParsedMessage.of(b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}', parse_batch)
    assert alone.error_response() == Failure(None, 1, "x", None)
    assert not ParsedMessage.of(data).is_batch
