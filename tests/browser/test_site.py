"""The built site of documents in headless Chromium, as a reader uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from documents import ROOT
from kit.pages import serving

pytestmark = pytest.mark.browser

SITE = ROOT / "build" / "website" / "site"
PHONE = ViewportSize(width=390, height=844)
PAGES = (
    "",
    "docs/start/",
    "docs/servers/",
    "docs/limits/",
    "docs/reference/server/",
    "docs/reference/commands/",
    "docs/reference/methods/",
    "docs/reference/types/",
    "docs/reference/facts/",
)
"""Pages of each kind; those with the widest tables and signatures are among them."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The URL of the built site."""
    assert SITE.is_dir(), f"expected the site in {SITE}; `nox -s docs` builds it"
    with serving(partial(Quiet, directory=f"{SITE}")) as origin:
        yield f"{origin}/"


@pytest.fixture
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """A reader, whose browser loads from the site alone."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    elsewhere: list[str] = []
    context.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "data:", "blob:"))
            else elsewhere.append(request.url)
        ),
    )
    yield context
    context.close()
    assert elsewhere == []


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that reports no error."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


def test_the_search_finds_a_name(page: Page, address: str) -> None:
    page.goto(address)
    page.keyboard.press("/")
    page.keyboard.type("elicit")
    hit = page.get_by_role("option", name="elicit").first
    expect(hit).to_be_visible(timeout=20_000)
    hit.click()
    page.wait_for_url(re.compile(r"/docs/reference/\w+/.*elicit"))


def test_commands_are_copied_without_prompts_and_output(page: Page, address: str) -> None:
    page.goto(f"{address}docs/start/")
    block = page.locator("article .highlight", has_text="pkg list").first
    block.hover()
    block.locator("button").first.click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert [line for line in copied if line] == [
        "python -m pkg list books:server",
        "python -m pkg call books:server published --arg title=Dune",
    ]


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_no_page_sideways(context: BrowserContext, address: str, path: str) -> None:
    page = context.new_page()
    page.set_viewport_size(PHONE)
    page.goto(f"{address}{path}")
    expect(page.locator("article h1").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_page_shows_version_and_a_link_to_edit_it(page: Page, address: str) -> None:
    page.goto(f"{address}docs/servers/")
    expect(page.locator("footer")).to_contain_text("mcpgen 0.")
    link = page.locator('a[rel="edit"]')
    assert str(link.get_attribute("href")).endswith("/edit/main/docs/servers.md")
