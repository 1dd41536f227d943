"""The tiny raw server with a handshake over HTTP: sessions, and ways to break one rule each."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from generator.checked_servers import REVISIONS, RawServer

HTTP_DEFECTS = (
    *("http.session-gone-404", "http.session-id-charset", "http.session-id-missing-400"),
    *("http.version-header-invalid-400", "http.post-202", "http.post-unacceptable-status"),
    *("http.request-reply-type", "http.get-reply", "http.endpoint-post-get"),
    "http.event-id-unique",
    *("transport-security.validate-origin", "transport-security.origin-403"),
    "transport-security.session-id-nondeterministic",
)
"""Rules that the server over HTTP can break."""


class Handler(BaseHTTPRequestHandler):
    """One request over HTTP; sessions, defect and the numbering of sessions are of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    server: RawHttpServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def has(self, rule: str) -> bool:
        """Whether the server has a defect."""
        return self.server.defect == rule

    def reply(self, status: int, body: bytes = b"", session: str = "") -> None:
        """Send a response."""
        self.send_response(status)
        kind = "text/plain" if self.has("http.request-reply-type") and body else "application/json"
        if self.has("http.event-id-unique") and body:
            kind, body = "text/event-stream", b"id: 1\ndata: %b\n\n" % body
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("MCP-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """No stream is offered."""
        if self.has("http.endpoint-post-get"):
            self.reply(404)
        else:
            self.reply(200 if self.has("http.get-reply") else 405)

    def do_DELETE(self) -> None:
        """End a session."""
        if not self.has("http.session-gone-404"):
            self.server.sessions.pop(self.headers.get("MCP-Session-Id", ""), None)
        self.reply(200)

    def do_POST(self) -> None:
        """Answer a message."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.refusal(body)
        if status:
            self.reply(status)
            return
        session = self.headers.get("MCP-Session-Id", "")
        opened = ""
        if b'"initialize"' in body:
            session = opened = self.server.new_session()
        answer = self.server.sessions.get(session, self.server.shared).answer(body)
        if answer is None:
            self.reply(200 if self.has("http.post-202") else 202)
            return
        is_bad = b'"method"' not in body and not self.has("http.post-unacceptable-status")
        self.reply(400 if is_bad else 200, json.dumps(answer).encode(), opened)

    def refusal(self, body: bytes) -> int:
        """The status of a request that is refused; 0 for others."""
        session = self.headers.get("MCP-Session-Id")
        version = self.headers.get("MCP-Protocol-Version", REVISIONS[-1])
        if self.headers.get("Origin") and not self.has("transport-security.validate-origin"):
            return 401 if self.has("transport-security.origin-403") else 403
        if version not in REVISIONS and not self.has("http.version-header-invalid-400"):
            return 400
        if b'"initialize"' in body:
            return 0
        if session is None:
            return 0 if self.has("http.session-id-missing-400") else 400
        return 0 if session in self.server.sessions else 404


class RawHttpServer(ThreadingHTTPServer):
    """The tiny server over HTTP."""

    daemon_threads = True

    def __init__(self, defect: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.defect = defect
        self.sessions: dict[str, RawServer] = {}
        self.shared = RawServer()

    def new_session(self) -> str:
        """The id of a new session."""
        id = uuid.uuid4().hex
        if self.defect == "transport-security.session-id-nondeterministic":
            id = f"session-{len(self.sessions)}"
        if self.defect == "http.session-id-charset":
            id = id + " x"
        self.sessions[id] = RawServer()
        return id


@contextmanager
def run_server(defect: str) -> Iterator[str]:
    """The URL of a server over HTTP, while the block runs."""
    with RawHttpServer(defect) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
