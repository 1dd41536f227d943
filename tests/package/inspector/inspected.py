"""A server to inspect, and the page of `inspect --web` as a process, for tests of both."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from kit.processes import PACKAGE_ROOT

SECONDS = 20.0

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
"""A text that takes over a page that writes it as HTML."""

SERVER = f"""
    from dataclasses import dataclass
    from enum import Enum

    import anyio
    from mcpgen_runtime import Context, McpError, Server, ToolError

    HOSTILE = {HOSTILE!r}
    server = Server("demo", "1.0", title=HOSTILE, instructions=HOSTILE, subscribe=True)

    class Unit(Enum):
        metric = "metric"
        imperial = "imperial"

    @dataclass
    class Place:
        city: str
        tags: list[str]

    @dataclass
    class Seat:
        row: int
        window: bool = False

    @server.tool()
    async def forecast(place: Place, ctx: Context, unit: Unit = Unit.metric, days: int = 3) -> str:
        await ctx.progress(1, 2, "half")
        await ctx.info(f"forecast of {{place.city}}")
        return f"{{place}} {{unit.value}} {{days}}"

    @server.tool(description=HOSTILE)
    def hostile() -> str:
        return HOSTILE

    @server.tool()
    async def book(ctx: Context) -> str:
        return repr(await ctx.elicit(HOSTILE, Seat))

    @server.tool()
    async def poem(ctx: Context) -> str:
        try:
            return (await ctx.sample("A poem", max_tokens=9)).text
        except McpError as error:
            raise ToolError(str(error)) from None

    @server.tool()
    def grow() -> str:
        server.add_tool(lambda: "new", name="grown")
        return "ok"

    @server.tool()
    def rain() -> str:
        server.resource_updated("weather://Oslo/today")
        return "ok"

    @server.tool()
    async def wait() -> None:
        await anyio.sleep_forever()

    @server.tool()
    def search(word: str, place: str | None = None, limit: int | None = None) -> str:
        return f"{{word}} {{place}} {{limit}}"

    @server.resource("weather://{{city}}/today")
    def today(city: str) -> str:
        return f"sun in {{city}}"

    @server.prompt()
    def ask(city: str) -> str:
        return f"How is {{city}}?"

    @server.completion(prompt="ask", argument="city")
    def cities(value: str) -> list[str]:
        return [city for city in ("Oslo", "Ottawa", "Rome") if city.startswith(value)]
"""


class Page:
    """The page of a running inspector, used without a browser."""

    def __init__(self, url: str) -> None:
        self.url = url
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})", url)
        assert match is not None, url
        self.port, self.token = int(match[1]), match[2]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and body of a request with the token, unless `headers` have another."""
        data = None if body is None else json.dumps(body).encode()
        with self._response(method, path, data, headers) as response:
            answer = response.read()
            return response.status, json.loads(answer) if path != "/" else answer

    def read(self, path: str) -> bytes:
        """The body of the response to a GET with the token."""
        with self._response("GET", path, None, {}) as response:
            assert response.status == 200
            return response.read()

    @contextmanager
    def _response(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Iterator[HTTPResponse]:
        """The response to a request with the token, unless `headers` have another."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            fields = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(method, path, body, fields | headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def act(self, action: str, **members: Any) -> Any:
        """The result of an action, or its error."""
        status, answer = self.ask("POST", f"/actions/{action}", members)
        assert status == 200, answer
        return answer["result"] if "result" in answer else answer["error"]

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The events after a number, as they come."""
        while True:
            status, events = self.ask("GET", f"/events?after={after}")
            assert status == 200, events
            for event in events:
                after = event["number"]
                yield event

    def last(self) -> int:
        """The number of the last event, of which there is one."""
        _, events = self.ask("GET", "/events?after=0")
        return int(events[-1]["number"])

    def event(self, kind: str, after: int = 0, **members: Any) -> dict[str, Any]:
        """The next event of a kind with some members."""
        for event in self.events(after):
            if event["kind"] == kind and members.items() <= event.items():
                return event
        raise AssertionError("events do not end")


def write_server(folder: Path) -> None:
    """Write the server to a folder, as the module `demo`."""
    (folder / "demo.py").write_text(textwrap.dedent(SERVER))


@contextmanager
def inspect_server(folder: Path, *words: str, target: str = "demo:server") -> Iterator[Page]:
    """Inspect the server of a folder, or another one; in the end the process ends by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen_runtime", "inspect", target, "--web", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving at "), line + process.stderr.read()
        yield Page(line.removeprefix("serving at ").strip())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
