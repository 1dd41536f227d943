"""Tasks of 2025-11-25 that a client serves: sampling and elicitation, as a server asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import anyio
import pytest

from kit.live import handlers_with
from kit.requestor import ACCEPTED, RELATED, REVISION, Requestor, asking_server, requirement
from kit.rules import module_of
from kit.wire import encode_message
from mcpgen_runtime import ClientHandlers, ClientTasks, InvalidParamsError, decoder

MODELS = module_of(REVISION)
ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
TEXT = {"type": "text", "text": "Hello"}
NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
PARAMS: Mapping[str, Mapping[str, Any]] = {
    ELICIT: {"message": "Who?", "requestedSchema": NAME},
    SAMPLE: {"messages": [{"role": "user", "content": TEXT}], "maxTokens": 9},
}
MESSAGE = {"role": "assistant", "content": TEXT, "model": "m"}
RESULTS: Mapping[str, Mapping[str, Any]] = {ELICIT: ACCEPTED, SAMPLE: MESSAGE}
ABOUT = ("tasks/get", "tasks/result", "tasks/cancel")


class Person(ClientHandlers):
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.begun = anyio.Event()
        self.stopped = anyio.Event()
        self.answers: dict[str, Any] = dict(RESULTS)
        self.reports: list[float] = []

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return await self._answer(ELICIT, ctx)

    async def create_message(self, params: Any, ctx: Any) -> Any:
        return await self._answer(SAMPLE, ctx)

    async def _answer(self, method: str, ctx: Any) -> Any:
        self.begun.set()
        try:
            await self.go.wait()
        except BaseException:
            self.stopped.set()
            raise
        for report in self.reports:
            await ctx.progress(report, 2, "half")
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def begin(server: Requestor, method: str = ELICIT, task: Any = None, **meta: Any) -> Any:
    """The new task of a request."""
    params = {**PARAMS[method], "task": task or {}}
    created = await server.result(method, {**params, "_meta": meta} if meta else params)
    return created["task"]


@requirement("tasks.client-capability-shape", "tasks.declare-capability", "tasks.experimental")
async def test_a_client_declares_the_requests_that_may_be_tasks() -> None:
    flags: dict[str, Any] = {"list": {}, "cancel": {}}
    both: dict[str, Any] = {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}}
    async with asking_server(Person(), tasks=True) as server:
        assert server.capabilities["tasks"] == {**flags, "requests": both}
    for older in ("2024-11-05", "2025-06-18"):
        async with asking_server(Person(), older, tasks=True) as server:
            assert "tasks" not in server.capabilities
    async with asking_server(handlers_with(elicit=ACCEPTED), tasks=ClientTasks()) as server:
        requests: dict[str, Any] = {"elicitation": {"create": {}}}
        assert server.capabilities["tasks"] == {**flags, "requests": requests}
    async with asking_server(None, tasks=True) as server:
        assert "tasks" not in server.capabilities
        assert await server.code("tasks/get", {"taskId": "x"}) == -32601


@pytest.mark.parametrize("method", [ELICIT, SAMPLE])
@requirement("tasks.create-result-shape", "tasks.task-shape", "tasks.status-values")
@requirement("tasks.get-request", "tasks.id-string", "tasks.id-by-receiver", "tasks.begin-working")
@requirement("tasks.created-at", "tasks.last-updated-at", "tasks.ttl-actual")
@requirement("tasks.poll-interval-optional", "tasks.accepted-returns-create-result")
@requirement("tasks.create-result-soon", "tasks.transitions-from-working", "tasks.result-request")
@requirement("tasks.result-exact", "tasks.result-has-related-task")
@requirement("tasks.no-related-task-in-results", "tasks.status-notification")
@requirement("tasks.status-notification-no-related-task")
async def test_a_client_answers_by_a_task_at_once_and_has_its_result(method: str) -> None:
    person = Person()
    async with asking_server(person, tasks=ClientTasks(ttl=60, poll_interval=2.5)) as server:
        params = {**PARAMS[method], "task": {"taskId": "mine"}}
        created = await server.result(method, params)
        task = created["task"]
        assert created == {"task": task, "_meta": {RELATED: {"taskId": task["taskId"]}}}
        assert task["taskId"] != "mine"
        decoder(MODELS.Task)(encode_message(task))
        expected = {"status": "working", "ttl": 60_000, "pollInterval": 2500}
        assert {key: task[key] for key in expected} == expected
        assert await server.result("tasks/get", {"taskId": task["taskId"]}) == task
        person.go.set()
        told = (await server.called("notifications/tasks/status"))["params"]
        done = await server.result("tasks/get", {"taskId": task["taskId"]})
        assert told == done
        assert (done["status"], done["createdAt"]) == ("completed", task["createdAt"])
        times = [datetime.fromisoformat(done[name]) for name in ("createdAt", "lastUpdatedAt")]
        assert times == sorted(times)
        assert all(each.tzinfo is not None for each in times)
        result = await server.result("tasks/result", {"taskId": task["taskId"]})
        assert result.pop("_meta") == {RELATED: {"taskId": task["taskId"]}}
        assert result == RESULTS[method]


@requirement("tasks.ttl-expiry-delete", "tasks.cleanup")
async def test_the_end_of_its_time_stops_a_task_of_a_client() -> None:
    person = Person()
    async with asking_server(person, tasks=True) as server:
        task = await begin(server, task={"ttl": 50})
        with anyio.fail_after(5):
            await person.stopped.wait()
        await anyio.wait_all_tasks_blocked()
        for about in ABOUT:
            assert await server.code(about, {"taskId": task["taskId"]}) == -32602
        assert await server.result("tasks/list", {}) == {"tasks": []}


@requirement("tasks.result-blocks", "tasks.result-terminal", "tasks.cancel-not-by-notification")
async def test_servers_wait_for_a_result_by_any_number_of_requests() -> None:
    person = Person()
    async with asking_server(person, tasks=True) as server:
        identifier = await server.begin(ELICIT, {**PARAMS[ELICIT], "task": {}})
        task_id = (await server.response(identifier))["result"]["task"]["taskId"]
        await server.notify("notifications/cancelled", {"requestId": identifier})
        waiting = [await server.begin("tasks/result", {"taskId": task_id}) for _ in range(2)]
        given_up = await server.begin("tasks/result", {"taskId": task_id})
        assert (await server.result("tasks/get", {"taskId": task_id}))["status"] == "working"
        assert not any("result" in message for message in server.inbox)
        await server.notify("notifications/cancelled", {"requestId": given_up})
        person.go.set()
        for identifier in waiting:
            assert (await server.response(identifier))["result"]["content"] == {"name": "Ada"}


@requirement("tasks.failed-on-error", "tasks.result-exact", "tasks.result-terminal")
@requirement("tasks.failed-status-message", "tasks.error-internal")
async def test_failures_of_handlers_are_those_of_the_task() -> None:
    person = Person()
    person.go.set()
    failure = InvalidParamsError("can't be done", code=1234, data={"why": 1})
    wrong = {"action": "accept", "content": {"name": 1}}
    async with asking_server(person, tasks=True) as server:
        for answer, code in ((failure, 1234), (wrong, -32603)):
            person.answers[ELICIT] = answer
            plain = (await server.ask(ELICIT, PARAMS[ELICIT]))["error"]
            task_id = (await begin(server))["taskId"]
            failed = await server.reaches(task_id, "failed")
            error = (await server.ask("tasks/result", {"taskId": task_id}))["error"]
            assert error == plain
            assert (error["code"], error["message"]) == (code, failed["statusMessage"])
        person.answers[ELICIT] = ZeroDivisionError("secret")
        task_id = (await begin(server))["taskId"]
        await server.reaches(task_id, "failed")
        error = (await server.ask("tasks/result", {"taskId": task_id}))["error"]
        assert error == {"code": -32603, "message": "the task failed"}


@requirement("tasks.cancel-stops", "tasks.cancel-transitions-first", "tasks.cancel-stays")
@requirement("tasks.terminal-is-final", "tasks.cancel-terminal-rejected")
async def test_a_cancelled_task_of_a_client_stays_cancelled() -> None:
    person = Person()
    async with asking_server(person, tasks=True) as server:
        task_id = (await begin(server))["taskId"]
        await person.begun.wait()
        assert (await server.result("tasks/cancel", {"taskId": task_id}))["status"] == "cancelled"
        with anyio.fail_after(5):
            await person.stopped.wait()
        told = await server.called("notifications/tasks/status")
        assert told["params"]["status"] == "cancelled"
        person.go.set()
        await anyio.wait_all_tasks_blocked()
        assert server.inbox == []  # it is told once
        assert (await server.result("tasks/get", {"taskId": task_id}))["status"] == "cancelled"
        assert await server.code("tasks/result", {"taskId": task_id}) == -32602
        assert await server.code("tasks/cancel", {"taskId": task_id}) == -32602
        done = (await begin(server))["taskId"]
        await server.reaches(done, "completed")
        assert await server.code("tasks/cancel", {"taskId": done}) == -32602
        assert (await server.result("tasks/get", {"taskId": done}))["status"] == "completed"


@requirement("tasks.error-unknown-id", "tasks.error-cursor", "tasks.error-informative")
@requirement("tasks.task-id-param-wins")
async def test_requests_about_unknown_tasks_of_a_client_are_refused() -> None:
    async with asking_server(Person(), tasks=True) as server:
        task_id = (await begin(server))["taskId"]
        for about in ABOUT:
            related = {"_meta": {RELATED: {"taskId": task_id}}}
            error = (await server.ask(about, {"taskId": "unknown", **related}))["error"]
            assert error["code"] == -32602
            assert "'unknown'" in error["message"]
        assert await server.code("tasks/list", {"cursor": "nonsense"}) == -32602
        params = {"taskId": task_id, "_meta": {RELATED: {"taskId": "unknown"}}}
        assert (await server.result("tasks/get", params))["taskId"] == task_id


@requirement("tasks.list-pagination", "tasks.list-next-cursor", "tasks.list-complete")
@requirement("tasks.list-result-shape", "tasks.no-related-task-in-results")
@requirement("tasks.id-unique", "tasks.secure-ids")
async def test_a_long_list_of_tasks_of_a_client_has_pages() -> None:
    person = Person()
    person.go.set()
    async with asking_server(person, tasks=True) as server:
        ids = [(await begin(server))["taskId"] for _ in range(60)]
        assert (len({*ids}), {*map(len, ids)}) == (60, {32})  # of 64 characters: 192 bits
        first = await server.result("tasks/list", {})
        decoder(MODELS.ListTasksResult)(encode_message(first))
        rest = await server.result("tasks/list", {"cursor": first["nextCursor"]})
        assert [each["taskId"] for each in first["tasks"]] == ids[:50]
        assert [each["taskId"] for each in rest["tasks"]] == ids[50:]
        assert rest.keys() == {"tasks"}


@requirement("tasks.progress-token-lifetime", "tasks.related-task-everywhere")
async def test_progress_of_a_task_of_a_client_names_it() -> None:
    person = Person()
    person.reports = [1, 0.5]
    async with asking_server(person, tasks=True) as server:
        task_id = (await begin(server, progressToken="p"))["taskId"]
        silent = (await begin(server))["taskId"]
        person.go.set()
        for each in (task_id, silent):
            await server.reaches(each, "completed")
        reports = [each for each in server.inbox if each["method"] == "notifications/progress"]
        about = {"_meta": {RELATED: {"taskId": task_id}}, "progressToken": "p"}
        assert [each["params"] for each in reports] == [
            {"progress": 1, "total": 2, "message": "half", **about}
        ]


async def test_a_task_of_a_client_refuses_progress_without_json() -> None:
    person = Person()
    person.reports = [float("nan")]
    person.go.set()
    async with asking_server(person, tasks=True) as server:
        task_id = (await begin(server, progressToken="p"))["taskId"]
        await server.reaches(task_id, "failed")
        assert "notifications/progress" not in [each.get("method") for each in server.inbox]


@requirement("tasks.limit-concurrent")
async def test_more_tasks_of_a_client_than_its_limit_are_refused() -> None:
    person = Person()
    async with asking_server(person, tasks=ClientTasks(limit=2)) as server:
        tasks = [await begin(server) for _ in range(2)]
        assert await server.code(ELICIT, {**PARAMS[ELICIT], "task": {}}) == -32603
        await server.result("tasks/cancel", {"taskId": tasks[0]["taskId"]})
        await anyio.wait_all_tasks_blocked()
        await begin(server)


@pytest.mark.parametrize("name", ["ttl", "poll_interval", "limit"])
def test_numbers_of_tasks_of_a_client_are_positive(name: str) -> None:
    values: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"{name}: expected more than 0, got 0"):
        ClientTasks(**values)


async def test_a_task_for_one_server_is_unknown_to_another() -> None:
    person = Person()
    async with asking_server(person, tasks=True) as one, asking_server(person, tasks=True) as other:
        task_id = (await begin(one))["taskId"]
        for about in ABOUT:
            assert await other.code(about, {"taskId": task_id}) == -32602
        assert await other.result("tasks/list", {}) == {"tasks": []}
        assert [each["taskId"] for each in (await one.result("tasks/list", {}))["tasks"]] == [
            task_id
        ]


async def test_handlers_of_tasks_end_with_the_session() -> None:
    person = Person()
    async with asking_server(person, tasks=True) as server:
        await begin(server)
        await person.begun.wait()
    assert person.stopped.is_set()
