"""Prompts and completion over the wire (server/prompts, server/utilities/completion)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from kit.wire import ALL, PER_REQUEST, every, facts, speaking_to
from mcpgen_runtime import (
    Audio,
    Completion,
    Contents,
    Context,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Server,
    Text,
)

STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]


def review_server() -> Server:
    """A server with the prompt `review` and without completions."""
    server = Server("prompts")

    @server.prompt(title="Review", meta={"com.example/k": 1})
    async def review(code: str, level: int = 1, *, ctx: Context) -> str:
        """Review code.

        Args:
            code: What to review.
        """
        return f"review {code} at {level}"

    return server


def returning(value: Any) -> Server:
    """A server whose prompt `give` returns the value."""
    server = Server("prompts")
    server.add_prompt(lambda: value, "give")
    return server


async def get(server: Server, revision: str, name: str = "give", arguments: Any = None) -> Any:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    async with speaking_to(server, revision) as end:
        return await end.ask("prompts/get", params)


@pytest.mark.requirement(
    "prompts.list-result-shape", "prompts.list-result-shape-2026", "prompts.name-required"
)
@every
async def test_prompts_are_listed_with_their_arguments(revision: str) -> None:
    async with speaking_to(review_server(), revision) as end:
        result = (await end.ask("prompts/list"))["result"]
    (prompt,) = result["prompts"]
    assert (prompt["name"], prompt["description"]) == ("review", "Review code.")
    assert prompt["arguments"] == [
        {"name": "code", "description": "What to review.", "required": True},
        {"name": "level", "required": False},
    ]
    assert ("title" in prompt) == (revision in STRUCTURED)
    hints = {"resultType", "ttlMs", "cacheScope"}
    assert hints & result.keys() == (hints if revision in PER_REQUEST else set())


async def test_arguments_say_their_form_where_it_is_no_text() -> None:
    typed_server = Server("typed")

    @typed_server.prompt(description="Own text.")
    def typed(
        code: str,
        counts: list[int],
        either: list[int] | str,
        both: list[int] | dict[str, int],
        noted: Annotated[dict[str, int], "By name."] = {},  # noqa: B006 - what users write
    ) -> str:
        raise NotImplementedError

    typed_server.add_prompt(lambda: "", "plain")
    async with speaking_to(typed_server, ALL[-1]) as end:
        listed, unnamed = (await end.ask("prompts/list"))["result"]["prompts"]
    assert unnamed == {"name": "plain"}
    numbers = '{"type":"array","items":{"type":"integer"}}'
    named = '{"type":"object","additionalProperties":{"type":"integer"}}'
    assert listed["description"] == "Own text."
    assert listed["arguments"] == [
        {"name": "code", "required": True},
        {"name": "counts", "description": f"JSON: {numbers}", "required": True},
        {"name": "either", "required": True},
        {"name": "both", "description": f'JSON: {{"anyOf":[{numbers},{named}]}}', "required": True},
        {"name": "noted", "description": f"By name. JSON: {named}", "required": False},
    ]


@pytest.mark.requirement("prompts.get-result-shape")
@every
async def test_a_prompt_gives_messages_each_with_one_block(revision: str) -> None:
    answer = await get(review_server(), revision, "review", {"code": "x", "level": "2"})
    assert answer["result"]["description"] == "Review code."
    assert answer["result"]["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "review x at 2"}}
    ]
    talk = [
        "first",
        Message("assistant", "second"),
        Message("user", Image(b"\xfb", "image/png")),
        Text("fourth"),
        {"role": "assistant", "content": "as on the wire"},
    ]
    messages = (await get(returning(talk), revision))["result"]["messages"]
    assert [(message["role"], message["content"]["type"]) for message in messages] == [
        ("user", "text"),
        ("assistant", "text"),
        ("user", "image"),
        ("user", "text"),
        ("assistant", "text"),
    ]
    assert messages[2]["content"]["data"] == "+w=="


@pytest.mark.requirement(
    "prompts.message-types-2024",
    "prompts.message-types-2025-03",
    "prompts.message-types-resource-link",
    "prompts.embedded-resource-fields",
)
@every
async def test_a_message_has_only_content_kinds_of_the_revision(revision: str) -> None:
    blocks = [
        Audio(b"abc", "audio/wav"),
        Message("user", ResourceLink(uri="x://a", name="a")),
        EmbeddedResource(Contents("x://a", blob=b"\xfb")),
    ]
    messages = (await get(returning(blocks), revision))["result"]["messages"]
    audio, link, embedded = (message["content"] for message in messages)
    assert audio["type"] == ("text" if revision == ALL[0] else "audio")
    assert link["type"] == ("resource_link" if revision in STRUCTURED else "text")
    assert embedded["resource"] == {
        "uri": "x://a",
        "blob": "+w==",
        "mimeType": "application/octet-stream",
    }


@pytest.mark.requirement("prompts.message-role", "prompts.message-single-content")
@every
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"role": "system", "content": "a"}, "expected user or assistant, got 'sys"),
        (5, "expected text or one block of content, got int"),
        ({"role": "user", "content": ["a"]}, "one block of content, got list"),
    ],
)
async def test_a_prompt_that_cannot_be_sent_is_an_internal_error(
    revision: str, value: Any, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = (await get(returning(value), revision))["error"]
    assert error["code"] == -32603
    assert complaint in caplog.text


@pytest.mark.requirement(
    "prompts.invalid-name-error", "prompts.missing-arguments-error", "prompts.validate-arguments"
)
@every
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("nope", None, "nope"),
        ("strict", None, "'code': required"),
        ("strict", {"code": "x", "speed": "3"}, "unknown argument 'speed'"),
        ("strict", {"code": "x", "level": "high"}, "'level': expected int"),
        ("strict", {"code": 3}, "arguments"),
    ],
)
async def test_bad_prompt_requests_never_reach_the_function(
    revision: str, name: str, arguments: Any, said: str
) -> None:
    server, reached = Server("prompts"), list[str]()

    @server.prompt()
    async def strict(code: str, level: int = 1) -> str:
        reached.append(code)
        return code

    error = (await get(server, revision, name, arguments))["error"]
    assert error["code"] == -32602
    assert said in error["message"]
    assert reached == []


REVIEW = {"type": "ref/prompt", "name": "review"}
CITY = {"type": "ref/resource", "uri": "x://{city}"}


async def complete(server: Server, revision: str, ref: Any, name: str, **more: Any) -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": "c"}, **more}
    async with speaking_to(server, revision) as end:
        return await end.ask("completion/complete", params)


@pytest.mark.requirement("completion.max-100-values", "completion.result-shape")
@every
@pytest.mark.parametrize(
    ("values", "count", "more"),
    [
        pytest.param(lambda: ["c"] * 100, 100, {"total": 100, "hasMore": False}, id="100"),
        pytest.param(lambda: ["c"] * 101, 100, {"total": 101, "hasMore": True}, id="101"),
        pytest.param(lambda: iter(["c"]), 1, {"hasMore": False}, id="an iterator that ends"),
        pytest.param(lambda: itertools.repeat("c"), 100, {"hasMore": True}, id="one without end"),
        pytest.param(
            lambda: Completion(["c"], total=2), 1, {"total": 2, "hasMore": True}, id="more known"
        ),
        pytest.param(
            lambda: Completion(["c"], total=1), 1, {"total": 1, "hasMore": False}, id="all known"
        ),
    ],
)
async def test_at_most_a_hundred_values_leave_and_the_rest_is_told(
    revision: str, values: Any, count: int, more: dict[str, Any]
) -> None:
    server = review_server()
    server.completion(prompt="review", argument="code")(lambda value: values())
    completion = (await complete(server, revision, REVIEW, "code"))["result"]["completion"]
    assert completion == {"values": ["c"] * count, **more}


@every
async def test_a_completion_may_know_the_other_arguments(revision: str) -> None:
    server = review_server()

    @server.completion(prompt="review", argument="level")
    def levels(value: str, settled: Mapping[str, str], ctx: Context) -> list[str]:
        return [settled.get("code", "-"), ctx.revision]

    context = {"context": {"arguments": {"code": "x"}}} if revision in STRUCTURED else {}
    answer = await complete(server, revision, REVIEW, "level", **context)
    assert answer["result"]["completion"]["values"] == ["x" if context else "-", revision]
    # an argument without completion has no values
    answer = await complete(server, revision, REVIEW, "code")
    assert answer["result"]["completion"] == {"values": []}


@pytest.mark.requirement(
    "completion.must-validate",
    "completion.invalid-prompt-error",
    "completion.missing-arguments-error",
)
@every
@pytest.mark.parametrize(
    "params",
    [
        {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "x://b"}, "argument": {"name": "a", "value": ""}},
        {"ref": REVIEW, "argument": {"name": "nope", "value": ""}},
        {"ref": REVIEW, "argument": {"name": "code", "value": 3}},
        {"ref": REVIEW},
    ],
)
async def test_a_completion_of_nothing_known_is_refused(revision: str, params: Any) -> None:
    server = review_server()
    server.completion(prompt="review", argument="code")(lambda value: [value])
    async with speaking_to(server, revision) as end:
        assert (await end.ask("completion/complete", params))["error"]["code"] == -32602


@pytest.mark.requirement("completion.internal-error")
@every
@pytest.mark.parametrize("value", ["Oslo", 3, ["Oslo", 3]])
async def test_a_completer_returns_strings_and_no_string(
    revision: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("places")
    server.resource("x://{city}")(lambda city: city)

    @server.completion(template="x://{city}", argument="city")
    def cities(value: str, others: Mapping[str, str]) -> Any:
        return answer

    answer = value
    with caplog.at_level(logging.CRITICAL):
        assert (await complete(server, revision, CITY, "city"))["error"]["code"] == -32603
    answer = ["Oslo"]
    completed = await complete(server, revision, CITY, "city")
    assert completed["result"]["completion"]["values"] == ["Oslo"]
