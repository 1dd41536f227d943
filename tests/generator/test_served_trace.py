"""A trace as a server: what clients of each revision get, and what tells them of the difference."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from syrupy.assertion import SnapshotAssertion

import mcpgen_runtime
from conventions.sources import ROOT
from generator.command_line import run, run_python
from generator.shop_server import make
from generator.shop_sessions import (
    PATHS,
    QUESTIONS,
    REVISIONS,
    Guest,
    Serving,
    expected,
    record,
    text_of,
    visit,
    write_trace,
)
from mcpgen.replay import recording, serve_command, served_trace
from mcpgen.replay.faults import Fault, Faults, FaultyApplication, parse
from mcpgen.replay.matching import Rule
from mcpgen.replay.served_trace import RecordedServer, ServeOptions
from mcpgen_runtime import (
    ConnectionClosedError,
    Context,
    RemoteError,
    Server,
    ToolsChanged,
    connect,
)
from mcpgen_runtime.testing import connected

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]

SESSION, LATER, NEWEST = "2025-06-18", "2025-11-25", REVISIONS[-1]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trace of the same visit in each revision; the package to serve them is in the cache."""
    assert serve_command.package_files()
    folder = tmp_path_factory.mktemp("traces")
    experimental = {"com.example/maps": {"zoom": 3}}
    described: dict[str, Any] = {
        "title": "The shop",
        "instructions": "Order sparingly.",
        "capabilities": {"experimental": experimental},
    }

    async def visit_in(client: Any) -> None:
        await visit(client, asks=client.revision in QUESTIONS)

    return {
        revision: record(folder / f"{revision}.jsonl", revision, visit_in, make(**described))
        for revision in REVISIONS
    }


def recorded_server(trace: Path, **options: Any) -> RecordedServer:
    """The recorded server of a trace, with options of serving."""
    sessions = serve_command.select_sessions(recording.read(str(trace)), None)
    return served_trace.recorded_server(mcpgen_runtime, sessions, ServeOptions(**options))


@asynccontextmanager
async def served(recorded: RecordedServer, revision: str, **options: Any) -> AsyncIterator[Any]:
    """A client of a served trace in a revision."""
    mock = served_trace.mock_server(recorded, closes_channel=True)
    handlers: Any = Guest()
    async with connected(mock, revision=revision, handlers=handlers, **options) as pair:
        yield pair.client


@pytest.mark.parametrize(("near", "far"), [*itertools.product(REVISIONS, REVISIONS)], ids=str)
async def test_a_visit_is_as_recorded_in_every_revision(
    near: str, far: str, traces: Mapping[str, Path]
) -> None:
    asks = near in QUESTIONS and far in QUESTIONS
    async with served(recorded_server(traces[far]), near) as client:
        assert await visit(client, asks=asks) == expected(asks=asks)
        assert client.instructions == "Order sparingly."
        assert client.server_info["name"] == "shop"
        assert client.server_info["version"] == "1.0"


async def test_the_description_of_the_server_is_the_recorded_one(
    traces: Mapping[str, Path],
) -> None:
    async with served(recorded_server(traces[SESSION]), SESSION) as client:
        assert client.server_info["title"] == "The shop"
        assert client.server_capabilities["experimental"] == {"com.example/maps": {"zoom": 3}}


@pytest.mark.parametrize("revision", [SESSION, NEWEST])
async def test_an_unknown_call_shows_the_nearest_one(
    revision: str, traces: Mapping[str, Path]
) -> None:
    async with served(recorded_server(traces[revision]), revision) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("greet", {"name": "Bo"})
    error = caught.value
    assert error.code == -32602
    assert 'has "Ada" at /params/arguments/name, not "Bo"' in error.message
    nearest = error.data["nearest"]
    assert nearest["params"] == {"name": "greet", "arguments": {"name": "Ada"}}
    lines = traces[revision].read_text("utf-8").splitlines()
    assert json.loads(lines[nearest["line"] - 1])["message"]["params"]["name"] == "greet"


def talkative_server() -> Server:
    """A server that completes, logs and changes."""
    server = Server("talkative")
    server.resource("city://{name}", name="city")(lambda name: name)
    server.prompt("greet")(lambda name: name)
    server.completion(prompt="greet", argument="name")(lambda value: [f"{value}lo"])

    @server.tool()
    async def note(ctx: Context) -> str:
        await ctx.warning("rain", "notes")
        return "noted"

    @server.tool()
    async def change() -> str:
        server.add_tool(lambda: "", name="brief")
        server.remove_tool("brief")
        return "changed"

    return server


class Listener(Guest):
    """Keeps log messages."""

    def __init__(self, logs: list[tuple[str, Any]]) -> None:
        super().__init__()
        self._logs = logs

    async def logging_message(self, params: Any, ctx: Any) -> None:
        self._logs.append((params.level, params.data))


async def use_talkative_server(client: Any) -> list[Any]:
    """The answers and changes that a client of the talkative server receives."""
    if client.revision == NEWEST:
        client.ask_for_logs("info")
    else:
        await client.set_level("info")
    async with client.listen(tools=True) as changes:
        texts = [text_of(await client.call_tool(name)) for name in ("note", "change")]
        change = await anext(changes)
    (template,) = await client.list_resource_templates()
    reference = {"type": "ref/prompt", "name": "greet"}
    completed = await client.complete({"name": "name", "value": "Os"}, reference)
    return [*texts, type(change), template.uri_template, completed.completion.values]


@pytest.mark.parametrize("revision", [SESSION, NEWEST])
async def test_templates_completions_logs_and_changes_are_as_recorded(
    revision: str, tmp_path: Path
) -> None:
    work = partial(record, tmp_path / "t.jsonl", revision, use_talkative_server, talkative_server())
    path = await anyio.to_thread.run_sync(work)
    logs: list[tuple[str, Any]] = []
    mock = served_trace.mock_server(recorded_server(path), closes_channel=True)
    handlers: Any = Listener(logs)
    async with connected(mock, revision=revision, handlers=handlers) as pair:
        received = await use_talkative_server(pair.client)
    assert received == ["noted", "changed", ToolsChanged, "city://{name}", ["Oslo"]]
    assert logs == [("warning", "rain")]


async def test_a_method_that_was_not_recorded_is_named(traces: Mapping[str, Path]) -> None:
    async with served(recorded_server(traces[SESSION]), SESSION) as client:
        with pytest.raises(RemoteError, match="the trace has no such request") as caught:
            await client.request("resources/templates/list")
    assert caught.value.code == -32601


async def test_calls_come_in_any_order_and_repeat(traces: Mapping[str, Path]) -> None:
    async with served(recorded_server(traces[SESSION]), SESSION) as client:
        first, *others = [text_of(await client.call_tool("order")) for _ in range(3)]
        assert others == others[:1] * 2 != [first] * 2
        assert text_of(await client.call_tool("greet", {"name": "Ada"})) == "Hello Ada"


async def test_each_client_has_a_playback_of_its_own(traces: Mapping[str, Path]) -> None:
    recorded = recorded_server(traces[SESSION])
    orders: list[str] = []
    for _ in range(2):
        async with served(recorded, SESSION) as client:
            orders.append(text_of(await client.call_tool("order")))
    assert orders[0] == orders[1]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_recorded_sequence_passes_when_strict(
    revision: str, traces: Mapping[str, Path]
) -> None:
    recorded = recorded_server(traces[revision], order="strict")
    assert all(line.endswith("never came") for line in recorded.problems())
    assert len(recorded.problems()) > 10
    asks = revision in QUESTIONS
    async with served(recorded, revision):
        pass  # a session without requests does not count beside others
    async with served(recorded, revision) as client:
        assert await visit(client, asks=asks) == expected(asks=asks)
    assert recorded.problems() == []


async def test_another_sequence_is_refused_when_strict(traces: Mapping[str, Path]) -> None:
    recorded = recorded_server(traces[SESSION], order="strict")
    async with served(recorded, SESSION) as client:
        with pytest.raises(RemoteError, match="expected tools/list next, as in line"):
            await client.call_tool("order")
        await client.request("tools/list")
        with pytest.raises(RemoteError, match="which has"):
            await client.request("tools/list")
    refused, again, *missing = recorded.problems()
    assert refused.startswith("tools/call: expected tools/list next")
    assert again.startswith("tools/list: expected the request of line")
    assert all(line.endswith("never came") for line in missing)
    assert len(missing) > 10


async def test_a_rule_lets_arguments_differ(traces: Mapping[str, Path]) -> None:
    rule = Rule("/params/arguments/name", "shape")
    async with served(recorded_server(traces[SESSION], rules=[rule]), SESSION) as client:
        assert text_of(await client.call_tool("greet", {"name": "Bo"})) == "Hello Ada"


@pytest.mark.parametrize("revision", [SESSION, NEWEST])
async def test_a_call_fails_on_purpose(revision: str, traces: Mapping[str, Path]) -> None:
    recorded = recorded_server(traces[revision], faults=[parse("tools/call:2")])
    async with served(recorded, revision) as client:
        first = await client.call_tool("order")
        with pytest.raises(RemoteError, match="a failure on purpose") as caught:
            await client.call_tool("order")
        assert caught.value.code == -32603
        assert text_of(await client.call_tool("order")) != text_of(first)


async def test_a_connection_ends_on_purpose(traces: Mapping[str, Path]) -> None:
    recorded = recorded_server(traces[SESSION], faults=[parse("tools/call:1:close")])
    async with served(recorded, SESSION) as client:
        with pytest.raises(ConnectionClosedError):
            await client.call_tool("order")


async def test_answers_are_delayed(traces: Mapping[str, Path]) -> None:
    async with served(recorded_server(traces[SESSION], latency=0.2), SESSION) as client:
        start = anyio.current_time()
        await client.call_tool("order")
        assert anyio.current_time() - start >= 0.2


async def test_messages_come_at_the_times_of_the_trace(
    traces: Mapping[str, Path], tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in traces[SESSION].read_text("utf-8").splitlines()]
    answers = [row for row in rows if '"text": "order ' in json.dumps(row.get("message"))]
    start = datetime.fromisoformat(rows[0]["time"])
    seconds = 0.0
    for row in rows:
        seconds += 0.3 if row in answers[:1] else 0.0
        row["time"] = (start + timedelta(seconds=seconds)).isoformat()
    slow = tmp_path / "slow.jsonl"
    slow.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    async with served(recorded_server(slow, latency="recorded"), SESSION) as client:
        before = anyio.current_time()
        await client.call_tool("order")
        assert anyio.current_time() - before >= 0.3


@pytest.mark.parametrize("revision", ["2024-11-05", SESSION, NEWEST])
async def test_a_question_without_a_way_is_an_error_that_names_it(
    revision: str, traces: Mapping[str, Path]
) -> None:
    mock = served_trace.mock_server(recorded_server(traces[SESSION]), closes_channel=True)
    async with connected(mock, revision=revision) as pair:
        client: Any = pair.client
        with pytest.raises(RemoteError, match="the client refused elicitation/create"):
            await client.call_tool("book")


def test_requests_that_a_revision_lacks_are_listed(traces: Mapping[str, Path]) -> None:
    lines = served_trace.methods_without_counterpart(recorded_server(traces[SESSION]))
    assert lines == [
        f"{name} has no elicitation/create" for name in REVISIONS if name not in QUESTIONS
    ]


@pytest.mark.parametrize(
    ("described", "capabilities", "info"),
    [
        ({}, {"tools": {}, "resources": {}}, {"name": "recorded server", "version": "0"}),
        (
            {"capabilities": {"prompts": {}, "tasks": {}}, "serverInfo": {"name": "shop"}},
            {"prompts": {}},
            {"name": "shop", "version": "0"},
        ),
    ],
)
def test_a_server_without_a_description_has_what_it_used(
    described: Any, capabilities: Any, info: Any, tmp_path: Path
) -> None:
    opening = {"protocolVersion": SESSION, "capabilities": {}, "clientInfo": {"name": "c"}}
    rows = [
        ("sent", {"id": 0, "method": "initialize", "params": opening}),
        ("received", {"id": 0, "result": {"protocolVersion": SESSION, **described}}),
        *(("sent", {"id": at, "method": name}) for at, name in enumerate(USED, 1)),
    ]
    recorded = recorded_server(write_trace(tmp_path / "trace.jsonl", *rows))
    assert (recorded.capabilities, recorded.info) == (capabilities, info)


USED = ("tools/list", "resources/list", "ping")


def test_times_and_failures_are_read_as_documented() -> None:
    assert [serve_command.parse_latency(text) for text in ("50ms", "1.5s", "recorded")] == [
        0.05,
        1.5,
        "recorded",
    ]
    assert parse("tools/call:2:503") == Fault("tools/call", 2, 503)
    assert parse("ping:1:error") == parse("ping:1") == Fault("ping", 1, "error")
    assert (parse("ping:9:close"), parse("a:1:599")) == (
        Fault("ping", 9, "close"),
        Fault("a", 1, 599),
    )


@pytest.mark.parametrize("text", ["tools/call", "tools/call:0", "tools/call:1:200", ":1"])
def test_a_failure_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(Exception, match="--fail: expected METHOD:N"):
        parse(text)


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
BODIES = (CALL, CALL, CALL, [1, {"method": 1}, {"method": "ping"}, CALL], "}{")
REQUESTS: list[tuple[dict[str, str], Any]] = [
    ({"type": "lifespan"}, CALL),
    ({"type": "http", "method": "GET"}, CALL),
    *(({"type": "http", "method": "POST"}, body) for body in BODIES),
]


async def test_an_application_fails_by_a_status_or_breaks_off(snapshot: SnapshotAssertion) -> None:
    faults = Faults([parse("tools/call:2:503"), parse("tools/call:3:close"), parse("ping:1:400")])
    events: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"scope": scope, "received": [(await receive())["type"] for _ in range(3)]})

    async def send(event: Any) -> None:
        events.append(event)

    application = FaultyApplication(inner, faults)
    for scope, body in REQUESTS:
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        first = {"type": "http.request", "body": text[:9], "more_body": True}
        last = {"type": "http.request", "body": text[9:]}
        incoming = itertools.chain([first, last], itertools.repeat({"type": "http.disconnect"}))

        async def receive(incoming: Any = incoming) -> Any:
            return next(incoming)

        await application(scope, receive, send)
    assert events == snapshot
    assert application.__name__ == "inner"


MASKED: list[tuple[str, dict[str, Any]]] = [
    ("sent", {"id": 0, "method": "initialize", "params": {"protocolVersion": SESSION}}),
    ("received", {"id": 0, "result": {"protocolVersion": SESSION, "capabilities": {}}}),
    ("sent", {"id": 1, "method": "tools/call", "params": {"name": "book"}}),
    ("received", {"id": 1, "method": "elicitation/create"}),
    ("sent", {"id": 1, "result": {"action": "decline"}}),
    ("received", {"id": 1, "result": {}}),
    ("sent", {"id": 2, "method": "tools/list"}),
]


def test_a_server_without_a_client_exits_with_what_never_came_when_strict(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", *MASKED, masked=True)
    command = ("-m", "mcpgen", "replay", trace, "--serve")
    every = ((), ("--strict",), ("--strict", "--quiet"))
    ended = [run_python(*command, *words, cwd=ROOT / "generator") for words in every]
    assert [(done.code, done.out, done.err.splitlines()) for done in ended] == snapshot


def serving(trace: Path, *words: str) -> Serving:
    """The trace as a server over HTTP."""
    return Serving(*COMMAND, str(trace), "--serve", "--http", "127.0.0.1:0", *words)


COMMAND = (sys.executable, "-m", "mcpgen", "replay")


@pytest.mark.slow
@pytest.mark.parametrize("revision", [*REVISIONS[1::2], NEWEST])
async def test_a_process_serves_several_clients_over_http(
    revision: str, traces: Mapping[str, Path]
) -> None:
    with serving(traces[SESSION]) as process:
        asks = revision in QUESTIONS
        for _ in range(1 if revision == NEWEST else 2):  # whose servers know no clients
            async with connect(process.url, revision=revision, handlers=Guest()) as client:
                assert await visit(client, asks=asks) == expected(asks=asks)
    assert process.code == 0


@pytest.mark.slow
async def test_a_client_that_leaves_early_fails_when_strict(traces: Mapping[str, Path]) -> None:
    with serving(traces[SESSION], "--strict") as process:
        async with connect(process.url, revision=SESSION) as client:
            await client.request("tools/list")
    assert process.code == 1
    assert "tools/call: the request of line" in process.err
    assert "never came" in process.err


@pytest.mark.slow
@pytest.mark.parametrize("revision", [SESSION, NEWEST])
async def test_a_status_and_a_broken_response_come_on_purpose(
    revision: str, traces: Mapping[str, Path]
) -> None:
    words = ("--fail", "tools/call:1:500", "--fail", "tools/call:2:close")
    with serving(traces[revision], *words) as process:
        async with connect(process.url, revision=revision) as client:
            with pytest.raises(Exception, match="500"):
                await client.call_tool("order")
            with pytest.raises(Exception, match=r"connection|response|stream"):
                await client.call_tool("order")
            assert text_of(await client.call_tool("order")).startswith("order ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--fail", "tools/call:1:503"), "a status such as 503 needs --http"),
        (("--latency", "soon"), "expected a time such as 50ms"),
        (("--session", "9"), "expected --session of 1 to"),
        (("--http", "nowhere"), "expected HOST:PORT"),
        (("--against", "x", "-r", "all"), "expected --serve without --against, --revision"),
    ],
)
def test_a_wrong_option_exits_with_two(
    words: tuple[str, ...], text: str, traces: Mapping[str, Path]
) -> None:
    done = run("replay", traces[SESSION], "--serve", *words)
    assert done.code == 2
    assert text in done.err


def test_options_of_serving_need_serve(traces: Mapping[str, Path]) -> None:
    done = run("replay", traces[SESSION], "--strict", "--latency", "1s")
    assert done.code == 2
    assert "expected --serve with --strict, --latency" in done.err


def test_a_trace_of_two_revisions_needs_a_session(
    traces: Mapping[str, Path], tmp_path: Path
) -> None:
    both = tmp_path / "both.jsonl"
    both.write_bytes(traces[SESSION].read_bytes() + traces[LATER].read_bytes())
    done = run("replay", both, "--serve")
    assert done.code == 2
    assert f"is of shop in {SESSION}" in done.err
    assert f"is of shop in {LATER}" in done.err


@pytest.mark.slow
async def test_a_pair_has_a_trace_in_place_of_a_server(
    traces: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    async with connected(replay=traces[SESSION], revision=NEWEST) as pair:
        assert text_of(await pair.client.call_tool("greet", {"name": "Ada"})) == "Hello Ada"
        assert pair.sent[-1]["method"] == "tools/call"
        assert pair.received[-1]["id"] == pair.sent[-1]["id"]


@pytest.mark.slow
async def test_a_pair_fails_with_the_text_of_the_command(
    traces: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    with pytest.raises(AssertionError, match="never came"):
        async with connected(replay=(traces[SESSION], "--strict"), revision=SESSION) as pair:
            await pair.client.request("tools/list")
    with pytest.raises(AssertionError, match=r"nothing\.jsonl"):
        async with connected(replay="nothing.jsonl"):
            pass


def test_a_pair_needs_a_server_or_a_trace() -> None:
    with pytest.raises(TypeError, match="expected a server, or replay=TRACE, got neither"):
        connected()
