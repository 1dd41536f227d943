"""Tasks of a client: questions that it answers by a task, in 2025-11-25.

    task = await ctx.sample("Summarize: ...", task=True)
    ...
    message = await task.result()

The client answers the question by a task at once, and works on it while the handler goes on. The
handle polls, on behalf of the request, while someone waits in one of its methods.

Source: basic/utilities/tasks (2025-11-25).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import msgspec

from ...._wire import convert, to_builtins
from ....errors import MethodNotFoundError, MissingCapabilityError, RemoteProtocolError
from ....protocol.lifecycle import declared
from ....runtime.pending_requests import NOTIFICATIONS
from ....runtime.request_context import RequestContext
from ....runtime.task_handle import GET, RESULT, Report, TaskFollower, TaskHandle
from .multi_round_trip import MultiRoundTrip, Question

_T = TypeVar("_T")


async def start_task(
    questions: MultiRoundTrip,
    request: RequestContext,
    question: Question,
    task: Mapping[str, Any] | bool,
    key: str | None,
    timeout: float | None,
    read: Callable[[Any], _T],
) -> TaskHandle[_T]:
    """Ask the client a question that it answers by a task, without waiting for the answer.

    Args:
        questions: The questions of the request.
        request: The request.
        question: The question.
        task: What is asked of the task, such as `ttl`; `True` for nothing.
        key: Key of the question, where it has one.
        timeout: Seconds to wait for the task; `None` for no limit.
        read: Reads the answer.

    Raises:
        MissingCapabilityError: The client does not answer this question by tasks, or the revision
            has none.
        RemoteError: The client refused.
        RemoteProtocolError: It answered without a task.
        RequestTimeoutError: No response in time.
    """
    revision, peer = request.revision, request.peer
    path = ("tasks", "requests", *question.method.split("/"))
    if RESULT not in revision.server_requests or not declared(request.peer_capabilities, path):
        raise MissingCapabilityError(path, f"{question.method} as a task")
    before: deque[Report] = deque(maxlen=NOTIFICATIONS)

    def keep(progress: float, total: float | None, message: str | None) -> None:
        before.append((progress, total, message))

    follower = TaskFollower(revision, peer)
    try:
        params = {**(question.params or {}), "task": {} if task is True else task}
        asked = msgspec.structs.replace(question, params=params, on_progress=keep)
        answer = await questions.ask(asked, key, timeout)
        if "task" not in answer:
            raise RemoteProtocolError(f"{question.method}: expected a task, got the answer itself")
    except BaseException:
        follower.stop()
        raise
    created = convert(answer["task"], revision.server_requests[GET].result)
    handle = TaskHandle(
        _Requests(request), created.task_id, created, method=question.method, read=read
    )
    handle.progressed(*before)
    follower.begin(created.task_id, handle)
    return handle


class _Requests:
    """Requests about tasks of a client, on behalf of a request of that client.

    Args:
        request: The request.

    Attributes:
        rounds: None: input requests are of the extension.
    """

    rounds = 0

    def __init__(self, request: RequestContext) -> None:
        self._request = request

    async def send(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """See `TaskRequests.send`."""
        return await self._request.request(method, params, timeout=timeout)

    async def send_raw(
        self, method: str, params: Any, meta: Mapping[str, Any] | None = None
    ) -> Any:
        """See `TaskRequests.send_raw`."""
        return to_builtins(await self._request.request(method, params))

    async def late_result(
        self, method: str, wire: Any, tool: str | None, timeout: float | None
    ) -> Any:
        """See `TaskRequests.late_result`; as wire object, which the handle reads."""
        return wire

    async def input_response(self, method: str, input_request: Any) -> NoReturn:
        """See `TaskRequests.input_response`."""
        raise MethodNotFoundError(method)
