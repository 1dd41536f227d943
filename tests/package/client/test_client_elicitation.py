"""A client whose user is asked something: what it declares, answers and refuses."""

from __future__ import annotations

import socket
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST
from mcpgen_runtime import ClientHandlers, RemoteError, RequestContext, connect, safe_url
from package.client.questioner import Answers, ask_client

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

    elicit = Answers.reply

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


LISTS = revisions_holding("elicitation.content-value-types")
CONTENTS: list[tuple[dict[str, Any], Any]] = [
    ({"city": "Oslo", "size": 1, "more": True}, ALL),
    ({"city": "Oslo", "size": 1.5}, ALL),
    ({"city": "Oslo", "tags": ["a", "b"]}, LISTS),
    *(
        (wrong, ())
        for wrong in (
            *({}, {"city": "Os"}, {"city": 5}, {"city": "Oslo", "size": "big"}),
            {"city": "Oslo", "more": [{"a": 1}]},
        )
    ),
]


@pytest.mark.requirement(
    "elicitation.mode-default-form",
    "elicitation.mode-may-be-omitted",
    "elicitation.accept-content",
    "elicitation.result-action",
    "elicitation.content-value-types",
    "elicitation.content-value-types-2025-06",
    "elicitation.validate-both",
    "elicitation.client-validates-form",
)
@with_forms
@pytest.mark.parametrize(("content", "accepted"), CONTENTS)
async def test_a_form_is_answered_with_values_that_fit_it(
    revision: str, content: dict[str, Any], accepted: Any
) -> None:
    user = User({"action": "accept", "content": content})
    verdict = (await ask_client(revision, ELICIT, FORM, user)).verdict
    assert verdict == (user.answer if revision in accepted else "kept back")
    assert user.asked[0].requested_schema.required == ["city"]


@pytest.mark.requirement("elicitation.result-action", "elicitation.content-only-on-accept")
@with_forms
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"action": "accept"}, "kept back"),
        ({"content": {"city": "Oslo"}}, "kept back"),
        *(
            ({"action": action, "content": {"city": "Oslo"}}, {"action": action})
            for action in ("decline", "cancel")
        ),
    ],
)
async def test_content_is_sent_with_consent_alone(revision: str, answer: Any, verdict: Any) -> None:
    assert (await ask_client(revision, ELICIT, FORM, User(answer))).verdict == verdict


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
    assert outcome.verdict == "question refused"
    assert user.asked == []


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
    assert not safe_url(url)
    assert safe_url("HTTP://127.0.0.1:8000/\u00e9?b=c#d")


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


@pytest.mark.requirement("elicitation.url-accept-no-content", "elicitation.url-no-prefetch")
@with_modes
async def test_a_user_who_opens_a_page_sends_only_consent_and_the_client_opens_none(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    user = User({"action": "accept", "content": {"city": "Oslo"}})
    outcome = await ask_client(revision, ELICIT, PAGE, user, BOTH)
    assert outcome.answer == {"action": "accept"}
    assert user.asked[0].url == URL
