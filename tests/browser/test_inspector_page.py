"""The page of `inspect --web` in headless Chromium, as a user sees and uses it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    ViewportSize,
    expect,
)

from package.inspector.inspected import HOSTILE, inspect_server, write_server

pytestmark = pytest.mark.browser

WIDE = ViewportSize(width=1280, height=800)
NARROW = ViewportSize(width=400, height=800)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a running inspector."""
    folder = tmp_path_factory.mktemp("inspected")
    write_server(folder)
    with inspect_server(folder) as page:
        yield page.url


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """The page, opened anew; it may report no error."""
    page = browser.new_page(viewport=WIDE)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(url)
    yield page
    page.close()
    assert errors == []


def choose_item(page: Page, name: str, kind: str = "Tools") -> Locator:
    """The details of an item of a list."""
    page.get_by_role("button", name=kind).click()
    page.get_by_role("button", name=name).click()
    return page.locator("#detail")


def call(detail: Locator) -> Locator:
    """Press the button; what then shows the result."""
    detail.get_by_role("button", name="Call", exact=True).click()
    return detail.locator("pre").first


def test_a_tool_is_called_with_a_form_of_its_schema(page: Page) -> None:
    detail = choose_item(page, "forecast")
    detail.get_by_label("city").fill("Oslo")
    detail.get_by_role("button", name="Add to tags").click()
    page.keyboard.type("coast")
    detail.get_by_label("unit").select_option(label="imperial")
    expect(detail.get_by_label("days")).to_have_value("3")
    expect(call(detail)).to_have_text("Place(city='Oslo', tags=['coast']) imperial 3")
    rows = page.locator("#wire summary")
    expect(rows.filter(has_text="tools/call")).to_have_count(1)
    expect(rows.filter(has_text="tools/call")).to_contain_text(
        re.compile(r"tools/call forecast\d+ ms$")
    )
    expect(rows.filter(has_text="notifications/progress")).to_contain_text("1 of 2, half")
    page.get_by_role("button", name="Log", exact=True).click()
    expect(page.locator("#log")).to_contain_text("forecast of Oslo")


def test_an_error_is_named_in_the_row_of_its_request(page: Page) -> None:
    detail = choose_item(page, "today", "Resources")
    detail.get_by_label("URI").fill("weather://nowhere")
    detail.get_by_role("button", name="Read", exact=True).click()
    row = page.locator("#wire summary").filter(has_text="resources/read weather://nowhere")
    expect(row.locator(".bad")).to_have_text(re.compile(r"^error -32\d{3}: .*weather://nowhere"))
    row.click()
    body = page.locator("#wire details[open] pre")
    expect(body).to_contain_text('"method": "resources/read"')
    expect(body).to_contain_text('"error": {')


def test_a_session_is_a_trace_that_is_opened_again(page: Page, tmp_path: Path) -> None:
    expect(call(choose_item(page, "hostile"))).to_have_text(HOSTILE)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    path = tmp_path / "session.jsonl"
    download.value.save_as(path)
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert all({"time", "direction", "channel", "pid"} <= record.keys() for record in records)
    live = page.locator("#wire details")
    page.get_by_label("Trace to open").set_input_files(path)
    shown = page.locator("#file details")
    expect(page.get_by_role("button", name="session.jsonl")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(shown.filter(has_text="tools/call hostile").first).to_be_visible()
    expect(live.first).to_be_hidden()
    requests = [record for record in records if "method" in record.get("message", {})]
    expect(shown).to_have_count(len(requests) + sum("error" in record for record in records))
    path.write_text("[]\n", encoding="utf-8")
    page.get_by_label("Trace to open").set_input_files(path)
    expect(page.get_by_role("status")).to_contain_text("line 1: expected a record of a trace")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("button", name="session.jsonl")).to_have_count(0)


def test_a_default_of_null_leaves_a_field_empty(page: Page) -> None:
    detail = choose_item(page, "search")
    detail.get_by_label("word").fill("rain")
    expect(detail.get_by_label("place")).to_have_value("")
    expect(detail.get_by_label("limit")).to_have_value("")
    expect(call(detail)).to_have_text("rain None None")


def test_arguments_may_be_written_as_json(page: Page) -> None:
    detail = choose_item(page, "forecast")
    detail.get_by_label("city").fill("Oslo")
    detail.get_by_role("button", name="Edit as JSON").click()
    raw = detail.get_by_label("Arguments as JSON")
    assert '"city": "Oslo"' in raw.input_value()
    raw.fill('{"place": {"city": "Rome", "tags": []}, "days"}')
    detail.get_by_role("button", name="Call", exact=True).click()
    expect(detail.get_by_role("alert")).to_contain_text("Arguments as JSON")
    raw.fill('{"place": {"city": "Rome", "tags": []}, "days": 5}')
    expect(call(detail)).to_have_text("Place(city='Rome', tags=[]) metric 5")


def test_texts_of_the_server_are_shown_and_never_become_html(page: Page) -> None:
    detail = choose_item(page, "hostile")
    expect(detail.locator("p").first).to_have_text(HOSTILE)
    expect(call(detail)).to_have_text(HOSTILE)
    expect(page.locator("#name")).to_have_text(HOSTILE)
    assert page.title() == f"{HOSTILE} - MCP inspector"
    assert page.locator("img, body script:not([nonce])").count() == 0


def test_the_policy_of_the_page_runs_no_script_but_its_own(browser: Browser, url: str) -> None:
    page = browser.new_page()
    page.goto(url)
    for refused in (
        "async () => { document.body.innerHTML = '<b></b>' }",
        "async () => { document.createElement('script').text = '1' }",
        "() => fetch('data:,')",
    ):
        failure = page.evaluate(f"({refused})().then(() => 'done', (error) => error.name)")
        assert failure == "TypeError", refused
    page.close()


def test_questions_of_the_server_are_answered_by_hand(page: Page) -> None:
    detail = choose_item(page, "book")
    result = call(detail)
    question = page.locator(".question")
    expect(question.locator("p").first).to_have_text(HOSTILE)
    question.get_by_label("row").fill("12")
    question.get_by_label("window").check()
    question.get_by_role("button", name="Accept").click()
    expect(result).to_contain_text("Seat(row=12, window=True)")
    result = call(choose_item(page, "poem"))
    question.get_by_label("Answer of the model").fill("roses")
    question.get_by_role("button", name="Answer").click()
    expect(result).to_have_text("roses")
    result = call(detail)
    question.get_by_role("button", name="Refuse").click()
    expect(result).to_contain_text("the user refused")
    expect(question).to_have_count(0)


def test_a_call_can_be_cancelled(page: Page) -> None:
    detail = choose_item(page, "wait")
    result = call(detail)
    detail.get_by_role("button", name="Cancel").click()
    expect(result).to_have_text("cancelled")
    expect(page.locator("#wire")).to_contain_text("notifications/cancelled")


def test_lists_are_loaded_again_when_they_change(page: Page) -> None:
    expect(page.get_by_role("button", name="grown")).to_have_count(0)
    call(choose_item(page, "grow"))
    expect(page.get_by_role("button", name="grown")).to_be_visible()


def test_prompts_and_templates_have_forms_with_completion(page: Page) -> None:
    detail = choose_item(page, "ask", "Prompts")
    detail.get_by_label("city").fill("O")
    options = detail.locator("datalist option")
    expect(options).to_have_count(2)
    assert options.evaluate_all("nodes => nodes.map((node) => node.value)") == ["Oslo", "Ottawa"]
    detail.get_by_role("button", name="Get").click()
    expect(detail.locator("pre").first).to_have_text("How is O?")
    detail = choose_item(page, "today", "Resources")
    detail.get_by_label("city").fill("Oslo \u00e9")
    expect(detail.get_by_label("URI")).to_have_value("weather://Oslo%20%C3%A9/today")
    detail.get_by_role("button", name="Read", exact=True).click()
    expect(detail.locator("pre").first).to_have_text("sun in Oslo \u00e9")


def test_another_revision_is_spoken_on_request(page: Page) -> None:
    page.get_by_label("Revision").select_option("2024-11-05")
    expect(page.get_by_role("status")).to_have_text("1.0, revision 2024-11-05")
    expect(call(choose_item(page, "hostile"))).to_have_text(HOSTILE)
    page.get_by_label("Revision").select_option("")
    expect(page.get_by_role("status")).to_contain_text("revision 2026")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_fits_and_is_readable(
    page: Page, scheme: str, size: ViewportSize, tmp_path: Path
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size(size)
    call(choose_item(page, "search"))
    detail = choose_item(page, "forecast")
    detail.get_by_label("city").fill("Oslo")
    expect(call(detail)).to_contain_text("Oslo")
    choose_item(page, "today", "Resources")
    page.get_by_label("URI").fill("weather://nowhere")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(page.locator("#wire")).to_contain_text("error -32")
    choose_item(page, "forecast")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate(CONTRAST) >= 4.5
    folder = Path(os.environ.get("MCP_SCREENSHOTS", tmp_path))
    page.screenshot(path=folder / f"{scheme}-{size['width']}.png", full_page=True)


CONTRAST = (Path(__file__).parent / "documents" / "contrast.js").read_text("utf-8")
"""The least contrast of the colors of text with what they stand on; WCAG asks for 4.5."""


def test_everything_can_be_done_by_keyboard(page: Page) -> None:
    choose_item(page, "grow").get_by_role("button", name="Call", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#detail pre").first).to_have_text("ok")
    page.get_by_label("Filter the list").focus()
    page.keyboard.type("host")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#detail h2")).to_have_text("hostile")
