"""Servers of MCP over HTTP as tests script them: they open a session, then say what is planned."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.wire import EVERY_SERVER_CAPABILITY, opening_result
from mcpgen_runtime import REVISIONS, connect
from mcpgen_runtime.facts import Lifecycle

TOOL: Mapping[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}}
RESULTS: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "resources/read": {"contents": [{"uri": "x://y", "text": "read"}]},
    "prompts/get": {"messages": []},
}


def result(asked: Asked, **members: Any) -> dict[str, Any]:
    """The answer to a request."""
    return {
        "jsonrpc": "2.0",
        "id": asked.id,
        "result": {**RESULTS.get(asked.what, {}), **members},
    }


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool whose arguments have these schemas."""
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def says(body: bytes, status: int = 200, kind: str = "application/json", **fields: str) -> Handler:
    """A handler with always the same answer."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, body, Content_Type=kind, **fields)

    return handler


def answer_with(**members: Any) -> Handler:
    """A handler that answers requests with their result, in which these members are replaced."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, **members))

    return handler


def refuse_with(
    code: int,
    status: int = 400,
    message: str = "no",
    fields: Mapping[str, str] = {},
    *,
    with_id: bool = True,
    **data: Any,
) -> Handler:
    """A handler that refuses requests by an error of JSON-RPC."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked if with_id else None, code, message, **data), status, **fields)

    return handler


def stream_events(*events: Any, last: Callable[[Reply], Awaitable[None]] = Reply.end) -> Handler:
    """A handler with a stream: messages, bytes as they are, and what functions make of requests."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        for event in events:
            if isinstance(event, bytes):
                await reply.part(event)
            else:
                await reply.event(event(asked) if callable(event) else event)
        await last(reply)

    return handler


async def stay_silent(asked: Asked, reply: Reply) -> None:
    """Answer nothing until the client has gone."""
    await reply.gone()


def log_message(data: Any) -> dict[str, Any]:
    """A notification with a message of the server's log."""
    params = {"level": "info", "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def error(asked: Asked | None, code: int, message: str = "no", **data: Any) -> dict[str, Any]:
    """A refusal of a request, or of none that could be read."""
    failure: dict[str, Any] = {"code": code, "message": message}
    if data:
        failure["data"] = data
    about = {} if asked is None else {"id": asked.id}
    return {"jsonrpc": "2.0", **about, "error": failure}


class Script:
    """The scripted behaviour of a server; `on` and `once` have handlers by `Asked.what`.

    `capabilities` are those that it declares in the opening.
    """

    def __init__(
        self,
        revision: str,
        session: str | None = None,
        *,
        on: Mapping[str, Handler] = {},
        once: Mapping[str, Sequence[Handler]] = {},
    ) -> None:
        self.revision = revision
        self.session = session
        self.sessions = 0
        self.on = dict(on)
        self.once = {what: list(handlers) for what, handlers in once.items()}
        self.capabilities = dict(EVERY_SERVER_CAPABILITY)

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        planned = self.once.get(asked.what)
        usual = self.on.get(asked.what) or getattr(self, _NAMES.get(asked.what, "_request"))
        await (planned.pop(0) if planned else usual)(asked, reply)

    async def _request(self, asked: Asked, reply: Reply) -> None:
        if asked.what == "response" or asked.id is None:
            await reply.whole(202)
        else:
            await reply.json(result(asked))

    async def _initialize(self, asked: Asked, reply: Reply) -> None:
        opened = opening_result(self.revision, self.capabilities)
        await reply.json(result(asked, **opened), 200, **self.session_fields())

    def session_fields(self) -> dict[str, str]:
        """The header that names a new session."""
        if self.session is None:
            return {}
        self.sessions += 1
        number = "" if self.sessions == 1 else str(self.sessions)
        return {"Mcp_Session_Id": self.session + number}

    async def _discover(self, asked: Asked, reply: Reply) -> None:
        if REVISIONS[self.revision].lifecycle is Lifecycle.HANDSHAKE:
            await reply.whole(400, b"Bad Request: no session", Content_Type="text/plain")
        else:
            await reply.json(result(asked, **opening_result(self.revision)))

    async def _get(self, asked: Asked, reply: Reply) -> None:
        await reply.whole(405, Allow="POST")

    async def _delete(self, asked: Asked, reply: Reply) -> None:
        await reply.whole(200)


class Forgetful(Script):
    """Forgets its sessions: those that are named in `forgotten` get 404."""

    def __init__(self, revision: str, session: str | None = "s", **planned: Any) -> None:
        super().__init__(revision, session, **planned)
        self.forgotten: set[str] = set()

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.fields.get("mcp-session-id") in self.forgotten:
            await reply.whole(404)
        else:
            await super().__call__(asked, reply)


_NAMES = {
    "initialize": "_initialize",
    "server/discover": "_discover",
    "GET": "_get",
    "DELETE": "_delete",
}


@asynccontextmanager
async def connect_scripted(script: Script, **how: Any) -> AsyncIterator[tuple[Any, HttpServer]]:
    """An open client, and the server that it is connected with."""
    async with HttpServer(script) as server:
        with anyio.fail_after(30):
            async with connect(server.url, **{"revision": script.revision, **how}) as client:
                yield client, server


async def fail_to_open(target: Any, **how: Any) -> None:
    """Connect to a script, or to what `connect` takes, where that is to fail."""
    opening = connect_scripted if isinstance(target, Script) else connect
    async with opening(target, **how):
        raise AssertionError("it was opened")


class SseScript(Script):
    """A server of HTTP+SSE: a GET opens the stream, and posts are answered on it."""

    def __init__(
        self,
        revision: str,
        endpoint: str = "/messages?session_id=5ec2e7",
        refusal: Handler | None = None,
        **planned: Any,
    ) -> None:
        super().__init__(revision, **planned)
        self.endpoint = endpoint
        self.stream: Reply | None = None
        self._refusal = refusal or says(b"", 405)

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.verb == "POST" and asked.target == "/mcp":
            await self._refusal(asked, reply)
        else:
            await super().__call__(asked, reply)

    async def say(self, message: Any, **how: Any) -> None:
        """Say something on the stream."""
        assert self.stream is not None
        await self.stream.event(message, **{"type": "message", **how})

    async def _get(self, asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(self.endpoint.encode(), type="endpoint")
        self.stream = reply
        await reply.gone()

    async def _request(self, asked: Asked, reply: Reply) -> None:
        await reply.whole(202, b"Accepted")
        if asked.what != "response" and asked.id is not None:
            await self.say(result(asked))

    async def _initialize(self, asked: Asked, reply: Reply) -> None:
        await reply.whole(202, b"Accepted")
        await self.say(result(asked, **opening_result(self.revision)))
