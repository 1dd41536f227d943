"""Handlers of our client that answer whatever servers ask, and lists that tests wait on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from mcpgen_runtime import ClientHandlers, RequestContext

DEADLINE = 20.0
ANSWERS = {"name": "Ada", "nights": 3}


class Heard(list[Any]):
    """Received items, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._news = anyio.Event()

    def keep(self, item: Any) -> None:
        """Take one more, and wake whoever waits for it."""
        self.append(item)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """The first that is wanted, once it is there."""
        with anyio.fail_after(DEADLINE):
            while True:
                for item in self:
                    if wanted(item):
                        return item
                await self._news.wait()


class Person(ClientHandlers):
    """Answers whatever a server may ask, and keeps the log messages that it hears."""

    def __init__(self) -> None:
        self.logs = Heard()
        self.roots = ["file:///maps"]

    async def elicit(self, params: Any, ctx: RequestContext) -> Any:
        if hasattr(params, "url"):
            return {"action": "accept"}
        fields = params.requested_schema.properties
        content = {name: getattr(field, "default", None) for name, field in fields.items()}
        content |= {name: said for name, said in ANSWERS.items() if name in fields}
        given = {name: value for name, value in content.items() if value is not None}
        return {"action": "accept", "content": given}

    async def create_message(self, params: Any, ctx: RequestContext) -> Any:
        content = params.messages[-1].content
        [block] = content if isinstance(content, list) else [content]
        reply = {"type": "text", "text": f"<{block.text}>"}
        return {"role": "assistant", "content": reply, "model": "parrot"}

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        return {"roots": [{"uri": uri} for uri in self.roots]}

    async def logging_message(self, params: Any, ctx: RequestContext) -> None:
        self.logs.keep((params.level, params.logger, params.data))
