"""A proxy loses between two revisions what `mcpgen diff A B --bridge` says, and nothing else.

Random messages of the published schemas pass a proxy in both directions for all ordered pairs of
revisions. `MCP_BRIDGE_MESSAGES=2000` sends so many for each pair.
"""

from __future__ import annotations

import os
import re

import pytest

from mcpgen.diff.bridge import Row
from package.proxy.bridge_traffic import Passage, Traffic, table
from package.wire import ALL

MESSAGES = int(os.environ.get("MCP_BRIDGE_MESSAGES", "400"))
"""The least number of messages of a pair."""

PAIRS = [pytest.param(old, new, id=f"{old} to {new}") for old in ALL for new in ALL if old != new]

UNSEEN = {
    "tools/call.result:CreateTaskResult": "tests of tasks behind proxies show it",
    "sampling/createMessage.result:CreateTaskResult": "no server asks for it",
    "elicitation/create.result:CreateTaskResult": "no server asks for it",
}
"""Losses that these messages don't show, with the reason."""

LOGGED = re.compile(r"proxy 'bridge': (\S+) is (?:lost|degraded): ")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: these tests are about values."""
    return "asyncio"


async def send_all(near: str, far: str) -> Traffic:
    """Messages of all kinds between a client and a server."""
    traffic = Traffic(near, far)
    await traffic.run(MESSAGES // 2)
    await traffic.run_notifications(MESSAGES // 40)
    await traffic.run_errors()
    await traffic.run_changes()
    await traffic.run_absent()
    return traffic


def losses(old: str, new: str, sender: str) -> dict[str, Row]:
    """The rows of what does not arrive as it was, by id."""
    rows = table(old, new).of("lost", "degraded")
    return {row.id: row for row in rows if row.sender == sender}


def expected(old: str, new: str, sender: str) -> dict[str, Row]:
    """The rows of what may be absent at the receiver, by id."""
    rows = table(old, new).of("lost", "degraded", "renamed", "own")
    return {row.id: row for row in rows if row.sender == sender}


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_a_proxy_loses_what_the_table_says(old: str, new: str) -> None:
    of_clients, of_servers = await send_all(old, new), await send_all(new, old)
    sent = {"client": of_clients.forth, "server": of_servers.back}
    count = sum(passage.count for passage in sent.values())
    for sender, passage in sent.items():
        known, must = expected(old, new, sender), losses(old, new, sender).keys()
        assert {place: why for place, why in passage.lost.items() if place not in known} == {}
        assert passage.refused == {}
        assert must - passage.lost.keys() - UNSEEN.keys() == set()
    assert count >= MESSAGES


@pytest.mark.parametrize(("near", "far"), PAIRS)
async def test_the_log_of_a_proxy_names_the_rows(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    traffic = await send_all(near, far)
    rows = {**losses(near, far, "client")}, {**losses(far, near, "server")}
    lost = traffic.forth.lost, traffic.back.lost
    named = {
        place
        for each, places in zip(rows, lost, strict=True)
        for place in places
        if place in each and each[place].log == "yes"
    }
    lines = [LOGGED.match(each) for each in caplog.messages]
    logged = [match[1] for match in lines if match is not None]
    assert set(logged) == named
