"""The two ends of a connection as tests see them: JSON objects in, JSON objects out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpgen_runtime import REVISIONS, Channel, OutgoingMessage
from mcpgen_runtime.channel import MessageKind, RequestId
from mcpgen_runtime.facts import Lifecycle, Method, Revision
from mcpgen_runtime.protocol.batch_parsing import parse_batch
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    Command,
    Event,
    OpenSession,
    RequestReceived,
    Send,
    SendRequest,
)
from mcpgen_runtime.protocol.lifecycle import Description
from mcpgen_runtime.protocol.server_connection import ServerConnection
from mcpgen_runtime.revision_facts import Facts
from mcpgen_runtime.transports.memory import memory_pair

ALL = tuple(REVISIONS)
HANDSHAKE = tuple(REVISIONS.of(Lifecycle.HANDSHAKE))
PER_REQUEST = tuple(REVISIONS.of(Lifecycle.PER_REQUEST))

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
"""Tests that run in each revision, in each with a handshake, in each without."""

EVERY_SERVER_CAPABILITY: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
EVERY_CLIENT_CAPABILITY: Mapping[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {},
}


def facts(revision: str) -> Facts:
    """The statements of a revision that are only prose."""
    return REVISIONS[revision].facts


STREAMABLE = tuple(name for name in REVISIONS if facts(name).transports.streamable_http)
SESSIONS = tuple(name for name in STREAMABLE if facts(name).transports.streamable_http == "session")
"""The revisions whose Streamable HTTP keeps sessions."""

ONE_OF_EACH = (*HANDSHAKE[-1:], *PER_REQUEST[-1:])
"""The newest revision of each lifecycle."""

streamable = pytest.mark.parametrize("revision", STREAMABLE)
sessions = pytest.mark.parametrize("revision", SESSIONS)
newest_session = pytest.mark.parametrize("revision", SESSIONS[-1:])
both_lifecycles = pytest.mark.parametrize("revision", ONE_OF_EACH)
"""Tests that run over Streamable HTTP, over that with sessions, in the newest revision of it with
sessions, in the newest of each lifecycle."""

SSE_ONLY = tuple(name for name in REVISIONS if name not in STREAMABLE)
"""The revisions that speak HTTP only by the two endpoints of HTTP+SSE."""


def meta_of(revision: str, capabilities: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The `_meta` by which a request of a per-request revision stands for itself."""
    keys = facts(revision).meta
    pairs = {
        keys.protocol_version: revision,
        keys.client_info: {"name": "tester", "version": "1"},
        keys.client_capabilities: dict(capabilities or {}),
    }
    return {key: value for key, value in pairs.items() if key is not None}


def request(
    revision: str,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    id: int | str = 1,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A request as a client of the revision writes it."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    wire = dict(params or {})
    added = dict(meta or {})
    if REVISIONS[revision].lifecycle is Lifecycle.PER_REQUEST:
        added = {**meta_of(revision, capabilities), **added}
    if added:
        wire["_meta"] = {**wire.get("_meta", {}), **added}
    if wire or params is not None:
        message["params"] = wire
    return message


def initialize(
    revision: str, capabilities: Mapping[str, Any] | None = None, *, id: int | str = "init"
) -> dict[str, Any]:
    """The request that begins a handshake."""
    params = {
        "protocolVersion": revision,
        "capabilities": dict(capabilities or {}),
        "clientInfo": {"name": "tester", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


INITIALIZED: Mapping[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CANCELLED = "notifications/cancelled"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
CHANGED = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ALL_LISTS = dict.fromkeys(CHANGED, True)


def cancelled_notification(id: Any, **more: Any) -> dict[str, Any]:
    """The notification that takes a request back."""
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": id, **more}}


def tag(revision: str) -> str:
    """The key of `_meta` that names a subscription."""
    key = facts(revision).meta.subscription_id
    assert key is not None
    return key


def stream_message(revision: str, method: str, id: Any, **params: Any) -> dict[str, Any]:
    """A notification of a subscription."""
    params["_meta"] = {tag(revision): id}
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode_message(message: Any) -> bytes:
    """A message as bytes; bytes as they are."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def outgoing_message(revision: str, message: Mapping[str, Any]) -> OutgoingMessage:
    """A request or notification as a channel is given it."""
    kind: MessageKind = "request" if "id" in message else "notification"
    data, params = encode_message(message), message.get("params")
    return OutgoingMessage(
        data, kind, message.get("id"), message["method"], REVISIONS[revision], None, params
    )


def sent_messages(events: list[Event]) -> list[dict[str, Any]]:
    """Messages that a connection sent on its own."""
    return [json.loads(event.message.data) for event in events if isinstance(event, Send)]


def sole(messages: Sequence[OutgoingMessage]) -> OutgoingMessage | None:
    """The one message of a command; `None` if there is none."""
    message, *more = messages or (None,)
    assert not more
    return message


def sent_request(messages: Sequence[OutgoingMessage]) -> tuple[RequestId, OutgoingMessage]:
    """The id and the message of a request."""
    (message,) = messages
    assert message.id is not None
    return message.id, message


def opening_result(
    revision: str, capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY
) -> dict[str, Any]:
    """The members by which a server of one revision answers `initialize` or `server/discover`."""
    result: dict[str, Any] = {"capabilities": dict(capabilities)}
    if revision in HANDSHAKE:
        info = {"name": "server", "version": "1"}
        return {**result, "protocolVersion": revision, "serverInfo": info}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {**result, "supportedVersions": [revision], **hints}


def describe_as(capabilities: Mapping[str, Any], name: str) -> Any:
    def describe(revision: Revision) -> Description:
        return Description({"name": name, "version": "1"}, capabilities, "be kind")

    return describe


class ServerEnd:
    """A server's connection, opened by a client of one revision; `None` leaves it unopened."""

    def __init__(
        self,
        revision: str | None,
        capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
        client: Mapping[str, Any] = EVERY_CLIENT_CAPABILITY,
        *,
        speaks: str | None = None,
    ) -> None:
        spoken = REVISIONS if speaks is None else REVISIONS.only(speaks)
        describe = describe_as(capabilities, "server")
        self.connection = ServerConnection(spoken, describe, parse_batch=parse_batch)
        self.events: list[Event] = []
        self.revision = revision
        self.client = client
        if revision in HANDSHAKE:
            self.say(initialize(revision, client))
            self.say(INITIALIZED)
        self.events.clear()

    def say(self, message: Any) -> list[dict[str, Any]]:
        """Have the client send something; gives what the connection answers by itself."""
        events = self.connection.receive(encode_message(message))
        self.events += events
        return sent_messages(events)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **how: Any) -> Any:
        """Have the client send a request of its revision; gives the answers."""
        assert self.revision is not None
        how.setdefault("capabilities", self.client)
        return self.say(request(self.revision, method, params, **how))

    def send(self, command: Command) -> list[dict[str, Any]]:
        """Have the application send something; gives the messages."""
        return [json.loads(message.data) for message in self.connection.send(command)]

    def requests(self) -> Iterator[RequestReceived]:
        """The requests that reached the application so far."""
        return (event for event in self.events if isinstance(event, RequestReceived))


class ClientEnd:
    """A client's connection, opened with a server that speaks one revision."""

    def __init__(
        self,
        revision: str,
        capabilities: Mapping[str, Any] = EVERY_CLIENT_CAPABILITY,
        server: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
        *,
        extensions: Mapping[str, Method] | None = None,
    ) -> None:
        spoken, describe = REVISIONS.only(revision), describe_as(capabilities, "client")
        self.connection = ClientConnection(spoken, describe, extensions)
        self.revision = revision
        self.opening = json.loads(sole(self.connection.send(OpenSession())).data)
        result = opening_result(revision, server)
        self.after_opening = self.say(
            {"jsonrpc": "2.0", "id": self.opening["id"], "result": result}
        )

    def say(self, message: Any) -> list[dict[str, Any]]:
        """Have the server send something; gives what the connection answers by itself."""
        self.events = self.connection.receive(encode_message(message))
        return sent_messages(self.events)

    def send(self, command: Command) -> list[dict[str, Any]]:
        """Have the application send something; gives the messages."""
        return [json.loads(message.data) for message in self.connection.send(command)]

    def respond(self, request: Mapping[str, Any], **body: Any) -> Event:
        """Have the server respond to a request; gives the only event."""
        assert self.say({"jsonrpc": "2.0", "id": request["id"], **body}) == []
        (event,) = self.events
        return event

    def ask(self, method: str, params: Any = None, **how: Any) -> dict[str, Any]:
        """Begin a request; gives the message."""
        _, message = sent_request(self.connection.send(SendRequest(method, params, **how)))
        decoded: dict[str, Any] = json.loads(message.data)
        return decoded


class RawEnd:
    """The client's end of a channel to a running server: JSON objects, one at a time."""

    def __init__(self, channel: Channel, revision: str) -> None:
        self.channel = channel
        self.revision = revision
        self._last = 0

    async def send(self, message: Any) -> None:
        """Send a message as it is."""
        await self.channel.send(OutgoingMessage(encode_message(message)))

    async def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        with anyio.fail_after(10):
            message: dict[str, Any] = json.loads(await self.channel.receive())
            return message

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, **how: Any) -> Any:
        """Send a request of the revision and give its answer; notifications before it are kept."""
        self._last += 1
        how.setdefault("id", self._last)
        await self.send(request(self.revision, method, params, **how))
        self.heard: list[dict[str, Any]] = []
        while True:
            message = await self.receive()
            if message.get("id") == how["id"] and "method" not in message:
                return message
            self.heard.append(message)


@asynccontextmanager
async def speaking_to(
    server: Any, revision: str, client: Mapping[str, Any] | None = None
) -> AsyncIterator[RawEnd]:
    """Run a server and open it as a client of a revision would, on the wire."""
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        end = RawEnd(near, revision)
        if revision in HANDSHAKE:
            await end.send(initialize(revision, client))
            await end.receive()
            await end.send(INITIALIZED)
        yield end
        await near.close()
