"""Results that ask for input, as they leave a server, and retries, as they reach it."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from kit.live import server_with
from kit.respondent import EVERYTHING, ROOTS, SAMPLED, accept_result, connect_respondent
from kit.rules import revisions_holding
from kit.wire import RawEnd, legacy, meta_of, speaking_to, text_in
from mcpgen_runtime import REVISIONS, Accepted, Context, InputRequired, Server
from requirements import EVERY_REVISION

IN = revisions_holding("mrtr.result-type-present")
modern = pytest.mark.parametrize("revision", IN)

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
KEY = b"a key that all workers of the server share"
CALL: dict[str, Any] = {"name": "greet", "arguments": {"greeting": "Hello"}}


FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
PAGE = {"mode": "url", "message": "go", "url": "https://x.example"}


def greeter(key: Any = None, name: str = "greeter", **settings: Any) -> Server:
    """A server whose tool needs two rounds for a greeting."""
    server = Server(name, state_key=key, **settings)

    @server.tool()
    async def greet(greeting: str, ctx: Context) -> str:
        first = await ctx.elicit("What is your name?", NAME, key="user_name")
        if not isinstance(first, Accepted):
            return first.action
        second = await ctx.elicit("And your city?", NAME, key="city")
        city = second.content["name"] if isinstance(second, Accepted) else second.action
        return f"{greeting}, {first.content['name']} of {city}!"

    @server.tool()
    async def plain(text: str = "") -> str:
        return text

    @server.prompt()
    async def greeting(ctx: Context) -> str:
        return str((await ctx.elicit("What is your name?", NAME, key="user_name")).action)

    return server


async def call(end: RawEnd, params: Any = CALL, method: str = "tools/call", **more: Any) -> Any:
    """Send a request that can be asked anything back, with more params."""
    return await end.ask(method, {**params, **more}, capabilities=EVERYTHING)


def answers(**named: str) -> dict[str, Any]:
    """Answers under keys, each with a name filled in."""
    return {key: accept_result(name=name) for key, name in named.items()}


@pytest.mark.requirement("mrtr.result-type-input-required", "mrtr.rounds-independent")
@modern
async def test_any_worker_takes_a_request_up_where_another_left_it(revision: str) -> None:
    async with speaking_to(greeter(KEY), revision) as one:
        first = (await call(one))["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"] == {
            "user_name": {
                "method": "elicitation/create",
                "params": {"message": "What is your name?", "requestedSchema": NAME},
            }
        }
        assert not {"content", "ttlMs", "cacheScope"} & first.keys()
        state = {"requestState": first["requestState"]}
        async with speaking_to(greeter(KEY), revision) as two:
            more = {"inputResponses": answers(user_name="Ada"), **state}
            second = (await call(two, **more))["result"]
            assert list(second["inputRequests"]) == ["city"]
            assert second["requestState"] != first["requestState"]
        more = {
            "inputResponses": answers(city="Oslo"),
            "requestState": second["requestState"],
        }
        last = (await call(one, **more))["result"]
        assert one.heard == []
    assert last["resultType"] == "complete"
    assert last["content"][0]["text"] == "Hello, Ada of Oslo!"


@pytest.mark.requirement("mrtr.result-type-present", "mrtr.result-type-complete")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_final_result_is_said_to_be_complete(revision: str) -> None:
    server = greeter()
    server.resource("x://a")(lambda: "a")
    server.completion(prompt="greeting", argument="x")(lambda value: [])
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("tools/call", {"name": "plain", "arguments": {}}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "x://a"}),
    ]
    if revision in IN:
        requests.append(("server/discover", {}))
    async with speaking_to(server, revision, {}) as end:
        result_types = [(await end.ask(*each))["result"].get("resultType") for each in requests]
    assert set(result_types) == {"complete" if revision in IN else None}


@pytest.mark.requirement(
    "mrtr.state-reject-invalid", "mrtr.state-untrusted", "mrtr.protocol-errors"
)
@modern
@pytest.mark.parametrize("tool", ["greet", "plain"])
@pytest.mark.parametrize(
    "alter",
    [
        lambda s: {"requestState": s + "x"},
        lambda s: {"requestState": ""},
        lambda s: {"requestState": 5},
        lambda s: {"requestState": s, "inputResponses": []},
    ],
    ids=["longer", "empty", "a number", "answers in a list"],
)
async def test_a_state_that_was_altered_is_refused(revision: str, tool: str, alter: Any) -> None:
    params = {**CALL, "name": tool, "arguments": {} if tool == "plain" else CALL["arguments"]}
    async with speaking_to(greeter(), revision) as end:
        state = (await call(end))["result"]["requestState"]
        more = {"inputResponses": answers(user_name="Ada"), **alter(state)}
        answer = await call(end, params, **more)
        assert answer["error"]["code"] == -32602


@pytest.mark.requirement("mrtr.state-bound-to-request")
@modern
async def test_a_state_is_of_no_use_to_another_request(revision: str) -> None:
    async with speaking_to(greeter(), revision) as end:
        state = {"requestState": (await call(end))["result"]["requestState"]}
        more = {"inputResponses": answers(user_name="Ada"), **state}
        others: list[tuple[dict[str, Any], str]] = [
            ({**CALL, "arguments": {"greeting": "Bye"}}, "tools/call"),
            ({"name": "plain", "arguments": {}}, "tools/call"),
            ({"name": "greeting"}, "prompts/get"),
        ]
        for params, method in others:
            answer = await call(end, params, method, **more)
            assert "not of another" in answer["error"]["message"]
        meta = {"_meta": {**meta_of(revision, EVERYTHING), "progressToken": 7}}
        same = await call(end, {**CALL, **meta}, **more)
        assert list(same["result"]["inputRequests"]) == ["city"]


@pytest.mark.requirement(
    "mrtr.state-reject-invalid",
    "mrtr.state-untrusted",
    "mrtr.state-integrity",
    revisions=EVERY_REVISION,
)
async def test_no_character_of_a_state_can_be_changed() -> None:
    async with speaking_to(greeter(), IN[-1]) as end:
        state = (await call(end))["result"]["requestState"]
        changed = {state + more for more in ("x", "-TAMPERED", " ", "=")}
        for at, character in enumerate(state):
            changed.add(state[:at] + state[at + 1 :])
            for other in {"A", "B", "-", ".", chr(ord(character) ^ 1), "\u00e9"} - {character}:
                changed.add(state[:at] + other + state[at + 1 :])
        garbage = ["", ".", "x", "%%%", "A" * 2**20, "e30.e30", "=.=", "a.b.c"]
        for text in (*changed, *garbage):
            error = (await call(end, requestState=text))["error"]
            assert error["code"] == -32602
            assert "expected one that this server gave, unalt" in error["message"]


@pytest.mark.requirement("mrtr.state-expiry")
@modern
@pytest.mark.parametrize(
    ("seconds", "after", "is_good"),
    [(60, 59, True), (60, 60, False), (0.5, 0, True), (1e-6, 1, False)],
)
async def test_a_state_is_good_for_a_while(
    revision: str, seconds: float, after: float, is_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    async with speaking_to(greeter(state_seconds=seconds), revision) as end:
        more = {"requestState": (await call(end))["result"]["requestState"]}
        now += after
        answer = await call(end, inputResponses=answers(user_name="Ada"), **more)
    if is_good:
        assert list(answer["result"]["inputRequests"]) == ["city"]
    else:
        assert answer["error"]["code"] == -32602
        assert "expired" in answer["error"]["message"]


async def test_a_state_has_a_size_that_it_does_not_pass(caplog: pytest.LogCaptureFixture) -> None:
    server, states = Server("large"), list[str]()
    server.add_tool(lambda size: InputRequired(state="x" * size), "ask")
    async with speaking_to(server, IN[-1]) as end:
        for size in range(196_450, 196_540):
            answer = await call(end, {"name": "ask", "arguments": {"size": size}})
            if "result" in answer:
                states.append(answer["result"]["requestState"])
        params = {"name": "ask", "arguments": {"size": 196_449 + len(states)}}
        assert "result" in await call(end, params, requestState=states[-1])
    assert len(states[-1]) == 262_144
    assert "takes 262146 characters, more than the 262144" in caplog.text


@modern
async def test_keys_are_shared_by_workers_and_can_be_rotated(revision: str) -> None:
    old, new = greeter(KEY), greeter([bytes(range(32)), KEY])
    async with (
        speaking_to(old, revision) as one,
        speaking_to(new, revision) as two,
        speaking_to(greeter(), revision) as own,
    ):
        more = {"requestState": (await call(one))["result"]["requestState"]}
        again = (await call(two, **more, inputResponses=answers(user_name="Ada")))["result"]
        assert list(again["inputRequests"]) == ["city"]
        assert (await call(one, requestState=again["requestState"]))["error"]["code"] == -32602
        refused = (await call(own, **more))["error"]
        assert (refused["code"], "state_key" in refused["message"]) == (-32602, True)
        more = {"requestState": (await call(own))["result"]["requestState"]}
        assert list((await call(own, **more))["result"]["inputRequests"]) == ["user_name"]
    named = greeter(KEY, "s\nABCD")  # a name that runs into the rest
    async with speaking_to(named, revision) as one, speaking_to(greeter(KEY, "s"), revision) as two:
        state = (await call(one))["result"]["requestState"]
        for text in (state, f"ABCD\n{state}"):
            assert "unaltered" in (await call(two, requestState=text))["error"]["message"]


@pytest.mark.requirement("mrtr.missing-response-rerequested")
@modern
async def test_missing_responses_are_requested_again(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        told = await ctx.ask_all(
            ctx.elicit("One?", NAME, key="one"), *(ctx.elicit("Who?", NAME) for _ in range(3))
        )
        return " ".join(each.content["name"] for each in told if each.content)

    async with speaking_to(server_with(ask), revision) as end:
        params = {"name": "ask"}
        wrong = (await call(end, params, inputResponses=answers(other="x")))["result"]
        one, first, *others = wrong["inputRequests"]
        assert one == "one"
        assert re.fullmatch("elicitation-[0-9a-f]{16}", first)
        assert others == [f"{first}-2", f"{first}-3"]
        named = dict(zip((first, *others), "ABC", strict=True))
        more = {"inputResponses": answers(**named), "requestState": wrong["requestState"]}
        part = (await call(end, params, **more))["result"]
        assert list(part["inputRequests"]) == ["one"]
        more = {"inputResponses": answers(one="1"), "requestState": part["requestState"]}
        assert text_in(await call(end, params, **more)) == "1 A B C"


@pytest.mark.requirement("mrtr.extra-responses-ignored")
@modern
async def test_answers_that_nobody_asked_for_change_nothing(revision: str) -> None:
    given = answers(user_name="Ada", city="Oslo", extra="x", more="y")
    async with speaking_to(greeter(), revision) as end:
        assert text_in(await call(end, inputResponses=given)) == "Hello, Ada of Oslo!"
        state = {"requestState": (await call(end))["result"]["requestState"]}
        second = (await call(end, inputResponses=given, **state))["result"]
        assert list(second["inputRequests"]) == ["city"]  # it was not asked for yet


@pytest.mark.requirement("mrtr.validate-responses")
@modern
@pytest.mark.parametrize(
    "wrong",
    [
        12345,
        SAMPLED,
        {"action": "reject"},
        {"action": "accept"},
        {"action": "accept", "content": {"name": {"nested": 1}}},
    ],
)
async def test_an_answer_that_is_none_is_refused(revision: str, wrong: Any) -> None:
    async with speaking_to(greeter(), revision) as end:
        state = {"requestState": (await call(end))["result"]["requestState"]}
        for more in (state, {}):
            answer = await call(end, inputResponses={"user_name": wrong}, **more)
            assert answer["error"]["code"] == -32602


@pytest.mark.requirement(
    "mrtr.input-requests-optional",
    "resources.read-input-required",
    "prompts.get-input-required",
    "mrtr.at-least-one-field",
)
@modern
async def test_a_result_asks_something_or_has_a_state(revision: str) -> None:
    class Pause(InputRequired):
        """A class of the user's own."""

    server = Server("busy")

    async def busy(ctx: Context) -> str | InputRequired:
        return f"after {ctx.request_state}" if ctx.is_retry else Pause(state="a w\u00e9it\n")

    server.add_tool(busy)
    server.add_prompt(busy)
    server.add_resource(busy, "x://busy", name="busy")
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "busy", "arguments": {}}),
        ("prompts/get", {"name": "busy"}),
        ("resources/read", {"uri": "x://busy"}),
    ]
    async with connect_respondent(server, revision) as client:
        for method, params in requests:
            answer = await client.ask(method, params)
            assert "after a w\\u00e9it\\n" in json.dumps(answer["result"])
        assert [round.keys() - {"_meta"} for round in client.rounds] == [
            {"resultType", "requestState"}
        ] * 3


@pytest.mark.requirement("mrtr.input-request-kinds")
@modern
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", None),
        ("sampling/createMessage", None),
        ("elicitation/create", {**FORM, "mode": "popup"}),
        ("elicitation/create", {"requestedSchema": {"type": "object", "properties": {}}}),
        ("elicitation/create", {"mode": "url", "message": "Go"}),
        ("elicitation/create", {"mode": "form", "message": "Go", "url": "https://x.example"}),
    ],
)
async def test_only_what_a_client_can_be_asked_leaves(
    revision: str, method: str, params: Any
) -> None:
    wanted = {"method": method, **({} if params is None else {"params": params})}
    server = Server("odd")
    server.add_tool(lambda: InputRequired({"a": wanted}), name="odd")
    async with speaking_to(server, revision) as end:
        answer = await call(end, {"name": "odd"})
    assert answer["error"]["code"] == -32603


@legacy
async def test_where_servers_send_requests_no_result_asks_for_input(revision: str) -> None:
    server = Server("own")
    server.add_tool(lambda: InputRequired(state="s"), name="ask")
    async with connect_respondent(server, revision) as client:
        answer = await client.call("ask")
    assert answer["error"]["code"] == -32603


@pytest.mark.parametrize(
    "requests", [None, {"a": {"params": {}}}, {"a": {"method": "roots/list", "id": 1}}]
)
def test_an_input_request_is_a_method_and_its_params(requests: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        InputRequired(requests)


@pytest.mark.requirement("tools.call-input-required-needs-capability")
@modern
@pytest.mark.parametrize(
    ("method", "params", "capabilities", "required"),
    [
        ("elicitation/create", FORM, {}, {"elicitation": {}}),
        ("elicitation/create", FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("elicitation/create", PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("sampling/createMessage", {}, {"elicitation": {}}, {"sampling": {}}),
        ("roots/list", {}, {}, {"roots": {}}),
    ],
)
async def test_only_what_the_client_declared_is_asked(
    revision: str, method: str, params: Any, capabilities: Any, required: Any
) -> None:
    server = Server("careful")

    server.add_tool(
        lambda: InputRequired({"who": {"method": method, "params": params}}), name="insist"
    )

    async with connect_respondent(server, revision, {}, capabilities) as client:
        error = (await client.call("insist"))["error"]
    assert error["code"] == REVISIONS[revision].facts.errors.missing_capability
    assert error["data"] == {"requiredCapabilities": required}


@pytest.mark.requirement("mrtr.state-integrity", "mrtr.request-state-format")
@modern
async def test_the_state_of_a_handler_is_sealed_and_comes_back_whole(revision: str) -> None:
    own = '{"a": 1}\n \u00e9'

    async def ask(ctx: Context) -> str | InputRequired:
        first = await ctx.elicit("Who?", NAME, key="who")
        if ctx.request_state is None:
            return InputRequired({"city": {"method": "roots/list"}}, state=own)
        assert ctx.input_responses["city"] == ROOTS
        second = await ctx.elicit("Sure?", NAME)
        return f"{first.action} {second.action} {ctx.request_state == own}"

    told = {"elicitation/create": accept_result(name="Ada"), "roots/list": ROOTS}

    async with connect_respondent(server_with(ask), revision, told) as client:
        params = {"name": "ask", "arguments": {}}
        first = await call(client.end, params)
        second = await call(client.end, params, **client.answered(first["result"]))
        assert own not in second["result"]["requestState"]
        third = await call(client.end, params, **client.answered(second["result"]))
        (asked,) = third["result"]["inputRequests"].values()
        assert asked["params"]["message"] == "Sure?"
        forged = await call(client.end, params, requestState=own)
    assert forged["error"]["code"] == -32602


SIGNING_KEY = bytes(16)


@pytest.mark.parametrize(
    ("key", "seconds", "kind"),
    [
        (b"short", 60.0, ValueError),
        ([], 60.0, ValueError),
        (SIGNING_KEY, 0.0, ValueError),
        (SIGNING_KEY, float("nan"), ValueError),
        ("0123456789abcdef", 60.0, TypeError),
        (5, 60.0, TypeError),
        (SIGNING_KEY, "60", TypeError),
        ([SIGNING_KEY, 5], 60.0, TypeError),
    ],
)
def test_unusable_settings_are_refused(key: Any, seconds: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="expected"):
        Server("s", state_key=key, state_seconds=seconds)
