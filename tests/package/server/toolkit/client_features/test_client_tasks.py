"""Tasks of 2025-11-25 that a server asks of its client, for sampling and elicitation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.from_thread
import pytest

from kit.live import live, server_with
from kit.requestor import ACCEPTED, RELATED, REVISION, Name, Requestor, requestor, requirement
from kit.samples import task
from mcpgen_runtime import (
    ClientHandlers,
    ClientTasks,
    Context,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    Server,
    TaskHandle,
    Tasks,
    TaskUpdate,
)

everywhere = pytest.mark.parametrize("transport", ["memory", "http"])

ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
MESSAGE = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}
REQUESTS: dict[str, Any] = {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}}
ABLE: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "tasks": {"cancel": {}, "list": {}, "requests": REQUESTS},
}
FAST = ClientTasks(poll_interval=0.05)


class Asking:
    """A server whose tools ask the client for tasks, with their handles and updates."""

    def __init__(self) -> None:
        self.server = server = Server("asking")
        self.handles: list[TaskHandle[Any]] = []
        self.updates: list[TaskUpdate] = []

        @server.tool
        async def asks(ctx: Context) -> str:
            handle = await ctx.elicit("Who?", Name, task={"ttl": 5000})
            answer = await handle.result()
            return answer.content.name if answer.content else answer.action

        @server.tool
        async def samples(ctx: Context) -> str:
            return (await (await ctx.sample("Hello?", task=True)).result()).text

        @server.tool
        async def visits(ctx: Context) -> str:
            handle = await ctx.elicit_url("Sign in", "https://example.com/", task=True)
            return (await handle.result()).action

        @server.tool
        async def begins(ctx: Context) -> str:
            self.handles.append(await ctx.elicit("Who?", Name, task=True))
            return "begun"

        @server.tool
        async def ends() -> str:
            return await self.handles[-1].wait()

        @server.tool
        async def waits(ctx: Context) -> str:
            return await (await ctx.elicit("Who?", Name, task=True)).wait()

        @server.tool
        async def cancels(ctx: Context) -> str:
            handle = await ctx.elicit("Who?", Name, task=True)
            await handle.cancel()
            with pytest.raises(RequestCancelledError, match="the task was cancelled"):
                await handle.result()
            await handle.cancel()  # it has ended: nothing is sent
            return str(handle.status)

        @server.tool
        async def follows(ctx: Context) -> str:
            handle = await ctx.sample("Hello?", task=True)
            async for update in handle:
                self.updates.append(update)
            return str(handle.status)

        @server.tool(runner=Tasks(server, poll_interval=0.05))
        async def asks_within_a_task(ctx: Context) -> str:
            handle = await ctx.elicit("Who?", Name, task=True)
            self.handles.append(handle)
            answer = await handle.result()
            return answer.content.name if answer.content else answer.action


async def call(client: Requestor, tool: str, *answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requests of a server during a call of a tool, which are answered in order."""
    identifier = await client.begin("tools/call", {"name": tool, "arguments": {}})
    requests: list[dict[str, Any]] = []
    for answer in answers:
        request = await client.until(lambda each: "method" in each and "id" in each)
        requests.append(request)
        if "error" in answer:
            await client.send({"jsonrpc": "2.0", "id": request["id"], **answer})
        else:
            await client.answer(request, answer)
    client.inbox.append(await client.response(identifier))
    return requests


def text(client: Requestor) -> str:
    """The text of the result that came last."""
    content: str = client.inbox[-1]["result"]["content"][0]["text"]
    return content


class Person(ClientHandlers):
    """Answers at once, or when the test says so."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.stopped = anyio.Event()

    async def elicit(self, params: Any, ctx: Any) -> Any:
        try:
            await self.go.wait()
        except BaseException:
            self.stopped.set()
            raise
        return ACCEPTED

    async def create_message(self, params: Any, ctx: Any) -> Any:
        await self.go.wait()
        await ctx.progress(1, 2, "half")
        return MESSAGE


@everywhere
@pytest.mark.parametrize(
    ("tool", "method", "asked", "answer", "expected"),
    [
        ("asks", ELICIT, {"ttl": 5000}, ACCEPTED, "Ada"),
        ("asks", ELICIT, {"ttl": 5000}, {"action": "decline"}, "decline"),
        ("samples", SAMPLE, {}, MESSAGE, "Hello"),
        ("visits", ELICIT, {}, {"action": "accept"}, "accept"),
    ],
)
@requirement("tasks.create-request", "tasks.poll-until-terminal", "tasks.respect-poll-interval")
@requirement("tasks.result-request")
async def test_a_tool_gets_the_answer_that_the_client_works_on(
    transport: str, tool: str, method: str, asked: Any, answer: Any, expected: str
) -> None:
    async with requestor(transport, Asking().server, capabilities=ABLE) as client:
        begin = anyio.current_time()
        answers = [{"task": task("working")}, task("working"), task("completed"), answer]
        requests = await call(client, tool, *answers)
        assert text(client) == expected
        assert anyio.current_time() - begin >= 0.1
        polls = ["tasks/get", "tasks/get", "tasks/result"]
        assert [each["method"] for each in requests] == [method, *polls]
        assert requests[0]["params"]["task"] == asked
        assert [each["params"] for each in requests[1:]] == [{"taskId": "t"}] * 3


@pytest.mark.parametrize(
    "lacking",
    [
        {},
        {"tasks": {"list": {}}},
        {"tasks": {"requests": {"elicitation": {"create": {}}}}},
    ],
)
@requirement("tasks.augment-only-if-declared", "tasks.no-capability-no-tasks")
@requirement("tasks.requests-exhaustive")
async def test_a_client_is_asked_for_tasks_of_the_kinds_it_declares(lacking: Any) -> None:
    capabilities = {"elicitation": {"form": {}}, "sampling": {}, **lacking}
    can_elicit = "elicitation" in str(lacking)
    async with requestor("memory", Asking().server, capabilities=capabilities) as client:
        for tool, path in (("asks", "elicitation.create"), ("samples", "sampling.createMessage")):
            if tool == "asks" and can_elicit:
                await call(client, "asks", {"task": task("completed")}, ACCEPTED)
                assert text(client) == "Ada"
                client.inbox.clear()
            else:
                response = await client.ask("tools/call", {"name": tool, "arguments": {}})
                assert f"tasks.requests.{path}" in str(response)
        assert client.inbox == []


@requirement("tasks.status-notification-not-relied-on", "tasks.status-notification-keep-polling")
@everywhere
@pytest.mark.one_process  # a notification reaches one process, and others poll
async def test_a_notification_of_the_end_saves_a_poll(transport: str) -> None:
    async with requestor(transport, Asking().server, capabilities=ABLE) as client:
        identifier = await client.begin("tools/call", {"name": "asks", "arguments": {}})
        question = await client.called(ELICIT)
        await client.answer(question, {"task": task("working", pollInterval=60_000)})
        await client.notify("notifications/tasks/status", task("completed"))
        await client.answer(await client.called("tasks/result"), ACCEPTED)
        response = await client.response(identifier)
        assert response["result"]["content"][0]["text"] == "Ada"


@requirement("tasks.input-required-call-result")
async def test_the_result_of_a_task_that_requires_input_is_waited_for() -> None:
    async with requestor("memory", Asking().server, capabilities=ABLE) as client:
        created = {"task": task("input_required", pollInterval=60_000)}
        requests = await call(client, "asks", created, ACCEPTED, task("completed"), ACCEPTED)
        polls = ["tasks/result", "tasks/get", "tasks/result"]
        assert [each["method"] for each in requests] == [ELICIT, *polls]
        assert text(client) == "Ada"
        client.inbox.clear()
        error = {"error": {"code": 1234, "message": "can't"}}
        await call(client, "waits", {"task": task("input_required")}, error, task("failed"))
        assert text(client) == "failed"


@requirement("tasks.cancel-gated", "tasks.cancel-not-by-notification", "tasks.cancel-no-retention")
async def test_a_server_cancels_the_task_of_a_client_by_a_request() -> None:
    person, work = Person(), Asking()
    async with live(work.server, REVISION, handlers=person, tasks=FAST) as (client, record):
        assert (await client.call_tool("cancels")).data == "cancelled"
        with anyio.fail_after(5):
            await person.stopped.wait()
        assert len(record.received_as("tasks/cancel")) == 1
        assert record.received_as("notifications/cancelled") == []
    without = {**ABLE, "tasks": {"requests": REQUESTS}}
    async with requestor("memory", work.server, capabilities=without) as client:
        await call(client, "cancels", {"task": task("working")})
        assert "tasks.cancel" in str(client.inbox[-1])


@requirement("tasks.progress-token-lifetime")
async def test_a_tool_follows_the_task_of_a_client() -> None:
    person, work = Person(), Asking()
    async with live(work.server, REVISION, handlers=person, tasks=FAST) as (client, _):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "follows")
            with anyio.fail_after(5):
                while not work.updates:
                    await anyio.lowlevel.checkpoint()
            person.go.set()
        assert work.updates[0] == TaskUpdate("working")
        assert any(each.progress == 1 and each.total == 2 for each in work.updates)
        assert work.updates[-1] == TaskUpdate("completed")


@requirement("tasks.related-task-everywhere", "tasks.no-related-task-in-requests")
async def test_a_task_within_a_task_names_the_outer_one_to_ask() -> None:
    person, work = Person(), Asking()
    async with live(work.server, REVISION, handlers=person, tasks=FAST) as (client, record):
        handle = await client.call_tool("asks_within_a_task", task=True)
        with anyio.fail_after(5):
            while await handle.refresh() is None or handle.status == "working":
                await anyio.lowlevel.checkpoint()
        assert handle.status == "input_required"
        person.go.set()
        assert (await handle.result()).data == "Ada"
        [question] = record.received_as(ELICIT)
        assert question["_meta"][RELATED] == {"taskId": handle.task_id}
        inner = work.handles[0].task_id
        [created] = [each["result"] for each in record.sent if "task" in each.get("result", {})]
        assert created["_meta"][RELATED] == {"taskId": inner}
        for method in ("tasks/get", "tasks/result"):
            assert all(each == {"taskId": inner} for each in record.received_as(method))


async def test_progress_before_the_answer_with_the_task_is_not_lost() -> None:
    work = Asking()
    async with requestor("memory", work.server, capabilities=ABLE) as client:
        identifier = await client.begin("tools/call", {"name": "follows", "arguments": {}})
        question = await client.called(SAMPLE)
        token = question["params"]["_meta"]["progressToken"]
        await client.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await client.answer(question, {"task": task("completed")})
        await client.response(identifier)
        assert [each.progress for each in work.updates] == [1, None]


async def test_a_task_of_the_client_outlives_the_call_that_asked_for_it() -> None:
    person, work = Person(), Asking()
    async with live(work.server, REVISION, handlers=person, tasks=FAST) as (client, _):
        assert (await client.call_tool("begins")).data == "begun"
        person.go.set()
        assert (await client.call_tool("ends")).data == "completed"


@pytest.mark.parametrize(
    ("answers", "kind", "match"),
    [
        ([ACCEPTED], RemoteProtocolError, "expected a task, got the answer"),
        ([{"error": {"code": -1, "message": "no"}}], RemoteError, "no"),
        (
            [{"task": task("failed")}, {"error": {"code": 1234, "message": "can't"}}],
            RemoteError,
            "can't",
        ),
        ([{"task": task("completed")}, {"action": "dance"}], RemoteProtocolError, "result"),
        ([{"task": task("working", ttl=1)}], RequestTimeoutError, ELICIT),
    ],
)
async def test_failures_of_a_task_of_a_client_are_errors(
    answers: list[Any], kind: type[Exception], match: str
) -> None:
    async def asks(ctx: Context) -> str:
        with pytest.raises(kind, match=match):
            await (await ctx.elicit("Who?", Name, task=True)).result()
        return "failed"

    async with requestor("memory", server_with(asks), capabilities=ABLE) as client:
        await call(client, "asks", *answers)
        assert text(client) == "failed"
