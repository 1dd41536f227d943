"""One of several processes that use one user's tokens from a `FileStore`; see test_shared_store.

Arguments: the URL of the server, the revision, and the folder of the store. Each line that it reads
is a number of calls, which it makes side by side; it answers with a line of their results.
"""

from __future__ import annotations

import sys

import anyio
from anyio.to_thread import run_sync

from mcpgen_runtime import Client, FileStore, OAuth, Redirect, connect


async def refuse(url: str) -> str:
    raise AssertionError("the user was asked")


async def call(client: Client, results: list[str]) -> None:
    result = await client.call_tool("echo")
    results.append(result.content[0].text)


async def main(url: str, revision: str, folder: str) -> None:
    store = FileStore(folder, encrypted=False)
    auth = OAuth("Agent", redirect=Redirect("http://127.0.0.1:9/cb", refuse), store=store)
    async with connect(url, auth=auth, revision=revision) as client:
        print("ready", flush=True)
        while line := await run_sync(sys.stdin.readline):
            results: list[str] = []
            async with anyio.create_task_group() as group:
                for _ in range(int(line)):
                    group.start_soon(call, client, results)
            print(*results, flush=True)


if __name__ == "__main__":
    address, spoken, place = sys.argv[1:]
    anyio.run(main, address, spoken, place)
