"""The server that the end-to-end tests start as a process: `python stdio_server.py [BACKEND]`."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import anyio

from mcpgen_runtime import Context, InputRequired, Server

server = Server("process", version="1", drain=0.2)


@server.tool()
async def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
async def echo(text: str) -> str:
    return text


@server.tool()
async def pids() -> str:
    return f"{os.getpid()} {os.getppid()}"


@server.tool()
async def shout(text: str) -> str:
    print(text)
    sys.stdout.write(text + "\n")
    os.write(1, text.encode() + b"\n")
    os.system(f"echo {text}")
    return "shouted"


@server.tool()
async def count(ctx: Context, to: int) -> str:
    for value in range(1, to + 1):
        await ctx.progress(value, total=to)
        await ctx.info(value)
    return "counted"


@server.tool()
async def wait() -> str:
    print("waiting", file=sys.stderr, flush=True)
    try:
        await anyio.sleep_forever()
    finally:
        print("stopped", file=sys.stderr, flush=True)
    return "never"


@server.tool()
def block() -> str:
    print("blocking", file=sys.stderr, flush=True)
    while True:
        time.sleep(60)


@server.tool()
async def die(code: int) -> str:
    print("about to die", file=sys.stderr)
    print("last words", file=sys.stderr, flush=True)
    os._exit(code)


@server.tool()
async def grow(name: str) -> str:
    server.tool(name)(add)
    return "grown"


@server.tool()
async def capabilities(ctx: Context) -> str:
    return " ".join(sorted(ctx.client_capabilities))


@server.tool()
async def ask(ctx: Context) -> Any:
    if ctx.input_responses:
        return str(ctx.input_responses["city"]["content"]["city"])
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    params = {"mode": "form", "message": "Which city?", "requestedSchema": schema}
    return InputRequired({"city": {"method": "elicitation/create", "params": params}})


if __name__ == "__main__":
    server.run(backend="trio" if "trio" in sys.argv else "asyncio")
