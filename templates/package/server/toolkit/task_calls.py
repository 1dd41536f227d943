"""Calls of tools that run as tasks, and the messages of their functions to the client.

A function asks by its `Context` and waits for the answer. Until then, the question is an input
request of the task. In the extension the client answers by `tasks/update`. In 2025-11-25 the server
sends the question as a request related to a `tasks/result` that is being served: the last one,
since the client may have lost the earlier ones.

Processes that share a store communicate by its records. The process that runs a task renews its
lease, and then sees changes by others: a cancellation, or answers. A `tasks/result` in another
process reads the record until the task has ended. With a shared bus, each process announces the
tasks that it has changed, so that others read their records at once.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import anyio
import msgspec

from ..._wire import UNREADABLE, UNWRITABLE, Raw, error_text, to_builtins
from ...channel import RequestId
from ...errors import (
    InternalError,
    InvalidParamsError,
    McpError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    TransportError,
)
from ...facts import Method, Revision
from ...foreign_text import safe_repr
from ...runtime.pending_requests import OnProgress, PendingRequests
from ...runtime.request_context import ANONYMOUS, Principal, RequestContext
from ...runtime.served_task import TOO_LONG, TaskContext, changes_at_end
from ...runtime.task_store import RecordedCall, TaskRecord
from .client_features.input_required import InputRequired
from .client_features.multi_round_trip import (
    MultiRoundTrip,
    Question,
    askable_method,
    check_params,
    mismatch,
)
from .client_features.questions import asking_context
from .context import Context

_logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""Seconds between two reads of the record of a task that another process runs, without a bus."""


RUNS = 4
"""Most runs of a task, the first included: the task itself may crash each process."""


class TaskCall:
    """A call in the background, and its task once it has begun.

    Args:
        tasks: The `Tasks` of the server.
        context: The request.
        related: The member of `_meta` that names the task of a message; `None` for no such member.
        restarts: Whether another process may run the call again.

    Attributes:
        context: As passed.
        related: As passed.
        restarts: As passed.
        scope: Cancels the call.
        record: The record of its task; `None` before it has begun.
        settled: Set when the task has begun, or the call has ended without one.
        result: The result of a call that ended without a task.
        error: The failure of such a call.
        request: The request that made the call.
        is_lost: Whether another process has taken the task.
    """

    def __init__(
        self, tasks: Any, context: Context, related: str | None, *, restarts: bool
    ) -> None:
        self.context = context
        self.related = related
        self.restarts = restarts
        self.scope = anyio.CancelScope()
        self.record: TaskRecord | None = None
        self.settled = anyio.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.request = context.request_context
        self.is_lost = False
        self._tasks = tasks
        self._open: dict[str, _OpenQuestion] = {}
        self._waiting: list[RequestContext] = []
        self._news = anyio.Event()
        self._saving = anyio.Lock()
        self._renewed = anyio.current_time()

    @property
    def has_questions(self) -> bool:
        """Whether it waits for the client."""
        return bool(self._open)

    def needs_renewal(self, seconds: float) -> bool:
        """Whether the last renewal of its lease is at least that many seconds ago."""
        return anyio.current_time() - self._renewed >= seconds

    @property
    def is_over(self) -> bool:
        """Whether its task has ended."""
        return self.record is not None and self.record.is_terminal

    @property
    def related_request_id(self) -> RequestId | None:
        """The last `tasks/result` that the client of the call sent, if it is being served.

        The messages of the task are sent on the stream of this request.
        """
        own = (each for each in reversed(self._waiting) if each.peer is self.request.peer)
        return next((each.request_id for each in own), None)

    async def begin(self, claimed: TaskRecord | None = None) -> None:
        """Make a task of the call.

        Args:
            claimed: The record of a task of another process, which this process runs again.
        """
        record = self._tasks.new_record(self) if claimed is None else claimed
        await self._tasks.store_start(self, record)
        self.record = record
        self.scope.deadline = anyio.current_time() + record.expires - time.time()
        context = asking_context(self.context)
        context.questions = _TaskQuestions(self, context.multi_round_trip())
        if self.related is not None:
            self.context.request_context = TaskContext(self.request, self)
        self.settled.set()

    def meta(self) -> dict[str, Any]:
        """`_meta` that names the task, where messages have such a member."""
        if self.related is None or self.record is None:
            return {}
        return {self.related: {"taskId": self.record.task_id}}

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
            while self.record is not None:
                if await self._end():
                    break
                await anyio.sleep(POLL_SECONDS)  # until the store can be reached again
        finally:
            self._tasks.forget(self)
            self.settled.set()
            self._wake()

    async def change(self, **changes: Any) -> bool:
        """Change the record and store it; `False` if the task has ended.

        A task that was ended elsewhere, or has expired, is stopped.
        """
        async with self._saving:
            while self.record is not None and not self.record.is_terminal:
                record = self.record.next_version(**changes)
                if await self._tasks.store.change(record):
                    self.record = record
                    self._wake()
                    self._tasks.announce_change(self, record)
                    return True
                await self._load(record)
        return False

    async def renew(self) -> None:
        """Renew the lease of the task, and apply changes by other processes."""
        store = self._tasks.store
        if self.record is None or self.record.is_terminal:
            return
        begun = anyio.current_time()
        version = await store.renew(self.record)
        self._renewed = begun
        settled: dict[str, _OpenQuestion] = {}
        async with self._saving:
            if version == self.record.version or self.record.is_terminal:
                return
            await self._load(self.record)
            responses = self.record.input_responses or {}
            if not self.record.is_terminal and responses:
                rest = {key: each.wire for key, each in self._open.items() if key not in responses}
                changes = _input_changes(rest)
                record = self.record.next_version(input_responses=None, **changes)
                if await store.change(record):
                    self.record = record
                    settled = {key: self._open.pop(key) for key in responses if key in self._open}
            for key, question in settled.items():
                question.settle_wire(responses[key])
            self._wake()
            self._tasks.announce_change(self, self.record)

    async def _load(self, record: TaskRecord) -> None:
        """Load the stored record; cancel the call if the task has ended or belongs to another."""
        stored = await self._tasks.store.load(record.task_id)
        if stored is None:
            stored = fail_record(record, TOO_LONG)
        elif stored.fence != record.fence:
            self.is_lost = True
            stored = fail_record(record, LOST)
        self.record = stored
        if stored.is_terminal:
            self._wake()
            self.scope.cancel()

    async def cancel(self) -> bool:
        """Cancel the task and stop the call; `False` if it has ended."""
        if not await self.change(status="cancelled", input_requests=None):
            return False
        self.scope.cancel()
        return True

    async def ask(self, key: str, question: _OpenQuestion, timeout: float | None) -> Any:
        """The client's answer to a question.

        Raises:
            RequestTimeoutError: No answer in time.
            McpError: The client refused.
        """
        self._open[key] = question
        try:
            await self._input_changed()
            with anyio.move_on_after(timeout):
                await question.answered.wait()
                if question.failure is not None:
                    raise question.failure
                return question.answer
            raise RequestTimeoutError(question.method.name, timeout or 0.0)
        finally:
            question.withdraw()
            if self._open.pop(key, None) is not None:
                with anyio.CancelScope(shield=True):
                    await self._input_changed()

    async def answer(self, responses: Mapping[str, Any]) -> None:
        """Pass answers to the open questions; answers to other questions are ignored.

        Raises:
            InvalidParamsError: An answer does not fit its question. None was passed on.
        """
        fitting = {key: answer for key, answer in responses.items() if key in self._open}
        for key, answer in fitting.items():
            if error := mismatch(answer, self._open[key].method.result):
                raise InvalidParamsError(f"inputResponses.{safe_repr(key)}: {error}")
        for key, answer in fitting.items():
            self._open.pop(key).settle(answer)
        if fitting:
            await self._input_changed()

    async def wait(self, request: RequestContext) -> TaskRecord:
        """The record of the task, once the task has ended or another process has taken it.

        Args:
            request: A `tasks/result`, on whose behalf the client is asked meanwhile.
        """
        assert self.record is not None
        self._waiting.append(request)
        for question in self._open.values():
            question.withdraw()
        try:
            async with anyio.create_task_group() as asking:
                while not self.record.is_terminal:
                    news = self._news
                    if self._waiting[-1] is request:
                        for key, question in self._open.items():
                            if question.scope is None:
                                question.scope = anyio.CancelScope()
                                asking.start_soon(self._send_question, key, question, request)
                    await news.wait()
                asking.cancel_scope.cancel()
        finally:
            self._waiting.remove(request)
            self._wake()
        return self.record

    async def _send_question(
        self, key: str, question: _OpenQuestion, request: RequestContext
    ) -> None:
        """Ask the client by a request related to another one, until the question is withdrawn.

        A question that is withdrawn, or whose client is gone, can be asked again.
        """
        scope = question.scope
        assert scope is not None
        params: Mapping[str, Any] = question.wire.get("params") or {}
        params = {**params, "_meta": {**params.get("_meta", {}), **self.meta()}}
        answer: Any = None
        failure: McpError | None = None
        try:
            with scope:
                result = await request.request(
                    question.method.name, params, on_progress=question.on_progress
                )
                answer = to_builtins(result)
        except TransportError:
            pass
        except McpError as error:
            failure = error
        finally:
            is_current = question.scope is scope
            if is_current:
                question.scope = None
        settles = answer is not None or failure is not None
        if settles and is_current and self._open.get(key) is question:
            del self._open[key]
            question.settle(answer, failure)
            with anyio.CancelScope(shield=True):
                await self._input_changed()

    async def _input_changed(self) -> None:
        await self.change(**_input_changes({key: each.wire for key, each in self._open.items()}))

    def _wake(self) -> None:
        """Wake the requests that wait for news of the task."""
        self._news.set()
        self._news = anyio.Event()

    async def _end(self) -> bool:
        """Store the end of the task; the task fails if the store has no room for the result.

        Returns:
            `False` if the store can't be reached.
        """
        changes = self._changes_at_end()
        with anyio.CancelScope(shield=True):
            try:
                try:
                    await self.change(**changes)
                except InternalError as error:
                    failure = {"code": error.code, "message": error.message}
                    changes = {"status": "failed", "input_requests": None, "error": failure}
                    await self.change(**changes, message=error.message)
            except TransportError as error:
                _logger.debug("the end of a task is not stored yet: %s", error)
                return False
        return True

    def _changes_at_end(self) -> dict[str, Any]:
        """The changes of the record at the end of the call."""
        error = self.error
        if error is None and isinstance(self.result, InputRequired):
            error = InternalError("a task asks by its context, not by its result")
        return changes_at_end(self.scope, self.result, error, self.request.revision)


LOST = "the process that ran the task is gone; it may have been acted on"


def _input_changes(requests: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a record for the open questions."""
    status = "input_required" if requests else "working"
    return {"status": status, "input_requests": requests or None}


def fail_record(record: TaskRecord, text: str) -> TaskRecord:
    """The record of a task that failed, since its process can't continue."""
    error = InternalError(text)
    failure = {"code": error.code, "message": error.message}
    return record.next_version(
        status="failed", input_requests=None, result=None, error=failure, message=error.message
    )


class _OpenQuestion:
    """A question that waits for its answer.

    Args:
        method: Its method.
        wire: The input request.
        on_progress: Called with progress of the request; `None` to ask for none.

    Attributes:
        method: As passed.
        wire: As passed.
        on_progress: As passed.
        answered: Set with the answer, or with the failure.
        answer: The answer, as wire object.
        failure: The reason why there is no answer.
        scope: Cancels the request that asks the client; `None` while there is none.
    """

    def __init__(
        self, method: Method, wire: Mapping[str, Any], on_progress: OnProgress | None
    ) -> None:
        self.method = method
        self.wire = wire
        self.on_progress = on_progress
        self.answered = anyio.Event()
        self.answer: Any = None
        self.failure: McpError | None = None
        self.scope: anyio.CancelScope | None = None

    def settle(self, answer: Any = None, failure: McpError | None = None) -> None:
        """Set the answer, or the reason why there is none."""
        self.answer, self.failure = answer, failure
        self.answered.set()

    def settle_wire(self, response: Mapping[str, Any]) -> None:
        """Set the answer, or the error, that another process received."""
        if "error" in response:
            error = response["error"]
            code, text = error["code"], error["message"]
            if error.get("is_remote"):
                self.settle(failure=RemoteError(code, text, error["data"], self.method.name))
            else:
                self.settle(failure=ProtocolError(text, code=code))
        else:
            self.settle(response["result"])

    def withdraw(self) -> None:
        """Cancel the request that asks the client, if there is one."""
        if self.scope is not None:
            self.scope.cancel()
            self.scope = None


class _TaskQuestions(MultiRoundTrip):
    """The questions of a task, whose function waits for the answers.

    Args:
        call: The call of the task.
        before: The questions of the request, which are all answered.
    """

    def __init__(self, call: TaskCall, before: MultiRoundTrip) -> None:
        super().__init__(before._request, before._signer)
        self._kept = before._kept
        self._call = call
        self._keys: set[str] = set()

    async def ask(self, question: Question, key: str | None, timeout: float | None) -> Any:
        """See `MultiRoundTrip.ask`. The function waits for the answer."""
        row = askable_method(self._request, question.method, question.capability, question.params)
        check_params(row, question.params, self._request.revision)
        name = key if key is not None else f"{question.capability}-{len(self._keys) + 1}"
        if name in self._keys:
            raise ValueError(f"key {name!r} is in use for another question of this task")
        self._keys.add(name)
        wire: dict[str, Any] = {"method": question.method}
        if question.params is not None:
            wire["params"] = question.params
        open_question = _OpenQuestion(row, wire, question.on_progress)
        return await self._call.ask(name, open_question, timeout)


class TaskNews:
    """Wakes the request that waits for changes of a task, also for a change before the wait."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """Wake the waiting request, or end its next wait at once."""
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a change, or for some seconds."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        self._event = anyio.Event()


class TaskElsewhere:
    """A task that another process runs, or ran, for a request that this process serves.

    Args:
        tasks: The `Tasks` of the server.
        record: The record of the task.
        request: The request.

    Attributes:
        record: The record as it was loaded last.
    """

    def __init__(self, tasks: Any, record: TaskRecord, request: RequestContext) -> None:
        self.record = record
        self._tasks = tasks
        self._store = tasks.store
        self._request = request

    async def check(self) -> None:
        """Run the task again, or fail it, if the process that ran it is gone."""
        if not self.record.is_terminal and await self._tasks.claim(self.record, self._request):
            await self._load()

    async def cancel(self) -> bool:
        """Cancel the task; `False` if it has ended."""
        return await self._change(lambda _: {"status": "cancelled", "input_requests": None})

    async def answer(self, responses: Mapping[str, Any]) -> None:
        """Store answers for the process that runs the task; other answers are ignored.

        Raises:
            InvalidParamsError: An answer does not fit its question. None was stored.
        """
        open_requests = self.record.input_requests or {}
        fitting = {key: each for key, each in responses.items() if key in open_requests}
        for key, answer in fitting.items():
            name = open_requests[key]["method"]
            revision = self._request.revision
            row = revision.server_requests.get(name) or revision.input_requests[name]
            if error := mismatch(answer, row.result):
                raise InvalidParamsError(f"inputResponses.{safe_repr(key)}: {error}")
        await self._store_responses({key: {"result": each} for key, each in fitting.items()})

    async def wait(self, related: Mapping[str, Any]) -> TaskRecord:
        """The record of the task, once the task has ended.

        Meanwhile, questions are sent to the client, related to the request, a `tasks/result`.

        Args:
            related: `_meta` of the questions.
        """
        with self._tasks.watch(self.record.task_id) as news:
            await self._load()
            while not self.record.is_terminal:
                await self._wait_for_run(news, related)
        return self.record

    async def _wait_for_run(self, news: TaskNews, related: Mapping[str, Any]) -> None:
        """Wait until the task has ended, or another process has claimed it and asks again."""
        asked: set[str] = set()
        fence = self.record.fence
        async with anyio.create_task_group() as asking:
            while not self.record.is_terminal and self.record.fence == fence:
                for key, wire in (self.record.input_requests or {}).items():
                    if key not in asked and key not in (self.record.input_responses or {}):
                        asked.add(key)
                        asking.start_soon(self._ask, key, wire, related)
                await news.wait(POLL_SECONDS)
                with suppress(TransportError):  # a temporary failure
                    await self._load()
                    await self.check()
            asking.cancel_scope.cancel()

    async def _ask(self, key: str, wire: Mapping[str, Any], related: Mapping[str, Any]) -> None:
        params: Mapping[str, Any] = wire.get("params") or {}
        meta = {**params.get("_meta", {}), **related}
        try:
            answer = await self._request.request(wire["method"], {**params, "_meta": meta})
        except TransportError:
            return
        except RemoteError as error:
            refusal = {"code": error.code, "message": error.message, "data": error.data}
            await self._store_responses({key: {"error": {**refusal, "is_remote": True}}})
        except McpError as error:
            code = error.code if isinstance(error, ProtocolError) else InternalError("").code
            await self._store_responses({key: {"error": {"code": code, "message": str(error)}}})
        else:
            await self._store_responses({key: {"result": to_builtins(answer)}})

    async def _store_responses(self, responses: Mapping[str, Any]) -> None:
        if responses:
            await self._change(
                lambda record: {"input_responses": {**(record.input_responses or {}), **responses}}
            )

    async def _change(self, changes: Callable[[TaskRecord], dict[str, Any]]) -> bool:
        while not self.record.is_terminal:
            changed = self.record.next_version(**changes(self.record))
            if await self._store.change(changed):
                self.record = changed
                await self._tasks.tell(changed.task_id)
                return True
            await self._load()
        return False

    async def _load(self) -> None:
        stored = await self._store.load(self.record.task_id, self.record)
        self.record = fail_record(self.record, TOO_LONG) if stored is None else stored


class ClaimedCall(RequestContext):
    """The call of a task that this process has claimed, on behalf of the client that made it.

    Args:
        claimed: The record.
        call: The call in the record.
        row: The method of calls in the revision of the call.
        revision: The revision.
        peer: Sends to the client.

    Attributes:
        claimed: The record of the task without the questions of the previous run.

    Raises:
        InvalidParamsError: The revision does not have these params.
    """

    __slots__ = ("claimed",)

    def __init__(
        self,
        claimed: TaskRecord,
        call: RecordedCall,
        row: Method,
        revision: Revision,
        peer: PendingRequests,
    ) -> None:
        params = Raw(msgspec.json.encode(call.params))
        try:
            typed = row.decode_params(params)
        except UNREADABLE as error:
            raise InvalidParamsError(f"the params of a task: {error}") from None
        meta = call.params.get("_meta", {})
        super().__init__(
            peer, row, typed, params, meta, revision, None, call.info, call.capabilities
        )
        self.claimed = claimed.next_version(
            status="working", message=None, input_requests=None, input_responses=None
        )


def recorded_call(request: RequestContext) -> RecordedCall:
    """The call of a request, as a record from which another process can run it again.

    Raises:
        InternalError: Claims of the principal have no JSON form.
    """
    params = to_builtins(request.params)
    session = request.peer.connection.session
    return RecordedCall(
        params={name: params[name] for name in ("name", "arguments", "_meta") if name in params},
        revision=request.revision.name,
        info=request.peer_info,
        capabilities=request.peer_capabilities,
        session=None if session is None or session.lacks else request.peer.channel.session_id,
        principal=_members_of(request.principal),
    )


_MEMBERS = ("subject", "scopes", "issuer", "client_id", "claims", "expires", "unrestricted")
# of a `Principal`: all but its token


def _members_of(principal: Principal) -> Mapping[str, Any] | None:
    if principal.is_anonymous:
        return None
    members = {name: getattr(principal, name) for name in _MEMBERS}
    members |= {"scopes": sorted(principal.scopes), "claims": dict(principal.claims)}
    try:
        msgspec.json.encode(members)
    except UNWRITABLE as error:
        text = f"restart='again': expected claims that have a JSON form: {error_text(error)}"
        raise InternalError(text) from error
    return members


def principal_of(call: RecordedCall) -> Principal:
    """The principal of a recorded call."""
    return ANONYMOUS if call.principal is None else Principal(**call.principal)
