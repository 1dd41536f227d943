"""Subscriptions over HTTP: a POST whose answer stays open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.asgi_client import SESSION, asgi, fields_of
from kit.asgi_stream import SECONDS
from kit.rules import revisions_holding
from kit.web import Web
from kit.wire import ACKNOWLEDGED, LISTEN, facts, request
from mcpgen_runtime import Limits

REVISIONS = revisions_holding("http.listen-response-stream", "subscriptions.ack-first")

pytestmark = [
    pytest.mark.parametrize("revision", REVISIONS),
    pytest.mark.processes,
    pytest.mark.workers,
]

TOOLS, PROMPTS = "notifications/tools/list_changed", "notifications/prompts/list_changed"


def wants(**notifications: Any) -> dict[str, Any]:
    return {"notifications": notifications}


def tag_of(revision: str, message: Mapping[str, Any]) -> Any:
    """The subscription that a message says it belongs to."""
    body = message["result"] if "result" in message else message["params"]
    return body["_meta"][facts(revision).meta.subscription_id]


@pytest.mark.requirement(
    "http.listen-response-stream",
    "http.x-accel-buffering",
    "http.no-resumability",
    "http.no-sessions",
    "subscriptions.ack-first",
    "subscriptions.nothing-before-ack",
)
async def test_a_subscription_stream_begins_with_the_acknowledgement(revision: str) -> None:
    web = Web()
    params = wants(toolsListChanged=True)
    async with asgi(web.server) as http:
        async with http.asking(revision, LISTEN, params, begun=False) as stream:
            web.server.remove_tool("logs")  # in the same breath
            first = await stream.message()
            assert stream.fields["content-type"] == "text/event-stream"
            assert stream.fields["x-accel-buffering"] == "no"
            assert SESSION not in stream.fields
            assert first["method"] == ACKNOWLEDGED
            assert first["params"]["notifications"] == params["notifications"]
            web.server.remove_tool("counts")
            change = await stream.message()
            assert change["method"] == TOOLS
        assert b"id:" not in stream.raw


@pytest.mark.requirement("subscriptions.id-value", "subscriptions.one-copy-per-subscription")
async def test_each_subscription_gets_its_own_copy_under_its_own_id(revision: str) -> None:
    web = Web()
    params = wants(toolsListChanged=True)
    async with (
        asgi(web.server) as http,
        http.asking(revision, LISTEN, params, id="7") as text,
        http.asking(revision, LISTEN, params, id=7) as number,
        http.asking(revision, LISTEN, params, id=7) as same_id_of_another_client,
    ):
        streams = ((text, "7"), (number, 7), (same_id_of_another_client, 7))
        for stream, tag in streams:
            assert tag_of(revision, await stream.message()) == tag
        web.server.remove_tool("logs")
        for stream, tag in streams:
            change = await stream.message()
            assert (change["method"], tag_of(revision, change)) == (TOOLS, tag)
            assert type(tag_of(revision, change)) is type(tag)


@pytest.mark.requirement("subscriptions.filter-fields")
@pytest.mark.parametrize(
    ("filters", "fields", "status"),
    [
        ({"toolsListChanged": "yes"}, {}, 400),
        ({"toolsListChanged": True}, {"accept": "application/json"}, 406),
    ],
)
async def test_a_filter_of_the_wrong_type_or_without_events_is_refused(
    revision: str, filters: dict[str, Any], fields: dict[str, str], status: int
) -> None:
    message = request(revision, LISTEN, wants(**filters), id=4)
    async with asgi(Web().server) as http:
        reply = await http.post(message, **fields_of(revision, message), **fields)
    assert (reply.status, reply.json["id"]) == (status, 4)


@pytest.mark.requirement("http.listen-no-request-scoped", "subscriptions.no-request-scoped")
async def test_progress_and_logs_of_requests_stay_on_their_own_streams(revision: str) -> None:
    key = facts(revision).meta.log_level
    assert key is not None
    web = Web()
    loud = {key: "debug", "progressToken": "p"}
    async with asgi(web.server) as http:
        async with http.asking(
            revision, LISTEN, wants(toolsListChanged=True), id=9, meta=loud
        ) as stream:
            await stream.message()
            for params in ({"name": "counts", "arguments": {"to": 2}}, {"name": "logs"}):
                reply = await http.ask(revision, "tools/call", params, meta=loud)
                assert len(reply.messages) == 3
            web.server.remove_tool("logs")
            assert (await stream.message())["method"] == TOOLS
        assert stream.raw.count(b"data:") == 2


@pytest.mark.requirement(
    "subscriptions.graceful-close",
    "subscriptions.graceful-result-shape",
    "subscriptions.id-value",
    "subscriptions.server-cancelled-on-teardown",
)
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_server_that_ends_ends_subscriptions_with_their_result(
    revision: str, is_late: bool
) -> None:
    """The schema asks for a cancellation on stdio alone, and a response ends its stream."""
    app = Web().server.asgi()
    async with asgi(app) as http:
        if is_late:
            await app.close_streams()
        params = wants(toolsListChanged=True)
        async with http.asking(revision, LISTEN, params, id="x") as stream:
            if not is_late:
                await http.shut_down()
            first, last = await stream.messages()
    assert (first["method"], last["id"]) == (ACKNOWLEDGED, "x")
    result = last["result"]
    assert result.keys() <= {"resultType", "_meta"}
    assert (result["resultType"], tag_of(revision, last)) == ("complete", "x")


@pytest.mark.requirement(
    "subscriptions.no-server-memory",
    "subscriptions.only-requested-types",
    "http.close-is-cancel",
    "subscriptions.cancel-http",
)
async def test_a_client_that_comes_back_hears_of_new_changes_only(revision: str) -> None:
    web = Web()
    params = wants(toolsListChanged=True)
    async with asgi(web.server) as http:
        async with http.asking(revision, LISTEN, params) as before:
            await before.message()
        with anyio.fail_after(SECONDS):
            await before.finished.wait()
        web.server.remove_tool("logs")
        async with http.asking(revision, LISTEN, params) as stream:
            assert (await stream.message())["method"] == ACKNOWLEDGED
            web.server.remove_prompt("greeting")
            web.server.remove_tool("counts")
            assert (await stream.message())["method"] == TOOLS
        assert stream.raw.count(b"data:") == 2
        assert before.raw.count(b"data:") == 1


@pytest.mark.one_process
async def test_subscriptions_are_counted_apart_from_requests(revision: str) -> None:
    web, params = Web(), wants(toolsListChanged=True)
    async with asgi(web.server, limits=Limits(in_flight=1, streams=1)) as http:
        for _ in range(3):
            async with http.asking(revision, LISTEN, params) as stream:
                await stream.message()
                for id in (1, 2):
                    assert (await http.ask(revision, "tools/list", id=id)).status == 200
                refused = await http.ask(revision, LISTEN, params)
                assert (refused.status, "Limits.streams" in refused.error["message"]) == (503, True)
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()
            assert (await http.ask(revision, "tools/list")).status == 200
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False):
            await web.begun.wait()
            assert (await http.ask(revision, "tools/list")).status == 503
