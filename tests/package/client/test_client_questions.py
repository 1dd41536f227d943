"""A client that is asked for roots, a model or its user: what it declares, answers and refuses."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, live, server_with, text_of
from kit.respondent import ASK, HI, ROOTS, SAMPLED, TOOL, USE, connect_respondent, refusal_code
from kit.rules import revisions_holding
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, every, legacy, modern, text_in
from mcpgen_runtime import (
    ClientHandlers,
    Context,
    LocalProtocolError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestContext,
    Root,
    connect,
    safe_url,
)

KEY = "the key"


class Answers(ClientHandlers):
    """Gives one answer to each question, or raises it, and keeps the questions."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def reply(self, params: Any, ctx: Any) -> Any:
        """Keep a question, and answer it."""
        self.asked.append(params)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass(frozen=True)
class Outcome:
    """A client's reaction to a question."""

    answer: Any
    code: int | None
    raised: Exception | None
    heard: list[dict[str, Any]]
    opening: list[dict[str, Any]]

    @property
    def refused(self) -> bool:
        """Whether it did not answer, whichever way it said so."""
        return self.answer is None

    @property
    def verdict(self) -> Any:
        """Its answer; else whether it refused the question, or kept an answer back."""
        if self.answer is not None:
            return self.answer
        if self.code == -32602 or isinstance(self.raised, RemoteProtocolError):
            return "question refused"
        kept_back = self.code == -32603 or isinstance(self.raised, LocalProtocolError)
        return "kept back" if kept_back else "failed"

    @property
    def declared(self) -> dict[str, Any]:
        """Capabilities that it declared when it opened the session."""
        params = self.opening[0]["params"]
        if "capabilities" in params:
            capabilities: dict[str, Any] = params["capabilities"]
            return capabilities
        return self.declared_each()[0]

    def declared_each(self) -> list[dict[str, Any]]:
        """Capabilities that it declared with each request, where requests declare them."""
        key = "io.modelcontextprotocol/clientCapabilities"
        return [each["params"]["_meta"][key] for each in [*self.opening, *self.heard]]


async def ask_client(
    revision: str,
    method: str,
    params: Any,
    handlers: ClientHandlers | None,
    capabilities: dict[str, Any] | None = None,
) -> Outcome:
    """Ask a client with these handlers; `params` may be `None` for none."""
    server = FakeServer(revision)
    opening = connect(server, revision=revision, handlers=handlers, capabilities=capabilities)
    asked: dict[str, Any] = {"method": method}
    if params is not None:
        asked["params"] = params
    async with opening as client:
        if revision in PER_REQUEST:
            return await _by_result(server, client, asked)
        await server.say({"jsonrpc": "2.0", "id": "asked", **asked})
        told = await server.next()
        assert told["id"] == "asked"
        code = told.get("error", {}).get("code")
        return Outcome(told.get("result"), code, None, server.heard, server.opening)


async def _by_result(server: FakeServer, client: Any, asked: dict[str, Any]) -> Outcome:
    raised: list[Exception] = []
    answers: list[Any] = []

    async def call() -> None:
        try:
            await client.call_tool("any")
        except Exception as error:
            raised.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        wanted = {"resultType": "input_required", "inputRequests": {KEY: asked}}
        await server.answer(await server.next(), wanted)
        retry = await server.next()
        answers.append(retry["params"]["inputResponses"][KEY])
        await server.answer(retry, TEXT)
    return Outcome(
        answers[0] if answers else None,
        None,
        raised[0] if raised else None,
        server.heard,
        server.opening,
    )


with_tools = pytest.mark.parametrize("revision", revisions_holding("sampling.tools-capability"))
PLAIN: dict[str, Any] = {"messages": [HI], "maxTokens": 5}
CAN: dict[str, Any] = {"sampling": {"tools": {}}}


class Model(Answers):
    """A model that answers as told."""

    def __init__(self, answer: Any = SAMPLED) -> None:
        super().__init__(answer)

    create_message = Answers.reply


@pytest.mark.requirement(
    "sampling.declare-capability-initialize", "sampling.declare-capability-per-request"
)
@every
async def test_a_client_declares_that_it_has_a_model(revision: str) -> None:
    assert (await ask_client(revision, ASK, PLAIN, Model())).declared["sampling"] == {}
    nobody = await ask_client(revision, "roots/list", None, ClientHandlers())
    assert "sampling" not in nobody.declared
    if revision in PER_REQUEST:
        each_request = (await ask_client(revision, ASK, PLAIN, Model())).declared_each()
        assert each_request == [{"sampling": {}}] * 3


WITH_MODEL = {**SAMPLED, "stopReason": "content_filter"}
SOUND = {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"}
IMAGE = {"type": "image", "data": "AAEC"}
LINK = {"type": "resource_link", "uri": "x:y", "name": "n"}
SEVERAL = [HI["content"], HI["content"]]


@pytest.mark.requirement(
    "sampling.result-required-fields",
    "sampling.request-required-fields",
    "sampling.message-role",
    "sampling.stop-reason-open",
    "sampling.image-audio-encoding",
)
@every
@pytest.mark.parametrize(
    ("params", "answer", "verdict"),
    [
        (PLAIN, WITH_MODEL, WITH_MODEL),
        (PLAIN, {"role": "assistant", "content": HI["content"]}, "kept back"),
        (PLAIN, {"role": "assistant", "model": "m"}, "kept back"),
        (PLAIN, {"content": HI["content"], "model": "m"}, "kept back"),
        (PLAIN, {**SAMPLED, "role": "system"}, "kept back"),
        (PLAIN, {**SAMPLED, "content": IMAGE}, "kept back"),
        ({"messages": [HI]}, SAMPLED, "question refused"),
        ({"maxTokens": 5}, SAMPLED, "question refused"),
        ({**PLAIN, "messages": [{**HI, "role": "system"}]}, SAMPLED, "question refused"),
        ({**PLAIN, "messages": [{**HI, "content": IMAGE}]}, SAMPLED, "question refused"),
    ],
)
async def test_questions_and_answers_have_their_members(
    revision: str, params: Any, answer: Any, verdict: Any
) -> None:
    model = Model(answer)
    assert (await ask_client(revision, ASK, params, model)).verdict == verdict
    assert len(model.asked) == (verdict != "question refused")


@pytest.mark.requirement(
    "sampling.content-types-2024",
    "sampling.content-types-audio",
    "sampling.image-audio-encoding",
    "sampling.content-array-not-before-2025-11",
    "sampling.content-types-tools",
)
@every
@pytest.mark.parametrize(
    ("content", "known"),
    [
        (SOUND, set(ALL) - set(revisions_holding("sampling.content-types-2024"))),
        (SEVERAL, set(revisions_holding("sampling.tools-capability"))),
        (LINK, set()),
    ],
    ids=["sound", "several blocks", "a link"],
)
async def test_content_is_of_the_kinds_that_the_revision_has(
    revision: str, content: Any, known: set[str]
) -> None:
    params = {**PLAIN, "messages": [{"role": "user", "content": content}]}
    answer = {**SAMPLED, "content": content}
    verdicts = [
        (await ask_client(revision, ASK, params, Model())).verdict,
        (await ask_client(revision, ASK, PLAIN, Model(answer))).verdict,
    ]
    expected = [SAMPLED, answer] if revision in known else ["question refused", "kept back"]
    assert verdicts == expected


def used(speaker: str, *content: Any) -> dict[str, Any]:
    """A conversation of which this is the last message."""
    uses = [] if speaker == "assistant" else [{"role": "assistant", "content": USE}]
    return {**PLAIN, "messages": [HI, *uses, {"role": speaker, "content": [*content]}]}


RESULT = {"type": "tool_result", "toolUseId": "u1", "content": []}
TOOLS: list[tuple[Any, Any, Any]] = [
    (PLAIN, SAMPLED, SAMPLED),
    *(
        (PLAIN, {**SAMPLED, "content": content}, {**SAMPLED, "content": content})
        for content in (USE, [USE])
    ),
    *(
        (PLAIN, {**SAMPLED, **wrong}, "kept back")
        for wrong in (
            {"content": [{**USE, "input": "x"}]},
            {"content": [{name: value for name, value in USE.items() if name != "id"}]},
            {"content": [{name: value for name, value in USE.items() if name != "name"}]},
            {"role": "user", "content": [USE]},
        )
    ),
    *(
        (params, SAMPLED, "question refused")
        for params in (used("assistant", USE), used("user", USE), used("user", HI["content"]))
    ),
    (used("user", RESULT, HI["content"]), SAMPLED, "question refused"),
    (used("user", RESULT), SAMPLED, SAMPLED),
]


@pytest.mark.requirement(
    "sampling.tools-capability",
    "sampling.reject-undeclared-tools",
    "sampling.reject-undeclared-tools-2026",
    "sampling.tool-use-shape",
    "sampling.tool-roles",
    "sampling.error-tool-result-missing",
    "sampling.error-mixed-content",
    "sampling.validate-content",
)
@with_tools
@pytest.mark.parametrize(("params", "answer", "verdict"), TOOLS)
async def test_a_model_uses_tools_that_it_declared_in_messages_that_fit(
    revision: str, params: Any, answer: Any, verdict: Any
) -> None:
    model = Model(answer)
    outcome = await ask_client(revision, ASK, {**params, "tools": [TOOL]}, model, CAN)
    assert (outcome.declared["sampling"], outcome.verdict) == ({"tools": {}}, verdict)
    assert [asked.tools[0].name for asked in model.asked] == ["clock"] * len(model.asked)
    assert len(model.asked) == (verdict != "question refused")
    for more in ({"tools": [TOOL]}, {"toolChoice": {"mode": "auto"}}):
        undeclared = await ask_client(revision, ASK, {**PLAIN, **more}, silent := Model())
        assert (undeclared.verdict, silent.asked) == ("question refused", [])


@pytest.mark.requirement("sampling.include-context-default", "sampling.tool-choice-default")
@with_tools
@pytest.mark.parametrize("choice", [{}, {"toolChoice": {}}])
async def test_absent_members_have_the_defaults_of_the_revision(revision: str, choice: Any) -> None:
    model = Model()
    await ask_client(revision, ASK, {**PLAIN, "tools": [TOOL], **choice}, model, CAN)
    await ask_client(revision, ASK, PLAIN, model)
    with_choice, without = model.asked
    assert (with_choice.include_context, with_choice.tool_choice.mode) == ("none", "auto")
    assert (without.include_context, without.tool_choice) == ("none", None)


@pytest.mark.requirement("sampling.error-user-rejected", "sampling.no-error-replay-2026")
@every
async def test_a_user_can_refuse(revision: str) -> None:
    refusal = ProtocolError("rejected by the user", code=-1)
    outcome = await ask_client(revision, ASK, PLAIN, Model(refusal))
    assert outcome.refused
    if revision in PER_REQUEST:
        assert outcome.raised is refusal
        assert len(outcome.heard) == 1
    else:
        assert outcome.code == -1


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


LIST = "roots/list"
CHANGED = "notifications/roots/list_changed"


class Provider(ClientHandlers):
    """Gives these roots; `None` for a failure."""

    def __init__(self, *uris: str, **more: Any) -> None:
        self.roots: Any = [{"uri": uri, **more} for uri in uris]

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        if self.roots is None:
            raise LookupError("mine")
        return {"roots": self.roots}


async def ask(ctx: Context) -> str:
    roots = await ctx.list_roots(key="where")
    return " ".join(f"{root.uri} {root.name}" for root in roots)


@pytest.mark.requirement(
    "roots.declare-capability-initialize",
    "roots.declare-capability-per-request",
    "roots.list-changed-flag",
)
@every
async def test_a_client_declares_that_it_has_roots(revision: str) -> None:
    provider = Provider("file:///a")
    assert (await ask_client(revision, LIST, None, provider)).declared["roots"] == {}
    nobody = await ask_client(revision, LIST, None, ClientHandlers(), {"sampling": {}})
    assert "roots" not in nobody.declared
    flag = {"roots": {"listChanged": True}}
    declared = (await ask_client(revision, LIST, None, provider, flag)).declared["roots"]
    assert declared == ({"listChanged": True} if revision in HANDSHAKE else {})
    if revision in PER_REQUEST:
        each_request = (await ask_client(revision, LIST, None, provider, flag)).declared_each()
        assert each_request == [{"roots": {}}] * 3


@pytest.mark.requirement("roots.result-shape", "roots.name-optional", "roots.meta-optional")
@every
async def test_roots_are_answered_by_uri_and_perhaps_name(revision: str) -> None:
    provider = Provider("file:///a", "FILE:///b%20c/d.txt")
    provider.roots[0]["name"] = "A"
    if revision in revisions_holding("roots.meta-optional"):
        provider.roots[0]["_meta"] = {"a": [1]}
    assert (await ask_client(revision, LIST, None, provider)).answer == {"roots": provider.roots}
    assert (await ask_client(revision, LIST, {}, Provider())).answer == {"roots": []}


@pytest.mark.requirement("roots.uri-file-scheme", "roots.validate-uris")
@every
@pytest.mark.parametrize(
    "uri",
    [
        "https://x",
        "file:/a",
        "file:///a/../../etc",
        "file:///a/%252e%252e/etc",
        "file:///a\\..\\etc",
        "file:///a%00b",
    ],
)
async def test_a_root_that_is_none_does_not_leave(revision: str, uri: str) -> None:
    outcome = await ask_client(revision, LIST, None, Provider("file:///good", uri))
    assert outcome.verdict == "kept back"


@pytest.mark.requirement(
    "roots.unsupported-error", "roots.internal-error", "roots.no-error-replay-2026"
)
@every
async def test_errors_of_a_client_are_answered_or_reach_the_caller(revision: str) -> None:
    broken = Provider()
    broken.roots = None
    failed = await ask_client(revision, LIST, None, broken)
    if revision in PER_REQUEST:
        assert isinstance(failed.raised, LookupError)
        assert len(failed.heard) == 1
    else:
        assert failed.code == -32603
        assert (await ask_client(revision, LIST, None, ClientHandlers())).code == -32601


FLAG: dict[str, Any] = {"roots": {"listChanged": True}}


@pytest.mark.requirement("roots.list-changed-flag", "roots.notify-on-change")
@legacy
@pytest.mark.parametrize("declared", [True, False])
async def test_changes_are_told_by_those_who_said_so(revision: str, declared: bool) -> None:
    server = FakeServer(revision)
    own: dict[str, Any] = {"handlers": Provider("file:///a")}
    if declared:
        own["capabilities"] = FLAG
    async with connect(server, revision=revision, **own) as client:
        for tell in (client.roots_list_changed, lambda: client.notify(CHANGED)):
            if declared:
                await tell()
            else:
                with pytest.raises(LocalProtocolError, match=r"did not declare roots\.listCh"):
                    await tell()
    assert [message["method"] for message in server.heard] == [CHANGED] * (2 * declared)


@pytest.mark.requirement("roots.no-change-notification-2026")
@modern
async def test_a_revision_without_root_changes_has_no_method_for_them(revision: str) -> None:
    server = FakeServer(revision)
    own: dict[str, Any] = {"handlers": Provider("file:///a"), "capabilities": FLAG}
    async with connect(server, revision=revision, **own) as client:
        with pytest.raises(MethodNotFoundError):
            await client.notify(CHANGED)
    assert server.heard == []


@pytest.mark.requirement("roots.server-handles-changes", "roots.server-relists")
@legacy
async def test_a_server_asks_anew_after_a_change(revision: str) -> None:
    provider = Provider("file:///a")
    own: dict[str, Any] = {"handlers": provider, "capabilities": FLAG}
    async with live(server_with(ask), revision, **own) as (client, _):
        assert text_of(await client.call_tool("ask")) == "file:///a None"
        provider.roots = [{"uri": "file:///b"}]
        await client.roots_list_changed()
        assert text_of(await client.call_tool("ask")) == "file:///b None"


def test_a_root_knows_what_lies_within(tmp_path: Path) -> None:
    root = Root(tmp_path.as_uri(), "Top")
    assert root.path == tmp_path
    assert Root((tmp_path / "a b").as_uri()).path == tmp_path / "a b"
    for inside in (tmp_path, tmp_path / "a", tmp_path / "a" / ".." / "b", str(tmp_path)):
        assert root.contains(inside)
    for outside in (tmp_path / ".." / "x", tmp_path.parent, f"{tmp_path}x", "relative"):
        assert not root.contains(outside)
    with pytest.raises(ValueError, match="file://"):
        _ = Root("https://x/a").path


@pytest.mark.requirement(
    "roots.list-request", "roots.list-via-mrtr", "roots.server-checks-capability"
)
@every
async def test_a_client_that_has_roots_is_asked_in_the_way_of_its_revision(revision: str) -> None:
    async with connect_respondent(server_with(ask), revision, {LIST: ROOTS}) as client:
        assert text_in(await client.call("ask")) == "file:///top Top"
        assert client.asked == [(LIST, None)]
        questions = [round["inputRequests"] for round in client.rounds]
        assert questions == ([{"where": {"method": LIST}}] if revision in PER_REQUEST else [])
    async with connect_respondent(server_with(ask), revision, {}, {"sampling": {}}) as client:
        answer = await client.call("ask")
        assert (client.asked, client.rounds) == ([], [])
    assert answer["error"]["code"] == refusal_code(revision)
    assert answer["error"]["data"] == {"requiredCapabilities": {"roots": {}}}
