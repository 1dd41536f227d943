"""Contexts, dependencies and middleware as users write them, beyond what the documents show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

import anyio
import anyio.from_thread

from mcpgen_runtime import Context, Depends, MiddlewareRequest, Next, Server, limit_rate


@dataclass
class AppState:
    calls: int


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[AppState]:
    yield AppState(0)


server = Server("counter", lifespan=lifespan)


class Db: ...


async def open_db(ctx: Context[AppState]) -> AsyncGenerator[Db]:
    assert_type(ctx.state, AppState)
    yield Db()


@server.tool(timeout=2.5)
async def count(db: Annotated[Db, Depends(open_db)], *, ctx: Context[AppState]) -> str:
    if ctx.http_request is not None:
        assert_type(ctx.http_request.headers.get("x-tenant"), str | None)
        assert_type(ctx.http_request.cookies["id"], str)
    assert_type(ctx.session_id, str | None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ctx.info, 1)
    await asyncio.create_task(ctx.progress(1))
    return str(ctx.state.calls)


@server.tool()
def from_a_thread(ctx: Context) -> str:
    anyio.from_thread.run(ctx.progress, 1)
    ctx.progress(1, 2)
    ctx.log("debug", {"left": 1})
    return str(ctx.state)


@server.middleware
async def audit(request: MiddlewareRequest, next: Next) -> Any:
    assert_type(request.method, str)
    assert_type(request.principal.subject, str)
    return await next(request)


server.middleware(limit_rate(100, seconds=60, per=lambda request: request.target))


async def in_a_test() -> None:
    with server.override(open_db, Db):
        result = await server.call_tool("count")
    assert_type(result.is_error, bool | None)
    server.add_tool(len, name="length", tags=["text"], timeout=1)
    assert_type([tool.name for tool in await server.list_tools()], list[str])
