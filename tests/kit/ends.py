"""Tests of rules that bind both ends run on both: here is what lets them not care which it is."""

from __future__ import annotations

from typing import Any, TypeAlias

from kit.rules import revisions_holding
from kit.samples import EVERY_CLIENT_CAPABILITY, EVERY_SERVER_CAPABILITY, RESULTS
from kit.wire import ClientEnd, ServerEnd, request
from mcpgen_runtime import REVISIONS
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import SendRequest, SendResponse

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
