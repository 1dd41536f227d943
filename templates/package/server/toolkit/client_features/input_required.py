"""Asking the client for input by a result, where a revision works that way.

Either a handler asks through its `Context`, and is left until the answer is there, or it returns
`InputRequired` itself. The client gathers the answers and sends the request again.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Union

from ...._wire import to_builtins
from ....errors import InternalError, MissingCapabilityError
from ....protocol.capabilities import missing
from ....runtime.request_context import RequestContext


class Left(BaseException):
    """Leaves a handler that asked what the client has not answered yet; never to be caught.

    It is no `Exception`, so that a handler's own `except Exception` lets it pass.
    """


class InputRequired:
    """A result that is not the last word: the client is to send the request again with answers.

    The answers are `Context.input_responses` then, and the state is `Context.request_state`: the
    toolkit signs it, so what comes back is what was given. A client can read it.

    Args:
        requests: What to ask, by a key of the handler's choice: `{"method": ..., "params": ...}`.
        state: Text to get back with the answers.

    Raises:
        ValueError: Neither of the two, or an entry of another form.
    """

    def __init__(
        self, requests: Mapping[str, Mapping[str, Any]] | None = None, state: str | None = None
    ) -> None:
        if not requests and state is None:
            raise ValueError("expected input requests, a state, or both; got neither")
        for key, request in (requests or {}).items():
            if "method" not in request or set(request) - {"method", "params"}:
                raise ValueError(
                    f"input request {key!r}: expected method and params, got {dict(request)!r}"
                )
        self.requests: dict[str, Any] = to_builtins(requests or {})
        self.state = state

    def check(self, exchange: RequestContext) -> None:
        """Hold it against the request that it is to be the result of.

        Raises:
            InternalError: The request's revision has no such result for its method, or no such
                request to ask with.
            MissingCapabilityError: The client did not declare that it can be asked this.
        """
        method, revision = exchange.method.name, exchange.revision
        if not revision.facts.method(method).input_required:
            raise InternalError(f"{method} can't ask for input in {revision.name}")
        for request in self.requests.values():
            asked = revision.input_requests.get(request["method"])
            if asked is None:
                raise InternalError(f"{request['method']} is no input request in {revision.name}")
            path = missing(asked, request.get("params"), exchange.peer_capabilities)
            if path is not None:
                raise MissingCapabilityError(path, asked.name)


def without_input_required(annotation: Any) -> Any:
    """What a return annotation says of final results; `Any` if it says nothing of them."""
    if annotation is InputRequired:
        return Any
    if typing.get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not InputRequired]
        return Union[tuple(parts)]  # noqa: UP007 - the members are known at run time only
    return annotation
