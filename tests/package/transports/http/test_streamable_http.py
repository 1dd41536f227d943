"""Streams of events over Streamable HTTP: resumed, polled, held open, given up."""

from __future__ import annotations

import json
import logging
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from kit import http_script
from kit.http_script import Script, log_message, result, says, stream_events
from kit.http_server import Asked, Handler, Reply
from kit.live import handlers_with, open_and_close
from kit.rules import revision_fixture
from kit.simulation import URL, MemoryReply, StreamResponse, reach, simulate
from kit.wire import SESSIONS
from mcpgen_runtime import ConnectFailedError, HttpTimeouts, ResponseLostError, Timeouts, connect

pytestmark = pytest.mark.processes

revision = revision_fixture(SESSIONS)

PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.04, linger=0.1)
scripted = partial(http_script.connect_scripted, timeouts=Timeouts(http=PAUSES))

BROKEN = ResponseLostError("the line broke")
UNREACHABLE = ConnectFailedError(URL, "no")
LOG = json.dumps(log_message("on"))
Answer: TypeAlias = bytes | int | Exception | StreamResponse | tuple[str, bytes] | Handler


class Connections(Script):
    """Answers a call and the GETs of its stream, or those of the standalone stream, in turn."""

    def __init__(self, revision: str, *answers: Answer, standalone: bool = False) -> None:
        super().__init__(revision)
        self.ids: list[str | None] = []
        self.times: list[float] = []
        self._answers = list(answers)
        self._call: Asked | None = None
        self._standalone = standalone
        self.on["GET"] = self.answer
        if not standalone:
            self.on["tools/call"] = self.answer

    async def answer(self, asked: Asked, reply: Reply) -> None:
        """Give the next answer; a call has no other stream than its own."""
        last = asked.fields.get("last-event-id")
        if asked.verb == "POST":
            self._call = asked
        elif last is None and not self._standalone:
            await reply.whole(405)
            return
        else:
            self.ids.append(last)
        self.times.append(anyio.current_time())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        kind = "text/event-stream"
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            await reply.whole(answer)
            return
        if callable(answer):
            await answer(asked, reply)
            return
        if isinstance(answer, StreamResponse):
            assert isinstance(reply, MemoryReply)
            reply.response = answer
            return
        if isinstance(answer, tuple):
            kind, answer = answer
        elif self._call is not None:
            answer = answer.replace(b"RESULT", json.dumps(result(self._call)).encode())
        await reply.whole(200, answer, Content_Type=kind)

    def pauses(self) -> list[float]:
        """The seconds between connections."""
        return [round(after - before, 6) for before, after in pairwise(self.times)]


STREAMS = json.loads(Path(__file__).with_name("streams.json").read_text("utf-8"))
"""Answers in turn, with the pauses before them, and what comes of it."""

DONE = "done"
FAILURES = {"broken": BROKEN, "unreachable": UNREACHABLE}


def answer_of(row: Any) -> Answer:
    """An answer of the table: a status, a stream, a text of a type, a refusal or a failure."""
    if isinstance(row, int):
        return row
    if isinstance(row, str):
        return row.replace("LOG", LOG).encode()
    if "after" in row:
        return says(b"", 503, Retry_After=row["after"])
    if "type" in row:
        return row["type"], row["text"].encode()
    failure = FAILURES[row["fails"]]
    if "text" not in row:
        return failure
    return StreamResponse(row["text"].replace("LOG", LOG).encode(), failure)


@pytest.mark.requirement("http.retry-respected", "http.client-polls")
@pytest.mark.parametrize("case", STREAMS["calls"])
def test_the_stream_of_a_call_is_resumed_after_pauses(
    revision: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, pauses, outcome = STREAMS["calls"][case].values()

    async def main() -> None:
        async with connect(URL, revision=revision) as client:
            if outcome == DONE:
                assert (await client.call_tool("echo")).content[0].text == "done"
                return
            with pytest.raises(ResponseLostError, match=outcome):
                await client.call_tool("echo")

    script = Connections(revision, *map(answer_of, answers))
    reach(script, monkeypatch)
    simulate("asyncio", 0, main)
    assert script.pauses() == pauses
    assert not {None, "cut"} & {*script.ids}


def use_standalone_stream(
    script: Connections, monkeypatch: pytest.MonkeyPatch, *, listens: bool = False
) -> None:
    """Keep a client connected for minutes."""

    async def main() -> None:
        async with connect(URL, revision=script.revision) as client:
            await client.call_tool("echo")
            await anyio.sleep(300)
            if listens:
                await open_and_close(client.listen(tools=True))

    reach(script, monkeypatch)
    simulate("asyncio", 0, main)


@pytest.mark.parametrize("case", STREAMS["standalone"])
def test_the_standalone_stream_is_reopened_after_pauses(
    revision: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, pauses, ids = STREAMS["standalone"][case].values()
    script = Connections(revision, *map(answer_of, answers), standalone=True)
    use_standalone_stream(script, monkeypatch)
    assert (script.pauses(), script.ids) == (pauses, ids)


@pytest.mark.parametrize("answer", [400, 404, 405, 409, 501, ("application/json", b"{}")])
def test_a_server_without_such_a_stream_is_no_error(
    revision: str, answer: Answer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script = Connections(revision, answer, standalone=True)
    use_standalone_stream(script, monkeypatch, listens=True)
    assert set(script.ids) == {None}
    assert len(script.ids) == 1 or answer == 501  # which may pass
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


def test_a_server_that_forgets_each_session_is_given_pauses_too(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetting(Connections):
        async def answer(self, asked: Asked, reply: Reply) -> None:
            if "last-event-id" in asked.fields:
                await reply.whole(404)
            else:
                await super().answer(asked, reply)

    script = Forgetting(revision, b"id: 1\nretry: 0\n\n", standalone=True)
    script.session = "s"
    use_standalone_stream(script, monkeypatch)
    assert script.pauses()[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


class Calls(Script):
    """A server whose tool call begins a stream, which a GET resumes."""

    def __init__(self, revision: str, call: Handler, **on: Handler) -> None:
        super().__init__(revision, "abc")
        self.calls: list[Asked] = []
        self._begin = call
        self.on |= {"tools/call": self.begin, "GET": self.resume, **on}

    async def begin(self, asked: Asked, reply: Reply) -> None:
        """Keep the call, and begin its stream."""
        self.calls.append(asked)
        await self._begin(asked, reply)

    async def resume(self, asked: Asked, reply: Reply) -> None:
        """Go on with the stream of the call, and with no other."""
        if asked.fields.get("last-event-id") != "1-0":
            await reply.whole(405)
            return
        await reply.stream()
        await reply.event(result(self.calls[-1]), id="1-1")
        await reply.end()


def resumed(server: Any) -> list[Asked]:
    """The GETs that resume a stream."""
    return [asked for asked in server.of("GET") if "last-event-id" in asked.fields]


@pytest.mark.requirement(
    "http.resume-after-break",
    "http.resume-after-any-disconnect",
    "http.resume-always-get",
    "http.stream-any-disconnect",
    "http.prime-event-not-a-message",
)
@pytest.mark.parametrize("end", [Reply.cut, Reply.end], ids=["broken", "closed"])
async def test_a_stream_is_resumed_by_a_get_with_the_last_event_id(
    revision: str, end: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    call = stream_events(b"id: 1-0\ndata:\n\n", last=end)
    async with scripted(Calls(revision, call)) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert not [each for each in caplog.records if each.msg.startswith("ignored")]
    assert len(server.of("tools/call")) == 1
    (get,) = resumed(server)
    assert (get.target, get.body) == ("/mcp", b"")
    assert get.fields["last-event-id"] == "1-0"
    assert get.fields["mcp-session-id"] == "abc"
    assert "text/event-stream" in get.fields["accept"]


@pytest.mark.requirement("http.get-accept", "http.get-optional", "http.multiple-streams")
async def test_a_stream_for_messages_about_no_request_is_held_open(revision: str) -> None:
    question = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
    stream = stream_events(log_message("a"), question, last=Reply.gone)
    heard: list[str] = []
    handlers = handlers_with(
        list_roots={"roots": []}, logging_message=lambda params: heard.append(params.data)
    )
    script = Script(revision, "abc", on={"GET": stream})
    timeouts = Timeouts(http=HttpTimeouts(first_pause=60))  # opening it is no second attempt
    async with scripted(script, handlers=handlers, timeouts=timeouts) as (client, server):
        (answer,) = await server.until("response")
        await client.call_tool("echo", {})
    assert heard == ["a"]
    assert answer.message == {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
    assert answer.fields["mcp-session-id"] == "abc"
    (asked,) = server.of("GET")
    assert "text/event-stream" in asked.fields["accept"]
    assert "last-event-id" not in asked.fields
    assert asked.fields["mcp-session-id"] == "abc"
    assert server.order().index("GET") > server.order().index("notifications/initialized")


async def test_an_answer_on_another_stream_ends_the_waiting(revision: str) -> None:
    ready = anyio.Event()

    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await ready.wait()
        await reply.event(result(script.calls[0]))
        await reply.gone()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0", retry=60_000)
        await reply.end()
        ready.set()

    script = Calls(revision, call, GET=get)
    async with scripted(script) as (client, server):
        with anyio.fail_after(10):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert resumed(server) == []


@pytest.mark.requirement("http.cancel-by-notification")
async def test_cancelling_says_so_and_closes_the_stream(revision: str) -> None:
    begun = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        begun.set()
        await reply.gone()

    script = Calls(revision, call)
    async with scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await begun.wait()
            tasks.cancel_scope.cancel()
        (cancelled,) = await server.until("notifications/cancelled")
        await server.until_left(1)
        await client.list_tools()
    assert cancelled.message["params"]["requestId"] == script.calls[0].id
    assert resumed(server) == []


async def test_a_stream_that_stays_open_after_the_answer_is_closed(revision: str) -> None:
    call = stream_events(result, last=Reply.gone)
    async with scripted(Calls(revision, call)) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await server.until_left()


@pytest.mark.requirement("http.get-client-close", "http.shutdown-by-close")
@pytest.mark.requirement("lifecycle.shutdown-http")
async def test_closing_closes_every_stream_and_says_nothing_more(revision: str) -> None:
    script = Script(revision, on={"GET": stream_events(last=Reply.gone)})
    async with scripted(script) as (client, server):
        await server.until("GET")
        before = server.order()
        await client.close()
        await server.until_left(1)
        assert server.order() == before
