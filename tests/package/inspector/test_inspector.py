"""The page of `inspect --web` without a browser: who may use it, and what its requests do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from mcpgen_runtime import REVISIONS
from mcpgen_runtime.__main__ import main
from package.inspector.inspected import SECONDS, Page, inspect_server, write_server

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", params=[max(REVISIONS), min(REVISIONS)])
def page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """An inspector of a server, in the newest and the oldest revision."""
    folder = tmp_path_factory.mktemp("inspected")
    write_server(folder)
    with inspect_server(folder, "--revision", request.param) as page:
        page.event("state", state="open", revision=request.param)
        yield page


def test_requests_of_the_page_reach_the_server(page: Page) -> None:
    assert page.ask("GET", "/")[0] == 403  # the page itself needs the token in its URL
    tools = page.act("request", method="list_tools", call=1)
    assert [tool["name"] for tool in tools][:2] == ["forecast", "hostile"]
    params = {"name": "forecast", "arguments": {"place": {"city": "Oslo", "tags": []}}}
    result = page.act("request", method="call_tool", params=params, call=7)
    assert result["content"][0]["text"] == "Place(city='Oslo', tags=[]) metric 3"
    progress = page.event("progress", call=7)
    assert (progress["progress"], progress["total"]) == (1, 2)
    sent = page.event("wire", direction="sent")
    assert sent["message"]["method"] in ("server/discover", "initialize")
    page.act("follow", uri="weather://Oslo/today")
    page.act("request", method="call_tool", params={"name": "rain"}, call=1)
    assert page.event("updated")["uri"] == "weather://Oslo/today"


def test_the_messages_are_a_trace_that_the_command_reads(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.act("request", method="list_tools", call=1)
    file = tmp_path / "trace.jsonl"
    file.write_bytes(page.read("/trace"))
    with pytest.raises(SystemExit):
        main(["trace", str(file), "--json", "--method", "tools/list"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows[-2:]] == ["request", "result"]


APP_SERVER = """
from mcpgen_runtime import Csp, Server

server = Server("demo")
server.ui("ui://a/view.html", "<p>view", csp=Csp(["https://api.example.com"]), prefers_border=False)

@server.tool(ui="ui://a/view.html")
def show() -> str:
    return "shown"

@server.tool()
def plain() -> str:
    return "plain"
"""


@pytest.fixture(scope="module")
def app_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("apps")
    (folder / "demo.py").write_text(APP_SERVER, "utf-8")
    with inspect_server(folder) as app_page:
        app_page.event("state", state="open")
        yield app_page


def send_request(app_page: Page, path: str, host: str, method: str = "GET") -> HTTPResponse:
    """The response to a request without the token."""
    connection = HTTPConnection("127.0.0.1", app_page.port, timeout=SECONDS)
    connection.request(method, path, headers={"Host": host})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_a_sandbox_has_the_policy_of_its_document(app_page: Page) -> None:
    shown = app_page.act("app", tool="show")
    assert (shown["html"], shown["border"]) == ("<p>view", False)
    response = send_request(app_page, shown["path"], f"localhost:{app_page.port}")
    policy = response.getheader("Content-Security-Policy") or ""
    assert response.status == 200
    assert "connect-src https://api.example.com;" in policy
    assert policy.endswith(f"frame-ancestors http://127.0.0.1:{app_page.port}")
    allowed = response.getheader("Connection-Allowlist")
    assert allowed == '(response-origin "https://api.example.com/*")'
    status = {
        (host, method, path): send_request(app_page, path, host, method).status
        for host, method, path in (
            (f"127.0.0.1:{app_page.port}", "GET", shown["path"]),
            (f"attacker.example:{app_page.port}", "GET", shown["path"]),
            (f"localhost:{app_page.port}", "POST", shown["path"]),
            (f"localhost:{app_page.port}", "GET", shown["path"] + "x"),
            (f"localhost:{app_page.port}", "GET", "/"),
        )
    }
    assert [*status.values()] == [403, 403, 405, 404, 403]


def test_a_tool_without_a_user_interface_has_no_sandbox(app_page: Page) -> None:
    assert "expected one with a URI ui://" in app_page.act("app", tool="plain")["text"]
    assert "'gone'" in app_page.act("app", tool="gone")["text"]
