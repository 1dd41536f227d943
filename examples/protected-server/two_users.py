"""Two users of the server: one listens for a note that the other writes.

python two_users.py http://127.0.0.1:8000/mcp
"""

from __future__ import annotations

import os
import sys

import anyio

from pkg import Client, RemoteError, connect, models

NOTE = "notes://today"


async def main(url: str) -> None:
    async with (
        connect(url, auth=os.environ["READER_TOKEN"]) as reader,
        connect(url, auth=os.environ["WRITER_TOKEN"]) as writer,
        reader.listen(uris=[NOTE]) as changes,
    ):
        for text in ("Bring cake.", "Bring tea too."):
            await write(writer, text)
        await anext(changes)
        (contents,) = (await reader.read_resource(NOTE)).contents
        assert isinstance(contents, models.TextResourceContents)
        print("read:", contents.text)
        try:
            await write(reader, "Bring nothing.")
        except RemoteError as error:
            print("refused:", error)


async def write(client: Client, text: str) -> None:
    result = await client.call_tool("write_note", {"name": "today", "text": text})
    print(*(block.text for block in result.content if block.type == "text"))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
