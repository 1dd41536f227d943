"""Tasks of 2025-11-25, as a server has them on the wire (basic/utilities/tasks (2025-11-25))."""

from __future__ import annotations

import time
from datetime import datetime
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from kit.asgi_client import asgi
from kit.cached import Clock
from kit.requestor import ACCEPTED, RELATED, REVISION, Work, requestor, requirement
from kit.simulation import simulate
from kit.wire import encode_message
from mcpgen_runtime import (
    REVISIONS,
    Context,
    MemoryTaskStore,
    MiddlewareRequest,
    Principal,
    RemoteError,
    RequestTimeoutError,
    Server,
    TaskRecord,
    Tasks,
    TransportError,
    decoder,
    limit_rate,
)
from mcpgen_runtime.testing import connected

everywhere = pytest.mark.parametrize("transport", ["memory", "http"])
ABOUT = ("tasks/get", "tasks/result", "tasks/cancel")


def decode_result(method: str, data: bytes) -> Any:
    """The result of a method as the revision types it."""
    return decoder(REVISIONS[REVISION].client_requests[method].result)(data)


@requirement("tasks.declare-capability", "tasks.undeclared-process-normally", "tasks.list-gated")
@everywhere
async def test_a_server_without_tasks_ignores_the_wish_for_one(transport: str) -> None:
    server = Server("plain")
    server.tool("plain")(lambda: "plain")
    async with requestor(transport, server) as client:
        assert "tasks" not in client.capabilities
        params = {"name": "plain", "arguments": {}, "task": {}}
        assert (await client.result("tools/call", params))["content"][0]["text"] == "plain"
        for method in (*ABOUT, "tasks/list"):
            assert await client.code(method, {"taskId": "x"}) == -32601


@pytest.mark.parametrize("older", ["2024-11-05", "2025-06-18"])
@requirement("tasks.experimental")
async def test_earlier_revisions_have_no_tasks(older: str) -> None:
    work = Work()
    work.go.set()
    async with requestor("memory", work.server, "ada", older) as client:
        assert "tasks" not in client.capabilities
        params = {"name": "waits", "arguments": {}, "task": {}}
        assert (await client.result("tools/call", params))["content"][0]["text"] == "done"
        tools = (await client.result("tools/list", {}))["tools"]
        assert not any("execution" in tool for tool in tools)


@everywhere
@requirement("tasks.tool-forbidden-server", "tasks.tool-optional", "tasks.tool-required-server")
@requirement("tasks.declared-may-require")
async def test_each_tool_says_whether_it_may_be_a_task(transport: str) -> None:
    work = Work()
    work.go.set()
    async with requestor(transport, work.server) as client:
        tools = {each["name"]: each for each in (await client.result("tools/list", {}))["tools"]}
        support = {name: tool.get("execution") for name, tool in tools.items()}
        assert support["waits"] == {"taskSupport": "optional"}
        assert support["needs_a_task"] == {"taskSupport": "required"}
        assert support["plain"] is None
        call = {"name": "waits", "arguments": {}}
        assert (await client.result("tools/call", call))["content"][0]["text"] == "done"
        await client.start("waits")
        await client.start("needs_a_task")
        assert await client.code("tools/call", {"name": "needs_a_task"}) == -32601
        assert await client.code("tools/call", {"name": "plain", "task": {}}) == -32601


@everywhere
@requirement("tasks.create-result-shape", "tasks.task-shape", "tasks.status-values")
@requirement("tasks.get-request", "tasks.id-string", "tasks.id-by-receiver", "tasks.begin-working")
@requirement("tasks.created-at", "tasks.last-updated-at", "tasks.poll-interval-optional")
@requirement("tasks.accepted-returns-create-result", "tasks.create-result-soon")
@requirement("tasks.result-has-related-task", "tasks.no-related-task-in-results")
@requirement("tasks.get-no-sse")
async def test_a_task_is_created_at_once_and_has_its_result(transport: str) -> None:
    work = Work(ttl=60)
    async with requestor(transport, work.server) as client:
        call = {"name": "waits", "arguments": {}, "task": {"taskId": "mine"}}
        created = await client.result("tools/call", call)
        task = created["task"]
        assert created.keys() == {"task", "_meta"}
        assert created["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        assert task["taskId"] != "mine"
        decode_result("tasks/get", encode_message(task))
        assert {key: task[key] for key in ("status", "ttl", "pollInterval")} == {
            "status": "working",
            "ttl": 60_000,
            "pollInterval": 200,
        }
        got = await client.result("tasks/get", {"taskId": task["taskId"]})
        assert got == task
        work.go.set()
        done = await client.reaches(task["taskId"], "completed")
        assert done["createdAt"] == task["createdAt"]
        times = [datetime.fromisoformat(done[name]) for name in ("createdAt", "lastUpdatedAt")]
        assert times == sorted(times)
        assert all(each.tzinfo is not None for each in times)
        result = await client.result("tasks/result", {"taskId": task["taskId"]})
        assert result["content"] == [{"type": "text", "text": "done"}]
        assert result["_meta"][RELATED] == {"taskId": task["taskId"]}


@pytest.mark.parametrize(
    ("own", "asked", "actual"),
    [(60, {}, 60_000), (60, {"ttl": 1000}, 1000), (1, {"ttl": 60_000}, 1000), (None, {}, None)],
)
@requirement("tasks.request-ttl", "tasks.ttl-override", "tasks.ttl-actual", "tasks.limit-ttl")
@requirement("tasks.task-id-param-wins")
async def test_a_client_may_ask_for_less_time_to_live(
    own: float | None, asked: dict[str, Any], actual: int | None
) -> None:
    async with requestor("memory", Work(ttl=own).server) as client:
        task = await client.start("waits", asked)
        other = await client.start("waits", asked)
        assert task["ttl"] == actual
        about = {"taskId": task["taskId"], "_meta": {RELATED: {"taskId": other["taskId"]}}}
        assert await client.result("tasks/get", about) == task
        assert (await client.result("tasks/cancel", about))["taskId"] == task["taskId"]
        assert (await client.result("tasks/get", {"taskId": other["taskId"]})) == other


@requirement("tasks.id-unique", "tasks.secure-ids")
async def test_ids_of_tasks_are_unique_and_nobody_can_guess_them() -> None:
    server = Server("many")
    tasks = Tasks(server, limit=10_000)
    server.tool("quick", runner=tasks)(lambda: "")
    async with requestor("memory", server) as client:
        ids = {(await client.start("quick"))["taskId"] for _ in range(200)}
    assert len(ids) == 200
    assert all(len(each) >= 22 for each in ids)  # of 64 characters: more than 128 bits
    for name in ("ttl", "poll_interval", "limit"):
        options: dict[str, Any] = {name: 0}
        with pytest.raises(ValueError, match=f"{name}: expected more than 0, got 0"):
            Tasks(server, **options)


@everywhere
@requirement("tasks.result-blocks", "tasks.result-terminal", "tasks.get-sse-disconnect")
async def test_the_result_is_waited_for_by_any_number_of_requests(transport: str) -> None:
    work = Work()
    async with requestor(transport, work.server) as client:
        task_id = (await client.start("waits"))["taskId"]
        waiting = [await client.begin("tasks/result", {"taskId": task_id}) for _ in range(2)]
        given_up = await client.begin("tasks/result", {"taskId": task_id})
        assert (await client.reaches(task_id, "working"))["status"] == "working"
        assert not any("result" in message for message in client.inbox)
        await client.notify("notifications/cancelled", {"requestId": given_up})
        work.go.set()
        for identifier in waiting:
            response = await client.response(identifier)
            assert response["result"]["content"][0]["text"] == "done"


@everywhere
@requirement("tasks.failed-on-error", "tasks.result-exact", "tasks.failed-status-message")
async def test_failures_of_the_call_are_those_of_the_task(transport: str) -> None:
    async with requestor(transport, Work().server) as client:
        task_id = (await client.start("fails"))["taskId"]
        assert (await client.reaches(task_id, "failed"))["statusMessage"] == "can't be done"
        error = (await client.ask("tasks/result", {"taskId": task_id}))["error"]
        assert error == {"code": 1234, "message": "can't be done", "data": {"why": 1}}
        task_id = (await client.start("reports_an_error"))["taskId"]
        assert (await client.reaches(task_id, "failed"))["statusMessage"] == "out of order"
        result = await client.result("tasks/result", {"taskId": task_id})
        assert (result["isError"], result["content"][0]["text"]) == (True, "out of order")


@everywhere
@requirement("tasks.input-required-when-needed", "tasks.input-request-related-task")
@requirement("tasks.input-required-left", "tasks.transitions-from-input-required")
@requirement("tasks.related-task-nested")
async def test_a_question_waits_for_a_request_of_the_result(transport: str) -> None:
    async with requestor(transport, Work().server) as client:
        task_id = (await client.start("asks"))["taskId"]
        await client.reaches(task_id, "input_required")
        waiting = await client.begin("tasks/result", {"taskId": task_id})
        for _ in range(2):
            question = await client.called("elicitation/create")
            assert question["params"]["_meta"][RELATED] == {"taskId": task_id}
            await client.answer(question, ACCEPTED)
        response = await client.response(waiting)
        assert response["result"]["content"][0]["text"] == "Ada and Ada"
        await client.until(lambda each: each.get("params", {}).get("status") == "completed")
        statuses = [
            each["params"]["status"]
            for each in client.inbox
            if each.get("method") == "notifications/tasks/status"
        ]
        assert statuses.count("input_required") == 2
        assert statuses.count("working") == 2


async def test_a_question_that_the_client_refuses_fails_in_the_tool() -> None:
    async with requestor("memory", Work().server) as client:
        task_id = (await client.start("asks"))["taskId"]
        waiting = await client.begin("tasks/result", {"taskId": task_id})
        question = await client.called("elicitation/create")
        error = {"code": -1, "message": "not now"}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert (await client.response(waiting))["result"]["isError"] is True
        await client.reaches(task_id, "failed")


async def test_a_task_works_on_when_nobody_answers_its_question() -> None:
    work = Work()

    @work.server.tool(runner=work.tasks)
    async def wonder(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("Who?", str, timeout=0.01))
        except RequestTimeoutError as error:
            return str(error)

    async with requestor("memory", work.server) as client:
        task_id = (await client.start("wonder"))["taskId"]
        result = await client.result("tasks/result", {"taskId": task_id})
        await client.until(lambda each: each.get("params", {}).get("status") == "completed")
        statuses = [
            each["params"]["status"] for each in client.inbox if "tasks/status" in str(each)
        ]
    assert result["content"][0]["text"] == "elicitation/create: no answer within 0.01 s"
    assert statuses == ["input_required", "working"]


@everywhere
async def test_a_question_is_asked_again_by_the_next_request(transport: str) -> None:
    async with requestor(transport, Work().server) as client:
        task_id = (await client.start("asks"))["taskId"]
        lost = await client.begin("tasks/result", {"taskId": task_id})
        first = await client.called("elicitation/create")
        waiting = await client.begin("tasks/result", {"taskId": task_id})
        again = await client.called("elicitation/create")
        assert again["id"] != first["id"]
        withdrawn = await client.called("notifications/cancelled")
        assert withdrawn["params"]["requestId"] == first["id"]
        await client.notify("notifications/cancelled", {"requestId": lost})
        await client.answer(again, ACCEPTED)
        await client.answer(await client.called("elicitation/create"), ACCEPTED)
        assert "result" in await client.response(waiting)


@everywhere
@requirement("tasks.progress-stops", "tasks.status-notification")
@requirement("tasks.status-notification-no-related-task")
@requirement("progress.task-token-lifetime")
async def test_messages_of_a_task_name_it_and_have_its_token(transport: str) -> None:
    work = Work()
    async with requestor(transport, work.server) as client:
        task_id = (await client.start("tells", progressToken="mine"))["taskId"]
        work.go.set()
        await client.result("tasks/result", {"taskId": task_id})
        progress = await client.called("notifications/progress")
        assert progress["params"] == {
            "progressToken": "mine",
            "progress": 1,
            "total": 2,
            "message": "half",
            "_meta": {RELATED: {"taskId": task_id}},
        }
        log = await client.called("notifications/message")
        assert log["params"]["_meta"] == {RELATED: {"taskId": task_id}}
        while True:
            changed = (await client.called("notifications/tasks/status"))["params"]
            assert "_meta" not in changed
            if changed["status"] == "completed":
                break
            assert (changed["status"], changed["statusMessage"]) == ("working", "nearly")
        assert changed == await client.result("tasks/get", {"taskId": task_id})
        assert not any(each.get("method") == "notifications/progress" for each in client.inbox)


@everywhere
@requirement("tasks.cancel-terminal-rejected", "tasks.cancel-stops")
@requirement("tasks.cancel-transitions-first", "tasks.cancel-may-delete", "tasks.terminal-is-final")
@requirement("tasks.transitions-from-working", "cancellation.tasks-use-own-method")
@requirement("tasks.cancel-stays")
@pytest.mark.parametrize("tool", ["waits", "stays"])
async def test_a_cancelled_task_is_stopped_and_stays_cancelled(transport: str, tool: str) -> None:
    work = Work()
    async with requestor(transport, work.server) as client:
        params = {"name": tool, "arguments": {}, "task": {}}
        call = await client.begin("tools/call", params)
        task_id = (await client.response(call))["result"]["task"]["taskId"]
        await client.notify("notifications/cancelled", {"requestId": call})
        assert (await client.result("tasks/get", {"taskId": task_id}))["status"] == "working"
        waiting = await client.begin("tasks/result", {"taskId": task_id})
        assert not work.ended.is_set()
        cancelled = await client.result("tasks/cancel", {"taskId": task_id})
        assert (cancelled["taskId"], cancelled["status"]) == (task_id, "cancelled")
        assert "_meta" not in cancelled
        if tool == "stays":
            work.go.set()
        await work.ended.wait()
        assert (await client.response(waiting))["error"]["code"] == -32602
        assert await client.code("tasks/result", {"taskId": task_id}) == -32602
        assert await client.code("tasks/cancel", {"taskId": task_id}) == -32602
        assert (await client.reaches(task_id, "cancelled"))["status"] == "cancelled"


@everywhere
@requirement("tasks.error-informative", "tasks.error-internal", "tasks.error-unknown-id")
async def test_an_unknown_task_or_a_broken_store_is_an_error(transport: str) -> None:
    class Broken(MemoryTaskStore):
        async def load(self, task_id: str, before: Any = None) -> TaskRecord | None:
            raise OSError("disk on fire")

    for store, code, text in (
        (MemoryTaskStore(), -32602, "task that has not expired, got 'x'"),
        (Broken(), -32603, ""),
    ):
        async with requestor(transport, Work(store=store).server) as client:
            for method in ABOUT:
                error = (await client.ask(method, {"taskId": "x"}))["error"]
                assert error["code"] == code
                assert text in error["message"]
                assert "fire" not in error["message"]


@requirement("tasks.ttl-expiry-delete", "tasks.cleanup")
async def test_time_to_live_ends_the_work_and_what_waits_for_it() -> None:
    store = MemoryTaskStore()
    work = Work(store=store, ttl=0.05)
    async with requestor("memory", work.server) as client:
        task_id = (await client.start("waits"))["taskId"]
        response = await client.ask("tasks/result", {"taskId": task_id})
        assert response["error"]["code"] == -32603
        assert "time to live" in response["error"]["message"]
        assert work.ended.is_set()
        assert len(store) == 0
        for method in ABOUT:
            assert await client.code(method, {"taskId": task_id}) == -32602


async def test_a_result_is_kept_for_its_time_to_live_and_is_gone_then() -> None:
    clock = Clock()
    clock.now = time.time()  # which dates the creation of tasks
    work = Work(store=MemoryTaskStore(clock=clock), ttl=60)
    work.go.set()
    async with requestor("memory", work.server) as client:
        about = {"taskId": (await client.start("waits"))["taskId"]}
        for later in (0, 59):
            clock.now += later
            kept = await client.result("tasks/result", about)
            assert kept["content"][0]["text"] == "done"
        clock.now += 2
        assert await client.code("tasks/result", about) == -32602


@everywhere
@requirement("tasks.bind-context", "tasks.reject-foreign", "tasks.list-own-only")
@requirement("tasks.list-complete", "tasks.list-result-shape", "tasks.server-capability-shape")
@requirement("tasks.no-list-without-identity")
async def test_a_task_of_another_principal_is_like_an_unknown_one(transport: str) -> None:
    work = Work()
    declared: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    async with requestor(transport, work.server) as nobody:
        assert nobody.capabilities["tasks"] == declared
        assert await nobody.code("tasks/list", {}) == -32601
    async with (
        requestor(transport, work.server, "ada") as ada,
        requestor(transport, work.server, "bob") as bob,
    ):
        assert ada.capabilities["tasks"] == {**declared, "list": {}}
        own = await ada.start("waits")
        decode_result("tasks/list", encode_message(await ada.result("tasks/list", {})))
        assert await ada.result("tasks/list", {}) == {"tasks": [own]}
        assert await bob.result("tasks/list", {}) == {"tasks": []}
        for method in ABOUT:
            response = await bob.ask(method, {"taskId": own["taskId"]})
            unknown = await bob.ask(method, {"taskId": "x"})
            assert response["error"]["code"] == unknown["error"]["code"] == -32602
        assert (await ada.result("tasks/get", {"taskId": own["taskId"]}))["status"] == "working"


@requirement("tasks.list-pagination", "tasks.list-next-cursor", "tasks.error-cursor")
async def test_a_long_list_of_tasks_has_pages() -> None:
    server = Server("many")
    server.tool("quick", runner=Tasks(server))(lambda: "")
    async with requestor("memory", server, "ada") as client:
        ids = [(await client.start("quick"))["taskId"] for _ in range(120)]
        listed: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await client.result("tasks/list", cursor)
            assert len(page["tasks"]) == min(50, 120 - len(listed))
            listed += [each["taskId"] for each in page["tasks"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert listed == ids
        for garbage in ("garbage", "-1", "9" * 5000):
            assert await client.code("tasks/list", {"cursor": garbage}) == -32602


@requirement("tasks.limit-concurrent")
async def test_more_tasks_than_the_limit_are_refused() -> None:
    work = Work(limit=2)
    async with requestor("memory", work.server) as client:
        await client.start("waits")
        params = {"name": "waits", "arguments": {}, "task": {}}
        response = await client.ask("tools/call", params)
        assert "at most 2 running tasks" in response["error"]["message"]
        work.go.set()
        await work.ended.wait()
        work.go = anyio.Event()
        await client.start("waits")
        assert "at most 2" in str(await client.ask("tools/call", params))


def repeating(store: MemoryTaskStore, **options: Any) -> Work:
    """A server whose tool `repeats` runs again if its process is gone."""
    work = Work(store=store, **options)

    @work.server.tool(runner=work.tasks.runner(restart="again"))
    async def repeats() -> str:
        await work.go.wait()
        return "done"

    return work


@pytest.mark.parametrize(
    ("tool", "earlier", "status"),
    [("repeats", 3, "completed"), ("repeats", 4, "failed"), ("waits", 1, "failed")],
)
async def test_a_task_runs_four_times_at_most(tool: str, earlier: int, status: str) -> None:
    clock = Clock()
    store = MemoryTaskStore(clock=clock)
    gone, other = repeating(store), repeating(store)
    other.go.set()
    async with requestor("memory", gone.server) as client:
        task_id = (await client.start(tool))["taskId"]
    for _ in range(earlier - 1):
        clock.now += 4
        assert await store.claim(task_id, "another") is not None
    clock.now += 4
    async with requestor("memory", other.server) as client:
        await client.reaches(task_id, status)


async def test_a_task_that_may_run_again_keeps_its_call_and_its_principal() -> None:
    store = MemoryTaskStore()
    params: dict[str, Any] = {"name": "repeats", "arguments": {}, "_meta": {"a/b": 1}, "task": {}}
    who = Principal("ada", scopes=["b", "a"], claims=MappingProxyType({"c": [1]}), token="t")
    who_is = {"subject": "ada", "scopes": ["a", "b"], "claims": {"c": [1]}, "unrestricted": False}
    odd = Principal("ada", claims={"a": object()})
    async with connected(repeating(store).server, revision=REVISION, principal=who) as pair:
        created: Any = await pair.client.request("tools/call", params)
        record = await store.load(created.task.task_id)
    assert record is not None
    assert record.call is not None
    assert record.call.params == {name: params[name] for name in ("name", "arguments", "_meta")}
    unset = dict.fromkeys(("issuer", "client_id", "expires"))
    assert record.call.principal == {**who_is, **unset}
    async with connected(repeating(store).server, revision=REVISION, principal=odd) as pair:
        with pytest.raises(RemoteError, match="restart='again': expected claims that have a JSON"):
            await pair.client.request("tools/call", params)


async def test_messages_of_a_task_come_on_the_stream_of_the_request_for_its_result() -> None:
    work = Work()
    async with asgi(work.server) as http:
        await http.initialize(REVISION)
        call = {"name": "tells", "arguments": {}, "task": {}, "_meta": {"progressToken": 1}}
        task = (await http.ask(REVISION, "tools/call", call)).result["task"]
        about = {"taskId": task["taskId"]}
        async with http.asking(REVISION, "tasks/result", about, begun=False) as stream:
            await anyio.wait_all_tasks_blocked()
            work.go.set()
            told = [message.get("method") for message in await stream.messages()]
    assert told[:2] == ["notifications/progress", "notifications/message"]
    assert told[-1] is None


async def test_a_lost_task_that_another_process_claims_first_is_left_to_it() -> None:
    class Overtaken(MemoryTaskStore):
        async def claim(self, task_id: str, worker: str) -> None:
            return None

    clock = Clock()
    store = Overtaken(clock=clock)
    async with requestor("memory", repeating(store).server) as client:
        about = {"taskId": (await client.start("repeats"))["taskId"]}
    clock.now += 4
    async with requestor("memory", repeating(store).server) as client:
        assert (await client.result("tasks/get", about))["status"] == "working"


async def test_the_end_of_a_task_waits_for_a_store_that_can_not_be_reached() -> None:
    failures = [1, 2]

    class Unreachable(MemoryTaskStore):
        async def change(self, record: TaskRecord) -> bool:
            if failures:
                raise TransportError(f"not now, {failures.pop()}")
            return await super().change(record)

    work = Work(store=Unreachable())
    work.go.set()
    async with requestor("memory", work.server) as client:
        about = {"taskId": (await client.start("waits"))["taskId"]}
        begun = anyio.current_time()
        assert (await client.result("tasks/result", about))["content"][0]["text"] == "done"
        assert anyio.current_time() - begun > 0.3  # twice a look of 0.2 s


def test_the_lease_of_a_running_task_is_renewed_each_second() -> None:
    renewed, loaded = list[float](), list[str]()

    class Noting(MemoryTaskStore):
        async def renew(self, record: TaskRecord) -> int | None:
            renewed.append(anyio.current_time())
            return await super().renew(record)

        async def load(self, task_id: str, before: Any = None) -> TaskRecord | None:
            loaded.append(task_id)
            return await super().load(task_id, before)

    async def main() -> None:
        work = Work(store=store)
        async with requestor("memory", work.server) as client:
            task_id = (await client.start("waits"))["taskId"]
            await anyio.sleep(20)
            count = len(renewed)
            assert renewed[0] == 1
            assert 15 <= count <= 20  # it is looked at five times a second
            assert loaded == []  # since nobody has changed it
            record = await store.load(task_id)
            assert record is not None
            await store.change(record.next_version(status="cancelled"))  # by another process
            await anyio.sleep(5)  # no task is left, so none is renewed
            assert work.ended.is_set()
            assert len(renewed) - count <= 1
            await client.start("waits")
            await anyio.sleep(5)
            assert len(renewed) - count > 3  # as those of the first

    store = Noting()
    simulate("asyncio", 0, main)


async def test_a_task_that_ends_before_its_cancellation_has_ended() -> None:
    class Overtaken(MemoryTaskStore):
        async def change(self, record: TaskRecord) -> bool:
            stored = await self.load(record.task_id)
            if record.status == "cancelled" and stored is not None:
                error = {"code": -32603, "message": "out of order"}
                await super().change(stored.next_version(status="failed", error=error))
            return await super().change(record)

    work = Work(store=Overtaken())
    async with requestor("memory", work.server) as client:
        task_id = (await client.start("waits"))["taskId"]
        assert await client.code("tasks/cancel", {"taskId": task_id}) == -32602
        assert (await client.reaches(task_id, "failed"))["status"] == "failed"


@requirement("tasks.rate-limit")
async def test_middleware_limits_the_rate_of_requests_about_tasks() -> None:
    work = Work()

    def polls(request: MiddlewareRequest) -> str | None:
        return request.session_id if request.method in ABOUT else request.method

    work.server.middleware(limit_rate(2, seconds=3600, per=polls))
    async with requestor("memory", work.server) as client:
        about = {"taskId": (await client.start("waits"))["taskId"]}
        for _ in range(2):
            await client.result("tasks/get", about)
        assert await client.code("tasks/get", about) == 429
        await client.start("waits")
