"""Results with hints for how long they may be used, and a clock that stands until it is moved."""

from __future__ import annotations

from typing import Any

from kit.samples import RESULTS


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.25

    def __call__(self) -> float:
        return self.now

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.now += milliseconds / 1000


def result_of(method: str) -> dict[str, Any]:
    """A result of a request, the last page of a list."""
    result = dict(RESULTS[method] or {})
    result.pop("nextCursor", None)
    return result


def cacheable_result(
    method: str, ttl: Any = 60_000, scope: Any = "private", **more: Any
) -> dict[str, Any]:
    """A result that says how long it may be used."""
    return {**result_of(method), "ttlMs": ttl, "cacheScope": scope, **more}


def tools(*names: str, **hints: Any) -> dict[str, Any]:
    """A page of a list of tools."""
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return {**cacheable_result("tools/list", **hints), "tools": listed}


def names(listed: list[Any]) -> list[str]:
    return [tool.name for tool in listed]
