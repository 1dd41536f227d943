"""A server in a file of its own, run as its user would: by the command line, or as a script."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kit.asgi_client import BOTH, fields_of
from kit.processes import PACKAGE_ROOT
from kit.raw_http import SECONDS, whole
from kit.wire import INITIALIZED, PER_REQUEST, SESSIONS, initialize, request

REVISION = PER_REQUEST[-1]
"""The revision that calls are made in."""

LINE = re.compile(r"serving at http://(\S+?):(\d+)(/\S*)\n")

WEB = """
    import contextlib, os, sys, threading, time
    import anyio
    from mcpgen_runtime.server.chosen import Server

    @contextlib.asynccontextmanager
    async def lifespan(server):
        if "FAIL" in os.environ:
            raise RuntimeError("no database")
        try:
            yield
        finally:
            print("left", file=sys.stderr, flush=True)

    server = Server("web", "1", drain=0.3, lifespan=lifespan)
    app = server.asgi()

    @server.tool()
    async def slow(seconds: float) -> str:
        print("slow begins", file=sys.stderr, flush=True)
        await anyio.sleep(seconds)
        return "done"

    @server.tool()
    def stuck() -> str:
        print("stuck begins", file=sys.stderr, flush=True)
        time.sleep(600)

    if __name__ == "__main__":
        server.run(http="127.0.0.1:0")
"""
SERVE = ("-m", "mcpgen_runtime", "serve", "web", "--http", "127.0.0.1:0")
"""The arguments that serve it at a free port."""


def write_server(folder: Path) -> None:
    """Write the server to a folder, as the module `web`."""
    (folder / "web.py").write_text(textwrap.dedent(WEB))


class Started:
    """A server as a process."""

    def __init__(self, folder: Path, argv: tuple[str, ...], **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *argv],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self._errors = self.process.stderr
        self._connections: list[socket.socket] = []
        said = self._errors.readline()
        match = LINE.fullmatch(said)
        assert match is not None, said + self._errors.read()
        self.host, self.path = match[1], match[3]
        self.port = int(match[2])

    def hear(self) -> str:
        """The next line on standard error."""
        return self._errors.readline().rstrip()

    def says(self, line: str) -> None:
        """Wait for a line on standard error."""
        assert self.hear() == line

    def ask(self, message: bytes) -> socket.socket:
        """Send a request over a new connection."""
        connection = socket.create_connection((self.host.strip("[]"), self.port), SECONDS)
        self._connections.append(connection)
        connection.sendall(message)
        return connection

    def call(self, tool: str, **arguments: object) -> socket.socket:
        """Call a tool."""
        params = {"name": tool, "arguments": arguments}
        return self.ask(whole(self.port, REVISION, "tools/call", params))

    def close(self) -> None:
        """Close what is open, and see that it has ended."""
        for connection in self._connections:
            connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def end(self, by: int = signal.SIGTERM) -> tuple[int, str, str, float]:
        """Send a signal; gives exit code, both outputs, and how long it took."""
        before = time.monotonic()
        self.process.send_signal(by)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err, time.monotonic() - before


class WebClient:
    """A client of such a server, whose requests have a connection each; with a session, if any."""

    def __init__(self, port: int, revision: str) -> None:
        self._port = port
        self._revision = revision
        self._ids = itertools.count(1)
        self.fields = {"Accept": BOTH, "Content-Type": "application/json"}
        if revision in SESSIONS:
            status, fields, body = self.post(initialize(revision))
            assert (status, json.loads(body)["result"]["protocolVersion"]) == (200, revision)
            self.fields["Mcp-Session-Id"] = fields["Mcp-Session-Id"]
            self.fields["MCP-Protocol-Version"] = revision
            assert self.post(INITIALIZED)[0] == 202

    @contextmanager
    def open(self, message: Any, **fields: str) -> Iterator[http.client.HTTPResponse]:
        """The response to a POST, or to a GET if there is no message, unread."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        method, body = ("GET", None) if message is None else ("POST", json.dumps(message))
        if message is not None:
            own = fields_of(self._revision, message)
            fields |= {name: value for name, value in own.items() if value is not None}
        with closing(connection):
            connection.request(method, "/mcp", body, {**self.fields, **fields})
            with connection.getresponse() as response:
                yield response

    def post(self, message: Any) -> tuple[int, Any, bytes]:
        """Status, header fields and body of the response to a POST."""
        with self.open(message) as response:
            return response.status, response.headers, response.read()

    def call(self, tool: str) -> tuple[int, str]:
        """The status of the response to a call, and the text that the tool returned."""
        status, _, body = self.post(self.message(tool))
        return status, json.loads(body)["result"]["content"][0]["text"]

    def message(self, tool: str, **more: Any) -> dict[str, Any]:
        """A call of a tool, with an id of its own."""
        params = {"name": tool, "arguments": {}}
        return request(self._revision, "tools/call", params, id=next(self._ids), **more)


@contextmanager
def start_server(folder: Path, *argv: str, **environment: str) -> Iterator[Started]:
    """A server that says where it serves; nothing of it is left in the end."""
    server = Started(folder, argv or SERVE, **environment)
    try:
        yield server
    finally:
        server.close()


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    data = b""
    while part := connection.recv(1 << 16):
        data += part
    return data


def until(connection: socket.socket, wanted: bytes) -> bytes:
    """Read from a connection up to some bytes, and return all that was read."""
    data = b""
    while wanted not in data:
        part = connection.recv(1 << 16)
        assert part, data
        data += part
    return data


def run(folder: Path, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Have a command run to its end."""
    return subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
