"""Tasks in a client's requests: tools that require one, and results that come by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .pipeline import RequestOptions, RequestPipeline
from .server_state import drop_oldest

if TYPE_CHECKING:
    from ..runtime.task_handle import TaskHandle


class TaskedRequests(RequestPipeline):
    """Calls a tool as a task if the tool requires that, and waits for the tasks of a server."""

    async def _call_as_task(self, options: RequestOptions, params: Any) -> Any:
        timeout = options.timeout
        return await task_calls().call_as_task(
            self, params, options.meta, timeout, options.on_progress, self.limit_of(timeout)
        )

    async def _finish(self, options: RequestOptions, params: Any, result: Any) -> Any:
        result = await super()._finish(options, params, result)
        if not options.facts.extension_results or not hasattr(result, "task_id"):
            return result
        method, timeout = options.method, options.timeout
        return await task_calls().follow_task(
            self, result, method, options.meta, timeout, self.limit_of(timeout)
        )

    def _usable_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        store_task_support(self.state.task_support, tools, self._limits.tools)
        return super()._usable_tools(tools)


def store_task_support(support: dict[str, str], tools: Iterable[Any], limit: int) -> None:
    """Store which typed tools may, or must, be called as tasks."""
    for tool in tools:
        execution = getattr(tool, "execution", None)  # not in all revisions
        if execution is not None and execution.task_support in ("optional", "required"):
            support[tool.name] = execution.task_support
            drop_oldest(support, limit)
        elif support:
            support.pop(tool.name, None)


class ResumingCalls:
    """Adds `task` to a client of one server."""

    _requests: Any  # sends the requests of the client

    def task(self, task_id: str) -> TaskHandle:
        """The handle of a task that was started before, by any process; sends nothing.

        Raises:
            MissingCapabilityError: One of the sides does not declare tasks.
        """
        handle: TaskHandle = task_calls().resume_task(self._requests, task_id)
        return handle


def task_calls() -> Any:
    """The module that calls tools as tasks."""
    from . import tool_tasks  # few calls are tasks

    return tool_tasks
