"""A client whose user is asked something: what it declares, answers and refuses.

Source: client/elicitation.
"""

from __future__ import annotations

import socket
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST
from mcpgen_runtime import ClientHandlers, RemoteError, RequestContext, connect, safe_url
from package.client.questioner import KEY, Answers, ask_client

with_forms = pytest.mark.parametrize("revision", revisions_holding("elicitation.result-action"))
with_modes = pytest.mark.parametrize("revision", revisions_holding("elicitation.mode-default-form"))
with_ids = pytest.mark.parametrize(
    "revision", revisions_holding("elicitation.complete-ignore-unknown")
)

ELICIT = "elicitation/create"
FORM: dict[str, Any] = {
    "message": "Which city?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 3},
            "size": {"type": "number"},
        },
        "required": ["city"],
    },
}
URL = "https://x.example/connect?for=1"
PAGE = {"mode": "url", "message": "Go", "url": URL, "elicitationId": "\u00e9 1"}
BOTH: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}


OSLO = {"action": "accept", "content": {"city": "Oslo"}}


class User(Answers):
    """A user who answers as told, and keeps what was completed."""

    def __init__(self, answer: Any = OSLO) -> None:
        super().__init__(answer)
        self.completed: list[str] = []

    elicit = Answers._answer

    async def elicitation_complete(self, params: Any, ctx: RequestContext) -> None:
        self.completed.append(params.elicitation_id)


@pytest.mark.requirement(
    "elicitation.declare-capability-initialize",
    "elicitation.declare-capability-per-request",
    "elicitation.at-least-one-mode",
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_client_declares_what_its_handlers_answer(revision: str) -> None:
    has = revision in revisions_holding("elicitation.result-action")
    user = await ask_client(revision, "roots/list", None, User())
    assert ("elicitation" in user.declared) is has
    nobody = await ask_client(revision, "roots/list", None, ClientHandlers())
    assert "elicitation" not in nobody.declared
    if has:
        more = await ask_client(revision, "roots/list", None, User(), BOTH)
        assert set(more.declared["elicitation"]) == {"form", "url"}
    if revision in PER_REQUEST:
        assert all("elicitation" in each for each in user.declared_each())


@pytest.mark.requirement(
    "elicitation.mode-default-form", "elicitation.mode-may-be-omitted", "elicitation.result-action"
)
@with_forms
async def test_a_question_without_mode_is_a_form(revision: str) -> None:
    user = User()
    outcome = await ask_client(revision, ELICIT, FORM, user)
    assert outcome.answer == {"action": "accept", "content": {"city": "Oslo"}}
    assert user.asked[0].requested_schema.required == ["city"]


@pytest.mark.requirement(
    "elicitation.accept-content",
    "elicitation.result-action",
    "elicitation.content-value-types",
    "elicitation.content-value-types-2025-06",
    "elicitation.validate-both",
    "elicitation.client-validates-form",
)
@with_forms
@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"city": "Os"}},
        {"action": "accept", "content": {"city": 5}},
        {"action": "accept", "content": {"city": "Oslo", "size": "big"}},
        {"action": "accept", "content": {"city": {"name": "Oslo"}}},
        {"action": "accept", "content": {"city": "Oslo", "more": [{"a": 1}]}},
        {"action": "reject"},
        {"content": {"city": "Oslo"}},
        {},
    ],
)
async def test_an_answer_that_is_none_does_not_leave(revision: str, answer: Any) -> None:
    assert (await ask_client(revision, ELICIT, FORM, User(answer))).kept_back


@pytest.mark.requirement("elicitation.content-value-types", "elicitation.accept-content")
@with_forms
@pytest.mark.parametrize("size", [1, 1.5])
async def test_numbers_of_both_kinds_can_be_answered(revision: str, size: float) -> None:
    content = {"city": "Oslo", "size": size, "more": True}
    outcome = await ask_client(
        revision, ELICIT, FORM, User({"action": "accept", "content": content})
    )
    assert outcome.answer["content"] == content


@pytest.mark.requirement(
    "elicitation.content-value-types", "elicitation.content-value-types-2025-06"
)
@with_forms
async def test_a_list_is_a_value_where_the_revision_has_them(revision: str) -> None:
    content = {"city": "Oslo", "tags": ["a", "b"]}
    answer = {"action": "accept", "content": content}
    outcome = await ask_client(revision, ELICIT, FORM, User(answer))
    if revision in revisions_holding("elicitation.content-value-types"):
        assert outcome.answer["content"] == content
    else:
        assert outcome.kept_back


@pytest.mark.requirement("elicitation.content-only-on-accept")
@with_forms
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_content_of_a_declined_form_is_not_sent(revision: str, action: str) -> None:
    answer = {"action": action, "content": {"city": "Oslo"}}
    outcome = await ask_client(revision, ELICIT, FORM, User(answer))
    assert outcome.answer == {"action": action}


@pytest.mark.requirement("elicitation.url-accept-no-content")
@with_modes
async def test_a_user_who_opens_a_page_sends_only_consent(revision: str) -> None:
    user = User({"action": "accept", "content": {"city": "Oslo"}})
    outcome = await ask_client(revision, ELICIT, PAGE, user, BOTH)
    assert outcome.answer == {"action": "accept"}
    assert user.asked[0].url == URL


@pytest.mark.requirement("elicitation.undeclared-mode-error", "elicitation.mode-values")
@with_modes
@pytest.mark.parametrize(
    ("params", "capabilities"),
    [(PAGE, None), (FORM, {"elicitation": {"url": {}}}), ({**FORM, "mode": "popup"}, BOTH)],
)
async def test_a_mode_that_was_not_declared_is_refused(
    revision: str, params: Any, capabilities: Any
) -> None:
    user = User()
    outcome = await ask_client(revision, ELICIT, params, user, capabilities)
    assert outcome.question_refused
    assert user.asked == []


@pytest.mark.requirement("elicitation.url-no-prefetch")
@with_modes
async def test_no_page_is_opened_by_the_client_itself(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    outcome = await ask_client(revision, ELICIT, PAGE, User({"action": "accept"}), BOTH)
    assert outcome.answer == {"action": "accept"}


COMPLETE = "notifications/elicitation/complete"


@pytest.mark.requirement("elicitation.complete-ignore-unknown", "elicitation.id-opaque")
@with_ids
async def test_completion_of_a_page_is_reported_once(revision: str) -> None:
    user = User({"action": "accept"})
    server = FakeServer(revision)
    async with (
        connect(server, revision=revision, handlers=user, capabilities=BOTH) as client,
        anyio.create_task_group() as tasks,
    ):
        await server.notify(COMPLETE, {"elicitationId": "unknown"})
        await server.say({"jsonrpc": "2.0", "id": "q", "method": ELICIT, "params": PAGE})
        await server.next()
        for _ in range(2):
            await server.notify(COMPLETE, {"elicitationId": PAGE["elicitationId"]})
        listed = [{"elicitationId": "from an error", "url": URL, "message": "Go"}, "garbage"]
        error = {"code": -32042, "message": "first", "data": {"elicitations": listed}}

        async def refuse() -> None:
            asked = await server.next()
            await server.say({"jsonrpc": "2.0", "id": asked["id"], "error": error})
            await server.answer(await server.next(), TEXT)

        tasks.start_soon(refuse)
        with pytest.raises(RemoteError):
            await client.call_tool("any")
        for _ in range(2):
            await server.notify(COMPLETE, {"elicitationId": "from an error"})
        await client.call_tool("any")
    assert user.completed == ["\u00e9 1", "from an error"]


@pytest.mark.requirement("elicitation.input-key-echoed")
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_an_answer_stands_under_the_key_of_its_question(revision: str) -> None:
    outcome = await ask_client(revision, ELICIT, FORM, User())
    assert outcome.heard[-1]["params"]["inputResponses"] == {
        KEY: {"action": "accept", "content": {"city": "Oslo"}}
    }


UNSAFE = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "vscode://x.example/open",
    "https://x.example@evil.example/",
    "https://x.example\\@evil.example/",
    "https:evil.example",
    "https://",
    "https://x.example/\x1b[2J",
    "https://\u0435vil.example/",
    "not a url",
]


@pytest.mark.requirement("elicitation.url-valid")
@with_modes
@pytest.mark.parametrize("url", UNSAFE)
async def test_the_user_is_not_asked_to_open_a_harmful_address(revision: str, url: str) -> None:
    user = User({"action": "accept"})
    outcome = await ask_client(revision, ELICIT, {**PAGE, "url": url}, user, BOTH)
    assert outcome.refused
    assert user.asked == []


@with_modes
async def test_a_client_may_open_addresses_of_further_schemes(revision: str) -> None:
    class Editor(User):
        url_schemes = frozenset({"https", "vscode"})

    user = Editor({"action": "accept"})
    page = {**PAGE, "url": "vscode://x.example/open"}
    assert not (await ask_client(revision, ELICIT, page, user, BOTH)).refused
    assert [asked.url for asked in user.asked] == [page["url"]]
    page = {**PAGE, "url": "http://x.example/"}
    assert (await ask_client(revision, ELICIT, page, user, BOTH)).refused


@pytest.mark.parametrize("url", ["https://x.example/a?b=c#d", "HTTP://127.0.0.1:8000/\u00e9"])
def test_an_ordinary_address_is_safe_to_open(url: str) -> None:
    assert safe_url(url)


@pytest.mark.parametrize("url", UNSAFE)
def test_an_address_that_may_do_harm_is_not_safe_to_open(url: str) -> None:
    assert not safe_url(url)
