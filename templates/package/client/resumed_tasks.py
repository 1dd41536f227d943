"""The client method for tasks that were started before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runtime.task_handle import TaskHandle


class ResumingCalls:
    """Adds `task` to a client of one server."""

    _requests: Any  # sends the requests of the client

    def task(self, task_id: str) -> TaskHandle:
        """The handle of a task that was started before, by any process; sends nothing.

        Raises:
            MissingCapabilityError: One of the sides does not declare tasks.
        """
        from .tool_tasks import resume_task  # few calls are tasks

        return resume_task(self._requests, task_id)


def task_calls() -> Any:
    """The module that calls tools as tasks."""
    from . import tool_tasks  # few calls are tasks

    return tool_tasks
