"""The page of `inspect --web` without a browser: who may use it, and what its requests do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.asgi.settings import Limits
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


REFUSED: dict[str, dict[str, Any]] = {
    "no token": {"Authorization": ""},
    "another token": {"Authorization": "Bearer " + "x" * 32},
    "a name that leads here": {"Host": "attacker.example"},
    "another name of loopback": {"Host": "localhost"},
    "a page of another site": {"Origin": "https://attacker.example"},
    "a page of another local server": {"Origin": "http://127.0.0.1:8000"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_nobody_else_can_use_the_session(page: Page, case: str) -> None:
    action = ("POST", "/actions/request", {"method": "list_tools", "call": 1})
    assert page.ask(*action)[0] == 200
    assert page.ask(*action, **REFUSED[case])[0] == 403
    assert page.ask("GET", "/events", **REFUSED[case])[0] == 403


def test_a_form_of_another_page_can_send_no_action(page: Page) -> None:
    plain = {"Content-Type": "text/plain"}
    assert page.ask("POST", "/actions/request", {"method": "list_tools"}, **plain)[0] == 415


def test_an_action_of_unknown_length_is_read_up_to_a_limit(page: Page) -> None:
    pieces = (b" " * 2**16 for _ in range(Limits().body // 2**16 + 9))
    assert page.ask_in_pieces("/actions/request", pieces) == (413, "close")


def test_the_page_needs_the_token_in_its_url(page: Page) -> None:
    assert page.ask("GET", "/")[0] == 403
    assert page.ask("GET", "/elsewhere")[0] == 404


def test_requests_of_the_page_reach_the_server(page: Page) -> None:
    tools = page.act("request", method="list_tools", call=1)
    assert [tool["name"] for tool in tools][:2] == ["forecast", "hostile"]
    params = {"name": "forecast", "arguments": {"place": {"city": "Oslo", "tags": []}}}
    result = page.act("request", method="call_tool", params=params, call=7)
    assert result["content"][0]["text"] == "Place(city='Oslo', tags=[]) metric 3"
    progress = page.event("progress", call=7)
    assert (progress["progress"], progress["total"]) == (1, 2)
    sent = page.event("wire", direction="sent")
    assert sent["message"]["method"] in ("server/discover", "initialize")


@contextmanager
def call_in_background(page: Page, tool: str, call: int) -> Iterator[list[Any]]:
    """Call a tool while the body runs; the answer is in the list after it."""
    answers: list[Any] = []

    def run() -> None:
        answers.append(page.act("request", method="call_tool", params={"name": tool}, call=call))

    thread = Thread(target=run)
    thread.start()
    yield answers
    thread.join()


def test_a_question_of_the_server_is_answered_by_the_page(page: Page) -> None:
    with call_in_background(page, "poem", 8) as answers:
        question = page.event("question", method="sampling/createMessage")
        answer = {"role": "assistant", "content": {"type": "text", "text": "roses"}, "model": "me"}
        page.act("answer", id=question["id"], result=answer)
    assert answers[0]["content"][0]["text"] == "roses"
    again = page.act("answer", id=question["id"], result=answer)
    assert again["text"] == "the question was answered or withdrawn"


def test_a_question_can_be_refused(page: Page) -> None:
    after = page.last()
    with call_in_background(page, "poem", 9) as answers:
        question = page.event("question", after)
        page.act("answer", id=question["id"], result=None)
        page.event("answered", after, id=question["id"])
    assert "the user refused" in str(answers[0])


WRONG = {
    "an unknown action": ("explode", {}, "expected one of request, app, answer"),
    "another method of the client": ("request", {"method": "close", "call": 1}, "expected one of"),
    "params that do not fit": (
        "request",
        {"method": "read_resource", "params": {"url": "x"}, "call": 1},
        "unexpected keyword",
    ),
    "an unknown tool": (
        "request",
        {"method": "call_tool", "params": {"name": "nothing"}, "call": 1},
        "nothing",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_failed_actions_are_errors_for_the_page(page: Page, case: str) -> None:
    action, members, expected = WRONG[case]
    assert expected in page.act(action, **members)["text"]


def test_a_changed_list_and_an_updated_resource_are_events(page: Page) -> None:
    page.act("request", method="call_tool", params={"name": "grow"}, call=1)
    assert page.event("changed")["lists"] == ["tools"]
    page.act("follow", uri="weather://Oslo/today")
    page.act("request", method="call_tool", params={"name": "rain"}, call=1)
    assert page.event("updated")["uri"] == "weather://Oslo/today"
    after = page.last()
    page.act("unfollow", uri="weather://Oslo/today")
    page.event("wire", after, direction="sent")


def test_a_server_that_is_not_there_is_shown_and_tried_again(tmp_path: Path) -> None:
    with inspect_server(tmp_path) as page:
        failed = page.event("state", state="failed")
        assert "demo" in failed["error"]
        assert "no session" in page.act("request", method="list_tools", call=1)["text"]
        write_server(tmp_path)
        page.act("connect")
        page.event("state", state="open")
