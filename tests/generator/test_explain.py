"""`mcpgen explain`: what a message is, who accepts it, and the nearest form that is accepted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import run
from mcpgen import schema
from mcpgen.explain.revision import revision as explain_revision

REVISIONS = [row.name for row in schema.revisions()]
CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "forecast", "arguments": {"city": "Oslo"}},
}
META = {
    "io.modelcontextprotocol/protocolVersion": REVISIONS[-1],
    "io.modelcontextprotocol/clientCapabilities": {},
}
TEXT = {"type": "text", "text": "sun"}


def make_message(method: str, params: Any, **more: Any) -> dict[str, Any]:
    """A request, or a notification without id."""
    return {"jsonrpc": "2.0", **more, "method": method, "params": params}


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def refusal(**error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": error}


MESSAGES: dict[str, Any] = {
    "call": CALL,
    "call-with-a-task": {**CALL, "params": {**CALL["params"], "task": {"ttl": 5}}},
    "wrong-name": {**CALL, "params": {"name": 5, "arguments": {}}},
    "unknown-method": {**CALL, "method": "tool/call"},
    "no-method-at-all": {**CALL, "method": "wall/paint"},
    "notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "result": {"jsonrpc": "2.0", "id": 1, "result": {"content": [TEXT], "isError": False}},
    "wrong-content": {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "image", "data": "AA=="}]},
    },
    "retired-code": {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32002, "message": "Resource not found"},
    },
    "batch": [CALL, {**CALL, "id": 2}],
    "elicitation": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "elicitation/create",
        "params": {
            "message": "Which city?",
            "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
    "no-version": {key: value for key, value in CALL.items() if key != "jsonrpc"},
    "progress-as-text": make_message(
        "notifications/progress", {"progressToken": "t", "progress": "5"}
    ),
    "token-of-no-type": make_message(
        "notifications/progress", {"progressToken": 1.5, "progress": 1}
    ),
    "level": make_message("logging/setLevel", {"level": "warn"}, id=1),
    "params-array": make_message("tools/list", [], id=1),
    "request-as-notification": make_message("tools/list", {}),
    "notification-as-request": make_message("notifications/initialized", {}, id=1),
    "id-null": {**CALL, "id": None},
    "id-float": {**CALL, "id": 1.5},
    "initialize": make_message("initialize", {"protocolVersion": "2025-06-18"}, id=1),
    "discover": make_message("server/discover", {"_meta": META}, id=1),
    "task": make_message("tasks/get", {"taskId": "t"}, id=1),
    "sampling": make_message(
        "sampling/createMessage",
        {
            "messages": [{"role": "users", "content": {"type": "text", "text": 5}}],
            "modelPreferences": {"costPriority": 2},
            "maxTokens": "10",
        },
        id=1,
    ),
    "flag-as-text": answer({"content": [TEXT], "isError": "true"}),
    "content-alone": answer({"content": TEXT}),
    "many-values": answer({"completion": {"values": ["x"] * 101, "total": 5.0}}),
    "tools": answer({"tools": [{"name": "t", "inputSchema": {"type": "objekt"}}]}),
    "resource": answer({"contents": [{"uri": "a:b"}]}),
    "role": answer({"messages": [{"role": "system", "content": TEXT}]}),
    "input-required": answer({"resultType": "input_required", "inputRequests": {"a": 5}}),
    "task-created": answer({"task": {"taskId": "t", "status": "working"}}),
    "empty-result": answer({}),
    "result-of-five": answer(5),
    **{
        f"code{code}": refusal(code=code, message="")
        for code in (-32700, -32020, -32042, -32050, -32099, -32100, -32019, 5)
    },
    "no-code": refusal(message=""),
    "code-as-text": refusal(code="-32602", message=5),
    "batch-of-wrong": [CALL, {**CALL, "method": 5}],
    "no-message": {"hello": "world"},
    "no-object": 42,
}


def save_message(folder: Path, message: Any) -> str:
    path = folder / "message.json"
    path.write_text(json.dumps(message), "utf-8")
    return str(path)


def explain_message(folder: Path, message: Any, *options: str) -> list[dict[str, Any]]:
    """The explanations of what a file holds, as JSON."""
    done = run("explain", save_message(folder, message), "--json", *options)
    explanations: list[dict[str, Any]] = json.loads(done.out)
    return explanations


def verdicts(folder: Path, message: Any) -> dict[str, dict[str, Any]]:
    """The verdict of each revision on one message."""
    (explanation,) = explain_message(folder, message)
    return {row["revision"]: row for row in explanation["revisions"]}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_explained(name: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    done = run("explain", save_message(tmp_path, MESSAGES[name]))
    assert (done.code, done.err) == (0, "")
    assert done.out == snapshot


@pytest.mark.parametrize("name", MESSAGES)
def test_the_nearest_form_is_accepted_by_the_revision_it_is_for(name: str, tmp_path: Path) -> None:
    for revision, row in verdicts(tmp_path, MESSAGES[name]).items():
        if row["nearest"] is not None:
            assert row["edits"]
            assert verdicts(tmp_path, row["nearest"])[revision]["accepted"]


def test_the_field_that_breaks_a_message_is_named(tmp_path: Path) -> None:
    by_revision = verdicts(tmp_path, CALL)
    assert [by_revision[name]["accepted"] for name in REVISIONS] == [True, True, True, True, False]
    assert by_revision[REVISIONS[-1]]["pointer"] == "/params/_meta"
    assert by_revision[REVISIONS[-1]]["nearest"]["params"]["_meta"] == META


def test_an_unknown_member_is_named_and_does_no_harm(tmp_path: Path) -> None:
    by_revision = verdicts(tmp_path, MESSAGES["call-with-a-task"])
    assert by_revision["2025-06-18"]["accepted"]
    assert by_revision["2025-06-18"]["ignored"] == ["/params/task"]
    assert by_revision["2025-11-25"]["ignored"] == []


def test_the_reason_of_the_alternative_that_was_meant_is_given(tmp_path: Path) -> None:
    by_revision = verdicts(tmp_path, MESSAGES["wrong-content"])
    assert {by_revision[name]["pointer"] for name in REVISIONS[:-1]} == {
        "/result/content/0/mimeType"
    }


def test_a_response_is_held_against_the_result_of_its_request(tmp_path: Path) -> None:
    explanations = explain_message(
        tmp_path, [CALL, {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, 7]
    )
    assert explanations[1]["what"] == "success response to tools/call, server to client"
    by_name = {row["revision"]: row for row in explanations[1]["revisions"]}
    assert by_name["2025-06-18"]["pointer"] == "/result/content"


def test_a_message_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO(json.dumps(CALL).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data))
    done = run("explain", "-r", "2025-06-18")
    assert done.out.splitlines()[0] == "request tools/call, client to server"
    assert "2025-06-18: accepted" in done.out


def test_a_trace_is_explained_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [
        {"direction": "sent", "channel": "client", "pid": 1, "message": CALL},
        {"direction": "received", "channel": "client", "pid": 1, "message": MESSAGES["result"]},
        {"direction": "received", "channel": "client", "pid": 1, "error": "the process ended"},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    lines = run("explain", str(path), "-r", "2025-06-18").out.splitlines()
    assert lines[0] == "1: request tools/call, client to server"
    assert "2: success response to tools/call, server to client" in lines
    assert lines[-1] == "3: no message: the process ended"


EVIL = "\x1b]0;owned\x07\u202e\u2028\x9b31m"


@pytest.mark.parametrize("place", ["method", "name", "value", "error", "code"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_text_of_others_never_reaches_the_terminal_raw(
    place: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    message: Any = {
        "method": {**CALL, "method": f"tools/call{EVIL}"},
        "name": {**CALL, "params": {EVIL: EVIL, "name": "a"}},
        "value": {**CALL, "params": {"name": [EVIL]}},
        "error": {"direction": "sent", "error": EVIL},
        "code": {"jsonrpc": "2.0", "id": 1, "error": {"code": EVIL, "message": EVIL}},
    }[place]
    out = run("explain", save_message(tmp_path, message), *options).out
    assert out
    assert [
        char for char in out if not (char.isascii() and char.isprintable()) and char != "\n"
    ] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected JSON text"),
        ("{", "expected JSON text"),
        ("[]", "expected a message, got nothing"),
        ('{"a": 1}\n{', ":2: expected JSON text"),
        ("[" * 100 + "]" * 100, "at most 64 levels of nesting"),
        ("[" * 100_000, "JSON that is nested less deeply"),
        ('"\\ud800"', "text in Unicode"),
    ],
)
def test_invalid_messages_are_one_error(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "message.json"
    path.write_text(text, "utf-8")
    done = run("explain", str(path))
    assert done.code == 2
    assert reason in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "accepted"),
    [(-32100, True), (-32099, False), (-32050, False), (-32020, True), (-32019, True)],
)
def test_a_reserved_code_needs_a_definition(code: int, accepted: bool) -> None:
    asked = explain_revision(REVISIONS[-1])
    wrong = asked.judge(refusal(code=code, message="x"), "server", CALL).violation
    assert (wrong is None) is accepted


@pytest.mark.parametrize(("length", "whole"), [(2000, True), (2001, False)])
def test_a_nearest_form_is_cut_after_2000_characters(
    length: int, whole: bool, tmp_path: Path
) -> None:
    plain = {**CALL, "params": {"name": "5", "arguments": {"a": ""}}}
    arguments = {"a": "x" * (length - len(json.dumps(plain)))}
    message = {**CALL, "params": {"name": 5, "arguments": arguments}}
    lines = run("explain", save_message(tmp_path, message), "-r", "2025-06-18").out.splitlines()
    [form] = [line for line in lines if "nearest valid form: " in line]
    shown = form.partition("nearest valid form: ")[2]
    assert (len(shown), shown.endswith("...")) == (2000 if whole else 2003, not whole)


def test_a_line_that_is_too_large_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text(f"{json.dumps(CALL)}\n{json.dumps([0] * 6000)}\n", "utf-8")
    lines = run("explain", str(path), "-r", "2025-06-18").out.splitlines()
    assert lines[0] == "1: request tools/call, client to server"
    assert lines[-1].startswith("2: no message: ")
    assert "at most 5000 entries" in lines[-1]


def test_a_method_of_an_extension_is_called_so(tmp_path: Path) -> None:
    message = {**CALL, "method": "tasks/get", "params": {"taskId": "a"}}
    row = verdicts(tmp_path, message)["2026-07-28"]
    assert row["expected"] == "a method of the revision, not one of an extension"


def test_a_draft_in_a_file_is_asked_like_a_revision(tmp_path: Path) -> None:
    draft = tmp_path / "draft.json"
    published = schema.load("2025-11-25", errata=False).definitions
    params = published["CallToolRequestParams"]
    changed = {**params, "required": [*params["required"], "arguments"]}
    draft.write_text(json.dumps({"$defs": {**published, "CallToolRequestParams": changed}}))
    bare = {**CALL, "params": {"name": "forecast"}}
    (explanation,) = explain_message(tmp_path, bare, "-r", str(draft))
    assert explanation["revisions"][0]["revision"] == str(draft)
    assert explanation["revisions"][0]["pointer"] == "/params/arguments"


def test_a_file_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    done = run("explain", str(tmp_path / "none.json"))
    assert (done.code, done.out) == (2, "")
    assert "expected a readable file" in done.err
