"""Type errors in contexts and dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mcpgen_runtime import Context, Depends, MiddlewareRequest, Next, Server, limit_rate

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


@server.middleware  # expect: error
async def no_next(request: MiddlewareRequest) -> None: ...


@server.middleware
async def audit(request: MiddlewareRequest, next: Next) -> object:
    request.metod  # expect: error
    return await next()  # expect: error


limit_rate("100")  # expect: error

server.add_tool(open_db, nmae="db")  # expect: error
server.add_tool("open_db")  # expect: error
