"""Tests of rules that bind both ends run on both: each end alone, or both joined without I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from kit.rules import revisions_holding
from kit.samples import EVERY_CLIENT_CAPABILITY, EVERY_SERVER_CAPABILITY, RESULTS
from kit.wire import ClientEnd, ServerEnd, describe_as, request, sent_request, sole
from mcpgen_runtime import REVISIONS, OutgoingMessage, ProtocolError
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.batch_parsing import parse_batch
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.connection import Connection
from mcpgen_runtime.protocol.events import (
    Event,
    OpenSession,
    RequestReceived,
    Send,
    SendError,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.server_connection import ServerConnection

End: TypeAlias = ServerEnd | ClientEnd

ASKED: dict[Role, str] = {"server": "tools/list", "client": "roots/list"}
"""A request without params that the application of an end answers."""

SENT: dict[Role, str] = {"client": "tools/list", "server": "roots/list"}
"""A request without params that the application of an end sends."""


def end_of(revision: str, role: Role) -> End:
    """An end that has agreed with its peer and declares all there is."""
    if role == "server":
        return ServerEnd(revision, EVERY_SERVER_CAPABILITY, EVERY_CLIENT_CAPABILITY)
    return ClientEnd(revision, EVERY_CLIENT_CAPABILITY, EVERY_SERVER_CAPABILITY)


def both(*ids: str) -> list[tuple[str, Role]]:
    """The revisions in which the entries hold, with each end."""
    roles: tuple[Role, ...] = ("server", "client")
    return [(revision, role) for revision in revisions_holding(*ids) for role in roles]


def answering_ends(*ids: str) -> list[tuple[str, Role]]:
    """The revisions in which the entries hold, with each end that answers requests there."""
    return [
        (revision, role)
        for revision, role in both(*ids)
        if role == "server" or REVISIONS[revision].server_requests
    ]


def asking_ends(*ids: str) -> list[tuple[str, Role]]:
    """The revisions in which the entries hold, with each end that sends requests there."""
    return [
        (revision, role)
        for revision, role in both(*ids)
        if role == "client" or REVISIONS[revision].server_requests
    ]


def ask(end: End, method: str, **how: Any) -> list[dict[str, Any]]:
    """Have the peer of an end send a request of the revision; gives what the end says by itself."""
    assert end.revision is not None
    return end.say(request(end.revision, method, **how))


def begin_request(end: End, **how: Any) -> dict[str, Any]:
    """Have the application of an end send such a request; gives the message."""
    (message,) = end.send(SendRequest(SENT[end.connection.state.role], **how))
    return message


def answer_request(end: End, id: RequestId) -> dict[str, Any]:
    """Send an end a request that its application answers, and return the response."""
    method = ASKED[end.connection.state.role]
    assert ask(end, method, id=id) == []
    (message,) = end.send(SendResponse(id, RESULTS[method]))
    return message


Kind = TypeVar("Kind")


class Pair:
    """Two connected ends that have agreed on a revision."""

    def __init__(
        self,
        revision: str,
        server: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
        client: Mapping[str, Any] = EVERY_CLIENT_CAPABILITY,
    ) -> None:
        self.revision = REVISIONS[revision]
        self.client = ClientConnection(REVISIONS.only(revision), describe_as(client, "client"))
        describe = describe_as(server, "server")
        self.server = ServerConnection(REVISIONS, describe, parse_batch=parse_batch)
        self.ends: dict[Role, Connection] = {"client": self.client, "server": self.server}
        self.wire: list[tuple[Role, dict[str, Any]]] = []
        self.messages: list[OutgoingMessage] = []
        self.events: dict[Role, list[Event]] = {"client": [], "server": []}
        self.deliver("client", sole(self.client.send(OpenSession())))

    def deliver(self, sender: Role, message: OutgoingMessage | None) -> None:
        """Hand a message over, and all that the ends then say by themselves; `None` is none."""
        if message is None:
            return
        self.wire.append((sender, json.loads(message.data)))
        self.messages.append(message)
        receiver = other(sender)
        for event in self.ends[receiver].receive(message.data):
            if isinstance(event, Send):
                self.deliver(receiver, event.message)
            else:
                self.events[receiver].append(event)

    def ask(
        self, sender: Role, method: str, params: Mapping[str, Any] | None = None, **how: Any
    ) -> RequestId:
        """Have one end ask the other; gives the request's id."""
        identifier, message = sent_request(
            self.ends[sender].send(SendRequest(method, params, **how))
        )
        self.deliver(sender, message)
        return identifier

    def answer(self, role: Role, result: Any, id: RequestId | None = None) -> None:
        """Have an end answer what it was asked last, or the request with that id."""
        request = self.told(role, RequestReceived)[-1].id if id is None else id
        end = self.ends[role]
        failed = isinstance(result, ProtocolError)
        self.deliver(
            role,
            sole(end.send(SendError(request, result)))
            if failed
            else sole(end.send(SendResponse(request, result))),
        )

    def notify(self, sender: Role, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Have one end tell the other something."""
        for send in self.ends[sender].send(SendNotification(method, params)):
            self.deliver(sender, send)

    def told(self, role: Role, kind: type[Kind]) -> list[Kind]:
        """Events of one kind that the application of an end received."""
        return [event for event in self.events[role] if isinstance(event, kind)]

    def sent(self, sender: Role) -> list[dict[str, Any]]:
        """Messages that an end has sent."""
        return [message for role, message in self.wire if role == sender]
