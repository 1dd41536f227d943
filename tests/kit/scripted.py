"""Clients whose server answers by a script, and what they asked it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

from kit.live import FakeServer
from kit.samples import EVERY_SERVER_CAPABILITY
from mcpgen_runtime import connect


class ScriptedServer(FakeServer):
    """A server that answers what it hears with what is planned, in this order, and then no more."""

    def __init__(
        self,
        revision: str,
        answers: Iterable[Mapping[str, Any]],
        capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
    ) -> None:
        super().__init__(revision, capabilities)
        self._answers = iter(answers)

    async def respond(self, message: dict[str, Any]) -> None:
        planned = next(self._answers, None) if "id" in message else None
        if planned is not None and "error" in planned:
            await self.say({"jsonrpc": "2.0", "id": message["id"], **planned})
        elif planned is not None:
            await self.answer(message, planned)

    def asked(self) -> list[dict[str, Any]]:
        """The params of what it heard, without their `_meta`."""
        return [
            {name: value for name, value in request.get("params", {}).items() if name != "_meta"}
            for request in self.heard
        ]


@asynccontextmanager
async def connect_scripted(
    revision: str,
    /,
    *answers: Mapping[str, Any],
    rest: Iterable[Mapping[str, Any]] = (),
    **how: Any,
) -> AsyncIterator[tuple[Any, ScriptedServer]]:
    """An open client, and the server that gives these answers; see `ScriptedServer`."""
    server = ScriptedServer(revision, chain(answers, rest))
    async with connect(server, **{"revision": revision, **how}) as client:
        yield client, server
