"""`mcpgen check-server` on real servers: it ends in time, and accuses them of what is true.

Every finding was read against the page of its revision; a new one is to be read so before it goes
into `tables/broken_rules.toml`.
"""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from interop.processes import EVERYTHING, HERE, LOOPBACK, run_mcpgen, run_server
from interop.revisions import HANDSHAKE, STATELESS

pytestmark = pytest.mark.interop

OFFICIAL = HERE / "official_server.py"
SERVERS: dict[tuple[str, str], tuple[Sequence[str], Sequence[str]]] = {
    ("everything", "stdio"): (("node", EVERYTHING, "stdio"), ("2025-03-26", "2025-11-25")),
    ("everything", "http"): (
        ("node", "--require", LOOPBACK, EVERYTHING, "streamableHttp"),
        HANDSHAKE,
    ),
    ("official", "stdio"): ((sys.executable, f"{OFFICIAL}"), ("2025-03-26", STATELESS)),
    ("official", "http"): ((sys.executable, f"{OFFICIAL}", "http"), (*HANDSHAKE, STATELESS)),
}
"""The commands and the revisions to check: few over stdio, where each rule may cost a process."""

RULES: dict[str, list[str]] = tomllib.loads((HERE / "tables" / "broken_rules.toml").read_text())
BROKEN = {
    ("everything", "stdio"): ("alike", "everything", "everything_stdio"),
    ("everything", "http"): ("alike", "everything", "bad_messages", "everything_http"),
    ("official", "stdio"): ("alike", "official"),
    ("official", "http"): ("alike", "official", "bad_messages"),
}
"""The groups of rules that each breaks."""

DEADLINE = 300

Checked = tuple[int, dict[str, Any], str]
"""Exit code, findings, and what went to stderr."""


def check(name: str, transport: str) -> Checked:
    """The findings of the command at a server."""
    server, revisions = SERVERS[name, transport]
    with ExitStack() as running:
        target = shlex.join(server)
        if transport == "http":
            url = running.enter_context(run_server(*server))
            target = f"{url}mcp" if name == "everything" else url
        words = ["check-server", target, "--json", *(f"--revision={each}" for each in revisions)]
        done = run_mcpgen(*words, codes=(0, 1), timeout=DEADLINE)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def first_checks() -> Iterator[dict[tuple[str, str], Future[Checked]]]:
    """Results of `check` by server. Two go on side by side: they mostly wait for timeouts."""
    with ThreadPoolExecutor(2) as pool:
        yield {server: pool.submit(check, *server) for server in BROKEN}


@pytest.mark.timeout(2 * DEADLINE)
@pytest.mark.parametrize(("name", "transport"), BROKEN)
def test_a_real_server_is_accused_of_nothing_but_what_is_true(
    name: str, transport: str, first_checks: dict[tuple[str, str], Future[Checked]]
) -> None:
    """If the test is repeated, another check is made."""
    first = first_checks.pop((name, transport), None)
    code, findings, errors = check(name, transport) if first is None else first.result()
    assert "Traceback" not in errors
    assert findings["given_up"] == {}
    assert findings["revisions"] == [*SERVERS[name, transport][1]]
    expected = {rule for group in BROKEN[name, transport] for rule in RULES[group]}
    assert {each["rule"] for each in findings["broken"]} == expected
    assert code == 1
