"""A client whose model is asked something: what it declares, answers and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from kit.respondent import ASK, HI, SAMPLED, TOOL, USE
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST, every
from mcpgen_runtime import ClientHandlers, ProtocolError
from package.client.questioner import Answers, ask_client

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
