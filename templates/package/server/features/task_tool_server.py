"""Tools whose calls may be tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ..toolkit.server import ServerKernel

if TYPE_CHECKING:
    from ...protocol.lifecycle import Admit
    from ...runtime.request_context import RequestContext
    from ..serving import ProcessLimit
    from ..toolkit.dispatcher import Announce, Handler
    from ..toolkit.tools import ToolRunner


class TaskToolOptions(TypedDict, total=False):
    """Tasks of `Server.tool`.

    Attributes:
        runner: Runs the calls, such as `Tasks`; `None` for the tasks of their requests.
    """

    runner: ToolRunner | None


class TaskToolServer(ServerKernel):
    """A server with tools whose calls may be tasks, and with handlers that `Tasks` adds."""

    def _use_tool_options(self, options: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
        runner: ToolRunner | None = options.pop("runner", None)
        if runner is not None:
            members |= runner.tool_members
        return {**super()._use_tool_options(options, members), "runner": runner}

    def handle_requests(
        self,
        handlers: Mapping[str, Handler],
        admit: Admit,
        process_limits: Sequence[ProcessLimit],
        capabilities: Mapping[str, Any],
        runner: ToolRunner,
        share: Callable[[Any], None],
    ) -> Announce:
        """Add handlers of requests by wire name; return the function that announces changes.

        The runner runs calls of tools that have none. For the other arguments, see `Service`.

        Raises:
            ValueError: A request has a handler already.
        """
        dispatcher = self._dispatcher
        if taken := handlers.keys() & dispatcher.handlers.keys():
            raise ValueError(f"{', '.join(sorted(taken))}: registered already")
        dispatcher.admit, dispatcher.default_runner = admit, runner
        dispatcher.process_limits += process_limits
        dispatcher.shares.append(share)
        dispatcher.declare(capabilities)
        dispatcher.serve(handlers)
        return dispatcher.announcer.announce

    def serve_request(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a request by its handler, without middleware and checks of scopes.

        Raises:
            ProtocolError: The request is refused.
        """
        return self._dispatcher.handle(request)
