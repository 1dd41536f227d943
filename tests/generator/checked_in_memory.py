"""The tiny raw servers in this process: what they reply is there as soon as a line is sent."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPResponse
from http.server import HTTPServer
from typing import Any

import anyio
import httpx2

from generator import checked_servers, checked_stateless_servers
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
from mcpgen.json_types import Json, is_object
from mcpgen.project.live_server import Target

Respond = Callable[[bytes], Iterable[bytes]]
"""The lines that a server writes for a line that it reads."""


class MemoryConnection:
    """A server in this process; see `Connection`."""

    transport: Transport = "stdio"
    end = ""

    def __init__(self, respond: Respond, sent: list[bytes]) -> None:
        self.received: list[Received] = []
        self.fields: dict[str, str] = {}
        self._respond = respond
        self._sent = sent

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Json] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """Send a line; see `Connection`."""
        start = len(self.received)
        for line in payload.split(b"\n"):
            self._sent.append(line)
            self._pass_on(line)
        reply = Reply(self.received[start:])
        if awaited:
            reply.answer = answer_to(awaited[-1], reply.received)
            reply.reason = "" if reply.answer else "no answer"
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

    async def close(self) -> None:
        """There is nothing to end."""


class _Socket:
    """The end of a connection that has a whole request, as `http.server` reads and answers it."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.response = b""

    def makefile(self, *_: Any) -> io.BytesIO:
        """The request, for the server; the response, for the client."""
        return io.BytesIO(self.response or self._request)

    def sendall(self, data: bytes) -> None:
        """Add to the response."""
        self.response += data

    def setsockopt(self, *_: Any) -> None:
        """There is nothing to set."""


class MemoryTransport(httpx2.AsyncBaseTransport):
    """Passes each HTTP request to the handler of a server that listens nowhere.

    A stream that stays open ends here.
    """

    def __init__(self, server: HTTPServer) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; returns its whole response."""
        fields = b"".join(b"%b: %b\r\n" % field for field in request.headers.raw)
        head = b"%b %b HTTP/1.1\r\n%b\r\n" % (
            request.method.encode(),
            request.url.raw_path,
            fields,
        )
        socket: Any = _Socket(head + await request.aread())
        self._server.RequestHandlerClass(socket, ("127.0.0.1", 1), self._server)
        response = HTTPResponse(socket)
        response.begin()
        return httpx2.Response(
            response.status, headers=response.getheaders(), content=response.read()
        )


class MemoryServer(Server):
    """Opens connections in this process."""

    def __init__(self, begin: Callable[[], Connection], address: Any, **how: bool) -> None:
        no_tasks: Any = None  # no process has output to read
        super().__init__(Target("raw", address), no_tasks, 1.0, **how)
        self._begin = begin

    async def connect(self) -> Connection:
        """A new connection to a server that has read nothing."""
        return self._begin()


def findings_of(
    begin: Callable[[], Connection], address: Any, name: str, checks: Sequence[Check], **how: bool
) -> Findings:
    """The findings about a server in this process, in one revision."""

    server = MemoryServer(begin, address, **how)
    run = Run(server, checks, ignore, ignore)
    return anyio.run(run.findings, [revision(name)])


def checked_in_memory(
    module: Any, defect: str, name: str, checks: Sequence[Check], **how: bool
) -> tuple[Findings, list[bytes]]:
    """The findings about a raw server in one revision, and the lines that were sent to it."""
    sent: list[bytes] = []
    findings = findings_of(
        lambda: MemoryConnection(module.server_function(defect), sent), ["raw"], name, checks, **how
    )
    return findings, sent


def checked_over_http(
    server: HTTPServer, name: str, checks: Sequence[Check]
) -> tuple[Findings, list[httpx2.Request]]:
    """The findings about a server over HTTP in one revision, and the requests that it got."""
    address = "http://127.0.0.1/mcp"
    sent: list[httpx2.Request] = []

    async def note(request: httpx2.Request) -> None:
        sent.append(request)

    def begin() -> Connection:
        client = httpx2.AsyncClient(
            transport=MemoryTransport(server), timeout=None, event_hooks={"request": [note]}
        )
        return HttpConnection(client, address, {}, 1.0)

    return findings_of(begin, address, name, checks), sent


def session_with(
    name: str,
    answers: Iterable[Any] = (),
    *,
    spoken: Iterable[str] = (),
    begin: Callable[[], Connection] | None = None,
    **result: Any,
) -> Session:
    """A session in this process, with a result of its first request.

    Args:
        name: The revision.
        answers: What the server sends for each line: members of a response, a message with
            `jsonrpc`, bytes, a list of these, or nothing for `None`; then empty
            results for requests.
        spoken: The revisions that the server speaks.
        begin: Opens a connection in place of one that gives these answers.
        result: The result.
    """
    rest = iter(answers)

    def respond(line: bytes) -> Iterable[bytes]:
        answer: Any = next(rest, {"result": {}} if b'"id"' in line else None)
        return (
            [line_of(each, line) for each in answer]
            if isinstance(answer, list)
            else ([] if answer is None else [line_of(answer, line)])
        )

    connect = begin or (lambda: MemoryConnection(respond, []))
    server = MemoryServer(connect, ["raw"])
    server.spoken += map(revision, spoken)
    session = Session(server, revision(name), connect(), [])
    session.opening = Reply(answer={"result": result})
    return session


def line_of(answer: Any, request: bytes) -> bytes:
    """A line of an answer; members of a response get the id of the request."""
    if isinstance(answer, bytes):
        return answer
    if isinstance(answer, dict) and "jsonrpc" not in answer:
        answer = {"jsonrpc": "2.0", "id": json.loads(request)["id"], **answer}
    return json.dumps(answer, ensure_ascii=False).encode()


def session_over_http(
    name: str,
    answers: Iterable[Any] = (),
    *,
    session_id: str | None = None,
    sent: list[httpx2.Request] | None = None,
    **how: Any,
) -> Session:
    """A session over HTTP in this process; see `session_with`.

    Args:
        name: The revision.
        answers: A response for each request: its status, its message or bytes if it has any, and
            its header fields; or an error. Then empty results.
        session_id: The session id that the server assigned.
        sent: Gets the requests.
        how: See `session_with`.
    """
    rest = iter(answers)
    requests = [] if sent is None else sent

    def handle(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        answer: Any = next(rest, (200, {"result": {}}))
        if isinstance(answer, Exception):
            raise answer
        status, message, fields = answer + (None, {})[len(answer) - 1 :]
        if message is None or isinstance(message, bytes):
            return httpx2.Response(status, headers=fields, content=message)
        body = line_of(message, request.content)
        return httpx2.Response(
            status, headers={"content-type": "application/json", **fields}, content=body
        )

    def begin() -> Connection:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
        return HttpConnection(client, "http://127.0.0.1/mcp", {}, 1.0)

    session = session_with(name, begin=begin, **how)
    if session_id is not None:
        session.opening.fields = {session.session_field.lower(): session_id}
    return session


def judgement(rule: str, session: Session) -> str:
    """The words of a check about a session; empty if the rule is kept."""
    [check] = [check for check in CHECKS if check.id == rule]
    try:
        anyio.run(check.run, session)
    except BrokenRuleError as broken:
        return str(broken)
    except NotApplicableError as reason:
        return f"not applicable: {reason}"
    return ""


def ignore(text: str) -> None:
    """Nobody looks at the progress."""


SERVERS = {
    **dict.fromkeys(checked_servers.REVISIONS, checked_servers),
    checked_stateless_servers.REVISION: checked_stateless_servers,
}
"""The module of the raw server that speaks a revision."""
