"""Sessions of one revision by which checks ask a server: in its lifecycle, with raw messages.

A request that a correct server answers goes through `ask`, which waits for the response. Whatever a
server may leave unanswered goes through `post`: over stdio, a request that is always answered
follows it, so that silence shows without a wait for the deadline.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from anyio.abc import TaskGroup

from mcpgen import __version__, schema
from mcpgen.check_server.connections import (
    Connection,
    Fields,
    Received,
    Reply,
    Transport,
    answer_to,
    encode,
)
from mcpgen.check_server.http_connection import HttpConnection, open_http
from mcpgen.check_server.outcomes import BrokenRuleError
from mcpgen.check_server.stdio_connection import ExitGrace, StdioConnection, open_stdio
from mcpgen.errors import ServerError
from mcpgen.explain.revision import Revision
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.project.live_server import Target
from mcpgen.schema import facts

CLIENT = {"name": "mcpgen", "version": __version__}
GRACE = 0.1
"""Seconds for an answer that comes after that to a later request."""

ID_GRACE = 2.0
"""Seconds for a response with the id of a request, after one without id that may be another's."""

MAX_PAGES = 20
"""Pages of one list that are read."""

PATIENT_SENDS = 3
"""Requests in a row that a server may leave unanswered before it is given up."""


class ServerSilentError(Exception):
    """The server answers no longer."""


class Server:
    """The server to check: opens connections, and keeps what came on all of them.

    Args:
        target: The server.
        tasks: Where its output is read.
        timeout: Seconds for each answer.
        call_tools: Whether tools may be called that do not say that they only read.

    Attributes:
        initialized: The revision that the server answered, by the one that was requested.
        spoken: The revisions that it speaks, oldest first.
    """

    def __init__(
        self, target: Target, tasks: TaskGroup, timeout: float, *, call_tools: bool = False
    ) -> None:
        self.target = target
        self.timeout = timeout
        self._grace = ExitGrace()
        self.call_tools = call_tools
        self.initialized: dict[str, Json] = {}
        self.spoken: list[Revision] = []
        self._tasks = tasks
        self._unanswered = 0

    @property
    def transport(self) -> Transport:
        """How messages travel."""
        return "http" if isinstance(self.target.address, str) else "stdio"

    async def connect(self) -> Connection:
        """A new connection: a process of its own, or a client of its own.

        Raises:
            ServerError: The command cannot be started, or a library is missing.
        """
        address, options = self.target.address, self.target.options
        if isinstance(address, str):
            return open_http(address, options, self.timeout)
        return await open_stdio(address, options, self._tasks, self.timeout, self._grace)

    def count(self, reply: Reply) -> Reply:
        """Count requests in a row without any answer.

        Raises:
            ServerSilentError: They are too many.
        """
        silent = reply.answer is None and all(each.error for each in reply.received)
        silent = silent and reply.status is None
        self._unanswered = self._unanswered + 1 if silent else 0
        if self._unanswered >= PATIENT_SENDS:
            self._unanswered = 0
            raise ServerSilentError(reply.reason)
        return reply


class Session:
    """A connection in the lifecycle of one revision.

    Args:
        server: The server.
        revision: The revision.
        connection: The connection; nothing was sent on it yet.

    Attributes:
        opening: The reply to the first request, `initialize` or `server/discover`.
        records: All that came in sessions of this revision; shared by them.
    """

    def __init__(
        self,
        server: Server,
        revision: Revision,
        connection: Connection,
        records: list[list[Received]],
    ) -> None:
        self.server = server
        self.revision = revision
        self.connection = connection
        self.records = records
        self.opening = Reply()
        self._ids = 0
        self._lists: dict[str, list[Node]] = {}
        self._replies: dict[str, Reply] = {}
        records.append(connection.received)

    @property
    def version(self) -> str:
        """The revision, as messages name it."""
        return self.revision.version

    @property
    def has_handshake(self) -> bool:
        """Whether the revision begins with an exchange; else each request tells all."""
        return bool(self.revision.methods("initialize", "client"))

    @property
    def transport(self) -> Transport:
        """How messages travel."""
        return self.connection.transport

    @property
    def http(self) -> HttpConnection:
        """The connection, of a session over HTTP."""
        assert isinstance(self.connection, HttpConnection)  # checks of HTTP run over HTTP alone
        return self.connection

    @property
    def stdio(self) -> StdioConnection:
        """The connection, of a session over stdio."""
        assert isinstance(self.connection, StdioConnection)  # as for HTTP
        return self.connection

    @property
    def capabilities(self) -> Node:
        """The capabilities that the server declares; empty if they are malformed."""
        result: Json = self.opening.result
        declared: Json = result.get("capabilities") if is_object(result) else None
        return declared if is_object(declared) else {}

    def declares(self, path: str) -> bool:
        """Whether the server declares a capability, such as `resources.subscribe`."""
        value: Json = self.capabilities
        for name in path.split("."):
            value = value.get(name) if is_object(value) else None
        return value is not None and value is not False

    @property
    def session_id(self) -> str | None:
        """The session id that the server assigned, over HTTP."""
        return self.opening.fields.get(self.session_field.lower())

    @property
    def session_field(self) -> str:
        """The header field of the session id; empty in a revision that has neither."""
        if not self.has_handshake:
            return ""
        return self.revision.protocol.facts.headers.session or _older_session_field()

    @property
    def liveness(self) -> str:
        """A method that every server of the revision answers, and that has no required params."""
        return "ping" if self.has_handshake else "server/discover"

    def new_id(self) -> int:
        """An id that the session has not used yet."""
        self._ids += 1
        return self._ids

    async def open(self) -> None:
        """Go through the lifecycle up to where requests are served."""
        if not self.has_handshake:
            self.opening = await self.ask("server/discover")
            return
        self.opening = await self.initialize(self.version)
        if self.opening.error is not None or self.opening.answer is None:
            return
        self.connection.fields |= self.fields_after_opening()
        await self.connection.send(encode({**_ENVELOPE, "method": "notifications/initialized"}))

    def fields_after_opening(self) -> dict[str, str]:
        """Header fields of every request once a session is open."""
        headers = self.revision.protocol.facts.headers
        fields: dict[str, str] = {}
        if self.session_id:
            fields[self.session_field] = self.session_id
        if headers.protocol_version:
            fields[headers.protocol_version] = self.version
        return fields

    async def initialize(self, version: Json) -> Reply:
        """Send `initialize` for some version."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        return await self.ask("initialize", params)

    def request(
        self,
        method: str,
        params: Node | None = None,
        *,
        meta: Mapping[str, Json] | None = None,
        id: Json = None,
    ) -> Node:
        """A request of the revision.

        Args:
            method: The method.
            params: Its params, without `_meta`.
            meta: Members of `_meta`, on top of those that the revision requires; `None` leaves one
                out.
            id: Its id; a new one unless given.
        """
        keys = self.revision.protocol.facts.meta
        own: Node = {}
        if not self.has_handshake:
            named = {
                keys.protocol_version: self.version,
                keys.client_info: CLIENT,
                keys.client_capabilities: {},
            }
            own = {key: value for key, value in named.items() if key is not None}
        own = {key: value for key, value in {**own, **(meta or {})}.items() if value is not None}
        message = {**_ENVELOPE, "id": self.new_id() if id is None else id, "method": method}
        if params is not None or own:
            message["params"] = {**(params or {}), **({"_meta": own} if own else {})}
        return message

    def fields_of(self, message: Json) -> dict[str, str]:
        """The header fields that repeat what a message says, in revisions that have them."""
        headers = self.revision.protocol.facts.headers
        fields: dict[str, str] = {}
        if self.has_handshake or not is_object(message):
            return fields
        method: Json = message.get("method")
        if headers.protocol_version:
            fields[headers.protocol_version] = self.version
        if headers.method and isinstance(method, str):
            fields[headers.method] = method
            member = self.revision.protocol.facts.method(method).named_by
            params: Json = message.get("params")
            if headers.name and member and is_object(params):
                name: Json = params.get(member)
                if isinstance(name, str):
                    fields[headers.name] = name
        return fields

    async def send(
        self, message: Json, fields: Fields | None = None, *, to_end: bool = False
    ) -> Reply:
        """Send a request as it is, and wait for its response."""
        id: Json = message.get("id") if is_object(message) else None
        merged = {**self.fields_of(message), **(fields or {})}
        reply = await self.connection.send(encode(message), [id], merged, to_end=to_end)
        return self.server.count(reply)

    async def ask(
        self,
        method: str,
        params: Node | None = None,
        *,
        meta: Mapping[str, Json] | None = None,
        id: Json = None,
        fields: Fields | None = None,
    ) -> Reply:
        """Send a request of the revision, and wait for its response; see `request`."""
        return await self.send(self.request(method, params, meta=meta, id=id), fields)

    async def ask_once(self, method: str, params: Node) -> Reply:
        """The reply to a request that is sent once in the session, whoever asks for it again."""
        key = json.dumps([method, params])
        if key not in self._replies:
            self._replies[key] = await self.ask(method, params)
        return self._replies[key]

    async def post(self, payload: Json | bytes, fields: Fields | None = None) -> Reply:
        """Send what a server may leave unanswered.

        The reply's answer is a response to it, if one came, and its `received` has no other
        responses. Bytes are sent as they are.
        """
        data = payload if isinstance(payload, bytes) else encode(payload)
        merged = {**self.fields_of(payload), **(fields or {})}
        if isinstance(payload, bytes) and not self.has_handshake:
            merged = {**self.fields_of(self.request(self.liveness)), **(fields or {})}
        id: Json = payload.get("id") if is_object(payload) else None
        if self.transport == "http":
            return self.server.count(await self.connection.send(data, [id] if id else (), merged))
        start = len(self.connection.received)
        sent = await self.connection.send(data)
        if sent.reason:
            return sent
        request = self.request(self.liveness)
        probe = await self.send(request)
        if not self._answers(start, request["id"]):
            without_id = probe.answer is not None and probe.answer.get("id") is None
            await self.connection.settle(ID_GRACE if without_id else GRACE)
        reply = Reply(self._answers(start, request["id"]))
        reply.answer = answer_to(id, reply.received)
        if reply.answer is None:
            reply.reason = probe.reason or "no answer"
        return reply

    def _answers(self, start: int, probe: Json) -> list[Received]:
        """The responses since some message, without that to the request that followed.

        An error without an id can be the response to either. It is that to the first one as soon
        as the second has a response with its id.
        """
        new = [each for each in self.connection.received[start:] if each.is_response]
        other = answer_to(probe, new)
        return [each for each in new if each.message is not other]

    async def entries(self, method: str, member: str) -> list[Node]:
        """The entries of a list that are objects, from all its pages; empty if it cannot be had."""
        if method not in self._lists:
            entries: list[Node] = []
            params: Node = {}
            for _ in range(MAX_PAGES):
                result: Json = (await self.ask(method, params or None)).result
                page: Json = result.get(member) if is_object(result) else None
                entries += [each for each in page if is_object(each)] if is_array(page) else []
                cursor: Json = result.get("nextCursor") if is_object(result) else None
                if not isinstance(cursor, str) or params.get("cursor") == cursor:
                    break
                params = {"cursor": cursor}
            self._lists[method] = entries
        return self._lists[method]

    @asynccontextmanager
    async def another(self, *, is_open: bool = True) -> AsyncGenerator[Session]:
        """A session of its own beside this one, closed at the end of the block.

        Args:
            is_open: Whether it is past its lifecycle's beginning.

        Raises:
            BrokenRuleError: The server does not answer on it.
        """
        connection = await self.server.connect()
        try:
            other = Session(self.server, self.revision, connection, self.records)
            if is_open:
                await other.open()
                if other.opening.result is None:
                    expected = "a second session, as the first one"
                    raise BrokenRuleError(expected, other.opening.text)
            yield other
        finally:
            await connection.close()


_ENVELOPE: dict[str, Any] = {"jsonrpc": "2.0"}


@cache
def _older_session_field() -> str:
    """The header field of the oldest revision with sessions over HTTP.

    A server may speak a revision from before Streamable HTTP over it; its sessions are those of the
    transport.
    """
    fields = (facts.load(row.name).headers.session for row in schema.revisions())
    return next((field for field in fields if field), "")


def names_version(result: Json, version: str) -> bool:
    """Whether a result of discovery names a version; a server may answer any method by a result."""
    named: Json = result.get("supportedVersions") if is_object(result) else None
    return is_array(named) and version in named


async def open_session(
    server: Server, revision: Revision, records: list[list[Received]]
) -> Session:
    """A session past the beginning of its lifecycle.

    Raises:
        ServerError: The server does not start, or does not answer.
    """
    connection = await server.connect()
    session = Session(server, revision, connection, records)
    await session.open()
    if not is_object(session.opening.result):
        text = session.opening.text
        await connection.close()
        raise ServerError(f"{server.target.shown}: expected a session of {revision.name}, {text}")
    return session
