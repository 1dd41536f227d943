"""Requests whose answer was lost on its way: asked again where that does no harm.

The server may have acted on such a request. One that only reads can be asked again, and so can a
call of a tool that the server itself says is read-only or idempotent. It is a new request, with an
id of its own; a server that is about to start again gets a little time. For any other request the
caller decides, who alone knows what asking twice means.

Source: changelog (2026-07-28: a broken response stream loses the request), server/tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import anyio

from .._wire import is_object
from ..errors import ConnectFailedError, ResponseLostError
from ..revision_facts import Facts

TOOLS_CALL = "tools/call"

PAUSES = (0.0, 0.5, 1.0, 2.0)
"""Seconds before a request is asked again, one attempt after another."""

Result = TypeVar("Result")


class Retries:
    """Knows which requests may be asked again, and does so."""

    def __init__(self) -> None:
        self._tools: set[str] = set()

    def listed(self, tools: Iterable[Any]) -> None:
        """Take note of what typed tools say of themselves."""
        for tool in tools:
            hints = getattr(tool, "annotations", None)
            flags = (
                getattr(hints, "read_only_hint", None),
                getattr(hints, "idempotent_hint", None),
            )
            if True in flags:
                self._tools.add(tool.name)
            else:
                self._tools.discard(tool.name)

    async def ask(
        self, name: str, params: Any, ask: Callable[[], Awaitable[Result]], facts: Facts
    ) -> Result:
        """Make a request, and make it again if its answer is lost and that does no harm.

        Args:
            name: The method.
            params: Its params, of any form.
            ask: Makes the request, as a new one each time.
            facts: What the revision states, about the method among others.

        Raises:
            AnswerLostError: It may not be made again, or that was in vain.
        """
        try:
            return await ask()
        except ResponseLostError as error:
            idempotent = facts.method(name).idempotent or _tool_in(name, params) in self._tools
            if not idempotent:
                raise
            lost: ResponseLostError | ConnectFailedError = error
        for pause in PAUSES:
            await anyio.sleep(pause)
            try:
                return await ask()
            except (ResponseLostError, ConnectFailedError) as error:
                lost = error
        raise lost


def _tool_in(name: str, params: Any) -> str | None:
    """The tool that a request calls, if its params say so in a form that can be looked into."""
    if name != TOOLS_CALL:
        return None
    tool = params.get("name") if is_object(params) else getattr(params, "name", None)
    return tool if isinstance(tool, str) else None
