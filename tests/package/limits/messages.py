"""Limits of messages, on every transport."""

from __future__ import annotations

from typing import Any

import anyio

from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import LISTEN, PER_REQUEST, ServerEnd, request
from mcpgen_runtime import MethodNotFoundError, OutgoingMessage, Server, connect
from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.foreign_text import join_errors
from mcpgen_runtime.protocol.jsonrpc import parse
from mcpgen_runtime.transports.line_channel import LineReader
from mcpgen_runtime.transports.memory import memory_pair
from package.limits.table import limit

(BATCHED,) = revisions_holding("jsonrpc.batch-receive")
NEWEST = PER_REQUEST[-1]


@limit("pkg.protocol.batch_parsing.BATCH_MESSAGES")
def batch(amount: int) -> bool:
    pings = [request(BATCHED, "ping", id=number) for number in range(amount)]
    return len(ServerEnd(BATCHED).say(pings)) == amount


@limit("pkg.protocol.jsonrpc.BROKEN_BYTES", 100)
def broken_message(amount: int) -> bool:
    head, tail = b'{"jsonrpc":"2.0","id":7,"result":{"a":"', b'","b":NaN}}'
    message: Any = parse(head + b"x" * (amount - len(head + tail)) + tail)
    return message.id is not None


limit("pkg.foreign_text.SHOWN_ERRORS", 3)(
    lambda amount: join_errors(["wrong"] * amount) == "; ".join(["wrong"] * amount)
)
limit("pkg.foreign_text.ERRORS_TEXT", 100)(
    lambda amount: "more" not in join_errors(["x" * (amount - 1), "y"])
)


@limit("pkg.protocol.requests.METHOD_CHARACTERS", 20)
async def method_name(amount: int) -> bool:
    async with connect_scripted(NEWEST, {"done": True}) as (client, server):
        try:
            await client.request("x/".ljust(amount, "x"))
        except MethodNotFoundError:
            assert server.heard == []
            return False
        return True


@limit("pkg.protocol.server_connection.STREAMS", 3)
def streams_of_a_connection(amount: int) -> bool:
    server, listen = ServerEnd(NEWEST), {"notifications": {"toolsListChanged": True}}
    answers = [server.ask(LISTEN, listen, id=number)[0] for number in range(amount)]
    return not any("error" in answer for answer in answers)


@limit("pkg.protocol.handshake.RESOURCES", 5)
def followed_resources(amount: int) -> bool:
    uris = [f"memo://{number}" for number in range(amount)]
    (answer,) = ServerEnd(NEWEST).ask(LISTEN, {"notifications": {"resourceSubscriptions": uris}})
    return "error" not in answer


@limit("pkg.transports.memory.BUFFERED_MESSAGES")
async def unread_messages(amount: int) -> bool:
    near, _ = memory_pair()
    with anyio.move_on_after(1) as scope:
        for _ in range(amount):
            await near.send(OutgoingMessage(b"{}"))
    return not scope.cancelled_caught


@limit("pkg.channel.MESSAGE_LIMIT")
def line(amount: int) -> bool:
    (message,) = LineReader().feed(b"x" * amount + b"\n")
    return not isinstance(message, TooLong)


@limit("pkg.runtime.peer.CONCURRENT_REQUESTS")
async def requests_served_at_once(amount: int) -> bool:
    begun, server = list[str](), Server("waiting")

    @server.tool()
    async def wait() -> None:
        begun.append("wait")
        await anyio.sleep_forever()

    async with connect(server) as client, anyio.create_task_group() as tasks:
        for _ in range(amount):
            tasks.start_soon(client.call_tool, "wait")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    return len(begun) == amount
