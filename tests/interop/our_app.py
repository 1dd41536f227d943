"""The server of `our_server.py` as an ASGI application, for hosts of others."""

from __future__ import annotations

from interop.our_server import RETRY_SECONDS, server

app = server.asgi(sse_path="/sse", retry=RETRY_SECONDS)
