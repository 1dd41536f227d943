"""One of several processes that use one user's tokens from a `FileStore`; see test_shared_store.

Arguments: the URL of the server, the revision, and the folder of the store. Each line that it reads
is a round: a kind and a number of tasks. It is answered by a line with the results of all tasks.

- `calls`: the tasks make a call each, by one client that stays open.
- `clients`: the tasks open a client each, and make a call.
"""

from __future__ import annotations

import sys

import anyio
from anyio.to_thread import run_sync

from mcpgen_runtime import Client, FileStore, OAuth, Redirect, connect


async def refuse(url: str) -> str:
    raise AssertionError("the user was asked")


def auth(folder: str) -> OAuth:
    store = FileStore(folder, encrypted=False)
    return OAuth("Agent", redirect=Redirect("http://127.0.0.1:9/cb", refuse), store=store)


async def call(client: Client, results: list[str]) -> None:
    result = await client.call_tool("echo")
    results.append(result.content[0].text)


async def open_and_call(url: str, revision: str, folder: str, results: list[str]) -> None:
    async with connect(url, auth=auth(folder), revision=revision) as client:
        await call(client, results)


async def main(*arguments: str) -> None:
    url, revision, folder = arguments
    async with connect(url, auth=auth(folder), revision=revision) as client:
        print("ready", flush=True)
        while line := await run_sync(sys.stdin.readline):
            kind, tasks = line.split()
            results: list[str] = []
            async with anyio.create_task_group() as group:
                for _ in range(int(tasks)):
                    if kind == "calls":
                        group.start_soon(call, client, results)
                    else:
                        group.start_soon(open_and_call, url, revision, folder, results)
            print(*results, flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
