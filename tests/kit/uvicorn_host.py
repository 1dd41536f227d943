"""Applications on uvicorn in this process, as a user's program runs them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn


@asynccontextmanager
async def serve_on_uvicorn(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application on a free port; gives the address."""
    host = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                host.should_exit = True
