"""`mcpgen explain`: what a message is, who accepts it, and the nearest form that is accepted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run
from generator.schemas import obj, ref
from generator.tables import table
from mcpgen import schema
from mcpgen.explain import recordings, repair, violations
from mcpgen.explain.recordings import Recorded
from mcpgen.explain.revision import Revision
from mcpgen.explain.revision import revision as explain_revision
from mcpgen.input_files import MAX_BYTES

REVISIONS = [row.name for row in schema.revisions()]
TEXT = {"type": "text", "text": "sun"}
STRING = {"type": "string"}
OTHERS = {"data": "", "mimeType": "a/b", "description": "a", "title": "b", "size": 1}
"""Members of images and of links, which a text lacks."""


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


MESSAGES: dict[str, Any] = {
    **table("messages"),
    "long": {**table("messages")["call"], "params": {"name": 5, "arguments": {"a": "x" * 2000}}},
    "many-values": answer({"completion": {"values": ["x"] * 101, "total": 5.0}}),
}
CALL: dict[str, Any] = MESSAGES["call"]


def explain(folder: Path, message: Any, *options: str) -> Done:
    """Explain what a file holds."""
    path = folder / "message.json"
    path.write_text(json.dumps(message), "utf-8")
    return run("explain", path, *options)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_explained(name: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    done = explain(tmp_path, MESSAGES[name])
    assert (done.code, done.err) == (0, "")
    assert done.out == snapshot


def test_a_response_is_held_against_the_result_of_its_request(tmp_path: Path) -> None:
    done = explain(tmp_path, [CALL, answer({"tools": []}), 7], "--json")
    explanations = json.loads(done.out)
    assert explanations[1]["what"] == "success response to tools/call, server to client"
    by_name = {row["revision"]: row for row in explanations[1]["revisions"]}
    assert by_name["2025-06-18"]["pointer"] == "/result/content"


@pytest.mark.parametrize(
    ("data", "code", "shown"),
    [
        (json.dumps(CALL).encode(), 0, "request tools/call, client to server"),
        (b"\xff", 2, "mcpgen: error: standard input: expected JSON text in UTF-8, got "),
        (b"{", 2, "mcpgen: error: standard input: expected JSON text, got "),
        pytest.param(b"5".ljust(MAX_BYTES), 0, "invalid message\n", id="largest"),
        pytest.param(
            *(b"5".ljust(MAX_BYTES + 1), 2),
            f"mcpgen: error: standard input: expected {MAX_BYTES} bytes at most, got more\n",
            id="too-large",
        ),
    ],
)
def test_a_message_comes_from_standard_input(
    data: bytes, code: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = run("explain", "-r", "2025-06-18")
    assert (done.code, (done.out or done.err).startswith(shown)) == (code, True)


TRACE: tuple[tuple[str, str], ...] = (
    *(("sent", "call"), ("sent", "call"), ("received", "result"), ("received", "result")),
    *(("sent", "level"), ("received", "retired-code"), ("sent", "unknown-method")),
    *(("received", "wrong-content"), ("sent", "batch"), ("received", "a line too long")),
    *(("sent", "notification"), ("received", "no-message"), ("sent", "sampling")),
    *(("sent", "many-values"), ("received", "initialize"), ("received", "the process ended")),
)
"""Directions, each with the name of a message, or with an error."""


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("words", ["explain -r 2025-03-26 -r 2025-06-18", "validate"])
def test_a_trace_is_explained_line_by_line(
    words: str, form: tuple[str, ...], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [
        {"direction": way, "channel": "client", "pid": 1}
        | ({"message": MESSAGES[name]} if name in MESSAGES else {"error": name})
        for way, name in TRACE
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    done = run(*words.split(), path, *form)
    assert (done.code, done.out.replace(str(path), path.name), done.err) == snapshot


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
    out = explain(tmp_path, message, *options).out
    assert out
    assert [
        char for char in out if not (char.isascii() and char.isprintable()) and char != "\n"
    ] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n{\n", "expected JSON text, got Expecting"),
        ("[]", "expected a message, got nothing"),
        ('{"a": 1}\n{', ":2: expected JSON text"),
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


def test_a_line_that_is_too_large_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text(f"{json.dumps(CALL)}\n{json.dumps([0] * 6000)}\n", "utf-8")
    lines = run("explain", str(path), "-r", "2025-06-18").out.splitlines()
    assert lines[0] == "1: request tools/call, client to server"
    assert lines[-1].startswith("2: no message: ")
    assert "at most 5000 entries" in lines[-1]


@pytest.mark.parametrize(
    ("request_message", "result", "type", "reason", "ignored"),
    [
        ({"method": "wall/paint"}, {}, "", "a response to a method of the revision", ()),
        ({"method": "tools/call"}, {"content": []}, "CallToolResult", None, ()),
        (
            {"method": "tools/call"},
            {"content": [{**TEXT, "more": 1}], "_meta": {"a": 1}, "rest": []},
            "CallToolResult",
            None,
            ("/result/content/0/more", "/result/rest"),
        ),
        (
            *({"method": "tools/call"}, {"content": [{**TEXT, "_meta": {}, "more": 1}]}),
            *("CallToolResult", None, ("/result/content/0/more",)),
        ),
        (
            *(
                {"method": "tools/call"},
                {"content": [{**TEXT, "annotations": {"_meta": {}, "a": 1}}]},
            ),
            *("CallToolResult", None, ("/result/content/0/annotations/a",)),
        ),
        (
            *({"method": "tools/call"}, {"content": [{**TEXT, **OTHERS}]}, "CallToolResult", None),
            tuple(f"/result/content/0/{name}" for name in OTHERS),
        ),
        ({"method": "ping"}, {"more": 1}, "EmptyResult", None, ()),
    ],
)
def test_a_result_has_the_type_of_its_request(
    request_message: Any, result: Any, type: str, reason: str | None, ignored: tuple[str, ...]
) -> None:
    verdict = explain_revision("2025-06-18").judge(answer(result), "server", request_message)
    wrong = verdict.violation
    assert (verdict.type, wrong and wrong.expected, verdict.ignored) == (type, reason, ignored)


@pytest.mark.parametrize(
    ("message", "unknown"),
    [
        (answer({"content": [{**TEXT, "more": 1}], "isError": 5, "rest": {}}), 2),
        (answer({"content": [{**TEXT, "more": 1}]}), 1),
        (answer(5), 0),
        (MESSAGES["unknown-method"], 0),
        ({**CALL, "params": {"name": 5, "more": 1}}, 1),
        (answer({"content": [{"type": "resource", "resource": {"uri": "a", "more": 1}}]}), 0),
    ],
)
def test_unknown_members_of_a_refused_message_are_found_too(message: Any, unknown: int) -> None:
    places = ["/result/content/0/more", "/result/rest"] if "result" in message else ["/params/more"]
    chosen = explain_revision("2025-06-18")
    assert chosen.unknown_members(message, None, CALL) == tuple(places[:unknown])


def test_a_valid_alternative_comes_before_a_fuller_one() -> None:
    task = {
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 5,
    }
    both = answer({"task": task, "content": 5, "structuredContent": 5, "isError": 5})
    verdict = explain_revision("2025-11-25").judge(both, "server", CALL)
    assert (verdict.type, verdict.is_accepted) == ("CreateTaskResult", True)


def draft_of(folder: Path, required: dict[str, Any]) -> Revision:
    """A revision whose calls of tools need further parameters, by their schemas."""
    published = schema.load("2025-11-25", errata=False).definitions
    params = published["CallToolRequestParams"]
    changed = {
        **params,
        "properties": {**params["properties"], **required},
        "required": [*params["required"], *required],
    }
    loop = obj("loop", loop=ref("Loop"))
    definitions = {**published, "CallToolRequestParams": changed, "Loop": loop}
    path = folder / "draft.json"
    path.write_text(json.dumps({"$defs": definitions}), "utf-8")
    return explain_revision(str(path))


def test_a_draft_in_a_file_is_asked_like_a_revision(tmp_path: Path) -> None:
    draft_of(tmp_path, {"seal": {"type": "string"}})
    draft = str(tmp_path / "draft.json")
    (explanation,) = json.loads(explain(tmp_path, CALL, "-r", draft, "--json").out)
    [row] = explanation["revisions"]
    assert (row["revision"], row["pointer"]) == (draft, "/params/seal")


@pytest.mark.parametrize(
    "required",
    [
        pytest.param({"it": ref("Loop")}, id="a type without a least value"),
        pytest.param({f"p{at}": {"type": "string"} for at in range(40)}, id="many mistakes"),
    ],
)
def test_a_message_may_have_no_nearest_form(required: dict[str, Any], tmp_path: Path) -> None:
    assert repair.nearest(draft_of(tmp_path, required), CALL, "client", None) is None


def test_a_missing_parameter_gets_the_least_value(tmp_path: Path) -> None:
    pair = obj("a", a={"type": "string"})
    least: dict[str, tuple[Any, Any]] = {
        "flag": ({"type": "boolean"}, False),
        "none": ({"type": ["null", "string"]}, None),
        "list": ({"type": "array"}, []),
        "count": ({"type": "integer"}, 0),
        "size": ({"type": "number", "minimum": 3}, 3),
        "word": ({"type": ["string", "null"]}, ""),
        "protocolVersion": ({"type": "string"}, "draft"),
        "fixed": ({"const": 7, "enum": [7, 8]}, 7),
        "choice": ({"enum": ["b", "a"]}, "b"),
        "either": ({"anyOf": [pair, {"type": "string"}]}, {"a": ""}),
        "one": ({"oneOf": [{"type": "string"}, pair]}, ""),
        "pair": (pair, {"a": ""}),
        **{f"p{at}": (STRING, "") for at in range(27)},
    }
    draft = draft_of(tmp_path, {name: node for name, (node, _) in least.items()})
    mended = repair.nearest(draft, CALL, "client", None)
    assert mended is not None
    changed: Any = mended.message
    values = {name: value for name, (_, value) in least.items()}
    assert changed["params"] == {**CALL["params"], **values}
    assert len(mended.edits) == len(least)
    assert mended.edits[0] == "add /params/flag: false"


@pytest.mark.parametrize(("node", "before", "after"), table("nearest"))
def test_a_wrong_parameter_becomes_the_nearest_value(
    node: Any, before: Any, after: Any, tmp_path: Path
) -> None:
    draft = draft_of(tmp_path, {"it": node})
    message = {**CALL, "params": {**CALL["params"], "it": before}}
    mended = repair.nearest(draft, message, "client", None)
    if after is None:
        assert mended is None
        return
    assert mended is not None
    changed: Any = mended.message
    assert (changed["params"]["it"], type(changed["params"]["it"])) == (after, type(after))
    assert mended.edits == (f"change /params/it from {json.dumps(before)} to {json.dumps(after)}",)
    assert message["params"]["it"] == before


def test_a_deep_parameter_is_added_in_parts(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    deep: Any = STRING
    for _ in range(8):
        deep = obj("a", a=deep)
    for name, node in {"plain": deep, "union": {"anyOf": [deep, STRING]}}.items():
        (tmp_path / name).mkdir()
        mended = repair.nearest(draft_of(tmp_path / name, {"it": node}), CALL, "client", None)
        assert mended is not None
        assert mended.edits == snapshot(name=name)


def test_a_member_that_nothing_allows_is_removed(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, {"it": {"type": "object", "additionalProperties": False}})
    message = {**CALL, "params": {**CALL["params"], "it": {"more": 1}}}
    mended = repair.nearest(draft, message, "client", None)
    assert mended is not None
    assert mended.edits == ("remove /params/it/more",)


@pytest.mark.parametrize(("node", "value", "broken"), table("violations"))
def test_the_place_that_breaks_a_schema(node: Any, value: Any, broken: list[str]) -> None:
    wrong = violations.first(Draft202012Validator(node).iter_errors(value))
    assert wrong is not None
    assert [wrong.pointer, wrong.expected, wrong.actual] == broken


HI, HO = {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "method": "x"}
TRACED = {"message": HI, "direction": "received", "channel": "c", "pid": 2}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (json.dumps([HI, HO]), [Recorded(1, [HI, HO])]),
        (json.dumps([[HI, HO], 5]), [Recorded(1, [HI, HO]), Recorded(2, 5)]),
        (f"\n{json.dumps(HI)}\n\n5\n", [Recorded(2, HI), Recorded(4, 5)]),
        (json.dumps(TRACED), [Recorded(1, HI, "received", '["c", 2]')]),
        (
            json.dumps({**TRACED, "time": "now", "masked": True}),
            [Recorded(1, HI, "received", '["c", 2]', time="now", masked=True)],
        ),
        (
            json.dumps({**TRACED, "time": 5, "masked": 1}),
            [Recorded(1, HI, "received", '["c", 2]')],
        ),
        (json.dumps({"message": HI, "direction": []}), [Recorded(1, HI, None, "[null, null]")]),
        (
            json.dumps({"error": 5, "direction": "sent"}),
            [Recorded(1, None, "sent", "[null, null]", "5")],
        ),
        (json.dumps({"error": 5}), [Recorded(1, {"error": 5})]),
    ],
)
def test_each_message_of_a_file_has_its_place(
    text: str, rows: list[Recorded], tmp_path: Path
) -> None:
    path = tmp_path / "messages"
    path.write_text(text, "utf-8")
    assert recordings.read(str(path)) == tuple(rows)
