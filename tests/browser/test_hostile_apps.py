"""Hostile documents on the page of `inspect --web`: they send nothing, and the page goes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from browser.test_inspector_apps import call_tool
from package.inspector.inspected import inspect_server

pytestmark = pytest.mark.browser


DOCUMENTS = Path(__file__).with_name("documents")
SENDING = {path.stem: path for path in sorted((DOCUMENTS / "sending").iterdir())}
"""Documents that try to send to a place, each in its way."""

STALLING = {path.stem: path for path in sorted((DOCUMENTS / "stalling").iterdir())}
"""Documents that keep the page busy."""

SERVER = """
from pathlib import Path
from mcpgen_runtime import Server

server = Server("demo", "1.0")


@server.tool()
def tick() -> str:
    return "ticked"


for path in sorted(Path(__file__).parent.glob("*.html")):
    server.ui(f"ui://demo/{path.name}", path)
    server.add_tool(lambda: "shown", name=path.stem, ui=f"ui://demo/{path.name}")
"""


class Place:
    """A port that counts what comes to it, over TCP and UDP."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(self._listener.getsockname())
        for wait in (self._listener.accept, lambda: self._datagrams.recv(2**16)):
            threading.Thread(target=self._count, args=(wait,), daemon=True).start()

    def _count(self, wait: Callable[[], object]) -> None:
        while True:
            try:
                self.received.append(repr(wait()))
            except OSError:  # closed
                return

    def close(self) -> None:
        for each in (self._listener, self._datagrams):
            with suppress(OSError):  # which is not connected
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.close()


@pytest.fixture(scope="module")
def url(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of an inspector of a server with hostile documents."""
    folder = tmp_path_factory.mktemp("hostile")
    for path in (SENDING | STALLING).values():
        text = path.read_text("utf-8").replace("PLACE", place.name)
        (folder / path.name).write_text(text, "utf-8")
    (folder / "demo.py").write_text(SERVER, "utf-8")
    with inspect_server(folder) as page:
        yield page.url


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(url)
    yield page
    page.close()


@pytest.mark.parametrize("name", SENDING)
def test_a_document_sends_nothing_anywhere(page: Page, place: Place, name: str) -> None:
    address, crashes = page.url, list[Page]()
    page.on("crash", lambda crashed: crashes.append(crashed))
    call_tool(page, name)
    try:
        expect(page.locator("#app iframe")).to_have_count(1)
        page.wait_for_timeout(1500)  # a browser gives no sign that it sends nothing
    except (AssertionError, Error):
        # Chromium 156 crashes where Connection-Allowlist refuses a connection of WebRTC.
        assert (name, len(crashes)) == ("rtc", 1)
    assert place.received == []
    assert crashes or (page.url, len(page.context.pages)) == (address, 1)


@pytest.mark.parametrize("name", STALLING)
def test_a_document_keeps_the_page_from_nothing(page: Page, name: str) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    call_tool(page, name)
    expect(page.locator("#detail")).to_contain_text("shown")
    if name == "floods":
        expect(page.locator("#app iframe")).to_have_count(0)
        expect(page.locator("#state")).to_contain_text("sent more than 300 messages in a second")
    call_tool(page, "tick")
    expect(page.locator("#detail")).to_contain_text("ticked")
    assert errors == []
