"""A client whose model is asked something: what it declares, answers and refuses.

Source: client/sampling.
"""

from __future__ import annotations

from typing import Any

import pytest

from kit.respondent import ASK, HI, SAMPLED, TOOL, USE
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST
from mcpgen_runtime import ClientHandlers, ProtocolError
from package.client.questioner import Answers, ask_client

every = pytest.mark.parametrize("revision", ALL)
with_tools = pytest.mark.parametrize("revision", revisions_holding("sampling.tools-capability"))
without_tools = pytest.mark.parametrize(
    "revision", revisions_holding("sampling.content-array-not-before-2025-11")
)

PLAIN: dict[str, Any] = {"messages": [HI], "maxTokens": 5}
CAN: dict[str, Any] = {"sampling": {"tools": {}}}


class Model(Answers):
    """A model that answers as told."""

    def __init__(self, answer: Any = SAMPLED) -> None:
        super().__init__(answer)

    create_message = Answers._answer


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


@pytest.mark.requirement("sampling.tools-capability")
@with_tools
async def test_a_client_declares_that_its_model_uses_tools(revision: str) -> None:
    model = Model()
    params = {**PLAIN, "tools": [TOOL]}
    outcome = await ask_client(revision, ASK, params, model, CAN)
    assert outcome.declared["sampling"] == {"tools": {}}
    assert outcome.answer == SAMPLED
    assert model.asked[0].tools[0].name == "clock"


@pytest.mark.requirement(
    "sampling.reject-undeclared-tools", "sampling.reject-undeclared-tools-2026"
)
@with_tools
@pytest.mark.parametrize("more", [{"tools": [TOOL]}, {"toolChoice": {"mode": "auto"}}])
async def test_tools_that_were_not_declared_are_refused(revision: str, more: Any) -> None:
    model = Model()
    assert (await ask_client(revision, ASK, {**PLAIN, **more}, model)).question_refused
    assert model.asked == []


@pytest.mark.requirement("sampling.result-required-fields", "sampling.message-role")
@every
@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": HI["content"]},
        {"role": "assistant", "model": "m"},
        {"content": HI["content"], "model": "m"},
        {**SAMPLED, "role": "system"},
        {**SAMPLED, "content": {"type": "odd"}},
        {**SAMPLED, "content": {"type": "image", "data": "AAEC"}},
        {},
    ],
)
async def test_an_answer_that_is_none_does_not_leave(revision: str, answer: Any) -> None:
    assert (await ask_client(revision, ASK, PLAIN, Model(answer))).kept_back


@pytest.mark.requirement("sampling.result-required-fields", "sampling.stop-reason-open")
@every
async def test_an_answer_leaves_as_it_is(revision: str) -> None:
    answer = {**SAMPLED, "stopReason": "content_filter"}
    assert (await ask_client(revision, ASK, PLAIN, Model(answer))).answer == answer


@pytest.mark.requirement(
    "sampling.request-required-fields", "sampling.message-role", "sampling.image-audio-encoding"
)
@every
@pytest.mark.parametrize(
    "params",
    [
        {"messages": [HI]},
        {"maxTokens": 5},
        {"messages": [{**HI, "role": "system"}], "maxTokens": 5},
        {"messages": [{**HI, "content": {"type": "image", "data": "AAEC"}}], "maxTokens": 5},
        {"messages": [{"role": "user"}], "maxTokens": 5},
    ],
)
async def test_a_question_that_is_none_is_refused(revision: str, params: Any) -> None:
    model = Model()
    assert (await ask_client(revision, ASK, params, model)).question_refused
    assert model.asked == []


SOUND = {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"}


@pytest.mark.requirement(
    "sampling.content-types-2024", "sampling.content-types-audio", "sampling.image-audio-encoding"
)
@every
async def test_sound_is_heard_where_the_revision_has_it(revision: str) -> None:
    params = {**PLAIN, "messages": [{"role": "user", "content": SOUND}]}
    outcome = await ask_client(revision, ASK, params, Model())
    answered = await ask_client(revision, ASK, PLAIN, Model({**SAMPLED, "content": SOUND}))
    if revision in revisions_holding("sampling.content-types-2024"):
        assert outcome.question_refused
        assert answered.kept_back
    else:
        assert outcome.answer == SAMPLED
        assert answered.answer["content"] == SOUND


SEVERAL = [HI["content"], HI["content"]]


@pytest.mark.requirement("sampling.content-array-not-before-2025-11")
@without_tools
async def test_several_blocks_are_refused_where_there_is_one(revision: str) -> None:
    params = {**PLAIN, "messages": [{"role": "user", "content": SEVERAL}]}
    assert (await ask_client(revision, ASK, params, Model())).question_refused
    assert (
        await ask_client(revision, ASK, PLAIN, Model({**SAMPLED, "content": SEVERAL}))
    ).kept_back


@pytest.mark.requirement("sampling.content-types-tools")
@with_tools
async def test_content_is_one_block_or_several(revision: str) -> None:
    params = {**PLAIN, "messages": [{"role": "user", "content": SEVERAL}, HI]}
    answer = {**SAMPLED, "content": SEVERAL}
    assert (await ask_client(revision, ASK, params, Model(answer))).answer == answer
    link = {"type": "resource_link", "uri": "x:y", "name": "n"}
    assert (await ask_client(revision, ASK, PLAIN, Model({**SAMPLED, "content": link}))).kept_back


@pytest.mark.requirement("sampling.tool-use-shape", "sampling.tool-roles")
@with_tools
@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ({**SAMPLED, "content": [USE], "stopReason": "toolUse"}, True),
        ({**SAMPLED, "content": USE}, True),
        ({**SAMPLED, "content": [{**USE, "input": "x"}]}, False),
        ({**SAMPLED, "content": [{k: v for k, v in USE.items() if k != "id"}]}, False),
        ({**SAMPLED, "content": [{k: v for k, v in USE.items() if k != "name"}]}, False),
        ({**SAMPLED, "role": "user", "content": [USE]}, False),
    ],
)
async def test_a_use_of_a_tool_has_its_shape_and_its_speaker(
    revision: str, answer: Any, good: bool
) -> None:
    outcome = await ask_client(revision, ASK, {**PLAIN, "tools": [TOOL]}, Model(answer), CAN)
    assert outcome.answer == answer if good else outcome.kept_back


@pytest.mark.requirement(
    "sampling.tool-roles",
    "sampling.error-tool-result-missing",
    "sampling.error-mixed-content",
    "sampling.validate-content",
)
@with_tools
@pytest.mark.parametrize(
    "messages",
    [
        [HI, {"role": "assistant", "content": USE}],
        [HI, {"role": "assistant", "content": USE}, HI],
        [HI, {"role": "user", "content": USE}],
        [
            HI,
            {"role": "assistant", "content": USE},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "toolUseId": "u1", "content": []},
                    HI["content"],
                ],
            },
        ],
    ],
)
async def test_a_conversation_out_of_balance_is_refused(revision: str, messages: Any) -> None:
    model = Model()
    params = {**PLAIN, "messages": messages, "tools": [TOOL]}
    assert (await ask_client(revision, ASK, params, model, CAN)).question_refused
    assert model.asked == []


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


@every
async def test_preferences_arrive_with_their_hints_in_order(revision: str) -> None:
    asked = Model()
    hints = [{"name": "b"}, {"name": "a"}]
    params = {**PLAIN, "modelPreferences": {"hints": hints, "speedPriority": 1}}
    await ask_client(revision, ASK, params, asked)
    preferences = asked.asked[0].model_preferences
    assert [hint.name for hint in preferences.hints] == ["b", "a"]
    assert preferences.speed_priority == 1
