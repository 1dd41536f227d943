"""A server asks the client's model: what leaves, and what becomes of the answer.

Source: client/sampling.
"""

from __future__ import annotations

from typing import Any

import pytest

from kit.respondent import ASK, HI, SAMPLED, TOOL, connect_respondent, text_in
from kit.rules import revisions_holding
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, speaking_to
from mcpgen_runtime import (
    Audio,
    Context,
    Image,
    Message,
    ModelPreferences,
    ResourceLink,
    Sampled,
    SamplingMessage,
    Server,
    Text,
)
from mcpgen_runtime.errors import LocalProtocolError, MissingCapabilityError, RemoteProtocolError
from package.server.toolkit.client_features.sampler import sample
from requirements import EVERY_REVISION

every = pytest.mark.parametrize("revision", ALL)
WITH_TOOLS = revisions_holding("sampling.no-tools-without-capability")
with_tools = pytest.mark.parametrize("revision", WITH_TOOLS)
without_tools = pytest.mark.parametrize(
    "revision", revisions_holding("sampling.content-array-not-before-2025-11")
)


def prompt_server() -> Server:
    """A server with one tool that samples."""
    server = Server("sampling")

    @server.tool()
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("hi", max_tokens=5, key="what")).text

    return server


@pytest.mark.requirement("sampling.standalone-request")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_in_a_session_the_model_is_asked_by_a_request(revision: str) -> None:
    async with speaking_to(prompt_server(), revision, {"sampling": {}}) as end:
        params = {"name": "ask", "arguments": {}}
        await end.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        question = await end.receive()
        assert (question["method"], question["params"]) == (ASK, {"messages": [HI], "maxTokens": 5})
        await end.send({"jsonrpc": "2.0", "id": question["id"], "result": SAMPLED})
        assert text_in(await end.receive()) == "Paris"


@pytest.mark.requirement("sampling.via-mrtr")
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_without_sessions_the_model_is_asked_in_a_result(revision: str) -> None:
    async with connect_respondent(prompt_server(), revision, {ASK: SAMPLED}) as client:
        assert text_in(await client.call("ask")) == "Paris"
        (round,) = client.rounds
    assert round["inputRequests"] == {
        "what": {"method": ASK, "params": {"messages": [HI], "maxTokens": 5}}
    }


@every
async def test_sampling_results_are_values(revision: str) -> None:
    _, said = await sample(revision)
    assert said == Sampled("assistant", (Text("Paris"),), "m", "endTurn")
    assert (said.text, said.tool_uses) == ("Paris", ())
    image = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    _, said = await sample(revision, answer={**SAMPLED, "content": image, "stopReason": "odd"})
    assert said.content == (Image(b"\x00\x01\x02", "image/png"),)
    assert (said.text, said.stop_reason) == ("", "odd")


@every
@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": HI["content"]},
        {"role": "system", "content": HI["content"], "model": "m"},
        {"role": "assistant", "model": "m"},
        {
            "role": "assistant",
            "content": {"type": "image", "data": "%", "mimeType": "x/y"},
            "model": "m",
        },
    ],
)
async def test_an_answer_of_another_shape_is_an_error(revision: str, answer: Any) -> None:
    if revision in HANDSHAKE:
        with pytest.raises(RemoteProtocolError):
            await sample(revision, answer=answer)
        return
    async with connect_respondent(prompt_server(), revision, {ASK: answer}) as client:
        assert (await client.call("ask"))["error"]["code"] == -32602


@pytest.mark.requirement("sampling.request-required-fields")
@every
async def test_all_options_leave_under_their_names(revision: str) -> None:
    preferences = ModelPreferences(
        hints=["sonnet", "claude"], cost_priority=0.25, speed_priority=1, intelligence_priority=0
    )
    params, _ = await sample(
        revision,
        system_prompt="Be brief",
        temperature=0.5,
        stop_sequences=["."],
        model_preferences=preferences,
        include_context="thisServer",
        metadata={"a": [1]},
    )
    assert params == {
        "messages": [HI],
        "maxTokens": 5,
        "systemPrompt": "Be brief",
        "temperature": 0.5,
        "stopSequences": ["."],
        "modelPreferences": {
            "hints": [{"name": "sonnet"}, {"name": "claude"}],
            "costPriority": 0.25,
            "speedPriority": 1,
            "intelligencePriority": 0,
        },
        "includeContext": "thisServer",
        "metadata": {"a": [1]},
    }
    params, _ = await sample(revision, model_preferences={"hints": [{"name": "x"}]})
    assert params["modelPreferences"] == {"hints": [{"name": "x"}]}


@pytest.mark.requirement("sampling.message-role", "sampling.validate-content")
@every
async def test_messages_are_given_in_many_forms(revision: str) -> None:
    told = [
        "hi",
        Text("there"),
        Message("assistant", "hm"),
        SamplingMessage("user", Image(b"x", "image/png")),
        HI,
        Sampled("assistant", (Text("ok"),), "m"),
    ]
    params, _ = await sample(revision, told)
    assert [(each["role"], each["content"]["type"]) for each in params["messages"]] == [
        ("user", "text"),
        ("user", "text"),
        ("assistant", "text"),
        ("user", "image"),
        ("user", "text"),
        ("assistant", "text"),
    ]


BAD_MESSAGES = [
    {"role": "system", "content": HI["content"]},
    {"role": "user"},
    {"role": "user", "content": {"type": "image", "data": "AAEC"}},
    {"role": "user", "content": {"type": "image", "mimeType": "image/png"}},
    {"role": "user", "content": {"type": "odd"}},
    {"role": "user", "content": "text"},
    {"role": "user", "content": {"type": "resource_link", "uri": "x:y", "name": "n"}},
    ResourceLink(uri="x:y", name="n"),
]


@pytest.mark.requirement(
    "sampling.message-role",
    "sampling.image-audio-encoding",
    "sampling.validate-content",
    "sampling.content-types-2024",
    "sampling.content-types-audio",
    "sampling.content-types-tools",
)
@every
@pytest.mark.parametrize("message", BAD_MESSAGES)
async def test_a_message_that_is_none_does_not_leave(revision: str, message: Any) -> None:
    with pytest.raises(LocalProtocolError):
        await sample(revision, [message])


@pytest.mark.requirement("sampling.content-types-2024", "sampling.content-types-audio")
@every
async def test_sound_leaves_where_the_revision_has_it(revision: str) -> None:
    told = [Audio(b"x", "audio/wav")]
    if revision in revisions_holding("sampling.content-types-2024"):
        with pytest.raises(LocalProtocolError, match="not possible in"):
            await sample(revision, told)
    else:
        params, _ = await sample(revision, told)
        assert params["messages"][0]["content"]["type"] == "audio"


SEVERAL = SamplingMessage("user", ["one", Text("two")])


@pytest.mark.requirement("sampling.content-array-not-before-2025-11")
@without_tools
async def test_several_blocks_in_a_message_are_refused_where_unknown(
    revision: str,
) -> None:
    with pytest.raises(LocalProtocolError, match="not possible in"):
        await sample(revision, [SEVERAL])


@pytest.mark.requirement("sampling.content-types-tools")
@with_tools
async def test_a_message_is_one_block_or_several(revision: str) -> None:
    params, said = await sample(
        revision, ["one", SEVERAL], {**SAMPLED, "content": [HI["content"], HI["content"]]}
    )
    assert [type(each["content"]) for each in params["messages"]] == [dict, list]
    assert said.text == "hihi"


@pytest.mark.requirement(
    "sampling.priorities-range", "sampling.include-context-values", "sampling.tool-choice-values"
)
@every
@pytest.mark.parametrize(
    "options",
    [
        {"model_preferences": {"costPriority": 1.5}},
        {"model_preferences": {"speedPriority": -1}},
        {"model_preferences": {"odd": 1}},
        {"include_context": "all"},
        {"tools": [TOOL], "tool_choice": "any"},
        {"max_tokens": None},
        {"max_tokens": "5"},
    ],
)
async def test_an_option_out_of_its_range_does_not_leave(revision: str, options: Any) -> None:
    with pytest.raises((LocalProtocolError, MissingCapabilityError)):
        await sample(revision, **options)


@pytest.mark.requirement("sampling.priorities-range", revisions=EVERY_REVISION)
@pytest.mark.parametrize("name", ["cost_priority", "speed_priority", "intelligence_priority"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_priority_is_a_number_from_0_to_1(name: str, value: float) -> None:
    priority: Any = {name: value}
    with pytest.raises(ValueError, match=name):
        ModelPreferences(**priority)


@pytest.mark.requirement("sampling.no-tools-without-capability")
@every
@pytest.mark.parametrize("options", [{"tools": [TOOL]}, {"tool_choice": "none"}])
@pytest.mark.parametrize("capabilities", [{"sampling": {}}, {"sampling": {"context": {}}}])
async def test_tools_are_sent_to_clients_that_take_them(
    revision: str, options: Any, capabilities: Any
) -> None:
    with pytest.raises(MissingCapabilityError) as raised:
        await sample(revision, capabilities=capabilities, **options)
    assert raised.value.path == ("sampling", "tools")


@pytest.mark.requirement("sampling.include-context-needs-capability")
@every
async def test_context_is_asked_of_clients_that_give_it(revision: str) -> None:
    can: dict[str, Any] = {"sampling": {"tools": {}}}
    await sample(revision, capabilities=can, include_context="none")
    if revision in revisions_holding("sampling.include-context-needs-capability"):
        with pytest.raises(MissingCapabilityError) as raised:
            await sample(revision, capabilities=can, include_context="allServers")
        assert raised.value.path == ("sampling", "context")
    else:
        params, _ = await sample(revision, capabilities=can, include_context="allServers")
        assert params["includeContext"] == "allServers"
