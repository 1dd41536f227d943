"""Tasks of a server, for blocking clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..runtime.task_handle import TaskHandle, TaskUpdate
from .sync import ClientThread


class SyncTaskHandle:
    """A task of a server; see `TaskHandle`. Each method waits for its result.

        task = client.call_tool("report", {"year": 2025}, task=True)
        for update in task:
            print(update.status, update.progress)
        result = task.result()

    Args:
        thread: The thread of the session.
        task: The handle of the asynchronous client.
    """

    def __init__(self, thread: ClientThread, task: TaskHandle) -> None:
        self._thread = thread
        self._task = task

    def __repr__(self) -> str:
        return f"<SyncTaskHandle on {self._task!r}>"

    @property
    def task_id(self) -> str | None:
        """The id of the task; `None` if the server answered the call without one."""
        return self._task.task_id

    @property
    def status(self) -> str | None:
        """The latest known status; `None` before the first."""
        return self._task.status

    @property
    def message(self) -> str | None:
        """The peer's description of the status; `None` for none."""
        return self._task.message

    def refresh(self, *, timeout: float | None = None) -> Any:
        """See `TaskHandle.refresh`."""
        return self._thread.run(lambda: self._task.refresh(timeout=timeout))

    def wait(self, *, timeout: float | None = None) -> str:
        """See `TaskHandle.wait`."""
        return self._thread.run(lambda: self._task.wait(timeout=timeout))

    def result(self, *, timeout: float | None = None) -> Any:
        """See `TaskHandle.result`."""
        return self._thread.run(lambda: self._task.result(timeout=timeout))

    def answer(self, responses: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """See `TaskHandle.answer`."""
        self._thread.run(lambda: self._task.answer(responses, timeout=timeout))

    def cancel(self, *, timeout: float | None = None) -> None:
        """See `TaskHandle.cancel`."""
        self._thread.run(lambda: self._task.cancel(timeout=timeout))

    def __iter__(self) -> Iterator[TaskUpdate]:
        """See `TaskHandle.__aiter__`."""
        updates = aiter(self._task)
        while (update := self._thread.run(lambda: anext(updates, None))) is not None:
            yield update


def resume_task_in(
    thread: ClientThread, resume: Callable[[str], TaskHandle], task_id: str
) -> SyncTaskHandle:
    """A task that was started before; its handle is created in the thread of the session."""

    async def resume_in_thread() -> TaskHandle:
        return resume(task_id)

    return SyncTaskHandle(thread, thread.run(resume_in_thread))
