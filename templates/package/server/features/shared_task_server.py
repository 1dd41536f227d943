"""Tasks in the engine that the processes of a server share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..toolkit.server import ServerKernel

if TYPE_CHECKING:
    from ..shared.state import SharedState
    from ..shared.worker import SharedWorker


class SharedTaskServer(ServerKernel):
    """A server whose tasks are in the engine that its processes share, if they share one."""

    def _use_options(self, options: dict[str, Any]) -> None:
        self._dispatcher.shares.append(_share_tasks)
        super()._use_options(options)


def with_tasks(state: SharedState) -> SharedState:
    """The state with a store of tasks in its engine, if it has an engine and no store yet."""
    if state.engine is None or state.tasks is not None:
        return state
    from ..shared.redis_tasks import RedisTaskStore  # few servers have an engine

    return replace(state, tasks=RedisTaskStore(state.engine))


def _share_tasks(worker: SharedWorker) -> None:
    worker.state = with_tasks(worker.state)
