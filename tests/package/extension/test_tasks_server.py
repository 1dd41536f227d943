"""Calls of tools that a server answers by a task (ext-tasks/specification/draft/tasks)."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from kit.asgi_client import asgi
from kit.live import text_of
from kit.wire import LISTEN, RawEnd, request
from package.extension.task_work import (
    CORE,
    DECLARED,
    PACKAGE,
    REVISIONS,
    SPOKEN,
    TASKS,
    Work,
    create_task,
    got,
    person,
    refusal,
    requirement,
)


@requirement("tasks-ext.durable-before-result", "tasks-ext.task-shape")
@requirement("tasks-ext.create-result-flat", "tasks-ext.get-working", "tasks-ext.get-request")
@requirement("tasks-ext.get-result-type", "tasks-ext.identifier")
@requirement("tasks-ext.no-legacy-capabilities", "tasks-ext.result-type-task")
@requirement("tasks-ext.result-type-task-only", "tasks-ext.server-declares-discover")
@requirement("tasks-ext.status-values", "tasks-ext.completed-payload")
async def test_a_task_can_be_got_from_its_creation_to_its_end(pkg: Any) -> None:
    work = Work(pkg, ttl=60, poll_interval=0.2)
    async with work.client(pkg) as client:
        assert client.server_capabilities["extensions"] == {TASKS: {}}
        assert "tasks" not in client.server_capabilities
        raw = await client.request_raw("tools/call", {"name": "waits", "arguments": {}})
        seed = msgspec.json.decode(raw)
        assert {key: seed[key] for key in ("resultType", "status", "ttlMs", "pollIntervalMs")} == {
            "resultType": "task",
            "status": "working",
            "ttlMs": 60_000,
            "pollIntervalMs": 200,
        }
        assert not {"task", "result", "error", "inputRequests", "requestState"} & seed.keys()
        working = await client.request("tasks/get", {"taskId": seed["taskId"]})
        assert (working.status, working.created_at) == ("working", seed["createdAt"])
        work.go.set()
        completed = await got(client, seed["taskId"], "completed")
        assert completed.result["content"] == [{"type": "text", "text": "done"}]


@requirement("tasks-ext.failed-has-error", "tasks-ext.failed-payload")
@requirement("tasks-ext.failed-status-message", "tasks-ext.get-failed")
@requirement("tasks-ext.is-error-completed", "tasks-ext.failed-only-jsonrpc")
async def test_a_json_rpc_error_fails_the_task_and_an_error_of_the_tool_completes_it(
    pkg: Any,
) -> None:
    async with Work(pkg).client(pkg) as client:
        with pytest.raises(pkg.root.RemoteError) as failed:
            await client.call_tool("fails")
        error = failed.value
        assert (error.code, error.message, error.data) == (1234, "can't be done", {"why": 1})
        task = await got(client, await create_task(client, "fails"), "failed")
        assert task.status_message == "can't be done"
        result = await client.call_tool("reports_an_error")
        assert (result.is_error, text_of(result)) == (True, "out of order")


@requirement("tasks-ext.no-task-to-undeclared", "tasks-ext.task-needed-error")
@requirement("tasks-ext.fallback-or-reject", "tasks-ext.error-undeclared-methods")
async def test_without_the_declaration_a_call_is_served_or_refused(pkg: Any) -> None:
    work = Work(pkg)
    work.go.set()
    required = {"requiredCapabilities": DECLARED}
    async with work.client(pkg, capabilities={}) as client:
        assert text_of(await client.call_tool("waits")) == "done"
        for method, params in (
            ("tools/call", {"name": "needs_a_task", "arguments": {}}),
            ("tasks/get", {"taskId": "x"}),
            ("tasks/update", {"taskId": "x", "inputResponses": {}}),
            ("tasks/cancel", {"taskId": "x"}),
        ):
            refused = await refusal(client, method, params)
            assert (refused.code, refused.data) == (-32021, required)


@requirement("tasks-ext.not-under-2025-11-25")
@pytest.mark.parametrize("other", REVISIONS[:-1])
async def test_in_revisions_without_the_extension_calls_make_no_task(pkg: Any, other: str) -> None:
    work = Work(pkg)
    work.go.set()
    async with work.client(pkg, revision=other) as client:
        assert text_of(await client.call_tool("waits")) == "done"
        assert "extensions" not in client.server_capabilities


@pytest.mark.requirement("tasks-ext.legacy-tasks-still-served", revisions=(CORE, *SPOKEN))
@pytest.mark.requirement("tasks.create-request", revisions=(CORE, *SPOKEN))
async def test_one_tool_serves_tasks_of_the_revision_and_the_extension(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg, revision=CORE) as older, work.client(pkg) as newer:
        tasks = [await client.call_tool("waits", task=True) for client in (older, newer)]
        given_up = await older.call_tool("waits", task=True)
        assert (await older.request("tasks/get", {"taskId": given_up.task_id})).status == "working"
        await given_up.cancel()
        work.go.set()
        assert [text_of(await task.result()) for task in tasks] == ["done", "done"]
        assert (await given_up.refresh()).status == "cancelled"


@requirement("tasks-ext.server-decides")
async def test_a_tool_decides_in_each_call_whether_there_is_a_task(pkg: Any) -> None:
    async with Work(pkg).client(pkg) as client:
        for begins in (True, False):
            call = {"name": "may_begin", "arguments": {"begins": begins}}
            result = await client.request("tools/call", call)
            assert result.result_type == ("task" if begins else "complete")
            result = await client.call_tool("may_begin", {"begins": begins})
            assert text_of(result) == f"a task: {begins}"


@requirement("tasks-ext.mrtr-keys-separate")
async def test_keys_before_a_task_are_not_those_of_the_task(pkg: Any) -> None:
    handlers = person(pkg)
    async with Work(pkg).client(pkg, handlers=handlers) as client:
        assert text_of(await client.call_tool("repeats_a_key_later")) == "name 1 and name 2"
        assert handlers.asked == 2


@requirement("tasks-ext.get-input-required", "tasks-ext.input-required-payload")
@requirement("tasks-ext.update-partial", "tasks-ext.update-ack-empty")
@requirement("tasks-ext.update-ignore-stale-keys")
async def test_answers_may_come_singly_and_unknown_keys_are_ignored(pkg: Any) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        task_id = await create_task(client, "asks_two")
        asking = await got(client, task_id, "input_required")
        while len(asking.input_requests) < 2:
            asking = await got(client, task_id, "input_required")
        first, second = asking.input_requests

        async def update(responses: dict[str, Any]) -> dict[str, Any]:
            params = {"taskId": task_id, "inputResponses": responses}
            ack: dict[str, Any] = msgspec.json.decode(
                await client.request_raw("tasks/update", params)
            )
            return ack

        for key, name in ((first, "a"), ("unknown", "b"), (first, "c")):
            response = {"action": "accept", "content": {"name": name}}
            ack = await update({key: response, "zzz": {"no": "answer"}})
            assert ack.keys() <= {"resultType", "_meta"}
            assert [*(await got(client, task_id, "input_required")).input_requests] == [second]
        await update({second: {"action": "accept", "content": {"name": "d"}}})
        completed = await got(client, task_id, "completed")
        assert completed.result["content"][0]["text"] == "a and d"


@requirement("tasks-ext.update-ack-empty")
async def test_processes_with_one_store_serve_each_other_s_tasks(pkg: Any) -> None:
    store = pkg.root.MemoryTaskStore()
    near, far = (Work(pkg, store=store) for _ in range(2))
    async with (
        near.client(pkg, handlers=person(pkg)) as client,
        far.client(pkg, handlers=person(pkg)) as elsewhere,
    ):
        task_id = await create_task(client, "asks")
        for name in ("Ada", "Bob"):
            (key,) = (await got(elsewhere, task_id, "input_required")).input_requests
            with pytest.raises(pkg.root.RemoteError):
                params = {"taskId": task_id, "inputResponses": {key: {"action": "dance"}}}
                await elsewhere.request("tasks/update", params)
            answer = {"action": "accept", "content": {"name": name}}
            params = {"taskId": task_id, "inputResponses": {key: answer, "zzz": {"no": "answer"}}}
            await elsewhere.request("tasks/update", params)
            with anyio.fail_after(5):
                while key in ((await store.load(task_id)).input_requests or {}):
                    await anyio.lowlevel.checkpoint()
        completed = await got(elsewhere, task_id, "completed")
        assert completed.result["content"][0]["text"] == "Ada and Bob"
        task_id = await create_task(client, "waits")
        await elsewhere.request("tasks/cancel", {"taskId": task_id})
        assert (await store.load(task_id)).status == "cancelled"
        with anyio.fail_after(5):
            await near.ended.wait()


@requirement("tasks-ext.keys-no-reuse")
async def test_a_key_names_one_question_of_a_task(
    pkg: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        assert (await client.call_tool("repeats_a_key")).is_error
    assert "key 'name' is in use" in caplog.text


@requirement("tasks-ext.mrtr-before-task", "tasks-ext.no-progress-or-log")
async def test_a_call_may_ask_in_its_request_and_become_a_task_later(pkg: Any) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        task = await client.call_tool("asks_first", task=True)
        assert task.task_id is not None
        assert text_of(await task.result()) == "Hello, name 1"
    async with Work(pkg).client(pkg, capabilities={}, handlers=person(pkg)) as client:
        assert text_of(await client.call_tool("asks_first")) == "Hello, name 1"


@requirement("tasks-ext.cancel-ack-empty", "tasks-ext.cancel-terminal-not-error")
@requirement("tasks-ext.get-cancelled", "tasks-ext.status-transitions")
async def test_a_cancelled_task_is_stopped_and_says_so(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        task = await client.call_tool("waits", task=True)
        ack = msgspec.json.decode(
            await client.request_raw("tasks/cancel", {"taskId": task.task_id})
        )
        assert ack.keys() <= {"resultType", "_meta"}
        with pytest.raises(pkg.root.RequestCancelledError, match="the task was cancelled"):
            await task.result()
        await work.ended.wait()
        assert task.status == "cancelled"
        await task.cancel()  # a terminal task: acknowledged
        assert (await task.refresh()).status == "cancelled"


@requirement("tasks-ext.error-unknown-get", "tasks-ext.update-unknown-task")
@requirement("tasks-ext.cancel-unknown-task")
async def test_a_task_that_is_unknown_or_has_expired_is_an_error(pkg: Any) -> None:
    now = [0.0]
    store = pkg.root.MemoryTaskStore(clock=lambda: now[0])
    work = Work(pkg, store=store, ttl=60)
    async with work.client(pkg) as client:
        task_id = await create_task(client, "waits")
        now[0] = 1e12
        for name in (task_id, "never"):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                params: dict[str, Any] = {"taskId": name}
                if method == "tasks/update":
                    params["inputResponses"] = {}
                assert (await refusal(client, method, params)).code == -32602


@requirement("tasks-ext.ttl-server-fails", "tasks-ext.ids-unguessable")
async def test_a_task_that_outlives_its_time_is_stopped(pkg: Any) -> None:
    store = pkg.root.MemoryTaskStore(clock=lambda: 0.0)  # which keeps the record
    work = Work(pkg, store=store, ttl=0.01)
    async with work.client(pkg) as client:
        task_id = await create_task(client, "waits")
        assert len(task_id) >= 22  # of 64 characters: more than 128 bits
        task = await got(client, task_id, "failed")
        assert task.error.code == -32603
        assert work.ended.is_set()


@requirement("tasks-ext.auth-each-request")
async def test_a_task_belongs_to_the_principal_that_made_the_call(pkg: Any) -> None:
    work = Work(pkg)
    principal = pkg.principal.PRINCIPAL
    principal.set(pkg.root.Principal("ada"))
    async with work.client(pkg) as client:
        task_id = await create_task(client, "waits")
        assert (await client.request("tasks/get", {"taskId": task_id})).status == "working"
    principal.set(pkg.root.Principal("bob"))
    async with work.client(pkg) as client:
        for method in ("tasks/get", "tasks/cancel"):
            assert (await refusal(client, method, {"taskId": task_id})).code == -32602
    async with watching(work.server) as watcher:
        wanted = {"notifications": {"taskIds": [task_id]}}
        await watcher.send(request(SPOKEN[0], LISTEN, wanted, capabilities=DECLARED))
        assert (await watcher.receive())["params"]["notifications"] == {}


async def test_more_tasks_than_the_limit_are_refused(pkg: Any) -> None:
    work = Work(pkg, limit=1)
    async with work.client(pkg) as client:
        await create_task(client, "waits")
        with pytest.raises(pkg.root.RemoteError, match="at most 1 running task"):
            await client.call_tool("waits")


@requirement("tasks-ext.error-internal")
async def test_a_store_that_fails_is_an_internal_error(pkg: Any) -> None:
    class Broken:
        async def load(self, task_id: str) -> Any:
            raise OSError("disk on fire")

        create = change = page = load

    async with Work(pkg, store=Broken()).client(pkg) as client:
        for method, params in (
            ("tools/call", {"name": "waits", "arguments": {}}),
            ("tasks/get", {"taskId": "t"}),
        ):
            failed = await refusal(client, method, params)
            assert failed.code == -32603
            assert "fire" not in failed.message


@asynccontextmanager
async def watching(server: Any) -> AsyncIterator[RawEnd]:
    """A client on the wire, of a server that runs in memory."""
    memory = importlib.import_module(f"{PACKAGE}.transports.memory")
    near, far = memory.memory_pair()
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, far)
        yield RawEnd(near, SPOKEN[0])
        await near.close()


async def call_raw(
    end: RawEnd, method: str, params: dict[str, Any], capabilities: Any = DECLARED
) -> Any:
    """The response to a request."""
    return await end.ask(method, params, capabilities=capabilities)


@requirement("tasks-ext.ack-task-ids", "tasks-ext.notify", "tasks-ext.notify-full-task")
@requirement("tasks-ext.listen-undeclared-error", "tasks-ext.auth-each-request")
async def test_a_subscription_gets_each_state_of_its_tasks(pkg: Any) -> None:
    work = Work(pkg)
    async with watching(work.server) as watcher:
        called = await call_raw(watcher, "tools/call", {"name": "waits", "arguments": {}})
        task_id = called["result"]["taskId"]
        wanted = {"notifications": {"taskIds": [task_id, "unknown"], "toolsListChanged": True}}
        await watcher.send(request(SPOKEN[0], LISTEN, wanted, id="s", capabilities=DECLARED))
        accepted = (await watcher.receive())["params"]["notifications"]
        assert accepted == {"taskIds": [task_id], "toolsListChanged": True}
        work.go.set()
        changed = await watcher.receive()
        assert changed["method"] == "notifications/tasks"
        task = (await call_raw(watcher, "tasks/get", {"taskId": task_id}))["result"]
        assert task["status"] == "completed"
        assert {**changed["params"], "_meta": 0} == {
            **{key: value for key, value in task.items() if key != "resultType"},
            "_meta": 0,
        }
        refused = (await call_raw(watcher, LISTEN, wanted, {}))["error"]
        assert (refused["code"], refused["data"]) == (-32021, {"requiredCapabilities": DECLARED})


@requirement("tasks-ext.legacy-declaration-not-enough", "tasks-ext.no-list")
@requirement("tasks-ext.result-method-removed", "tasks-ext.task-param-ignored")
@requirement("tasks-ext.no-settings")
async def test_the_tasks_of_an_earlier_revision_are_not_served(pkg: Any) -> None:
    work = Work(pkg)
    work.go.set()
    declarations: list[tuple[dict[str, Any], str]] = [
        ({}, "complete"),
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, "complete"),
        ({"extensions": {TASKS: {"unknown": 1}}}, "task"),
    ]
    call = {"name": "waits", "arguments": {}, "task": {"ttl": 60_000}}
    async with watching(work.server) as watcher:
        for method in ("tasks/list", "tasks/result"):
            refused = await call_raw(watcher, method, {"taskId": "t"})
            assert refused["error"]["code"] == -32601
        for capabilities, kind in declarations:
            called = await call_raw(watcher, "tools/call", call, capabilities)
            assert called["result"]["resultType"] == kind


@requirement("tasks-ext.off-by-default")
async def test_a_server_without_tasks_declares_no_extension(pkg: Any) -> None:
    async with pkg.root.connect(pkg.root.Server("plain"), capabilities=DECLARED) as client:
        assert "extensions" not in client.server_capabilities
        with pytest.raises(pkg.root.MissingCapabilityError):
            client.task("t")


async def test_tasks_of_a_mounted_server_are_polled_through_the_mount(pkg: Any) -> None:
    work, outer = Work(pkg), pkg.root.Server("outer")
    outer.mount(work.server, prefix="work")
    work.go.set()
    async with pkg.root.connect(outer, capabilities=DECLARED) as client:
        assert text_of(await client.call_tool("work_waits")) == "done"
    with pytest.raises(ValueError, match=r"tasks/.* of server 'outer' exists already"):
        outer.mount(Work(pkg).server, prefix="more")


@pytest.mark.parametrize("is_mounted", [False, True], ids=["its own", "mounted"])
async def test_processes_serve_each_others_tasks_from_a_shared_store(
    pkg: Any, is_mounted: bool
) -> None:
    class Shared:
        """Stands for a store outside of the process; nothing is kept in it here."""

        async def load(self, task_id: str) -> None: ...

        create = change = page = load

    def made(**options: Any) -> Any:
        server = Work(pkg, **options).server
        if not is_mounted:
            return server
        main = pkg.root.Server("main")
        main.mount(server, prefix="reports")
        return main

    with pytest.raises(ValueError, match="expected a TaskStore that the processes share"):
        pkg.root.Server.run_workers(made, 2, http=":0")
    with pytest.raises(TypeError, match="a function of a module"):  # is checked after the store
        pkg.root.Server.run_workers(lambda: made(store=Shared()), 2, http=":0")


MIB = 2**20


class Echo:
    """A server whose tasks end at once, with results of any size."""

    def __init__(self, pkg: Any, **store: Any) -> None:
        self.server = pkg.root.Server("echo")
        self.store = pkg.root.MemoryTaskStore(**store)
        self.tasks = pkg.root.Tasks(self.server, store=self.store)

        @self.server.tool(runner=self.tasks, structured=False)
        async def echo(size: int) -> str:
            return "x" * size

    def client(self, pkg: Any) -> Any:
        return pkg.root.connect(self.server, capabilities=DECLARED)


async def create_echo_task(client: Any, size: int) -> str:
    """The id of the task of a call."""
    params = {"name": "echo", "arguments": {"size": size}}
    task_id: str = (await client.request("tools/call", params)).task_id
    return task_id


async def test_one_client_takes_half_of_what_is_free(pkg: Any) -> None:
    work = Work(pkg, limit=8)
    clients = [work.client(pkg) for _ in range(3)]
    async with clients[0] as one, clients[1] as two, clients[2] as three:
        for client, slots in ((one, 4), (two, 2), (three, 1)):
            for _ in range(slots):
                await create_task(client, "waits")
            with pytest.raises(pkg.root.RemoteError, match="no more of one client than are free"):
                await create_task(client, "waits")
        work.go.set()
        await work.ended.wait()
        for _ in range(4):
            await got(one, await create_task(one, "waits"), "completed")


async def test_records_of_one_client_leave_room_for_those_of_others(pkg: Any) -> None:
    echo = Echo(pkg, limit=8)
    async with echo.client(pkg) as greedy, echo.client(pkg) as other:
        for _ in range(4):
            await create_echo_task(greedy, 1)
        with pytest.raises(pkg.root.RemoteError, match="expected at most 8 tasks"):
            await create_echo_task(greedy, 1)
        await got(other, await create_echo_task(other, 1), "completed")
    assert len(echo.store) == 5


async def test_a_result_beyond_the_bytes_of_a_store_fails_its_task(pkg: Any) -> None:
    echo = Echo(pkg, size=4 * MIB)
    async with echo.client(pkg) as greedy, echo.client(pkg) as other:
        kept = [await create_echo_task(greedy, MIB - 2000) for _ in range(2)]
        for task_id in kept:
            await got(greedy, task_id, "completed")
        failed = await got(greedy, await create_echo_task(greedy, MIB), "failed")
        assert "4194304 bytes" in failed.error.message
        await got(greedy, await create_echo_task(greedy, 10), "completed")
        await got(other, await create_echo_task(other, MIB - 2000), "completed")
        await got(greedy, kept[0], "completed")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_over_http_are_known_by_network_or_principal(pkg: Any) -> None:
    work = Work(pkg, limit=4)
    params = {"name": "waits", "arguments": {}}
    async with asgi(work.server) as http:

        async def call(address: str) -> Any:
            http.scope["client"] = (address, 5)
            reply = await http.ask(SPOKEN[0], "tools/call", params, capabilities=DECLARED)
            return reply.messages[-1]

        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            assert (await call(address))["result"]["resultType"] == "task"
        assert "no more of one client" in (await call("192.0.2.1"))["error"]["message"]
        assert (await call("192.0.2.3"))["result"]["resultType"] == "task"
        work.go.set()
        with anyio.fail_after(10):
            await work.ended.wait()
