"""Calls of tools that take long, in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypedDict

from ..toolkit.server import ServerKernel
from ..toolkit.tools import Tool

_logger = logging.getLogger(__name__)


class SlowCallOptions(TypedDict, total=False):
    """The log of slow calls.

    Attributes:
        slow_after: Seconds after which the call of a tool is logged as a warning when it ends,
            with the tool and its duration; `None` for no log.
    """

    slow_after: float | None


class SlowCallServer(ServerKernel):
    """A server that logs the calls of tools that take long."""

    _slow_after: float | None

    def _use_options(self, options: dict[str, Any]) -> None:
        seconds: float | None = options.pop("slow_after", None)
        if seconds is not None and not seconds > 0:
            raise ValueError(f"slow_after: expected more than 0, got {seconds}")
        self._slow_after = seconds
        super()._use_options(options)

    def _prepare_tool(self, tool: Tool) -> None:
        if self._slow_after is not None:
            tool.function = _logged_if_slow(tool.function, tool.label, self._slow_after)
        super()._prepare_tool(tool)


def _logged_if_slow(
    function: Callable[..., Awaitable[Any]], label: str, seconds: float
) -> Callable[..., Awaitable[Any]]:
    """A function that logs its calls that take longer, however they end."""

    @wraps(function)
    async def logged(**arguments: Any) -> Any:
        begin = time.monotonic()
        try:
            return await function(**arguments)
        finally:
            duration = time.monotonic() - begin
            if duration > seconds:
                _logger.warning("%s took %.3g s, more than %g s", label, duration, seconds)

    return logged
