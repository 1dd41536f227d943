"""Handlers that extensions and tasks add to a server for requests of their own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from ...protocol.lifecycle import Admit
from ...runtime.request_context import RequestContext
from .. import serving
from .dispatcher import Announce, Handler
from .hosting import Hosting
from .tools import ToolRunner


class RequestHosting(Hosting):
    """The methods that serve further requests; a base of `Server`."""

    def handle_requests(
        self,
        handlers: Mapping[str, Handler],
        admit: Admit,
        process_limits: Sequence[serving.ProcessLimit],
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
