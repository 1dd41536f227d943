"""The floor: a server of two tools with the fewest parts, msgspec on bare asyncio streams."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec


class Params(msgspec.Struct):
    """Params of a tool call."""

    name: str
    arguments: dict[str, int]
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class Call(msgspec.Struct):
    """A call of the tool."""

    jsonrpc: str
    id: int
    method: str
    params: Params


def answer(call: Call) -> dict[str, Any]:
    """The response that the other contenders send."""
    total = call.params.arguments["a"] + call.params.arguments["b"]
    result: dict[str, Any] = {"content": [{"type": "text", "text": f"{total}"}], "isError": False}
    if call.params.name == "total":
        result["content"][0]["text"] = f'{{"total":{total}}}'
        result["structuredContent"] = {"total": total}
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


async def main() -> None:
    """Answer calls until the input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    decode, encode = msgspec.json.Decoder(Call).decode, msgspec.json.Encoder().encode
    while line := await reader.readline():
        writer.write(encode(answer(decode(line))) + b"\n")
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
