"""Tools whose calls are answered by a task: of 2025-11-25, and io.modelcontextprotocol/tasks.

The call of such a tool runs in the background and survives its request. Questions of `Context` to
the client become input requests of the task, and the function waits for the answers: unlike in a
request, it is not run again. The record of a task is in a `TaskStore`; the function runs in the
process that began the task. Where processes share a store, any of them serves any task. A task
whose process is gone fails, or runs again if its tool was registered with `restart="again"`.

The same tools serve both designs. In 2025-11-25 the client asks for a task by `params.task`, and
each tool says in `execution.taskSupport` whether it may. In the extension the server decides, for
clients that declare it.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import anyio
import msgspec

from ..._wire import to_builtins
from ...errors import (
    InternalError,
    McpError,
    MethodNotFoundError,
    MissingCapabilityError,
    TransportError,
)
from ...foreign_text import safe_repr
from ...protocol.lifecycle import CAPABILITY, settings_of
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import NETWORK, PRINCIPAL, RequestContext
from ...runtime.served_task import has_ended, result_of, ttl_of, unknown_task
from ...runtime.task_scope import TaskScope, running_loop
from ...runtime.task_store import MemoryTaskStore, Shares, TaskRecord, TaskStore
from ..features.task_tool_server import TaskToolServer
from ..serving import ProcessLimit
from .context import Context
from .task_calls import (
    LOST,
    POLL_SECONDS,
    RUNS,
    ClaimedCall,
    TaskCall,
    TaskElsewhere,
    TaskNews,
    fail_record,
    principal_of,
    recorded_call,
)

IDENTIFIER = "io.modelcontextprotocol/tasks"
CALL = "tools/call"
GET, CANCEL = "tasks/get", "tasks/cancel"
UPDATE = "tasks/update"  # of the extension alone
RESULT, LIST = "tasks/result", "tasks/list"  # of 2025-11-25 alone
CHANGED, STATUS_CHANGED = "notifications/tasks", "notifications/tasks/status"

RUNNING = 1000
"""Most tasks of a server that run at a time; see `Shares` for one client."""

PAGE_SIZE = 50
"""Most tasks of a page of `tasks/list`."""

_RENEW_SECONDS = 1.0  # between two renewals of a lease
_FIND_SECONDS = 1.0  # between two searches for tasks whose process is gone
_LOST_TASKS = 100  # of one search
_WORKER_BYTES = 6

_logger = logging.getLogger(__name__)

_CAPABILITIES: Mapping[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}


class Tasks:
    """Runs calls of tools as tasks, for clients that ask for them or declare the extension.

        server = Server("reports")
        tasks = Tasks(server)

        @server.tool(runner=tasks)
        async def report(year: int, ctx: Context) -> str: ...

    Only the principal that made the call can get, update or cancel the task. Without
    authentication, everybody who knows the id can, and no client can list tasks.

    Args:
        server: The server, which then declares tasks, and the extension, in revisions that have
            them.
        store: Stores the records; if `None`, the store in the state that processes share by
            `Server.asgi(shared=...)`, else a `MemoryTaskStore`.
        ttl: Seconds from its creation for which a task can be got, unless the client asks for
            less. A task that still works then is stopped. `None` for no limit.
        poll_interval: Seconds between polls that clients are asked to keep.
        limit: Most tasks that run at a time, half of them for one client; more are refused.

    Attributes:
        store: Stores the records.

    Raises:
        ValueError: A number is not positive, or the server has tasks already.
    """

    def __init__(
        self,
        server: TaskToolServer,
        *,
        store: TaskStore | None = None,
        ttl: float | None = 3600.0,
        poll_interval: float = 1.0,
        limit: int = RUNNING,
    ) -> None:
        for name, value in (("ttl", ttl), ("poll_interval", poll_interval), ("limit", limit)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}: expected more than 0, got {value}")
        self.store: TaskStore = MemoryTaskStore() if store is None else store
        self._ttl_ms = None if ttl is None else max(1, round(ttl * 1000))
        self._poll_interval_ms = max(1, round(poll_interval * 1000))
        self._limit = limit
        self._slots = Shares(limit)
        self._is_own = store is None
        self._worker = secrets.token_hex(_WORKER_BYTES)
        self._is_renewing = False
        self._connections = WeakKeyDictionary[PendingRequests, str]()
        self._calls: dict[Context, TaskCall] = {}
        self._running: dict[str, TaskCall] = {}
        self._watched: dict[str, list[TaskNews]] = {}
        self._shared_worker: Any = None  # a SharedWorker, where processes share state
        self._loop: object = None
        self._scope: TaskScope | None = None
        self._serve = server.serve_request
        self._announce = server.handle_requests(
            {
                GET: self._get,
                UPDATE: self._update,
                CANCEL: self._cancel,
                RESULT: self._result,
                LIST: self._list,
            },
            self._admit,
            _process_limits(self.store),
            _CAPABILITIES,
            TaskMode(self, "forbidden"),
            self._share,
        )

    @property
    def required(self) -> TaskMode:
        """Runs calls as tasks, and refuses others (-32601; of the extension, -32021)."""
        return TaskMode(self, "required")

    def runner(
        self,
        support: Literal["optional", "required"] = "optional",
        *,
        restart: Literal["fail", "again"] = "fail",
    ) -> TaskMode:
        """Runs calls like `Tasks` itself, or like `required`, with a choice for lost tasks.

            @server.tool(runner=tasks.runner(restart="again"))
            async def report(year: int) -> str: ...

        Args:
            support: Whether calls may be tasks, or have to be.
            restart: If processes share a store, what happens to a task whose process has ended:
                it fails, or another process runs the function again from its start, with the same
                arguments. The first run may have done any part of the work, so repeated work has
                to be harmless. After `RUNS` runs the task fails.
        """
        return TaskMode(self, support, restarts=restart == "again")

    @property
    def on_begin(self) -> TaskMode:
        """Runs calls in their requests until the function awaits `begin`.

        A client of 2025-11-25 that asks for a task has one from the start.
        """
        return TaskMode(self, "optional", at_once=False)

    @property
    def tool_members(self) -> Mapping[str, Any]:
        """See `ToolRunner.tool_members`."""
        return TaskMode(self, "optional").tool_members

    def run(self, context: Context, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """See `ToolRunner.run`: as a task, or in the request if the client wants no task."""
        return TaskMode(self, "optional").run(context, call)

    async def begin(self, context: Context) -> bool:
        """Make a task of a call that `on_begin` runs, after the answers to its earlier questions.

        Returns:
            Whether the call is a task; otherwise the client does not declare the extension.

        Raises:
            InternalError: There are too many tasks.
        """
        call = self._calls.get(context)
        if call is None:
            return False
        if call.record is None:
            await call.begin()
        return True

    async def report(self, context: Context, message: str) -> None:
        """Set the description of a task's state, which clients may show; no-op without a task."""
        call = self._calls.get(context)
        if call is not None and call.record is not None:
            await call.change(message=message)

    async def respond(
        self,
        context: Context,
        coroutine: Coroutine[Any, Any, Any],
        *,
        related: str | None,
        at_once: bool,
        restarts: bool,
    ) -> Any:
        """The response to a call: `CreateTaskResult`, or the result of a call that began no task.

        Args:
            context: The call.
            coroutine: Returns the result of the tool.
            related: The member of `_meta` that names the task of a message, in 2025-11-25.
            at_once: Whether the call is a task from its start, or from `begin`.
            restarts: Whether another process may run the call again.

        Raises:
            BaseException: The call raised it before it became a task.
        """
        call = TaskCall(self, context, related, restarts=restarts)
        request = call.request
        claimed = request.claimed if isinstance(request, ClaimedCall) else None
        try:
            scope = await self._background()
            if at_once or claimed is not None:
                await call.begin(claimed)
        except BaseException:
            coroutine.close()
            raise
        created = call.record
        self._calls[context] = call
        scope.start_soon(call.run, coroutine)
        if created is None:
            try:
                await call.settled.wait()
            finally:
                if call.record is None:
                    call.scope.cancel()
            created = call.record
        if created is not None and related is not None:
            return {"task": created.core_wire(), "_meta": call.meta()}
        if created is not None:
            return {"resultType": "task", **created.seed()}
        if call.error is not None:
            raise call.error
        return call.result

    def new_record(self, call: TaskCall) -> TaskRecord:
        """The record of a new task.

        Raises:
            InternalError: There are too many tasks, altogether or of this client.
        """
        request = call.request
        client = self._client(request)
        if not self._slots.has(client):
            raise InternalError(
                f"expected at most {self._limit} running tasks, and no more of one client than "
                "are free for others"
            )
        now = time.time()
        return TaskRecord(
            task_id=secrets.token_urlsafe(24),
            owner=_owner(),
            worker=self._worker,
            client=client,
            created=now,
            updated=now,
            ttl_ms=ttl_of(request, self._ttl_ms),
            poll_interval_ms=self._poll_interval_ms,
            call=recorded_call(request) if call.restarts else None,
        )

    async def store_start(self, call: TaskCall, record: TaskRecord) -> None:
        """Store the first record of a task, or the next record of a claimed task."""
        self._running[record.task_id] = call
        self._slots.take(record.client)
        try:
            if record.fence == 1:
                await self.store.create(record)
            elif not await self.store.change(record):
                raise InternalError(LOST)
        except BaseException:
            self._leave(call, record)
            raise
        if self._scope is not None and not self._is_renewing:
            self._is_renewing = True
            self._scope.start_soon(self._renew)

    def announce_change(self, call: TaskCall, record: TaskRecord) -> None:
        """Notify the interested clients of a change, without waiting.

        Those are the subscribers of the task, or in 2025-11-25 the session that it began in.
        """
        if call.related is None:
            self._announce(CHANGED, record.wire(), record.task_id)
        elif self._scope is not None:
            self._scope.start_soon(call.request.peer.notify, STATUS_CHANGED, record.core_wire())
        if self._scope is not None and self._shared_worker is not None:
            self._scope.start_soon(self.tell, record.task_id)

    async def tell(self, task_id: str) -> None:
        """Notify the other processes of a changed record, if they can be reached."""
        self._wake(task_id)
        if self._shared_worker is not None:
            try:
                await self._shared_worker.publish_task(task_id)
            except TransportError as error:
                _logger.debug("other processes see later that a task has changed: %s", error)

    @contextmanager
    def watch(self, task_id: str) -> Generator[TaskNews]:
        """Receive the changes of a task by other processes while the block runs."""
        news = TaskNews()
        watchers = self._watched.setdefault(task_id, [])
        watchers.append(news)
        try:
            yield news
        finally:
            watchers.remove(news)
            if not watchers:
                del self._watched[task_id]

    def _wake(self, task_id: str) -> None:
        for news in self._watched.get(task_id, ()):
            news.set()

    def _on_task_changed(self, task_id: str) -> None:
        """Read a record that another process has changed."""
        self._wake(task_id)
        call = self._running.get(task_id)
        if call is not None and self._scope is not None:
            self._scope.start_soon(self._renew_lease, call)

    async def _load_wire(self, task_id: str) -> Mapping[str, Any] | None:
        """The wire object of a task that another process has changed."""
        record = await self.store.load(task_id)
        return None if record is None else record.wire()

    async def claim(self, record: TaskRecord, request: RequestContext | None = None) -> bool:
        """Run a task again, or fail it, if its process is gone; `False` if it is not.

        A task that may be run again waits for a process that has room for it.

        Args:
            record: The record of the task.
            request: A request about the task that is being served, if any.
        """
        if record.call is not None and not self._slots.has(record.client):
            return False
        claimed = await self.store.claim(record.task_id, self._worker)
        if claimed is None:
            return False
        if not await self._run_again(claimed, request):
            lost = fail_record(claimed, LOST)
            if await self.store.change(lost):
                self._announce(CHANGED, lost.wire(), lost.task_id)
        await self.tell(record.task_id)
        return True

    async def _run_again(self, claimed: TaskRecord, request: RequestContext | None) -> bool:
        """Run a claimed task, if that is allowed; its messages go to the client that made it."""
        call = claimed.call
        if call is None or claimed.fence > RUNS:
            return False
        before = PRINCIPAL.set(principal_of(call))
        try:
            if self._shared_worker is not None:
                revision, peer = await self._shared_worker.client_of(
                    call.session, call.revision, call.capabilities, call.info
                )
            else:
                assert request is not None  # only shared workers claim without a request
                revision, peer = request.revision, request.peer
            row = revision.client_requests[CALL]
            await self._serve(ClaimedCall(claimed, call, row, revision, peer))
        except TransportError:
            raise  # it is claimed again once this lease has run out
        except McpError as error:
            _logger.warning("a task can't be run again: %s", error)
            return False
        finally:
            PRINCIPAL.reset(before)
        return True

    async def _find_lost(self) -> None:
        """Wait, then claim tasks whose processes are gone; called repeatedly."""
        await anyio.sleep(_FIND_SECONDS)
        page = await self.store.page(None, None, _LOST_TASKS)
        for record in page.records:
            if record.task_id not in self._running:
                await self.claim(record)

    def forget(self, call: TaskCall) -> None:
        """Forget a call that has ended."""
        self._calls.pop(call.context, None)
        if call.record is not None:
            self._leave(call, call.record)

    def _admit(self, name: str, task_ids: Sequence[str]) -> Sequence[str]:
        """The tasks that run in this process and belong to the principal, of some task ids."""
        if name != CHANGED:
            return ()
        owner = _owner()
        calls = ((task_id, self._running.get(task_id)) for task_id in task_ids)
        return [
            task_id
            for task_id, call in calls
            if call is not None and call.record is not None and call.record.owner == owner
        ]

    def _leave(self, call: TaskCall, record: TaskRecord) -> None:
        self._slots.take(record.client, -1)
        if self._running.get(record.task_id) is call:  # and no later run
            del self._running[record.task_id]

    def _client(self, request: RequestContext) -> str:
        """An identifier of the client of a request; see `TaskRecord`."""
        if owner := _owner():
            return owner
        if (network := NETWORK.get()) is not None:
            return f"network {network}"
        identifier = self._connections.get(request.peer)
        if identifier is None:
            identifier = self._connections[request.peer] = f"connection {secrets.token_hex(8)}"
        return identifier

    async def _background(self) -> TaskScope:
        """The scope that runs tasks until the event loop ends."""
        loop = running_loop()
        if self._scope is None or self._loop is not loop:
            self._loop, self._scope = loop, TaskScope(nullcontext, lambda: None)
        await self._scope.start()
        return self._scope

    def _share(self, worker: Any) -> None:
        """Use the shared store of a worker, unless the user chose a store."""
        if self._is_own and worker.state.tasks is not None:
            self.store = worker.state.tasks
        self._shared_worker = worker
        worker.on_task_changed = self._on_task_changed
        worker.load_subject = self._load_wire
        worker.find_lost = self._find_lost

    async def _renew(self) -> None:
        """Renew the leases of the tasks that run in this process, while there are any."""
        try:
            while self._running:
                await anyio.sleep(POLL_SECONDS)
                for call in list(self._running.values()):
                    if call.has_questions or call.needs_renewal(_RENEW_SECONDS):
                        await self._renew_lease(call)
        finally:
            self._is_renewing = False

    async def _renew_lease(self, call: TaskCall) -> None:
        try:
            await call.renew()
        except Exception as error:
            _logger.debug("the lease of a task is not renewed: %r", error)

    async def _get(self, request: RequestContext) -> Mapping[str, Any]:
        place = await self._place(request)
        record = place.record
        return record.core_wire() if _is_core(request) else record.wire()

    async def _update(self, request: RequestContext) -> None:
        place = await self._place(request)
        responses = to_builtins(request.params.input_responses)
        if place.call is not None:
            await place.call.answer(responses)
        else:
            await place.elsewhere.answer(responses)

    async def _cancel(self, request: RequestContext) -> Mapping[str, Any] | None:
        place = await self._place(request)
        is_cancelled = await (place.call or place.elsewhere).cancel()
        if not _is_core(request):
            return None
        if not is_cancelled:
            raise has_ended(place.record)
        return place.record.core_wire()

    async def _result(self, request: RequestContext) -> Mapping[str, Any]:
        """Wait until the task has ended, then return or raise the outcome of the call."""
        place = await self._place(request)
        task_id = place.record.task_id
        related: dict[Any, Any] = {request.revision.facts.meta.related_task: {"taskId": task_id}}
        record = None if place.call is None else await place.call.wait(request)
        if record is None or (place.call is not None and place.call.is_lost):
            record = await place.elsewhere.wait(related)
        return result_of(record, related)

    async def _list(self, request: RequestContext) -> Mapping[str, Any]:
        owner = _owner()
        if not owner:
            raise MethodNotFoundError(LIST, f"{LIST}: expected an authenticated client")
        cursor = getattr(request.params, "cursor", None)
        page = await self.store.page(owner, cursor, PAGE_SIZE)
        result: dict[str, Any] = {"tasks": [record.core_wire() for record in page.records]}
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return result

    async def _record(self, request: RequestContext) -> TaskRecord:
        """The record of the task that a request names."""
        if not _is_core(request) and not _declares_extension(request):
            raise MissingCapabilityError((CAPABILITY, IDENTIFIER), request.method.name)
        task_id: str = request.params.task_id
        record = await self.store.load(task_id)
        if record is None or record.owner != _owner():
            raise unknown_task(task_id)
        return record

    async def _place(self, request: RequestContext) -> _Place:
        """The place of the task that a request names; a task whose process is gone is claimed."""
        record = await self._record(request)
        elsewhere = TaskElsewhere(self, record, request)
        if self._run_of(record) is None:
            await elsewhere.check()
        return _Place(self._run_of(elsewhere.record), elsewhere)

    def _run_of(self, record: TaskRecord) -> TaskCall | None:
        """The call of a task in this process; `None` if another process has the task."""
        call = self._running.get(record.task_id)
        is_here = call is not None and call.record is not None and call.record.fence == record.fence
        return call if is_here else None


class _Place(NamedTuple):
    """The place of a task: this process or another one.

    Attributes:
        call: The call of the task, if it runs in this process.
        elsewhere: Access to the task by its stored record.
    """

    call: TaskCall | None
    elsewhere: TaskElsewhere

    @property
    def record(self) -> TaskRecord:
        """The newest version of the record: another process may have stored it."""
        own, stored = None if self.call is None else self.call.record, self.elsewhere.record
        return stored if own is None else max(own, stored, key=lambda each: each.version)


def _process_limits(store: TaskStore) -> Sequence[ProcessLimit]:
    """The limits of tasks where several processes serve together."""
    if not isinstance(store, MemoryTaskStore):
        return ()
    text = "tasks: expected a TaskStore that the processes share, got a MemoryTaskStore"
    return (ProcessLimit(f"{text}; pass Tasks(server, store=...)", is_refused=True),)


class TaskMode:
    """Runs calls of tools as tasks; a `ToolRunner`.

    Args:
        tasks: The tasks.
        support: Whether calls may be tasks, have to be, or must not be.
        at_once: Whether a call is a task from its start, or from `Tasks.begin`; in 2025-11-25
            always from its start.
        restarts: Whether another process may run a call again.
    """

    def __init__(
        self,
        tasks: Tasks,
        support: Literal["optional", "required", "forbidden"],
        *,
        at_once: bool = True,
        restarts: bool = False,
    ) -> None:
        self._tasks = tasks
        self._support = support
        self._at_once = at_once
        self._restarts = restarts

    @property
    def tool_members(self) -> Mapping[str, Any]:
        """See `ToolRunner.tool_members`."""
        return {"execution": {"taskSupport": self._support}}

    def run(self, context: Context, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """See `ToolRunner.run`.

        Raises:
            MethodNotFoundError: In 2025-11-25, the client asks for a task and the tool forbids it,
                or the tool requires it and the client does not.
            MissingCapabilityError: A task is required, and the client does not declare the
                extension.
        """
        request = context.request_context
        if isinstance(request, ClaimedCall):
            if not self._restarts:
                call.close()
                raise InternalError("the tool does not run again")
            related = request.revision.facts.meta.related_task if _is_core(request) else None
            return self._respond(context, call, related, at_once=True)
        if _is_core(request):
            is_task = request.params.task is not None
            if is_task and self._support != "forbidden":
                related = request.revision.facts.meta.related_task
                return self._respond(context, call, related, at_once=True)
            if is_task or self._support == "required":
                call.close()
                verb = "forbids" if is_task else "requires"
                name = safe_repr(request.params.name)
                raise MethodNotFoundError(
                    request.method.name, f"tool {name} {verb} to be called as a task"
                )
            return call
        if self._support == "forbidden":
            return call
        if UPDATE in request.revision.client_requests and _declares_extension(request):
            return self._respond(context, call, None, at_once=self._at_once)
        if self._support == "required":
            call.close()
            raise MissingCapabilityError((CAPABILITY, IDENTIFIER), request.method.name)
        return call

    def _respond(
        self,
        context: Context,
        call: Coroutine[Any, Any, Any],
        related: str | None,
        *,
        at_once: bool,
    ) -> Coroutine[Any, Any, Any]:
        return self._tasks.respond(
            context, call, related=related, at_once=at_once, restarts=self._restarts
        )


def _is_core(request: RequestContext) -> bool:
    """Whether tasks are part of the revision, and not of an extension."""
    return RESULT in request.revision.client_requests


def _declares_extension(request: RequestContext) -> bool:
    return settings_of(request.peer_capabilities, IDENTIFIER) is not None


def _owner() -> str:
    """An identifier of the principal of the current request; empty without authentication."""
    principal = PRINCIPAL.get()
    return "" if principal.is_anonymous else msgspec.json.encode(principal.identity).decode()
