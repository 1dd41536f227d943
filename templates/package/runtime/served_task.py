"""A request that is served by a task, on either side: its context and its outcome.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import msgspec

from .._wire import EncodingError, encode, to_builtins
from ..channel import RequestId
from ..errors import InternalError, InvalidParamsError, LocalProtocolError, ProtocolError
from ..facts import Revision
from ..foreign_text import safe_repr
from ..protocol.events import SendLog
from ..protocol.jsonrpc import read_id
from ..protocol.requests import (
    PROGRESS,
    PROGRESS_TOKEN,
    InboundRequest,
    error_response,
    notification,
)
from .pending_requests import OnProgress
from .request_context import RequestContext
from .task_store import TaskRecord

_logger = logging.getLogger(__name__)

TOO_LONG = "the task took longer than its time to live"


class ServedTask(Protocol):
    """A task of this side."""

    @property
    def is_over(self) -> bool:
        """Whether the task has ended."""
        ...

    @property
    def related_request_id(self) -> RequestId | None:
        """The request of the peer that the task's messages belong to; `None` for none."""
        ...

    def meta(self) -> Mapping[str, Any]:
        """`_meta` that names the task; empty if the revision has no such member."""
        ...


class TaskContext(RequestContext):
    """The context of a request that was answered with a task; its messages name the task.

    Args:
        request: The request.
        task: The task.
    """

    __slots__ = ("_inbound", "_task")

    def __init__(self, request: RequestContext, task: ServedTask) -> None:
        super().__init__(
            request.peer,
            request.method,
            request.params,
            request.raw_params,
            request.meta,
            request.revision,
            request.request_id,
            request.peer_info,
            request.peer_capabilities,
        )
        self._task = task
        self._inbound = InboundRequest(
            request.method,
            request.revision,
            request.params,
            read_id(request.meta.get(PROGRESS_TOKEN)),
            None,
            request.peer_capabilities,
        )

    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """See `RequestContext.progress`. The token is valid until the task ends."""
        if self._inbound.progress_token is None or self._task.is_over:
            return
        if isinstance(value, float) and not math.isfinite(value):
            raise LocalProtocolError(f"progress: expected a finite number, got {safe_repr(value)}")
        if not self._inbound.advance(value):
            return
        token = self._inbound.progress_token
        params: dict[str, Any] = {PROGRESS_TOKEN: token, "progress": value}
        more = {"total": total, "message": message}
        params |= {name: each for name, each in more.items() if each is not None}
        params["_meta"] = self._task.meta()
        role, related = self.peer.connection.state.role, self._task.related_request_id
        await self.peer.send(notification(role, self.revision, PROGRESS, params, related))

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """See `RequestContext.log`."""
        related, meta = self._task.related_request_id, self._task.meta()
        messages = self.peer.connection.send(SendLog(related, level, data, logger, meta))
        await self.peer.send(*messages)

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """See `RequestContext.request`."""
        is_about_task = name.startswith("tasks/")  # of the peer, whose id is a param
        return await self.peer.request(
            name,
            params,
            meta=None if is_about_task else self._task.meta(),
            timeout=timeout,
            on_progress=on_progress,
            related_request_id=self._task.related_request_id,
        )

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """See `RequestContext.notify`."""
        members = params or {}
        meta = {**members.get("_meta", {}), **self._task.meta()}
        await self.peer.notify(
            name, {**members, "_meta": meta}, related_request_id=self._task.related_request_id
        )

    async def close_stream(self) -> None:
        """Do nothing: the request was answered."""


def ttl_of(request: RequestContext, most: int | None) -> int | None:
    """The requested time to live of a task, within a limit, in milliseconds; `None` for no end."""
    task = getattr(request.params, "task", None)
    requested: int | None = None if task is None else task.ttl
    limits = [each for each in (requested, most) if each is not None]
    return max(1, min(limits)) if limits else None


def changes_at_end(
    scope: anyio.CancelScope, result: Any, error: BaseException | None, revision: Revision
) -> dict[str, Any]:
    """The changes of a task's record at the end of its request.

    Args:
        scope: The scope of the request; its deadline is the end of the task's time to live.
        result: The result.
        error: The exception of the request, if it failed.
        revision: The revision of the session.
    """
    if scope.cancelled_caught:
        if anyio.current_time() < scope.deadline:
            return {"status": "cancelled", "input_requests": None}
        error = InternalError(TOO_LONG)
    if error is None:
        try:
            encode(result)
            return {"status": "completed", "input_requests": None, "result": to_builtins(result)}
        except EncodingError as failure:
            error = InternalError(f"result: {failure}")
    if not isinstance(error, ProtocolError):
        _logger.error("a task failed", exc_info=error)
        error = InternalError("the task failed")
    response = msgspec.json.decode(error_response(None, error, revision).data)
    return {
        "status": "failed",
        "input_requests": None,
        "error": response["error"],
        "message": response["error"]["message"],
    }


def result_of(record: TaskRecord, related: Mapping[str, Any]) -> dict[str, Any]:
    """The response to `tasks/result` for a task that has ended: the response to its request.

    Args:
        record: The record of the task.
        related: `_meta` that names the task.

    Raises:
        ProtocolError: The request failed with this error.
        InvalidParamsError: The task was cancelled.
    """
    if record.status == "cancelled":
        raise InvalidParamsError("taskId: the task was cancelled, so it has no result")
    if record.error is not None:
        error = record.error
        data = {"data": error["data"]} if "data" in error else {}
        raise ProtocolError(error["message"], code=error["code"], **data)
    result = record.result or {}
    return {**result, "_meta": {**result.get("_meta", {}), **related}}


def unknown_task(task_id: str) -> InvalidParamsError:
    """The error for a request about a task that does not exist, or belongs to another peer."""
    return InvalidParamsError(
        f"taskId: expected that of a task that has not expired, got {safe_repr(task_id)}"
    )


def has_ended(record: TaskRecord) -> InvalidParamsError:
    """The error for the cancellation of a task that has ended."""
    got = record.core_wire()["status"]
    return InvalidParamsError(f"taskId: expected a task that has not ended, got one {got}")
