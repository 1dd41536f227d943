"""A trace as a server in a test: `testing.connected(replay=...)` of a package runs it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream


@dataclass(frozen=True)
class ServedTrace:
    """A process of `mcpgen replay --serve`, behind a channel of a generated package.

    Attributes:
        package: The name of the package with the module `channel`.
        words: The trace, and options of the command.
    """

    package: str
    words: Sequence[str]

    async def serve(self, channel: Any) -> None:
        """Pass messages between a channel and the process, until one of them ends.

        Raises:
            AssertionError: The command failed; the text is its standard error.
        """
        command = [sys.executable, "-m", "mcpgen", "replay", *self.words, "--serve", "--quiet"]
        printed: list[bytes] = []
        async with await anyio.open_process(command) as process:
            streams: Any = process  # all three are open
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write, channel, streams.stdin)
                tasks.start_soon(self._read, streams.stdout, channel)
                printed += [text async for text in streams.stderr]
            code = await process.wait()
        if code:
            raise AssertionError(b"".join(printed).decode(errors="replace").strip())

    async def _write(self, channel: Any, stdin: Any) -> None:
        ended = importlib.import_module(f"{self.package}.errors").TransportError
        with suppress(ended, anyio.BrokenResourceError):  # one of them has ended
            while True:
                await stdin.send(await channel.receive() + b"\n")
        await stdin.aclose()

    async def _read(self, stdout: Any, channel: Any) -> None:
        ended = importlib.import_module(f"{self.package}.errors").TransportError
        module = importlib.import_module(f"{self.package}.channel")
        lines = BufferedByteReceiveStream(stdout)
        with suppress(ended, anyio.IncompleteRead):
            while True:
                line = await lines.receive_until(b"\n", module.MESSAGE_LIMIT)
                await channel.send(module.OutgoingMessage(line))
        await channel.close()
