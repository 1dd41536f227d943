"""`mcpgen check-server` as a command, with servers as processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from generator.check_server.areas import RULES
from generator.check_server.protocol import pretty
from generator.check_server.rows import NEW, OLD
from generator.check_server.tiny_server import runs_on
from generator.command_line import run, run_on_terminal, script_command
from generator.shop_sessions import PACKAGES, Serving
from generator.tables import table
from kit.limits import SetLimit
from mcpgen import schema
from mcpgen.check_server.connections import Reply
from mcpgen.check_server.rules import FILE, rules
from mcpgen.check_server.runner import CHECKS
from mcpgen.check_server.stdio_connection import ExitGrace, StdioConnection, open_stdio
from requirements.server_rules import text as rules_text

pytestmark = pytest.mark.costly

OURS = f"""
import sys
sys.path.insert(0, {PACKAGES!r})
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

server.run(http=sys.argv[1] if sys.argv[1:] else None)
"""


def tiny(kind: str, *words: str) -> str:
    """The command of the tiny server; it has the standard library alone, which starts sooner."""
    place = str(Path(__file__).parent.parent)
    program = (
        f"import sys; sys.path.append({place!r}); "
        "from generator.check_server.tiny_server import main; main()"
    )
    return shlex.join([sys.executable, "-I", "-S", "-c", program, kind, *words])


TINY = tiny("handshake", "none")
UNCHECKED: dict[str, list[str]] = table("check_server")["unchecked servers"]
"""Programs that are no servers, and the pattern of the error."""


def run_check(*words: str) -> tuple[object, dict[str, Any]]:
    """The exit code and the findings of a check."""
    done = run("check-server", *words, "--json")
    assert done.out, done.err
    return done.code, json.loads(done.out)


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
    with Serving(sys.executable, str(ours), "127.0.0.1:0") as serving:
        yield serving.url


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "revisions"),
    [
        ("http", [row.name for row in schema.revisions()]),
        ("stdio", ["2025-03-26", NEW]),  # with batches and with none, each lifecycle
    ],
)
def test_a_generated_server_breaks_no_rule_in_any_revision(
    ours: Path, address: str, transport: str, revisions: list[str]
) -> None:
    target = address if transport == "http" else script_command(ours)
    words = [word for revision in revisions for word in ("--revision", revision)]
    code, findings = run_check(target, *words, "--timeout", "30")
    assert findings["broken"] == []
    assert code == 0
    assert findings["transport"] == transport
    for revision in revisions:
        states = [each["state"] for each in findings["outcomes"] if each["revision"] == revision]
        assert states.count("passed") > 55


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "revision"),
    [
        (id, revision)
        for id, row in RULES.items()
        if row.defect and (row.defect is runs_on or id.startswith("stdio."))
        for revision in sorted({OLD, NEW} & {*rules()[id].revisions})
    ],
)
def test_a_defect_of_a_process_is_reported_as_its_rule_alone(rule: str, revision: str) -> None:
    row = RULES[rule]
    target = tiny("stateless" if revision == NEW else "handshake", rule)
    words = ["--revision", revision, "--fail-on", "warning", "--timeout"]
    words += ["3" if row.defect is runs_on else "5"]
    areas = dict.fromkeys((rules()[rule].area, "tools", "ping"))  # they ask where most defects are
    code, findings = run_check(target, *words, *(f"--rule={area}" for area in areas))
    broken = {each["rule"]: each for each in findings["broken"]}
    assert code == 1
    assert rule in broken if row.defect is pretty else [*broken] == [rule]  # no answer can be read
    assert broken[rule]["expected"]
    assert broken[rule]["came"]
    assert broken[rule]["page"].startswith("https://")


@pytest.mark.parametrize("rule", ["jsonrpc.code-parse-error", "jsonrpc.code-invalid-request"])
def test_an_error_without_id_answers_no_later_request(rule: str) -> None:
    slow = tiny("handshake", rule, "0.15")
    code, findings = run_check(slow, "--revision", OLD, "--rule", rule)
    assert (code, broken_rules(findings)) == (1, [rule])


@pytest.mark.parametrize("kind", UNCHECKED)
def test_a_server_that_cannot_be_checked_is_one_error(kind: str, tmp_path: Path) -> None:
    program, error = UNCHECKED[kind]
    (tmp_path / "server.py").write_text(program)
    command = script_command(tmp_path / "server.py")
    done = run("check-server", command, "--revision", OLD, "--timeout", "0.5")
    assert done.code == 2
    assert re.search(error, done.err), done.err
    assert "Traceback" not in done.err


PROGRAMS: dict[str, list[Any]] = table("stdio_programs")
"""Programs, the size of what is sent to them, a timeout, and the reply's reason or result."""


async def open_program(
    program: str, timeout: float, grace: ExitGrace, tasks: TaskGroup
) -> StdioConnection:
    """A connection to a program."""
    command = [sys.executable, "-ISc", f"import json, os, sys, threading\n{program}"]
    return await open_stdio(command, {}, tasks, timeout, grace)


@pytest.mark.parametrize(
    ("program", "size", "timeout", "expected"),
    [
        pytest.param(*row, id=case, marks=pytest.mark.slow if "closes" in case else ())
        for case, row in PROGRAMS.items()
    ],
)
def test_the_end_of_a_connection_has_a_reason(
    program: str, size: int, timeout: float, expected: object, set_limit: SetLimit
) -> None:
    set_limit("mcpgen.check_server.connections.FLOOD_BYTES", 50)

    async def send() -> Reply:
        async with anyio.create_task_group() as tasks:
            connection = await open_program(program, timeout, ExitGrace(0.1), tasks)
            reply = await connection.send(b"{}".ljust(size), [1] if size == 2 else [])
            await connection.close()
        return reply

    reply = anyio.run(send)
    assert (reply.reason or reply.result) == expected


def test_a_process_that_runs_on_is_killed_though_the_check_is_cancelled() -> None:
    grace = ExitGrace(0.2)

    async def close() -> int:
        async with anyio.create_task_group() as tasks:
            program = "print(os.getpid(), flush=True)\nthreading.Event().wait(20)"
            connection = await open_program(program, 20, grace, tasks)
            await connection.settle(20)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await connection.close()
            tasks.cancel_scope.cancel()
        return int(connection.received[0].data)

    with pytest.raises(ProcessLookupError):
        os.kill(anyio.run(close), 0)
    assert grace == ExitGrace(0.1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["./no-such-program"], "expected a server that starts, got"),
        (["http://127.0.0.1:1/mcp"], "expected a server that speaks one of"),
        ([], "expected a URL, a command"),
        ([TINY, "--rule", "tools.nothing"], "expected a rule or an area"),
        ([TINY, "--revision", "1999-01-01"], "1999-01-01"),
    ],
)
def test_a_wrong_command_line_is_one_error(words: list[str], error: str) -> None:
    done = run("check-server", *words)
    assert done.code == 2
    assert error in done.err


def test_a_broken_should_fails_only_if_that_is_asked_for() -> None:
    rule = "tools.name-charset"
    words = (tiny("handshake", rule), "--rule", "tools", "--revision", OLD)
    code, findings = run_check(*words)
    assert (code, broken_rules(findings)) == (0, [rule])
    assert run_check(*words, "--fail-on", "warning")[0] == 1


def test_tools_that_may_change_something_need_permission() -> None:
    unsafe = tiny("handshake", "tools.name-length")  # whose tool does not say that it only reads
    words = (unsafe, "--rule", "tools.output-conforms", "--revision", OLD)
    [skipped] = run_check(*words)[1]["outcomes"]
    assert "--call-tools calls them all" in skipped["why"]
    [called] = run_check(*words, "--call-tools")[1]["outcomes"]
    assert "--call-tools" not in str(called["why"])


def test_the_findings_are_text_or_a_page() -> None:
    words = (tiny("handshake", "ping.answered"), "--rule", "ping", "--revision", OLD)
    assert 'got:      result {"pong": true}' in run("check-server", *words).out
    done = run("check-server", *words, "--format", "markdown")
    assert "| error | [ping.answered](https://modelcontextprotocol.io/specification/" in done.out


def test_the_current_rule_is_shown_on_a_terminal_or_on_request(root: Path) -> None:
    words = ("check-server", TINY, "--revision", OLD, "--rule", "ping")
    piped, verbose = run(*words), run(*words, "--verbose")
    assert f"checking {OLD} over stdio ...\n" in piped.err
    assert "ping." not in piped.err
    step = re.search(rf"^{OLD}: 1/\d+ ping\.\S+$", verbose.err, re.MULTILINE)
    assert step is not None, verbose.err
    assert step[0] not in verbose.out
    assert f"\r\x1b[K{step[0]}" in run_on_terminal(root, *words)
    assert run(*words, "--quiet").err == ""


def test_the_rules_can_be_listed() -> None:
    done = run("check-server", "--list-rules", "--json")
    assert (done.code, len(json.loads(done.out)), len(CHECKS) > 160) == (0, len(CHECKS), True)
    words = ("--list-rules", "--rule", "ping", "--rule", "tools.name-length")
    for rule in ("ping.answered", "ping.removed", "tools.name-length"):
        assert rule in run("check-server", *words).out
    assert "tools.name-charset" not in run("check-server", *words).out


def test_the_rules_are_those_of_the_ledger() -> None:
    hint = "run: PYTHONPATH=tests:generator python -m requirements.server_rules"
    assert FILE.read_text("utf-8") == rules_text(), hint
