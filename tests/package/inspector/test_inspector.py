"""The page of `inspect --web` without a browser: who may use it, and what its requests do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpgen_runtime import REVISIONS
from mcpgen_runtime.__main__ import main
from package.inspector.inspected import Page, inspect_server, write_server

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


def test_a_server_that_is_not_there_is_shown_and_tried_again(tmp_path: Path) -> None:
    with inspect_server(tmp_path) as page:
        failed = page.event("state", state="failed")
        assert "demo" in failed["error"]
        assert "no session" in page.act("request", method="list_tools", call=1)["text"]
        write_server(tmp_path)
        page.act("connect")
        page.event("state", state="open")
