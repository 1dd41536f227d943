"""A server has the client's model use tools: what may follow what.

Source: client/sampling#sampling-with-tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kit.respondent import ASK, HI, SAMPLED, TOOL, USE, connect_respondent, text_in
from kit.rules import revisions_holding
from kit.wire import PER_REQUEST
from mcpgen_runtime import Context, SamplingMessage, Server, Text, ToolUse, ToolUseResult
from mcpgen_runtime.errors import LocalProtocolError
from package.server.toolkit.client_features.sampler import sample
from requirements import requirement

with_tools = pytest.mark.parametrize(
    "revision", revisions_holding("sampling.no-tools-without-capability")
)


@pytest.mark.requirement("sampling.tools-scoped-to-request", "sampling.preserve-meta")
@with_tools
async def test_a_model_uses_tools_and_gets_their_results(revision: str) -> None:
    server = Server("loop")

    @server.tool()
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

    async with connect_respondent(server, revision, {ASK: model}) as client:
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


def without(member: str) -> dict[str, Any]:
    """A use of a tool that lacks a member."""
    return {name: value for name, value in USE.items() if name != member}


balanced = requirement("sampling.tool-use-balanced")
matching = requirement("sampling.tool-result-id-matches")
alone = requirement("sampling.tool-results-alone")
roles = requirement("sampling.tool-roles")
result_shape = requirement("sampling.tool-result-shape")
use_shape = requirement("sampling.tool-use-shape")
TEXT_RESULT = {**result(), "content": "text"}
BARE_RESULT = {"type": "tool_result", "toolUseId": "u1"}
UNBALANCED = [
    pytest.param([wire_message(USE)], "leaves 'u1' without a result", marks=balanced),
    pytest.param([wire_message(USE), "and?"], "expected a result for 'u1' first", marks=balanced),
    pytest.param(
        [wire_message(USE, {**USE, "id": "u2"}), wire_message(result(), role="user")],
        "expected a result for 'u2' first",
        marks=balanced,
    ),
    pytest.param(
        [wire_message(USE), wire_message(result(), result(), role="user")],
        "expected one result for each use of a tool, got more",
        marks=balanced,
    ),
    pytest.param(
        [wire_message(USE), wire_message(result("other"), role="user")],
        "expected a result for 'u1' first",
        marks=matching,
    ),
    pytest.param(
        [wire_message(result(), role="user")], "no use of a tool just before", marks=matching
    ),
    pytest.param(
        [wire_message(USE), wire_message(result(), HI["content"], role="user")],
        "expected results of tools alone, got text, tool_result",
        marks=alone,
    ),
    pytest.param(
        [wire_message(USE, role="user"), wire_message(result(), role="user")],
        "expected tool_use from the assistant, got it from the user",
        marks=roles,
    ),
    pytest.param(
        [wire_message(USE), wire_message(result(), role="assistant")],
        "expected tool_result from the user, got it from the assistant",
        marks=roles,
    ),
    pytest.param(
        [wire_message(USE), wire_message(TEXT_RESULT, role="user")],
        r"Expected `array`, got `str` .*messages\[2\]\.content\.content",
        marks=result_shape,
    ),
    pytest.param(
        [wire_message(USE), wire_message(BARE_RESULT, role="user")],
        r"missing required field `content` .*messages\[2\]\.content",
        marks=result_shape,
    ),
    pytest.param(
        [wire_message({**USE, "input": "text"}), wire_message(result(), role="user")],
        r"Expected `object`, got `str` .*messages\[1\]\.content\.input",
        marks=use_shape,
    ),
    *(
        pytest.param(
            [wire_message(without(member)), wire_message(result(), role="user")],
            rf"missing required field `{member}` .*messages\[1\]\.content",
            marks=use_shape,
        )
        for member in ("id", "name", "input")
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
