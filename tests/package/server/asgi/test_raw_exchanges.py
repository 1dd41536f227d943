"""What an application sends for each of many requests, byte for byte and piece by piece."""

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

from kit.asgi_client import Http, asgi, fields_of
from kit.simulation import simulate
from kit.web import Web
from kit.wire import ALL, PER_REQUEST, SESSIONS, SSE_ONLY, STREAMABLE, request
from mcpgen_runtime import Context, Limits
from mcpgen_runtime.server.asgi.app import AsgiApplication
from mcpgen_runtime.server.asgi.settings import HttpSettings

pytestmark = pytest.mark.processes

CASES = json.loads(Path(__file__).with_name("raw_exchanges.json").read_text())
REVISIONS = {
    "modern": PER_REQUEST,
    "sessions": SESSIONS,
    "streamable": STREAMABLE,
    "oldest": SSE_ONLY[:1],
}
RANDOM = (
    (r"(mcp-session-id: |session_id=)[-\w]{43}", r"\1SESSION"),
    (r"\b[0-9a-f]{16}-(?=\d)", "STREAM-"),
    (r"x{50,}", "PADDING"),
)
"""Parts of responses that differ from run to run, or are long."""


SENT: ContextVar[list[str]] = ContextVar("SENT")
"""The lines of the request that a task makes."""


class Conversation:
    """Requests to an application, one within another, and a text of what is sent for each."""

    def __init__(self, app: AsgiApplication, web: Web, revision: str) -> None:
        self.lines: list[str] = []
        self._app, self._web, self._revision = app, web, revision
        self._last = ""

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application, and record what it sends."""
        lines = SENT.get([])

        async def record(message: Any) -> None:
            if message["type"] == "http.response.start":
                fields = [
                    f"{name.decode()}: {value.decode()}" for name, value in message["headers"]
                ]
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
                continue
            fields, body = self._encode(row)
            SENT.set(sent := [])
            verb, path = row.get("verb", "POST"), row.get("path")
            async with http.stream(verb, body, path, fields=fields, begun=False) as stream:
                if "until" in row:
                    await stream.until(row["until"].encode())
                if "meanwhile" in row:
                    await anyio.wait_all_tasks_blocked()
                    await self.go_on(http, row["meanwhile"])
                if row.get("ends", "until" not in row):
                    await stream.end()
                    await stream.finished.wait()
                self._last = stream.decoder.last_id or self._last
            await anyio.wait_all_tasks_blocked()
            self.lines += [*sent, f"  {json.dumps(self._app.counts)}"]

    def _encode(self, row: dict[str, Any]) -> tuple[dict[str, str | None], bytes]:
        message, fields = row.get("body"), row.get("fields", {})
        if "ask" in row:
            how = {"id": row.get("id", 1), "meta": row.get("meta")}
            message = request(self._revision, row["ask"], row.get("params"), **how)
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
            case "drains":
                self._app.start_drain()
            case seconds:
                await anyio.sleep(float(seconds))
        await anyio.wait_all_tasks_blocked()


async def asks(ctx: Context) -> str:
    """Ask the client something."""
    return str(await ctx.request("ping"))


async def record_case(case: str, revision: str) -> str:
    """The requests of a case, and what is sent for each."""
    plan, web = CASES[case], Web(subscribe=True)
    web.server.tool()(asks)
    limits, options = Limits(**plan.get("limits", {})), plan.get("options", {})
    if plan.get("is_bare"):
        app = web.with_settings(HttpSettings(keep_alive=5.0, limits=limits), *ALL)
    else:
        app = web.server.asgi(keep_alive=5.0, limits=limits, **options)
    conversation = Conversation(app, web, revision)
    async with asgi(conversation.serve) as http:
        if plan.get("opens"):
            await http.begin(revision)
        conversation.lines.clear()
        rows = json.loads(json.dumps(plan["exchanges"]).replace("REVISION", revision))
        await conversation.go_on(http, rows)
        await anyio.sleep(3600)  # `Limits.idle` is less
        conversation.lines.append(f"in the end: {json.dumps(app.counts)}")
    text = "\n".join(conversation.lines)
    for pattern, replacement in RANDOM:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize(
    ("case", "revision"),
    [(name, revision) for name in CASES for revision in REVISIONS[CASES[name]["revisions"]]],
)
def test_each_response_is_as_recorded(
    case: str, revision: str, snapshot: SnapshotAssertion
) -> None:
    recorded = simulate("asyncio", 0, lambda: record_case(case, revision))
    if not CASES[case].get("is_parallel"):
        assert simulate("trio", 0, lambda: record_case(case, revision)) == recorded
    assert recorded == snapshot
