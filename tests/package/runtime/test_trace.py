"""The trace: what passes, in both directions, without secrets."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
import pytest
from pydantic import BaseModel, Field, SecretStr

from kit.live import Recorded, server_with
from mcpgen_runtime import (
    REVISIONS,
    OutgoingMessage,
    RemoteError,
    Server,
    ToolFailedError,
    TransportError,
    connect,
)
from mcpgen_runtime.errors import EndOfChannel, FrameError
from mcpgen_runtime.runtime.masking import MASK
from mcpgen_runtime.runtime.trace import trace_channel
from mcpgen_runtime.transports.memory import memory_pair

pytestmark = pytest.mark.processes


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "trace.jsonl"
    monkeypatch.setenv("MCP_TRACE", str(path))
    return path


def lines(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text().splitlines()]


@pytest.mark.parametrize("value", [None, ""])
async def test_without_the_variable_a_channel_stays_itself(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_TRACE", raising=False)
    if value is not None:
        monkeypatch.setenv("MCP_TRACE", value)
    a, _ = memory_pair()
    assert trace_channel(a, "client") is a


async def test_both_directions_are_recorded_as_they_pass(trace: Path) -> None:
    a, b = memory_pair()
    channel = trace_channel(a, "client")
    await channel.send(OutgoingMessage(b'{"id":1,"params":{"number":1.0}}', related_request_id=1))
    assert await b.receive() == b'{"id":1,"params":{"number":1.0}}'
    await b.send(OutgoingMessage(b"not JSON \xff"))
    assert await channel.receive() == b"not JSON \xff"
    await b.close()
    with pytest.raises(EndOfChannel):
        await channel.receive()
    recorded = lines(trace)
    assert [set(line) for line in recorded] == [
        {"time", "direction", "channel", "pid", "message"},
        {"time", "direction", "channel", "pid", "message"},
        {"time", "direction", "channel", "pid", "error", "end"},
    ]
    assert [line["direction"] for line in recorded] == ["sent", "received", "received"]
    assert recorded[0]["message"] == {"id": 1, "params": {"number": 1.0}}
    assert recorded[1]["message"] == "not JSON \ufffd"
    assert recorded[2]["error"] == "the other end closed the channel"
    assert {(line["channel"], line["pid"]) for line in recorded} == {("client", os.getpid())}
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", line["time"])
        for line in recorded
    )
    await channel.close()
    await channel.close()
    assert trace.stat().st_mode & 0o077 == 0


async def test_a_server_whose_trace_cannot_be_written_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    near, far = memory_pair()
    monkeypatch.setenv("MCP_TRACE", str(tmp_path))
    with pytest.raises(TransportError, match="MCP_TRACE"):
        await Server("traced").serve(far)
    await near.close()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (FrameError("too long"), "too long"),
        (EndOfChannel("it ended: \udcff token=hunter2"), f"it ended: ? token={MASK}"),
    ],
    ids=["an unusable frame", "a text that the system could not decode"],
)
async def test_a_failure_of_a_channel_is_recorded_too(
    trace: Path, failure: Exception, error: str
) -> None:
    class Failing(Recorded):
        async def receive(self) -> bytes:
            raise failure

    near, far = memory_pair()
    channel = trace_channel(Failing(near), "server")
    with pytest.raises(type(failure)):
        await channel.receive()
    assert lines(trace)[0]["error"] == error
    await channel.close()
    await far.close()


async def test_the_end_that_a_side_makes_itself_is_no_error(trace: Path) -> None:
    class Slow(Recorded):
        async def close(self) -> None:
            await super().close()
            await anyio.wait_all_tasks_blocked()  # whoever receives hears of it meanwhile

    async def receive() -> None:
        with pytest.raises(EndOfChannel):
            await channel.receive()

    channel = trace_channel(Slow(memory_pair()[0]), "client")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        await channel.close()
    assert lines(trace) == []


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
async def test_a_full_disk_ends_the_trace_with_a_warning_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_TRACE", str(FULL))
    server = Server("traced")
    server.tool("echo")(lambda text: text)
    async with connect(server) as client:
        result = await client.call_tool("echo", {"text": "hello"})
    assert result.content[0].text == "hello"
    warnings = [record.getMessage() for record in caplog.records]
    expected = "MCP_TRACE: nothing more is recorded in '/dev/full': No space left on device"
    assert warnings == [expected, expected]  # the client's and the server's


async def test_a_trace_goes_on_where_its_file_was_removed(trace: Path) -> None:
    near, far = memory_pair()
    channel = trace_channel(near, "client")
    trace.unlink()
    await channel.send(OutgoingMessage(b"1"))
    assert await far.receive() == b"1"
    await channel.close()


@pytest.mark.parametrize(
    "message",
    [
        b'{"n":1e999,"passphrase":"hunter2"}',
        b'{"a":' * 5000 + b'{"passphrase":"hunter2"}' + b"}" * 5000,
        b'{"passphrase":"hunter2","text":"\xff"}',
        b'{"passphrase" : ["x", {"y": "hunter2"}, "hunter2"], "n": 1e999}',
        b'{"token":"hunter2',
    ],
    ids=["number", "deep", "UTF-8", "container", "cut"],
)
async def test_secrets_in_a_message_that_cannot_be_decoded_are_masked(
    trace: Path, message: bytes
) -> None:
    near, far = memory_pair()
    channel = trace_channel(near, "client")
    await far.send(OutgoingMessage(message))
    assert await channel.receive() == message
    await channel.close()
    recorded = lines(trace)[0]["message"]
    assert "hunter2" not in recorded
    assert MASK in recorded


class Account(BaseModel):
    owner: str
    phrase: SecretStr


def unlock(
    door: str,
    answer: Annotated[SecretStr, Field(min_length=5)],
    others: list[Account] | None = None,
    code: Annotated[int, msgspec.Meta(extra_json_schema={"writeOnly": True})] = 0,
) -> str:
    return f"{door}: {len(answer.get_secret_value())}"


@pytest.mark.parametrize("revision", [min(REVISIONS), max(REVISIONS)])
async def test_a_server_masks_arguments_of_secret_types(trace: Path, revision: str) -> None:
    arguments = {
        "door": "green",
        "answer": "swordfish",
        "others": [{"owner": "Ada", "phrase": "open sesame"}],
        "code": 4711,
    }
    async with connect(server_with(unlock, show_errors=True), revision=revision) as client:
        assert await client.call_tool("unlock", arguments, returns=str) == "green: 9"
        with suppress(RemoteError):  # that of older revisions
            await client.call_tool("unlock")
    calls = [
        (line["message"]["params"].get("arguments"), line.get("masked"))
        for line in lines(trace)
        if line["channel"] == "server" and line.get("message", {}).get("method") == "tools/call"
    ]
    masked = {"answer": MASK, "others": [{"owner": "Ada", "phrase": MASK}], "code": MASK}
    assert calls == [({"door": "green", **masked}, True), (None, None)]


async def test_a_call_in_a_batch_is_masked_before_another_one(trace: Path) -> None:
    near, far = memory_pair()
    channel = trace_channel(near, "server", lambda tool: ["answer"] * (tool == "unlock"))
    calls = [
        {"params": {"name": name, "arguments": {"answer": "fish"}}}
        for name in ("unlock", "other", "unlock")
    ]
    await channel.send(OutgoingMessage(json.dumps([*calls, {"params": {"name": 5}}, 7]).encode()))
    await far.receive()
    await channel.close()
    (recorded,) = lines(trace)
    assert recorded["masked"] is True
    values = [each["params"]["arguments"]["answer"] for each in recorded["message"][:3]]
    assert values == [MASK, "fish", MASK]


async def test_an_error_about_a_secret_argument_does_not_show_it() -> None:
    async with connect(server_with(unlock, show_errors=True), revision="2025-11-25") as client:
        with pytest.raises(ToolFailedError, match="'answer'") as info:
            await client.call_tool("unlock", {"door": "green", "answer": "fish"}, returns=str)
    assert "fish" not in str(info.value)
