"""A tap between a host and a server: passes all messages on, and writes them to a trace.

The host starts `mcpgen record TARGET -o FILE` in place of the server, over stdio. The trace is the
host's: its messages are `sent`. Secrets in it are masked; what is passed on is not changed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcpgen.contract.command import package_files
from mcpgen.errors import ServerError, safe_text
from mcpgen.explain.conversation import versions_in
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.project import live_server
from mcpgen.project.live_server import Target
from mcpgen.replay.channels import Wire, listed_tools, open_wire

CHANNEL = "client"
_INTERNAL_ERROR = -32603


def record(words: str, directory: Path, output: Path) -> None:
    """Pass messages between standard streams and a server, and append them to a file.

    Returns when the host has closed standard input, or the server has ended.

    Args:
        words: The server, as a user names it.
        directory: The working directory of a command.
        output: The file.

    Raises:
        UsageError: The words name no server.
        MirrorError: A file that the words name has no such server.
        ServerError: The server does not start, or the file can't be written.
    """
    target = live_server.target(words, directory)
    if not isinstance(target.address, str):
        own = target.options.get("env", {})
        target = replace(target, options={**target.options, "env": {**os.environ, **own}})
    files = package_files(("client", "server"), ("trace",))
    with live_server.import_package(files) as package:
        anyio.run(_pass_all, package, target, output)


async def _pass_all(package: Any, target: Target, output: Path) -> None:
    traces = import_module(f"{package.__name__}.runtime.trace")
    stdio = import_module(f"{package.__name__}.server.stdio_server")
    tools: list[Node] = []
    try:
        trace = traces.open_trace(str(output), CHANNEL, partial(secret_names, tools))
    except package.McpError as error:
        raise ServerError(str(error)) from error
    try:
        async with open_wire(package, target, tools, _print_line) as server:
            host = Wire(package, stdio.open_stdio())
            try:
                await Tap(host, server, trace, tools).run()
            finally:
                with anyio.CancelScope(shield=True):
                    await host.channel.close()
    finally:
        trace.close()


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _end_at_signal(tasks: TaskGroup) -> None:
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            tasks.cancel_scope.cancel()


@dataclass
class Tap:
    """Passes messages on, and records them.

    Attributes:
        host: The channel to the host.
        server: The channel to the server.
        trace: The trace.
        tools: The tools that the server has listed so far.
        revision: The revision that the host asked for last; empty before.
    """

    host: Wire
    server: Wire
    trace: Any
    tools: list[Node]
    revision: str = ""

    async def run(self) -> None:
        """Pass messages until one side has ended, or a signal comes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_at_signal, tasks)
            tasks.start_soon(self.pass_to_server, tasks)
            await self.pass_to_host()
            tasks.cancel_scope.cancel()

    async def pass_to_server(self, tasks: TaskGroup) -> None:
        """Pass the messages of the host to the server, until the host closes its end."""
        while True:
            try:
                data = await self.host.receive()
            except self.host.errors.EndOfChannel:
                await self.server.channel.close()
                return
            except self.host.errors.FrameError as error:
                self.trace.record_failure(error)
                continue
            self.trace.record_sent(data)
            for message, line in self._parts(data):
                self.revision = next(iter(versions_in(message)), self.revision)
                if "method" in message and "id" in message and not self.server.is_ordered:
                    tasks.start_soon(self._send, message, line)
                else:
                    await self._send(message, line)

    def _parts(self, data: bytes) -> Iterator[tuple[Node, bytes]]:
        """The messages of a line: those of a batch over HTTP, else one, whatever it is."""
        try:
            value: Json = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if is_array(value) and not self.server.is_ordered:
            yield from ((each, b"") for each in value if is_object(each))
        else:
            yield value if is_object(value) else {}, data

    async def _send(self, message: Node, data: bytes) -> None:
        try:
            await self.server.send(message, self.revision, data)
        except self.server.errors.ConnectionClosedError:
            return  # reading from the server ends, too
        except self.server.errors.McpError as error:
            if "method" in message and "id" in message:
                await self._fail(message["id"], error)

    async def pass_to_host(self) -> None:
        """Pass the messages of the server to the host, until the server ends."""
        while True:
            try:
                data = await self.server.receive()
            except self.server.errors.RequestLost as lost:
                await self._fail(lost.id, lost)
                continue
            except self.server.errors.FrameError as error:
                self.trace.record_failure(error)
                continue
            except self.server.errors.McpError as error:
                self.trace.record_failure(error)
                return
            self.trace.record_received(data)
            self.tools += _tools_in(data)
            await self._send_to_host(data)

    async def _send_to_host(self, data: bytes) -> None:
        try:
            await self.host.send({}, "", data.replace(b"\n", b" "))
        except self.host.errors.McpError:
            await self.server.channel.close()  # the host is gone

    async def _fail(self, id: Json, error: Exception) -> None:
        """Answer a request of the host that the server did not get or not answer."""
        text = safe_text(" ".join(str(error).split()), 400)
        failure = {"code": _INTERNAL_ERROR, "message": f"mcpgen record: {text}"}
        data = json.dumps({"jsonrpc": "2.0", "id": id, "error": failure}).encode()
        self.trace.record_failure(error)
        await self._send_to_host(data)


def _tools_in(data: bytes) -> list[Node]:
    if b'"inputSchema"' not in data:
        return []
    try:
        return listed_tools(json.loads(data))
    except (ValueError, RecursionError):
        return []


def secret_names(tools: Collection[Node], tool: str) -> set[str]:
    """The arguments of a tool that its schema declares as secret, and members within."""
    names: set[str] = set()
    for each in tools:
        if each.get("name") == tool:
            names.update(_secrets_in(each.get("inputSchema")))
    return names


def _secrets_in(schema: Json) -> Iterator[str]:
    if is_array(schema):
        for item in schema:
            yield from _secrets_in(item)
    elif is_object(schema):
        properties: Json = schema.get("properties")
        for name, node in properties.items() if is_object(properties) else ():
            if is_object(node) and (node.get("writeOnly") or node.get("format") == "password"):
                yield name
        for node in schema.values():
            yield from _secrets_in(node)
