"""A proxy loses between two revisions what `mcpgen diff A B --bridge` says, and nothing else."""

from __future__ import annotations

import os
import re

import pytest

from kit.wire import ALL, CHANGED, UPDATED
from mcpgen.diff.bridge import Outcome, Row
from package.proxy.bridge_traffic import COMPLETE, ELICIT, Traffic, table

MESSAGES = int(os.environ.get("MCP_BRIDGE_MESSAGES", "400"))
"""The least number of messages of a pair."""

PAIRS = [pytest.param(old, new, id=f"{old} to {new}") for old in ALL for new in ALL if old != new]

UNSEEN = {
    "tools/call.result:CreateTaskResult": "tests of tasks behind proxies show it",
    "sampling/createMessage.result:CreateTaskResult": "no server asks for it",
    "elicitation/create.result:CreateTaskResult": "no server asks for it",
    **{f"{name}.params._meta": "no request has it" for name in (*CHANGED.values(), UPDATED)},
}
"""Losses that these messages don't show, with the reason."""

LOGGED = re.compile(r"proxy 'bridge': (\S+) is (?:lost|degraded): ")

pytestmark = [pytest.mark.costly, pytest.mark.on_asyncio]


def losses(old: str, new: str, sender: str, *more: Outcome) -> dict[str, Row]:
    """The rows of what does not arrive as it was, by id; and those of more kinds."""
    rows = table(old, new).of("lost", "degraded", *more)
    return {row.id: row for row in rows if row.sender == sender}


def rows_of_log(near: str, far: str, traffic: Traffic) -> set[str]:
    """The rows that the log of a proxy has to name, by what did not arrive."""
    return {
        place
        for rows, passage in (
            (losses(near, far, "client"), traffic.forth),
            (losses(far, near, "server"), traffic.back),
        )
        for place in passage.lost
        if place in rows and rows[place].log == "yes"
    }


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_a_proxy_loses_and_logs_what_the_table_says(
    old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong: dict[str, str] = {}
    count = 0
    for sender, near, far in (("client", old, new), ("server", new, old)):
        caplog.clear()
        traffic = Traffic(near, far)
        await traffic.run(MESSAGES // 2)
        await traffic.run_notifications(MESSAGES // 40)
        await traffic.run_errors()
        await traffic.run_absent()
        passage = traffic.forth if sender == "client" else traffic.back
        count += passage.count
        known = losses(old, new, sender, "renamed", "own")  # what may be absent
        must = losses(old, new, sender).keys()
        for place in passage.lost.keys() - known.keys():
            wrong[place] = f"lost without a row, from the {sender}: {passage.lost[place]}"
        for place, why in passage.refused.items():
            wrong[place] = f"refused, from the {sender}: {why}"
        for place in must - passage.lost.keys() - UNSEEN.keys():
            wrong[place] = f"a row that no message showed, from the {sender}"
        lines = [LOGGED.match(each) for each in caplog.messages]
        logged = {line[1] for line in lines if line is not None}
        differing = logged ^ rows_of_log(near, far, traffic)
        if ELICIT in logged:  # then only the end of an elicitation that has begun is logged
            differing.discard(COMPLETE)
        for place in differing:
            wrong[place] = f"in the log: {place in logged}"
    assert wrong == {}
    assert count >= MESSAGES
