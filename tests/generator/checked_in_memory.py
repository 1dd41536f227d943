"""The tiny raw servers in this process: what they reply is there as soon as a line is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import anyio

from generator import checked_servers, checked_stateless_servers
from mcpgen.check_server.connections import (
    Connection,
    Fields,
    Received,
    Reply,
    Transport,
    answer_to,
    encode,
    parse_messages,
    refusal,
)
from mcpgen.check_server.runner import Findings, Run
from mcpgen.check_server.session import Server
from mcpgen.check_server.table import Check
from mcpgen.explain.revision import revision
from mcpgen.json_types import Json, is_object
from mcpgen.project.live_server import Target

Respond = Callable[[bytes], Iterable[bytes]]
"""The lines that a server writes for a line that it reads."""


class MemoryConnection:
    """A server in this process; see `Connection`."""

    transport: Transport = "stdio"
    end = ""

    def __init__(self, respond: Respond, sent: list[bytes]) -> None:
        self.received: list[Received] = []
        self.fields: dict[str, str] = {}
        self._respond = respond
        self._sent = sent

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Json] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """Send a line; see `Connection`."""
        start = len(self.received)
        for line in payload.split(b"\n"):
            self._sent.append(line)
            self._pass_on(line)
        reply = Reply(self.received[start:])
        if awaited:
            reply.answer = answer_to(awaited[-1], reply.received)
            reply.reason = "" if reply.answer else "no answer"
        return reply

    def _pass_on(self, payload: bytes) -> None:
        for line in self._respond(payload):
            messages = parse_messages(line)
            self.received += messages
            for each in messages:
                answer = refusal(each.message) if is_object(each.message) else None
                if answer is not None:
                    self._pass_on(encode(answer))

    async def settle(self, seconds: float) -> None:
        """All that comes has come."""

    async def close(self) -> None:
        """There is nothing to end."""


class MemoryServer(Server):
    """Opens connections in this process.

    Attributes:
        sent: The lines that were sent on all of them.
    """

    def __init__(self, begin: Callable[[], Respond], tasks: Any, *, call_tools: bool) -> None:
        super().__init__(Target("raw", ["raw"]), tasks, 1.0, call_tools=call_tools)
        self.sent: list[bytes] = []
        self._begin = begin

    async def connect(self) -> Connection:
        """A new connection to a server that has read nothing."""
        return MemoryConnection(self._begin(), self.sent)


def checked_in_memory(
    module: Any, defect: str, name: str, checks: Sequence[Check], *, call_tools: bool = False
) -> tuple[Findings, list[bytes]]:
    """The findings about a raw server in one revision, and the lines that were sent to it."""

    async def check() -> tuple[Findings, list[bytes]]:
        async with anyio.create_task_group() as tasks:
            server = MemoryServer(lambda: module.responding(defect), tasks, call_tools=call_tools)
            findings = await Run(server, checks, ignore, ignore).findings([revision(name)])
        return findings, server.sent

    return anyio.run(check)


def ignore(text: str) -> None:
    """Nobody looks at the progress."""


SERVERS = {
    **dict.fromkeys(checked_servers.REVISIONS, checked_servers),
    checked_stateless_servers.REVISION: checked_stateless_servers,
}
"""The module of the raw server that speaks a revision."""
