"""A server of the benchmark over HTTP: `python -m tests.benchmarks.http_server CONTENDER`.

Prints its URL on standard output, and ends when its standard input does. All contenders run on the
same uvicorn with the same settings, and answer with JSON: our default for a response without
notifications before it, and the quickest setting of the others.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from .serving import ENGINE_VARIABLE

PATH = "/mcp"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

META = b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0"}}'
TEXT = b'"content":[{"type":"text","text":"3"}]'
CAPABILITIES = b'"capabilities":{"tools":{"listChanged":true},"logging":{}}'
CACHING = b'"ttlMs":0,"cacheScope":"private"'
HANDSHAKE_RESULTS = {
    b"initialize": b'{"protocolVersion":"2025-11-25",%b,"serverInfo":{"name":"bench",'
    b'"version":"1.0"}}' % CAPABILITIES,
    b"tools/call": b"{%b}" % TEXT,
}
PER_REQUEST_RESULTS = {
    b"server/discover": b'{%b,"resultType":"complete",%b,"supportedVersions":["2026-07-28"],%b}'
    % (META, CACHING, CAPABILITIES),
    b"tools/call": b'{%b,"resultType":"complete",%b}' % (META, TEXT),
}
ACKNOWLEDGED = (
    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",'
    b'"params":{"notifications":{"toolsListChanged":true},"_meta":{'
    b'"io.modelcontextprotocol/subscriptionId":%b}}}\n\n'
)

_find_id = re.compile(rb'"id":(\d+)').search
_find_method = re.compile(rb'"method":"([^"]+)"').search


def canned(body: bytes) -> bytes | None:
    """The response to a message; `None` if it gets none."""
    identifier, method = _find_id(body), _find_method(body)
    if identifier is None or method is None:
        return None
    results = PER_REQUEST_RESULTS if b"/protocolVersion" in body else HANDSHAKE_RESULTS
    result = results.get(method[1])
    if result is None:
        return None
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (identifier[1], result)


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """The floor: the right response to the messages of the benchmark, as constant text."""
    assert scope["type"] == "http", scope
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["method"] == "GET" or b'"subscriptions/listen"' in body:
        await stream(body, receive, send)
        return
    answer = canned(body) if scope["method"] == "POST" else None
    headers = [(b"content-length", b"%d" % len(answer or b""))]
    if answer is not None:
        headers.append((b"content-type", b"application/json"))
    if b'"initialize"' in body:
        headers.append((b"mcp-session-id", b"echo"))
    status = 202 if answer is None else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer or b""})


async def stream(body: bytes, receive: Receive, send: Send) -> None:
    """Keep a stream of events open until the client disconnects."""
    identifier = _find_id(body)
    first = b": open\n\n" if identifier is None else ACKNOWLEDGED % identifier[1]
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


def application(contender: str) -> Any:
    """The ASGI application of a contender: one tool that adds two numbers."""
    if contender == "ours":
        from . import our_server

        return our_server.server.asgi(PATH)
    if contender == "shared":
        from . import our_server

        return our_server.server.asgi(PATH, shared=os.environ[ENGINE_VARIABLE])
    if contender == "varied":
        from . import varied_server

        return varied_server.server.asgi(PATH)
    if contender == "official":
        from . import official_server

        return official_server.server.streamable_http_app(
            streamable_http_path=PATH, json_response=True
        )
    if contender == "fastmcp":
        from . import fastmcp_server

        return fastmcp_server.server.http_app(path=PATH, json_response=True)
    return echo


def end_with_input() -> None:
    """Exit when standard input is closed."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve on a free port."""
    app, token = application(sys.argv[1]), ""
    if sys.argv[1] == "protected":
        from .protected_server import protected_app

        app, token = protected_app(PATH)
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
