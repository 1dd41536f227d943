"""A web server in a thread, for what is no server of MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Have a handler answer requests at a free port of loopback; yields the origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def serve_pages(
    page_for: Callable[[BaseHTTPRequestHandler], tuple[str, str] | None],
) -> AbstractContextManager[str]:
    """Answer each GET with a media type and a text, or with 404 for `None`; yields the origin."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = page_for(self)
            kind, text = page or ("text/plain", "")
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

    return serving(Pages)
