"""Answers over HTTP that nobody can use: the first half of one, and bytes that mean nothing."""

from __future__ import annotations

import random

from kit.http_server import Asked, Handler, Reply


async def half_a_head(asked: Asked, reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await reply.gone()


async def half_a_body(asked: Asked, reply: Reply) -> None:
    await reply.head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    await reply.raw(b'{"jsonrpc": "2.0",')
    await reply.gone()


async def half_an_event(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.part(b'data: {"jsonrpc": "2.0",')
    await reply.gone()


def garbage(noise: random.Random) -> bytes:
    """Bytes that look more or less like what could come."""
    pieces = [b"data: ", b"id: 1\n", b"\n\n", b"event: message\n", b"retry: 1\n", b":", b"\r", b"{"]
    pieces += [b'{"jsonrpc":"2.0"', b'"id":', b"[]", b"null", b"\0", b"\xff\xfe", b'"result":{}}']
    pieces += [
        b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n',
        b"event: endpoint\ndata: x\n\n",
    ]
    return b"".join(
        noise.choice(pieces) if noise.random() < 0.8 else noise.randbytes(noise.randrange(20))
        for _ in range(noise.randrange(40))
    )


def noisy(noise: random.Random) -> Handler:
    """A handler whose response is garbage, in one of several places."""

    async def handler(asked: Asked, reply: Reply) -> None:
        match noise.randrange(6):
            case 0:
                await reply.stream()
                await reply.part(garbage(noise))
                await reply.end()
            case 1:
                await reply.stream()
                await reply.part(garbage(noise))
                await reply.cut()
            case 2:
                await reply.json(garbage(noise), status=noise.choice([200, 202, 400, 404, 500]))
            case 3:
                await reply.raw(garbage(noise))
                await reply.cut()
            case 4:
                fields = {garbage(noise).decode("latin-1"): garbage(noise).decode("latin-1")}
                await reply.head(200, {"Content-Type": "application/json", **fields})
                await reply.cut()
            case _:
                kind = garbage(noise).decode("latin-1").replace("\r", "").replace("\n", "")
                await reply.whole(200, garbage(noise), Content_Type=kind)

    return handler
