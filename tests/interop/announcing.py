"""Run an ASGI application of somebody else's on a free port, and print where."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn


def run(application: Any, path: str) -> None:
    """Serve until SIGTERM; what clients keep open does not hold it back."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
        config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=0)
        uvicorn.Server(config).run(sockets=[listener])
