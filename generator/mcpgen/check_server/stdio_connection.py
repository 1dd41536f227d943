"""A server as a child process: lines to its standard input, all output read and recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process, TaskGroup

from mcpgen.check_server.connections import (
    MESSAGE_LIMIT,
    Fields,
    Received,
    Reply,
    Transport,
    answer_to,
    encode,
    flood,
    parse_messages,
    refusal,
)
from mcpgen.errors import ServerError, safe_text
from mcpgen.json_types import Json, is_object

_BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
_EXIT_SECONDS = 2.0


@dataclass
class ExitGrace:
    """The time for processes of a server to exit after the end of input, before they are killed.

    After one process had to be killed, further processes get only a short time.

    Attributes:
        seconds: Seconds for the next process.
    """

    seconds: float = 1.0

    def learn(self, *, ended: bool) -> None:
        """Adapt the time to whether a process ended by itself."""
        if not ended:
            self.seconds = min(self.seconds, 0.1)


async def open_stdio(
    command: Sequence[str],
    options: Mapping[str, Any],
    tasks: TaskGroup,
    timeout: float,
    grace: ExitGrace,
) -> StdioConnection:
    """Start a server.

    Args:
        command: Its command.
        options: `cwd` and `env`; variables are added to those of this process.
        tasks: The task group that reads its output.
        timeout: Seconds for each answer.
        grace: The time for processes of the server to exit.

    Raises:
        ServerError: The command cannot be started.
    """
    try:
        process = await anyio.open_process(
            list(command),
            stderr=subprocess.PIPE,
            cwd=options.get("cwd"),
            env={**os.environ, **options.get("env", {})},
            start_new_session=sys.platform != "win32",
        )
    except (OSError, ValueError) as error:
        shown = safe_text(" ".join(command))
        raise ServerError(f"expected a server that starts, got {error}: {shown}") from error
    connection = StdioConnection(process, timeout, grace)
    tasks.start_soon(connection.read_output)
    tasks.start_soon(connection.read_errors)
    return connection


class StdioConnection:
    """A running server; see `Connection`.

    Args:
        process: The process, with pipes.
        timeout: Seconds for each answer.
        grace: The time for processes of the server to exit.
    """

    def __init__(self, process: Process, timeout: float, grace: ExitGrace) -> None:
        self.received: list[Received] = []
        self.fields: dict[str, str] = {}
        self._process = process
        self._timeout = timeout
        self._grace = grace
        self._end = ""
        self._last_error = b""
        self._errors_read = anyio.Event()
        self._change = anyio.Event()
        self._bytes = 0

    @property
    def transport(self) -> Transport:
        """The transport of the messages."""
        return "stdio"

    @property
    def end(self) -> str:
        """The reason of the end of the connection; empty while it is open."""
        return self._end

    async def read_output(self) -> None:
        """Read standard output until it ends, and answer the server's own requests."""
        stdout = self._process.stdout
        assert stdout is not None  # opened as a pipe
        tail = b""
        end = ""
        with suppress(*_BROKEN):
            while not end:
                *lines, tail = (tail + await stdout.receive()).split(b"\n")
                for line in lines:
                    await self._take(line.removesuffix(b"\r"))
                end = flood(len(tail), len(self.received), self._bytes)
        if tail:
            await self._take(tail)
        if end:
            self._kill()
        self._end = end or await self._exit_text()
        self._announce()

    async def _take(self, line: bytes) -> None:
        self._bytes += len(line)
        messages = parse_messages(line)
        self.received += messages
        self._announce()
        for each in messages:
            answer = refusal(each.message) if is_object(each.message) else None
            if answer is not None:
                with anyio.move_on_after(self._timeout), suppress(*_BROKEN):
                    await self._send_line(encode(answer))

    def _announce(self) -> None:
        self._change.set()
        self._change = anyio.Event()

    async def read_errors(self) -> None:
        """Read standard error until it ends, and keep the last line that is not blank."""
        stderr: ByteReceiveStream | None = self._process.stderr
        assert stderr is not None  # opened as a pipe
        tail = b""
        with suppress(*_BROKEN):
            while True:
                *lines, tail = (tail + await stderr.receive()).split(b"\n")
                tail = tail[-MESSAGE_LIMIT:]
                for line in (*lines, tail):
                    self._last_error = line if line.strip() else self._last_error
        self._errors_read.set()

    async def _exit_text(self) -> str:
        code = None
        with anyio.move_on_after(_EXIT_SECONDS):
            code = await self._process.wait()
            await self._errors_read.wait()
        how = "closed its output" if code is None else f"ended with exit code {code}"
        text = safe_text(self._last_error.decode("utf-8", "replace"))
        return f"the server {how}" + (f"; last line on stderr: {text}" if text else "")

    async def _send_line(self, line: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # opened as a pipe
        await stdin.send(line + b"\n")

    async def _write(self, line: bytes) -> str:
        """Write a line; return the reason of a failure, else an empty text."""
        with anyio.move_on_after(self._timeout):
            try:
                await self._send_line(line)
            except _BROKEN:
                return await self._wait_for_end()
            return ""
        return f"the server read none of its input for {self._timeout:g} s"

    async def _wait_for_end(self) -> str:
        """Wait for the end of the connection; return its reason."""
        with anyio.move_on_after(2 * _EXIT_SECONDS):
            while not self._end:
                await self._change.wait()
        return self._end or "the server closed its input"

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Json] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """Write lines, and wait for responses; see `Connection`."""
        start = len(self.received)
        failure = await self._write(payload)
        with anyio.move_on_after(self._timeout):
            while not failure and not self._has(awaited, start):
                if self._end:
                    break
                await self._change.wait()
        reply = Reply(self.received[start:])
        if awaited:
            reply.answer = answer_to(awaited[-1], reply.received)
            late = f"no answer in {self._timeout:g} s"
            reply.reason = "" if reply.answer else failure or self._end or late
        else:
            reply.reason = failure or self._end
        return reply

    def _has(self, awaited: Sequence[Json], start: int) -> bool:
        new = self.received[start:]
        return all(answer_to(id, new) is not None for id in awaited)

    async def settle(self, seconds: float) -> None:
        """Return once another message has come, or after some seconds."""
        with anyio.move_on_after(seconds):
            if not self._end:
                await self._change.wait()

    async def end_input(self, seconds: float) -> bool:
        """Close standard input; return whether the process ended in time."""
        stdin = self._process.stdin
        assert stdin is not None  # opened as a pipe
        with suppress(*_BROKEN):
            await stdin.aclose()
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Close the input, then kill the remaining processes."""
        with anyio.CancelScope(shield=True):
            self._grace.learn(ended=await self.end_input(self._grace.seconds))
            self._kill()
            with suppress(*_BROKEN):
                await self._process.aclose()
