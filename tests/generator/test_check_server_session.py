"""Messages, replies and sessions of `mcpgen check-server`, with servers in this process."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from generator.check_server.judging import answer_in_turn, answer_over_http, session_to
from generator.check_server.rows import NEW, OK, OLD, OLDEST, says
from generator.tables import table
from mcpgen.check_server.connections import (
    FLOOD_BYTES,
    FLOOD_MESSAGES,
    MESSAGE_LIMIT,
    Received,
    Reply,
    answer_to,
    flood,
    parse_messages,
)
from mcpgen.check_server.outcomes import BrokenRuleError
from mcpgen.check_server.session import ServerSilentError

TABLES: dict[str, Any] = table("check_server")
FLOODED = f"the server wrote more than {FLOOD_MESSAGES} lines or {FLOOD_BYTES} bytes"


def responses(*messages: Any) -> list[Received]:
    """Messages that a server sent."""
    return [Received(json.dumps(each).encode(), each) for each in messages]


@pytest.mark.parametrize(("id", "messages", "at"), table("answers"))
def test_an_answer_has_the_id_or_one_alike_or_none(
    id: Any, messages: list[Any], at: int | None
) -> None:
    assert answer_to(id, responses(*messages)) == (None if at is None else messages[at])


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b"[]", [([], "", "e")]),
        (b"5", [(5, "", "e")]),
        (b'[{"a": 1}, 2, 3]', [({"a": 1}, "", "e"), (2, "", None), (3, "", None)]),
        (b"\xff", [(None, "not UTF-8: ", "e")]),
        (b"NaN", [(None, "not JSON: N", "e")]),
        (b"{", [(None, "not JSON: E", "e")]),
        (b"[" * 100_000, [(None, "not JSON: m", "e")]),
    ],
)
def test_a_line_has_messages_or_the_reason_why_not(data: bytes, messages: Any) -> None:
    read = [(each.message, each.error[:11], each.event_id) for each in parse_messages(data, "e")]
    assert read == messages


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((0, 0, 0), ""),
        ((1, 0, 0), f"the server wrote a line of more than {MESSAGE_LIMIT} bytes"),
        ((0, 1, 0), FLOODED),
        ((0, 0, 1), FLOODED),
    ],
)
def test_output_is_limited(more: tuple[int, int, int], reason: str) -> None:
    limits = (MESSAGE_LIMIT, FLOOD_MESSAGES, FLOOD_BYTES)
    assert flood(*map(sum, zip(limits, more, strict=True))) == reason


@pytest.mark.parametrize(("reply", "text"), TABLES["replies"])
def test_a_reply_is_shown_in_words(reply: dict[str, Any], text: str) -> None:
    assert Reply(**reply).text == text


@pytest.mark.parametrize(("capabilities", "tools", "subscribe"), table("declared"))
def test_a_capability_is_declared_by_any_value(
    capabilities: Any, tools: bool, subscribe: bool
) -> None:
    session = session_to(answer_in_turn([]), result={"capabilities": capabilities})
    assert session.declares("tools") is tools
    assert session.declares("resources.subscribe") is subscribe


@pytest.mark.parametrize(("message", "fields"), TABLES["fields"])
def test_fields_repeat_parts_of_a_message(message: Any, fields: dict[str, str] | None) -> None:
    expected = {} if fields is None else {"MCP-Protocol-Version": NEW, **fields}
    assert session_to(answer_in_turn([]), NEW).fields_of(message) == expected
    assert session_to(answer_in_turn([]), OLD).fields_of(message) == {}


@pytest.mark.parametrize(("name", "field"), [(OLDEST, "Mcp-Session-Id"), (OLD, "MCP-Session-Id")])
def test_an_open_session_has_fields_in_every_request(name: str, field: str) -> None:
    session = session_to(answer_over_http([]), name, session_id="a")
    version = {} if name == OLDEST else {"MCP-Protocol-Version": name}
    assert session.fields_after_opening() == {field: "a", **version}
    assert session_to(answer_over_http([]), name).fields_after_opening() == version


def page(*names: str, cursor: Any = None) -> dict[str, Any]:
    """A page of tools."""
    return says(tools=[{"name": name} for name in names], nextCursor=cursor)


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ([page("a", cursor="1"), page("b", cursor="2"), page("c"), page("d")], "abc"),
        ([page("a", cursor="1"), page("b", cursor="1"), page("c")], "ab"),
        ([says(tools=[5, {"name": "a"}], nextCursor=5), page("b")], "a"),
        ([says(tools=5, nextCursor="1"), page("a")], "a"),
        ([{"error": {}}, page("a")], ""),
        ([page("a", cursor=f"{number}") for number in range(30)], "a" * 20),
    ],
)
def test_entries_of_all_pages_are_read_once(answers: list[Any], names: str) -> None:
    session = session_to(answer_in_turn([*answers, *[page("z")] * 3]))

    async def read() -> list[Any]:
        await session.entries("tools/list", "tools")
        return await session.entries("tools/list", "tools")

    assert [each["name"] for each in anyio.run(read)] == list(names)


def test_a_silent_server_is_given_up_after_three_requests() -> None:
    server = session_to(answer_in_turn([])).server
    silent, spoiled = Reply(reason="why"), Reply([Received(b"x", error="no JSON")])
    for reply in (silent, silent, Reply(answer=OK), spoiled, silent, Reply(responses(OK)), silent):
        assert server.count(reply) is reply
    assert server.count(Reply(status=500)).status == 500
    for _ in range(2):
        server.count(silent)
        server.count(spoiled)
        with pytest.raises(ServerSilentError, match="why"):
            server.count(silent)


@pytest.mark.parametrize(("name", "answers", "is_open", "error"), TABLES["another session"])
def test_another_session_is_opened_or_says_why_not(
    name: str, answers: list[Any], is_open: bool, error: str
) -> None:
    session = session_to(answer_in_turn(answers), name)

    async def open_another() -> None:
        async with session.open_another(is_open=is_open):
            pass

    if not error:
        anyio.run(open_another)
        return
    with pytest.raises(BrokenRuleError) as caught:
        anyio.run(open_another)
    assert str(caught.value) == f"expected {error}"


@pytest.mark.parametrize(("answers", "answer", "reason", "settled"), TABLES["notifications"])
def test_an_error_answers_a_notification_or_its_probe(
    answers: list[Any], answer: Any, reason: str, settled: list[float]
) -> None:
    session = session_to(answer_in_turn(answers))
    reply = anyio.run(session.post, {"jsonrpc": "2.0", "method": "a"})
    assert (reply.answer, reply.reason) == (answer, reason)
    assert getattr(session.connection, "settled", None) == settled
