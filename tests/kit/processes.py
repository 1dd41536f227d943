"""Real server processes for tests: scripts, a channel to them, and a way to see them end."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import mcpgen_runtime
from mcpgen_runtime.transports.process import ProcessChannel, ShutdownTimeouts, open_process

PACKAGE_ROOT = Path(mcpgen_runtime.__file__).parent.parent
DEADLINE = 30
SHORT_TIMEOUTS = ShutdownTimeouts(after_eof=0.1, after_terminate=0.1, after_kill=DEADLINE)

ECHO = """
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""
IGNORES_EOF = """
    sys.stdin.read()
    while True: signal.pause()
"""
CHILD = """
    child = "import os, signal, sys; os.write(os.open(sys.argv[1], os.O_WRONLY), b'up')"
    ends = "; signal.pause()"
    ignores = "; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + ends * 2
"""


def python(*parts: str) -> list[str]:
    imports = "import json, os, signal, subprocess, sys\n"
    return [sys.executable, "-c", imports + "".join(textwrap.dedent(part) for part in parts)]


@asynccontextmanager
async def server(command: Sequence[str], **options: Any) -> AsyncIterator[ProcessChannel]:
    with anyio.fail_after(DEADLINE):
        channel = await open_process(command, **options)
        try:
            yield channel
        finally:
            await channel.close()


class Lifeline:
    """A named pipe that ends when the last process that opened it has ended."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "lifeline")
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    async def up(self) -> None:
        """Wait until a process has opened it and said so."""
        with anyio.fail_after(DEADLINE):
            await anyio.wait_readable(self._fd)
        assert os.read(self._fd, 10) == b"up"

    async def cut(self) -> None:
        """Wait until no process has it open."""
        with anyio.fail_after(DEADLINE):
            await anyio.wait_readable(self._fd)
        assert os.read(self._fd, 10) == b""
        os.close(self._fd)
