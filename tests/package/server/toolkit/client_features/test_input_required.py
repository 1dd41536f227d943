"""Results that ask for input, where a revision works that way."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, speaking_to
from mcpgen_runtime.server.chosen import Context, Server
from mcpgen_runtime.server.toolkit.client_features.input_required import InputRequired
from mcpgen_runtime.server.toolkit.content import Contents, Text

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


def elicitation(mode: str | None = None) -> dict[str, Any]:
    params = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
    return {"method": "elicitation/create", "params": params | ({"mode": mode} if mode else {})}


def asking_server() -> Server:
    made = Server("asking")

    @made.tool()
    async def ask(kind: str, ctx: Context) -> Any:
        if ctx.input_responses:
            return f"{ctx.input_responses['who']['action']} {ctx.request_state}"
        wanted = {"form": elicitation(), "url": elicitation("url")}.get(
            kind, {"method": kind, "params": {}}
        )
        return InputRequired({"who": wanted}, state="s")

    @made.resource("x://ask")
    async def resource() -> Any:
        return InputRequired(state="r")

    @made.prompt("p")
    async def prompt(value: str = "") -> Any:
        return InputRequired(state="p")

    @made.completion(prompt="p", argument="value")
    async def complete(value: str) -> Any:
        return InputRequired(state="c")

    return made


@pytest.mark.requirement("resources.read-input-required", "prompts.get-input-required")
@modern
async def test_a_result_may_ask_for_input_that_the_next_request_brings(revision: str) -> None:
    able: dict[str, Any] = {"elicitation": {}}
    params: dict[str, Any] = {"name": "ask", "arguments": {"kind": "form"}}
    async with speaking_to(asking_server(), revision) as end:
        first = (await end.ask("tools/call", params, capabilities=able))["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["who"]["method"] == "elicitation/create"
        assert "content" not in first
        params |= {"inputResponses": {"who": {"action": "decline"}}}
        params["requestState"] = first["requestState"]
        second = (await end.ask("tools/call", params, capabilities=able))["result"]
        assert second["content"][0]["text"] == "decline s"
        read = (await end.ask("resources/read", {"uri": "x://ask"}))["result"]
        got = (await end.ask("prompts/get", {"name": "p"}))["result"]
    assert {"requestState"} == {"requestState"} & read.keys() & got.keys()
    assert not {"contents", "ttlMs", "cacheScope"} & read.keys()


@modern
async def test_subclasses_of_input_required_ask_for_input(revision: str) -> None:
    class Pause(InputRequired):
        """A class of the user's own."""

    made = Server("pausing")

    @made.tool()
    async def pause() -> Any:
        return Pause(state="s")

    async with speaking_to(made, revision) as end:
        answer = await end.ask("tools/call", {"name": "pause", "arguments": {}})
    assert answer["result"]["resultType"] == "input_required"


@pytest.mark.requirement("tools.call-input-required-needs-capability")
@modern
@pytest.mark.parametrize(
    ("kind", "capabilities"),
    [
        ("form", {}),
        ("form", {"elicitation": {"url": {}}}),
        ("url", {"elicitation": {}}),
        ("sampling/createMessage", {"elicitation": {}}),
        ("roots/list", {}),
    ],
)
async def test_input_that_the_client_cannot_give_is_not_asked_for(
    revision: str, kind: str, capabilities: Any
) -> None:
    params = {"name": "ask", "arguments": {"kind": kind}}
    async with speaking_to(asking_server(), revision) as end:
        answer = await end.ask("tools/call", params, capabilities=capabilities)
    assert answer["error"]["code"] == facts(revision).errors.missing_capability


@pytest.mark.requirement("completion.no-input-required")
@every
async def test_a_completion_cannot_ask_for_input(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    params = {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "value", "value": ""},
    }
    async with speaking_to(asking_server(), revision) as end:
        with caplog.at_level(logging.CRITICAL):
            assert (await end.ask("completion/complete", params))["error"]["code"] == -32603


@legacy
async def test_sessions_with_server_requests_have_no_input_results(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    params = {"name": "ask", "arguments": {"kind": "form"}}
    async with speaking_to(asking_server(), revision, {"elicitation": {}}) as end:
        with caplog.at_level(logging.CRITICAL):
            assert (await end.ask("tools/call", params))["error"]["code"] == -32603


@pytest.mark.parametrize(
    "make",
    [
        InputRequired,
        lambda: InputRequired({"a": {"params": {}}}),
        lambda: InputRequired({"a": {"method": "roots/list", "id": 1}}),
    ],
)
def test_an_input_request_is_a_method_and_its_params(make: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        make()


INTEGER = {"type": "integer"}


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


@modern
@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str | InputRequired, wrap_schema({"type": "string"})),
        (InputRequired, None),
        (Text | None | InputRequired, None),
        (int | InputRequired, wrap_schema(INTEGER)),
        (InputRequired | dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
    ],
)
async def test_a_return_type_may_say_that_input_is_asked_for(
    revision: str, annotation: Any, schema: Any
) -> None:
    server = Server("typed")

    async def tool(ctx: Context) -> Any:
        return {"a": 1} if annotation == InputRequired | dict[str, int] else 1

    tool.__annotations__["return"] = annotation
    server.tool()(tool)
    async with speaking_to(server, revision) as end:
        (listed,) = (await end.ask("tools/list"))["result"]["tools"]
    assert listed.get("outputSchema") == schema


@every
async def test_a_list_of_contents_may_be_empty_or_ask(revision: str) -> None:
    server = Server("typed")

    @server.resource("x://none")
    async def none() -> list[Contents] | InputRequired:
        return []

    async with speaking_to(server, revision, {}) as end:
        read = await end.ask("resources/read", {"uri": "x://none"})
    assert read["result"]["contents"] == []
