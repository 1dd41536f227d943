"""Values that JSON does not have: refused by name on both sides, and the session goes on."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec import Raw

from kit.live import App, live, names_back, server_with
from kit.wire import ALL, HANDSHAKE, ServerEnd, modern, speaking_to
from mcpgen_runtime import Context, EncodingError, LocalProtocolError, McpError, encode
from mcpgen_runtime.foreign_text import safe_repr
from mcpgen_runtime.protocol.events import ReportProgress

Call: TypeAlias = Callable[[], Awaitable[Any]]

NAN, INFINITY = float("nan"), float("inf")


class Point(msgspec.Struct):
    x: Any


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


NOT_JSON: dict[str, Callable[[], Any]] = {
    "nan": lambda: NAN,
    "infinity": lambda: [{"a": -INFINITY}],
    "nan in a struct beside null": lambda: [None, Point(NAN)],
    "a surrogate": lambda: "\ud800",
    "a key with a surrogate": lambda: {"\ud800": 1},
    "a key that is no text": lambda: {(1, 2): 3},
    "an endless list": endless,
    "an endless integer": lambda: 10**5000,
    "a complex number": lambda: 1j,
}
not_json = pytest.mark.parametrize("make", NOT_JSON.values(), ids=NOT_JSON)


@not_json
def test_values_without_a_json_form_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(EncodingError, match=r"^no JSON form: .") as caught:
        encode({"value": make()})
    assert len(str(caught.value)) < 500


def test_a_number_that_is_none_is_named_with_its_place() -> None:
    value = {"a": [None, "null", Raw(b"null"), Point([Point(-INFINITY)])]}
    with pytest.raises(EncodingError, match=r" - at `\$\.a\[3\]\.x\[0\]\.x`$"):
        encode(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"null": None, "a": [None, "null", 1.5, -0.0, 1e308, 5e-324]},
        ["\u02cb\x7f\u00ff", Raw(b'{"a":null}'), 10**30, None],
        {1: None, "b": b"null", "c": Point(None)},
    ],
)
def test_a_null_that_was_meant_is_written(value: Any) -> None:
    assert encode(value) == msgspec.json.encode(value)


@not_json
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], ALL[-1]])
async def test_a_call_with_arguments_that_are_no_json_is_not_sent(
    revision: str, make: Callable[[], Any]
) -> None:
    async with live(App(names_back), revision) as (client, record):
        before = len(record.sent)
        arguments = {"value": make()}
        for call in (
            client.call_tool("echo", arguments),
            client.call_tool("echo", meta={"a/b": make()}),
            client.request_raw("tools/call", {"name": "echo", "arguments": arguments}),
        ):
            with pytest.raises(LocalProtocolError, match=r"^tools/call: .*no JSON form"):
                await call
        assert len(record.sent) == before
        assert (await client.call_tool("good")).content[0].text == "good"


@not_json
async def test_a_notification_that_json_has_not_is_refused(make: Callable[[], Any]) -> None:
    failures: list[str] = []

    async def talk(ctx: Context) -> str:
        tells: list[Call] = [
            lambda: ctx.info({"value": make()}),
            lambda: ctx.progress(0.1, total=make()),
            lambda: ctx.progress(0.2, message=make()),
            lambda: ctx.progress(make()),
        ]
        for tell in tells:
            try:
                await tell()
            except LocalProtocolError as error:
                failures.append(str(error))
        return "talked"

    async with speaking_to(server_with(talk), HANDSHAKE[-1]) as end:
        params = {"name": "talk", "arguments": {}}
        answer = await end.ask("tools/call", params, meta={"progressToken": 1})
        assert answer["result"]["content"][0]["text"] == "talked"
        assert "null" not in json.dumps(end.heard)
    assert failures[0].startswith("notifications/message: params: no JSON form")


@pytest.mark.parametrize("progress", ["0.5", 1j, 10**5000, [1], NAN], ids=safe_repr)
def test_progress_that_is_no_number_is_refused(progress: Any) -> None:
    server = ServerEnd(HANDSHAKE[-1])
    server.ask("tools/list", {}, meta={"progressToken": 1}, id=1)
    with pytest.raises(LocalProtocolError):
        server.send(ReportProgress(1, progress))


@modern
async def test_a_result_that_is_fresh_beyond_all_numbers_is_taken(revision: str) -> None:
    async def answer(ctx: Any) -> Any:
        return {"tools": [], "ttlMs": 10**400, "cacheScope": "public"}

    async with live(App(answer), revision) as (client, record):
        for _ in range(2):
            assert (await client.list_tools_page()).tools == []
        assert [sent["method"] for sent in record.sent].count("tools/list") == 1


HOSTILE: dict[str, Any] = {
    "number": 5,
    "list": ["x"],
    "object": object(),
    "deep": json.loads("[" * 900 + "]" * 900),
    "long": "x" * 3_000_000,
    "nan": NAN,
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], ALL[-1]])
async def test_a_call_with_an_argument_of_another_kind_says_so(revision: str, value: Any) -> None:
    async with live(App(names_back), revision) as (client, _):
        failures: list[Exception] = []
        for call in (
            lambda: client.call_tool("echo", value),
            lambda: client.call_tool("echo", meta=value),
            lambda: client.get_prompt("x", {"value": value}),
            lambda: client.complete(value, value),
            lambda: client.request(value),
            lambda: client.request("tools/call", {"name": value}),
            lambda: client.notify("notifications/roots/list_changed", value),
        ):
            try:
                await call()
            except Exception as error:
                failures.append(error)
        assert len(failures) >= 3
        for failure in failures:
            assert isinstance(failure, McpError | TypeError | ValueError)
            assert not isinstance(failure, msgspec.MsgspecError | UnicodeError)
            assert 0 < len(str(failure)) < 2000
        assert (await client.call_tool("good")).content[0].text == "good"
