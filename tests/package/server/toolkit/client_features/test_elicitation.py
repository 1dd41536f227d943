"""A server asks a user by a form: what leaves, who is asked, and what answers become."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from kit.live import server_with
from kit.respondent import accept_result, connect_respondent, refusal_code
from kit.rules import revisions_holding
from kit.wire import PER_REQUEST, every, modern, speaking_to, text_in
from mcpgen_runtime import (
    Accepted,
    Cancelled,
    Context,
    Declined,
    RemoteProtocolError,
    Server,
    URLElicitation,
    URLElicitationRequiredError,
)
from package.tables import table

with_forms = pytest.mark.parametrize("revision", revisions_holding("elicitation.message-required"))
with_modes = pytest.mark.parametrize("revision", revisions_holding("elicitation.mode-values"))


@dataclass
class Person:
    """A form with a field of each kind."""

    name: Annotated[str, Meta(min_length=3, max_length=5)]
    age: Annotated[int, Meta(ge=18)]
    mail: Annotated[str, Meta(extra_json_schema={"format": "email"})] = "a@b"
    site: Annotated[str, Meta(extra_json_schema={"format": "uri"})] = "x:y"
    born: datetime.date | None = None
    seen: datetime.datetime | None = None
    rate: float = 1.0
    sure: bool = False
    size: Literal["s", "l"] = "s"


def asking_server(form: Any = Person) -> Server:
    """A server whose tool tells what its question came to."""

    async def ask(ctx: Context) -> str:
        try:
            answer: Accepted[Any] | Declined | Cancelled
            answer = await ctx.elicit("Who are you?", form, key="who")
        except RemoteProtocolError as error:
            return f"{error.code} {error}"
        match answer:
            case Accepted(content=content):
                return str(content)
            case Declined():
                return "declined"
            case Cancelled():
                return "cancelled"

    return server_with(ask)


@pytest.mark.requirement(
    "elicitation.standalone-request",
    "elicitation.request-shape-2025-06",
    "elicitation.message-required",
    "elicitation.form-params",
    "elicitation.via-mrtr",
)
@with_forms
async def test_the_question_is_a_request_in_a_session_or_part_of_a_result(revision: str) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = {"message": "Who are you?", "requestedSchema": form}
    answers = {"elicitation/create": accept_result(name="Ada")}
    async with connect_respondent(asking_server(form), revision, answers) as client:
        assert text_in(await client.call("ask")) == "{'name': 'Ada'}"
        assert client.asked == [("elicitation/create", asked)]
        assert [round["inputRequests"] for round in client.rounds] == (
            [{"who": {"method": "elicitation/create", "params": asked}}]
            if revision in PER_REQUEST
            else []
        )


@pytest.mark.requirement(
    "elicitation.mode-values",
    "elicitation.required-error-only-url",
    "elicitation.empty-capability-is-form",
)
@with_modes
@pytest.mark.parametrize(
    ("declared", "forms", "pages"),
    [
        ({}, True, False),
        ({"form": {}}, True, False),
        ({"form": {}, "url": {}}, True, True),
        ({"url": {}}, False, True),
        (None, False, False),
    ],
)
async def test_a_question_is_sent_to_clients_that_show_its_mode(
    revision: str, declared: Any, forms: bool, pages: bool
) -> None:
    server = asking_server()

    @server.tool()
    async def go(ctx: Context) -> str:
        return f"{(await ctx.elicit_url('Please connect', 'https://x.example')).action}d"

    capabilities = {} if declared is None else {"elicitation": declared}
    answers = {"elicitation/create": {"action": "decline"}}
    async with connect_respondent(server, revision, answers, capabilities) as client:
        for tool, mode, can in (("ask", "form", forms), ("go", "url", pages)):
            answer = await client.call(tool)
            modes = [params.get("mode", "form") for _, params in client.asked]
            client.asked.clear()
            assert modes == ([mode] if can else [])
            if can:
                assert text_in(answer) == "declined"
            else:
                assert answer["error"]["code"] == refusal_code(revision)
                assert "elicitation" in answer["error"]["data"]["requiredCapabilities"]


GOOD: dict[str, Any] = {"name": "Ada", "age": 36}
SEEN = datetime.datetime(1815, 12, 10, 1, 2, 3, tzinfo=datetime.UTC)
TASK = {
    "taskId": "1",
    "status": "working",
    "ttl": None,
    **dict.fromkeys(("createdAt", "lastUpdatedAt"), "2025-01-01T00:00:00Z"),
}


def filled(content: dict[str, Any], **more: Any) -> tuple[Any, str]:
    """A row: an answer with more content than has to be, and the person that it becomes."""
    return accept_result(**GOOD, **content), f"^{re.escape(str(Person(**GOOD, **more)))}$"


def wrong(reason: str, **content: Any) -> tuple[Any, str]:
    """A row: an answer with content that does not fit, and what the error says."""
    return accept_result(**{**GOOD, **content}), f"^-32602 .*{re.escape(reason)}"


CONTACT = {"mail": "ada@example.org", "site": "https://x.example/a?b", "size": "l"}


@pytest.mark.requirement(
    "elicitation.server-handles-refusal",
    "elicitation.validate-both",
    "elicitation.server-validates-form",
)
@with_forms
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "cancel"}, "^cancelled$"),
        ({"action": "decline", "content": {"name": 5}}, "^declined$"),
        ({"action": "accept"}, "name: expected a value, got none"),
        (accept_result(age=36), "name: expected a value, got none"),
        ({"task": TASK}, "-326"),
        ({"action": "reject"}, "-326"),
        ({}, "-326"),
        filled({}),
        filled({"rate": 3}, rate=3.0),
        filled({"born": "1815-12-10"}, born=datetime.date(1815, 12, 10)),
        filled({"seen": SEEN.isoformat()}, seen=SEEN),
        filled(CONTACT, **CONTACT),
        filled({"unknown": "x"}),
        filled(dict.fromkeys(("mail", "site", "born", "seen", "rate", "sure", "size"))),
        (accept_result(name="Ada", age=36.0), "age=36,"),
        wrong("name: expected at least 3 characters, got 2", name="Al"),
        wrong("name: expected at most 5 characters, got 12", name="Ada Lovelace"),
        wrong("name: expected text", name=5),
        wrong("age: expected at least 18, got 17", age=17),
        wrong("age: expected an integer, got 36.5", age=36.5),
        wrong("age: expected a number, got True", age=True),
        wrong("mail: expected text of the format email, got 'nowhere'", mail="nowhere"),
        wrong("born: expected text of the format date, got '1815-13-10'", born="1815-13-10"),
        wrong("sure: expected true or false, got 'yes'", sure="yes"),
        wrong("size: expected one of s, l, got 'm'", size="m"),
    ],
)
async def test_an_answer_is_an_instance_of_the_type_a_refusal_or_an_error_that_says_why(
    revision: str, answer: Any, told: str
) -> None:
    answers = {"elicitation/create": answer}
    async with connect_respondent(asking_server(), revision, answers) as client:
        said = await client.call("ask")
    assert re.search(told, text_in(said) if "result" in said else str(said["error"]["code"]))


CHOICES = table("elicitation_choices")
"""A form with choices, and answers: an answer that fits has no reason to be refused."""


@with_modes
@pytest.mark.parametrize("case", CHOICES["answers"].values(), ids=CHOICES["answers"])
async def test_a_choice_is_one_of_the_values(revision: str, case: dict[str, Any]) -> None:
    content, reason = case["content"], case["reason"]
    answers = {"elicitation/create": accept_result(**content)}
    async with connect_respondent(asking_server(CHOICES["form"]), revision, answers) as client:
        text = text_in(await client.call("ask"))
    if reason:
        assert reason in text
    else:
        assert text == str(content)


WITH_URLS = revisions_holding("elicitation.url-valid")
with_urls = pytest.mark.parametrize("revision", WITH_URLS)
with_ids = pytest.mark.parametrize("revision", revisions_holding("elicitation.id-unique"))

URL = "https://x.example/connect?for=1"
ACCEPT = {"elicitation/create": {"action": "accept"}}


def page_server(**settings: Any) -> Server:
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

    async def complete(value: str) -> list[str]:
        raise URLElicitationRequiredError(URLElicitation("Go", URL))

    server.add_prompt(lambda city: city, "travel")
    server.completion(prompt="travel", argument="city")(complete)

    @server.method("x/own")
    async def own() -> None:
        await require()

    return server


@pytest.mark.requirement(
    "elicitation.url-params-2025-11",
    "elicitation.url-params-2026",
    "elicitation.url-accept-is-consent",
    "elicitation.no-complete-notification-2026",
)
@with_urls
async def test_a_page_is_asked_for_in_the_shape_of_the_revision(revision: str) -> None:
    server = page_server()
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


@pytest.mark.requirement("elicitation.no-undeclared-mode")
@every
@pytest.mark.parametrize("declared", [{}, {"form": {}, "url": {}}])
@pytest.mark.parametrize("tool", ["go", "require"])
async def test_a_client_or_revision_that_opens_no_pages_is_not_asked_to(
    revision: str, declared: Any, tool: str
) -> None:
    capabilities = {"elicitation": {} if revision in WITH_URLS else declared}
    async with connect_respondent(page_server(), revision, ACCEPT, capabilities) as client:
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
    async with connect_respondent(page_server(show_errors=True), revision, ACCEPT) as client:
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
    async with connect_respondent(page_server(), revision, ACCEPT) as client:
        await client.call("go", {"url": url})
    assert ("expected https" in caplog.text) is warns


@pytest.mark.requirement("elicitation.id-unique")
@with_ids
async def test_each_elicitation_has_an_id_of_its_own(revision: str) -> None:
    server = page_server(show_errors=True)
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
    server = page_server()
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
    server = page_server()
    async with connect_respondent(server, revision, ACCEPT) as client:
        await client.call("require", {"pages": 10_001})
        assert not await server.elicitation_complete("id0")
        assert await server.elicitation_complete("id1")


@pytest.mark.requirement(
    "elicitation.required-error-data",
    "elicitation.required-error-url-mode",
    "elicitation.required-error",
)
@with_ids
async def test_a_request_can_be_refused_until_its_user_visited_a_page(revision: str) -> None:
    server = page_server()
    async with connect_respondent(server, revision, ACCEPT) as client:
        error = (await client.call("require", {"pages": 2}))["error"]
        assert error["code"] == -32042
        with pytest.raises(ValueError, match="expected a URL elicitation"):
            URLElicitationRequiredError()
        assert error["data"]["elicitations"] == [
            {"mode": "url", "message": f"Page {n}", "url": f"{URL}{n}", "elicitationId": f"id{n}"}
            for n in range(2)
        ]
        assert await server.elicitation_complete("id1")
        assert (await client.end.receive())["params"] == {"elicitationId": "id1"}
        assert (await client.call("require", {"pages": 0}))["result"]["content"] == []


@with_urls
@pytest.mark.parametrize("mode", ["form", "url"])
async def test_other_methods_are_refused_for_pages_as_well(revision: str, mode: str) -> None:
    ref = {"type": "ref/prompt", "name": "travel"}
    completion = {"ref": ref, "argument": {"name": "city", "value": ""}}
    code = -32603 if revision in PER_REQUEST else -32042
    async with connect_respondent(page_server(), revision, {}, {"elicitation": {mode: {}}}) as one:
        for method, params in (("completion/complete", completion), ("x/own", {})):
            error = (await one.ask(method, params))["error"]
            assert error["code"] == (code if mode == "url" else refusal_code(revision))


@pytest.mark.requirement("elicitation.url-outcome-by-retry", "elicitation.no-required-error-2026")
@modern
async def test_the_error_for_required_pages_becomes_input_requests(revision: str) -> None:
    done: list[bool] = []

    async def work() -> str:
        if not done:
            raise URLElicitationRequiredError(*(URLElicitation(text, URL) for text in "ab"))
        return "worked"

    params = {"name": "work", "arguments": {}}
    can: dict[str, Any] = {"elicitation": {"url": {}}}
    async with speaking_to(server_with(work), revision) as end:
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
