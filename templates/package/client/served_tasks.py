"""Requests of a server that a client serves as tasks, in 2025-11-25: sampling and elicitation.

    async with connect(url, handlers=Person, tasks=True) as client: ...

The server requests a task by `params.task`. The client responds with the task at once; then the
handler runs as for any other request, in the same task of the event loop, so it ends with the
session. Handlers are independent of tasks. Tasks belong to one session: no other peer can use or
list them.

Source: basic/utilities/tasks (2025-11-25).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, TypedDict

import anyio
import msgspec

from ..channel import RequestId
from ..errors import InternalError
from ..facts import Revision
from ..protocol.events import SendResponse
from ..protocol.lifecycle import Description, merge_objects
from ..runtime.concurrency import check_own_failure
from ..runtime.request_context import RequestContext
from ..runtime.served_task import (
    TaskContext,
    changes_at_end,
    has_ended,
    result_of,
    ttl_of,
    unknown_task,
)
from ..runtime.task_handle import CANCEL, GET, RESULT, STATUS_CHANGED
from ..runtime.task_store import MemoryTaskStore, TaskRecord
from .application import ClientApplication, Handlers
from .client_settings import ClientSettings, Identity

LIST = "tasks/list"
AUGMENTED = ("elicitation/create", "sampling/createMessage")
"""The requests that a server may send as tasks."""

RUNNING = 100
"""Most tasks that run at a time."""

PAGE_SIZE = 50
"""Most tasks in a page of `tasks/list`."""


class ClientTasks(msgspec.Struct, frozen=True, kw_only=True):
    """How a client serves requests as tasks.

    Attributes:
        ttl: Seconds after its creation until a task is removed, unless the server requests less. A
            handler that still runs is cancelled. `None` for no limit.
        poll_interval: Seconds between polls, as proposed to the server.
        limit: Most tasks that run at a time; further tasks are refused.

    Raises:
        ValueError: A value is not positive.
    """

    ttl: float | None = 3600.0
    poll_interval: float = 1.0
    limit: int = RUNNING

    def __post_init__(self) -> None:
        for name in ("ttl", "poll_interval", "limit"):
            value: float | None = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}: expected more than 0, got {value}")


class TaskOptions(TypedDict, total=False):
    """Options of `connect` for any target.

    Attributes:
        tasks: Whether the server may send sampling and elicitation requests as tasks; `True` for
            `ClientTasks()`.
    """

    tasks: ClientTasks | bool


class TaskApplication(ClientApplication):
    """Serves the requests of a server with the user's handlers, as tasks if requested."""

    def __init__(
        self, handlers: Handlers | None, identity: Identity, settings: ClientSettings | None = None
    ) -> None:
        super().__init__(handlers, identity, settings)
        tasks: ClientTasks | bool = self.settings.options.get("tasks", False)
        self._serves_tasks = tasks is not False
        self._tasks = ClientTasks() if isinstance(tasks, bool) else tasks
        self._store = MemoryTaskStore()
        self._running: dict[str, _RunningTask] = {}
        self._own = {
            GET: self._get,
            RESULT: self._result,
            CANCEL: self._cancel,
            LIST: self._list,
        }

    def describe(self, revision: Revision) -> Description:
        """See `ClientApplication.describe`; adds the capability `tasks`."""
        is_known = revision.name in self._descriptions
        description = super().describe(revision)
        if is_known or not self._serves_tasks or RESULT not in revision.server_requests:
            return description
        able = [name for name in AUGMENTED if self._handler(revision.server_requests[name])]
        if able:
            requests: dict[str, Any] = {}
            for group, verb in (name.split("/") for name in able):
                requests[group] = {verb: {}}
            tasks = {"tasks": {"list": {}, "cancel": {}, "requests": requests}}
            capabilities = merge_objects(description.capabilities, tasks)
            self._descriptions[revision.name] = Description(description.info, capabilities)
        return self._descriptions[revision.name]

    async def handle(self, context: RequestContext) -> Any:
        """See `ClientApplication.handle`."""
        if not self._serves_tasks:
            return await super().handle(context)
        own = self._own.get(context.method.name)
        if own is not None:
            return await own(context)
        is_task = getattr(context.params, "task", None) is not None
        if not is_task or self._handler(context.method) is None:
            return await super().handle(context)
        await self._serve_as_task(context)
        return None  # the request is answered

    async def _serve_as_task(self, context: RequestContext) -> None:
        """Respond with a task, then call the handler, and store its result or error.

        Raises:
            InternalError: The limit of running tasks is reached.
        """
        task = _RunningTask(context, await self._create_record(context))
        task_id = task.record.task_id
        self._running[task_id] = task
        try:
            peer = context.peer
            created = {"task": task.record.core_wire(), "_meta": task.meta()}
            assert context.request_id is not None
            await peer.send(*peer.connection.send(SendResponse(context.request_id, created)))
            result: Any = None
            failure: BaseException | None = None
            with task.scope:
                try:
                    result = await super().handle(TaskContext(context, task))
                except BaseException as error:
                    await check_own_failure(error)
                    failure = error
            changes = changes_at_end(task.scope, result, failure, context.revision)
            await self._end(task, changes)
        finally:
            del self._running[task_id]
            if not task.is_over:  # cancelled, as when the process of the server was replaced
                with anyio.CancelScope(shield=True):
                    await self._change(task, {"status": "cancelled"})

    async def _create_record(self, context: RequestContext) -> TaskRecord:
        """Create the record of a new task, and store it."""
        if len(self._running) >= self._tasks.limit:
            raise InternalError(f"expected at most {self._tasks.limit} running tasks")
        most = None if self._tasks.ttl is None else max(1, round(self._tasks.ttl * 1000))
        now = time.time()
        record = TaskRecord(
            task_id=secrets.token_urlsafe(24),
            owner="",
            created=now,
            updated=now,
            ttl_ms=ttl_of(context, most),
            poll_interval_ms=max(1, round(self._tasks.poll_interval * 1000)),
        )
        await self._store.create(record)
        return record

    async def _end(self, task: _RunningTask, changes: Mapping[str, Any]) -> None:
        """Store the end of a task and notify the server, unless the task has ended before."""
        try:
            is_new = await self._change(task, changes)
        except InternalError as error:  # no room for the result
            failure = {"code": error.code, "message": error.message}
            changes = {"status": "failed", "error": failure, "message": error.message}
            is_new = await self._change(task, changes)
        if is_new:
            await task.context.peer.notify(STATUS_CHANGED, task.record.core_wire())

    async def _change(self, task: _RunningTask, changes: Mapping[str, Any]) -> bool:
        record = task.record.next_version(**changes)
        if not await self._store.change(record):
            return False
        task.record = record
        task.ended.set()
        return True

    async def _get(self, context: RequestContext) -> Mapping[str, Any]:
        return (await self._record(context)).core_wire()

    async def _result(self, context: RequestContext) -> Mapping[str, Any]:
        """Wait until the task has ended; return the result or raise the error of its handler."""
        record = await self._record(context)
        running = self._running.get(record.task_id)
        if running is not None:
            await running.ended.wait()
            record = running.record
        return result_of(record, _related_task_meta(context.revision, record.task_id))

    async def _cancel(self, context: RequestContext) -> Mapping[str, Any]:
        record = await self._record(context)
        running = self._running.get(record.task_id)
        if running is None or running.is_over:
            raise has_ended(record)
        await self._end(running, {"status": "cancelled"})
        running.scope.cancel()
        return running.record.core_wire()

    async def _list(self, context: RequestContext) -> Mapping[str, Any]:
        page = await self._store.page("", getattr(context.params, "cursor", None), PAGE_SIZE)
        result: dict[str, Any] = {"tasks": [record.core_wire() for record in page.records]}
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return result

    async def _record(self, context: RequestContext) -> TaskRecord:
        """The record of the task that a request names.

        Raises:
            InvalidParamsError: The task is unknown.
        """
        task_id: str = context.params.task_id
        record = await self._store.load(task_id)
        if record is None:
            raise unknown_task(task_id)
        return record


class _RunningTask:
    """A task whose handler runs.

    Args:
        context: The request that the task serves.
        record: Its record.

    Attributes:
        context: As passed.
        record: Its record as stored last.
        scope: Cancels the handler.
        ended: Set when the task has ended.
        related_request_id: None: messages of the handler relate to no open request.
    """

    related_request_id: RequestId | None = None

    def __init__(self, context: RequestContext, record: TaskRecord) -> None:
        self.context = context
        self.record = record
        self.scope = anyio.CancelScope(
            deadline=anyio.current_time() + record.expires - record.created
        )
        self.ended = anyio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the task has ended."""
        return self.ended.is_set()

    def meta(self) -> Mapping[str, Any]:
        """The `_meta` with the id of the task."""
        return _related_task_meta(self.context.revision, self.record.task_id)


def _related_task_meta(revision: Revision, task_id: str) -> dict[str, Any]:
    name = revision.facts.meta.related_task
    return {} if name is None else {name: {"taskId": task_id}}
