"""Contexts, dependencies and middleware as users write them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

import anyio
import anyio.from_thread

from mcpgen_runtime import (
    Context,
    Depends,
    MiddlewareRequest,
    Next,
    Server,
    limit_rate,
    log_requests,
)


@dataclass
class AppState:
    calls: int


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[AppState]:
    yield AppState(0)


server = Server("counter", lifespan=lifespan)


class Db:
    def rows(self) -> list[str]:
        return []


async def open_db(ctx: Context[AppState]) -> AsyncGenerator[Db]:
    assert_type(ctx.state, AppState)
    yield Db()


def open_fake() -> Db:
    return Db()


@server.tool(timeout=2.5)
async def count(
    table: str, db: Annotated[Db, Depends(open_db)], *, ctx: Context[AppState]
) -> list[str]:
    ctx.state.calls += 1
    if ctx.http_request is not None:
        assert_type(ctx.http_request.headers.get("x-tenant"), str | None)
        assert_type(ctx.http_request.cookies["id"], str)
    assert_type(ctx.session_id, str | None)
    return db.rows()


@server.prompt()
def without_await(ctx: Context) -> str:
    ctx.progress(1, 2)
    ctx.report_progress(1)
    ctx.info("half of it")
    ctx.log("debug", {"left": 1})
    return "done"


@server.tool()
def from_a_thread(ctx: Context) -> str:
    anyio.from_thread.run(ctx.progress, 1)
    return "done"


@server.tool()
async def at_once(ctx: Context) -> str:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ctx.info, 1)
    task = asyncio.create_task(ctx.progress(1))
    await task
    return "done"


@server.tool()
def untyped(ctx: Context) -> str:
    return str(ctx.state)


@server.middleware
async def audit(request: MiddlewareRequest, next: Next) -> Any:
    assert_type(request.method, str)
    assert_type(request.principal.subject, str)
    return await next(request)


server.middleware(log_requests())
server.middleware(limit_rate(100, seconds=60, per=lambda request: request.target))


async def in_a_test() -> None:
    with server.override(open_db, open_fake):
        result = await server.call_tool("count", {"table": "cars"})
    assert_type(result.is_error, bool | None)
    server.add_tool(len, name="length", tags=["text"], timeout=1)
    server.disable("count", tags=["text"])
    assert_type([tool.name for tool in await server.list_tools()], list[str])
