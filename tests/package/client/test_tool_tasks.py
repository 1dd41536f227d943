"""Tasks of 2025-11-25, as a client has them: one handle, which polls while someone waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import handlers_with, live
from kit.requestor import ACCEPTED, RELATED, REVISION, Work, requirement
from kit.respondent import accept_result
from kit.samples import task
from kit.scripted import ScriptedServer
from kit.simulation import simulate
from mcpgen_runtime import (
    ClientHandlers,
    ConnectionClosedError,
    LocalProtocolError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    SyncClientHandlers,
    TaskUpdate,
    connect,
    connect_sync,
)

AUGMENTED: dict[str, Any] = {"requests": {"tools": {"call": {}}}}


TOOL = {"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
RESULT = {"content": [{"type": "text", "text": "done"}]}


@asynccontextmanager
async def connect_scripted(
    *answers: Mapping[str, Any],
    capabilities: Mapping[str, Any] = {"tools": {}, "tasks": {**AUGMENTED, "cancel": {}}},
    tool: Mapping[str, Any] | None = TOOL,
    **how: Any,
) -> AsyncIterator[tuple[Any, ScriptedServer]]:
    """A client, and a server that lists a tool and then answers with these results, in order."""
    listed = () if tool is None else ({"tools": [tool]},)
    server = ScriptedServer(REVISION, (*listed, *answers), capabilities)
    async with connect(server, revision=REVISION, **how) as client:
        yield client, server


@requirement("tasks.tool-optional", "tasks.create-request", "tasks.no-related-task-in-requests")
@requirement("tasks.tool-required-client")
async def test_a_call_is_a_task_where_one_is_wanted_or_required() -> None:
    work = Work()
    work.go.set()
    async with live(work.server, REVISION) as (client, record):
        assert (await client.call_tool("waits")).data == "done"
        handle = await client.call_tool("waits", task={"ttl": 1000})
        assert (await handle.result()).data == "done"
        assert (handle.status, await handle.wait()) == ("completed", "completed")
        await client.list_tools()
        assert (await client.call_tool("needs_a_task")).data == "done"
        assert await client.call_tool("needs_a_task", returns=str) == "done"
        plain, wanted, *required = record.sent_as("tools/call")
        assert "task" not in plain
        assert wanted["task"] == {"ttl": 1000}
        assert [each["task"] for each in required] == [{}, {}]
        for method in ("tasks/get", "tasks/result"):
            assert not any("_meta" in params for params in record.sent_as(method))


@pytest.mark.parametrize("capabilities", [{}, {"tasks": {}}, {"tasks": {"list": {}}}])
@requirement("tasks.augment-only-if-declared", "tasks.no-capability-no-tasks")
@requirement("tasks.requests-exhaustive", "tasks.tool-no-server-capability")
async def test_without_the_capability_no_call_is_a_task(capabilities: Any) -> None:
    declared = {"tools": {}, **capabilities}
    async with connect_scripted(RESULT, capabilities=declared) as (client, server):
        with pytest.raises(MissingCapabilityError, match=r"tasks\.requests\.tools\.call"):
            await client.call_tool("t", task=True)
        assert server.heard == []
        if not capabilities:
            with pytest.raises(MissingCapabilityError, match="tasks"):
                client.task("t")


@requirement("tasks.input-required-call-result", "tasks.any-stream", "tasks.poll-beside-result")
async def test_a_task_that_requires_input_gets_it_from_the_handlers() -> None:
    names = iter(("name 1", "name 2"))
    handlers = handlers_with(elicit=lambda params: accept_result(name=next(names)))
    async with live(Work().server, REVISION, handlers=handlers) as (client, record):
        handle = await client.call_tool("asks", task=True)
        assert (await handle.result()).data == "name 1 and name 2"
        questions = record.received_as("elicitation/create")
        assert [each["_meta"][RELATED] for each in questions] == [{"taskId": handle.task_id}] * 2
        assert len(record.sent_as("tasks/result")) == 1


@requirement("tasks.poll-beside-result")
async def test_a_client_that_stops_waiting_for_a_result_polls_on() -> None:
    class Slow(ClientHandlers):
        async def elicit(self, params: Any, ctx: Any) -> Any:
            await go.wait()
            return ACCEPTED

    go = anyio.Event()
    async with live(Work().server, REVISION, handlers=Slow()) as (client, record):
        handle = await client.call_tool("asks", task=True)
        with anyio.move_on_after(0.3):
            await handle.result()
        assert (await handle.refresh()).status == "input_required"
        assert len(record.sent_as("notifications/cancelled")) == 1
        go.set()
        assert (await handle.result()).data == "Ada and Ada"


@requirement("tasks.progress-token-lifetime", "tasks.result-exact")
async def test_progress_comes_after_the_call_is_answered() -> None:
    async def report(*each: Any) -> None:
        reports.append(each)

    work, reports = Work(), list[Any]()
    async with live(work.server, REVISION) as (client, _):
        handle = await client.call_tool("tells", task=True, on_progress=report)
        work.go.set()
        assert (await handle.result()).data == "done"
        assert reports == [(1, 2, "half")]
        assert (await (await client.call_tool("tells", task=True)).result()).data == "done"
        with pytest.raises(RemoteError, match="can't be done") as failed:
            await (await client.call_tool("fails", task=True)).result()
        assert (failed.value.code, failed.value.data) == (1234, {"why": 1})
        result = await (await client.call_tool("reports_an_error", task=True)).result()
        assert result.is_error


async def test_the_iteration_gives_status_and_progress() -> None:
    work, updates, reports = Work(), list[TaskUpdate](), list[Any]()
    async with live(work.server, REVISION) as (client, _):
        handle = await client.call_tool(
            "tells", task=True, on_progress=lambda *report: reports.append(report)
        )
        async for update in handle:
            updates.append(update)
            work.go.set()
        assert updates[0] == TaskUpdate("working")
        assert TaskUpdate("working", "half", 1, 2) in updates
        assert updates[-1] == TaskUpdate("completed", "nearly")
        assert (await handle.wait(), reports) == ("completed", [])


@requirement("tasks.cancel-not-by-notification", "tasks.cancel-gated", "tasks.cancel-no-retention")
async def test_a_handle_cancels_its_task_by_a_request() -> None:
    work = Work()
    async with live(work.server, REVISION) as (client, record):
        handle = await client.call_tool("waits", task=True)
        await handle.cancel()
        assert handle.status == "cancelled"
        await work.ended.wait()
        with pytest.raises(RequestCancelledError, match="the task was cancelled"):
            await handle.result()
        await handle.cancel()  # it has ended: nothing is sent
        assert len(record.sent_as("tasks/cancel")) == 1
        assert record.sent_as("notifications/cancelled") == []
    async with connect_scripted({"task": task("working")}, task("cancelled")) as (client, _):
        handle = await client.call_tool("t", task=True)
        await handle.cancel()  # the answer has the state, if no notification has
        assert handle.status == "cancelled"
    refused = {"error": {"code": -32602, "message": "it has ended"}}
    answers = [{"task": task("working")}, refused, task("working"), refused, task("completed")]
    async with connect_scripted(*answers) as (client, _):
        handle = await client.call_tool("t", task=True)
        with pytest.raises(RemoteError, match="it has ended"):
            await handle.cancel()
        await handle.cancel()  # it has ended meanwhile
        assert handle.status == "completed"
    declared: dict[str, Any] = {"tools": {}, "tasks": AUGMENTED}
    async with connect_scripted({"task": task("working")}, capabilities=declared) as (client, _):
        handle = await client.call_tool("t", task=True)
        with pytest.raises(MissingCapabilityError, match=r"tasks\.cancel"):
            await handle.cancel()
        with pytest.raises(LocalProtocolError, match="handlers answer"):
            await handle.answer({})


@requirement("tasks.cancel-not-by-notification")
async def test_giving_up_a_call_that_needs_a_task_cancels_the_task() -> None:
    work = Work()

    @work.server.tool(runner=work.tasks.required)
    async def long() -> str:
        try:
            await work.go.wait()
        finally:
            work.ended.set()
        return "never"

    async with live(work.server, REVISION) as (client, record):
        await client.list_tools()
        with anyio.move_on_after(0.1):
            await client.call_tool("long")
        await work.ended.wait()
        assert len(record.sent_as("tasks/cancel")) == 1


@requirement("tasks.ttl-expiry-delete")
async def test_a_task_is_picked_up_again_by_its_id() -> None:
    work = Work()
    async with connect(work.server, revision=REVISION) as client:
        task_id = (await client.call_tool("waits", task=True)).task_id
    work.go.set()
    async with connect(work.server, revision=REVISION) as client:
        handle = client.task(task_id)
        assert (handle.status, (await handle.result()).data) == (None, "done")
        assert [each.status async for each in client.task(task_id)] == ["completed"]
        with pytest.raises(RemoteError, match="has not expired"):
            await client.task("unknown").result()


@requirement("tasks.list-cursor-opaque")
async def test_the_cursor_of_a_list_of_tasks_is_sent_back_as_it_is() -> None:
    cursor = "\u00e9 = ?"
    first = {"tasks": [task("working")], "nextCursor": cursor}
    pages: list[dict[str, Any]] = [first, {"tasks": [task("failed")]}]
    capabilities: dict[str, Any] = {"tasks": {"list": {}}}
    async with connect_scripted(*pages, capabilities=capabilities, tool=None) as (client, server):
        assert [each.status for each in await client.list_tasks()] == ["working", "failed"]
        assert server.heard[1]["params"]["cursor"] == cursor
    async with connect_scripted(capabilities={"tasks": {}}, tool=None) as (client, server):
        with pytest.raises(MissingCapabilityError, match=r"tasks\.list"):
            await client.list_tasks()


async def test_the_end_is_news_though_it_comes_while_news_are_read() -> None:
    async with connect_scripted({"task": task("working")}) as (client, server):
        handle = await client.call_tool("t", task=True)
        updates = aiter(handle)
        assert (await anext(updates)).status == "working"
        await server.notify("notifications/tasks/status", task("completed"))
        with anyio.fail_after(5):
            while handle.status == "working":
                await anyio.lowlevel.checkpoint()
        assert [update.status async for update in updates] == ["completed"]


async def test_news_of_a_task_may_come_before_the_answer_that_begins_it() -> None:
    async def call() -> None:
        handle = await client.call_tool(
            "t", task=True, on_progress=lambda *report: reports.append(report)
        )
        assert (handle.status, handle.message) == ("completed", "so")
        assert (await handle.result()).content[0].text == "done"

    reports = list[Any]()
    async with connect_scripted() as (client, server), anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await server.next()
        begun = await server.next()
        token = begun["params"]["_meta"]["progressToken"]
        await server.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await server.notify("notifications/tasks/status", task("completed", statusMessage="so"))
        await server.answer(begun, {"task": task("working")})
        await server.answer_next(RESULT)
    assert reports == [(1, None, None)]


async def test_a_server_that_asks_without_end_is_an_error() -> None:
    refused = {"error": {"code": -1, "message": "no"}}
    asking: list[dict[str, Any]] = [task("input_required"), refused] * 30
    async with connect_scripted({"task": task("working")}, *asking) as (client, server):
        handle = await client.call_tool("t", task=True)
        with anyio.fail_after(5), pytest.raises(RemoteProtocolError, match="for input 17 times"):
            await handle.result()
        assert [each["method"] for each in server.heard].count("tasks/result") == 17


async def test_a_task_of_a_closed_client_is_waited_for_no_more() -> None:
    async with connect_scripted({"task": task("input_required")}) as (client, _):
        handle = await client.call_tool("t", task=True)
        await client.close()
        with pytest.raises(ConnectionClosedError, match="the connection is closed"):
            await handle.wait()


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"content": 5}, "tools/call: result: .*content"),
        ({"task": task("working")}, "tools/call: expected the final result"),
        ({**RESULT, "structuredContent": {"n": "x"}}, "n: 'x' is not of type 'integer'"),
        ({**RESULT, "structuredContent": {"n": 1}}, None),
    ],
)
async def test_the_result_of_a_task_is_checked_like_that_of_a_call(
    result: dict[str, Any], reason: str | None
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    answers = [{"task": task("working")}, task("completed"), result]
    async with connect_scripted(*answers, tool={**TOOL, "outputSchema": schema}) as (client, _):
        handle = await client.call_tool("t", task=True)
        if reason is None:
            assert (await handle.result()).structured_content == {"n": 1}
        else:
            with pytest.raises(RemoteProtocolError, match=reason):
                await handle.result()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_blocking_client_has_the_same_handle(anyio_backend: str) -> None:
    class Answering(SyncClientHandlers):
        def elicit(self, params: Any, ctx: Any) -> Any:
            return ACCEPTED

    work = Work()
    options: dict[str, Any] = {"revision": REVISION, "handlers": Answering()}

    def run() -> list[Any]:
        with connect_sync(work.server, **options) as client:
            handle = client.call_tool("asks", task=True)
            statuses = [update.status for update in handle]
            again = client.task(handle.task_id)
            return [statuses[-1], handle.result().data, again.wait(), again.result().data]

    results = await anyio.to_thread.run_sync(run)
    assert results == ["completed", "Ada and Ada", "completed", "Ada and Ada"]


@requirement("tasks.tool-forbidden-client")
async def test_tasks_are_refused_locally_by_a_tool_or_a_revision_without_them() -> None:
    async with live(Work().server, REVISION) as (client, record):
        with pytest.raises(MethodNotFoundError, match="'plain' must not be called as a task"):
            await client.call_tool("plain", task=True)
        assert record.sent_as("tools/call") == []
    async with live(Work().server, "2025-06-18") as (client, record):
        for begin in (lambda: client.call_tool("waits", task=True), lambda: client.task("t")):
            with pytest.raises(MissingCapabilityError):
                await begin()
        assert record.sent_as("tools/call") == []


@requirement("tasks.poll-until-terminal", "tasks.respect-poll-interval", "tasks.result-request")
@requirement("tasks.status-notification-not-relied-on", "tasks.status-notification-keep-polling")
async def test_a_task_is_polled_in_its_interval_though_notifications_may_come() -> None:
    answers = [{"task": task("working")}, task("working"), task("completed"), RESULT]
    async with connect_scripted(*answers) as (client, server):
        begin = anyio.current_time()
        handle = await client.call_tool("t", task=True)
        await server.notify("notifications/tasks/status", task("working", statusMessage="so"))
        updates = [each async for each in handle]
        assert updates == [
            TaskUpdate("working"),
            TaskUpdate("working", "so"),
            TaskUpdate("working"),
            TaskUpdate("completed"),
        ]
        assert anyio.current_time() - begin >= 0.1
        assert (await handle.result()).content[0].text == "done"
        methods = [each["method"] for each in server.heard if each["method"] != "tools/list"]
        assert methods == ["tools/call", "tasks/get", "tasks/get", "tasks/result"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_task_is_waited_for_as_the_server_says(backend: str) -> None:
    intervals = [None, 1, 10**6, 2000]  # 1 s by default, 50 ms at least, 5 min at most
    states = [task("working", pollInterval=each) for each in intervals]

    async def times(*answers: Any, told: Any = None) -> list[float]:
        async with connect_scripted(*answers) as (client, server):
            handle = await client.call_tool("t", task=True)
            begin, ends = anyio.current_time(), list[float]()
            async with anyio.create_task_group() as tasks:
                if told is not None:
                    tasks.start_soon(tell, server, told)
                with suppress(RequestTimeoutError):
                    async for _ in handle:
                        ends.append(anyio.current_time() - begin)
                ends.append(anyio.current_time() - begin)
        return [round(each, 6) for each in ends]

    async def tell(server: ScriptedServer, state: Any) -> None:
        await anyio.sleep(0.3)
        token = server.heard[-1]["params"]["_meta"]["progressToken"]
        of_other: dict[str, Any] = {"_meta": {RELATED: {"taskId": "other"}}}
        report = {"progressToken": token, "progress": 1, **of_other}
        await server.notify("notifications/progress", report)
        await server.notify("notifications/tasks/status", task("failed", taskId="other"))
        report["_meta"] = {RELATED: {"taskId": "t"}}
        await server.notify("notifications/progress", report)
        await anyio.sleep(0.3)
        await server.notify("notifications/tasks/status", state)

    async def main() -> None:
        polled = await times({"task": states[0]}, *states[1:], task("completed"))
        assert polled == [0, 303.05, 303.05]
        slow: Any = {"task": task("working", pollInterval=50_000)}
        assert await times(slow, told=task("completed")) == [0, 0.3, 0.6, 0.6]
        asking = {"task": task("input_required", pollInterval=50_000)}
        assert await times(asking, RESULT, task("completed")) == [0, 0, 0]
        slow["task"]["ttl"] = 2000
        assert await times(slow) == [0, 2]

    simulate(backend, 0, main)
