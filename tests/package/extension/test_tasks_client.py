"""A client whose calls are answered by tasks, which it polls (ext-tasks/specification/draft)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import msgspec
import pytest

from kit.live import text_of
from package.extension.task_work import (
    DECLARED,
    PACKAGE,
    REVISIONS,
    TASKS,
    Work,
    person,
    requirement,
)

TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
TASK = {"taskId": "t", **TIMES, "ttlMs": None, "pollIntervalMs": 1}


def scripted_server(pkg: Any, *states: dict[str, Any]) -> tuple[Any, list[tuple[Any, float]]]:
    """A server whose calls have these states in turn, and its requests with their times."""
    core: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.server")
    extension: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.tasks.server")
    left = [{**TASK, **each} for each in states]
    requests: list[tuple[Any, float]] = []

    class Scripted(core.ServerHandlers, extension.ServerHandlers):  # type: ignore[misc]  # made here
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            requests.append(("tools/call", anyio.current_time()))
            return msgspec.Raw(msgspec.json.encode({"resultType": "task", **left.pop(0)}))

        async def get_task(self, params: Any, ctx: Any) -> Any:
            requests.append(("tasks/get", anyio.current_time()))
            return left.pop(0) if len(left) > 1 else left[0]

        async def update_task(self, params: Any, ctx: Any) -> Any:
            requests.append((list(params.input_responses), anyio.current_time()))
            return {}

        async def cancel_task(self, params: Any, ctx: Any) -> Any:
            return {}

    return pkg.root.Server("scripted", handlers=[Scripted()]), requests


@requirement("tasks-ext.transparent-polling", "tasks-ext.client-handles-both")
@requirement("tasks-ext.poll-until-terminal", "tasks-ext.get-completed")
async def test_a_call_answered_by_a_task_gives_the_result_of_the_tool(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        async with anyio.create_task_group() as group:
            texts: list[str] = []

            async def call() -> None:
                texts.append(text_of(await client.call_tool("waits")))

            group.start_soon(call)
            while not work.tasks.store:
                await anyio.lowlevel.checkpoint()
            work.go.set()
        assert texts == ["done"]
        assert text_of(await client.call_tool("plain")) == "plain"
        handle = await client.call_tool("plain", task=True)  # a handle with the result
        assert (handle.task_id, handle.status) == (None, "completed")
        assert text_of(await handle.result()) == "plain"


@requirement("tasks-ext.fulfil-inputs", "tasks-ext.observe-after-update", "tasks-ext.keys-unique")
@requirement("tasks-ext.update-keys-outstanding")
async def test_client_handlers_answer_each_question_of_a_task_once(pkg: Any) -> None:
    handlers = person(pkg)
    async with Work(pkg).client(pkg, handlers=handlers) as client:
        assert text_of(await client.call_tool("asks")) == "name 1 and name 2"
        assert handlers.asked == 2


@requirement("tasks-ext.cancel-request", "tasks-ext.cancel-forget")
@requirement("tasks-ext.no-cancelled-notification")
async def test_a_call_that_is_given_up_cancels_its_task(
    pkg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace"
    monkeypatch.setenv("MCP_TRACE", f"{trace}")
    work = Work(pkg)
    async with work.client(pkg) as client:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "waits")
                while not work.tasks.store:
                    await anyio.lowlevel.checkpoint()
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            await work.ended.wait()
    records = [msgspec.json.decode(line) for line in trace.read_bytes().splitlines()]
    sent = [
        each["message"]["method"]
        for each in records
        if (each["channel"], each["direction"]) == ("client", "sent")
    ]
    assert sent.count("tasks/cancel") == 1
    assert sent[-1] == "tasks/cancel"  # and no poll after it
    assert "notifications/cancelled" not in sent


@requirement("tasks-ext.persist-ids")
async def test_a_task_is_resumed_by_its_id(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        started = await client.call_tool("waits", task=True)
    work.go.set()
    async with work.client(pkg) as client:
        task = client.task(started.task_id)
        assert (task.status, text_of(await task.result())) == (None, "done")


@requirement("tasks-ext.create-result-on-unsupported-method", "tasks-ext.supported-methods")
async def test_tasks_answer_no_other_requests_and_no_other_clients(pkg: Any) -> None:
    core: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.server")
    task = {"resultType": "task", "status": "working", **TASK}

    class Answering(core.ServerHandlers):  # type: ignore[misc]  # made while the test runs
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return msgspec.Raw(msgspec.json.encode(task))

        async def read_resource(self, params: Any, ctx: Any) -> Any:
            return msgspec.Raw(msgspec.json.encode({**task, "contents": []}))

    server = pkg.root.Server("wrong", handlers=[Answering()])
    for capabilities in ({}, DECLARED):
        async with pkg.root.connect(server, capabilities=capabilities) as client:
            with pytest.raises(pkg.root.RemoteProtocolError):
                await client.call_tool("any")
            with pytest.raises(pkg.root.McpError):
                await client.read_resource("any://thing")


def test_a_blocking_client_waits_for_the_task_too(pkg: Any) -> None:
    work = Work(pkg)
    with pkg.root.connect_sync(
        work.server, capabilities=DECLARED, handlers=pkg.root.SyncClientHandlers()
    ) as client:
        assert client.call_tool("reports_an_error").is_error


@requirement("tasks-ext.mcp-name-header", "tasks-ext.client-declares-per-request")
async def test_requests_about_a_task_have_its_header_and_the_extension(pkg: Any) -> None:
    work = Work(pkg)
    app = work.server.asgi(hosts=["app"])
    sent: list[tuple[str, str | None, Any]] = []

    async def record(request: httpx2.Request) -> None:
        params = msgspec.json.decode(request.content)["params"]
        declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        sent.append((request.headers["mcp-method"], request.headers.get("mcp-name"), declared))

    transport = httpx2.ASGITransport(app)
    async with (
        httpx2.AsyncClient(transport=transport, event_hooks={"request": [record]}) as http,
        pkg.root.connect(
            "http://app/mcp", http_client=http, capabilities=DECLARED, handlers=person(pkg)
        ) as client,
    ):
        task = await client.call_tool("asks", task=True)
        assert text_of(await task.result()) == "name 1 and name 2"
        await task.cancel()
    names = {method: name for method, name, _ in sent}
    assert {names[method] for method in ("tasks/get", "tasks/update", "tasks/cancel")} == {
        task.task_id
    }
    assert all(declared["extensions"] == {TASKS: {}} for _, _, declared in sent)


@requirement("tasks-ext.dedup-keys", "tasks-ext.track-answered", "tasks-ext.update-eventual")
async def test_a_question_listed_after_its_answer_is_not_asked_again(pkg: Any) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"mode": "form", "message": "Who?", "requestedSchema": form}
    questions = {"k": {"method": "elicitation/create", "params": params}}
    asking = {"status": "input_required", "inputRequests": questions}
    server, requests = scripted_server(pkg, {"status": "input_required"}, *[asking] * 3, DONE)
    handlers = person(pkg)
    async with pkg.root.connect(server, capabilities=DECLARED, handlers=handlers) as client:
        assert (await client.call_tool("any")).content == []
    assert handlers.asked == 1
    assert [name for name, _ in requests if not isinstance(name, str)] == [["k"]]


DONE: dict[str, Any] = {"status": "completed", "result": {"content": []}}


@requirement("tasks-ext.respect-poll-interval", "tasks-ext.ttl-may-change")
@requirement("tasks-ext.initial-status")
async def test_the_interval_that_came_last_is_kept_between_polls(pkg: Any) -> None:
    intervals = [60, 120, 180]
    states = [{"status": "working", "pollIntervalMs": each} for each in intervals]
    server, requests = scripted_server(pkg, *states, DONE)
    async with pkg.root.connect(server, capabilities=DECLARED) as client:
        assert (await client.call_tool("any")).content == []
    times = [time for _, time in requests]
    for interval, begin, end in zip(intervals, times[:-1], times[1:], strict=True):
        assert end - begin >= interval / 1000
    # a task may have ended when it is created
    server, requests = scripted_server(pkg, {"status": "completed"}, DONE)
    async with pkg.root.connect(server, capabilities=DECLARED) as client:
        assert (await client.call_tool("any")).content == []
    assert [method for method, _ in requests] == ["tools/call", "tasks/get"]


@requirement("tasks-ext.ttl-client-backstop")
async def test_a_task_that_outlives_its_time_is_waited_for_no_more(pkg: Any) -> None:
    server, _ = scripted_server(pkg, *[{"status": "working", "ttlMs": 1}] * 2)
    async with pkg.root.connect(server, capabilities=DECLARED) as client:
        with pytest.raises(pkg.root.RequestTimeoutError):
            await client.call_tool("any")


@requirement("tasks-ext.cancel-cooperative")
async def test_a_task_may_be_completed_though_it_was_cancelled(pkg: Any) -> None:
    server, _ = scripted_server(pkg, *[{"status": "working"}] * 2, DONE)
    async with pkg.root.connect(server, capabilities=DECLARED) as client:
        task = await client.call_tool("any", task=True)
        await task.cancel()
        assert (await task.result()).content == []


every = pytest.mark.parametrize("near", REVISIONS)


@every
async def test_a_tool_that_needs_a_task_runs_as_a_plain_call(pkg: Any, near: str) -> None:
    work = Work(pkg)
    proxy = pkg.root.Server.proxy(work.server)
    work.go.set()
    async with pkg.root.connect(proxy, revision=near, capabilities=DECLARED) as client:
        assert TASKS not in client.server_capabilities.get("extensions", {})
        assert text_of(await client.call_tool("needs_a_task")) == "done"
        assert text_of(await client.call_tool("waits")) == "done"
        assert text_of(await client.call_tool("plain")) == "plain"
        with pytest.raises(pkg.root.RemoteError, match="can't be done") as failed:
            await client.call_tool("fails")
        assert (failed.value.code, failed.value.data) == (1234, {"why": 1})


@every
@pytest.mark.parametrize("tool", ["asks", "asks_two"])
async def test_input_requests_of_a_task_reach_the_client(pkg: Any, near: str, tool: str) -> None:
    handlers = person(pkg)
    proxy = pkg.root.Server.proxy(Work(pkg).server)
    async with pkg.root.connect(proxy, revision=near, handlers=handlers) as client:
        assert text_of(await client.call_tool(tool)) == "name 1 and name 2"
        assert handlers.asked == 2


@every
async def test_a_client_that_gives_up_cancels_the_task(pkg: Any, near: str) -> None:
    work = Work(pkg)
    proxy = pkg.root.Server.proxy(work.server)
    async with pkg.root.connect(proxy, revision=near) as client:
        call = client.start_call(client.call_tool, "waits")
        await anyio.wait_all_tasks_blocked()
        call.cancel()
        with anyio.fail_after(10):
            await work.ended.wait()
