"""Asking the client for input by a result, where a revision works that way.

A handler returns `InputRequired`; the client gathers the answers and sends the request again,
with `ctx.input_responses` and `ctx.request_state`. The state comes back through the client's
hands: what matters in it has to be signed by the handler.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._wire import to_builtins
from ..core.lifecycle import declared
from ..errors import InternalError, MissingCapabilityError
from ..exchange import Exchange

_ELICITATION = "elicitation/create"


class InputRequired:
    """A result that is not the last word: the client is to send the request again with answers.

    Args:
        requests: What to ask, by a key of the handler's choice: `{"method": ..., "params": ...}`.
        state: Opaque text that the client gives back unread.

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
        self.requests = dict(requests or {})
        self.state = state

    def result(self, exchange: Exchange) -> dict[str, Any]:
        """The result on the wire.

        Raises:
            InternalError: The request's revision has no such result for its method, or no such
                request to ask with.
            MissingCapabilityError: The client did not declare that it can be asked this.
        """
        method, revision = exchange.method.name, exchange.revision
        if method not in revision.facts.input_required:
            raise InternalError(f"{method} can't ask for input in {revision.name}")
        for request in self.requests.values():
            asked = revision.input_requests.get(request["method"])
            if asked is None:
                raise InternalError(f"{request['method']} is no input request in {revision.name}")
            path = asked.capability
            if asked.name == _ELICITATION:
                params: Mapping[str, Any] = request.get("params") or {}
                path = (*path, params.get("mode", "form"))
            if not _can_answer(exchange.peer_capabilities, path):
                raise MissingCapabilityError(path, asked.name)
        made: dict[str, Any] = {"resultType": "input_required"}
        if self.requests:
            made["inputRequests"] = to_builtins(self.requests)
        if self.state is not None:
            made["requestState"] = self.state
        return made


def _can_answer(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """`elicitation: {}` means forms alone."""
    if path == ("elicitation", "form") and capabilities.get("elicitation") == {}:
        return True
    return declared(capabilities, path)
