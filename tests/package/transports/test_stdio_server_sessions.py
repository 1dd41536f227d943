"""Whole servers in processes of their own, and what passes through the pipes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from kit.live import handlers_with, text_of
from kit.respondent import accept_result
from kit.rules import module_of, revisions_holding
from kit.stdio_process import PATHS, SCRIPT, SERVER, process, script
from kit.wire import HANDSHAKE, INITIALIZED, PER_REQUEST, every, facts, modern, request
from mcpgen_runtime import RequestTimeoutError, connect

pytestmark = [pytest.mark.processes, pytest.mark.costly]

some = pytest.mark.parametrize("revision", [HANDSHAKE[0], HANDSHAKE[-1], *PER_REQUEST])


@pytest.mark.requirement(
    "stdio.client-launches-server",
    "stdio.client-support",
    "stdio.streams",
    "stdio.newline-delimited",
    "stdio.shared-channel-correlation",
)
@every
async def test_a_client_starts_its_server_and_calls_it(revision: str, backend: str) -> None:
    async with connect([*SERVER, backend], revision=revision, env=PATHS) as client:
        assert client.revision == revision
        _, parent = text_of(await client.call_tool("pids")).split()
        assert int(parent) == os.getpid()
        async with anyio.create_task_group() as tasks:

            async def call(a: int) -> None:
                assert text_of(await client.call_tool("add", {"a": a, "b": 1})) == str(a + 1)

            for a in range(32):
                tasks.start_soon(call, a)
        news: list[float] = []
        await client.call_tool("count", {"to": 3}, on_progress=lambda value, *_: news.append(value))
        assert news == [1, 2, 3]


@pytest.mark.requirement(
    "stdio.stdin-only-messages",
    "stdio.no-shutdown-message",
    "stdio.newline-delimited",
    "stdio.no-embedded-newline",
    "stdio.client-sends-no-responses",
    "stdio.metadata-inline",
)
@every
async def test_a_client_writes_nothing_but_messages_until_it_closes(
    revision: str, tmp_path: Path
) -> None:
    """The server is run behind `tee`, which keeps what it is sent."""
    record = tmp_path / "stdin"
    behind = ["sh", "-c", 'tee "$0" | "$@"', str(record), *SERVER]
    async with connect(behind, revision=revision, env=PATHS) as client:
        await client.call_tool("echo", {"text": "one\ntwo\r\n"})
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("wait", timeout=0.05)
        await client.list_tools()
    written = record.read_bytes()
    assert written.endswith(b"}\n")
    methods, read_message = [], module_of(revision, "methods").read_message
    for line in written.splitlines():
        message = json.loads(line)
        assert read_message(line)
        methods.append(message["method"])
        if revision in PER_REQUEST and "id" in message:
            keys = facts(revision).meta
            assert message["params"]["_meta"][keys.protocol_version] == revision
            assert keys.client_capabilities in message["params"]["_meta"]
            assert keys.client_info in message["params"]["_meta"]
    opening = ["initialize", "notifications/initialized"]
    assert methods == [
        *(opening if revision in HANDSHAKE else ["server/discover"]),
        "tools/call",
        "tools/call",
        "notifications/cancelled",
        "tools/list",
    ]


@pytest.mark.requirement("stdio.metadata-inline")
@modern
def test_a_request_has_to_say_itself_how_it_is_meant(revision: str) -> None:
    with process(revision) as server:
        server.say({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
        server.say({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {}})
        whole = request(revision, "tools/list", id=3)
        del whole["params"]["_meta"][facts(revision).meta.client_capabilities]
        server.say(whole, request(revision, "tools/list", id=4))
        said = {message["id"]: message for message in (server.hear() for _ in range(4))}
    assert [said[id]["error"]["code"] for id in (2, 3)] == [-32602, -32602]
    assert "error" in said[1]
    assert "result" in said[4]


@pytest.mark.requirement("stdio.process-identity-not-state")
@modern
def test_nothing_is_taken_over_from_an_earlier_request(revision: str) -> None:
    with process(revision) as server:
        server.call("capabilities", {}, id=1, capabilities={"roots": {}, "sampling": {}})
        server.call("capabilities", {}, id=2)
        server.call("capabilities", {}, id=3, capabilities={"roots": {}})
        told = {m["id"]: m["result"]["content"][0]["text"] for m in (server.hear() for _ in "123")}
    assert told == {1: "roots sampling", 2: "", 3: "roots"}


@pytest.mark.requirement("stdio.server-message-kinds")
@modern
def test_a_change_that_nobody_listens_to_is_not_written(revision: str) -> None:
    with process(revision) as server:
        server.call("grow", {"name": "more"}, id=1)
        assert server.hear()["id"] == 1
        server.say(request(revision, "tools/list", id=2))
        assert "more" in str(server.hear())
        assert server.end() == 0
    assert len(server.lines) == 2


@pytest.mark.requirement("stdio.server-sends-no-requests")
@modern
async def test_a_tool_that_asks_the_user_does_so_by_its_result(revision: str) -> None:
    handlers = handlers_with(elicit=accept_result(city="Oslo"))
    async with connect(SERVER, revision=revision, env=PATHS, handlers=handlers) as client:
        assert text_of(await client.call_tool("ask")) == "Oslo"
    with process(revision) as server:
        server.call("ask", {}, id=1, capabilities={"elicitation": {}})
        assert server.hear()["result"]["resultType"] == "input_required"
        assert server.end() == 0
    assert len(server.lines) == 1


@pytest.mark.requirement("stdio.batch-line")
@pytest.mark.parametrize("revision", revisions_holding("stdio.batch-line"))
def test_a_line_may_be_a_batch_where_there_are_batches(revision: str) -> None:
    with process(revision) as server:
        server.say([request(revision, "ping", id=1), {**INITIALIZED}])
        assert server.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.requirement("stdio.single-message-line")
@pytest.mark.parametrize("revision", revisions_holding("stdio.single-message-line"))
def test_a_line_with_several_messages_is_refused_as_one(revision: str) -> None:
    with process(revision) as server:
        call = {"name": "grow", "arguments": {"name": "never"}}
        server.say([request(revision, "tools/call", call, id=1)])
        assert server.hear()["error"]["code"] == -32600
        server.say(request(revision, "tools/list", id=2))
        assert "never" not in str(server.hear())


@pytest.mark.requirement(
    "stdio.cancel-by-notification", "stdio.cancel-server-stops", "stdio.cancel-server-silent"
)
@every
def test_a_cancelled_call_is_stopped_and_not_answered(revision: str, backend: str) -> None:
    with process(revision, backend) as server:
        server.call("wait", {}, id="long")
        server.hear_error(b"waiting")
        params = {"requestId": "long"}
        server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        server.hear_error(b"stopped")
        server.say(request(revision, "tools/list", id="next"))
        assert server.hear()["id"] == "next"
        assert server.end() == 0
    assert not any(b'"long"' in line for line in server.lines)


@pytest.mark.requirement("stdio.stderr-not-an-error", "stdio.stderr-any-logging")
@some
async def test_a_server_that_prints_before_it_speaks_is_understood(revision: str) -> None:
    """A banner on standard output is against the rules, and common."""
    code = f"""
import sys, runpy
print("Starting server on stdio", flush=True)
print("{{not json}}", flush=True)
print("info: ready", file=sys.stderr, flush=True)
sys.argv = ["server"]
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""
    async with connect(script(code), revision=revision, env=PATHS) as client:
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
