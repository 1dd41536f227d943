"""Tools whose calls may be tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from ..toolkit.server import ServerKernel

if TYPE_CHECKING:
    from ..toolkit.tools import ToolRunner


class TaskToolOptions(TypedDict, total=False):
    """Tasks of `Server.tool`.

    Attributes:
        runner: Runs the calls, such as `Tasks`; `None` for the tasks of their requests.
    """

    runner: ToolRunner | None


class TaskToolServer(ServerKernel):
    """A server with tools whose calls may be tasks."""

    def _use_tool_options(
        self, options: dict[str, Any], members: dict[str, Any]
    ) -> ToolRunner | None:
        runner: ToolRunner | None = options.pop("runner", None)
        if runner is None:
            return super()._use_tool_options(options, members)
        members |= runner.tool_members
        super()._use_tool_options(options, members)
        return runner
