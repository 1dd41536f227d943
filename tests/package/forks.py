"""Programs of Python as forks of a process that has imported what they import.

To start Python and to import a package takes ten times as long as most programs of tests. A fork
has what it sets itself: folder, environment, arguments, and standard streams.
"""

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
from typing import IO

LENGTH = 4
"""Bytes before a request that say how long it is; the descriptors of its streams come with them."""

SESSION = """
import anyio, httpx2
import {package}.testing
from {package} import Server, connect

server = Server("warm")

@server.tool()
async def call(city: str) -> str:
    return city

async def main() -> None:
    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("call", dict(city="Oslo"))

anyio.run(main)
"""
"""What imports most of a package: a session in memory."""


class Forks:
    """A process that runs programs, one at a time.

    Args:
        channel: What it gets requests by.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def run(
        self,
        *words: str,
        folder: Path,
        environment: Mapping[str, str],
        streams: tuple[IO[bytes] | int, IO[bytes] | int, IO[bytes] | int],
    ) -> int:
        """The exit code of a program: a file or `-m MODULE`, and its arguments."""
        request = json.dumps([words, f"{folder}", dict(environment)]).encode()
        descriptors = [each if isinstance(each, int) else each.fileno() for each in streams]
        socket.send_fds(self._channel, [len(request).to_bytes(LENGTH)], descriptors)
        self._channel.sendall(request)
        return int.from_bytes(self._channel.recv(LENGTH), signed=True)

    def printed(self, *words: str, folder: Path, environment: Mapping[str, str]) -> str:
        """What a program prints; it must succeed."""
        output, errors = folder / ".stdout", folder / ".stderr"
        with output.open("wb") as stdout, errors.open("wb") as stderr, open(os.devnull, "rb") as no:
            streams = (no, stdout, stderr)
            code = self.run(*words, folder=folder, environment=environment, streams=streams)
        text = output.read_text("utf-8")
        assert code == 0, text + errors.read_text("utf-8")
        return text


@contextmanager
def forks(folder: Path, code: str) -> Iterator[Forks]:
    """A process in a folder, and with the modules there, that has run some code."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, __file__, f"{theirs.fileno()}", code]
    process = subprocess.Popen(command, cwd=folder, pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        with ours:
            yield Forks(ours)
    finally:
        process.wait(60)


def serve(channel: socket.socket) -> tuple[str, ...]:
    """Answer requests with exit codes; in a fork, the words of the program that it shall be."""
    while True:
        length, descriptors, _, _ = socket.recv_fds(channel, LENGTH, 3)
        if not length:
            os._exit(0)
        request = channel.recv(int.from_bytes(length), socket.MSG_WAITALL)
        pid = os.fork()
        if not pid:
            channel.close()
            words, folder, environment = json.loads(request)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return tuple(words)
        for descriptor in descriptors:
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        channel.sendall(code.to_bytes(LENGTH, signed=True))


def run(words: tuple[str, ...]) -> None:
    """Run a program as Python does, as the main module."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    is_module = words[0] == "-m"
    place = "" if is_module else f"{Path(words[0]).parent}"
    sys.path[0] = os.path.abspath(place)
    sys.argv[:] = words[1:] if is_module else words
    if is_module:
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    exec(sys.argv[2], {})
    gc.freeze()  # else each fork looks at all of it when it ends, which takes three times as long
    run(serve(socket.socket(fileno=int(sys.argv[1]))))
