"""`mcpgen replay`: traces of sessions played to the same server, and to ones that differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run, script_command
from generator.shop_server import MUTANTS
from generator.shop_sessions import (
    REVISIONS,
    configuration,
    record,
    served_over_http,
    two_at_once,
    write_trace,
)
from generator.tables import table

REVISION = "2025-11-25"
STATELESS = "2026-07-28"
ELICITATION = "2025-06-18"
"""The first revision in which servers ask users."""
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

pytestmark = pytest.mark.timeout(300)
"""The first replay of a machine generates a package."""


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


ACROSS = [(one, other) for one in REVISIONS for other in REVISIONS if one != other]
OUR_SCHEMAS = """
[[match]]
method = "tools/list"
pointer = "/result/tools/*/outputSchema"
by = "ignore"
reason = "the server describes results by what each revision allows"
"""
LOST: dict[str, set[str]] = {
    "subscriptions": {
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/resources/updated",
    },
    "listening": {"subscriptions/listen"},
    "questions": {"tools/call"},
}


@pytest.mark.parametrize(("recorded", "revision"), ACROSS)
def test_a_session_is_played_in_another_revision(
    traces: Path, recorded: str, revision: str
) -> None:
    """Messages without a counterpart are listed; all else has no difference."""
    (traces / "schemas.toml").write_text(OUR_SCHEMAS)
    words = ("-r", revision, "--rules", "schemas.toml", "--json", "--timeout", "5")
    done = replay(traces, f"{recorded}.jsonl", "server.json", *words)
    lost = outcomes(done)
    assert (done.code, {each["rule"] for each in lost} - {"NO_COUNTERPART"}) == (0, set())
    expected: set[str] = set()
    if revision == STATELESS:
        expected |= LOST["subscriptions"]
    if recorded == STATELESS:
        expected |= LOST["listening"]
    if recorded >= ELICITATION > revision:
        expected |= LOST["questions"]
    assert {each["item"] for each in lost} == expected


def test_a_revision_that_the_server_lacks_is_refused(traces: Path) -> None:
    done = replay(traces, f"{REVISION}.jsonl", raw(traces, ()), "-r", STATELESS)
    assert done.code == 2
    assert f"expected a server that speaks {STATELESS}" in done.err


def raw(folder: Path, answers: Any) -> str:
    """The command of a server that writes some lines after each message."""
    script = folder / "raw.py"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in answers]
    script.write_text(
        f"import sys\nlines = {lines!r}\n"
        "for line in sys.stdin:\n"
        "    if lines and lines[0] == 'end': sys.exit(3)\n"
        "    if lines: print(lines.pop(0), flush=True)\n"
    )
    return script_command(script)


PING = {"id": 1, "method": "ping"}
PONG = {"id": 1, "result": {}}
WIRE = {"jsonrpc": "2.0"}
CALLED: list[Any] = [("sent", PING), ("received", PONG)]
BEHAVIOUR: dict[str, Any] = table("server_behaviour")
"""Recorded sessions, and the lines of a server after each message of the client."""


@pytest.mark.parametrize("case", BEHAVIOUR.values(), ids=BEHAVIOUR)
def test_each_other_behaviour_of_a_server_has_a_rule(
    tmp_path: Path, case: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    name = write_trace(tmp_path / "raw.jsonl", *case["recorded"]).name
    command = raw(tmp_path, case["lines"])
    done = replay(tmp_path, name, command, "--timeout", "1")
    assert (done.code, *done.out.replace(command, "raw").splitlines()) == snapshot


def test_a_difference_shows_both_messages_and_the_place(traces: Path, tmp_path: Path) -> None:
    name = write_trace(tmp_path / "raw.jsonl", *CALLED).name
    target = raw(tmp_path, [WIRE | PONG | {"result": {"new": "yes"}}])
    done = replay(tmp_path, name, target)
    assert done.code == 1
    assert done.out.splitlines() == [
        "error: ANSWER_DIFFERS: line 2: ping: the answer is not as it was recorded",
        "  at /result/new: a new member",
        "    recorded: nothing",
        '    now:      "yes"',
        '  recorded: {"jsonrpc": "2.0", "id": 1, "result": {}}',
        '  now: {"jsonrpc": "2.0", "id": 1, "result": {"new": "yes"}}',
        "1 session, 1 message sent, 1 compared, 1 difference",
    ]


def test_a_long_text_is_shown_from_where_it_differs(tmp_path: Path) -> None:
    old = {"p": "a" * 300, "q": "a" * 250, "r": "a" * 200}
    new = {"p": "b" * 300, "q": "a" * 200 + "b" * 50, "r": "a" * 199 + "b"}
    name = write_trace(
        tmp_path / "raw.jsonl", ("sent", PING), ("received", PONG | {"result": old})
    ).name
    lines = replay(tmp_path, name, raw(tmp_path, [WIRE | PONG | {"result": new}])).out.splitlines()
    shown = [line.partition(":")[2].strip() for line in lines if line.startswith("    now: ")]
    begin = ['"bbb', f'..."{"a" * 40}b', '"aaa']
    assert [text[: len(each)] for text, each in zip(shown, begin, strict=True)] == begin


@pytest.mark.parametrize(
    ("form", "part"),
    [
        (
            "markdown",
            f"| now |\n| ---:{' | ---' * 6} |\n| 2 | ANSWER_DIFFERS | ping |",
        ),
        ("junit", 'failures="1"'),
        ("sarif", '"startLine": 2'),
        ("github", "::error file=raw.jsonl,line=2,title=ANSWER_DIFFERS::ping:"),
    ],
)
def test_a_report_has_the_forms_of_contracts(tmp_path: Path, form: str, part: str) -> None:
    name = write_trace(tmp_path / "raw.jsonl", *CALLED).name
    target = raw(tmp_path, [WIRE | PONG | {"result": {"new": "yes"}}])
    done = replay(tmp_path, name, target, "--format", form)
    assert (done.code, part in done.out) == (1, True), done.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("absent.jsonl", "--against", "true"), "absent.jsonl"),
        (("raw.jsonl",), "expected --against TARGET"),
        (("raw.jsonl", "--against", "no-such-program"), "expected a server that starts"),
        (("raw.jsonl", "--against", "true"), "expected a server that answers"),
        (("raw.jsonl", "--against", "true", "--session", "2"), "expected --session of 1 to 1"),
    ],
)
def test_a_replay_that_cannot_be_made_exits_with_2(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    write_trace(tmp_path / "raw.jsonl", ("sent", PING))
    done = run("replay", *words, cwd=tmp_path)
    assert done.code == 2
    assert reason in done.err


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_sessions_over_http_are_replayed_over_http(tmp_path: Path, revision: str) -> None:
    with served_over_http() as url:
        record(tmp_path / "http.jsonl", revision, target=url)
        done = replay(tmp_path, "http.jsonl", url)
    assert done.code == 0, done.out
