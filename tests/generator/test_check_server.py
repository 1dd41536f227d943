"""`mcpgen check-server`: our servers break nothing; each defect of a raw server is its own rule."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mcpgen_runtime
from generator import checked_servers
from generator import checked_stateless_http_servers as stateless_http
from generator import checked_stateless_servers as stateless
from generator.checked_http_servers import HTTP_DEFECTS, run_server
from generator.checked_servers import BEFORE, DEFECTS, REVISIONS
from generator.command_line import run
from generator.test_cli import run_on_terminal
from mcpgen import schema
from mcpgen.check_server.call_checks import arguments_for
from mcpgen.check_server.rules import FILE, rules
from mcpgen.check_server.runner import CHECKS
from mcpgen.check_server.stdio_connection import ExitGrace
from requirements.server_rules import text as rules_text

pytestmark = pytest.mark.costly


def command_of(module: ModuleType, first: str = "", then: str = "") -> str:
    """A command that serves; it has the standard library alone, which starts sooner."""
    place, name = str(Path(__file__).parent.parent), module.__name__
    program = f"{first}import sys; sys.path.append({place!r}); import {name} as s; {then}s.main()"
    return shlex.join([sys.executable, "-I", "-S", "-c", program])


RAW, STATELESS = command_of(checked_servers), command_of(stateless)
ENDLESS = frozenset({"lifecycle.shutdown-by-transport", "stdio.shutdown-server-on-eof"})
"""Defects whose check waits until its deadline."""
PACKAGE = str(Path(mcpgen_runtime.__file__).parent.parent)
STDIO_DEFECTS = sorted(
    {*DEFECTS, *BEFORE, "stdio.stdout-only-messages", "lifecycle.shutdown-by-transport"}
    - {"unsafe"}
)


def outside(rules: Iterable[str]) -> list[str]:
    """Rules whose defect a process or a socket has too: each eighth, and those of these.

    `test_check_server_defects.py` tries all others in memory.
    """
    own = (*ENDLESS, "stdio.", "http.final-response-ends-stream")
    return [rule for rule in rules if rule.startswith(own) or zlib.crc32(rule.encode()) % 8 == 0]


UNTRIED = (
    "capabilities.server-set-2024",
    "content.no-audio-2024",
    "content.no-resource-link-before-2025-06",
    "discover.implemented",
    "http.independent-process",
    "http.post-202-batch",
    "http.stream-end-after-response",
    "http.utf8",
    "http.version-header-missing-default",
    "jsonrpc.batch-receive",
    "jsonrpc.batch-response",
    "lifecycle.implementation-basic",
    "logging.declare-capability-discover",
    "pagination.results-after-cursor",
    "stdio.newline-delimited",
    "stdio.utf8",
    "tools.invalid-arguments-protocol-error",
    "versioning.no-modern-in-initialize",
)
"""Rules whose checks no server of these tests fails: most need a revision, or a reply that the tiny
servers do not have."""
OURS = f"""
import sys
sys.path.insert(0, {PACKAGE!r})
from dataclasses import dataclass
from mcpgen_runtime import Server, ToolAnnotations

server = Server("weather", page_size=2, subscribe=True)

@dataclass
class Report:
    degrees: float

for name in ("rain", "sun", "wind"):
    @server.tool(name, annotations=ToolAnnotations(read_only_hint=True))
    def measure(city: str) -> Report:
        return Report(1.5)

@server.resource("weather://map", mime_type="image/png")
def chart() -> bytes:
    return bytes([255, 0])

@server.resource("weather://{{city}}")
def weather(city: str) -> str:
    return city

@server.prompt()
def report(city: str) -> str:
    return city

if len(sys.argv) > 1:
    import socket, uvicorn
    listening = socket.create_server(("127.0.0.1", 0))
    print("http://127.0.0.1:%d/mcp" % listening.getsockname()[1], flush=True)
    settings = uvicorn.Config(server.asgi(), log_level="critical")
    uvicorn.Server(settings).run([listening])
else:
    server.run()
"""


def run_check(*words: str) -> tuple[object, dict[str, Any]]:
    """The exit code and the findings of a check."""
    done = run("check-server", *words, "--json")
    assert done.out, done.err
    return done.code, json.loads(done.out)


def deadline(rule: str) -> tuple[str, ...]:
    """The options for a check that would wait long."""
    return ("--timeout", "3") if rule in ENDLESS else ()


IN_PASSING = {
    "jsonrpc.code-32042-not-emitted",
    "jsonrpc.server-no-requests",
    "logging.declare-capability-initialize",
    "logging.per-request-level",
}
"""Rules whose defect shows in what the checks of other areas make the server send."""


def rule_options(rule: str, every: bool) -> tuple[str, ...]:
    """The options for the rules that a defect is judged by: each eighth, or each by `every`, by all
    rules, which take ten processes; others by those of its area.
    """
    by_all = every or not rule or rule in IN_PASSING or zlib.crc32(rule.encode()) % 8 == 0
    return () if by_all else ("--rule", rules()[rule].area)


def broken_rules(findings: dict[str, Any]) -> list[str]:
    """The rules that are broken."""
    return [each["rule"] for each in findings["broken"]]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server on the generated package, as a script."""
    path = tmp_path_factory.mktemp("ours") / "server.py"
    path.write_text(OURS)
    return path


@pytest.fixture(scope="module")
def address(ours: Path) -> Iterator[str]:
    """The URL of a server on the generated package over HTTP."""
    words = [sys.executable, str(ours), "http"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "revisions"),
    [
        ("http", [row.name for row in schema.revisions()]),
        ("stdio", ["2025-03-26", stateless.REVISION]),  # with batches and with none, each lifecycle
    ],
)
def test_a_generated_server_breaks_no_rule_in_any_revision(
    ours: Path, address: str, transport: str, revisions: list[str]
) -> None:
    target = address if transport == "http" else shlex.join([sys.executable, str(ours)])
    words = [word for revision in revisions for word in ("--revision", revision)]
    code, findings = run_check(target, *words, "--timeout", "30")
    assert findings["broken"] == []
    assert code == 0
    assert findings["transport"] == transport
    for revision in revisions:
        states = [each["state"] for each in findings["outcomes"] if each["revision"] == revision]
        assert states.count("passed") > 55


def test_the_raw_server_breaks_no_rule_without_a_defect() -> None:
    code, findings = run_check(f"{RAW} none", "--fail-on", "warning")
    assert (code, broken_rules(findings)) == (0, [])
    assert findings["revisions"] == list(REVISIONS)


NOT_SHOWN = {
    f"no result has a block of type {kind}": 1
    for kind in ("image", "audio", "resource_link", "resource")
}


@pytest.mark.parametrize(
    ("module", "revision", "lacking", "reasons"),
    [
        (
            checked_servers,
            REVISIONS[-1],
            "s.CAPABILITIES = {'tools': {}}; del s.TOOLS[0]['outputSchema']; ",
            {
                "the server speaks no revision without initialize": 1,
                "the server declares no resources": 9,
                "the server declares no prompts": 5,
                "the server declares no completions": 4,
                "the server declares no logging": 2,
                "the server declares no resources.subscribe": 2,
                "no tool has an outputSchema": 1,
                "no tool that was called has an outputSchema": 1,
                "every list has one page": 1,
                **NOT_SHOWN,
            },
        ),
        (
            stateless,
            stateless.REVISION,
            "s.CAPABILITIES.clear(); ",
            {
                "the server declares neither tools nor prompts nor resources": 1,
                "the server declares no feature": 1,
                "the server declares no tools": 18,
                "the server declares no resources": 9,
                "the server declares no prompts": 5,
                "the server declares no completions": 4,
                "the level is said by each request": 1,
                "the server declares no logging": 1,
                "the server declares no lists": 3,
            },
        ),
    ],
    ids=["session", "stateless"],
)
def test_rules_of_what_a_server_lacks_do_not_apply(
    module: ModuleType, revision: str, lacking: str, reasons: dict[str, int]
) -> None:
    command = command_of(module, then=lacking)
    _, findings = run_check(f"{command} none", "--revision", revision)
    assert Counter(each["why"] for each in findings["outcomes"] if each["why"]) == reasons
    assert broken_rules(findings) == ["jsonrpc.code-method-ungated", "completion.unsupported-error"]


@pytest.mark.slow
@pytest.mark.parametrize("rule", outside(STDIO_DEFECTS))
def test_a_defect_is_reported_as_its_rule_alone(rule: str, every: bool) -> None:
    revision = max({*REVISIONS} & {*rules()[rule].revisions})
    words = ("--revision", revision, "--fail-on", "warning", *deadline(rule))
    code, findings = run_check(f"{RAW} {rule}", *words, *rule_options(rule, every))
    assert (code, broken_rules(findings)) == (1, [rule])
    [finding] = findings["broken"]
    assert finding["expected"]
    assert finding["came"]
    assert finding["page"].startswith("https://")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    ["", *outside(["stdio.shutdown-server-on-eof", *stateless.DEFECTS, *stateless.BEFORE])],
)
def test_a_defect_without_a_handshake_breaks_its_rule_alone(rule: str, every: bool) -> None:
    words = ("--revision", stateless.REVISION, *deadline(rule), *rule_options(rule, every))
    _, findings = run_check(f"{STATELESS} {rule or 'none'}", *words)
    assert broken_rules(findings) == ([rule] if rule else [])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["", *outside(stateless_http.HTTP_DEFECTS)])
def test_a_defect_over_stateless_http_breaks_its_rule_alone(rule: str, every: bool) -> None:
    words = ("--revision", stateless.REVISION, "--timeout", "5", *rule_options(rule, every))
    with stateless_http.run_server(rule) as address:
        _, findings = run_check(address, *words)
    assert broken_rules(findings) == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ({"const": "a"}, "a"),
        ({"type": "string", "default": "b"}, "b"),
        ({"enum": [3, 4]}, 3),
        ({"type": "thing"}, None),
        ({"type": ["string", "null"]}, None),
        (True, None),
    ],
)
def test_arguments_are_made_up_for_plain_members_alone(member: Any, value: object) -> None:
    schema = {"type": "object", "properties": {"m": member}, "required": ["m"]}
    assert arguments_for(schema) == (None if value is None else {"m": value})


@pytest.mark.parametrize(
    ("members", "built"),
    [
        (5, None),
        ({}, {}),
        ({"properties": 5}, None),
        ({"required": 5}, None),
        ({"required": [5]}, None),
        ({"required": ["a"]}, None),
        ({"required": ["a"], "properties": {"a": {"enum": []}}}, None),
        ({"required": ["a"], "properties": {"a": {"type": "string", "maxLength": 5}}}, None),
        ({"properties": {"a": {"type": "objekt"}}}, None),
        ({"pattern": "("}, None),
        ({"$ref": "#"}, None),
        ({"$ref": "#/no"}, None),
        ({"required": ["a"], "properties": {"a": {"default": 2, "enum": [1, 2]}}}, {"a": 2}),
        (
            {
                "required": list("abcdefg"),
                "properties": {
                    name: {"type": kind}
                    for name, kind in zip(
                        "abcdefg",
                        ("string", "integer", "number", "boolean", "array", "object", "null"),
                        strict=True,
                    )
                },
            },
            {"a": "mcpgen", "b": 1, "c": 1, "d": False, "e": [], "f": {}, "g": None},
        ),
    ],
)
def test_arguments_fit_the_schema_or_there_are_none(members: Any, built: object) -> None:
    assert arguments_for(members) == built


@pytest.mark.parametrize(("rule", "number"), [("ping.answered", 2), ("versioning.server-echo", 6)])
def test_other_revisions_are_tried_for_rules_that_compare_them(
    rule: str, number: int, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    command = command_of(checked_servers, f"print(file=open({str(starts)!r}, 'a'));")
    code, findings = run_check(f"{command} none", "--rule", rule, "--revision", REVISIONS[-1])
    assert (code, broken_rules(findings)) == (0, [])
    assert len(starts.read_text()) == number


def test_a_rule_is_checked_over_http_by_itself() -> None:
    rule = "jsonrpc.request-id-type"
    with stateless_http.run_server("") as address:
        words = ("--revision", stateless.REVISION, "--rule", rule, "--timeout", "5")
        code, findings = run_check(address, *words)
    assert (code, broken_rules(findings)) == (0, [])
    assert (findings["transport"], findings["name"]) == ("http", "raw 1")


def test_a_rule_that_does_not_apply_says_why() -> None:
    words = ("--revision", stateless.REVISION, "--rule", "logging.levels", "--timeout", "5")
    with stateless_http.run_server("") as address:
        _, findings = run_check(address, *words)
    [outcome] = findings["outcomes"]
    assert outcome["why"] == "the level is said by each request"


def test_a_server_that_was_killed_once_gets_less_time_to_end() -> None:
    grace = ExitGrace()
    grace.learn(ended=True)
    assert grace.seconds == 1
    for _ in range(2):
        grace.learn(ended=False)
        assert grace.seconds == 0.1


@pytest.mark.parametrize("rule", ["jsonrpc.code-parse-error", "jsonrpc.code-invalid-request"])
def test_an_error_without_id_answers_no_later_request(rule: str) -> None:
    words = ("--revision", REVISIONS[-1], "--rule", rule)
    code, findings = run_check(f"{RAW} {rule} 0.15", *words)
    assert (code, broken_rules(findings)) == (1, [rule])


def test_messages_over_several_lines_are_read_though_no_answer() -> None:
    rule = "stdio.no-embedded-newline"
    words = ("--revision", REVISIONS[-1], "--rule", rule, "--rule", "jsonrpc", "--timeout", "0.5")
    code, findings = run_check(f"{RAW} {rule}", *words)
    assert code == 1
    assert rule in broken_rules(findings)
    assert "answers no longer" in findings["given_up"][REVISIONS[-1]]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["", *outside(HTTP_DEFECTS)])
def test_a_defect_over_http_is_reported_as_its_rule_alone(rule: str, every: bool) -> None:
    words = ("--revision", REVISIONS[-1], "--timeout", "5", *rule_options(rule, every))
    with run_server(rule) as address:
        _, findings = run_check(address, *words)
    assert broken_rules(findings) == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit('no such city')", "exit code 1; last line on stderr: no such city"),
        ("print('hello')", "ended with exit code 0"),
        ("import sys; sys.stdin.read()", "no answer in 0.5 s"),
        ("while True: print('x' * 100_000)", "wrote more than|no answer in 0.5 s"),
        ("print(('[' * 100_000 + chr(10)) * 3, flush=True); input()", "exit code|no answer"),
    ],
    ids=["ends", "no protocol", "hangs", "floods", "nonsense"],
)
def test_a_server_that_cannot_be_checked_is_one_error(
    program: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(program)
    command = shlex.join([sys.executable, str(tmp_path / "server.py")])
    done = run("check-server", command, "--revision", REVISIONS[-1], "--timeout", "0.5")
    assert done.code == 2
    assert re.search(error, done.err), done.err
    assert "Traceback" not in done.err


def test_a_server_that_answers_anything_is_not_stateless(
    tmp_path: Path,
) -> None:
    (tmp_path / "server.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    id = json.loads(line).get('id')\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': id, 'result': {}}), flush=True)\n"
    )
    command = shlex.join([sys.executable, str(tmp_path / "server.py")])
    done = run("check-server", command, "--revision", stateless.REVISION)
    assert done.code == 2
    assert f"a result of server/discover without {stateless.REVISION}" in done.err


@pytest.mark.parametrize("target", ["./no-such-program", "http://127.0.0.1:1/mcp"])
def test_a_server_that_is_not_there_is_one_error(target: str) -> None:
    done = run("check-server", target)
    assert done.code == 2
    assert "expected a server that" in done.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "expected a URL, a command"),
        ([f"{RAW} none", "--rule", "tools.nothing"], "expected a rule or an area"),
        ([f"{RAW} none", "--revision", "1999-01-01"], "1999-01-01"),
    ],
)
def test_a_wrong_command_line_is_one_error(words: list[str], error: str) -> None:
    done = run("check-server", *words)
    assert done.code == 2
    assert error in done.err


def test_a_broken_should_fails_only_if_that_is_asked_for() -> None:
    words = (f"{RAW} tools.name-charset", "--rule", "tools", "--revision", REVISIONS[-1])
    assert run_check(*words)[0] == 0
    assert run_check(*words, "--fail-on", "warning")[0] == 1


def test_tools_that_may_change_something_need_permission() -> None:
    words = (f"{RAW} unsafe", "--rule", "tools.output-conforms", "--revision", REVISIONS[-1])
    [skipped] = run_check(*words)[1]["outcomes"]
    assert skipped["state"] == "not applicable"
    [called] = run_check(*words, "--call-tools")[1]["outcomes"]
    assert called["state"] == "passed"


def test_the_text_and_the_page_name_rule_reason_and_page() -> None:
    words = (f"{RAW} ping.answered", "--rule", "ping", "--revision", REVISIONS[-1])
    done = run("check-server", *words)
    assert "error: ping.answered: MUST in 2025-11-25" in done.out
    assert 'got:      result {"pong": true}' in done.out
    page = "https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping"
    assert page in done.out
    done = run("check-server", *words, "--format", "markdown")
    assert f"| error | [ping.answered]({page}" in done.out


def test_the_current_rule_is_shown_on_a_terminal_or_on_request(root: Path) -> None:
    revision = REVISIONS[-1]
    words = ("check-server", f"{RAW} none", "--revision", revision, "--rule", "ping")
    piped, verbose = run(*words), run(*words, "--verbose")
    assert f"checking {revision} over stdio ...\n" in piped.err
    assert "ping." not in piped.err
    step = re.search(rf"^{revision}: 1/\d+ ping\.\S+$", verbose.err, re.MULTILINE)
    assert step is not None, verbose.err
    assert step[0] not in verbose.out
    assert f"\r\x1b[K{step[0]}" in run_on_terminal(root, *words)
    assert run(*words, "--quiet").err == ""


def test_the_rules_can_be_listed() -> None:
    done = run("check-server", "--list-rules", "--json")
    assert len(json.loads(done.out)) == len(CHECKS) > 160
    assert "ping.answered" in run("check-server", "--list-rules", "--rule", "ping").out


def test_the_rules_are_those_of_the_ledger() -> None:
    hint = "run: PYTHONPATH=tests:generator python -m requirements.server_rules"
    assert FILE.read_text("utf-8") == rules_text(), hint


def test_the_rules_that_no_server_here_breaks_are_known() -> None:
    examples = {
        *STDIO_DEFECTS,
        *HTTP_DEFECTS,
        *stateless.DEFECTS,
        *stateless.BEFORE,
        *stateless_http.HTTP_DEFECTS,
        *("stdio.no-embedded-newline", "stdio.shutdown-server-on-eof"),
    }
    assert sorted({*rules()} - examples) == [*UNTRIED]


def test_each_rule_has_one_check_and_binds_servers() -> None:
    assert sorted(check.id for check in CHECKS) == sorted(rules())
    assert {rule.level for rule in rules().values()} <= {
        "MUST",
        "MUST NOT",
        "SHOULD",
        "SHOULD NOT",
    }
