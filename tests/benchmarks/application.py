"""The ASGI application in this process: beside many clients, observed, and in instructions.

`python -m tests.benchmarks.application WORK REVISION CALLS` makes so many calls and prints nothing:
valgrind counts what they take.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from functools import partial
from typing import Any

from .processes import GENERATED, ROOT

sys.path.insert(0, str(GENERATED))

from mcpgen_runtime import Limits, Server, trace_requests

from . import servers
from .measure import FLOOR, OURS, AtMost, Line, Within, medians_async
from .work import (
    HANDSHAKE,
    IDS,
    INITIALIZE,
    META,
    PER_REQUEST,
    REAL,
    TRIVIAL,
    WITH_TOKEN,
    EncodedRequest,
    Work,
    encoded_request,
)

OBJECTS = "some 1,600 bytecodes in 65 functions of at most 180, and the objects that they make"
"""Why a call may take more instructions."""

CALLS = 400
SESSIONS, STREAMS = 10_000, 1_000
COUNTED = 300, 1_300
"""Calls of two runs under valgrind, whose difference is that of their instructions."""
COUNTED_WORK = {"real": REAL, "with-token": WITH_TOKEN, "trivial": TRIVIAL}
"""The calls whose instructions are counted, by their names on the command line."""
_REFERENCES = re.compile(r"I *refs: *([0-9,]+)")

Sent = MutableMapping[str, Any]


class Driven:
    """Requests to an application."""

    def __init__(self, server: Server, revision: str, work: Work = TRIVIAL) -> None:
        limits = Limits(sessions=2 * SESSIONS, streams=2 * STREAMS)
        self._application: Any = server.asgi("/mcp", limits=limits)
        self._revision = revision
        self._work = work
        self._call = EncodedRequest(self._body("tools/call", work.params(revision)))
        self.sessions: list[bytes] = []
        self.streams: list[asyncio.Task[None]] = []

    async def start(self) -> Driven:
        """Open a session, where the revision has sessions, and check a call."""
        if self._revision == HANDSHAKE:
            await self.open_session()
        _, answer = await self._ask(self._head(session=self._session), self._next_call())
        assert self._work.answer in answer["body"], answer
        return self

    async def open_session(self) -> None:
        """Open a session, and confirm it."""
        head, _ = await self._ask(self._head(), self._body("initialize", INITIALIZE))
        self.sessions.append(dict(head["headers"])[b"mcp-session-id"])
        initialized = self._body("notifications/initialized", None)
        await self._ask(self._head(session=self._session), initialized)

    async def open_stream(self) -> None:
        """Open a subscription, which stays open."""
        begun = asyncio.Event()
        wanted = {"notifications": {"toolsListChanged": True}}
        receive = receive_once(self._body("subscriptions/listen", wanted))

        async def send(_: Sent) -> None:
            begun.set()

        scope = self._head("subscriptions/listen")
        self.streams.append(asyncio.create_task(self._application(scope, receive, send)))
        await begun.wait()

    async def cost(self, calls: int = CALLS, *, any_session: bool = False) -> float:
        """Seconds of CPU time for one call, of the last session or of any."""
        sessions = [self._session]
        if any_session:
            sessions = [*random.Random(1).choices(self.sessions, k=calls)]
        scopes = itertools.cycle([self._head(session=each) for each in sessions])
        bodies = [self._next_call() for _ in range(calls)]

        async def send(_: Sent) -> None:
            return

        application = self._application
        started = time.process_time()
        for scope, body in zip(scopes, bodies, strict=False):
            await application(dict(scope), receive_once(body), send)
        return (time.process_time() - started) / calls

    def _next_call(self) -> bytes:
        return self._call.with_id(b"%d" % next(IDS))

    @property
    def _session(self) -> bytes | None:
        """The session that was opened last, if there is one."""
        return self.sessions[-1] if self.sessions else None

    async def _ask(self, scope: Sent, body: bytes) -> list[Sent]:
        """The messages of a response."""
        sent: list[Sent] = []

        async def send(message: Sent) -> None:
            sent.append(message)

        await self._application(scope, receive_once(body), send)
        return sent

    def _body(self, method: str, params: Mapping[str, Any] | None) -> bytes:
        if self._revision == PER_REQUEST:
            params = {"_meta": META, **(params or {})}
        return encoded_request(method, params)

    def _head(self, method: str = "tools/call", session: bytes | None = None) -> Sent:
        """The scope of a POST."""
        fields = [
            (b"host", b"127.0.0.1:8000"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", self._revision.encode()),
        ]
        if self._revision == PER_REQUEST:
            fields.append((b"mcp-method", method.encode()))
            if method == "tools/call":
                fields.append((b"mcp-name", self._work.tool.encode()))
        elif session is not None:
            fields.append((b"mcp-session-id", session))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 5000),
            "scheme": "http",
            "method": "POST",
            "root_path": "",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": fields,
            "state": {},
        }


def receive_once(body: bytes) -> Callable[[], Awaitable[Sent]]:
    """The `receive` of a request whose client stays until it is answered."""
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Sent:
        if message := next(parts, None):
            return message
        return await asyncio.Future[Sent]()  # asked for after a while, as by valgrind's slowness

    return receive


def adding_server() -> Server:
    """A server with one tool."""
    server = Server("bench", version="1.0")

    @server.tool(structured=False)
    async def add(a: int, b: int) -> str:
        return str(a + b)

    return server


def observed_server() -> Server:
    """The adding server with middleware that does nothing, and spans that nobody records."""
    server = adding_server()

    async def passing(request: Any, next: Callable[[Any], Awaitable[Any]]) -> Any:
        return await next(request)

    server.middleware(passing)
    server.middleware(trace_requests())
    return server


async def beside_others(rounds: int) -> dict[str, dict[str, float]]:
    """Times of calls by what is open beside them, each with those of calls alone as the floor."""
    many = await Driven(adding_server(), HANDSHAKE).start()
    alone = await Driven(adding_server(), HANDSHAKE).start()
    for _ in range(SESSIONS):
        await many.open_session()
    contenders = {OURS: many.cost, FLOOR: alone.cost}
    sessions = await medians_async(contenders, rounds)
    anyone = partial(many.cost, 10 * CALLS, any_session=True)
    mixed = await medians_async({OURS: anyone, FLOOR: alone.cost}, rounds)
    heard = await Driven(adding_server(), PER_REQUEST).start()
    quiet = await Driven(adding_server(), PER_REQUEST).start()
    for _ in range(STREAMS):
        await heard.open_stream()
    streams = await medians_async({OURS: heard.cost, FLOOR: quiet.cost}, rounds)
    for task in heard.streams:
        task.cancel()
    await asyncio.gather(*heard.streams, return_exceptions=True)
    seen = await Driven(observed_server(), PER_REQUEST).start()
    looked_at = await medians_async({OURS: seen.cost, FLOOR: quiet.cost}, rounds)
    return {
        f"a call of one session beside {SESSIONS:,}": sessions,
        f"a call of any of {SESSIONS:,} sessions": mixed,
        f"a call beside {STREAMS:,} streams": streams,
        "a call with middleware and spans": looked_at,
    }


def application(rounds: int) -> Iterable[Line]:
    """Rows on the application alone."""
    yield from instructions_of_calls()
    at_most = iter(([AtMost(FLOOR, 1.1)], [AtMost(FLOOR, 1.6)], [AtMost(FLOOR, 1.1)], []))
    note = "the floor is a call alone"
    for name, times in asyncio.run(beside_others(rounds)).items():
        yield Line(f"application: {name}", times, next(at_most), note)


def instructions_of_calls() -> Iterable[Line]:
    """Rows on what a call takes in user instructions, if valgrind is installed."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return
    for kind, work in COUNTED_WORK.items():
        for revision in (HANDSHAKE, PER_REQUEST):
            counts = [count_instructions(valgrind, kind, revision, calls) for calls in COUNTED]
            per_call = (counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0])
            targets = [Within(120_000, instructions, OBJECTS)] if work is WITH_TOKEN else []
            name = f"application: {work.name} in user instructions, {revision}"
            yield Line(name, {OURS: per_call}, targets, show=instructions)


def count_instructions(valgrind: str, kind: str, revision: str, calls: int) -> int:
    """User instructions of a process that makes so many calls."""
    words = (valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    program = (sys.executable, "-m", "tests.benchmarks.application", kind, revision, f"{calls}")
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*words, *program], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=True
    )
    match = _REFERENCES.search(done.stderr)
    assert match is not None, done.stderr
    return int(match[1].replace(",", ""))


def instructions(figure: float) -> str:
    """A number of instructions."""
    return f"{figure:,.0f}"


async def call_only(work: Work, revision: str, calls: int) -> None:
    """Make calls, for valgrind."""
    await (await Driven(servers.ours(), revision, work).start()).cost(calls)


if __name__ == "__main__":
    asyncio.run(call_only(COUNTED_WORK[sys.argv[1]], sys.argv[2], int(sys.argv[3])))
