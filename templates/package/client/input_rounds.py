"""Multi round-trip requests: the input that a server asks for inside a result.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

from typing import Any

from .._wire import to_builtins
from ..errors import RemoteProtocolError
from ..protocol.lifecycle import is_declared
from ..runtime.request_context import RequestContext
from .pipeline import RequestOptions, RequestPipeline


class InputRounds(RequestPipeline):
    """Sends the input that a server asks for, until the server returns a result."""

    async def _finish(self, options: RequestOptions, params: Any, result: Any) -> Any:
        if hasattr(result, "input_requests"):
            options.had_input = True
            result = await provide_input(self, options, params, result)
        return await super()._finish(options, params, result)


async def provide_input(
    requests: RequestPipeline, options: RequestOptions, params: Any, result: Any
) -> Any:
    """Send the input that a result asks for, until there is another result.

    Raises:
        RemoteProtocolError: The server asked too often, or for what the client does not support.
    """
    method, rounds = options.method, requests.application.settings.limits.input_rounds
    for _ in range(rounds):
        again: dict[str, Any] = to_builtins(params)
        if result.input_requests is None and result.request_state is None:
            raise RemoteProtocolError(f"{method}: the server asked for input, but not for what")
        if result.input_requests is not None:
            again["inputResponses"] = {
                key: await input_response(requests, method, input_request)
                for key, input_request in result.input_requests.items()
            }
        if result.request_state is not None:
            again["requestState"] = result.request_state
        result = await requests.send_with(options, again)
        if not hasattr(result, "input_requests"):
            return result
    raise RemoteProtocolError(f"{method}: the server asked for input {rounds} times")


async def input_response(requests: RequestPipeline, method: str, input_request: Any) -> Any:
    """The response of the client's handler to a request for input."""
    session = requests.session
    row = session.revision.input_requests[to_builtins(input_request)["method"]]
    if not is_declared(session.own_capabilities, row.capability):
        path = ".".join(row.capability)
        raise RemoteProtocolError(
            f"{method}: the server asked for {row.name}, but this client has no {path}"
        )
    context = RequestContext(
        requests.peer.callers,
        row,
        getattr(input_request, "params", None),
        None,
        {},
        session.revision,
        None,
        session.peer_info,
        session.peer_capabilities,
    )
    return to_builtins(await requests.application.handle(context))
