"""The tiny raw server of 2026-07-28 over HTTP, and ways to break one rule of HTTP each."""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from generator.checked_servers import CHANGED, Message
from generator.checked_stateless_servers import (
    CAPABLE,
    MISMATCH,
    PREFIX,
    UNSUPPORTED,
    VERSION,
    answer,
    error,
    meta_of,
)

HTTP_DEFECTS = (
    *("headers.decode-before-compare", "headers.mismatch-code", "headers.mismatch-status-400"),
    *("headers.missing-required", "headers.names-case-insensitive", "headers.server-validates"),
    *("headers.undecodable-base64", "headers.values-case-sensitive", "http-compat.get-delete-405"),
    *("http-compat.last-event-id-ignored", "http-compat.session-header-ignored"),
    *("http.final-response-ends-stream", "http.listen-response-stream", "http.missing-meta-400"),
    *("http.no-resumability", "http.no-sessions", "http.post-202-notification"),
    *("http.unknown-method-404", "http.version-header-mismatch"),
    *("http.version-header-missing-reject", "http.version-unsupported", "http.x-accel-buffering"),
    *("subscriptions.ack-first", "subscriptions.id-value", "transport-security.origin-403"),
    "transport-security.validate-origin",
)
"""Rules that the server over HTTP can break."""

STATUSES = {-32601: 404, UNSUPPORTED: 400, MISMATCH: 400, -32600: 400}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Handler(BaseHTTPRequestHandler):
    """One request over HTTP; the defect is of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    server: StatelessHttpServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def has(self, rule: str) -> bool:
        """Whether the server has a defect."""
        return self.server.defect == rule

    def reply(self, status: int, message: Message | None = None) -> None:
        """Send a response with a message, or none."""
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.has("http.no-sessions"):
            self.send_header("Mcp-Session-Id", "a-session")
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *messages: Message) -> None:
        """Send messages as events, and leave the stream open until the client ends it."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if not self.has("http.x-accel-buffering"):
            self.send_header("X-Accel-Buffering", "no")
        self.end_headers()
        id = b"id: 1\n" if self.has("http.no-resumability") else b""
        for message in messages:
            self.wfile.write(id + b"data: " + json.dumps(message).encode() + b"\n\n")
        self.rfile.read(1)

    def do_GET(self) -> None:
        """No stream is offered."""
        self.reply(404 if self.has("http-compat.get-delete-405") else 405)

    def do_DELETE(self) -> None:
        """There are no sessions to end."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a message."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Origin") and not self.has("transport-security.validate-origin"):
            self.reply(401 if self.has("transport-security.origin-403") else 403)
            return
        for rule, field in (
            ("http-compat.session-header-ignored", "Mcp-Session-Id"),
            ("http-compat.last-event-id-ignored", "Last-Event-ID"),
        ):
            if self.has(rule) and field in self.headers:
                self.reply(400)
                return
        try:
            request = json.loads(body)
        except ValueError:
            self.reply(400, error(None, -32700))
            return
        self.answer(request)

    def answer(self, request: Any) -> None:
        """Answer a JSON value."""
        answered = answer(request)
        if answered is None:
            self.reply(200 if self.has("http.post-202-notification") else 202)
            return
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            self.reply(400, answered)
            return
        status, code = self.refusal(request)
        if code:
            self.reply(status, error(request, code))
        elif "error" in answered:
            self.reply(self.status(request, answered["error"]["code"]), answered)
        elif self.has("http.final-response-ends-stream"):
            self.stream(answered)
        else:
            self.reply(200, answered)

    def status(self, request: Message, code: int) -> int:
        """The status of an error."""
        defects = {-32601: "http.unknown-method-404", UNSUPPORTED: "http.version-unsupported"}
        if code in defects and self.has(defects[code]):
            return 200
        if code == -32602 and CAPABLE not in meta_of(request):
            return 200 if self.has("http.missing-meta-400") else 400
        return STATUSES.get(code, 200)

    def refusal(self, request: Message) -> tuple[int, int]:
        """Status and code, if header fields differ from the body; zeros if they do not."""
        refused = (400, MISMATCH)
        version = self.headers.get("MCP-Protocol-Version")
        if version is None and not self.has("http.version-header-missing-reject"):
            return refused
        differs = version is not None and meta_of(request).get(VERSION, version) != version
        if differs and not self.has("http.version-header-mismatch"):
            return refused
        method = self.headers.get("Mcp-Method")
        spelled = "Mcp-Method" in [*self.headers]
        if method is None or (self.has("headers.names-case-insensitive") and not spelled):
            return (0, 0) if self.has("headers.missing-required") else refused
        if method != request["method"] and not self.allowed(method, request["method"]):
            status = 422 if self.has("headers.mismatch-status-400") else 400
            return status, -32602 if self.has("headers.mismatch-code") else MISMATCH
        member = NAMED_BY.get(request["method"])
        name = request.get("params", {}).get(member) if member else None
        return (0, 0) if name is None or self.names(str(name)) else refused

    def allowed(self, field: str, method: str) -> bool:
        """Whether a defect lets another method pass."""
        if field.lower() == method.lower():
            return self.has("headers.values-case-sensitive")
        return self.has("headers.server-validates")

    def names(self, name: str) -> bool:
        """Whether the field for names has a name, as it is or encoded."""
        field = self.headers.get("Mcp-Name", "")
        if not field.startswith("=?base64?") or self.has("headers.decode-before-compare"):
            return bool(field == name)
        try:
            encoded = field.removeprefix("=?base64?").removesuffix("?=")
            return base64.b64decode(encoded, validate=True) == name.encode()
        except binascii.Error:
            return self.has("headers.undecodable-base64")


class Listening(Handler):
    """A handler that serves subscriptions, too."""

    def answer(self, request: Any) -> None:
        """Answer a JSON value, or open a stream of changes."""
        listens = isinstance(request, dict) and request.get("method") == "subscriptions/listen"
        if not listens or self.has("http.listen-response-stream"):
            super().answer(request)
            return
        id = str(request["id"]) if self.has("subscriptions.id-value") else request["id"]
        params: Message = {"_meta": {f"{PREFIX}subscriptionId": id}}
        wanted = {**params, "notifications": {"toolsListChanged": True}}
        method = "notifications/subscriptions/acknowledged"
        acknowledged: Message = {"jsonrpc": "2.0", "method": method, "params": wanted}
        changed = {**CHANGED, "params": params}
        early = self.has("subscriptions.ack-first")
        self.stream(*((changed, acknowledged) if early else (acknowledged,)))


class StatelessHttpServer(ThreadingHTTPServer):
    """The tiny server over HTTP."""

    daemon_threads = True

    def __init__(self, defect: str) -> None:
        super().__init__(("127.0.0.1", 0), Listening)
        self.defect = defect


@contextmanager
def run_server(defect: str) -> Iterator[str]:
    """The URL of a server over HTTP, while the block runs."""
    with StatelessHttpServer(defect) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
