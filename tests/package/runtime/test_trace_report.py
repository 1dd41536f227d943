"""`python -m <package> trace FILE`, on files that a session has recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_protocol import Server, ToolError
from mcp_protocol.__main__ import main
from mcp_protocol.testing import connected


@pytest.fixture
async def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trace of a session with a call that succeeds and one that fails."""
    path = tmp_path / "trace.jsonl"
    monkeypatch.setenv("MCP_TRACE", str(path))
    server = Server("traced")

    @server.tool()
    def greet(name: str) -> str:
        if name == "nobody":
            raise ToolError("\x1b[2J gone")
        return f"hello {name}"

    async with connected(server, revision="2025-06-18") as pair:
        await pair.client.call_tool("greet", {"name": "Ada"})
        await pair.client.call_tool("greet", {"name": "nobody"})
    return path


def report_lines(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """The lines that the command prints."""
    with pytest.raises(SystemExit) as ended:
        main(["trace", *words])
    assert ended.value.code == code
    return capsys.readouterr().out.splitlines()


async def test_each_message_is_a_line_and_answers_name_their_request(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = report_lines(capsys, str(trace), "--channel", "client", "--method", "tools/call")
    assert [" -> tools/call #" in line for line in lines[:4]] == [True, False, True, False]
    assert " <- result of tools/call #" in lines[1]
    assert " ms)" in lines[1]
    assert "hello Ada" in lines[1]
    assert " <- ! result of tools/call #" in lines[3]
    assert lines[4].endswith("0 requests without answer")
    assert all(line.isprintable() for line in lines)


async def test_programs_get_one_object_for_each_message(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[Any] = [json.loads(line) for line in report_lines(capsys, str(trace), "--json")]
    answers = [row for row in rows if row["kind"] == "result" and row["method"] == "tools/call"]
    assert len(answers) == 4  # as both ends have seen them
    assert all(row["ms"] >= 0 for row in answers)


async def test_errors_and_ids_are_filtered(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *errors, _ = report_lines(capsys, str(trace), "--errors", "--direction", "sent", "--full")
    assert "! result of tools/call" in errors[0]
    assert json.loads("\n".join(errors[1:]))["result"]["isError"] is True
    lines = report_lines(capsys, str(trace), "--id", "1", "--channel", "client", "--json")
    assert [json.loads(line)["direction"] for line in lines] == ["sent", "received"]


def test_invalid_records_are_named_and_the_others_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = '{"time": "2026-01-01T00:00:00+00:00", "direction": "received", '
    batch = '"message": [{"method": "ping", "id": 1}, {"method": "ping", "id": 2}]}'
    rows = ["nothing", head + '"error": "too long"}', head + '"message": 7}', head + batch]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(rows))
    with pytest.raises(SystemExit):
        main(["trace", str(path)])
    printed = capsys.readouterr()
    assert printed.err.startswith("line 1: no record of a trace")
    *lines, last = printed.out.splitlines()
    assert [line.split(" <- ")[1] for line in lines] == [
        "! lost  too long",
        "! invalid  7",
        "ping #1",
        "ping #2",
    ]
    assert last == "4 messages, 2 errors, 2 requests without answer"


def test_a_second_answer_to_a_request_has_no_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = '{"time": "2026-01-01T00:00:00+00:00", "pid": 1, "channel": "client", "direction": '
    asked = head + '"sent", "message": {"method": "ping", "id": 1}}'
    answered = head + '"received", "message": {"result": {}, "id": 1}}'
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{asked}\n{answered}\n{answered}")
    *lines, last = report_lines(capsys, str(path))
    assert ["ping" in line for line in lines] == [True, True, False]
    assert last.endswith("0 requests without answer")


def test_a_file_that_is_not_there_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_lines(capsys, str(tmp_path / "none"), code=1) == []
