"""Calls of tools that take long: which are logged, and which options are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kit.live import server_with
from kit.wire import every
from mcpgen_runtime import Server, ToolError, connect

LOGGER = "mcpgen_runtime.server.features.slow_calls"


@every
@pytest.mark.parametrize(
    ("options", "logged"),
    [
        ({"slow_after": 1e-9}, ["done", "fails"]),
        ({"slow_after": 3600}, []),
    ],
)
async def test_a_call_that_takes_long_is_logged_however_it_ends(
    options: Any, logged: list[str], revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    def done() -> str:
        return "done"

    async def fails() -> str:
        raise ToolError("too bad")

    async with connect(server_with(done, fails, **options), revision=revision) as client:
        assert await client.call_tool("done", returns=str) == "done"
        failed: Any = await client.call_tool("fails")
        assert failed.content[0].text == "too bad"
    texts = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    assert [text.split()[:3] for text in texts] == [
        ["tool", f"'{each}'", "took"] for each in logged
    ]
    assert all(" s, more than 1e-09 s" in text for text in texts)


def test_a_time_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="slow_after: expected more than 0, got 0"):
        Server("a", slow_after=0)
