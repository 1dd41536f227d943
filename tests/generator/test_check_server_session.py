"""Sessions of `mcpgen check-server`: what they send, read and give up, in this process."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import anyio
import pytest

from generator.checked_in_memory import (
    MemoryConnection,
    line_of,
    session_over_http,
    session_with,
)
from mcpgen.check_server.connections import (
    Received,
    Reply,
    answer_to,
    encode,
    parse_messages,
    refusal,
)
from mcpgen.check_server.outcomes import BrokenRuleError
from mcpgen.check_server.runner import CHECKS, select_checks
from mcpgen.check_server.session import Server, ServerSilentError, Session, names_version
from mcpgen.errors import UsageError
from mcpgen.project.live_server import Target

OLDEST, OLD, NEW = "2024-11-05", "2025-11-25", "2026-07-28"
OK: dict[str, Any] = {"result": {}}
PREFIX = "io.modelcontextprotocol/"


def responses(*messages: Any) -> list[Received]:
    """Messages that a server sent."""
    return [Received(json.dumps(each).encode(), each) for each in messages]


@pytest.mark.parametrize(
    ("messages", "at"),
    [
        ([], None),
        ([{"id": 2, "result": {}}], None),
        ([{"id": 1, "method": "ping"}], None),
        ([5], None),
        ([{"error": {}}, {"id": "1"}, {"id": 1}, {"id": 1, "result": {}}], 2),
        ([{"error": {}}, {"id": "1"}], 1),
        ([{"id": 2}, {"error": {}}, {"id": None}], 1),
        ([{"id": None}], 0),
    ],
)
def test_an_answer_has_the_id_or_one_alike_or_none(messages: list[Any], at: int | None) -> None:
    expected = None if at is None else messages[at]
    assert answer_to(1, responses(*messages)) is expected


def test_a_missing_id_is_not_the_text_none() -> None:
    assert answer_to(None, responses({"id": "None"}, {"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"method": "ping", "id": 0}, {"result": {}}),
        (
            {"method": "roots/list", "id": 0},
            {"error": {"code": -32601, "message": "method not found"}},
        ),
        ({"method": "ping"}, None),
        ({"method": 5, "id": 0}, None),
        ({"id": 0, "result": {}}, None),
    ],
)
def test_requests_of_a_server_are_answered(message: Any, answer: Any) -> None:
    assert refusal(message) == (answer and {"jsonrpc": "2.0", "id": 0, **answer})


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b"[]", [([], "", "e")]),
        (b"5", [(5, "", "e")]),
        (b'[{"a": 1}, 2, 3]', [({"a": 1}, "", "e"), (2, "", None), (3, "", None)]),
        (b"\xff", [(None, "not UTF-8: invalid start byte", "e")]),
        (b"NaN", [(None, "not JSON: NaN is no JSON", "e")]),
        (b"{", None),
        (b"[" * 100_000, None),
    ],
)
def test_a_line_has_messages_or_the_reason_why_not(data: bytes, messages: Any) -> None:
    read = [(each.message, each.error, each.event_id) for each in parse_messages(data, "e")]
    if messages is not None:
        assert read == messages
    else:
        [(message, error, event_id)] = read
        assert (message, error[:10], event_id) == (None, "not JSON: ", "e")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(), "no answer"),
        (Reply(reason="it ended"), "it ended"),
        (Reply(reason="it ended", status=404), "status 404 with it ended"),
        (Reply(answer={"result": 5}, status=200), "status 200 with result 5"),
        (Reply(answer={"error": 5}), "error null (null)"),
        (Reply(answer={"error": {"code": 1, "message": "m"}}), 'error 1 ("m")'),
        (Reply(answer={"result": "r" * 118}), f'result "{"r" * 118}"'),
        (Reply(answer={"result": "r" * 119}), f'result "{"r" * 116}...'),
        (
            Reply(answer={"error": {"code": 1, "message": "m" * 119}}),
            f'error 1 ("{"m" * 116}...)',
        ),
    ],
)
def test_a_reply_is_shown_in_words(reply: Reply, text: str) -> None:
    assert reply.text == text


def test_parts_of_a_reply_are_read_whatever_it_is() -> None:
    failed = Reply(answer={"error": {"code": 1}}, fields={"content-type": " Text/X ; a=b"})
    assert (failed.code, failed.result, failed.media_type) == (1, None, "text/x")
    silent = Reply()
    assert (silent.code, silent.result, silent.error, silent.media_type) == (None, None, None, "")
    assert (silent.ended, silent.body, silent.status) == (False, b"", None)
    assert [Reply(status=status).is_refused for status in (None, 399, 400)] == [False, False, True]


def test_a_message_is_shown_in_160_characters() -> None:
    assert Received(b"x" * 160).text == "x" * 160
    assert Received(b"x" * 161).text == "x" * 160 + "..."
    assert Received(b"\xff").text == "\\xff"


@pytest.mark.parametrize(
    ("capabilities", "tools", "subscribe"),
    [
        (5, False, False),
        ({}, False, False),
        ({"tools": {}, "resources": {"subscribe": True}}, True, True),
        ({"tools": None, "resources": {"subscribe": False}}, False, False),
        ({"tools": False, "resources": True}, False, False),
        ({"tools": 0, "resources": {"subscribe": 0}}, True, True),
    ],
)
def test_a_capability_is_declared_by_any_value(
    capabilities: Any, tools: bool, subscribe: bool
) -> None:
    session = session_with(OLD, capabilities=capabilities)
    assert session.declares("tools") is tools
    assert session.declares("resources.subscribe") is subscribe
    session.opening = Reply(answer={"result": 5})
    assert session.capabilities == {}


def test_requests_are_numbered_and_have_params_if_any() -> None:
    session = session_with(OLD)
    envelope = {"jsonrpc": "2.0", "method": "ping"}
    assert session.request("ping") == {**envelope, "id": 1}
    assert session.request("ping", {}) == {**envelope, "id": 2, "params": {}}
    assert session.request("ping", {"a": 1}, id=0) == {**envelope, "id": 0, "params": {"a": 1}}
    with_meta = session.request("ping", {"a": 1}, meta={"b": 2, "c": None})
    assert with_meta == {**envelope, "id": 3, "params": {"a": 1, "_meta": {"b": 2}}}


def test_requests_without_a_handshake_have_the_metadata() -> None:
    session = session_with(NEW)
    request = session.request("a/b", meta={f"{PREFIX}clientInfo": None, "x": 1})
    assert request["params"] == {
        "_meta": {
            f"{PREFIX}protocolVersion": NEW,
            f"{PREFIX}clientCapabilities": {},
            "x": 1,
        }
    }
    assert session.request("a/b")["params"]["_meta"][f"{PREFIX}clientInfo"]["name"] == "mcpgen"


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (5, {}),
        ({"method": 5}, {}),
        ({"method": "a/b", "params": {"name": "n"}}, {"Mcp-Method": "a/b"}),
        (
            {"method": "tools/call", "params": {"name": "n"}},
            {"Mcp-Method": "tools/call", "Mcp-Name": "n"},
        ),
        ({"method": "tools/call", "params": {"name": 5}}, {"Mcp-Method": "tools/call"}),
        ({"method": "tools/call", "params": []}, {"Mcp-Method": "tools/call"}),
        ({"method": "tools/call"}, {"Mcp-Method": "tools/call"}),
        (
            {"method": "resources/read", "params": {"uri": "a:b"}},
            {"Mcp-Method": "resources/read", "Mcp-Name": "a:b"},
        ),
    ],
)
def test_fields_repeat_parts_of_a_message(message: Any, fields: dict[str, str]) -> None:
    version = {"MCP-Protocol-Version": NEW} if isinstance(message, dict) else {}
    assert session_with(NEW).fields_of(message) == {**version, **fields}
    assert session_with(OLD).fields_of(message) == {}


def page(*names: str, cursor: Any = None) -> dict[str, Any]:
    """A page of tools."""
    return {"result": {"tools": [{"name": name} for name in names], "nextCursor": cursor}}


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ([page("a", cursor="1"), page("b", cursor="2"), page("c"), page("d")], "abc"),
        ([page("a", cursor="1"), page("b", cursor="1"), page("c")], "ab"),
        ([page("a", cursor=5), page("b")], "a"),
        ([{"result": {"tools": [5, {"name": "a"}]}}], "a"),
        ([{"result": {"tools": 5, "nextCursor": "1"}}, page("a")], "a"),
        ([{"error": {}}, page("a")], ""),
        ([page("a", cursor=f"{number}") for number in range(30)], "a" * 20),
    ],
)
def test_entries_of_all_pages_are_read_once(answers: list[Any], names: str) -> None:
    session = session_with(OLD, [*answers, *[page("z")] * 3])

    async def read() -> list[Any]:
        await session.entries("tools/list", "tools")
        return await session.entries("tools/list", "tools")

    assert [each["name"] for each in anyio.run(read)] == list(names)
    assert session.new_id() == len(session.connection.received) + 1


def test_a_request_that_is_sent_once_keeps_its_reply() -> None:
    session = session_with(OLD)

    async def ask() -> list[Reply]:
        return [await session.ask_once("a", params) for params in ({}, {}, {"b": 1})]

    first, again, other = anyio.run(ask)
    assert first is again
    assert first is not other
    assert len(session.connection.received) == 2


@pytest.mark.parametrize(
    ("result", "is_named"),
    [
        ({"supportedVersions": [OLD, NEW]}, True),
        ({"supportedVersions": [OLD]}, False),
        ({"supportedVersions": NEW}, False),
        ({}, False),
        (NEW, False),
    ],
)
def test_a_result_of_discovery_names_versions(result: Any, is_named: bool) -> None:
    assert names_version(result, NEW) is is_named


def test_a_silent_server_is_given_up_after_three_requests() -> None:
    server = session_with(OLD).server
    silent, spoiled = Reply(reason="why"), Reply([Received(b"x", error="no JSON")])
    answered, other = Reply(answer=OK), Reply(responses(OK))
    for reply in (silent, silent, answered, spoiled, silent, other, silent, silent):
        assert server.count(reply) is reply
    assert server.count(Reply(status=500)).status == 500
    for _ in range(2):
        assert server.count(silent) is silent
        assert server.count(spoiled) is spoiled
        with pytest.raises(ServerSilentError, match="why"):
            server.count(silent)


def opened(name: str, answers: list[Any], *, is_open: bool = True) -> tuple[str, int]:
    """Why another session does not open, if so; and the number of lines that came before."""
    session = session_with(name, answers)

    async def open_another() -> Session:
        async with session.open_another(is_open=is_open) as other:
            return other

    try:
        other = anyio.run(open_another)
    except BrokenRuleError as broken:
        return str(broken), 0
    return "", len(other.connection.received)


def test_another_session_is_opened_or_says_why_not() -> None:
    refused = {"error": {"code": 1, "message": "no"}}
    reason = 'expected a second session, as the first one, got error 1 ("no")'
    assert opened(OLD, [OK, None]) == ("", 1)
    assert opened(OLD, [refused]) == (reason, 0)
    assert opened(OLD, [None])[0].endswith("got no answer")
    assert opened(NEW, [refused]) == (reason, 0)
    assert opened(OLD, [refused], is_open=False) == ("", 0)


@pytest.mark.parametrize(
    ("name", "field"),
    [(OLDEST, "Mcp-Session-Id"), (OLD, "MCP-Session-Id"), (NEW, "")],
)
def test_sessions_over_http_have_a_field_for_their_id(name: str, field: str) -> None:
    session = session_over_http(name, session_id="a")
    assert session.session_field == field
    assert session.session_id == ("a" if field or name == NEW else None)
    assert session_over_http(OLD).session_id is None


def test_an_error_answers_a_notification_or_its_probe() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": 1}}
    note = {"jsonrpc": "2.0", "method": "a"}
    for answers, answer, reason in (
        ([None, OK], None, "no answer"),
        ([error, OK], error, ""),
        ([None, error], None, "no answer"),
        ([[error, error], OK], error, ""),
        ([None, None], None, "no answer"),
    ):
        session = session_with(OLD, answers)
        reply = anyio.run(session.post, note)
        assert (reply.answer, reply.reason) == (answer, reason)


def test_rules_are_chosen_by_ids_and_areas() -> None:
    assert select_checks(()) == CHECKS
    chosen = [check.id for check in select_checks(("ping", "tools.name-length"))]
    assert sorted(chosen) == ["ping.answered", "ping.removed", "tools.name-length"]
    with pytest.raises(UsageError, match=r"got ping\.x: see mcpgen check-server --list-rules"):
        select_checks(("ping", "ping.x"))


def test_an_open_session_has_fields_in_every_request() -> None:
    version = {"MCP-Protocol-Version": OLD}
    assert session_over_http(OLD).fields_after_opening() == version
    opened_with_id = session_over_http(OLD, session_id="a").fields_after_opening()
    assert opened_with_id == {"MCP-Session-Id": "a", **version}
    oldest = session_over_http(OLDEST, session_id="a").fields_after_opening()
    assert oldest == {"Mcp-Session-Id": "a"}


def test_messages_are_sent_as_short_utf8() -> None:
    assert encode({"a": ["\u00e9", 1]}) == '{"a":["\u00e9",1]}'.encode()


class Awaiting(MemoryConnection):
    """Keeps the seconds that are waited for more messages."""

    def __init__(self, *answers: Any, reason: str = "") -> None:
        rest = iter(answers)
        super().__init__(lambda line: [line_of(each, line) for each in next(rest)], [])
        self.waited: list[float] = []
        self._reason = reason

    async def send(self, *payload: Any, **options: Any) -> Reply:
        return Reply(reason=self._reason) if self._reason else await super().send(*payload)

    async def settle(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.mark.parametrize(
    ("probed", "waited"), [(OK, [0.1]), ({"jsonrpc": "2.0", "error": {"code": 1}}, [2.0])]
)
def test_late_answers_are_awaited_longer_after_one_without_id(
    probed: Any, waited: list[float]
) -> None:
    note = {"jsonrpc": "2.0", "method": "a"}
    silent = Awaiting([], [probed])
    assert anyio.run(session_with(OLD, begin=lambda: silent).post, note).answer is None
    assert silent.waited == waited
    prompt = Awaiting([{"jsonrpc": "2.0", "id": 7, "result": {}}], [OK])
    reply = anyio.run(session_with(OLD, begin=lambda: prompt).post, {**note, "id": 7})
    assert (reply.result, prompt.waited) == ({}, [])


def test_nothing_more_is_sent_to_an_ended_server() -> None:
    ended = Awaiting(reason="it ended")
    reply = anyio.run(session_with(OLD, begin=lambda: ended).post, {"method": "a"})
    assert (reply.reason, ended.waited) == ("it ended", [])


def test_a_response_is_read_up_to_the_answer_or_to_its_end() -> None:
    answer, note = {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "method": "a"}
    body = b"".join(b"data: %b\n\n" % encode(each) for each in (answer, note))
    stream = (200, body, {"content-type": "text/event-stream"})
    session = session_over_http(OLD, [stream] * 2)
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert len(anyio.run(session.send, request).received) == 1
    to_end = partial(session.send, request, to_end=True)
    assert len(anyio.run(to_end).received) == 2


def test_a_session_declares_nothing_before_it_is_open() -> None:
    first = session_with(OLD)
    session = Session(first.server, first.revision, first.connection, first.records)
    assert (session.capabilities, session.session_id) == ({}, None)
    assert first.records == [first.connection.received] * 2


def test_a_server_at_an_address_is_reached_over_http() -> None:
    no_tasks: Any = None  # no process has output to read
    server = Server(Target("a", "http://h.example/mcp", {"headers": {"a": "b"}}), no_tasks, 0.5)
    assert (server.transport, server.timeout, server.call_tools) == ("http", 0.5, False)

    async def connect() -> str:
        connection = await server.connect()
        await connection.close()
        return connection.transport

    assert anyio.run(connect) == "http"
