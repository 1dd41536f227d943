"""Checks of servers in this process: their replies are there as soon as a message is sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import anyio
import httpx2

from generator.check_server.rows import NEW, OLD, Rule
from generator.check_server.tiny_http import Request, TinyHttp
from generator.check_server.tiny_server import TinyServer, lines
from mcpgen.check_server import record_checks
from mcpgen.check_server.connections import (
    Connection,
    Fields,
    Received,
    Reply,
    Transport,
    answer_to,
    encode,
    parse_messages,
    refusal,
)
from mcpgen.check_server.http_connection import HttpConnection
from mcpgen.check_server.outcomes import BrokenRuleError, NotApplicableError
from mcpgen.check_server.runner import CHECKS, Findings, Run
from mcpgen.check_server.session import Server, Session
from mcpgen.check_server.table import Check
from mcpgen.explain.revision import revision
from mcpgen.json_types import is_object
from mcpgen.project.live_server import Target

URL = "http://127.0.0.1/mcp"
ALL: dict[str, Any] = {
    **{name: {} for name in ("tools", "prompts", "completions", "logging")},
    "resources": {"subscribe": True},
}
Respond = Callable[[bytes], Iterable[bytes]]
"""The lines that a server writes for a line that it reads."""


class MemoryConnection:
    """A server in this process; see `Connection`."""

    transport: Transport = "stdio"
    end = ""

    def __init__(self, respond: Respond) -> None:
        self.received: list[Received] = []
        self.fields: dict[str, str] = {}
        self.settled: list[float] = []
        self._respond = respond

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Any] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """Send lines; see `Connection`."""
        start = len(self.received)
        for line in payload.split(b"\n"):
            self._pass_on(line)
        reply = Reply(self.received[start:])
        if awaited:
            reply.answer = answer_to(awaited[-1], reply.received)
            reply.reason = "" if reply.answer else "nothing came"
        return reply

    def _pass_on(self, payload: bytes) -> None:
        for line in self._respond(payload):
            messages = parse_messages(line)
            self.received += messages
            for each in messages:
                answer = refusal(each.message) if is_object(each.message) else None
                if answer is not None:
                    self._pass_on(encode(answer))

    async def settle(self, seconds: float) -> None:
        """All that comes has come."""
        self.settled.append(seconds)

    async def close(self) -> None:
        """There is nothing to end."""


class MemoryServer(Server):
    """Opens connections in this process."""

    def __init__(self, begin: Callable[[], Connection], **options: bool) -> None:
        no_tasks: Any = None  # no process has output to read
        connection = begin()
        address: Any = URL if connection.transport == "http" else ["raw"]
        super().__init__(Target("raw", address), no_tasks, 1.0, **options)
        self._begin = begin

    async def connect(self) -> Connection:
        """A new connection."""
        return self._begin()


def http_connection(handle: Callable[[httpx2.Request], httpx2.Response]) -> HttpConnection:
    """A connection over HTTP to a function."""
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(handle), timeout=None)
    return HttpConnection(client, URL, {}, 1.0)


async def endless(body: bytes) -> AsyncIterator[bytes]:
    """A body whose end does not come."""
    yield body
    await anyio.sleep_forever()


def find(
    begin: Callable[[], Connection], name: str, checks: Sequence[Check], **options: bool
) -> Findings:
    """The findings about a server in this process, in one revision."""
    run = Run(MemoryServer(begin, **options), checks, str, str)  # nobody looks at the progress
    return anyio.run(run.findings, [revision(name)])


def find_in_tiny(
    transport: str, name: str, rule: Rule | None, checks: Sequence[Check], sent: list[Any]
) -> Findings:
    """The findings about the tiny server with the defect of a rule, or without."""
    stateless, defect = name == NEW, rule.defect if rule else None

    def begin() -> Connection:
        tiny = TinyServer(stateless=stateless, defect=defect)

        def respond(line: bytes) -> list[bytes]:
            sent.append(line)
            return lines(tiny.read(line))

        return MemoryConnection(respond)

    tiny_http = TinyHttp(
        stateless=stateless, defect=defect, over_http=rule.over_http if rule else None
    )

    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        fields = [(name.decode(), value.decode("latin-1")) for name, value in request.headers.raw]
        response = tiny_http.answer(Request(request.method, fields, request.content))
        headers = {"content-type": response.media_type, **response.fields}
        content: Any = endless(response.body) if response.stays_open else response.body
        return httpx2.Response(response.status, headers=headers, content=content)

    return find(begin if transport == "stdio" else lambda: http_connection(handle), name, checks)


def line_of(answer: Any, request: bytes) -> bytes:
    """A line of an answer; members of a response get the id of the request."""
    if isinstance(answer, bytes):
        return answer
    if isinstance(answer, dict) and "jsonrpc" not in answer:
        answer = {"jsonrpc": "2.0", "id": json.loads(request)["id"], **answer}
    return json.dumps(answer, ensure_ascii=False).encode()


def answer_in_turn(answers: Iterable[Any]) -> Callable[[], Connection]:
    """Opens connections to a server that gives these answers, then empty results."""
    rest = iter(answers)

    def respond(line: bytes) -> Iterable[bytes]:
        answer: Any = next(rest, {"result": {}} if b'"id"' in line else None)
        parts = answer if isinstance(answer, list) else [] if answer is None else [answer]
        return [line_of(each, line) for each in parts]

    return lambda: MemoryConnection(respond)


def answer_over_http(answers: Iterable[Any]) -> Callable[[], Connection]:
    """Opens connections to a server that gives these answers over HTTP, then empty results."""
    rest = iter(answers)

    def handle(request: httpx2.Request) -> httpx2.Response:
        answer: Any = next(rest, {"result": {}})
        if isinstance(answer, int):
            return httpx2.Response(answer)
        parts = answer if isinstance(answer, tuple) else (200, answer)
        status, message, fields = (*parts, {})[:3]
        if isinstance(message, bytes):
            return httpx2.Response(status, headers=fields, content=message)
        headers = {"content-type": "application/json", **fields}
        body = line_of(message, request.content)
        return httpx2.Response(status, headers=headers, content=body)

    return lambda: http_connection(handle)


def session_to(
    begin: Callable[[], Connection],
    name: str = OLD,
    result: Any = None,
    *,
    spoken: Iterable[str] = (),
    session_id: str | None = None,
) -> Session:
    """A session in this process that is already open: `result` is that of its first request."""
    server = MemoryServer(begin)
    server.spoken += map(revision, spoken)
    session = Session(server, revision(name), begin(), [])
    session.opening = Reply(answer={"result": {} if result is None else result})
    if session_id is not None:
        session.opening.fields = {session.session_field.lower(): session_id}
    return session


def record_of(message: Any) -> Received:
    """A message of a server; bytes are a line, a text the id of an event without message."""
    if isinstance(message, str):
        return Received(b"", event_id=message or None)
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return parse_messages(data)[0]


def judge(
    rule: str,
    answers: Sequence[Any],
    *,
    revision: str = "",
    http: bool = False,
    capabilities: Any = ALL,
    opened: Any = None,
    **options: Any,
) -> str:
    """The verdict of the check of a rule; empty if the rule is kept.

    Args:
        rule: The rule.
        answers: For rules about all messages, these in one session; a list is another session.
        revision: By default the newest with a handshake that has the rule.
        http: Whether a rule of both transports is judged over HTTP.
        capabilities: The capabilities that the server declares.
        opened: The result of the first request, in place of one that fits.
        options: See `session_to`.
    """
    [check] = [check for check in CHECKS if check.id == rule]
    named = check.rule.revisions
    name = revision or (OLD if OLD in named else max(named))
    over_http = http or check.transports == ("http",)
    is_about_all = rule in record_checks.TABLE.checks
    replies = [] if is_about_all else answers
    begin = answer_over_http(replies) if over_http else answer_in_turn(replies)
    plain = {"ttlMs": 0, "cacheScope": "private", "capabilities": capabilities}
    session = session_to(begin, name, plain if opened is None else opened, **options)
    if is_about_all:
        parts = [each if isinstance(each, list) else [each] for each in answers]
        session.records += [[record_of(each) for each in part] for part in parts]
    try:
        anyio.run(check.run, session)
    except BrokenRuleError as error:
        return str(error)
    except NotApplicableError as reason:
        return f"not applicable: {reason}"
    return ""
