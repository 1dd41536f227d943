"""Tools of the server under test that ask its client; names and keys are the suite's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import anyio
from msgspec import Meta

from mcpgen_runtime import Context


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


@dataclass
class Consent:
    ok: bool


@dataclass
class Topic:
    context: str


@dataclass
class Account:
    username: Annotated[str, Meta(description="Name to sign in with")]
    email: Annotated[str, Meta(description="Where to write to")]


@dataclass
class Profile:
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "Plan A"},
                {"const": "value2", "title": "Plan B"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2"],
            "enumNames": ["Plan A", "Plan B"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "Plan A"},
                    {"const": "value2", "title": "Plan B"},
                ]
            },
        },
    },
}


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    said = await ctx.sample(prompt, max_tokens=100)
    return said.text


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user for an account."""
    answer = await ctx.elicit(message, Account)
    return f"{answer.action}: {answer.content}"


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks for a form that is filled in already."""
    answer = await ctx.elicit("Please check your profile", Profile)
    return f"{answer.action}: {answer.content}"


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks for a choice in every form that a choice has."""
    answer = await ctx.elicit("Please choose", CHOICES)
    return f"{answer.action}: {answer.content}"


async def test_missing_capability(ctx: Context) -> str:
    """Asks the client's model; the suite's client says that it has none."""
    said = await ctx.sample("Hello", max_tokens=10)
    return said.text


async def test_streaming_elicitation(ctx: Context) -> str:
    """Asks the user for consent."""
    answer = await ctx.elicit("May I?", Consent)
    return answer.action


async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks for a name by the key `user_name`."""
    answer = await ctx.elicit("Who are you?", Name, key="user_name")
    return f"Hello, {answer.content.name}!" if answer.content else "Hello, whoever you are!"


async def test_input_required_result_sampling(ctx: Context) -> str:
    """Asks the client's model for a capital."""
    said = await ctx.sample("Which city is the capital of Norway?", max_tokens=100)
    return said.text


async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the client's roots."""
    return ", ".join(root.uri for root in await ctx.list_roots())


async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks for consent, and keeps a state meanwhile."""
    await ctx.elicit("May I?", Consent)
    return "state-ok"


async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks for consent, with a state that must come back as it was."""
    await ctx.elicit("May I?", Consent)
    return "state-ok"


async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks for three things at once."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ctx.elicit, "Who are you?", Name)
        tasks.start_soon(partial(ctx.sample, "Write a greeting", max_tokens=50))
        tasks.start_soon(ctx.list_roots)
    return "all three are here"


async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks for a name, then for a color."""
    who = await ctx.elicit("Who are you?", Name)
    what = await ctx.elicit("Which color do you like?", Color)
    return f"{who.content} likes {what.content}"


async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks for what the client can be asked for, all at once."""
    async with anyio.create_task_group() as tasks:
        if "elicitation" in ctx.client_capabilities:
            tasks.start_soon(ctx.elicit, "Who are you?", Name)
        if "sampling" in ctx.client_capabilities:
            tasks.start_soon(partial(ctx.sample, "Write a greeting", max_tokens=50))
    return f"this client has {', '.join(ctx.client_capabilities)}"


async def test_input_required_result_prompt(ctx: Context) -> str:
    """Asks what it is to be about."""
    answer = await ctx.elicit("What is it to be about?", Topic)
    return f"Write about {answer.content}."


TOOLS = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_missing_capability,
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
)
