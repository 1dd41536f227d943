"""Scripts as forks of a process that has imported what they import, to save time."""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LENGTH = 4
"""Bytes before a request that say how long it is; the descriptors of its streams come with them."""

SUCCESS = bytes(LENGTH)
"""The answer to a request, an exit code, if that is 0."""

SESSION = """
import anyio, httpx2
import pkg.testing
from pkg import Server, connect

server = Server("warm")

@server.tool()
async def echo(city: str) -> str:
    return city

async def main() -> None:
    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("echo", {"city": "Oslo"})

anyio.run(main)
"""
"""A program that imports most of a package `pkg`: a session in memory."""


class Forks:
    """A process that runs scripts that come by a channel, one at a time."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def printed(self, script: str, folder: Path, environment: Mapping[str, str]) -> str:
        """The output of a script in a folder, which must succeed."""
        request = json.dumps([script, f"{folder}", dict(environment)]).encode()
        output, errors = folder / ".stdout", folder / ".stderr"
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            streams = [stdout.fileno(), stderr.fileno()]
            socket.send_fds(self._channel, [len(request).to_bytes(LENGTH)], streams)
            self._channel.sendall(request)
            answer = self._channel.recv(LENGTH)
        text = output.read_text("utf-8")
        assert answer == SUCCESS, text + errors.read_text("utf-8")  # none if the process has ended
        return text


@contextmanager
def forks(folder: Path, code: str) -> Iterator[Forks]:
    """A process in a folder, and with the modules there, that has run some code."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, __file__, f"{theirs.fileno()}", code]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
    )
    theirs.close()
    try:
        with ours:
            yield Forks(ours)
    finally:
        process.wait(60)


def serve(channel: socket.socket) -> str:
    """Answer requests with exit codes; in a fork, return the script that it shall run."""
    while True:
        length, streams, _, _ = socket.recv_fds(channel, LENGTH, 2)
        if not length:
            sys.exit()
        request = channel.recv(int.from_bytes(length), socket.MSG_WAITALL)
        pid = os.fork()
        if not pid:
            channel.close()
            script, folder, environment = json.loads(request)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            for number, stream in enumerate(streams, 1):
                os.dup2(stream, number)
        for stream in streams:
            os.close(stream)
        if not pid:
            return f"{script}"
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        channel.sendall(code.to_bytes(LENGTH, signed=True))


if __name__ == "__main__":
    sys.path[0] = f"{Path.cwd()}"
    exec(sys.argv[2], {})
    gc.freeze()  # else each fork looks at all of it when it ends, which takes three times as long
    sys.argv[:] = [serve(socket.socket(fileno=int(sys.argv[1])))]
    runpy.run_path(sys.argv[0], run_name="__main__")
