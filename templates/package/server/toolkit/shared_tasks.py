"""Tasks that other processes run: served by their records, and claimed if their process is gone.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

import anyio
import msgspec

from ..._wire import UNREADABLE, UNWRITABLE, Raw, error_text, to_builtins
from ...errors import InternalError, InvalidParamsError, McpError, ProtocolError, TransportError
from ...facts import Method, Revision
from ...foreign_text import safe_repr
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import ANONYMOUS, Principal, RequestContext
from ...runtime.served_task import TOO_LONG
from ...runtime.task_store import RecordedCall, TaskRecord, TaskStore
from .client_features.multi_round_trip import mismatch
from .task_calls import POLL_SECONDS, fail_record

RUNS = 4
"""Most runs of a task, the first included: the task itself may crash each process."""


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


class SharedTasks(Protocol):
    """The tasks of a server, which other processes share."""

    store: TaskStore

    async def claim(self, record: TaskRecord, request: RequestContext | None = None) -> bool:
        """Run a task again, or fail it, if its process is gone; `False` if it is not.

        Args:
            record: The record of the task.
            request: A request about the task that is being served, if any.
        """
        ...

    async def tell(self, task_id: str) -> None:
        """Notify the other processes of a changed record, if they can be reached."""
        ...

    def watch(self, task_id: str) -> AbstractContextManager[TaskNews]:
        """Receive the changes of a task by other processes while the block runs."""
        ...


class TaskElsewhere:
    """A task that another process runs, or ran, for a request that this process serves.

    Args:
        tasks: The tasks of the server.
        record: The record of the task.
        request: The request.

    Attributes:
        record: The record as it was loaded last.
    """

    def __init__(self, tasks: SharedTasks, record: TaskRecord, request: RequestContext) -> None:
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
