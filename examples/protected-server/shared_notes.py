"""Notes of a team: a server that needs access tokens and runs in several processes.

    python shared_notes.py 127.0.0.1:8001

From the environment: `READER_TOKEN` and `WRITER_TOKEN`, `ENGINE` (a URL of Valkey or Redis), and
`HOST` (the name or address by which clients reach the server).
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from valkey.asyncio import Valkey

from pkg import Context, Principal, Protected, ResourceNotFoundError, Server, StaticTokens

ENGINE = os.environ["ENGINE"]


@asynccontextmanager
async def open_store(server: Server) -> AsyncGenerator[Valkey]:
    """The notes, in the engine by which the processes share their sessions too."""
    async with Valkey.from_url(ENGINE, decode_responses=True) as store:
        yield store


server = Server("notes", version="1.0", subscribe=True, lifespan=open_store)
auth = Protected(
    verifier=StaticTokens(
        {
            os.environ["READER_TOKEN"]: Principal("rita", scopes=["notes:read"]),
            os.environ["WRITER_TOKEN"]: Principal("walt", scopes=["notes:read", "notes:write"]),
        }
    ),
    scopes=["notes:read"],  # of every request
)


@server.tool(scopes=["notes:write"])
async def write_note(name: str, text: str, ctx: Context[Valkey]) -> str:
    """Write a note. Clients that listen for it hear of the change, whichever process they use."""
    await ctx.state.set(f"note:{name}", text)
    server.resource_updated(f"notes://{name}")
    return f"{ctx.principal.subject} wrote {name} in process {os.getpid()}"


@server.resource("notes://{name}", mime_type="text/plain")
async def note(name: str, ctx: Context[Valkey]) -> str:
    """The text of a note."""
    text: str | None = await ctx.state.get(f"note:{name}")
    if text is None:
        raise ResourceNotFoundError(f"notes://{name}")
    return text


if __name__ == "__main__":
    server.run(http=sys.argv[1], hosts=[os.environ["HOST"]], auth=auth, shared=ENGINE)
