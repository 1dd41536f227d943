"""The floor: a process that echoes every line, on bare asyncio streams."""

from __future__ import annotations

import asyncio
import sys


async def main() -> None:
    """Echo lines until the input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
