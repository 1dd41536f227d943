"""Lists of a server are the same for all connections, and no request changes them.

Source: server/tools, server/resources, server/prompts (capabilities, 2026-07-28).
"""

from __future__ import annotations

from typing import Any

import pytest

from kit.wire import ALL, RawEnd, speaking_to
from package.server.toolkit.test_server import METHODS, full

LISTS = tuple(method for method, _, _ in METHODS)
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/call", {"name": "t", "arguments": {"value": "y"}}),
    ("tools/call", {"name": "none"}),
    ("resources/read", {"uri": "x://a"}),
    ("prompts/get", {"name": "p", "arguments": {"value": "y"}}),
)


async def lists(end: RawEnd) -> dict[str, Any]:
    """Every list, as a connection gets it."""
    return {method: (await end.ask(method))["result"] for method in LISTS}


@pytest.mark.requirement(
    "tools.list-not-per-connection",
    "resources.list-not-per-connection",
    "prompts.list-not-per-connection",
)
@pytest.mark.parametrize("revision", ALL)
async def test_lists_do_not_change_by_requests_on_any_connection(
    revision: str,
) -> None:
    server = full()
    declared: dict[str, Any] = {"roots": {}, "sampling": {}}
    async with (
        speaking_to(server, revision) as one,
        speaking_to(server, revision, declared) as two,
    ):
        before = await lists(one)
        assert [len(next(iter(result.values()))) for result in before.values()]
        assert await lists(two) == before
        for method, params in REQUESTS:
            await one.ask(method, params)
            assert await lists(one) == before, method
            assert await lists(two) == before, method
        async with speaking_to(server, revision) as three:
            assert await lists(three) == before
