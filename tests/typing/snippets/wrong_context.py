"""What a checker has to find in contexts and dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mcp_protocol import Context, Depends, Server

server = Server("counter")


@dataclass
class AppState:
    calls: int


class Db: ...


def open_db() -> Db:
    return Db()


@server.tool(timeout="2")  # expect: error
async def count(db: Annotated[Db, Depends(open_db)], ctx: Context[AppState]) -> str:
    ctx.state.cals += 1  # expect: error
    ctx.http_request.headers  # expect: error
    return db.name  # expect: error


Depends("open_db")  # expect: error
