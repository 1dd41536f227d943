"""`python -m <package> trace FILE`, on files that a session has recorded."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kit.terminal import Terminal
from mcpgen_runtime.__main__ import main

pytestmark = pytest.mark.processes

START = "2026-01-01T10:00:00"


def row(time: str, direction: str, message: Any, **members: Any) -> str:
    """A line of a trace."""
    head = {"time": f"{START}{time}", "direction": direction, "channel": "c", "pid": 1}
    return json.dumps({**head, **({} if message is None else {"message": message}), **members})


def request(id: Any, method: str = "ping", **params: Any) -> dict[str, Any]:
    return {"id": id, "method": method, **({"params": params} if params else {})}


LINES = [
    row(".5+00:00", "sent", request(1, "tools/call", name="add")),
    row(".25+00:00", "received", request(1)),
    row(".75+00:00", "sent", {"id": 1, "result": {}}),
    row(".750001+00:00", "received", {"id": 1, "result": {"isError": True}}),
    row("x", "sent", request("1")),
    row("+00:00", "received", {"id": "1", "error": {"code": 1}}),
    row("", "sent", {"method": "progress", "params": "a" * 130}),
    row("", "sent", {"id": 2, "result": {"isError": 1}}, channel="d"),
    row("", "received", None, error="lost it", pid=2),
    row("", "received", {"id": 3}),
    row("", "sent", request(4)),
    row("", "sent", request(4, "pong")),
    row("", "received", {"id": 4, "result": 7}),
    row("", "received", {"id": 4, "result": [{}]}, pid=2),
    row("", "received", {"id": 4, "result": "b"}, channel="d"),
]
SHOWN = [
    '10:00:00.5 c -> tools/call #1  {"name": "add"}',
    "10:00:00.25 c <- ping #1",
    "10:00:00.75 c -> result of ping #1 (500 ms)  {}",
    '10:00:00.750001 c <- ! result of tools/call #1 (250.001 ms)  {"isError": true}',
    "10:00:00x c -> ping #1",
    '10:00:00 c <- ! error of ping #1  {"code": 1}',
    f"10:00:00 c -> progress  {'a' * 120}... (130 characters)",
    '10:00:00 d -> result #2  {"isError": 1}',
    "10:00:00 c <- ! lost  lost it",
    "10:00:00 c <- ! invalid #3",
    "10:00:00 c -> ping #4",
    "10:00:00 c -> pong #4",
    "10:00:00 c <- result of ping #4 (0 ms)  7",
    "10:00:00 c <- result #4  [{}]",
    "10:00:00 d <- result #4  b",
]


Report: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """A function that gives the lines which the command prints for the rows of a file."""

    def lines(*words: str, rows: Sequence[str] = LINES, error: str = "") -> list[str]:
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(rows))
        with pytest.raises(SystemExit) as ended:
            main(["trace", str(path), *words])
        assert ended.value.code == 0
        printed = capsys.readouterr()
        assert printed.err.startswith(error)
        return printed.out.splitlines()

    return lines


def test_a_line_has_time_channel_method_id_and_duration(report: Report) -> None:
    *lines, last = report()
    assert lines == SHOWN
    assert last == "15 messages, 4 errors, 1 requests without answer"


def test_a_terminal_shows_directions_and_failures_in_colors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(LINES[4:6]))
    with redirect_stdout(Terminal()) as terminal, pytest.raises(SystemExit):
        main(["trace", str(file)])
    shown = terminal.getvalue().replace("\x1b[0m", "]").replace("\x1b[", "[")
    assert shown.splitlines()[:2] == [
        "[2m10:00:00x c ][32m->][1m ping] #1",
        '[2m10:00:00 c ][36m<-][31m !][31m error of ping] #1[2m  {"code": 1}]',
    ]


def test_a_message_is_shown_as_a_whole_on_request(report: Report) -> None:
    lines = report("--id", "3", "--full")
    assert lines[:4] == ["10:00:00 c <- ! invalid #3", "{", '  "id": 3', "}"]


def test_invalid_records_are_named_and_the_others_are_shown(report: Report) -> None:
    rows = ["nothing", row("", "received", 7), row("", "received", [request(1), request(2)])]
    *lines, last = report(rows=rows, error="line 1: no record of a trace")
    assert [line.split(" <- ")[1] for line in lines] == ["! invalid  7", "ping #1", "ping #2"]
    assert last == "3 messages, 1 errors, 2 requests without answer"


def test_standard_input_is_read_and_a_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(LINES[1] + "\n"))
    with pytest.raises(SystemExit):
        main(["trace", "-"])
    assert capsys.readouterr().out.splitlines()[0] == SHOWN[1]
    with pytest.raises(SystemExit) as ended:
        main(["trace", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: Is a directory\n"


CALL, ANSWER = request(1), {"id": 1, "result": {}}


@pytest.mark.parametrize(
    ("rows", "errors"),
    [
        ([row("", "received", CALL), row("", "sent", ANSWER)], 0),
        ([row("", "received", CALL)], 0),  # a client may leave before the response
        ([row("", "received", CALL), row("", "sent", request("a"))], 1),
        ([row("", "sent", CALL), row("", "received", ANSWER)], 1),  # a server may not
        ([], 0),
    ],
)
def test_the_end_that_a_client_makes_is_no_error(
    rows: list[str], errors: int, report: Report
) -> None:
    end = row("", "received", None, error="it was closed", end=True)
    *_, shown, last = report(rows=[*rows, end])
    assert shown == f"10:00:00 c <- {'! ' * errors}end  it was closed"
    assert f"{len(rows) + 1} messages, {errors} errors" in last


def test_a_second_answer_to_a_request_has_no_method(report: Report) -> None:
    answered = row("", "received", ANSWER)
    *lines, last = report(rows=[row("", "sent", CALL), answered, answered])
    assert ["ping" in line for line in lines] == [True, True, False]
    assert last.endswith("0 requests without answer")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--method", "p*g"), [1, 2, 4, 5, 10, 11, 12]),
        (("--method", "ping", "--direction", "received"), [1, 5, 12]),
        (("--id", "1"), [0, 1, 2, 3, 4, 5]),
        (("--id", "None"), [6, 8]),
        (("--channel", "d"), [7, 14]),
        (("--errors",), [3, 5, 8, 9]),
        (("--errors", "--method", "tools/call"), [3]),
    ],
)
def test_several_conditions_must_all_hold(
    words: tuple[str, ...], shown: list[int], report: Report
) -> None:
    *lines, last = report(*words)
    assert lines == [line for number, line in enumerate(SHOWN) if number in shown]
    assert last.startswith("15 messages, 4 errors")
    assert len(report(*words, "--json")) == len(shown)


def test_a_row_for_programs_leaves_out_what_is_absent(report: Report) -> None:
    rows = [json.loads(line) for line in report("--json")]
    head = {"time": START, "direction": "received", "channel": "c", "pid": 1}
    assert rows[12] == {
        **head,
        "kind": "result",
        "method": "ping",
        "id": 4,
        "ms": 0.0,
        "message": {"id": 4, "result": 7},
    }
    assert rows[8] == {**head, "pid": 2, "kind": "lost", "failed": True, "message": "lost it"}
    assert "ms" not in rows[5]
