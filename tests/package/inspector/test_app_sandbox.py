"""The sandboxes in which the page of `inspect --web` shows user interfaces of tools."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from mcpgen_runtime import Csp, UiResource
from mcpgen_runtime.inspector import app_sandbox
from package.inspector.inspected import SECONDS, Page, inspect_server

pytestmark = pytest.mark.processes

SERVER = """
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
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("apps")
    (folder / "demo.py").write_text(SERVER, "utf-8")
    with inspect_server(folder) as page:
        page.event("state", state="open")
        yield page


def send_request(page: Page, path: str, host: str, method: str = "GET") -> HTTPResponse:
    """The response to a request without the token."""
    connection = HTTPConnection("127.0.0.1", page.port, timeout=SECONDS)
    connection.request(method, path, headers={"Host": host})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_a_sandbox_has_the_policy_of_its_document(page: Page) -> None:
    shown = page.act("app", tool="show")
    assert (shown["html"], shown["border"]) == ("<p>view", False)
    response = send_request(page, shown["path"], f"localhost:{page.port}")
    policy = response.getheader("Content-Security-Policy") or ""
    assert response.status == 200
    assert "connect-src https://api.example.com;" in policy
    assert policy.endswith(f"frame-ancestors http://127.0.0.1:{page.port}")
    allowed = response.getheader("Connection-Allowlist")
    assert allowed == '(response-origin "https://api.example.com/*")'
    status = {
        (host, method, path): send_request(page, path, host, method).status
        for host, method, path in (
            (f"127.0.0.1:{page.port}", "GET", shown["path"]),
            (f"attacker.example:{page.port}", "GET", shown["path"]),
            (f"localhost:{page.port}", "POST", shown["path"]),
            (f"localhost:{page.port}", "GET", shown["path"] + "x"),
            (f"localhost:{page.port}", "GET", "/"),
        )
    }
    assert [*status.values()] == [403, 403, 405, 404, 403]


def test_a_tool_without_a_user_interface_has_no_sandbox(page: Page) -> None:
    assert "expected one with a URI ui://" in page.act("app", tool="plain")["text"]
    assert "'gone'" in page.act("app", tool="gone")["text"]


def test_the_oldest_sandboxes_are_forgotten() -> None:
    sandbox = app_sandbox.AppSandbox()
    paths = [sandbox.add(UiResource("ui://a", "")) for _ in range(app_sandbox.KEPT + 1)]
    assert sandbox.fields(paths[0], "http://a") is None
    policies = [(sandbox.fields(path, "http://a") or {}) for path in paths[1:]]
    own = f"{Csp().policy}; frame-ancestors http://a"
    assert {each["Content-Security-Policy"] for each in policies} == {own}
