"""Answers that nobody can read, or match with a request: no call waits for ever."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from kit.http_script import Script, connect_scripted
from kit.http_server import Asked, Reply
from kit.live import TEXT, TOO_LONG, FakeServer
from kit.simulation import simulate
from kit.wire import (
    ACKNOWLEDGED,
    CHANGED,
    ONE_OF_EACH,
    SESSIONS,
    both_lifecycles,
    legacy,
    request,
    speaking_to,
    tag,
)
from mcpgen_runtime import (
    Context,
    McpError,
    RemoteProtocolError,
    RequestTimeoutError,
    Server,
    Timeouts,
    connect,
)
from mcpgen_runtime.protocol.jsonrpc import InvalidMessage, parse
from mcpgen_runtime.runtime.peer import UNMATCHED_SECONDS

JSON = "expected JSON: "
CHARACTER = f"{JSON}JSON is malformed: invalid character (byte "
SURROGATE = f"{JSON}half a surrogate pair in a text"

READABLE = {
    "half a surrogate pair": (
        '{"jsonrpc":"2.0","id":ID,"result":{"text":"cut \\ud83d"}}',
        SURROGATE,
    ),
    "the id last": ('{"result":{"text":"\\ud83d","a":[{}]},"jsonrpc":"2.0","id":ID}', SURROGATE),
    "NaN": ('{"jsonrpc":"2.0","id":ID,"result":{"v":[NaN, -Infinity ]}}', CHARACTER),
    "a raw tab": ('{"jsonrpc":"2.0","id":ID,"result":{"text":"a\tb"}}', CHARACTER),
    "a NUL": ('{"jsonrpc":"2.0","id":ID,"result":{"text":"a\0b"}}', CHARACTER),
    "a wrong escape": ('{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"\\x1b"}}', JSON),
    "no result": ('{"jsonrpc":"2.0","id":ID,"result":null}', "expected an object as result"),
    "the id as a text": (
        '{"jsonrpc":"2.0","id":"ID","result":{}}',
        "expected ID as id of the resp",
    ),
    "a text as id and NaN": ('{"jsonrpc":"2.0","id":"ID","result":{"v":NaN}}', "expected ID as id"),
}
"""Answers whose id can be read, and how the error begins."""

UNREADABLE = {
    "cut off": ('{"jsonrpc":"2.0","id":ID,"result":{"content', f"{JSON}Input data was truncated"),
    "two at once": ('{"jsonrpc":"2.0","id":ID,"result":{}}{"jsonrpc":"2.0"}', JSON),
    "no id": (
        '{"jsonrpc":"2.0","result":{}}',
        "expected an id and exactly one of result and error",
    ),
    "an error without id": (
        '{"jsonrpc":"2.0","error":{"code":5,"message":"?"}}',
        "error 5 about the",
    ),
    "null as id": ('{"jsonrpc":"2.0","id":null,"result":{"v":NaN}}', JSON),
    "another id": (
        '{"jsonrpc":"2.0","id":"x-ID","result":{}}',
        "result for 'x-ID', which is no open",
    ),
    "too long": (TOO_LONG.decode(), "expected a message of at most 10 bytes"),
}
"""Answers whose request nobody can tell, and how the reason begins."""

NOT_ANSWERS = {
    "a line of a log": "INFO server started",
    "a log in JSON": '{"level":"info","id":ID,"message":"\\ud83d"}',
    "a notification": '{"jsonrpc":"2.0","method":"notifications/message","params":{"v":NaN}}',
    "a late answer": '{"jsonrpc":"2.0","id":1,"result":{}}',
}
"""Other output of a server while a call is open."""

SOUND = {
    "a byte order mark": '\ufeff{"jsonrpc":"2.0","id":ID,"result":RESULT}',
    "no method": '{"jsonrpc":"2.0","id":ID,"method":null,"result":RESULT}',
    "no error": '{"jsonrpc":"2.0","id":ID,"error":null,"result":RESULT}',
}
"""Answers with something that does no harm."""


def texts(table: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("answer", table.values(), ids=table.keys())


@pytest.mark.parametrize(
    ("text", "identifier", "answerable"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"ping","params":{"v":NaN}}', 7, True),
        ('{"jsonrpc":"2.0","id":"a\\"b","method":"ping","params":{"v":NaN}}', None, True),
        ('{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}', None, True),
        ('{"jsonrpc":"2.0","id":"\u00e9","result":{"v":NaN}}', None, False),
        ('{"jsonrpc":"2.0","id":NaN,"result":{}}', None, False),
        ('{"jsonrpc":"2.0","id":"NaN","result":{"v":NaN}}', "NaN", False),
        ('{"a":{"id":7},"jsonrpc":"2.0","result":{"v":NaN}}', None, False),
    ],
)
def test_no_other_id_is_taken_for_that_of_the_message(
    text: str, identifier: Any, answerable: bool
) -> None:
    message = parse(text.encode())
    assert isinstance(message, InvalidMessage)
    assert (message.id, message.answerable, message.response) == (
        identifier,
        answerable,
        not answerable,
    )


async def call(server: FakeServer, answer: str, timeout: float | None = None) -> Any:
    """Call a tool of a server that answers with a text; `ID` is the id of the request."""
    async with (
        connect(server, revision=server.revision) as client,
        anyio.create_task_group() as tasks,
    ):

        async def say() -> None:
            asked = await server.next()
            result = {"resultType": "complete", **TEXT}
            text = answer.replace("ID", str(asked["id"])).replace("RESULT", json.dumps(result))
            await server.say(text.encode())

        tasks.start_soon(say)
        try:
            return await client.call_tool("t", **({} if timeout is None else {"timeout": timeout}))
        except McpError as error:
            return error


@texts(READABLE)
@both_lifecycles
async def test_a_request_fails_with_what_is_wrong_about_its_answer(
    answer: tuple[str, str], revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer(revision)
    with anyio.fail_after(10):
        error = await call(server, answer[0])
    identifier = str(server.heard[0]["id"])
    assert isinstance(error, RemoteProtocolError)
    assert str(error).startswith(f"tools/call: {answer[1].replace('ID', identifier)}")
    assert caplog.records == []


@texts(SOUND)
@both_lifecycles
async def test_an_answer_with_something_harmless_is_taken(answer: str, revision: str) -> None:
    with anyio.fail_after(10):
        result = await call(FakeServer(revision), answer)
    assert result.content[0].text


@texts(UNREADABLE)
@both_lifecycles
def test_a_request_whose_answer_may_have_come_fails_in_time(
    answer: tuple[str, str], revision: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        began, server = anyio.current_time(), FakeServer(revision)
        error = await call(server, answer[0])
        assert isinstance(error, RemoteProtocolError)
        assert anyio.current_time() - began == pytest.approx(UNMATCHED_SECONDS, abs=0.1)
        reason = answer[1].replace("ID", str(server.heard[0]["id"]))
        text = f"no response within 60 s after one that belongs to no request: {reason}"
        assert str(error).startswith(text)
        (warning,) = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert f"a response that belongs to no request: {reason}" in warning.getMessage()
        assert warning.getMessage().endswith("(open requests: 1)")

    simulate(backend, 0, main)


@texts(NOT_ANSWERS)
@both_lifecycles
def test_a_message_that_is_no_answer_fails_no_request(
    answer: str, revision: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        error = await call(FakeServer(revision), answer, timeout=300)
        assert isinstance(error, RequestTimeoutError)
        assert "no answer within 300 s" in str(error)
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    simulate(backend, 0, main)


def test_progress_and_a_later_answer_keep_a_request_alive(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = FakeServer(SESSIONS[-1])
        done: list[str] = []
        timeouts = Timeouts(unmatched=10)
        async with (
            connect(server, revision=server.revision, timeouts=timeouts) as client,
            anyio.create_task_group() as tasks,
        ):

            async def ask(name: str) -> None:
                on_progress = print if name == "b" else None
                try:
                    await client.call_tool(name, on_progress=on_progress)
                    done.append(name)
                except RemoteProtocolError:
                    done.append(f"{name} failed")

            for name in "abc":
                tasks.start_soon(ask, name)
            asked = {each["params"]["name"]: each for each in [await server.next() for _ in "abc"]}
            for _ in range(3):
                await server.say(b'{"jsonrpc":"2.0","id":')
            params = {"progressToken": asked["b"]["id"], "progress": 1}
            await server.notify("notifications/progress", params)
            await server.answer(asked["c"], TEXT)
            await anyio.sleep(2 * timeouts.unmatched)
            await server.say(b'{"jsonrpc":"2.0","id":')
            await server.answer(asked["b"], TEXT)
        assert done == ["c", "a failed", "b"]
        warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert len(warnings) == 2  # one for each incident

    simulate(backend, 0, main)


def test_a_subscription_outlives_an_unreadable_answer(backend: str) -> None:
    async def main() -> None:
        server = FakeServer(ONE_OF_EACH[1])

        def about() -> dict[str, Any]:
            return {"_meta": {tag(ONE_OF_EACH[1]): server.heard[0]["id"]}}

        async with (
            connect(server, revision=server.revision) as client,
            anyio.create_task_group() as tasks,
        ):

            async def acknowledge() -> None:
                await server.next()
                agreed = {"notifications": {"toolsListChanged": True}, **about()}
                await server.notify(ACKNOWLEDGED, agreed)

            tasks.start_soon(acknowledge)
            async with client.listen(tools=True) as changes:
                await server.say(b'{"jsonrpc":"2.0","id":')
                await anyio.sleep(2 * UNMATCHED_SECONDS)
                await server.notify(CHANGED["toolsListChanged"], about())
                assert await anext(changes)

    simulate(backend, 0, main)


@legacy
@pytest.mark.parametrize("answer", ["at once", "after a while"])
def test_a_server_does_not_wait_for_ever_for_an_answer(
    revision: str, answer: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("asks")
    failures: list[str] = []

    @server.tool
    async def roots(ctx: Context) -> str:
        try:
            await ctx.list_roots()
        except RemoteProtocolError as error:
            failures.append(str(error))
        return "done"

    async def main() -> None:
        async with speaking_to(server, revision, {"roots": {}}) as end:
            await end.send(request(revision, "tools/call", {"name": "roots"}, id=1))
            asked = json.loads(await end.channel.receive())
            began = anyio.current_time()
            text = f'{{"jsonrpc":"2.0","id":{json.dumps(asked["id"])},"result":{{"roots":[NaN]}}'
            await end.send((text + "}" if answer == "at once" else text).encode())
            heard = json.loads(await end.channel.receive())
            while heard.get("id") != 1:  # a server also answers what may be a request
                assert heard["error"]["code"] == -32700
                heard = json.loads(await end.channel.receive())
            seconds = 0 if answer == "at once" else UNMATCHED_SECONDS
            assert anyio.current_time() - began == pytest.approx(seconds, abs=0.1)

    simulate(backend, 0, main)
    (failure,) = failures
    assert "expected JSON: " in failure
    assert len(caplog.records) == (answer == "after a while")


OVER_HTTP = {
    name: answer for name, (answer, _) in {**READABLE, **UNREADABLE}.items() if name != "too long"
}


@pytest.mark.parametrize("answer", OVER_HTTP.values(), ids=OVER_HTTP)
@both_lifecycles
async def test_an_error_about_an_event_says_what_came_without_sending_again(
    answer: str, revision: str
) -> None:
    async def say(asked: Asked, reply: Reply) -> None:
        text = answer.replace("ID", json.dumps(asked.id)).encode()
        await reply.stream()
        await reply.part(b"id: 1\ndata: " + text + b"\n\n")
        await reply.end()

    script = Script(revision, on={"tools/list": say})
    async with connect_scripted(script) as (client, http):
        with pytest.raises(McpError) as caught:
            await client.list_tools()
        assert len(http.of("tools/list")) == 1
        assert all("last-event-id" not in asked.fields for asked in http.of("GET"))
    assert "the stream ended" not in str(caught.value)
    assert "tools/list: " in str(caught.value) or "came " in str(caught.value)
