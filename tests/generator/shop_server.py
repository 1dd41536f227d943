"""A server whose sessions are recorded and replayed, and ways in which another one differs from it.

It serves over stdio, or over HTTP with the words `http ADDRESS` first. A further word names a
mutant.
"""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime
from typing import Any

import anyio

from mcpgen_runtime import Context, ProtocolError, Server, ToolError

MUTANTS = {
    "text": "the text of a result",
    "member": "a member of a structured result",
    "error": "a result in place of an error",
    "progress": "one report of progress fewer",
    "log": "another log message",
    "question": "another question to the user",
    "answer": "does not use the user's answer",
    "page": "one resource more on the second page",
    "order": "asks before it reports progress",
    "id": "another id for the same order",
    "schema": "another description of an argument",
    "update": "no notification about a resource",
}


def make(mutant: str = "", **options: Any) -> Server:
    """The server, or a mutant."""
    server = Server("shop", version="1.0", page_size=2, subscribe=True, **options)
    add_conversation(server, mutant)
    add_orders(server, mutant)
    add_waiting(server, mutant)
    for number in range(4 if mutant == "page" else 3):
        text = str(number)
        server.resource(f"shop://{number}", name=f"shelf {number}")(lambda text=text: text)

    @server.prompt(description="Advises." if mutant == "schema" else None)
    def advise(about: str) -> str:
        return f"Advise about {about}"

    return server


def add_conversation(server: Server, mutant: str) -> None:
    """Add the tools that greet, count, fail, refuse and ask."""

    @server.tool()
    def greet(name: str) -> str:
        """Greets somebody."""
        return f"Good day {name}" if mutant == "text" else f"Hello {name}"

    @server.tool()
    async def count(to: int, ctx: Context) -> dict[str, int]:
        """Counts, and reports each number."""
        last = to - 1 if mutant == "progress" else to
        for number in range(1, last + 1):
            await ctx.progress(number, to, f"at {number}")
        await ctx.info("counted badly" if mutant == "log" else "counted")
        return {"counted": to, "left": 1 if mutant == "member" else 0}

    @server.tool()
    async def fail() -> str:
        """Fails on every call."""
        if mutant == "error":
            return "done"
        raise ToolError("out of order")

    @server.tool()
    async def refuse() -> str:
        """Refuses with a JSON-RPC error."""
        raise ProtocolError("not today", code=1050, data={"retry": False})

    @server.tool()
    async def book(ctx: Context) -> str:
        """Asks the user for two names, one after the other."""
        question = "Your name?" if mutant == "question" else "Who is coming?"
        if mutant != "order":
            await ctx.progress(1)
        first: Any = await ctx.elicit(question, str)
        if mutant == "order":
            await ctx.progress(1)
        second: Any = await ctx.elicit("Who else?", str)
        names = f"{first.content} and {second.content}"
        return "booked" if mutant == "answer" else f"booked for {names}"


def add_orders(server: Server, mutant: str) -> None:
    """Add the tools whose results have ids and times."""
    orders: list[str] = []

    @server.tool()
    def order() -> str:
        """Has an id and a time of its own."""
        orders.append(str(uuid.uuid4()))
        return f"order {orders[-1]} of {datetime.now(UTC).isoformat()}"

    @server.tool()
    def find(order: str) -> str:
        """Finds an order again."""
        other = str(uuid.uuid4())
        return f"found {other if mutant == 'id' else order}" if order in orders else "no such order"


def add_waiting(server: Server, mutant: str) -> None:
    """Add a tool that is cancelled, and one that changes a resource."""

    @server.tool()
    async def wait(ctx: Context) -> str:
        """Waits until it is cancelled."""
        await ctx.progress(1)
        await anyio.sleep_forever()
        return "waited"

    @server.tool()
    def change() -> str:
        """Changes a resource."""
        if mutant != "update":
            server.resource_updated("shop://0")
        return "changed"


if __name__ == "__main__":
    words = sys.argv[1:]
    address = words[1] if words[:1] == ["http"] else None
    chosen = make("".join(words[2:] if address else words))
    if address is None:
        chosen.run()
    else:
        chosen.run(http=address)
