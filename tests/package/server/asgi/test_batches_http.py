"""Batches over HTTP: several messages in one POST, where the revision has them."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import JSON, speaking
from kit.rules import revisions_holding
from kit.waiting import WaitingServer
from kit.wire import INITIALIZED, SESSIONS, cancelled_notification, request, text_in
from mcpgen_runtime import Context, Limits, Server

pytestmark = pytest.mark.processes

WITH = revisions_holding("http.post-body-forms-batch")
WITHOUT = tuple(revision for revision in SESSIONS if revision not in WITH)
with_batches = pytest.mark.parametrize("revision", WITH)


class Meeting:
    """A server with a tool that waits for another call of it: one alone never ends."""

    def __init__(self) -> None:
        self.server = Server("tester")
        self.calls = 0
        self.both = anyio.Event()
        self.cancelled = anyio.Event()

        @self.server.tool()
        async def meet(ctx: Context, name: str) -> str:
            self.calls += 1
            if self.calls == 2:
                self.both.set()
            await self.both.wait()
            return name

        @self.server.tool()
        async def report(ctx: Context, name: str) -> str:
            await ctx.info(name)
            return name

        @self.server.tool()
        async def forever(ctx: Context) -> str:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
            return ""


def call(tool: str, id: Any, **arguments: Any) -> dict[str, Any]:
    return request(WITH[0], "tools/call", {"name": tool, "arguments": arguments}, id=id)


def ping(id: Any) -> dict[str, Any]:
    return request(WITH[0], "ping", id=id)


@pytest.mark.requirement("http.post-body-forms-batch", "http.request-reply-type")
@with_batches
async def test_requests_of_a_batch_run_together_for_one_array(revision: str) -> None:
    meeting = Meeting()
    async with speaking(meeting.server, revision) as http:
        batch = [call("meet", 1, name="a"), INITIALIZED, call("meet", "two", name="b")]
        reply = await http.post(batch)
        assert (reply.status, reply.fields["content-type"]) == (200, JSON)
        texts = {each["id"]: text_in(each) for each in reply.json}
        assert texts == {1: "a", "two": "b"}


@pytest.mark.workers
@with_batches
@pytest.mark.parametrize(
    ("batch", "answers"),
    [
        pytest.param([ping(1)], {1: None}, id="one request"),
        pytest.param(
            [5, ping(1), {"jsonrpc": "2.0", "id": 2}],
            {None: -32600, 1: None, 2: -32600},
            id="parts that are no messages get errors of their own",
        ),
        pytest.param(
            [call("report", 1, name="a"), cancelled_notification(1), ping(2)],
            {2: None},
            id="a request that its batch cancels is not begun",
        ),
    ],
)
async def test_each_request_has_its_answer_in_the_array(
    revision: str, batch: Any, answers: dict[Any, int | None]
) -> None:
    async with speaking(Meeting().server, revision) as http:
        reply = await http.post(batch)
        assert (reply.status, reply.fields["content-type"]) == (200, JSON)
        codes = {each["id"]: each.get("error", {}).get("code") for each in reply.json}
        assert (codes, len(reply.json)) == (answers, len(answers))


TOO_MANY = "expected at most 100 messages"


@pytest.mark.requirement("http.post-body-single")
@pytest.mark.parametrize(
    ("revision", "batch", "status", "message"),
    [
        *(
            (revision, batch, 400, "got an array")
            for revision in WITHOUT
            for batch in ([], [call("meet", 1, name="a")], [ping(1), INITIALIZED], b" [ {} ]")
        ),
        *((WITH[0], batch, 400, "") for batch in (b"[]", b"[", b"[1]", b"[{]", b"[null]")),
        *(
            (WITH[0], f"[{','.join([part] * 101)}]".encode(), 400, TOO_MANY)
            for part in ("1", "[]", '{"jsonrpc":"2.0","method":"notifications/initialized"}')
        ),
        (WITH[0], [call("meet", id, name="a") for id in range(4)], 503, "Limits.per_session"),
    ],
)
async def test_a_batch_is_refused_whole_and_harms_no_session(
    revision: str, batch: Any, status: int, message: str
) -> None:
    meeting = Meeting()
    async with speaking(meeting.server, revision, limits=Limits(per_session=3)) as http:
        reply = await http.post(batch)
        assert (reply.status, message in reply.error["message"]) == (status, True)
        assert reply.code in (-32700, -32600, -32603)
        assert "id" not in reply.json or reply.json["id"] is None
        assert (await http.ask(revision, "ping", id="still")).result == {}
        if revision in WITH:
            assert len((await http.post([ping(id) for id in range(3)])).json) == 3
        assert meeting.calls == 0


@with_batches
async def test_responses_in_a_batch_answer_the_server_s_questions(
    revision: str, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, revision) as http,
        waiting.calling(http, revision, 1, "ask") as one,
        waiting.calling(http, revision, 2, "ask") as two,
    ):
        asked = [(await each.message(), await each.message())[1] for each in (one, two)]
        answers = [{"jsonrpc": "2.0", "id": each["id"], "result": {}} for each in asked]
        assert (await http.post(answers)).status == 202
        assert [text_in(await each.message()) for each in (one, two)] == ["asked", "asked"]


@with_batches
async def test_a_resource_that_is_subscribed_in_batches_takes_memory_once(revision: str) -> None:
    server = Server("tester", subscribe=True)
    server.resource("long://{name}")(lambda name: name)
    subscribe = request(revision, "resources/subscribe", {"uri": "long://" + "x" * 5000})
    async with speaking(server, revision, limits=Limits(session_bytes=12_000)) as http:
        for _ in range(5):
            answers = (await http.post([subscribe, ping(2)])).json
            assert sorted(each["id"] for each in answers if "result" in each) == [1, 2]


class Noting(Server):
    """A server that notes when it begins and ends to handle a notification."""

    notes = ""

    async def notified(self, ctx: Any) -> None:
        self.notes += "("
        await anyio.lowlevel.checkpoint()
        self.notes += ")"


@with_batches
@pytest.mark.parametrize("requests", [[], [ping(1), ping(2)]], ids=["alone", "with requests"])
async def test_notifications_of_a_batch_are_handled_one_by_one(
    revision: str, requests: list[Any]
) -> None:
    noting = Noting("tester")
    changed = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    async with speaking(noting, revision) as http:
        assert (await http.post([*[changed] * 9, *requests])).status in (200, 202)
        assert noting.notes == "()" * 10  # with that of the handshake


@with_batches
async def test_one_request_of_a_batch_may_be_cancelled_alone(revision: str) -> None:
    meeting = Meeting()
    async with speaking(meeting.server, revision) as http:
        batch = [call("forever", 1), call("report", 2, name="b")]
        async with http.stream("POST", batch) as stream:
            first = [await stream.message(), await stream.message()]
            assert "method" in first[0]
            assert first[1]["id"] == 2
            await http.post(cancelled_notification(1))
            assert await stream.messages() == []
        assert meeting.cancelled.is_set()
