"""Tools whose calls are answered by a task, which the client polls: io.modelcontextprotocol/tasks.

The call of such a tool runs in the background and survives its request. What `Context` asks the
client becomes an input request of the task, and the function waits for the answer: other than in a
request, it is not run again. The record of a task lies in a `TaskStore`; the work itself belongs to
the process that began it, so that `tasks/update` and `tasks/cancel` have to reach this process (the
header `Mcp-Name` is the id of the task).

Source: ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import anyio
import msgspec

from ..._wire import to_builtins
from ...errors import (
    InternalError,
    InvalidParamsError,
    MissingCapabilityError,
    ProtocolError,
    RequestTimeoutError,
)
from ...facts import Method
from ...foreign_text import safe_repr
from ...protocol.lifecycle import CAPABILITY, settings_of
from ...protocol.requests import error_response
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import NETWORK, PRINCIPAL, RequestContext
from ...runtime.task_scope import TaskScope, running_loop
from ..serving import ProcessLimit
from .client_features.input_required import InputRequired
from .client_features.multi_round_trip import MultiRoundTrip, Question, askable, check_params
from .context import Context
from .decorators import Decorators
from .revision_types import mismatch

IDENTIFIER = "io.modelcontextprotocol/tasks"
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
CHANGED = "notifications/tasks"

RUNNING = 1000
"""Most tasks of a server that run at a time; see `Shares` for one client."""

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: frozenset[TaskStatus] = frozenset({"completed", "failed", "cancelled"})
"""Statuses that never change."""

RECORDS = 10_000
"""Most records of a `MemoryTaskStore`; see `Shares` for one client."""

RECORD_BYTES = 128 * 1024 * 1024
"""Most bytes of the records of a `MemoryTaskStore` that have more than `SMALL_RECORD`; likewise."""

SMALL_RECORD = 4096
"""Bytes of a record that only the number of records bounds: its end can always be stored."""

_logger = logging.getLogger(__name__)


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task. `msgspec.json` encodes and decodes it.

    Attributes:
        task_id: Its id, which nobody can guess.
        owner: Identifies the principal that it belongs to; empty without authentication.
        client: Identifies the client whose share of a store it takes: the principal, else the
            network address, else the connection.
        status: Its status.
        created: When it was created, in seconds since the epoch.
        updated: When it changed last, in seconds since the epoch.
        ttl_ms: Milliseconds from its creation after which it may be discarded; `None` for never.
        poll_interval_ms: Milliseconds between polls that clients are asked to keep.
        message: A description of its state.
        input_requests: The open input requests by key, as wire objects.
        result: The result of a completed task, as wire object.
        error: The JSON-RPC error of a failed task.
    """

    task_id: str
    owner: str
    client: str = ""
    status: TaskStatus = "working"
    created: float
    updated: float
    ttl_ms: int | None
    poll_interval_ms: int
    message: str | None = None
    input_requests: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.status in TERMINAL

    def seed(self) -> dict[str, Any]:
        """The task without input requests, result and error, as wire object."""
        wire: dict[str, Any] = {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _timestamp(self.created),
            "lastUpdatedAt": _timestamp(self.updated),
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": self.poll_interval_ms,
        }
        if self.message is not None:
            wire["statusMessage"] = self.message
        return wire

    def wire(self) -> dict[str, Any]:
        """The whole task as wire object."""
        wire = self.seed()
        match self.status:
            case "input_required":
                wire["inputRequests"] = self.input_requests or {}
            case "completed":
                wire["result"] = self.result or {}
            case "failed":
                wire["error"] = self.error or {}
            case _:
                pass
        return wire


class TaskStore(Protocol):
    """Stores the records of tasks, which several processes may share.

    A record that was saved must be found from then on, by each process that serves, until its time
    to live is over. Records contain arguments and results of tools.
    """

    async def load(self, task_id: str) -> TaskRecord | None:
        """The record of a task; `None` if there is none, or it has expired."""
        ...

    async def save(self, record: TaskRecord) -> None:
        """Write a record."""
        ...


class Shares:
    """Divides a bounded amount among clients, so that none leaves nothing to the others.

    A client may take what leaves at least as much free as it then has. So one alone gets a half, a
    second one a half of the rest, and a client that has nothing gets something while any is free.

    Args:
        limit: The amount.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._taken: dict[str, int] = {}

    def has(self, client: str, amount: int = 1) -> bool:
        """Whether a client may take an amount more."""
        return self._taken.get(client, 0) + amount <= self._free

    def take(self, client: str, amount: int = 1) -> None:
        """Take an amount; a negative one is given back."""
        self._free -= amount
        taken = self._taken.get(client, 0) + amount
        if taken:
            self._taken[client] = taken
        else:
            self._taken.pop(client, None)


class _Stored(NamedTuple):
    """A record in memory.

    Attributes:
        data: The record as JSON, which takes less memory than its objects.
        client: See `TaskRecord`.
        expires: When it expires, in seconds since the epoch.
    """

    data: bytes
    client: str
    expires: float

    @property
    def counted(self) -> int:
        """The bytes that count: none of a small record."""
        return len(self.data) if len(self.data) > SMALL_RECORD else 0


class MemoryTaskStore:
    """Stores records until they expire, or the process ends.

    Args:
        limit: Most records. At the limit no task can be created.
        clock: Gives the time in seconds since the epoch.
        size: Most bytes of records that are not small. A result beyond fails its task.
    """

    def __init__(
        self,
        limit: int = RECORDS,
        clock: Callable[[], float] = time.time,
        *,
        size: int = RECORD_BYTES,
    ) -> None:
        self._clock = clock
        self._limits = (limit, size)
        self._numbers = Shares(limit)
        self._bytes = Shares(size)
        self._records: dict[str, _Stored] = {}

    def __len__(self) -> int:
        return len(self._records)

    async def load(self, task_id: str) -> TaskRecord | None:
        """See `TaskStore.load`."""
        stored = self._records.get(task_id)
        if stored is None:
            return None
        if self._clock() >= stored.expires:
            self._remove(task_id)
            return None
        return msgspec.json.decode(stored.data, type=TaskRecord)

    async def save(self, record: TaskRecord) -> None:
        """See `TaskStore.save`.

        Raises:
            InternalError: There are too many records that have not expired, or their bytes are too
                many, altogether or of this client. What was stored before stays.
        """
        task_id, client = record.task_id, record.client
        ttl = record.ttl_ms
        expires = float("inf") if ttl is None else record.created + ttl / 1000
        stored = _Stored(msgspec.json.encode(record), client, expires)
        before = self._records.get(task_id)
        more = stored.counted - (0 if before is None else before.counted)
        if not self._has_room(client, more, is_new=before is None):
            for expired in [key for key, each in self._records.items() if self._is_over(each)]:
                self._remove(expired)
            if not self._has_room(client, more, is_new=task_id not in self._records):
                number, size = self._limits
                raise InternalError(
                    f"expected at most {number} tasks with {size} bytes, and no more of one client "
                    "than are free for others"
                )
        if task_id in self._records:
            self._remove(task_id)
        self._records[task_id] = stored
        self._numbers.take(client)
        self._bytes.take(client, stored.counted)

    def _has_room(self, client: str, more: int, *, is_new: bool) -> bool:
        if is_new and not self._numbers.has(client):
            return False
        return more <= 0 or self._bytes.has(client, more)

    def _remove(self, task_id: str) -> None:
        stored = self._records.pop(task_id)
        self._numbers.take(stored.client, -1)
        self._bytes.take(stored.client, -stored.counted)

    def _is_over(self, stored: _Stored) -> bool:
        return self._clock() >= stored.expires


def _timestamp(seconds: float) -> str:
    """A time as RFC 3339 has it, in UTC, with milliseconds."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class Tasks:
    """Runs calls of tools as tasks, for clients that declare the extension.

        server = Server("reports")
        tasks = Tasks(server)

        @server.tool(runner=tasks)
        async def report(year: int, ctx: Context) -> str: ...

    Only the principal that made the call can get, update or cancel the task. Without
    authentication, whoever knows the id can.

    Args:
        server: The server, which then declares the extension in revisions that have it.
        store: Stores the records; a `MemoryTaskStore` if `None`.
        ttl: Seconds from its creation for which a task can be got. A task that still works then is
            stopped. `None` for no limit.
        poll_interval: Seconds between polls that clients are asked to keep.
        limit: Most tasks that run at a time, of one client a half; further calls are refused.

    Raises:
        ValueError: A number is not positive, or the server has tasks already.
    """

    def __init__(
        self,
        server: Decorators,
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
        self._ttl = ttl
        self._poll_interval = poll_interval
        self._limit = limit
        self._slots = Shares(limit)
        self._connections = WeakKeyDictionary[PendingRequests, str]()
        self._calls: dict[Context, _Call] = {}
        self._running: dict[str, _Call] = {}
        self._loop: object = None
        self._scope: TaskScope | None = None
        handlers = {GET: self._get, UPDATE: self._update, CANCEL: self._cancel}
        limit_here = _process_limit(self.store)
        self._announce = server.handle_requests(handlers, self._admitted, limit_here)

    @property
    def required(self) -> TaskMode:
        """Runs calls as tasks, and refuses those of clients without the extension (-32021)."""
        return TaskMode(self, is_required=True)

    @property
    def on_begin(self) -> TaskMode:
        """Runs calls in their requests until the function awaits `begin`."""
        return TaskMode(self, at_once=False)

    def run(self, context: Context, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """See `ToolRunner.run`: as a task, or in the request for clients without the extension."""
        return TaskMode(self).run(context, call)

    async def begin(self, context: Context) -> bool:
        """Make a task of a call that `on_begin` runs. What the client was asked before is answered.

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
        self, context: Context, coroutine: Coroutine[Any, Any, Any], *, at_once: bool
    ) -> Any:
        """The response to a call: `CreateTaskResult`, or the result of a call that began no task.

        Raises:
            BaseException: The call raised it before it was a task.
        """
        call = _Call(self, context)
        try:
            if at_once:
                await call.begin()
            scope = await self._background()
        except BaseException:
            coroutine.close()
            raise
        self._calls[context] = call
        scope.start_soon(call.run, coroutine)
        try:
            await call.settled.wait()
        finally:
            if call.record is None:
                call.scope.cancel()
        if call.record is not None:
            return {"resultType": "task", **call.record.seed()}
        if call.error is not None:
            raise call.error
        return call.result

    def new_record(self, request: RequestContext) -> TaskRecord:
        """The record of a new task.

        Raises:
            InternalError: There are too many tasks, altogether or of this client.
        """
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
            client=client,
            created=now,
            updated=now,
            ttl_ms=None if self._ttl is None else max(1, round(self._ttl * 1000)),
            poll_interval_ms=max(1, round(self._poll_interval * 1000)),
        )

    async def began(self, call: _Call, record: TaskRecord) -> None:
        """Store the first record of a task."""
        self._running[record.task_id] = call
        self._slots.take(record.client)
        try:
            await self.store.save(record)
        except BaseException:
            self._leave(record)
            raise

    async def save(self, record: TaskRecord) -> None:
        """Store a changed record, and notify the clients that are subscribed to the task."""
        await self.store.save(record)
        self._announce(CHANGED, record.wire(), record.task_id)

    def _admitted(self, name: str, task_ids: Sequence[str]) -> Sequence[str]:
        """Those of some tasks that run here and belong to the principal."""
        if name != CHANGED:
            return ()
        owner = _owner()
        calls = ((task_id, self._running.get(task_id)) for task_id in task_ids)
        return [
            task_id
            for task_id, call in calls
            if call is not None and call.record is not None and call.record.owner == owner
        ]

    def ended(self, call: _Call) -> None:
        """Forget a call that has ended."""
        self._calls.pop(call.context, None)
        if call.record is not None:
            self._leave(call.record)

    def _leave(self, record: TaskRecord) -> None:
        if self._running.pop(record.task_id, None) is not None:
            self._slots.take(record.client, -1)

    def _client(self, request: RequestContext) -> str:
        """Identifies the client of a request; see `TaskRecord`."""
        if owner := _owner():
            return owner
        if (network := NETWORK.get()) is not None:
            return f"network {network}"
        known = self._connections.get(request.peer)
        if known is None:
            known = self._connections[request.peer] = f"connection {secrets.token_hex(8)}"
        return known

    async def _background(self) -> TaskScope:
        """Runs tasks until the event loop ends."""
        loop = running_loop()
        if self._scope is None or self._loop is not loop:
            self._loop, self._scope = loop, TaskScope(nullcontext, lambda: None)
        await self._scope.start()
        return self._scope

    async def _get(self, request: RequestContext) -> Mapping[str, Any]:
        record = await self._record(request)
        return record.wire()

    async def _update(self, request: RequestContext) -> None:
        call = self._running_call(await self._record(request))
        if call is not None:
            await call.answer(to_builtins(request.params.input_responses))

    async def _cancel(self, request: RequestContext) -> None:
        call = self._running_call(await self._record(request))
        if call is not None:
            call.scope.cancel()

    async def _record(self, request: RequestContext) -> TaskRecord:
        """The record of the task that a request names.

        Raises:
            MissingCapabilityError: The client does not declare the extension.
            InvalidParamsError: There is no such task, or it is another principal's.
        """
        if settings_of(request.peer_capabilities, IDENTIFIER) is None:
            raise MissingCapabilityError((CAPABILITY, IDENTIFIER), request.method.name)
        task_id: str = request.params.task_id
        record = await self.store.load(task_id)
        if record is None or record.owner != _owner():
            raise InvalidParamsError(
                f"taskId: expected that of a task that has not expired, got {safe_repr(task_id)}"
            )
        return record

    def _running_call(self, record: TaskRecord) -> _Call | None:
        """The call of a task; `None` if it has ended.

        Raises:
            InternalError: Another process runs it, or did before it ended.
        """
        call = self._running.get(record.task_id)
        if call is None and not record.is_terminal:
            raise InternalError(f"task {record.task_id} does not run in this process")
        return call


def _process_limit(store: TaskStore) -> ProcessLimit:
    """What tasks lack where several processes serve together."""
    if isinstance(store, MemoryTaskStore):
        text = "tasks: expected a TaskStore that the processes share, got a MemoryTaskStore"
        return ProcessLimit(f"{text}; pass Tasks(server, store=...)", is_refused=True)
    return ProcessLimit(f"{UPDATE} and {CANCEL} fail in a worker that does not run the task")


class TaskMode:
    """Runs calls of tools as tasks; a `ToolRunner`.

    Args:
        tasks: The tasks.
        is_required: Whether calls of clients without the extension are refused.
        at_once: Whether a call is a task from its start, or from `Tasks.begin`.
    """

    def __init__(self, tasks: Tasks, *, is_required: bool = False, at_once: bool = True) -> None:
        self._tasks = tasks
        self._is_required = is_required
        self._at_once = at_once

    def run(self, context: Context, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """See `ToolRunner.run`.

        Raises:
            MissingCapabilityError: A task is required, and the client does not declare the
                extension.
        """
        methods = context.request_context.revision.client_requests
        if UPDATE in methods and context.client_extension(IDENTIFIER) is not None:
            return self._tasks.respond(context, call, at_once=self._at_once)
        if self._is_required:
            call.close()
            raise MissingCapabilityError(
                (CAPABILITY, IDENTIFIER), context.request_context.method.name
            )
        return call


class _Call:
    """A call in the background, and its task once it has begun.

    Args:
        tasks: The tasks of the server.
        context: The request.

    Attributes:
        context: As passed.
        scope: Cancels it.
        record: The record of its task; `None` before it has begun.
        settled: Set when the task has begun, or the call has ended without one.
        result: The result of a call that ended without a task.
        error: The failure of such a call.
    """

    def __init__(self, tasks: Tasks, context: Context) -> None:
        self.context = context
        self.scope = anyio.CancelScope()
        self.record: TaskRecord | None = None
        self.settled = anyio.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self._tasks = tasks
        self._open: dict[str, _OpenQuestion] = {}
        self._saving = anyio.Lock()
        self._expired = False

    async def begin(self) -> None:
        """Make a task of the call."""
        record = self._tasks.new_record(self.context.request_context)
        await self._tasks.began(self, record)
        self.record = record
        if record.ttl_ms is not None:
            self.scope.deadline = anyio.current_time() + record.ttl_ms / 1000
        self.context.questions = _TaskQuestions(self, self.context.multi_round_trip())
        self.settled.set()

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Await the call and store its end."""
        try:
            with self.scope:
                try:
                    self.result = await coroutine
                except anyio.get_cancelled_exc_class():
                    raise
                except (KeyboardInterrupt, SystemExit, GeneratorExit):
                    raise
                except BaseException as error:
                    self.error = error
            if self.record is not None:
                with anyio.CancelScope(shield=True):
                    await self._end()
        finally:
            self._tasks.ended(self)
            self.settled.set()

    async def change(self, **changes: Any) -> None:
        """Change the record and store it, unless the task has ended."""
        async with self._saving:
            if self.record is None or self.record.is_terminal:
                return
            record = msgspec.structs.replace(self.record, **changes, updated=time.time())
            await self._tasks.save(record)
            self.record = record

    async def ask(self, key: str, question: _OpenQuestion, timeout: float | None) -> Any:
        """The client's answer to a question.

        Raises:
            RequestTimeoutError: No answer in time.
        """
        self._open[key] = question
        try:
            await self._input_changed()
            with anyio.move_on_after(timeout):
                await question.answered.wait()
                return question.answer
            raise RequestTimeoutError(question.method.name, timeout or 0.0)
        finally:
            if self._open.pop(key, None) is not None:
                with anyio.CancelScope(shield=True):
                    await self._input_changed()

    async def answer(self, responses: Mapping[str, Any]) -> None:
        """Pass answers on to the open questions; others are ignored.

        Raises:
            InvalidParamsError: An answer does not fit its question. None was passed on.
        """
        fitting = {key: answer for key, answer in responses.items() if key in self._open}
        for key, answer in fitting.items():
            if error := mismatch(answer, self._open[key].method.result):
                raise InvalidParamsError(f"inputResponses.{safe_repr(key)}: {error}")
        for key, answer in fitting.items():
            question = self._open.pop(key)
            question.answer = answer
            question.answered.set()
        if fitting:
            await self._input_changed()

    async def _input_changed(self) -> None:
        requests = {key: question.wire for key, question in self._open.items()}
        status = "input_required" if requests else "working"
        await self.change(status=status, input_requests=requests or None)

    async def _end(self) -> None:
        """Store the end of the task; what the store has no room for fails it."""
        try:
            await self.change(**self._changes_at_end())
        except InternalError as error:
            failure = {"code": error.code, "message": error.message}
            await self.change(
                status="failed", input_requests=None, error=failure, message=error.message
            )

    def _changes_at_end(self) -> dict[str, Any]:
        """How the end of the call changes the record."""
        error = self.error
        if self.scope.cancelled_caught:
            if anyio.current_time() < self.scope.deadline:
                return {"status": "cancelled", "input_requests": None}
            error = InternalError("the task took longer than its time to live")
        elif error is None and isinstance(self.result, InputRequired):
            error = InternalError("a task asks by its context, not by its result")
        if error is None:
            result = to_builtins(self.result)
            return {"status": "completed", "input_requests": None, "result": result}
        if not isinstance(error, ProtocolError):
            _logger.error("a task failed", exc_info=error)
            error = InternalError("the task failed")
        revision = self.context.request_context.revision
        response = msgspec.json.decode(error_response(None, error, revision).data)
        return {
            "status": "failed",
            "input_requests": None,
            "error": response["error"],
            "message": str(error.message),
        }


class _OpenQuestion:
    """A question that waits for its answer.

    Args:
        method: Its method.
        wire: The input request.

    Attributes:
        method: As passed.
        wire: As passed.
        answered: Set with the answer.
        answer: The answer, as wire object.
    """

    def __init__(self, method: Method, wire: Mapping[str, Any]) -> None:
        self.method = method
        self.wire = wire
        self.answered = anyio.Event()
        self.answer: Any = None


class _TaskQuestions(MultiRoundTrip):
    """The questions of a task, whose function waits for the answers.

    Args:
        call: The call of the task.
        before: The questions of the request, which are all answered.
    """

    def __init__(self, call: _Call, before: MultiRoundTrip) -> None:
        super().__init__(before._request, before._signer)
        self._kept = before._kept
        self._call = call
        self._keys: set[str] = set()

    async def ask(self, question: Question, key: str | None, timeout: float | None) -> Any:
        """See `MultiRoundTrip.ask`. The answer comes by `tasks/update`."""
        row = askable(self._request, question.method, question.capability, question.params)
        check_params(row, question.params, self._request.revision)
        name = key if key is not None else f"{question.capability}-{len(self._keys) + 1}"
        if name in self._keys:
            raise ValueError(f"key {name!r} is in use for another question of this task")
        self._keys.add(name)
        wire: dict[str, Any] = {"method": question.method}
        if question.params is not None:
            wire["params"] = question.params
        return await self._call.ask(name, _OpenQuestion(row, wire), timeout)


def _owner() -> str:
    """Identifies the principal of the current request; empty without authentication."""
    principal = PRINCIPAL.get()
    return "" if principal.is_anonymous else msgspec.json.encode(principal.identity).decode()
