"""Many requests to an application, and all messages that it sends, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest
from syrupy.assertion import SnapshotAssertion

from kit import wire
from kit.asgi_client import Http, asgi, fields_of
from kit.rules import revisions_holding
from kit.simulation import simulate
from kit.web import Web
from mcpgen_runtime import Context, Limits, MemoryEventStore
from mcpgen_runtime.server.asgi.settings import HttpSettings

pytestmark = pytest.mark.processes

CASES = json.loads(Path(__file__).with_name("raw_exchanges.json").read_text())
"""Rows are requests: `ask` names a method, `body` and `text` are sent as they are, with `PAD` as
long as `size` asks. A response is read to its end, or `until` a text, and then left unless it
`ends`; the rows `meanwhile` come before that. `server` is what the server does, or seconds."""

REVISIONS = {
    "modern": wire.PER_REQUEST,
    "sessions": wire.SESSIONS,
    "streamable": wire.STREAMABLE,
    "oldest": wire.SSE_ONLY[:1],
    "newest": wire.ONE_OF_EACH,
    "with batches": revisions_holding("http.post-body-forms-batch"),
}
RANDOM = (
    (r"(mcp-session-id: |session_id=)[-\w]{43}", r"\1SESSION"),
    (r"\b[0-9a-f]{16}-(?=\d)", "STREAM-"),
    (r"x{50,}", lambda match: f"<{len(match[0])} x>"),
)
"""Parts of responses that differ from run to run, or are long."""

SENT: ContextVar[list[str]] = ContextVar("SENT")
"""The lines of the request that a task makes."""


class Conversation:
    """Requests to an application, one within another, and a text of what is sent for each."""

    def __init__(self, plan: dict[str, Any], revision: str) -> None:
        self.lines: list[str] = []
        self._web, self._revision = Web(subscribe=True), revision
        self._store = MemoryEventStore()
        self._ctx: Context
        self._web.server.tool()(self.asks)
        self._last = self._endpoint = ""
        limits, options = Limits(**plan.get("limits", {})), plan.get("options", {})
        if plan.get("is_bare"):
            settings = HttpSettings(keep_alive=5.0, limits=limits)
            self._app = self._web.with_settings(settings, *wire.ALL)
        else:
            how = {"keep_alive": 5.0, "limits": limits, "events": self._store, **options}
            self._app = self._web.server.asgi(**how)

    async def asks(self, ctx: Context) -> str:
        """Ask the client something."""
        self._ctx = ctx
        return str(await ctx.request("ping"))

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application, and record what it sends."""
        lines = SENT.get([])

        async def record(message: Any) -> None:
            if message["type"] == "http.response.start":
                fields = [b": ".join(pair).decode() for pair in message["headers"]]
                lines.append("; ".join((f"  {message['status']}", *fields)))
            elif message["type"] == "http.response.body":
                more = " ..." if message.get("more_body", False) else ""
                lines.append(f"  {message['body'].decode()!r}{more}")
            await send(message)

        await self._app(scope, receive, record)

    async def go_on(self, http: Http, rows: Sequence[dict[str, Any]]) -> None:
        """Make requests of the table, each with those that it has `meanwhile` before its end."""
        for row in rows:
            self.lines.append(json.dumps({key: row[key] for key in row if key != "meanwhile"}))
            if "server" in row:
                await self._act(row["server"])
                self.lines.append(self.state())
                continue
            fields, body = self._encode(row)
            sent: list[str] = []
            SENT.set(sent)
            verb, path = row.get("verb", "POST"), row.get("path", self._endpoint or None)
            async with http.stream(verb, body, path, fields=fields, begun=False) as stream:
                if "until" in row:
                    await stream.until(row["until"].encode())
                    if endpoint := re.search(rb"data: (/messages.+)", stream.raw):
                        self._endpoint = endpoint[1].decode()
                if "meanwhile" in row:
                    await anyio.sleep(0.001)
                    await self.go_on(http, row["meanwhile"])
                if row.get("ends", "until" not in row):
                    await stream.end()
                    await stream.finished.wait()
                self._last = stream.decoder.last_id or self._last
            await anyio.sleep(0.001)
            self.lines += [*sent, self.state()]

    def state(self) -> str:
        """The numbers of what is open."""
        count = len(self._store)
        return f"  {json.dumps(self._app.counts)} {self._web.server!r}, {count} streams to resume"

    def _encode(self, row: dict[str, Any]) -> tuple[dict[str, str | None], bytes]:
        message, fields = row.get("body"), row.get("fields", {})
        if "ask" in row:
            how = {"id": row.get("id", 1), "meta": row.get("meta")}
            message = wire.request(self._revision, row["ask"], row.get("params"), **how)
            standard = fields_of(self._revision, message)
            fields = {name.lower(): text for name, text in standard.items()} | fields
        text = row.get("text", "" if message is None else json.dumps(message))
        if "size" in row:
            text = text.replace("PAD", "x" * (row["size"] - len(text) + 3))
        if fields.get("last-event-id") == "LAST":
            fields = {**fields, "last-event-id": self._last}
        return fields, text.encode()

    async def _act(self, action: str) -> None:
        server = self._web.server
        match action:
            case "returns":
                self._web.released.set()
            case "changes":
                server.add_tool(lambda: "", name=f"added{len(self.lines)}")
                server.resource_updated("memo://one")
            case "tells":
                await self._ctx.info("late")
            case "drains":
                self._app.start_drain()
            case seconds:
                await anyio.sleep(float(seconds))
        await anyio.sleep(0.001)


async def record_case(case: str, revision: str) -> str:
    """The requests of a case, and what is sent for each."""
    plan = CASES[case]
    conversation = Conversation(plan, revision)
    async with asgi(conversation.serve) as http:
        if plan.get("opens"):
            await http.begin(revision)
        conversation.lines.clear()
        rows = json.loads(json.dumps(plan["exchanges"]).replace("REVISION", revision))
        await conversation.go_on(http, rows)
        await anyio.sleep(3600)  # `Limits.idle` is less
        conversation.lines.append(conversation.state())
    text = "\n".join(conversation.lines)
    for pattern, replacement in RANDOM:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.requirement("http.post-202", "http.post-202-batch", "jsonrpc.batch-no-initialize")
@pytest.mark.requirement("http.get-reply", "http.session-delete-405", "http.no-sessions")
@pytest.mark.requirement("http.keepalive-comments", "http.x-accel-buffering")
@pytest.mark.requirement("http.request-reply-type", "http.stream-response")
@pytest.mark.requirement("http.stream-response-per-request-batch", "http.stream-server-messages")
@pytest.mark.requirement("http.stream-end-after-response", "http.stream-not-closed-early")
@pytest.mark.requirement("http.event-id", "http.event-id-unique", "http.stream-resumable")
@pytest.mark.requirement("http.stream-notifications", "http.final-response-ends-stream")
@pytest.mark.requirement("http.no-resumability")
@pytest.mark.parametrize(
    ("case", "revision"),
    [
        pytest.param(
            case, each, id=f"{case}, {'' if each in wire.HANDSHAKE else 'no '}session, {each}"
        )
        for case in CASES
        for each in REVISIONS[CASES[case]["revisions"]]
    ],
)
def test_each_response_is_as_recorded(
    case: str, revision: str, snapshot: SnapshotAssertion
) -> None:
    recorded = simulate("asyncio", 0, lambda: record_case(case, revision))
    if not CASES[case].get("is_parallel"):
        assert simulate("trio", 0, lambda: record_case(case, revision)) == recorded
    assert recorded == snapshot
