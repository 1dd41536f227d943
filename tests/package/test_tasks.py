"""Tasks: calls of tools that a server answers by a task, which the client polls.

The package is made for these tests, with the extension io.modelcontextprotocol/tasks.

Source: ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import msgspec
import pytest

from documents import examples
from mcpgen import build_request, output, pipeline
from mcpgen.build_request import BuildRequest
from mcpgen.parts import Selection

REVISIONS = ("2025-06-18", "2026-07-28")
SPOKEN = REVISIONS[1:]  # tasks are of the newest revision
PACKAGE = "tasks_package"
TASKS = "io.modelcontextprotocol/tasks"
DECLARED: dict[str, Any] = {"extensions": {TASKS: {}}}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def pkg(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The modules of a package with the extension."""
    root = tmp_path_factory.mktemp("packages")
    schema = root / "tasks.ts"
    schema.write_text(examples()["tasks.ts"])
    found = build_request.named_extensions([f"{schema}"])
    sources = build_request.named_sources(REVISIONS)
    chosen = Selection(models=pytestconfig.getoption("--models"))
    request = BuildRequest(PACKAGE, sources, selection=chosen, extensions=found)
    output.write(root / PACKAGE, pipeline.build(request))
    sys.path.insert(0, str(root))
    yield SimpleNamespace(
        root=importlib.import_module(PACKAGE),
        client=importlib.import_module(f"{PACKAGE}.client.tasks"),
        principal=importlib.import_module(f"{PACKAGE}.runtime.principal"),
    )
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@dataclass
class Name:
    name: str


class Work:
    """A server with tools that become tasks, and what its tests steer and see of them."""

    def __init__(self, pkg: Any, **options: Any) -> None:
        self.server = pkg.root.Server("work")
        self.tasks = tasks = pkg.root.Tasks(self.server, **{"poll_interval": 0.001, **options})
        self.go = anyio.Event()
        self.ended = anyio.Event()

        async def waits() -> str:
            """Ends when the test says so."""
            try:
                await self.go.wait()
                return "done"
            finally:
                self.ended.set()

        async def fails() -> str:
            raise pkg.root.InvalidParamsError("can't be done", code=1234, data={"why": 1})

        async def reports_an_error() -> str:
            raise pkg.root.ToolError("out of order")

        async def asks(ctx: Any) -> str:
            first = await ctx.elicit("Who?", Name)
            second = await ctx.elicit("Who?", Name)
            return f"{first.content.name} and {second.content.name}"

        async def asks_two(ctx: Any) -> str:
            first, second = await ctx.ask_all(ctx.elicit("1", Name), ctx.elicit("2", Name))
            return f"{first.content.name} and {second.content.name}"

        async def repeats_a_key(ctx: Any) -> str:
            await ctx.elicit("1", Name, key="name")
            await ctx.elicit("2", Name, key="name")
            return "never"

        async def asks_first(ctx: Any) -> str:
            answer = await ctx.elicit("Who?", Name)
            await tasks.begin(ctx)
            await ctx.progress(1, message="half")
            await ctx.info("half")
            return f"Hello, {answer.content.name}"

        asking: tuple[Any, ...] = (asks, asks_two, repeats_a_key)
        for tool in (*asking, asks_first):
            tool.__annotations__["ctx"] = pkg.root.Context
        for each in (waits, fails, reports_an_error, *asking):
            self.server.tool(runner=tasks)(each)
        self.server.tool("needs_a_task", runner=tasks.required)(waits)
        self.server.tool(runner=tasks.on_begin)(asks_first)
        self.server.tool("plain")(lambda: "plain")

    def client(self, pkg: Any, **options: Any) -> Any:
        """A client that declares the extension."""
        return pkg.root.connect(self.server, **{"capabilities": DECLARED, **options})


def person(pkg: Any) -> Any:
    """Handlers that answer each elicitation by another name, and count them."""

    class Person(pkg.root.ClientHandlers):  # type: ignore[misc]  # made while the test runs
        asked = 0

        async def elicit(self, params: Any, ctx: Any) -> Any:
            self.asked += 1
            return {"action": "accept", "content": {"name": f"name {self.asked}"}}

    return Person()


async def created(client: Any, tool: str) -> str:
    """The id of the task of a call."""
    result = await client.request("tools/call", {"name": tool, "arguments": {}})
    assert result.result_type == "task"
    task_id: str = result.task_id
    return task_id


async def got(client: Any, task_id: str, status: str) -> Any:
    """The task, once it has a status."""
    with anyio.fail_after(10):
        while True:
            task = await client.request("tasks/get", {"taskId": task_id})
            assert task.result_type == "complete"
            if task.status == status:
                return task
            assert task.status in ("working", "input_required")
            await anyio.lowlevel.checkpoint()


def text_of(result: Any) -> str:
    text: str = result.content[0].text
    return text


@pytest.mark.requirement(
    "tasks-ext.transparent-polling",
    "tasks-ext.client-handles-both",
    "tasks-ext.poll-until-terminal",
    "tasks-ext.get-completed",
    revisions=SPOKEN,
)
async def test_a_call_answered_by_a_task_gives_the_result_of_the_tool(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client, anyio.create_task_group() as group:
        group.start_soon(_set_soon, work.go)
        assert text_of(await client.call_tool("waits")) == "done"
        assert text_of(await client.call_tool("plain")) == "plain"


async def _set_soon(event: anyio.Event) -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    event.set()


@pytest.mark.requirement(
    "tasks-ext.durable-before-result",
    "tasks-ext.task-shape",
    "tasks-ext.create-result-flat",
    "tasks-ext.get-working",
    "tasks-ext.get-request",
    "tasks-ext.get-result-type",
    "tasks-ext.identifier",
    "tasks-ext.no-legacy-capabilities",
    "tasks-ext.result-type-task",
    "tasks-ext.result-type-task-only",
    "tasks-ext.server-declares-discover",
    "tasks-ext.status-values",
    "tasks-ext.completed-payload",
    revisions=SPOKEN,
)
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


@pytest.mark.requirement(
    "tasks-ext.failed-has-error",
    "tasks-ext.failed-payload",
    "tasks-ext.failed-status-message",
    "tasks-ext.get-failed",
    revisions=SPOKEN,
)
async def test_a_json_rpc_error_of_the_call_is_that_of_the_failed_task(pkg: Any) -> None:
    async with Work(pkg).client(pkg) as client:
        with pytest.raises(pkg.root.RemoteError) as failed:
            await client.call_tool("fails")
        error = failed.value
        assert (error.code, error.message, error.data) == (1234, "can't be done", {"why": 1})
        task = await got(client, await created(client, "fails"), "failed")
        assert task.status_message == "can't be done"


@pytest.mark.requirement(
    "tasks-ext.is-error-completed", "tasks-ext.failed-only-jsonrpc", revisions=SPOKEN
)
async def test_a_result_that_reports_an_error_completes_the_task(pkg: Any) -> None:
    async with Work(pkg).client(pkg) as client:
        result = await client.call_tool("reports_an_error")
        assert (result.is_error, text_of(result)) == (True, "out of order")


@pytest.mark.requirement(
    "tasks-ext.no-task-to-undeclared",
    "tasks-ext.task-needed-error",
    "tasks-ext.fallback-or-reject",
    "tasks-ext.error-undeclared-methods",
    revisions=SPOKEN,
)
async def test_without_the_declaration_a_call_is_served_in_its_request_or_refused(
    pkg: Any,
) -> None:
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
            with pytest.raises(pkg.root.RemoteError) as refused:
                await client.request(method, params)
            assert (refused.value.code, refused.value.data) == (-32021, required)


@pytest.mark.requirement("tasks-ext.not-under-2025-11-25", revisions=SPOKEN)
async def test_in_a_revision_without_the_extension_calls_are_served_in_their_requests(
    pkg: Any,
) -> None:
    work = Work(pkg)
    work.go.set()
    async with work.client(pkg, revision=REVISIONS[0]) as client:
        assert text_of(await client.call_tool("waits")) == "done"
        assert "extensions" not in client.server_capabilities


@pytest.mark.requirement(
    "tasks-ext.fulfil-inputs",
    "tasks-ext.observe-after-update",
    "tasks-ext.keys-unique",
    "tasks-ext.update-keys-outstanding",
    revisions=SPOKEN,
)
async def test_handlers_of_the_client_answer_what_a_task_asks_each_question_once(
    pkg: Any,
) -> None:
    handlers = person(pkg)
    async with Work(pkg).client(pkg, handlers=handlers) as client:
        assert text_of(await client.call_tool("asks")) == "name 1 and name 2"
        assert handlers.asked == 2


@pytest.mark.requirement(
    "tasks-ext.get-input-required",
    "tasks-ext.input-required-payload",
    "tasks-ext.update-partial",
    "tasks-ext.update-ack-empty",
    "tasks-ext.update-ignore-stale-keys",
    revisions=SPOKEN,
)
async def test_answers_may_come_one_by_one_and_unknown_keys_are_ignored(pkg: Any) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        task_id = await created(client, "asks_two")
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


async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(pkg: Any) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        task_id = await created(client, "asks")
        asking = await got(client, task_id, "input_required")
        (key,) = asking.input_requests
        with pytest.raises(pkg.root.RemoteError) as refused:
            params = {"taskId": task_id, "inputResponses": {key: {"action": "dance"}}}
            await client.request("tasks/update", params)
        assert refused.value.code == -32602
        assert [*(await got(client, task_id, "input_required")).input_requests] == [key]


@pytest.mark.requirement("tasks-ext.keys-no-reuse", revisions=SPOKEN)
async def test_a_key_names_one_question_of_a_task(
    pkg: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        assert (await client.call_tool("repeats_a_key")).is_error
    assert "key 'name' is in use" in caplog.text


@pytest.mark.requirement(
    "tasks-ext.mrtr-before-task", "tasks-ext.no-progress-or-log", revisions=SPOKEN
)
async def test_a_call_may_ask_in_its_request_and_become_a_task_later(pkg: Any) -> None:
    async with Work(pkg).client(pkg, handlers=person(pkg)) as client:
        task = await client.seen_as(pkg.root.TaskClient).start("asks_first")
        assert task.task_id is not None
        assert text_of(await task.result()) == "Hello, name 1"
    async with Work(pkg).client(pkg, capabilities={}, handlers=person(pkg)) as client:
        assert text_of(await client.call_tool("asks_first")) == "Hello, name 1"


@pytest.mark.requirement(
    "tasks-ext.cancel-request",
    "tasks-ext.no-cancelled-notification",
    "tasks-ext.get-cancelled",
    revisions=SPOKEN,
)
async def test_a_call_that_is_given_up_cancels_its_task(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "waits")
                while not len(work.tasks.store):
                    await anyio.lowlevel.checkpoint()
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            await work.ended.wait()


@pytest.mark.requirement(
    "tasks-ext.cancel-ack-empty",
    "tasks-ext.get-cancelled",
    "tasks-ext.status-transitions",
    revisions=SPOKEN,
)
async def test_a_cancelled_task_is_stopped_and_says_so(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        task = await client.seen_as(pkg.root.TaskClient).start("waits")
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


@pytest.mark.requirement("tasks-ext.persist-ids", revisions=SPOKEN)
async def test_a_task_is_resumed_by_its_id(pkg: Any) -> None:
    work = Work(pkg)
    async with work.client(pkg) as client:
        started = await client.seen_as(pkg.root.TaskClient).start("waits")
    work.go.set()
    async with work.client(pkg) as client:
        task = client.seen_as(pkg.root.TaskClient).resume(started.task_id)
        assert (task.status, text_of(await task.result())) == (None, "done")


async def test_a_call_answered_without_a_task_is_a_handle_with_the_result(pkg: Any) -> None:
    async with Work(pkg).client(pkg) as client:
        task = await client.seen_as(pkg.root.TaskClient).start("plain")
        assert (task.task_id, task.status, text_of(await task.result())) == (
            None,
            "completed",
            "plain",
        )


@pytest.mark.requirement(
    "tasks-ext.error-unknown-get",
    "tasks-ext.update-unknown-task",
    "tasks-ext.cancel-unknown-task",
    revisions=SPOKEN,
)
async def test_a_task_that_is_unknown_or_has_expired_is_an_error(pkg: Any) -> None:
    now = [0.0]
    store = pkg.root.MemoryTaskStore(clock=lambda: now[0])
    work = Work(pkg, store=store, ttl=60)
    async with work.client(pkg) as client:
        task_id = await created(client, "waits")
        now[0] = 1e12
        for name in (task_id, "never"):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                params: dict[str, Any] = {"taskId": name}
                if method == "tasks/update":
                    params["inputResponses"] = {}
                with pytest.raises(pkg.root.RemoteError) as refused:
                    await client.request(method, params)
                assert refused.value.code == -32602


@pytest.mark.requirement(
    "tasks-ext.ttl-server-fails", "tasks-ext.ids-unguessable", revisions=SPOKEN
)
async def test_a_task_that_outlives_its_time_is_stopped(pkg: Any) -> None:
    store = pkg.root.MemoryTaskStore(clock=lambda: 0.0)  # which keeps the record
    work = Work(pkg, store=store, ttl=0.01)
    async with work.client(pkg) as client:
        task_id = await created(client, "waits")
        assert len(task_id) >= 22  # of 64 characters: more than 128 bits
        task = await got(client, task_id, "failed")
        assert task.error.code == -32603
        assert work.ended.is_set()


@pytest.mark.requirement("tasks-ext.auth-each-request", revisions=SPOKEN)
async def test_a_task_belongs_to_the_principal_that_made_the_call(pkg: Any) -> None:
    work = Work(pkg)
    memory = importlib.import_module(f"{PACKAGE}.transports.memory")
    near, far = memory.memory_pair()
    principal = pkg.principal.PRINCIPAL
    principal.set(pkg.root.Principal("ada"))
    async with work.client(pkg) as client:
        task_id = await created(client, "waits")
        assert (await client.request("tasks/get", {"taskId": task_id})).status == "working"
    principal.set(pkg.root.Principal("bob"))
    async with work.client(pkg) as client:
        for method in ("tasks/get", "tasks/cancel"):
            with pytest.raises(pkg.root.RemoteError) as refused:
                await client.request(method, {"taskId": task_id})
            assert refused.value.code == -32602
    async with anyio.create_task_group() as group:
        group.start_soon(work.server.serve, far)
        watcher = Watcher(near, DECLARED)
        await watcher.send(1, "subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
        assert (await watcher.receive())["params"]["notifications"] == {}
        await near.close()


async def test_more_tasks_than_the_limit_are_refused(pkg: Any) -> None:
    work = Work(pkg, limit=1)
    async with work.client(pkg) as client:
        await created(client, "waits")
        with pytest.raises(pkg.root.RemoteError, match="at most 1 running task"):
            await client.call_tool("waits")


@pytest.mark.requirement(
    "tasks-ext.create-result-on-unsupported-method", "tasks-ext.supported-methods", revisions=SPOKEN
)
async def test_a_task_is_no_result_of_other_requests_or_for_other_clients(pkg: Any) -> None:
    task = {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": None,
    }
    server = pkg.root.Server("wrong", handlers=[_answering(pkg, task)])
    for capabilities in ({}, DECLARED):
        async with pkg.root.connect(server, capabilities=capabilities) as client:
            with pytest.raises(pkg.root.RemoteProtocolError):
                await client.call_tool("any")
            with pytest.raises(pkg.root.McpError):
                await client.read_resource("any://thing")


def _answering(pkg: Any, task: dict[str, Any]) -> Any:
    """Handlers that answer whatever is called or read by a task, without the extension."""
    core: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.server")

    class Answering(core.ServerHandlers):  # type: ignore[misc]  # made while the test runs
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return msgspec.Raw(msgspec.json.encode(task))

        async def read_resource(self, params: Any, ctx: Any) -> Any:
            return msgspec.Raw(msgspec.json.encode({**task, "contents": []}))

    return Answering()


def test_a_blocking_client_waits_for_the_task_too(pkg: Any) -> None:
    work = Work(pkg)
    with pkg.root.connect_sync(
        work.server, capabilities=DECLARED, handlers=pkg.root.SyncClientHandlers()
    ) as client:
        assert client.call_tool("reports_an_error").is_error


class Watcher:
    """Reads the messages of a server from a raw channel in memory."""

    def __init__(self, near: Any, capabilities: dict[str, Any]) -> None:
        self._near = near
        self._meta = {
            "io.modelcontextprotocol/protocolVersion": REVISIONS[1],
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }

    async def send(self, number: int, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        data = msgspec.json.encode({**message, "params": {**params, "_meta": self._meta}})
        channel = importlib.import_module(f"{PACKAGE}.channel")
        await self._near.send(channel.OutgoingMessage(data, "request", number, method))

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            received = await self._near.receive()
        message: dict[str, Any] = msgspec.json.decode(received)
        return message


@pytest.mark.requirement(
    "tasks-ext.ack-task-ids",
    "tasks-ext.notify-full-task",
    "tasks-ext.listen-undeclared-error",
    "tasks-ext.auth-each-request",
    revisions=SPOKEN,
)
async def test_a_subscription_gets_each_state_of_the_tasks_that_it_names(pkg: Any) -> None:
    work = Work(pkg)
    memory = importlib.import_module(f"{PACKAGE}.transports.memory")
    near, far = memory.memory_pair()
    async with anyio.create_task_group() as group:
        group.start_soon(work.server.serve, far)
        watcher = Watcher(near, DECLARED)
        await watcher.send(1, "tools/call", {"name": "waits", "arguments": {}})
        task_id = (await watcher.receive())["result"]["taskId"]
        wanted = {"notifications": {"taskIds": [task_id, "unknown"], "toolsListChanged": True}}
        await watcher.send(2, "subscriptions/listen", wanted)
        accepted = (await watcher.receive())["params"]["notifications"]
        assert accepted == {"taskIds": [task_id], "toolsListChanged": True}
        work.go.set()
        changed = await watcher.receive()
        assert changed["method"] == "notifications/tasks"
        await watcher.send(3, "tasks/get", {"taskId": task_id})
        task = (await watcher.receive())["result"]
        assert task["status"] == "completed"
        assert {**changed["params"], "_meta": 0} == {
            **{key: value for key, value in task.items() if key != "resultType"},
            "_meta": 0,
        }
        undeclared = Watcher(near, {})
        await undeclared.send(4, "subscriptions/listen", wanted)
        refused = (await watcher.receive())["error"]
        assert (refused["code"], refused["data"]) == (-32021, {"requiredCapabilities": DECLARED})
        await near.close()


@pytest.mark.requirement(
    "tasks-ext.legacy-declaration-not-enough",
    "tasks-ext.no-list",
    "tasks-ext.result-method-removed",
    "tasks-ext.task-param-ignored",
    "tasks-ext.no-settings",
    revisions=SPOKEN,
)
async def test_the_tasks_of_an_earlier_revision_are_not_served(pkg: Any) -> None:
    work = Work(pkg)
    work.go.set()
    memory = importlib.import_module(f"{PACKAGE}.transports.memory")
    near, far = memory.memory_pair()
    declarations: list[tuple[dict[str, Any], str]] = [
        ({}, "complete"),
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, "complete"),
        ({"extensions": {TASKS: {"unknown": 1}}}, "task"),
    ]
    call = {"name": "waits", "arguments": {}, "task": {"ttl": 60_000}}
    async with anyio.create_task_group() as group:
        group.start_soon(work.server.serve, far)
        for number, method in enumerate(("tasks/list", "tasks/result")):
            watcher = Watcher(near, DECLARED)
            await watcher.send(number, method, {"taskId": "t"})
            assert (await watcher.receive())["error"]["code"] == -32601
        for number, (capabilities, kind) in enumerate(declarations, 10):
            watcher = Watcher(near, capabilities)
            await watcher.send(number, "tools/call", call)
            assert (await watcher.receive())["result"]["resultType"] == kind
        await near.close()


@pytest.mark.requirement("tasks-ext.off-by-default", revisions=SPOKEN)
async def test_a_server_without_tasks_declares_no_extension(pkg: Any) -> None:
    async with pkg.root.connect(pkg.root.Server("plain"), capabilities=DECLARED) as client:
        assert "extensions" not in client.server_capabilities
        with pytest.raises(pkg.root.MissingCapabilityError):
            client.seen_as(pkg.root.TaskClient)


@pytest.mark.requirement("tasks-ext.error-internal", revisions=SPOKEN)
async def test_a_store_that_fails_is_an_internal_error(pkg: Any) -> None:
    class Broken:
        async def load(self, task_id: str) -> Any:
            raise OSError("disk on fire")

        async def save(self, record: Any) -> None:
            raise OSError("disk on fire")

    async with Work(pkg, store=Broken()).client(pkg) as client:
        for method, params in (
            ("tools/call", {"name": "waits", "arguments": {}}),
            ("tasks/get", {"taskId": "t"}),
        ):
            with pytest.raises(pkg.root.RemoteError) as failed:
                await client.request(method, params)
            assert failed.value.code == -32603
            assert "fire" not in failed.value.message


@pytest.mark.requirement(
    "tasks-ext.mcp-name-header", "tasks-ext.client-declares-per-request", revisions=SPOKEN
)
async def test_requests_about_a_task_name_it_in_a_header_and_declare_the_extension(
    pkg: Any,
) -> None:
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
        task = await client.seen_as(pkg.root.TaskClient).start("asks")
        assert text_of(await task.result()) == "name 1 and name 2"
        await task.cancel()
    names = {method: name for method, name, _ in sent}
    assert {names[method] for method in ("tasks/get", "tasks/update", "tasks/cancel")} == {
        task.task_id
    }
    assert all(declared["extensions"] == {TASKS: {}} for _, _, declared in sent)


@pytest.mark.requirement(
    "tasks-ext.dedup-keys",
    "tasks-ext.track-answered",
    "tasks-ext.update-eventual",
    revisions=SPOKEN,
)
async def test_a_question_that_is_still_listed_after_its_answer_is_not_asked_again(
    pkg: Any,
) -> None:
    core: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.server")
    extension: Any = importlib.import_module(f"{PACKAGE}.r2026_07_28.tasks.server")
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    task = {"taskId": "t", **times, "ttlMs": None, "pollIntervalMs": 1}
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Who?", "requestedSchema": form},
    }
    updates: list[Any] = []

    class Slow(core.ServerHandlers, extension.ServerHandlers):  # type: ignore[misc]  # as above
        polls = 0

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return msgspec.Raw(
                msgspec.json.encode({"resultType": "task", "status": "input_required", **task})
            )

        async def get_task(self, params: Any, ctx: Any) -> Any:
            self.polls += 1
            if self.polls < 4:
                return {"status": "input_required", "inputRequests": {"k": question}, **task}
            return {"status": "completed", "result": {"content": []}, **task}

        async def update_task(self, params: Any, ctx: Any) -> Any:
            updates.append(params.input_responses)
            return {}

    handlers, server = person(pkg), pkg.root.Server("slow", handlers=[Slow()])
    async with pkg.root.connect(server, capabilities=DECLARED, handlers=handlers) as client:
        assert (await client.call_tool("any")).content == []
    assert (handlers.asked, [*map(list, updates)]) == (1, [["k"]])
