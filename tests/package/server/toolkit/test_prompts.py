"""Prompts and completion over the wire."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pytest

from kit.wire import ALL, PER_REQUEST, facts, speaking_to
from mcpgen_runtime.r2026_07_28.models import GetPromptResult, PromptMessage, TextContent
from mcpgen_runtime.server.chosen import Context, Server
from mcpgen_runtime.server.toolkit import prompts
from mcpgen_runtime.server.toolkit.completions import Completion
from mcpgen_runtime.server.toolkit.content import (
    Audio,
    Contents,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
)

every = pytest.mark.parametrize("revision", ALL)
STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]

server = Server("prompts", "1")
reached: list[str] = []


@server.prompt(title="Review", meta={"com.example/k": 1})
async def review(code: str, level: int = 1, *, ctx: Context) -> str:
    """Review code.

    Args:
        code: What to review.
    """
    reached.append(code)
    return f"review {code} at {level}"


@server.prompt()
def talk() -> list[Message | str | Text]:
    return [
        "first",
        Message("assistant", "second"),
        Message("user", Image(b"\xfb", "image/png")),
        Text("fourth"),
    ]


@server.prompt()
async def newer() -> list[Any]:
    return [
        Audio(b"abc", "audio/wav"),
        Message("user", ResourceLink(uri="x://a", name="a")),
        EmbeddedResource(Contents("x://a", blob=b"\xfb")),
    ]


@server.prompt()
async def wire_form() -> Any:
    return {"role": "assistant", "content": "as on the wire"}


@server.prompt()
async def wrong_role() -> Any:
    return {"role": "system", "content": "x"}


@server.prompt()
async def two_blocks() -> Any:
    return {"role": "user", "content": [Text("a"), Text("b")]}


@server.prompt()
async def failing() -> str:
    raise RuntimeError("hunter2")


@server.resource("x://{city}/{part}")
async def city(city: str, part: str) -> str:
    return city


@server.completion(prompt="review", argument="code")
async def codes(value: str) -> list[str]:
    return [f"{value}{number}" for number in range(250)]


@server.completion(prompt="review", argument="level")
def levels(value: str, settled: Mapping[str, str], ctx: Context) -> Completion:
    return Completion([settled.get("code", "-"), ctx.revision], total=9)


@server.completion(template="x://{city}/{part}", argument="city")
async def cities(value: str) -> Iterator[str]:
    return (f"{value}{number}" for number in itertools.count())


@server.completion(template="x://{city}/{part}", argument="part")
async def parts(value: str) -> Any:
    return {"a": 1}.keys() if value else 3


async def get(revision: str, name: str, arguments: Any = None) -> Any:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    async with speaking_to(server, revision) as end:
        return await end.ask("prompts/get", params)


@pytest.mark.requirement(
    "prompts.list-result-shape", "prompts.list-result-shape-2026", "prompts.name-required"
)
@every
async def test_prompts_are_listed_with_their_arguments(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        result = (await end.ask("prompts/list"))["result"]
    first = result["prompts"][0]
    assert (first["name"], first["description"]) == ("review", "Review code.")
    assert first["arguments"] == [
        {"name": "code", "description": "What to review.", "required": True},
        {"name": "level", "required": False},
    ]
    assert ("title" in first) == (revision in STRUCTURED)
    hints = {"resultType", "ttlMs", "cacheScope"}
    assert hints & result.keys() == (hints if revision in PER_REQUEST else set())


async def test_arguments_say_their_form_where_it_is_no_text() -> None:
    typed_server = Server("typed")

    @typed_server.prompt(description="Own text.")
    def typed(
        code: str,
        counts: list[int],
        anything: Any,
        either: list[int] | str,
        both: list[int] | dict[str, int],
        noted: Annotated[dict[str, int], "By name."] = {},  # noqa: B006 - what users write
        number: int | None = None,
    ) -> str:
        raise NotImplementedError

    def plain() -> str:
        raise NotImplementedError

    typed_server.add_prompt(plain)
    async with speaking_to(typed_server, ALL[-1]) as end:
        listed, unnamed = (await end.ask("prompts/list"))["result"]["prompts"]
    assert unnamed == {"name": "plain"}
    numbers = '{"type":"array","items":{"type":"integer"}}'
    named = '{"type":"object","additionalProperties":{"type":"integer"}}'
    assert listed["description"] == "Own text."
    assert listed["arguments"] == [
        {"name": "code", "required": True},
        {"name": "counts", "description": f"JSON: {numbers}", "required": True},
        {"name": "anything", "required": True},
        {"name": "either", "required": True},
        {"name": "both", "description": f'JSON: {{"anyOf":[{numbers},{named}]}}', "required": True},
        {"name": "noted", "description": f"By name. JSON: {named}", "required": False},
        {"name": "number", "required": False},
    ]


@pytest.mark.parametrize(
    ("own", "expected"), [("Of the result.", "Of the result."), (None, "Own.")]
)
async def test_a_result_of_the_revision_has_its_description(own: Any, expected: str) -> None:
    describing = Server("describing")

    @describing.prompt("p", description="Own.")
    async def describe() -> Any:
        content = TextContent(text="a")
        messages = [PromptMessage(role="user", content=content)]
        return GetPromptResult(messages=messages, description=own, meta={"k": 1})

    async with speaking_to(describing, ALL[-1]) as end:
        result = (await end.ask("prompts/get", {"name": "p"}))["result"]
    assert result["description"] == expected
    assert result["_meta"]["k"] == 1
    assert [each["content"]["text"] for each in result["messages"]] == ["a"]


def test_a_prompt_has_a_name_and_arguments_with_names() -> None:
    nameless = Server("prompts")
    with pytest.raises(ValueError, match="prompt ' ': expected a name"):
        nameless.prompt(" ")(lambda: "text")
    with pytest.raises(TypeError, match="prompt 'open': expected arguments with names, got "):
        nameless.prompt("open")(lambda **arguments: "text")
    with pytest.raises(LookupError):
        nameless.remove_prompt("open")


@pytest.mark.parametrize(
    ("value", "kind", "match"),
    [
        ({"role": "system", "content": "a"}, ValueError, "expected user or assistant, got 'sys"),
        ({"content": "a"}, ValueError, "expected user or assistant, got None"),
        (5, TypeError, "expected text or one block of content, got int"),
        ({"role": "user", "content": ["a"]}, TypeError, "one block of content, got list"),
    ],
)
def test_a_message_has_a_role_and_one_block(value: Any, kind: Any, match: str) -> None:
    with pytest.raises(kind, match=f"prompt 'x': .*{match}"):
        prompts._message(value, "prompt 'x'")


@pytest.mark.requirement(
    "prompts.get-result-shape", "prompts.message-role", "prompts.message-single-content"
)
@every
async def test_a_prompt_gives_messages_each_with_one_block(revision: str) -> None:
    result = (await get(revision, "review", {"code": "x", "level": "2"}))["result"]
    assert result["description"] == "Review code."
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "review x at 2"}}
    ]
    messages = (await get(revision, "talk"))["result"]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]
    assert [message["content"]["type"] for message in messages] == ["text", "text", "image", "text"]
    assert messages[2]["content"]["data"] == "+w=="
    (made,) = (await get(revision, "wire_form"))["result"]["messages"]
    assert made["role"] == "assistant"


@pytest.mark.requirement(
    "prompts.message-types-2024",
    "prompts.message-types-2025-03",
    "prompts.message-types-resource-link",
    "prompts.embedded-resource-fields",
)
@every
async def test_a_message_has_only_content_kinds_of_the_revision(revision: str) -> None:
    messages = (await get(revision, "newer"))["result"]["messages"]
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
@pytest.mark.parametrize("name", ["wrong_role", "two_blocks", "failing"])
async def test_a_prompt_that_cannot_be_sent_is_an_internal_error(
    revision: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        error = (await get(revision, name))["error"]
    assert error["code"] == -32603
    assert "hunter2" not in str(error)


@pytest.mark.requirement(
    "prompts.invalid-name-error", "prompts.missing-arguments-error", "prompts.validate-arguments"
)
@every
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("nope", None, "nope"),
        ("review", None, "'code': required"),
        ("review", {"code": "x", "speed": "3"}, "unknown argument 'speed'"),
        ("review", {"code": "x", "level": "high"}, "'level': expected int"),
        ("review", {"code": 3}, "arguments"),
    ],
)
async def test_bad_prompt_requests_never_reach_the_function(
    revision: str, name: str, arguments: Any, said: str
) -> None:
    reached.clear()
    error = (await get(revision, name, arguments))["error"]
    assert error["code"] == -32602
    assert said in error["message"]
    assert reached == []


async def complete(revision: str, ref: Any, name: str, value: Any, **more: Any) -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    async with speaking_to(server, revision) as end:
        return await end.ask("completion/complete", params)


REVIEW = {"type": "ref/prompt", "name": "review"}
CITY = {"type": "ref/resource", "uri": "x://{city}/{part}"}


@pytest.mark.requirement("completion.max-100-values", "completion.result-shape")
@every
async def test_at_most_a_hundred_values_leave_and_the_rest_is_told(revision: str) -> None:
    completion = (await complete(revision, REVIEW, "code", "c"))["result"]["completion"]
    assert completion["values"] == [f"c{number}" for number in range(100)]
    assert (completion["total"], completion["hasMore"]) == (250, True)


@every
async def test_an_endless_completion_is_read_only_as_far_as_needed(revision: str) -> None:
    completion = (await complete(revision, CITY, "city", "c"))["result"]["completion"]
    assert len(completion["values"]) == 100
    assert completion["hasMore"] is True
    assert "total" not in completion


@every
async def test_a_completion_may_know_the_other_arguments(revision: str) -> None:
    context = {"context": {"arguments": {"code": "x"}}} if revision in STRUCTURED else {}
    completion = (await complete(revision, REVIEW, "level", "", **context))["result"]["completion"]
    assert completion == {
        "values": ["x" if context else "-", revision],
        "total": 9,
        "hasMore": True,
    }


@every
async def test_an_argument_without_completion_has_no_values(revision: str) -> None:
    plain = Server("plain")
    plain.prompt()(review)
    plain.prompt("other")(review)
    plain.completion(prompt="other", argument="code")(codes)
    async with speaking_to(plain, revision) as end:
        params = {"ref": REVIEW, "argument": {"name": "code", "value": ""}}
        answer = await end.ask("completion/complete", params)
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
        {"ref": {"type": "ref/other"}, "argument": {"name": "code", "value": ""}},
        {"ref": REVIEW, "argument": {"name": "nope", "value": ""}},
        {"ref": REVIEW, "argument": {"name": "code", "value": 3}},
        {"ref": REVIEW},
    ],
)
async def test_a_completion_of_nothing_known_is_refused(revision: str, params: Any) -> None:
    async with speaking_to(server, revision) as end:
        assert (await end.ask("completion/complete", params))["error"]["code"] == -32602


@pytest.mark.requirement("completion.internal-error")
@every
async def test_a_completer_of_a_wrong_return_type_is_an_internal_error(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        assert (await complete(revision, CITY, "part", ""))["error"]["code"] == -32603
    completion = (await complete(revision, CITY, "part", "x"))["result"]["completion"]
    assert completion["values"] == ["a"]


@pytest.mark.parametrize("count", [100, 101])
def test_a_completion_has_at_most_100_values(count: int) -> None:
    values = [str(number) for number in range(count)]
    has_more = count > 100
    assert Completion(values).wire() == {
        "values": values[:100],
        "total": count,
        "hasMore": has_more,
    }
    assert Completion(iter(values)).wire() == {"values": values[:100], "hasMore": has_more}
    assert Completion(["a"], total=2).wire()["hasMore"]
    assert not Completion(["a"], total=1).wire()["hasMore"]


def test_a_completion_reads_one_value_more_than_it_sends() -> None:
    values = map(str, itertools.count())
    Completion(values).wire()
    assert next(values) == "101"
    assert Completion(iter(())).wire() == {"values": [], "hasMore": False}
    numbers: Any = ["Oslo", 3]
    with pytest.raises(TypeError, match="completion: expected str, got int"):
        Completion(numbers).wire()


@pytest.mark.anyio
@pytest.mark.parametrize("value", ["Oslo", 3, ["Oslo", 3]])
async def test_a_completer_returns_strings_and_no_string(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plain = Server("plain")
    plain.prompt()(review)

    @plain.completion(prompt="review", argument="code")
    def codes(value: str, others: Mapping[str, str]) -> Any:
        return answer

    answer = value
    async with speaking_to(plain, ALL[-1]) as end:
        params = {"ref": REVIEW, "argument": {"name": "code", "value": ""}}
        with caplog.at_level(logging.CRITICAL):
            assert (await end.ask("completion/complete", params))["error"]["code"] == -32603


def no_parameter() -> list[str]:
    return []


def three_parameters(a: str, b: Mapping[str, str], c: str) -> list[str]:
    return [a, c]


@pytest.mark.parametrize(
    ("function", "expected"), [(no_parameter, "nothing"), (three_parameters, "a, b, c")]
)
def test_a_completer_has_one_or_two_parameters(function: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=f"perhaps of the other arguments, got one of {expected}$"):
        server.completion(prompt="review", argument="fresh")(function)
