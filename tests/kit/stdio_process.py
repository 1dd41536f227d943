"""Servers that speak over pipes, each in a process of its own: their commands, and one by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit.processes import PACKAGE_ROOT
from kit.wire import HANDSHAKE, INITIALIZED, encode_message, initialize, request
from mcpgen_runtime.protocol.jsonrpc import InvalidMessage, parse

SCRIPT = Path(__file__).parent / "stdio_server.py"
PATHS = {"PYTHONPATH": str(PACKAGE_ROOT)}
SERVER = [sys.executable, str(SCRIPT)]


def script(code: str) -> list[str]:
    """A command that runs some code as a server."""
    return [sys.executable, "-c", code]


class Process:
    """A server started by hand: lines in, lines out."""

    def __init__(
        self,
        revision: str,
        backend: str = "asyncio",
        command: Sequence[str] = SERVER,
        errors: int = subprocess.PIPE,
    ) -> None:
        self.revision = revision
        self.process = subprocess.Popen(
            [*command, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **PATHS},
        )
        self.lines: list[bytes] = []
        if revision in HANDSHAKE:
            self.say(initialize(revision, {"roots": {}}))
            self.hear()
            self.say(INITIALIZED)

    def say(self, *messages: Any) -> None:
        """Write messages, each a line, all at once."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(encode_message(message) + b"\n" for message in messages))
        self.process.stdin.flush()

    def hear_line(self) -> bytes:
        """Read a line."""
        assert self.process.stdout is not None
        self.lines.append(self.process.stdout.readline())
        assert self.lines[-1], "the server ended"
        return self.lines[-1]

    def hear(self) -> dict[str, Any]:
        """Read a message."""
        message: dict[str, Any] = json.loads(self.hear_line())
        return message

    def call(self, tool: str, arguments: Mapping[str, Any], **how: Any) -> None:
        """Write a call of a tool."""
        params = {"name": tool, "arguments": arguments}
        self.say(request(self.revision, "tools/call", params, **how))

    def hear_error(self, line: bytes) -> None:
        """Wait for a line on standard error."""
        assert self.process.stderr is not None
        assert self.process.stderr.readline().rstrip() == line

    def end(self, by: int | None = None) -> int:
        """End its input, or send a signal; gives the exit code."""
        if by is not None:
            self.process.send_signal(by)
        rest, errors = self.process.communicate(timeout=5)
        self.lines += rest.splitlines(keepends=True)
        self.errors = errors
        return self.process.returncode


@contextmanager
def process(revision: str, backend: str = "asyncio") -> Iterator[Process]:
    """A server started by hand, whose every line of output is a message in the end."""
    started = Process(revision, backend)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.end()
    for line in started.lines:
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        assert not isinstance(parse(line), InvalidMessage), line
