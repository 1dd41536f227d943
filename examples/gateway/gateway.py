"""A gateway in front of a server: its client sees and calls the allowed tools alone.

python gateway.py --allow query --allow 'get_*' -- python server.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from threading import Lock, Thread
from typing import Any, BinaryIO

from pkg import MessageError, Request, Response, decoder, encode, models, replace
from pkg.r2025_11_25 import methods as earlier
from pkg.r2026_07_28 import methods as latest

INVALID_PARAMS = -32602
read_json = decoder(Any)


class Gateway:
    """Checks the messages between one client and one server.

    Args:
        allowed: Names of tools, or patterns such as `get_*`.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed
        self._read = latest.read_message
        self._requests = latest.CLIENT_REQUESTS
        self._lists: dict[str | int, latest.Method] = {}  # the requests for lists, by id

    def refusal(self, line: bytes) -> bytes | None:
        """The error response to a message of the client, or None if the server may see it."""
        try:
            message = self._read(line)
        except MessageError as error:
            return error_response(error.id, error.code, str(error))
        match message:
            case Request(method="initialize"):  # the latest revision has no such method
                self._read = earlier.read_message
                self._requests = earlier.CLIENT_REQUESTS
            case Request(id=id, method="tools/list" as method):
                self._lists[id] = self._requests[method]
            case Request(id=id, params=models.CallToolRequestParams(name=name)):
                verdict = "allowed" if self._allows(name) else "refused"
                print(f"{verdict}: {name!r}", file=sys.stderr, flush=True)
                if verdict == "refused":
                    return error_response(id, INVALID_PARAMS, f"unknown tool {name!r}")
            case _:
                pass
        return None

    def filtered(self, line: bytes) -> bytes:
        """A message of the server as the client may see it."""
        match self._read(line, self._lists):
            case Response(id=id, result=models.ListToolsResult() as result):
                del self._lists[id]
                tools = [tool for tool in result.tools if self._allows(tool.name)]
                response = {"jsonrpc": "2.0", "id": id, "result": replace(result, tools=tools)}
                return encode(response) + b"\n"
            case _:
                return line

    def _allows(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._allowed)


def error_response(id: str | int | None, code: int, text: str) -> bytes:
    """A line with an error response."""
    error = models.Error(code=code, message=text)
    return encode(models.JSONRPCErrorResponse(id=id, error=error)) + b"\n"


class Output:
    """Standard output, which answers of the server and of the gateway share."""

    def __init__(self) -> None:
        self._lock = Lock()

    def write(self, line: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def pass_requests(gateway: Gateway, server: BinaryIO, output: Output) -> None:
    """Pass lines of the client on until it closes its end."""
    with open(0, "rb", closefd=False) as client, server:
        for line in client:
            refused = gateway.refusal(line)
            if refused is None:
                # Written anew: of a member that is there twice, the server reads what was checked.
                server.write(encode(read_json(line)) + b"\n")
                server.flush()
            else:
                output.write(refused)


def main() -> int:
    parser = argparse.ArgumentParser(description="A gateway in front of a server.")
    parser.add_argument("--allow", action="append", default=[], help="a tool, or a pattern")
    parser.add_argument("command", nargs="+", help="what starts the server")
    arguments = parser.parse_args()
    gateway, output = Gateway(arguments.allow), Output()
    with subprocess.Popen(
        arguments.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        passing = Thread(target=pass_requests, args=(gateway, server.stdin, output), daemon=True)
        passing.start()
        for line in server.stdout:
            try:
                output.write(gateway.filtered(line))
            except MessageError as error:
                print(f"dropped a line of the server: {error}", file=sys.stderr, flush=True)
    return server.returncode


if __name__ == "__main__":
    sys.exit(main())
