"""`mcpgen replay`: traces of sessions played to the same server, and to ones that differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, run
from generator.replay_sessions import (
    REVISIONS,
    configuration,
    record,
    two_at_once,
)
from generator.replayed_servers import MUTANTS

REVISION = "2025-11-25"
RULES_OF: dict[str, str] = {
    "text": "ANSWER_DIFFERS",
    "member": "ANSWER_DIFFERS",
    "error": "ANSWER_DIFFERS",
    "progress": "NOTIFICATION_MISSING",
    "log": "NOTIFICATION_DIFFERS",
    "question": "REQUEST_DIFFERS",
    "answer": "ANSWER_DIFFERS",
    "page": "ANSWER_DIFFERS",
    "order": "ORDER_DIFFERS",
    "id": "ANSWER_DIFFERS",
    "schema": "ANSWER_DIFFERS",
    "update": "NOTIFICATION_MISSING",
}
"""The rule by which each mutant is reported."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace of each revision, and the server as a configuration."""
    folder = tmp_path_factory.mktemp("traces")
    for revision in REVISIONS:
        record(folder / f"{revision}.jsonl", revision)
    configuration(folder)
    return folder


def replay(folder: Path, trace: str, target: str = "server.json", *words: str) -> Done:
    return run("replay", trace, "--against", target, *words, cwd=folder)


def outcomes(done: Done) -> list[dict[str, Any]]:
    """The outcomes of all sessions, from a report in JSON."""
    assert done.out, done.err
    return [each for session in json.loads(done.out) for each in session["outcomes"]]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_of_a_trace_has_no_difference(traces: Path, revision: str) -> None:
    done = replay(traces, f"{revision}.jsonl")
    assert done.code == 0, done.out
    assert done.out.startswith(f"{revision}: 1 session, ")
    assert done.out.endswith(" compared, no difference\n")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_server_is_reported(traces: Path, mutant: str) -> None:
    target = configuration(traces, mutant)
    done = replay(traces, f"{REVISION}.jsonl", target, "--json", "--timeout", "5")
    assert done.code == 1
    assert {each["rule"] for each in outcomes(done)} == {RULES_OF[mutant]}


def test_calls_at_once_may_be_answered_in_any_order(traces: Path) -> None:
    record(traces / "two.jsonl", REVISION, two_at_once)
    assert [replay(traces, "two.jsonl").code for _ in range(3)] == [0, 0, 0]
