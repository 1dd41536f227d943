"""Requests to a server without a client: through its protocol, over no transport.

A request is encoded, handled and answered as that of a client of the newest revision without any
capability, so middleware, validation and limits apply.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import EndOfChannel
from ...facts import Revision
from ...protocol.client_connection import ClientConnection
from ...protocol.events import (
    OpenFailed,
    OpenSession,
    RequestFailed,
    ResponseReceived,
    Send,
    SendRequest,
)
from ...protocol.lifecycle import Description
from ...runtime.peer import Peer
from ..serving import Service


class DirectSession(Channel):
    """A client and a server's connection, joined. It is the channel of the server.

    Args:
        service: The server.
    """

    transport = "direct"

    def __init__(self, service: Service) -> None:
        revisions = service.revisions
        self._client = ClientConnection(revisions.only(revisions.newest().name), _describe_client)
        self._peer = Peer(service.new_connection(service), self, service.application)
        rows = revisions.newest().client_requests.values()
        self._wire_names = {row.python_name: row.name for row in rows}
        self._responses: dict[RequestId, ResponseReceived | RequestFailed] = {}

    async def open(self) -> None:
        """Begin the session, if the revision has sessions."""
        await self._pass_to_server(self._client.send(OpenSession())[0])

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """The typed result of a request.

        Args:
            method: Its Python name, such as `call_tool`.
            params: The params as wire object.

        Raises:
            MethodNotFoundError: Nothing is registered for the method.
            RemoteError: The server answered with an error.
        """
        (message,) = self._client.send(SendRequest(self._wire_names[method], params))
        await self._pass_to_server(message)
        assert message.id is not None
        response = self._responses.pop(message.id)
        if isinstance(response, RequestFailed):
            raise response.error
        return response.result

    async def list_all(self, method: str, member: str) -> list[Any]:
        """The items on all pages of a list.

        Args:
            method: The list request.
            member: Name of the list in the result, in Python.
        """
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self.request(method, {} if cursor is None else {"cursor": cursor})
            items += getattr(page, member)
            cursor = getattr(page, "next_cursor", None)
            if cursor is None:
                return items

    async def receive(self) -> bytes:
        """Raise an error: messages reach the server by `request` alone.

        Raises:
            EndOfChannel: Always.
        """
        raise EndOfChannel("a direct session receives nothing")

    async def send(self, message: OutgoingMessage) -> None:
        """Take a message of the server; notifications are dropped."""
        for event in self._client.receive(message.data):
            match event:
                case Send():
                    await self._pass_to_server(event.message)
                case ResponseReceived() | RequestFailed():
                    self._responses[event.id] = event
                case OpenFailed():
                    raise event.error
                case _:
                    pass

    async def close(self) -> None:
        """Do nothing: this channel holds no resources."""

    async def _pass_to_server(self, message: OutgoingMessage) -> None:
        for event in self._peer.connection.receive(message.data):
            await self._peer.handle(event)


@asynccontextmanager
async def direct_session(
    service: Service, states: Collection[ContextVar[Any]]
) -> AsyncGenerator[DirectSession]:
    """A session in the lifespan of the caller, or in its own if the caller has none.

    Args:
        service: The server.
        states: Context variables that the service sets to the values of its lifespan.
    """
    session = DirectSession(service)
    before = [(state, state.get()) for state in states]
    if any(value is not None for _, value in before):
        await session.open()
        yield session
        return
    async with service.lifespan() as value:
        service.use_state(value)
        try:
            await session.open()
            yield session
        finally:
            for state, old in before:
                state.set(old)


def _describe_client(revision: Revision) -> Description:
    return Description({"name": "direct", "version": "0"}, {})
