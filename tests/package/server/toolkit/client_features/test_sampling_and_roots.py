"""A server asks the client's model: what leaves, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kit.live import server_with
from kit.respondent import ASK, EVERYTHING, HI, SAMPLED, TOOL, USE, connect_respondent
from kit.rules import revisions_holding
from kit.wire import PER_REQUEST, every, text_in
from mcpgen_runtime import (
    Audio,
    Context,
    Image,
    LocalProtocolError,
    Message,
    MissingCapabilityError,
    ModelPreferences,
    ResourceLink,
    Sampled,
    SamplingMessage,
    Text,
    ToolUse,
    ToolUseResult,
)
from requirements import requirement


async def sample(
    revision: str,
    messages: Any = "hi",
    answer: Any = SAMPLED,
    capabilities: Any = EVERYTHING,
    **options: Any,
) -> tuple[Any, Sampled]:
    """The params that a client gets, and what the handler is told."""
    results: list[Any] = []

    async def ask(ctx: Context) -> str:
        try:
            results.append(await ctx.sample(messages, **{"max_tokens": 5, **options}))
        except Exception as error:
            results.append(error)
        return "asked"

    async with connect_respondent(
        server_with(ask), revision, {ASK: answer}, capabilities
    ) as client:
        assert text_in(await client.call("ask")) == "asked"
        asked = client.asked
    if isinstance(results[-1], Exception):
        raise results[-1]
    ((_, params),) = asked
    return params, results[-1]


@pytest.mark.requirement("sampling.standalone-request", "sampling.via-mrtr")
@every
async def test_the_model_is_asked_by_a_request_or_in_a_result(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("hi", max_tokens=5, key="what")).text

    server = server_with(ask)

    params = {"messages": [HI], "maxTokens": 5}
    async with connect_respondent(server, revision, {ASK: SAMPLED}) as client:
        assert text_in(await client.call("ask")) == "Paris"
        assert client.asked == [(ASK, params)]
        assert [round["inputRequests"] for round in client.rounds] == (
            [{"what": {"method": ASK, "params": params}}] if revision in PER_REQUEST else []
        )
    no_image = {"type": "image", "data": "%", "mimeType": "x/y"}
    for wrong in (
        {"role": "assistant", "content": HI["content"]},
        {**SAMPLED, "content": no_image},
    ):
        async with connect_respondent(server, revision, {ASK: wrong}) as client:
            assert (await client.call("ask"))["error"]["code"] in (-32600, -32602)


@every
async def test_sampling_results_are_values(revision: str) -> None:
    _, said = await sample(revision)
    assert said == Sampled("assistant", (Text("Paris"),), "m", "endTurn")
    assert (said.text, said.tool_uses) == ("Paris", ())
    image = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    _, said = await sample(revision, answer={**SAMPLED, "content": image, "stopReason": "odd"})
    assert said.content == (Image(b"\x00\x01\x02", "image/png"),)
    assert (said.text, said.stop_reason) == ("", "odd")


@pytest.mark.requirement("sampling.request-required-fields")
@every
async def test_all_options_leave_under_their_names(revision: str) -> None:
    hints = [{"name": "sonnet"}, {"name": "claude"}]
    priorities = {"costPriority": 0.25, "speedPriority": 1, "intelligencePriority": 0}
    preferences = ModelPreferences(
        hints=["sonnet", "claude"], cost_priority=0.25, speed_priority=1, intelligence_priority=0
    )
    options: dict[str, tuple[str, Any, Any]] = {
        "system_prompt": ("systemPrompt", "Be brief", "Be brief"),
        "temperature": ("temperature", 0.5, 0.5),
        "stop_sequences": ("stopSequences", ["."], ["."]),
        "model_preferences": ("modelPreferences", preferences, {"hints": hints, **priorities}),
        "include_context": ("includeContext", "thisServer", "thisServer"),
        "metadata": ("metadata", {"a": [1]}, {"a": [1]}),
    }
    params, _ = await sample(revision, **{name: each[1] for name, each in options.items()})
    wire = {name: sent for name, _, sent in options.values()}
    assert params == {"messages": [HI], "maxTokens": 5, **wire}
    params, _ = await sample(revision, model_preferences={"hints": hints})
    assert params["modelPreferences"] == {"hints": hints}


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
    {"role": "user", "content": {"type": "odd"}},
    {"role": "user", "content": "text"},
    ResourceLink(uri="x:y", name="n"),
]


@pytest.mark.requirement("sampling.image-audio-encoding")
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


@pytest.mark.requirement(
    "sampling.content-types-tools", "sampling.content-array-not-before-2025-11"
)
@every
async def test_a_message_is_one_block_or_several_where_the_revision_has_these(
    revision: str,
) -> None:
    several = SamplingMessage("user", ["one", Text("two")])
    if revision in revisions_holding("sampling.content-array-not-before-2025-11"):
        with pytest.raises(LocalProtocolError, match="not possible in"):
            await sample(revision, [several])
        return
    params, said = await sample(
        revision, ["one", several], {**SAMPLED, "content": [HI["content"], HI["content"]]}
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
        {"model_preferences": {"odd": 1}},
        {"include_context": "all"},
        {"tools": [TOOL], "tool_choice": "any"},
        {"max_tokens": "5"},
    ],
)
async def test_an_option_out_of_its_range_does_not_leave(revision: str, options: Any) -> None:
    with pytest.raises((LocalProtocolError, MissingCapabilityError)):
        await sample(revision, **options)


def test_a_priority_is_a_number_from_0_to_1() -> None:
    for name in ("cost_priority", "speed_priority", "intelligence_priority"):
        for value in (-0.1, 1.1, float("nan")):
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


with_tools = pytest.mark.parametrize(
    "revision", revisions_holding("sampling.no-tools-without-capability")
)


@pytest.mark.requirement("sampling.tools-scoped-to-request", "sampling.preserve-meta")
@with_tools
async def test_a_model_uses_tools_and_gets_their_results(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        messages: list[Any] = ["What time is it?"]
        for _ in range(3):
            reply = await ctx.sample(messages, max_tokens=9, tools=[TOOL], tool_choice="auto")
            if not reply.tool_uses:
                return reply.text
            messages += [
                reply,
                *(ToolUseResult(use.id, [use.name, Text("12")]) for use in reply.tool_uses),
            ]
        return "never"

    uses = [USE, {**USE, "id": "u2", "_meta": {"a": 1}}]

    def model(params: Any) -> Any:
        if len(params["messages"]) == 1:
            return {**SAMPLED, "content": uses, "stopReason": "toolUse"}
        return SAMPLED

    async with connect_respondent(server_with(ask), revision, {ASK: model}) as client:
        assert text_in(await client.call("ask")) == "Paris"
        _, params = client.asked[-1]
        listed = await client.ask("tools/list", {})
    assert [each["name"] for each in listed["result"]["tools"]] == ["ask"]
    assert params["tools"] == [TOOL]
    assert params["toolChoice"] == {"mode": "auto"}
    _, answer, results = params["messages"]
    assert (answer["role"], answer["content"]) == ("assistant", uses)
    blocks = [{"type": "text", "text": text} for text in ("clock", "12")]
    assert results == {
        "role": "user",
        "content": [
            {"type": "tool_result", "toolUseId": use, "content": blocks} for use in ("u1", "u2")
        ],
    }


def wire_message(*content: Any, role: str = "assistant") -> dict[str, Any]:
    """A message on the wire."""
    return {"role": role, "content": list(content)}


def result(of: str = "u1", **more: Any) -> dict[str, Any]:
    """The result of a tool on the wire."""
    return {"type": "tool_result", "toolUseId": of, "content": [], **more}


balanced = requirement("sampling.tool-use-balanced")
matching = requirement("sampling.tool-result-id-matches")
alone = requirement("sampling.tool-results-alone")
roles = requirement("sampling.tool-roles")
result_shape = requirement("sampling.tool-result-shape")
use_shape = requirement("sampling.tool-use-shape")
TEXT_RESULT = {**result(), "content": "text"}
BARE_RESULT = {"type": "tool_result", "toolUseId": "u1"}
TWO_USES = wire_message(USE, {**USE, "id": "u2"})


def unbalanced(rule: pytest.MarkDecorator, reason: str, *messages: Any) -> Any:
    """A row: the messages after the first one, where a block alone is said by its usual role."""
    usual = {"tool_use": "assistant"}
    whole = [
        wire_message(each, role=usual.get(each["type"], "user")) if "type" in each else each
        for each in messages
    ]
    return pytest.param(whole, reason, marks=rule)


UNBALANCED = [
    unbalanced(balanced, "leaves 'u1' without a result", USE),
    unbalanced(balanced, "expected a result for 'u1' first", USE, HI["content"]),
    unbalanced(balanced, "expected a result for 'u2' first", TWO_USES, result()),
    unbalanced(balanced, "got more", USE, wire_message(result(), result(), role="user")),
    unbalanced(matching, "expected a result for 'u1' first", USE, result("other")),
    unbalanced(matching, "no use of a tool just before", result()),
    unbalanced(
        alone, "results of tools alone", USE, wire_message(result(), HI["content"], role="user")
    ),
    unbalanced(roles, "tool_use from the assistant", wire_message(USE, role="user"), result()),
    unbalanced(roles, "tool_result from the user", USE, wire_message(result())),
    unbalanced(
        result_shape, r"Expected `array`, got `str` .*\[2\]\.content\.content", USE, TEXT_RESULT
    ),
    unbalanced(result_shape, "missing required field `content`", USE, BARE_RESULT),
    unbalanced(use_shape, "Expected `object`, got `str`", {**USE, "input": "text"}, result()),
    *(
        unbalanced(use_shape, f"missing required field `{member}`", use, result())
        for member in ("id", "name", "input")
        for use in [{name: value for name, value in USE.items() if name != member}]
    ),
]


@with_tools
@pytest.mark.parametrize(("messages", "reason"), UNBALANCED)
async def test_uses_and_results_of_tools_are_in_balance(
    revision: str, messages: Sequence[Any], reason: str
) -> None:
    with pytest.raises(LocalProtocolError, match=reason):
        await sample(revision, ["hi", *messages], tools=[TOOL])


@pytest.mark.requirement(
    "sampling.tool-result-structured-object", "sampling.tool-result-structured-any"
)
@with_tools
async def test_a_result_carries_the_values_that_the_revision_has(revision: str) -> None:
    use = SamplingMessage("assistant", ToolUse("u1", "clock", {}))
    for value, always in (({"a": 1}, True), ([1], False), (None, False)):
        told = ["hi", use, ToolUseResult("u1", [], structured_content=value, is_error=True)]
        if always or revision in PER_REQUEST:
            params, _ = await sample(revision, told, tools=[TOOL])
            block = params["messages"][-1]["content"]
            assert (block["structuredContent"], block["isError"]) == (value, True)
        else:
            with pytest.raises(LocalProtocolError):
                await sample(revision, told, tools=[TOOL])
