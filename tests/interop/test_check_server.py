"""`mcpgen check-server` on real servers: it ends in time, and accuses them of what is true.

Every finding was read against the page of its revision; a new one is to be read so before it is
added here.
"""

from __future__ import annotations

import json
import shlex
import sys
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

ALIKE = {
    # Unknown tools are results with isError; the pages list them among the errors of JSON-RPC.
    "tools.unknown-tool-error",
    # An older revision gets the code of 2026-07-28.
    "resources.not-found-32002",
    # A cursor that they never gave out is ignored.
    "pagination.invalid-cursor-error",
}
EVERYTHING_BREAKS = {
    *ALIKE,
    # Params of a wrong type end in an exception of the validator: -32603.
    *("jsonrpc.code-invalid-params", "completion.missing-arguments-error"),
    "logging.invalid-level-error",
    # A tool's result has links to resources in each revision.
    "content.no-resource-link-before-2025-06",
}
OFFICIAL_BREAKS = {
    *ALIKE,
    # Arrays are not read, though 2025-03-26 asks for them.
    "jsonrpc.batch-receive",
    # What goes wrong with a prompt is an internal error.
    *("prompts.invalid-name-error", "prompts.missing-arguments-error"),
    # The handler in official_server.py completes whatever it is asked for.
    "completion.invalid-prompt-error",
}
BAD_MESSAGES = {
    # What is no request is a parse error, or invalid params.
    "jsonrpc.code-invalid-request",
    # The id of an error is null, where 2025-11-25 leaves it out.
    "jsonrpc.error-id-omitted-if-unreadable",
}
BROKEN = {
    # Over stdio arrays are not read, over HTTP they are read in all revisions.
    ("everything", "stdio"): EVERYTHING_BREAKS | {"jsonrpc.batch-receive"},
    ("everything", "http"): {
        *EVERYTHING_BREAKS,
        *BAD_MESSAGES,
        "jsonrpc.batch-removed",
        # Each origin is served, and a session that was deleted gets 400.
        *("transport-security.validate-origin", "http.session-gone-404"),
    },
    ("official", "stdio"): OFFICIAL_BREAKS,
    ("official", "http"): OFFICIAL_BREAKS | BAD_MESSAGES,
}
"""The rules that each breaks."""

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
    assert {each["rule"] for each in findings["broken"]} == BROKEN[name, transport]
    assert code == 1
