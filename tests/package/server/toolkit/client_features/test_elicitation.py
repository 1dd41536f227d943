"""A server asks a user by a form: what leaves, who is asked, and what answers become.

Source: client/elicitation.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from kit.respondent import accept_result, connect_respondent, refusal_code, text_in
from kit.rules import revisions_holding
from kit.wire import HANDSHAKE, PER_REQUEST
from mcpgen_runtime import Accepted, Cancelled, Context, Declined, RemoteProtocolError, Server
from mcpgen_runtime.server.toolkit.client_features.elicitation import Answer

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
    server = Server("asking")

    @server.tool()
    async def ask(ctx: Context) -> str:
        try:
            answer: Answer[Any] = await ctx.elicit("Who are you?", form, key="who")
        except RemoteProtocolError as error:
            return f"{error.code} {error}"
        match answer:
            case Accepted(content=content):
                return str(content)
            case Declined():
                return "declined"
            case Cancelled():
                return "cancelled"

    return server


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
    "elicitation.empty-capability-is-form",
    "elicitation.no-undeclared-mode",
    "elicitation.mode-values",
    "elicitation.required-error-only-url",
    "elicitation.no-required-error-2026",
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

    @server.tool()
    async def go_by_request(ctx: Context) -> str:  # of the low-level kind
        page = {"message": "Go", "url": "https://x.example"}
        params = {"mode": "url", **page, "elicitationId": "1"}
        result = await ctx.request("elicitation/create", params)
        return f"{result.action}d"

    capabilities = {} if declared is None else {"elicitation": declared}
    answers = {"elicitation/create": {"action": "decline"}}
    tools = [("ask", "form", forms), ("go", "url", pages)]
    if revision in HANDSHAKE:
        tools.append(("go_by_request", "url", pages))
    async with connect_respondent(server, revision, answers, capabilities) as client:
        for tool, mode, can in tools:
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


@pytest.mark.requirement("elicitation.server-handles-refusal")
@with_forms
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "cancel"}, "cancelled"),
        ({"action": "decline", "content": {"name": 5}}, "declined"),
        ({"action": "accept"}, "name: expected a value, got none"),
        (accept_result(age=36), "name: expected a value, got none"),
        ({"task": TASK}, "-326"),
        ({"action": "reject"}, "-326"),
        ({}, "-326"),
    ],
)
async def test_refusals_are_answers_and_other_answers_are_the_clients_fault(
    revision: str, answer: Any, text: str
) -> None:
    answers = {"elicitation/create": answer}
    async with connect_respondent(asking_server(), revision, answers) as client:
        told = await client.call("ask")
    assert text in (text_in(told) if "result" in told else str(told["error"]["code"]))


@with_forms
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"age": 36.0, "rate": 3}, {"rate": 3.0}),
        ({"born": "1815-12-10"}, {"born": datetime.date(1815, 12, 10)}),
        ({"seen": SEEN.isoformat()}, {"seen": SEEN}),
        ({"mail": "ada@example.org", "site": "https://x.example/a?b", "size": "l"}, None),
        ({"unknown": "x"}, {}),
        (dict.fromkeys(("mail", "site", "born", "seen", "rate", "sure", "size")), {}),
    ],
)
async def test_content_becomes_an_instance_of_the_type(
    revision: str, more: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    person = Person(**GOOD, **(more if expected is None else expected))
    answers = {"elicitation/create": accept_result(**{**GOOD, **more})}
    async with connect_respondent(asking_server(), revision, answers) as client:
        assert text_in(await client.call("ask")) == str(person)


@pytest.mark.requirement("elicitation.validate-both", "elicitation.server-validates-form")
@with_forms
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": "Al"}, "name: expected at least 3 characters, got 2"),
        ({"name": "Ada Lovelace"}, "name: expected at most 5 characters, got 12"),
        ({"name": 5}, "name: expected text"),
        ({"age": 17}, "age: expected at least 18, got 17"),
        ({"age": 36.5}, "age: expected an integer, got 36.5"),
        ({"age": True}, "age: expected a number, got True"),
        ({"mail": "nowhere"}, "mail: expected text of the format email, got 'nowhere'"),
        ({"born": "1815-13-10"}, "born: expected text of the format date, got '1815-13-10'"),
        ({"sure": "yes"}, "sure: expected true or false, got 'yes'"),
        ({"size": "m"}, "size: expected one of s, l, got 'm'"),
    ],
)
async def test_content_that_does_not_fit_is_an_error_that_says_why(
    revision: str, wrong: dict[str, Any], reason: str
) -> None:
    answers = {"elicitation/create": accept_result(**{**GOOD, **wrong})}
    async with connect_respondent(asking_server(), revision, answers) as client:
        text = text_in(await client.call("ask"))
    assert text.startswith("-32602 ")
    assert reason in text


RED = {"const": "#f00", "title": "Red"}
THREE = {"type": "string", "enum": ["Red", "Green", "Blue"]}
CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "one": {"type": "string", "enum": ["Red", "Green"]},
        "titled": {"type": "string", "oneOf": [RED]},
        "many": {"type": "array", "items": THREE, "minItems": 1, "maxItems": 2},
        "titled_many": {"type": "array", "items": {"anyOf": [RED]}},
    },
}


@pytest.mark.requirement(
    "elicitation.enum-untitled-single",
    "elicitation.enum-titled-single",
    "elicitation.enum-untitled-multi",
    "elicitation.enum-titled-multi",
)
@with_modes
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"one": "Red", "titled": "#f00", "many": ["Red", "Green"], "titled_many": ["#f00"]}, ""),
        ({"one": "Blue"}, "one: expected one of Red, Green"),
        ({"many": ["Red", "Green", "Blue"]}, "many: expected at most 2 of the choices, got 3"),
        ({"many": []}, "many: expected at least 1 of the choices, got 0"),
        ({"many": ["Black"]}, "many: expected one of"),
        ({"titled_many": ["Red"]}, "titled_many: expected one of #f00"),
    ],
)
async def test_a_choice_is_one_of_the_values(revision: str, content: Any, reason: str) -> None:
    answers = {"elicitation/create": accept_result(**content)}
    async with connect_respondent(asking_server(CHOICES), revision, answers) as client:
        text = text_in(await client.call("ask"))
    if reason:
        assert reason in text
    else:
        assert text == str(content)
