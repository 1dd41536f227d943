"""Servers and proxies that refuse for a while: what is sent again, when, and what fails how.

All runs are on a virtual clock, against servers in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from itertools import pairwise
from typing import Any

import anyio
import pytest

from mcpgen_runtime import ClientLimits, ListeningAgain, Timeouts, connect
from mcpgen_runtime.errors import (
    NOT_BEGUN,
    HttpStatusError,
    McpError,
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
)
from mcpgen_runtime.framing.sse import encode_event
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from mcpgen_runtime.transports.http.http_client import retry_seconds
from package.client.simulation import MemoryReply, simulate
from package.faults import ONE_OF_EACH
from package.http_script import Script, error, initialize_result, result
from package.http_server import Asked, Handler, Reply
from package.transports.http.test_silent_servers import reach
from package.transports.http.test_stream_pauses import URL, StreamResponse
from package.wire import ACKNOWLEDGED, PER_REQUEST, SESSIONS, encode_message, facts

pytestmark = pytest.mark.processes

OUTAGES = (429, 502, 503, 504)
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations}
    for name, annotations in (
        ("reads", {"readOnlyHint": True}),
        ("sets", {"idempotentHint": True}),
        ("adds", {"readOnlyHint": False, "idempotentHint": False}),
        ("unknown", {}),
    )
]
WITH_TASKS = "2025-11-25"
NOW = "2026-07-28T12:00:00Z"
DOUBT = "the server may or may not have worked on"
Call = Callable[[Any], Awaitable[Any]]

each = pytest.mark.parametrize("revision", ONE_OF_EACH)


def refuse(status: int, body: bytes = b"<html>Bad Gateway", **fields: str) -> Handler:
    """A handler that refuses as a proxy does."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, body, Content_Type="text/html", **fields)

    return handler


def not_begun(status: int = 503, retry_after: str = "1", *, id: bool = False) -> Handler:
    """A handler that refuses a message without having begun it."""

    async def handler(asked: Asked, reply: Reply) -> None:
        refusal = error(asked if id else None, -32603, "too much at once", **NOT_BEGUN)
        await reply.json(refusal, status, Retry_After=retry_after)

    return handler


class Times(Script):
    """A server with some tools that records when requests come.

    Attributes:
        times: The times of the requests of each kind.
    """

    def __init__(self, revision: str) -> None:
        super().__init__(revision, "s")
        self.times: dict[str, list[float]] = {}
        self.on["tools/list"] = self._list

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        self.times.setdefault(asked.what, []).append(anyio.current_time())
        await super().__call__(asked, reply)

    def pauses(self, what: str) -> list[float]:
        """The seconds between requests of a kind."""
        return [round(after - before, 3) for before, after in pairwise(self.times.get(what, []))]

    async def _list(self, asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, tools=TOOLS, ttlMs=0, cacheScope="private"))


def use(
    script: Script, monkeypatch: pytest.MonkeyPatch, call: Call, *, lists: bool = True, **how: Any
) -> Any:
    """Connect to a server and use the client, on a virtual clock; the value or the error."""
    reach(script, monkeypatch)

    async def main() -> Any:
        async with connect(URL, revision=script.revision, **how) as client:
            if lists:
                await client.list_tools()
            try:
                return await call(client)
            except McpError as failure:
                return failure

    return simulate("asyncio", 0, main)


def tool(name: str) -> Call:
    """A call of a tool."""
    return lambda client: client.call_tool(name)


SENT: Mapping[str, tuple[Call, str, bool]] = {
    "reads": (tool("reads"), "tools/call", True),
    "sets": (tool("sets"), "tools/call", True),
    "adds": (tool("adds"), "tools/call", False),
    "unknown": (tool("unknown"), "tools/call", False),
    "resource": (lambda client: client.read_resource("x://a"), "resources/read", True),
    "prompt": (lambda client: client.get_prompt("p"), "prompts/get", True),
    "custom": (lambda client: client.request_raw("acme/pay", {}), "acme/pay", False),
}


@each
@pytest.mark.parametrize("status", OUTAGES)
@pytest.mark.parametrize("name", SENT)
def test_a_request_safe_to_repeat_survives_an_outage(
    revision: str, status: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, method, again = SENT[name]
    script = Times(revision)
    script.once[method] = [refuse(status), refuse(status)]
    outcome = use(script, monkeypatch, call)
    if again:
        assert not isinstance(outcome, Exception)
        assert script.pauses(method) == [0.0, 0.5]
    else:
        assert isinstance(outcome, HttpStatusError)
        assert outcome.status == status
        assert str(outcome).endswith(f"; {DOUBT} {method}")
        assert script.pauses(method) == []


@each
@pytest.mark.parametrize("status", [400, 403, 409, 500, 501, 505])
def test_other_refusals_are_final(
    revision: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.on["tools/call"] = refuse(status)
    outcome = use(script, monkeypatch, tool("reads"))
    assert isinstance(outcome, HttpStatusError)
    assert DOUBT not in str(outcome)
    assert script.pauses("tools/call") == []


@each
def test_an_outage_that_lasts_is_an_error_after_some_attempts(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.on["tools/call"] = refuse(502)
    outcome = use(script, monkeypatch, tool("reads"), timeouts=Timeouts(retries=(1.0, 2.0)))
    assert isinstance(outcome, HttpStatusError)
    assert outcome.status == 502
    assert script.pauses("tools/call") == [1.0, 2.0]


@each
@pytest.mark.parametrize("status", OUTAGES)
@pytest.mark.parametrize(
    ("value", "pauses"),
    [("7", [7.0]), ("0", [0.1]), ("60", [60.0]), ("soon", [0.0]), ("-3", [0.0]), ("61", [])],
)
def test_the_pause_of_the_server_is_kept_within_a_bound(
    revision: str, status: int, value: str, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.once["tools/call"] = [refuse(status, Retry_After=value)]
    outcome = use(script, monkeypatch, tool("reads"))
    assert script.pauses("tools/call") == pauses
    assert isinstance(outcome, HttpStatusError) is not bool(pauses)


def test_a_date_is_a_pause_too() -> None:
    now = datetime(2026, 7, 28, 12, 0, 0, tzinfo=UTC)
    for seconds, pause in ((90, 90.0), (0, 0.0), (-5, 0.0)):
        date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
        assert retry_seconds(date, now) == pause
    assert retry_seconds("Tue, 28 Jul 2026 12:00:09", now) == 9.0
    assert retry_seconds(" 12 ", now) == 12.0
    for absent in (None, "", "1.5", "\u0661", "Tue, 99 Jul 2026", "x" * 5000):
        assert retry_seconds(absent, now) is None


@each
def test_an_unlisted_tool_is_listed_before_it_is_called_again(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, again in (("reads", True), ("adds", False)):
        script = Times(revision)
        script.once["tools/call"] = [refuse(502)]
        outcome = use(script, monkeypatch, tool(name), lists=False)
        assert isinstance(outcome, HttpStatusError) is not again
        assert len(script.times["tools/list"]) == 1


@each
@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("id", [False, True])
def test_a_request_that_was_not_begun_is_always_sent_again(
    revision: str, name: str, id: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, method, _ = SENT[name]
    script = Times(revision)
    script.once[method] = [not_begun(retry_after="2", id=id) for _ in range(7)]
    outcome = use(script, monkeypatch, call)
    assert not isinstance(outcome, Exception)
    assert script.pauses(method) == [2.0] * 7


@each
def test_a_request_that_is_never_begun_fails_after_a_minute(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.on["tools/call"] = not_begun(retry_after="25")
    outcome = use(script, monkeypatch, tool("adds"))
    assert isinstance(outcome, HttpStatusError)
    assert DOUBT not in str(outcome)
    assert script.pauses("tools/call") == [25.0, 25.0]
    script = Times(revision)
    script.on["tools/call"] = not_begun(retry_after="61", id=True)
    outcome = use(script, monkeypatch, tool("adds"))
    assert isinstance(outcome, RemoteError)
    assert outcome.data == NOT_BEGUN
    assert script.pauses("tools/call") == []


@each
def test_a_refusal_for_an_hour_keeps_no_other_request(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.once["tools/call"] = [not_begun(retry_after="3600")]

    async def call_twice(client: Any) -> float:
        with pytest.raises(HttpStatusError):
            await client.call_tool("adds")
        before = anyio.current_time()
        await client.call_tool("adds")
        return anyio.current_time() - before

    assert use(script, monkeypatch, call_twice) == 0


@pytest.mark.parametrize("status", [502, 503])
@each
def test_an_answer_in_an_outage_is_repeated_or_in_doubt(
    revision: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32603, "the server is ending"), status)

    for name, again in (("reads", True), ("adds", False)):
        script = Times(revision)
        script.once["tools/call"] = [handler]
        outcome = use(script, monkeypatch, tool(name))
        if again:
            assert not isinstance(outcome, Exception)
        else:
            assert isinstance(outcome, RemoteError)
            assert f"the server is ending; {DOUBT} tools/call" in str(outcome)


@each
@pytest.mark.parametrize("begun", [True, None])
def test_work_that_was_given_up_is_repeated_if_that_is_safe(
    revision: str, begun: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32603, "it ended; it may have been acted on", begun=begun))

    for name, again in (("reads", begun is True), ("adds", False)):
        script = Times(revision)
        script.once["tools/call"] = [handler]
        assert isinstance(use(script, monkeypatch, tool(name)), RemoteError) is not again


@pytest.mark.parametrize("revision", SESSIONS)
@pytest.mark.parametrize("method", ["initialize", "notifications/initialized"])
def test_a_session_is_opened_after_refusals(
    revision: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.once[method] = [not_begun() for _ in range(3)]
    assert not isinstance(use(script, monkeypatch, tool("adds")), Exception)
    assert script.pauses(method) == [1.0] * 3


OPENING: Mapping[str, str] = {
    **dict.fromkeys(SESSIONS, "initialize"),
    **dict.fromkeys(PER_REQUEST, "server/discover"),
}


def open_with(
    script: Script, monkeypatch: pytest.MonkeyPatch, revision: str | None = None, **how: Any
) -> str | McpError:
    """Connect on a virtual clock, with one revision or all; the agreed one, or the error."""
    reach(script, monkeypatch)

    async def main() -> str | McpError:
        try:
            async with connect(URL, revision=revision, **how) as client:
                return str(client.revision)
        except McpError as failure:
            return failure

    return simulate("asyncio", 0, main)


def in_outage(status: int, **fields: str) -> Handler:
    """A handler that refuses a request by its id, as a server that ends does."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32603, "the server is ending"), status, **fields)

    return handler


async def break_off(asked: Asked, reply: Reply) -> None:
    """A handler that ends the connection, as HAProxy does for a process that was killed."""
    raise ResponseLostError("the worker was killed")


@pytest.mark.parametrize("both", [False, True])
@each
def test_a_connection_is_opened_after_a_broken_one(
    revision: str, both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    method = OPENING[revision]
    script.once[method] = [break_off, break_off]
    assert open_with(script, monkeypatch, None if both else revision) == revision
    assert script.pauses(method) == [0.0, 0.5]
    assert ("initialize" in script.times) is (method == "initialize")


@pytest.mark.parametrize("status", OUTAGES)
@pytest.mark.parametrize("refusing", [refuse, in_outage])
@pytest.mark.parametrize("both", [False, True])
@each
def test_a_connection_is_opened_after_an_outage(
    revision: str,
    both: bool,
    refusing: Callable[..., Handler],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Times(revision)
    method = OPENING[revision]
    refused = [refusing(status), refusing(status, Retry_After="7"), refusing(status)]
    script.once[method] = refused
    assert open_with(script, monkeypatch, None if both else revision) == revision
    assert script.pauses(method) == [0.0, 7.0, 1.0]
    assert ("initialize" in script.times) is (method == "initialize")


def test_an_older_server_is_found_by_its_refusal_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for status in (400, 404, 405, 500):
        script = Times(SESSIONS[-1])
        script.on["server/discover"] = refuse(status)
        assert open_with(script, monkeypatch) == SESSIONS[-1]
        assert script.pauses("server/discover") == []
        assert script.times["initialize"] == script.times["server/discover"]


def test_a_server_that_always_fails_the_probe_is_an_older_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Times(SESSIONS[-1])
    script.on["server/discover"] = refuse(502)
    assert open_with(script, monkeypatch) == SESSIONS[-1]
    assert script.pauses("server/discover") == [0.0, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "opening", "pauses"), [("61", 60, []), ("20", 30, [20.0]), ("7", 60, [7.0] * 4)]
)
@pytest.mark.parametrize("both", [False, True])
@each
def test_an_outage_that_outlasts_the_opening_is_its_error(
    revision: str,
    both: bool,
    value: str,
    opening: float,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Times(revision)
    method = OPENING[revision]
    script.on[method] = refuse(503, Retry_After=value)
    timeouts = Timeouts(opening=opening)
    outcome = open_with(script, monkeypatch, None if both else revision, timeouts=timeouts)
    assert isinstance(outcome, HttpStatusError)
    assert outcome.status == 503
    assert script.pauses(method) == pauses
    assert ("initialize" in script.times) is (method == "initialize")


def test_a_probe_that_waits_for_a_full_server_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Times(PER_REQUEST[-1])
    script.once["server/discover"] = [not_begun(retry_after="8") for _ in range(3)]
    assert open_with(script, monkeypatch) == PER_REQUEST[-1]
    assert "initialize" not in script.times
    assert script.pauses("server/discover") == [8.0] * 3


@pytest.mark.parametrize("status", OUTAGES)
def test_a_session_is_confirmed_after_an_outage(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(SESSIONS[-1])
    script.once["notifications/initialized"] = [refuse(status)]
    assert not isinstance(use(script, monkeypatch, tool("adds")), Exception)
    assert script.pauses("notifications/initialized") == [0.0]


class Limited(Times):
    """A server that has so many calls open at a time, each for a while, and refuses more.

    Attributes:
        most: The most open calls at a time.
        refused: How many calls were refused.
    """

    def __init__(self, revision: str, places: int, seconds: float) -> None:
        super().__init__(revision)
        self.places = places
        self.most = self.refused = self.open = 0
        self._seconds = seconds
        self.on["tools/call"] = self._call

    async def _call(self, asked: Asked, reply: Reply) -> None:
        if self.open >= self.places:
            self.refused += 1
            await not_begun()(asked, reply)
            return
        self.open += 1
        self.most = max(self.most, self.open)
        await anyio.sleep(self._seconds)
        self.open -= 1
        await reply.json(result(asked))


async def call_all(client: Any, count: int) -> tuple[Counter[str], float]:
    """Make calls at once: how they ended, and the seconds that all took."""
    outcomes: Counter[str] = Counter()
    began = anyio.current_time()

    async def call() -> None:
        try:
            await client.call_tool("adds")
            outcomes["done"] += 1
        except McpError as failure:
            outcomes[str(failure)] += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(call)
    return outcomes, anyio.current_time() - began


@pytest.mark.parametrize("revision", [*SESSIONS[-2:], PER_REQUEST[-1]])
@pytest.mark.parametrize(
    ("count", "places"), [(500, 100), (500, 7), (5000, 100), (5000, 499), (500, 1000)]
)
def test_calls_without_room_wait_for_those_before(
    revision: str, count: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Limited(revision, places, seconds=0.5)
    outcomes, seconds = use(script, monkeypatch, partial(call_all, count=count))
    assert outcomes == {"done": count}
    assert script.most == min(places, 500)
    ideal = -(-count // script.most) * 0.5
    assert seconds <= 1.05 * ideal
    assert script.refused <= 500 + 2 * seconds


@each
def test_a_limit_bounds_what_is_open(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Limited(revision, places=1000, seconds=1)
    limits = ClientLimits(open_requests=20)
    use(script, monkeypatch, partial(call_all, count=100), limits=limits)
    assert (script.most, script.refused) == (20, 0)


@each
def test_a_full_server_is_used_as_soon_as_it_has_room(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Limited(revision, places=0, seconds=0.01)

    async def call_while_full(client: Any) -> tuple[Counter[str], float]:
        began = anyio.current_time()
        called: list[tuple[Counter[str], float]] = []

        async def empty() -> None:
            await anyio.sleep_until(began + 9.5)
            script.places = 100

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(empty)
            called.append(await call_all(client, 300))
        return called[0]

    outcomes, seconds = use(script, monkeypatch, call_while_full)
    assert outcomes == {"done": 300}
    assert 9.5 < seconds < 12


@each
def test_a_call_that_waits_can_time_out_or_be_cancelled(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Limited(revision, places=1, seconds=5)

    async def call(client: Any) -> tuple[int, float]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "adds")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RequestTimeoutError):
                await client.call_tool("adds", timeout=2)
            with anyio.move_on_after(1) as given_up:
                await client.call_tool("adds")
            assert given_up.cancelled_caught
        before = anyio.current_time()
        await client.call_tool("adds")
        return script.most, anyio.current_time() - before

    assert use(script, monkeypatch, call, limits=ClientLimits(open_requests=1)) == (1, 5)


@each
def test_calls_that_wait_for_a_place_end_with_the_connection(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Limited(revision, places=1, seconds=50)

    async def call(client: Any) -> Counter[str]:
        outcomes: list[Any] = []

        async def close() -> None:
            await anyio.wait_all_tasks_blocked()
            await client.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            outcomes.append(await call_all(client, 3))
        counted: Counter[str] = outcomes[0][0]
        return counted

    outcomes = use(script, monkeypatch, call, limits=ClientLimits(open_requests=1))
    assert sum(outcomes.values()) == 3
    assert not outcomes["done"]
    assert all("clos" in text for text in outcomes), outcomes


@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("status", OUTAGES)
def test_a_subscription_is_opened_after_an_outage(
    revision: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision)
    script.on["subscriptions/listen"] = refuse(status, Retry_After="3")

    async def listen(client: Any) -> None:
        async with client.listen(tools=True, retry_seconds=(0.5, 0.5)):
            raise AssertionError("it was opened")

    outcome = use(script, monkeypatch, listen)
    assert isinstance(outcome, HttpStatusError)
    assert script.pauses("subscriptions/listen") == [3.0, 3.0]


def subscription(failure: Exception | None = None) -> Handler:
    """A handler that accepts a subscription; its stream then breaks, or stays open."""

    async def handler(asked: Asked, reply: Reply) -> None:
        key = facts(PER_REQUEST[-1]).meta.subscription_id
        params = {"_meta": {key: asked.id}, "notifications": {"toolsListChanged": True}}
        message = encode_message({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(encode_event(message), failure, silent=failure is None)

    return handler


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_listening_goes_on_after_outages(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Times(revision)
    script.once["subscriptions/listen"] = [
        refuse(502),
        subscription(ResponseLostError("the worker was killed")),
        refuse(502),
        refuse(503, Retry_After="30"),
        refuse(429, Retry_After="4"),
        subscription(),
    ]

    async def listen(client: Any) -> object:
        async with client.listen(tools=True) as changes:
            return await anext(changes)

    assert use(script, monkeypatch, listen) == ListeningAgain()
    *_, after_502, after_503, after_429 = script.pauses("subscriptions/listen")
    assert (after_502 < 4, after_503, after_429 >= 4) == (True, 30.0, True)


@pytest.mark.parametrize("status", OUTAGES)
def test_the_result_of_a_task_survives_outages(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(WITH_TASKS)
    task = {"taskId": "t", "createdAt": NOW, "lastUpdatedAt": NOW, "ttl": None}

    async def initialize(asked: Asked, reply: Reply) -> None:
        members = initialize_result(WITH_TASKS)
        members["capabilities"] = {**members["capabilities"], "tasks": {"list": {}}}
        await reply.json(result(asked, **members), 200, **script.session_fields())

    def state(name: str) -> Handler:
        async def handler(asked: Asked, reply: Reply) -> None:
            await reply.json(result(asked, **task, status=name))

        return handler

    async def payload(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, content=[{"type": "text", "text": "done"}]))

    script.on["initialize"] = initialize
    script.once["tasks/get"] = [refuse(status), state("working"), refuse(status), refuse(status)]
    script.on["tasks/get"] = state("completed")
    script.once["tasks/result"] = [refuse(status, Retry_After="2"), refuse(status)]
    script.on["tasks/result"] = payload
    outcome = use(script, monkeypatch, lambda client: client.task("t").result())
    assert outcome.content[0].text == "done"
    assert script.pauses("tasks/get") == [0.0, 1.0, 0.0, 0.5]
    assert script.pauses("tasks/result") == [2.0, 0.5]


def test_timeouts_bound_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = Timeouts(http=HttpTimeouts(refused=5))
    script = Times(SESSIONS[-1])
    script.on["tools/call"] = not_begun(retry_after="2")
    outcome = use(script, monkeypatch, tool("reads"), timeouts=timeouts)
    assert isinstance(outcome, HttpStatusError)
    assert script.pauses("tools/call") == [2.0, 2.0]
