"""A server of the benchmark over HTTP: `python -m tests.benchmarks.http_server CONTENDER`.

Prints its URL on standard output, and ends when its standard input does. All contenders run on the
same uvicorn with the same settings, and answer with JSON: our default for a response without
notifications before it, and the quickest setting of the others.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import uvicorn

from . import servers
from .serving import ENGINE_VARIABLE

PATH = "/mcp"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

META = b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0"}}'
TEXT = b'"content":[{"type":"text","text":"3"}]'
TOTAL = b'"content":[{"type":"text","text":"{\\"total\\":3}"}],"structuredContent":{"total":3}'
CAPABILITIES = b'"capabilities":{"tools":{"listChanged":true},"logging":{}}'
CACHING = b'"ttlMs":0,"cacheScope":"private"'
HANDSHAKE_RESULTS = {
    "initialize": b'{"protocolVersion":"2025-11-25",%b,"serverInfo":{"name":"bench",'
    b'"version":"1.0"}}' % CAPABILITIES,
    "add": b"{%b}" % TEXT,
    "report": b"{%b}" % TEXT,
    "total": b"{%b}" % TOTAL,
}
PER_REQUEST_RESULTS = {
    "server/discover": b'{%b,"resultType":"complete",%b,"supportedVersions":["2026-07-28"],%b}'
    % (META, CACHING, CAPABILITIES),
    "add": b'{%b,"resultType":"complete",%b}' % (META, TEXT),
    "report": b'{%b,"resultType":"complete",%b}' % (META, TEXT),
    "total": b'{%b,"resultType":"complete",%b}' % (META, TOTAL),
}
PROGRESS = (
    b'data: {"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":%d,"progress":0.5,"total":1.0}}\n\n'
)
ACKNOWLEDGED = (
    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",'
    b'"params":{"notifications":{"toolsListChanged":true},"_meta":{'
    b'"io.modelcontextprotocol/subscriptionId":%d}}}\n\n'
)


NO_META = msgspec.Raw(b"")


class Params(msgspec.Struct):
    """Params of a message."""

    name: str = ""
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


class Asked(msgspec.Struct):
    """A message of a client."""

    method: str
    id: int | None = None
    params: Params | None = None


_decode = msgspec.json.Decoder(Asked).decode


def canned(asked: Asked) -> bytes | None:
    """The response to a message; `None` if it gets none."""
    if asked.id is None:
        return None
    params = asked.params or Params()
    is_handshake = b"/protocolVersion" not in bytes(params.meta)
    results = HANDSHAKE_RESULTS if is_handshake else PER_REQUEST_RESULTS
    result = results.get(params.name or asked.method)
    if result is None:
        return None
    return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (asked.id, result)


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """The floor: reads the JSON of a message, and sends the right response as constant text."""
    assert scope["type"] == "http", scope
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    asked = _decode(body) if scope["method"] == "POST" else Asked("")
    if scope["method"] == "GET" or asked.method == "subscriptions/listen":
        await stream(asked, receive, send)
        return
    answer = canned(asked)
    if answer is not None and asked.params is not None and asked.params.name == "report":
        await report(asked, answer, send)
        return
    headers = [(b"content-length", b"%d" % len(answer or b""))]
    if answer is not None:
        headers.append((b"content-type", b"application/json"))
    if asked.method == "initialize":
        headers.append((b"mcp-session-id", b"echo"))
    status = 202 if answer is None else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer or b""})


async def report(asked: Asked, answer: bytes, send: Send) -> None:
    """Send a report of progress, then the answer, as events."""
    progress = PROGRESS % asked.id
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": progress, "more_body": True})
    await send({"type": "http.response.body", "body": b"data: %b\n\n" % answer})


async def stream(asked: Asked, receive: Receive, send: Send) -> None:
    """Keep a stream of events open until the client disconnects."""
    first = b": open\n\n" if asked.id is None else ACKNOWLEDGED % asked.id
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


def application(contender: str) -> Any:
    """The ASGI application of a contender."""
    match contender:
        case "ours":
            return servers.ours().asgi(PATH)
        case "shared":
            return servers.ours().asgi(PATH, shared=os.environ[ENGINE_VARIABLE])
        case "official":
            return servers.official().streamable_http_app(
                streamable_http_path=PATH, json_response=True
            )
        case "fastmcp":
            return servers.fastmcp().http_app(path=PATH, json_response=True)
        case _:
            return echo


def end_with_input() -> None:
    """Exit when standard input is closed."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve on a free port."""
    app, token = application(sys.argv[1]), ""
    if sys.argv[1] == "protected":
        app, token = servers.protected_app(PATH)
    config = uvicorn.Config(app, log_level="error", access_log=False, ws="none")
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        # asyncio sets this on sockets that it opens itself; connections inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=end_with_input, daemon=True).start()
        print(
            f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}{token and '#'}{token}", flush=True
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
