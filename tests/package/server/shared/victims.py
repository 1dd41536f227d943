"""Processes of one server, each with a way of its own to the engine, on which a signal hits it.

The way is a socket that passes commands on. When the process sends the n-th command that is part of
serving a request, the signal hits the process before the engine has the command, or once the engine
has executed it and before the reply is there.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from kit.engine import Engine
from kit.processes import PACKAGE_ROOT
from kit.raw_http import SECONDS

PAUSE_SECONDS = 4.5
"""For which a process is stopped: longer than all of its leases."""

TAKEN_SECONDS = 6.0
"""For a task of a process that is gone to end: it is taken within 4 seconds, and may run anew."""

_SERVING = re.compile(rb"serving at http://127\.0\.0\.1:(\d+)/mcp")
_AT_REST = (b":changes", b":inbox:", b":alive:")

FORKING = """
    import functools, os, signal, sys
    import anyio
    from victim_server import server

    async def load():  # what a server loads once it serves
        async with anyio.create_task_group() as tasks:
            serve = functools.partial(server.run_async, http="127.0.0.1:0", shared=sys.argv[1])
            await tasks.start(serve)
            tasks.cancel_scope.cancel()

    anyio.run(load)
    pids = []
    for line in sys.stdin:
        path, url = line.split()
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(path + ".log", os.O_WRONLY | os.O_CREAT), 2)
            server.run(http="127.0.0.1:0", shared=url, banner=False)
            os._exit(0)
        pids.append(pid)
        print(pid, flush=True)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
"""


class Victim:
    """A process, and its way to the engine.

    Args:
        path: Of the socket of its way.
        engine: The socket of the engine.

    Attributes:
        pid: The process.
        port: Where it serves.
        at: The number of the command with which the signal hits; 0 for none.
        number: The signal.
        commands: Number of commands of requests since `arm_now`.
        hit: Set when the signal has hit it.
        hit_at: When that was, on the clock of the event loop.
        went_on: Set when it goes on after a pause.
    """

    def __init__(self, path: Path, engine: str) -> None:
        self.path = path
        self.pid = self.port = 0
        self.commands = 0
        self.hit = asyncio.Event()
        self.hit_at = 0.0
        self.went_on = asyncio.Event()
        self._engine = engine
        self.at = 0
        self._is_after = False
        self.number: signal.Signals = signal.SIGKILL
        self._is_armed = False
        self._carrying: set[asyncio.Task[None]] = set()

    def arm(self, at: int, number: signal.Signals, *, is_after: bool) -> None:
        """Say what hits it.

        Args:
            at: The number of the command with which the signal hits.
            number: The signal.
            is_after: Whether the engine executes that command.
        """
        self.at, self.number, self._is_after = at, number, is_after

    def arm_now(self) -> None:
        """Count commands from now on."""
        self.commands = 0
        self._is_armed = True

    async def serving(self) -> Victim:
        """Wait until it serves."""
        log = Path(f"{self.path}.log")
        with anyio.fail_after(3 * SECONDS):
            while not (log.exists() and (serving := _SERVING.search(log.read_bytes()))):
                await asyncio.sleep(0.05)
        self.port = int(serving[1])
        return self

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until it breaks, or until `close`."""
        own = asyncio.current_task()
        assert own is not None
        self._carrying.add(own)
        far_reader, far_writer = await asyncio.open_unix_connection(self._engine)
        held = bytearray()  # replies, while a mark of ours is awaited
        mark = os.urandom(8).hex().encode()
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            back = asyncio.create_task(self._back(far_reader, writer, held, mark))
            try:
                while True:
                    raw, words = await _command(reader)
                    is_hit = self._is_hit_by(words)
                    if is_hit and not self._is_after:
                        await self._strike()
                    elif is_hit:
                        held += b" "
                        raw += b"*2\r\n$4\r\nECHO\r\n$%d\r\n%b\r\n" % (len(mark), mark)
                    far_writer.write(raw)
            finally:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
        for each in (writer, far_writer):
            each.transport.abort()
        self._carrying.discard(own)

    async def close(self) -> None:
        """Break all connections."""
        for each in (carrying := [*self._carrying]):
            each.cancel()
        await asyncio.gather(*carrying)

    async def _back(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        held: bytearray,
        mark: bytes,
    ) -> None:
        reply = b"$%d\r\n%b\r\n" % (len(mark), mark)
        while data := await reader.read(1 << 16):
            if held:
                held += data
                if reply not in held:
                    continue
                await self._strike()
                data = bytes(held[1:]).replace(reply, b"")
                held.clear()
            writer.write(data)

    def _is_hit_by(self, words: list[bytes]) -> bool:
        if not self._is_armed or is_at_rest(words):
            return False
        self.commands += 1
        return self.commands == self.at

    async def _strike(self) -> None:
        """Send the signal; returns when the process goes on."""
        os.kill(self.pid, self.number)
        self.hit_at = asyncio.get_running_loop().time()
        self.hit.set()
        if self.number == signal.SIGKILL:
            await asyncio.Event().wait()
        await asyncio.sleep(PAUSE_SECONDS)
        os.kill(self.pid, signal.SIGCONT)
        self.went_on.set()


def is_at_rest(words: list[bytes]) -> bool:
    """Whether a process that serves no request sends this command too."""
    match words[0]:
        case b"XREAD" | b"XRANGE" | b"SET":
            return any(name in word for word in words for name in _AT_REST)
        case b"EVAL":
            return b"ZRANGEBYSCORE" in words[1]
        case _:
            return words[0] in (b"CLIENT", b"SELECT")


async def _command(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """The next command, as it came and as words."""
    raw = first = await reader.readuntil(b"\r\n")
    words: list[bytes] = []
    for _ in range(int(first[1:])):
        head = await reader.readuntil(b"\r\n")
        word = await reader.readexactly(int(head[1:]) + 2)
        raw += head + word
        words.append(word[:-2])
    return raw, words


@asynccontextmanager
async def victims(
    folder: Path, server: str, engine: str
) -> AsyncIterator[Callable[[], Awaitable[Victim]]]:
    """Begins processes of a server, forked from one that has loaded it, while the block runs.

    Args:
        folder: For their files.
        server: The text of a module that has the server.
        engine: The socket of the engine.
    """
    (folder / "victim_server.py").write_text(textwrap.dedent(server))
    (folder / "forking.py").write_text(textwrap.dedent(FORKING))
    parent = subprocess.Popen(
        [sys.executable, "forking.py", f"unix://{engine}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{PACKAGE_ROOT}{os.pathsep}{folder}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stdin, stdout = parent.stdin, parent.stdout
    assert stdin is not None
    assert stdout is not None
    all_victims: list[Victim] = []
    ways: list[asyncio.Server] = []

    async def begin() -> Victim:
        victim = Victim(folder / f"{len(ways)}.sock", engine)
        all_victims.append(victim)
        ways.append(await asyncio.start_unix_server(victim.carry, victim.path))
        stdin.write(f"{victim.path} unix://{victim.path}\n")
        stdin.flush()
        victim.pid = int(await anyio.to_thread.run_sync(stdout.readline))
        return victim

    try:
        yield begin
    finally:
        stdin.close()
        await anyio.to_thread.run_sync(parent.wait, SECONDS)
        stdout.close()
        for way, victim in zip(ways, all_victims, strict=True):
            way.close()
            await victim.close()


def end_of(engine: Engine, task_id: str) -> Any:
    """The last record of a task, as the engine has it, once that has ended."""
    late = time.monotonic() + TAKEN_SECONDS
    while True:
        reply = engine.ask("GETRANGE", f"mcp:{{victim}}:task:{task_id}", "21", "-1")
        texts = reply.partition("\r\n")[2]
        _, end = json.JSONDecoder().raw_decode(texts)  # a summary stands before the record
        record = json.loads(texts[end:])
        if record["status"] in ("completed", "failed"):
            break
        assert time.monotonic() < late, record
        time.sleep(0.1)
    if record["status"] == "completed":
        assert record["result"]["content"][0]["text"] == record["worker"]
    else:
        assert record["fence"] > 1
    return record
