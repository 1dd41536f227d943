"""Sessions of one revision by which checks ask a server: in its lifecycle, with raw messages.

`ask` sends a request that a correct server answers, and waits for the response. `post` sends a
message that a server may leave unanswered: over stdio, a request that is always answered follows,
so that silence shows before the deadline.
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
"""Seconds for an answer that comes after the answer to a later request."""

ID_GRACE = 2.0
"""Seconds for a response with an id, after one without id that may be another request's."""

MAX_PAGES = 20
"""Limit of the pages of one list that are read."""

PATIENT_SENDS = 3
"""Unanswered requests in a row, after which a server is given up."""


class ServerSilentError(Exception):
    """The server has stopped answering."""


class Server:
    """The server to check, which opens the connections.

    Args:
        target: The server.
        tasks: The task group that reads its output.
        timeout: Seconds for each answer.
        call_tools: Whether to call tools that are not declared read-only.

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
        """The transport of the messages."""
        return "http" if isinstance(self.target.address, str) else "stdio"

    async def connect(self) -> Connection:
        """Open a connection: a new process, or a new HTTP client.

        Raises:
            ServerError: The command cannot be started, or a library is missing.
        """
        address, options = self.target.address, self.target.options
        if isinstance(address, str):
            return open_http(address, options, self.timeout)
        return await open_stdio(address, options, self._tasks, self.timeout, self._grace)

    def count(self, reply: Reply) -> Reply:
        """Count unanswered requests in a row; return the reply.

        Raises:
            ServerSilentError: There are too many.
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
        connection: The connection, still unused.

    Attributes:
        opening: The reply to the first request, `initialize` or `server/discover`.
        records: The messages received in all sessions of this revision.
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
        """The name of the revision in messages."""
        return self.revision.version

    @property
    def has_handshake(self) -> bool:
        """Whether sessions begin with a handshake; else each request has the metadata."""
        return bool(self.revision.methods("initialize", "client"))

    @property
    def transport(self) -> Transport:
        """The transport of the messages."""
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
        """The header field of the session id, in revisions with a handshake."""
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
        """Send the first messages of the lifecycle, after which requests are served."""
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
        """Send `initialize` with a version."""
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
        """Build a request of the revision.

        Args:
            method: The method.
            params: Its params, without `_meta`.
            meta: Members of `_meta`, in addition to those that the revision requires; `None`
                removes one.
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
        """The header fields that repeat parts of a message, in revisions that have them."""
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
        """Send a request unchanged, and wait for its response."""
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
        """The reply to a request, which is sent once per session and then cached."""
        key = json.dumps([method, params])
        if key not in self._replies:
            self._replies[key] = await self.ask(method, params)
        return self._replies[key]

    async def post(self, payload: Json | bytes, fields: Fields | None = None) -> Reply:
        """Send a message that a server may leave unanswered.

        The reply's answer is the response to the message, if one came, and its `received` has no
        other responses. Bytes are sent unchanged.
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
        """The responses from index `start` on, without the response to the request `probe`.

        An error without an id can answer either request. It answers the first one as soon as the
        probe has a response with its own id.
        """
        new = [each for each in self.connection.received[start:] if each.is_response]
        other = answer_to(probe, new)
        return [each for each in new if each.message is not other]

    async def entries(self, method: str, member: str) -> list[Node]:
        """The objects in all pages of a list; empty if the list cannot be read."""
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
    async def open_another(self, *, is_open: bool = True) -> AsyncGenerator[Session]:
        """Open a second session of the revision, closed at the end of the block.

        Args:
            is_open: Whether to send the first messages of the lifecycle.

        Raises:
            BrokenRuleError: The server does not answer in the session.
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

    A server may speak a revision older than Streamable HTTP over that transport, with the
    transport's sessions.
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
    """Open a session, ready for requests.

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
