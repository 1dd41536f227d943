"""Servers and proxies that refuse for a while: what is sent again, when, and what fails how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import anyio
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.http_script import Script, answer_with, refuse_with, result, says
from kit.http_server import Asked, Handler, Reply
from kit.simulation import URL, MemoryReply, StreamResponse, reach, simulate
from kit.wire import (
    ACKNOWLEDGED,
    PER_REQUEST,
    SESSIONS,
    both_lifecycles,
    encode_message,
    facts,
    modern,
    sessions,
)
from mcpgen_runtime import (
    ClientLimits,
    ConnectionClosedError,
    HttpStatusError,
    HttpTimeouts,
    ListeningAgain,
    McpError,
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    connect,
)
from mcpgen_runtime.errors import NOT_BEGUN
from mcpgen_runtime.framing.sse import encode_event
from mcpgen_runtime.transports.http.http_channel import OpenRequests
from mcpgen_runtime.transports.http.http_client import retry_seconds

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
DOUBT = "the server may or may not have worked on"
Call: TypeAlias = Callable[[Any], Awaitable[Any]]


def refuse(status: int, **fields: str) -> Handler:
    """A handler that refuses as a proxy does."""
    return says(b"<html>Bad Gateway", status, "text/html", **fields)


def not_begun(retry_after: str = "1", *, id: bool = False) -> Handler:
    """A handler that refuses a message without having begun it."""
    fields = {"Retry_After": retry_after}
    return refuse_with(-32603, 503, "too much at once", fields, with_id=id, **NOT_BEGUN)


def in_outage(status: int, **fields: str) -> Handler:
    """A handler that refuses a request by its id, as a server that ends does."""
    return refuse_with(-32603, status, "the server is ending", fields)


def given_up(begun: bool | None) -> Handler:
    """A handler that has given up the work on a request."""
    return refuse_with(-32603, 200, "it ended; it may have been acted on", begun=begun)


async def break_off(asked: Asked, reply: Reply) -> None:
    """A handler that ends the connection, as HAProxy does for a process that was killed."""
    raise ResponseLostError("the worker was killed")


class Times(Script):
    """A server with some tools that records when requests of each kind come."""

    def __init__(self, revision: str, **planned: Any) -> None:
        super().__init__(revision, "s", **planned)
        self.times: dict[str, list[float]] = {}
        self.on["tools/list"] = answer_with(tools=TOOLS, ttlMs=0, cacheScope="private")

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        self.times.setdefault(asked.what, []).append(anyio.current_time())
        await super().__call__(asked, reply)

    def pauses(self, what: str) -> list[float]:
        """The seconds between requests of a kind."""
        return [round(after - before, 3) for before, after in pairwise(self.times.get(what, []))]


def use(
    script: Script, monkeypatch: pytest.MonkeyPatch, call: Call, *, lists: bool = True, **how: Any
) -> Any:
    """Connect to a server and use the client, on a virtual clock; the value or the error."""
    reach(script, monkeypatch)

    async def main() -> Any:
        try:
            async with connect(URL, **{"revision": script.revision, **how}) as client:
                if lists:
                    await client.list_tools()
                return await call(client)
        except McpError as failure:
            return failure

    return simulate("asyncio", 0, main)


def tool(name: str) -> Call:
    """A call of a tool."""
    return lambda client: client.call_tool(name)


SAFE: dict[str, tuple[Call, str]] = {
    "reads": (tool("reads"), "tools/call"),
    "sets": (tool("sets"), "tools/call"),
    "resource": (lambda client: client.read_resource("x://a"), "resources/read"),
    "prompt": (lambda client: client.get_prompt("p"), "prompts/get"),
}
UNSAFE: dict[str, tuple[Call, str]] = {
    "adds": (tool("adds"), "tools/call"),
    "unknown": (tool("unknown"), "tools/call"),
    "custom": (lambda client: client.request_raw("acme/pay", {}), "acme/pay"),
}
SENT = SAFE | UNSAFE
DONE = None


IN_DOUBT = f"the server is ending; {DOUBT} tools/call"
NOT_IN_DOUBT = "^(?!.*may or may not).* answered HTTP 503"
RETRY_AFTER = {
    "7": [7.0],
    "0": [0.1],
    "60": [60.0],
    "soon": [0.0],
    "-3": [0.0],
    "61": list[float](),
}
REFUSED: dict[str, tuple[str, list[Handler], list[float], str | None]] = {
    **{f"{name} after an outage": (name, [refuse(502)] * 2, [0.0, 0.5], DONE) for name in SAFE},
    **{
        f"{name} fails": (name, [refuse(502)], [], f"HTTP 502.*; {DOUBT} {method}$")
        for name, (_, method) in UNSAFE.items()
    },
    **{f"{name} after broken lines": (name, [break_off] * 2, [0.0, 0.5], DONE) for name in SAFE},
    **{f"{name} fails with its line": (name, [break_off], [], "was killed") for name in UNSAFE},
    "broken for long": ("reads", [break_off] * 9, [0.0, 0.5, 1.0, 2.0], "was killed"),
    **{f"HTTP {status} passes": ("reads", [refuse(status)], [0.0], DONE) for status in OUTAGES},
    **{
        f"HTTP {status} is final": ("reads", [refuse(status)], [], f"HTTP {status}[^;]*$")
        for status in (400, 403, 409, 500, 501, 505)
    },
    **{
        f"Retry-After {value} of HTTP {status}": (
            "reads",
            [refuse(status, Retry_After=value)],
            pauses,
            DONE if pauses else f"HTTP {status}",
        )
        for status in (429, 503)
        for value, pauses in RETRY_AFTER.items()
    },
    **{
        f"{name} not begun, {id=}": (name, [not_begun("2", id=id)] * 7, [2.0] * 7, DONE)
        for name in SENT
        for id in (False, True)
    },
    "never begun for a minute": ("adds", [not_begun("30")] * 9, [30.0, 30.0], NOT_IN_DOUBT),
    "not begun, for no time": (
        "adds",
        [refuse_with(-32603, 503, **NOT_BEGUN)] * 2,
        [0.1] * 2,
        DONE,
    ),
    "not begun for longer": ("adds", [not_begun("61", id=True)], [], "too much"),
    **{f"ending by {each}, safe": ("reads", [in_outage(each)], [0.0], DONE) for each in (502, 503)},
    **{f"ending by {each}": ("adds", [in_outage(each)], [], IN_DOUBT) for each in (502, 503)},
    **{f"{name} given up": (name, [given_up(True)] * 2, [0.0, 0.5], DONE) for name in SAFE},
    **{f"{name} given up fails": (name, [given_up(True)], [], "it ended") for name in UNSAFE},
    **{f"{name} given up first": (name, [given_up(False)] * 2, [0.0, 0.5], DONE) for name in SENT},
    "failed, safe": ("reads", [given_up(None)], [], "it ended"),
}


@pytest.mark.parametrize(
    ("name", "answers", "pauses", "outcome"), REFUSED.values(), ids=REFUSED.keys()
)
@both_lifecycles
def test_a_request_is_sent_again_after_refusals_where_that_is_safe(
    revision: str,
    name: str,
    answers: list[Handler],
    pauses: list[float],
    outcome: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, method = SENT[name]
    script = Times(revision, once={method: answers})
    ended = use(script, monkeypatch, call, limits=ClientLimits(open_requests=1))
    assert script.pauses(method) == pauses
    if outcome is DONE:
        assert not isinstance(ended, Exception), ended
    else:
        with pytest.raises(
            (HttpStatusError, RemoteError, ResponseLostError), match=f"(?s){outcome}"
        ):
            raise ended


@pytest.mark.parametrize(
    ("refusal", "timeouts", "pauses"),
    [
        (refuse(502), Timeouts(retries=(1.0, 2.0)), [1.0, 2.0]),
        (not_begun("2"), Timeouts(http=HttpTimeouts(refused=5)), [2.0, 2.0]),
    ],
    ids=["an outage", "a full server"],
)
@both_lifecycles
def test_refusals_that_last_are_an_error_after_some_attempts(
    revision: str,
    refusal: Handler,
    timeouts: Timeouts,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Times(revision, on={"tools/call": refusal})
    outcome = use(script, monkeypatch, tool("reads"), timeouts=timeouts)
    assert isinstance(outcome, HttpStatusError)
    assert script.pauses("tools/call") == pauses


def test_a_date_is_a_pause_too() -> None:
    now = datetime(2026, 7, 28, 12, 0, 0, tzinfo=UTC)
    for seconds, pause in ((90, 90.0), (0, 0.0), (-5, 0.0)):
        date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
        assert retry_seconds(date, now) == pause
    assert retry_seconds("Tue, 28 Jul 2026 12:00:09", now) == 9.0
    assert retry_seconds(" 12 ", now) == 12.0
    for absent in (None, "", "1.5", "\u0661", "Tue, 99 Jul 2026", "x" * 5000):
        assert retry_seconds(absent, now) is None


@pytest.mark.parametrize(("name", "again"), [("reads", True), ("adds", False)])
@both_lifecycles
def test_an_unlisted_tool_is_listed_before_it_is_called_again(
    revision: str, name: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision, once={"tools/call": [refuse(502)]})
    outcome = use(script, monkeypatch, tool(name), lists=False)
    assert isinstance(outcome, HttpStatusError) is not again
    assert len(script.times["tools/list"]) == 1


@sessions
@pytest.mark.parametrize(
    ("refusal", "posts"),
    [(not_begun("0"), 2), *((refuse(status), 2) for status in OUTAGES), (refuse(400), 1)],
)
def test_a_session_is_confirmed_after_a_refusal(
    revision: str, refusal: Handler, posts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Times(revision, once={"notifications/initialized": [refusal]})
    outcome = use(script, monkeypatch, tool("adds"))
    assert isinstance(outcome, HttpStatusError) is (posts == 1)
    assert len(script.times["notifications/initialized"]) == posts


AT_FIRST: dict[str, tuple[list[Handler], list[float], float]] = {
    "broken connections": ([break_off] * 2, [0.0, 0.5], 60),
    **{
        f"HTTP {status} by {kind.__name__}": (
            [kind(status), kind(status, Retry_After="7"), kind(status)],
            [0.0, 7.0, 1.0],
            60,
        )
        for status in OUTAGES
        for kind in (refuse, in_outage)
    },
    "a full server is no silence": ([not_begun("8")] * 3, [8.0] * 3, 60),
    "too long a pause": ([refuse(503, Retry_After="61")] * 99, [], 60),
    "no time is left": ([refuse(503, Retry_After="20")] * 99, [20.0], 30),
    "it lasts": ([refuse(503, Retry_After="7")] * 99, [7.0] * 4, 60),
}


@pytest.mark.parametrize(("refusals", "pauses", "opening"), AT_FIRST.values(), ids=AT_FIRST.keys())
@pytest.mark.parametrize("both", [False, True])
@both_lifecycles
def test_a_connection_is_opened_after_refusals(
    revision: str,
    both: bool,
    refusals: list[Handler],
    pauses: list[float],
    opening: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = "initialize" if revision in SESSIONS else "server/discover"
    script = Times(revision, once={method: refusals})

    async def revision_of(client: Any) -> str:
        return str(client.revision)

    how = {"revision": None if both else revision, "timeouts": Timeouts(opening=opening)}
    outcome = use(script, monkeypatch, revision_of, lists=False, **how)
    assert script.pauses(method) == pauses
    assert ("initialize" in script.times) is (method == "initialize")
    if len(refusals) == 99:
        assert isinstance(outcome, HttpStatusError)
        assert outcome.status == 503
    else:
        assert outcome == revision


class Limited(Times):
    """A server that has so many calls open at a time, each for a while, and refuses more."""

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


@both_lifecycles
def test_a_limit_bounds_what_is_open(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Limited(revision, places=1000, seconds=1)
    limits = ClientLimits(open_requests=20)
    use(script, monkeypatch, partial(call_all, count=100), limits=limits)
    assert (script.most, script.refused) == (20, 0)


@both_lifecycles
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


def subscription(failure: Exception | None = None) -> Handler:
    """A handler that accepts a subscription; its stream then breaks, or stays open."""

    async def handler(asked: Asked, reply: Reply) -> None:
        key = facts(PER_REQUEST[-1]).meta.subscription_id
        params = {"_meta": {key: asked.id}, "notifications": {"toolsListChanged": True}}
        message = encode_message({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(encode_event(message), failure, silent=failure is None)

    return handler


@modern
def test_listening_goes_on_after_outages(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = subscription(ResponseLostError("the worker was killed"))
    outages = [refuse(502), refuse(503, Retry_After="30"), refuse(429, Retry_After="4")]
    answers = [refuse(502), broken, *outages, subscription()]
    script = Times(revision, once={"subscriptions/listen": answers})

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
    revision, now = "2025-11-25", "2026-07-28T12:00:00Z"
    task = {"taskId": "t", "createdAt": now, "lastUpdatedAt": now, "ttl": None}
    script = Times(revision)
    script.capabilities["tasks"] = {"list": {}}

    working = answer_with(**task, status="working")
    script.once["tasks/get"] = [refuse(status), working, refuse(status), refuse(status)]
    script.once["tasks/result"] = [refuse(status, Retry_After="2"), refuse(status)]
    script.on |= {
        "tasks/get": answer_with(**task, status="completed"),
        "tasks/result": answer_with(content=[{"type": "text", "text": "done"}]),
    }
    outcome = use(script, monkeypatch, lambda client: client.task("t").result())
    assert outcome.content[0].text == "done"
    assert script.pauses("tasks/get") == [0.0, 1.0, 0.0, 0.5]
    assert script.pauses("tasks/result") == [2.0, 0.5]


@both_lifecycles
def test_calls_that_wait_for_a_place_end_with_the_connection(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Limited(revision, places=1, seconds=50)

    async def call(client: Any) -> Counter[str]:
        async def close() -> None:
            await anyio.wait_all_tasks_blocked()
            await client.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            outcomes, _ = await call_all(client, 3)
        return outcomes

    outcomes = use(script, monkeypatch, call, limits=ClientLimits(open_requests=1))
    assert sum(outcomes.values()) == 3
    assert all("clos" in text for text in outcomes), outcomes


PLACES = """+1 +2 +3 +4 +5 +6 +7 +8 +9 +10 x10 -2 -2 -99 -4 -5 -6 -7 !3/10 ^3 +11 +12 +13 +14 +15
+16 +17 +18 -1 ~9 !99/10 ~1 ~9 ~1 ~9 ~1 ~9 ~1 ~30 +19 !19/2 !8/4 -9 ~3 ~1 ~4 !11/1 !12/3 ~3 ~3 ~3
+20 +21 +22 x21 -13 close +23 ^24 -15 +25"""
"""Requests that come (+), come again (^), end (-), are given up (x) or
refused for seconds (!); ~ lets seconds pass."""


def test_requests_get_places_as_the_server_has_room(snapshot: SnapshotAssertion) -> None:
    seen: list[str] = []

    async def main() -> None:
        scopes: dict[str, anyio.CancelScope] = {}
        places = OpenRequests(lambda work: tasks.start_soon(work) is None, 9)

        async def enter(name: str, was_refused: bool) -> None:
            with anyio.CancelScope() as scopes[name]:
                try:
                    await places.enter(name, was_refused=was_refused)
                    seen.append(f"  {name} enters at {anyio.current_time():g}")
                except ConnectionClosedError as error:
                    seen.append(f"  {name}: {error}")

        async with anyio.create_task_group() as tasks:
            for step in PLACES.split():
                seen.append(step)
                kind, (name, _, seconds) = step[0], step[1:].partition("/")
                match kind:
                    case "+" | "^":
                        tasks.start_soon(enter, name, kind == "^")
                    case "-":
                        places.leave(name)
                    case "x":
                        scopes[name].cancel()
                    case "!":
                        places.refuse(name, float(seconds))
                    case "~":
                        await anyio.sleep(float(name))
                    case _:
                        places.close()
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    simulate("asyncio", 0, main)
    assert "\n".join(seen) == snapshot
