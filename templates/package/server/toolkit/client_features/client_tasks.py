"""Tasks of a client: questions that it answers by a task, in 2025-11-25.

    task = await ctx.sample("Summarize: ...", task=True)
    ...
    message = await task.result()

The client answers the question by a task at once, and works on it while the handler runs on. The
handle polls, by requests related to that of the handler, while one of its methods is awaited.

Source: basic/utilities/tasks (2025-11-25).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, TypeVar, Unpack, overload

import msgspec

from ...._wire import convert, to_builtins
from ....errors import MethodNotFoundError, MissingCapabilityError, RemoteProtocolError
from ....protocol.lifecycle import is_declared
from ....runtime.request_context import RequestContext
from .questions import ClientQuestions

if TYPE_CHECKING:
    from ....runtime.task_handle import TaskHandle
    from .elicitation import Accepted, Cancelled, Declined
    from .multi_round_trip import Question
    from .sampling_and_roots import (
        IncludeContext,
        MessageLike,
        ModelPreferences,
        Sampled,
        ToolChoice,
    )

_T = TypeVar("_T")


class Waiting(TypedDict, total=False):
    """Options of every question; see `ClientQuestions.elicit`."""

    key: str | None
    timeout: float | None


class Visiting(Waiting, total=False):
    """Options of `ClientQuestions.elicit_url`."""

    elicitation_id: str | None
    schemes: Collection[str]


class Sampling(Waiting, total=False):
    """Options of `ClientQuestions.sample`."""

    max_tokens: int
    system_prompt: str | None
    temperature: float | None
    stop_sequences: Sequence[str] | None
    model_preferences: ModelPreferences | Mapping[str, Any] | None
    include_context: IncludeContext | None
    tools: Sequence[Any] | None
    tool_choice: ToolChoice | None
    metadata: Mapping[str, Any] | None


class TaskQuestions(ClientQuestions):
    """The part of a `Context` that asks the client, which may answer by a task.

    `task=True` asks for one, `task={"ttl": ...}` for one with a time to live in milliseconds. The
    method then returns a handle of the task, whose `result` returns the value otherwise returned.

    Raises of each method, with `task`:
        MissingCapabilityError: The client does not answer this question by tasks, or the revision
            has none.
        RemoteProtocolError: The client answered without a task.
    """

    __slots__ = ()

    @overload
    async def elicit(
        self, message: str, form: type[_T], **options: Unpack[Waiting]
    ) -> Accepted[_T] | Declined | Cancelled: ...

    @overload
    async def elicit(
        self, message: str, form: Mapping[str, Any], **options: Unpack[Waiting]
    ) -> Accepted[dict[str, Any]] | Declined | Cancelled: ...

    @overload
    async def elicit(
        self,
        message: str,
        form: type[_T],
        *,
        task: bool | Mapping[str, Any],
        **options: Unpack[Waiting],
    ) -> TaskHandle[Accepted[_T] | Declined | Cancelled]: ...

    @overload
    async def elicit(
        self,
        message: str,
        form: Mapping[str, Any],
        *,
        task: bool | Mapping[str, Any],
        **options: Unpack[Waiting],
    ) -> TaskHandle[Accepted[dict[str, Any]] | Declined | Cancelled]: ...

    async def elicit(
        self,
        message: str,
        form: Any = None,
        *,
        task: bool | Mapping[str, Any] = False,
        **options: Any,
    ) -> Any:
        """See `ClientQuestions.elicit`."""
        return await ClientQuestions.elicit(self._questions_for(task), message, form, **options)

    @overload
    async def elicit_url(
        self, message: str, url: str, **options: Unpack[Visiting]
    ) -> Accepted[None] | Declined | Cancelled: ...

    @overload
    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        task: bool | Mapping[str, Any],
        **options: Unpack[Visiting],
    ) -> TaskHandle[Accepted[None] | Declined | Cancelled]: ...

    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        task: bool | Mapping[str, Any] = False,
        **options: Unpack[Visiting],
    ) -> Any:
        """See `ClientQuestions.elicit_url`."""
        return await ClientQuestions.elicit_url(self._questions_for(task), message, url, **options)

    @overload
    async def sample(
        self, messages: str | Sequence[MessageLike], **options: Unpack[Sampling]
    ) -> Sampled: ...

    @overload
    async def sample(
        self,
        messages: str | Sequence[MessageLike],
        *,
        task: bool | Mapping[str, Any],
        **options: Unpack[Sampling],
    ) -> TaskHandle[Sampled]: ...

    async def sample(
        self,
        messages: str | Sequence[MessageLike],
        *,
        task: bool | Mapping[str, Any] = False,
        **options: Unpack[Sampling],
    ) -> Any:
        """See `ClientQuestions.sample`."""
        return await ClientQuestions.sample(self._questions_for(task), messages, **options)

    def _questions_for(self, task: bool | Mapping[str, Any]) -> ClientQuestions:
        """The questions with these options of a task; the context itself without a task."""
        return self if task is False else _AsTask(self, task)


class _AsTask(ClientQuestions):
    """Asks the questions of a context as tasks: each method returns a handle.

    Args:
        context: The context.
        task: Params of the task, such as `ttl`; `True` for none.
    """

    def __init__(self, context: ClientQuestions, task: bool | Mapping[str, Any]) -> None:
        self.request_context = context.request_context
        self.questions = context.multi_round_trip()
        self._round_trips = context._round_trips
        self._task: Mapping[str, Any] = {} if isinstance(task, bool) else task

    async def _ask(
        self,
        question: Question,
        read: Callable[[Any], Any],
        key: str | None,
        timeout: float | None,
    ) -> Any:
        """The handle of the task that the client creates for a question."""
        from ....runtime.task_handle import GET, RESULT, TaskFollower, TaskHandle  # for few tools

        request = self.request_context
        revision, peer = request.revision, request.peer
        path = ("tasks", "requests", *question.method.split("/"))
        if RESULT not in revision.server_requests or not is_declared(
            request.peer_capabilities, path
        ):
            raise MissingCapabilityError(path, f"{question.method} as a task")
        follower = TaskFollower(revision, peer)
        try:
            params: dict[str, Any] = {**(question.params or {}), "task": self._task}
            question = msgspec.structs.replace(
                question, params=params, on_progress=follower.keep_report
            )
            answer = await self.multi_round_trip().ask(question, key, timeout)
            if "task" not in answer:
                raise RemoteProtocolError(
                    f"{question.method}: expected a task, got the answer itself"
                )
        except BaseException:
            follower.stop()
            raise
        created = convert(answer["task"], revision.server_requests[GET].result)
        handle = TaskHandle(
            _Requests(request), created.task_id, created, method=question.method, read=read
        )
        follower.begin(created.task_id, handle)
        return handle


class _Requests:
    """Requests about tasks of a client, on behalf of a request of that client.

    Args:
        request: The request.

    Attributes:
        rounds: Always 0: these tasks have no input requests.
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
