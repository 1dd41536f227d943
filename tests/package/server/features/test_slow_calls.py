"""Calls of tools that take long: which are logged, and which options are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kit.wire import ALL
from mcpgen_runtime import Server, ToolError, connect

pytestmark = pytest.mark.anyio

LOGGER = "mcpgen_runtime.server.features.slow_calls"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A clock that each tool moves; its time is under `now`."""
    clock = {"now": 0.0}
    monkeypatch.setattr(f"{LOGGER}.time", _Clock(clock))
    return clock


class _Clock:
    def __init__(self, clock: dict[str, float]) -> None:
        self._clock = clock

    def monotonic(self) -> float:
        return self._clock["now"]


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"slow_after": 2.0}, ["tool 'slow' took 2.5 s, more than 2 s", "tool 'fails' took 3 s, "]),
        ({"slow_after": None}, []),
        ({}, []),
    ],
)
async def test_a_call_that_takes_long_is_logged_however_it_ends(
    options: Any,
    expected: list[str],
    revision: str,
    clock: dict[str, float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("a", **options)

    @server.tool()
    def slow(seconds: float) -> str:
        clock["now"] += seconds
        return "done"

    @server.tool()
    async def fails() -> str:
        clock["now"] += 3
        raise ToolError("too bad")

    async with connect(server, revision=revision) as client:
        for name, arguments in (("slow", {"seconds": 2}), ("slow", {"seconds": 2.5})):
            result = await client.call_tool(name, arguments)
            assert result.content[0].text == "done"
        failed = await client.call_tool("fails")
        assert failed.content[0].text == "too bad"
    texts = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    assert len(texts) == len(expected)
    assert all(text.startswith(begin) for text, begin in zip(texts, expected, strict=True))


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_time_that_is_not_positive_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"slow_after: expected more than 0, got {seconds}"):
        Server("a", slow_after=seconds)
