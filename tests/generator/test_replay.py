"""`mcpgen replay`: traces of sessions played to the same server, and to ones that differ."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
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
from mcpgen.replay import report
from mcpgen.replay.matching import ABSENT, Difference
from mcpgen.replay.outcomes import RULES, Outcome, Run

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


NEXT = [*pairwise(REVISIONS), (REVISIONS[0], REVISIONS[-1])]
ACROSS = [pair for older, newer in NEXT for pair in ((older, newer), (newer, older))]
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
    words = ("-r", STATELESS, "--timeout", "1")
    done = replay(traces, f"{REVISION}.jsonl", raw(traces, ()), *words)
    assert done.code == 2
    assert f"expected a server that speaks {STATELESS}" in done.err


def raw(folder: Path, answers: Any) -> str:
    """The command of a server that writes a line after each message; `echo` logs the message."""
    script = folder / "raw.py"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in answers]
    script.write_text(
        f"import json, sys\nlines = {lines!r}\n"
        "for line in sys.stdin:\n"
        "    if lines and lines[0] == 'end': sys.exit(3)\n"
        "    if lines and lines[0] == 'echo':\n"
        "        log = {'method': 'notifications/message', 'params': {'data': json.loads(line)}}\n"
        "        lines[0] = json.dumps({'jsonrpc': '2.0', **log})\n"
        "        print(lines.pop(0), flush=True)\n"
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


LONG = "a" * 161
VALUES: list[tuple[Any, Any]] = [
    *((old, old[:-1] + "b") for old in ("a" * 200, "a" * 201)),
    *((old, "b" + old) for old in ("a" * 199, "a" * 200)),
    *((f"{LONG}{'c' * 40}", LONG), (f"{'a' * 41}b{LONG}", f"{'a' * 41}c{LONG}")),
    *((ABSENT, {"a|b": [None, "c" * 300]}), (1, ABSENT), ("1", 1), ("\u00e9", "b")),
]


def test_outcomes_are_text_tables_and_findings(snapshot: SnapshotAssertion) -> None:
    differences = (
        Difference(("result", "p", at), old, new, f"the {at}")
        for at, (old, new) in enumerate(VALUES)
    )
    answer = partial(Outcome, RULES["ANSWER_DIFFERS"], 2, "ping")
    messages = [{"n": "a" * length} for length in (591, 592)]
    outcomes = (
        *(answer(each.text, each, PING, PONG) for each in differences),
        *(answer("t" * 700, expected=PING, actual=message) for message in messages),
        Outcome(RULES["NOT_SENT"], 3, "ping|", "s", Difference((), 1, 2, "s"), expected=PING),
        Outcome(RULES["MESSAGE_INVALID"], 3, "session", "5", actual=0),
    )
    runs = [Run(1, "2025-11-25", 3, 2, outcomes), Run(2, "", 1, 0, ())]
    for some in (runs, runs[:1], runs[1:], [Run(3, "", 1, 1, outcomes[-2:-1])]):
        texts = report.text(some), report.summary(some), report.markdown(some)
        assert [text.splitlines() for text in texts] == snapshot
    assert report.records(runs) == snapshot
    assert report.report_of(runs, "trace.jsonl") == snapshot


@pytest.mark.parametrize(
    ("form", "part"),
    [
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


def opening(revision: str) -> list[tuple[str, dict[str, Any]]]:
    """The messages that open a session, and a ping."""
    client = {"capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    described = {"capabilities": {}, "serverInfo": {"name": "s"}}
    named = {"protocolVersion": revision}
    return [
        ("sent", {"id": 0, "method": "initialize", "params": named | client}),
        ("received", {"id": 0, "result": named | described}),
        ("sent", {"method": "notifications/initialized"}),
        *CALLED,
    ]


OF_TWO_REVISIONS = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result, named = {}, ""
    if message["method"] == "initialize":
        named = message["params"]["protocolVersion"]
        result = {"protocolVersion": named, "capabilities": {}, "serverInfo": {"name": "s"}}
    if message["method"] == "server/discover" or named in ("2024-11-05", "2025-06-18"):
        print(json.dumps({"jsonrpc": "2.0", "id": 9, "result": result}), "\\n5\\npong", flush=True)
        error = {"error": {"code": -32602, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **error}), flush=True)
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_sessions_are_chosen_and_played_in_all_revisions_of_a_server(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "server.py").write_text(OF_TWO_REVISIONS)
    command = script_command(tmp_path / "server.py")
    second = [
        ("received", {"id": 1, "result": {"a": 1}}) if row == CALLED[1] else row
        for row in opening("2025-11-25")
    ]
    write_trace(tmp_path / "two.jsonl", *opening("2025-11-25"), *second)
    shown = [
        replay(tmp_path, "two.jsonl", command, *words).out
        for words in ((), ("--session", "2"), ("-r", "all"), ("-r", "all", "--format", "markdown"))
    ]
    assert [text.replace(command, "server") for text in shown] == snapshot


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("absent.jsonl", "--against", "true"), "absent.jsonl"),
        (("raw.jsonl",), "expected --against TARGET"),
        (("raw.jsonl", "--against", "no-such-program"), "expected a server that starts"),
        (("raw.jsonl", "--against", "true"), "expected a server that answers"),
        (("raw.jsonl", "--against", "true", "--session", "2"), "expected --session of 1 to 1"),
        (("raw.jsonl", "--against", "true", "-r", "all"), "a session that names its revision"),
        (("opened.jsonl", "--against", "true", "-r", "2020-01-01"), "expected --revision of 2024"),
    ],
)
def test_a_replay_that_cannot_be_made_exits_with_2(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    write_trace(tmp_path / "raw.jsonl", ("sent", PING))
    write_trace(tmp_path / "opened.jsonl", *opening("2025-11-25"))
    done = run("replay", *words, cwd=tmp_path)
    assert done.code == 2
    assert reason in done.err


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_sessions_over_http_are_replayed_over_http(tmp_path: Path, revision: str) -> None:
    with served_over_http() as url:
        record(tmp_path / "http.jsonl", revision, target=url)
        done = replay(tmp_path, "http.jsonl", url)
    assert done.code == 0, done.out
