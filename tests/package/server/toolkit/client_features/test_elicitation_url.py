"""A server sends a user to a web page: the question, the error, and the word that it is done.

Source: client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.respondent import connect_respondent, refusal_code, text_in
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST, speaking_to
from mcpgen_runtime import Context, Server, URLElicitation, URLElicitationRequiredError
from requirements import EVERY_REVISION

WITH_URLS = revisions_holding("elicitation.url-valid")
with_urls = pytest.mark.parametrize("revision", WITH_URLS)
with_ids = pytest.mark.parametrize("revision", revisions_holding("elicitation.id-unique"))
modern = pytest.mark.parametrize("revision", PER_REQUEST)

URL = "https://x.example/connect?for=1"
ACCEPT = {"elicitation/create": {"action": "accept"}}


def asking_server(**settings: Any) -> Server:
    """A server that asks users to go to pages."""
    server = Server("asking", **settings)

    @server.tool()
    async def go(ctx: Context, url: str = URL, id: str | None = None) -> str:
        answer = await ctx.elicit_url("Please connect", url, elicitation_id=id)
        return f"{answer.action} {answer.content}"

    @server.tool()
    async def require(pages: int = 1) -> None:
        wanted = [URLElicitation(f"Page {n}", f"{URL}{n}", f"id{n}") for n in range(pages)]
        if wanted:
            raise URLElicitationRequiredError(*wanted)

    return server


@pytest.mark.requirement(
    "elicitation.url-params-2025-11",
    "elicitation.url-params-2026",
    "elicitation.url-accept-is-consent",
    "elicitation.no-complete-notification-2026",
)
@with_urls
async def test_a_page_is_asked_for_in_the_shape_of_the_revision(revision: str) -> None:
    server = asking_server()
    async with connect_respondent(server, revision, ACCEPT) as client:
        assert text_in(await client.call("go", {"id": "mine"})) == "accept None"
        ((_, params),) = client.asked
        expected = {"mode": "url", "message": "Please connect", "url": URL}
        if revision in PER_REQUEST:
            assert not await server.elicitation_complete("mine")
            await client.end.ask("tools/list")
            assert client.end.heard == []
        else:
            expected["elicitationId"] = "mine"
    assert params == expected


@pytest.mark.requirement("elicitation.no-undeclared-mode", "elicitation.empty-capability-is-form")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("declared", [{}, {"form": {}, "url": {}}])
@pytest.mark.parametrize("tool", ["go", "require"])
async def test_a_client_or_revision_that_opens_no_pages_is_not_asked_to(
    revision: str, declared: Any, tool: str
) -> None:
    capabilities = {"elicitation": {} if revision in WITH_URLS else declared}
    async with connect_respondent(asking_server(), revision, ACCEPT, capabilities) as client:
        error = (await client.call(tool))["error"]
        assert (client.asked, client.rounds) == ([], [])
    assert error["code"] == refusal_code(revision)
    assert "needs the capability elicitation" in error["message"]


@pytest.mark.requirement("elicitation.url-valid")
@with_urls
@pytest.mark.parametrize(
    "url",
    [
        "",
        "mailto:a@b",
        "https://",
        "javascript://x.example/%0aalert(1)",
        "file://x.example/etc/passwd",
        "https://bank.example@evil.example/",
    ],
)
async def test_invalid_urls_are_not_sent(revision: str, url: str) -> None:
    async with connect_respondent(asking_server(show_errors=True), revision, ACCEPT) as client:
        answer = await client.call("go", {"url": url})
        assert client.asked == []
    assert "expected a URL" in text_in(answer)


@pytest.mark.requirement("elicitation.url-https")
@with_urls
@pytest.mark.parametrize(
    ("url", "warns"),
    [(URL, False), ("http://x.example/", True), ("http://localhost:1/", False)],
)
async def test_a_page_that_anyone_can_listen_in_on_is_warned_of(
    revision: str, url: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect_respondent(asking_server(), revision, ACCEPT) as client:
        await client.call("go", {"url": url})
    assert ("expected https" in caplog.text) is warns


@pytest.mark.requirement("elicitation.id-unique")
@with_ids
async def test_each_elicitation_has_an_id_of_its_own(revision: str) -> None:
    server = asking_server(show_errors=True)
    async with connect_respondent(server, revision, ACCEPT) as one:
        for _ in range(100):
            await one.call("go")
        ids = {params["elicitationId"] for _, params in one.asked}
        assert len(ids) == 100
        assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)  # nobody can guess them
        await one.call("go", {"id": "mine"})
        assert text_in(await one.call("go", {"id": "mine"})) == "accept None"
        other = await one.call("go", {"id": "mine", "url": f"{URL}2"})
        assert "is that of another" in text_in(other)
        async with connect_respondent(server, revision, ACCEPT) as two:
            assert "is that of another" in text_in(await two.call("go", {"id": "mine"}))


@pytest.mark.requirement(
    "elicitation.complete-notification",
    "elicitation.complete-only-to-initiator",
    "elicitation.complete-has-id",
)
@with_ids
async def test_the_client_that_was_asked_hears_that_it_is_done(revision: str) -> None:
    server = asking_server()
    async with (
        connect_respondent(server, revision, ACCEPT) as one,
        connect_respondent(server, revision) as two,
    ):
        await one.call("go", {"id": "mine"})
        assert await server.elicitation_complete("mine")
        message = await one.end.receive()
        assert message["method"] == "notifications/elicitation/complete"
        assert message["params"] == {"elicitationId": "mine"}
        assert not await server.elicitation_complete("mine")
        assert not await server.elicitation_complete("unknown")
        await two.end.ask("ping")
        assert two.end.heard == []
        await one.call("go", {"id": "late"})
    await server.elicitation_complete("late")  # its client is gone, which is no error
    assert not await server.elicitation_complete("late")


@with_ids
async def test_the_oldest_of_too_many_elicitations_are_forgotten(revision: str) -> None:
    server = asking_server()
    async with connect_respondent(server, revision, ACCEPT) as client:
        await client.call("require", {"pages": 10_001})
        assert not await server.elicitation_complete("id0")
        assert await server.elicitation_complete("id1")


@pytest.mark.requirement(
    "elicitation.required-error-data",
    "elicitation.required-error-url-mode",
    revisions=EVERY_REVISION,
)
def test_the_error_names_at_least_one_page_and_gives_each_an_id() -> None:
    with pytest.raises(ValueError, match="expected a URL elicitation"):
        URLElicitationRequiredError()
    pages = [URLElicitation("Go", URL, "mine"), *(URLElicitation("Go", URL) for _ in range(2))]
    error = URLElicitationRequiredError(*pages)
    own, one, two = (each["elicitationId"] for each in error.data["elicitations"])
    assert own == "mine"
    assert one != two
    assert re.fullmatch("[0-9a-f]{32}", one)


@pytest.mark.requirement(
    "elicitation.required-error",
    "elicitation.required-error-data",
    "elicitation.required-error-url-mode",
)
@with_ids
async def test_a_request_can_be_refused_until_its_user_visited_a_page(revision: str) -> None:
    server = asking_server()
    async with connect_respondent(server, revision, ACCEPT) as client:
        error = (await client.call("require", {"pages": 2}))["error"]
        assert error["code"] == -32042
        assert error["data"]["elicitations"] == [
            {"mode": "url", "message": f"Page {n}", "url": f"{URL}{n}", "elicitationId": f"id{n}"}
            for n in range(2)
        ]
        assert await server.elicitation_complete("id1")
        assert (await client.end.receive())["params"] == {"elicitationId": "id1"}
        assert (await client.call("require", {"pages": 0}))["result"]["content"] == []


@pytest.mark.requirement("elicitation.no-required-error-2026", "elicitation.url-outcome-by-retry")
@modern
async def test_the_error_for_required_pages_becomes_input_requests(revision: str) -> None:
    server = Server("pages")
    done: list[bool] = []

    @server.tool()
    async def work() -> str:
        if not done:
            raise URLElicitationRequiredError(*(URLElicitation(text, URL) for text in "ab"))
        return "worked"

    params = {"name": "work", "arguments": {}}
    can: dict[str, Any] = {"elicitation": {"url": {}}}
    async with speaking_to(server, revision) as end:
        first = (await end.ask("tools/call", params, capabilities=can))["result"]
        assert first["inputRequests"] == {
            f"elicitation-{number}": {
                "method": "elicitation/create",
                "params": {"mode": "url", "message": text, "url": URL},
            }
            for number, text in ((1, "a"), (2, "b"))
        }
        accepted = {key: {"action": "accept"} for key in first["inputRequests"]}
        again = {**params, "inputResponses": accepted}
        second = await end.ask("tools/call", again, capabilities=can)
        assert second["result"]["resultType"] == "input_required"
        done.append(True)
        assert text_in(await end.ask("tools/call", again, capabilities=can)) == "worked"


@pytest.mark.requirement("elicitation.required-error", "elicitation.no-required-error-2026")
@with_urls
@pytest.mark.parametrize("method", ["completion/complete", "x/own"])
@pytest.mark.parametrize("declared", [{"url": {}}, {"form": {}}])
async def test_other_methods_can_be_refused_with_required_urls(
    revision: str, method: str, declared: dict[str, Any]
) -> None:
    server = Server("others")

    async def refuse() -> Any:
        raise URLElicitationRequiredError(URLElicitation("Go", URL, "mine"))

    @server.completion(prompt="travel", argument="city")
    async def complete(value: str) -> Any:
        await refuse()

    server.add_prompt(lambda city: city, "travel")
    server.method("x/own")(refuse)
    params: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "travel"},
        "argument": {"name": "city", "value": ""},
    }
    async with connect_respondent(server, revision, {}, {"elicitation": declared}) as client:
        error = (await client.ask(method, {} if method == "x/own" else params))["error"]
        begun = await server.elicitation_complete("mine")
    if "form" in declared:
        assert error["code"] == refusal_code(revision)
    else:
        assert error["code"] == (-32603 if revision in PER_REQUEST else -32042)
    assert begun is (revision not in PER_REQUEST and "url" in declared)
