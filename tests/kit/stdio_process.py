"""Servers that speak over pipes, each in a process of its own: their commands, and one by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
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

    def __init__(self, revision: str, backend: str = "asyncio") -> None:
        self.revision = revision
        self._process = subprocess.Popen(
            [*SERVER, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **PATHS},
        )
        self.lines: list[bytes] = []
        if revision in HANDSHAKE:
            self.say(initialize(revision, {"roots": {}}))
            self.hear()
            self.say(INITIALIZED)

    def say(self, *messages: Any) -> None:
        """Write messages, each a line, all at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(encode_message(message) + b"\n" for message in messages))
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Read a line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.lines.append(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def call(self, tool: str, arguments: Mapping[str, Any], **how: Any) -> None:
        """Write a call of a tool."""
        params = {"name": tool, "arguments": arguments}
        self.say(request(self.revision, "tools/call", params, **how))

    def hear_error(self, line: bytes) -> None:
        """Wait for a line on standard error."""
        assert self._process.stderr is not None
        assert self._process.stderr.readline().rstrip() == line

    def end(self, by: int | None = None) -> int:
        """End its input, or send a signal; gives the exit code."""
        if by is not None:
            self._process.send_signal(by)
        rest, errors = self._process.communicate(timeout=5)
        self.lines += rest.splitlines(keepends=True)
        self.errors = errors
        return self._process.returncode


@contextmanager
def process(revision: str, backend: str = "asyncio") -> Iterator[Process]:
    """A server started by hand, whose every line of output is a message in the end."""
    started = Process(revision, backend)
    try:
        yield started
    finally:
        if started._process.poll() is None:
            started._process.kill()
            started.end()
    for line in started.lines:
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        assert not isinstance(parse(line), InvalidMessage), line
