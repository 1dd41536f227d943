"""Validation of a server's requests, and of the results of the client's handlers.

A server may only use capabilities that the client declared, and a result must match its request.
The rules are the same for requests and for input requests inside results.

Source: client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

from .._wire import Raw, ValidationError, convert, error_text, replace, to_builtins
from ..errors import INVALID_PARAMS, LocalProtocolError, RemoteProtocolError
from ..facts import Method
from ..foreign_text import url_complaint
from ..protocol.client_features import (
    content_complaint,
    message_complaint,
    messages_complaint,
    root_complaint,
)
from ..protocol.lifecycle import missing_capability
from ..protocol.request_meta import recast
from ..runtime.request_context import RequestContext
from .server_state import Elicitations

Handler: TypeAlias = Callable[[Any, RequestContext], Awaitable[Any]]

ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


async def answer(
    handler: Handler,
    context: RequestContext,
    capabilities: Mapping[str, Any],
    elicitations: Elicitations,
    schemes: Collection[str],
) -> Any:
    """Validate a request, call its handler, and validate the handler's result.

    Args:
        handler: The user's handler.
        context: The request.
        capabilities: The capabilities that the client declared.
        elicitations: The pending URL mode elicitations; a new elicitation is added.
        schemes: URL schemes that the user may be asked to open.

    Returns:
        The handler's result, without content that must not be sent.

    Raises:
        RemoteProtocolError: The server must not send this request (-32602).
        LocalProtocolError: The handler's result breaks a rule.
    """
    method = context.method
    checks = _CHECKS.get(method.name)
    if checks is None:
        return await handler(context.params, context)
    params: Any = to_builtins(context.params) if context.params is not None else {}
    path = missing_capability(method, params, capabilities)
    wrong = f"this client did not declare {'.'.join(path)}" if path else checks[0](params)
    if method.name == ELICITATION and "url" in params and not wrong:
        wrong = url_complaint(params["url"], schemes)
        wrong = f"url: {wrong}" if wrong else None
    if wrong:
        raise RemoteProtocolError(f"{method.name}: {wrong}", code=INVALID_PARAMS)
    elicitations.add(params.get("elicitationId"))
    returned = await handler(_with_defaults(method, context.params, params), context)
    if isinstance(returned, Raw):  # a gateway forwards the result of another client
        return returned
    try:
        typed = recast(returned, method.result)
    except ValidationError as error:
        raise LocalProtocolError(f"{method.name}: answer: {error_text(error)}") from None
    result: Mapping[str, Any] = to_builtins(typed)
    wrong = checks[1](params, result)
    if wrong:
        raise LocalProtocolError(f"{method.name}: {wrong}")
    if _has_unsolicited_content(params, result):
        typed = replace(typed, content=None)
    return typed


def _with_defaults(method: Method, params: Any, wire: Mapping[str, Any]) -> Any:
    """Typed params of a sampling request, with defaults for absent members."""
    if method.name != SAMPLING or "tools" not in method.wire_names.values():
        return params
    members = {"includeContext": "none", **wire}
    if "tools" in wire:
        members["toolChoice"] = {"mode": "auto", **wire.get("toolChoice", {})}
    return convert(members, method.params)


def _has_unsolicited_content(params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether the result of an elicitation has content without an accepted form."""
    return (
        "content" in result
        and "action" in result
        and (result["action"] != "accept" or "requestedSchema" not in params)
    )


def _elicitation_complaint(params: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    if result.get("action") != "accept" or "requestedSchema" not in params:
        return None
    wrong = content_complaint(params["requestedSchema"], result.get("content", {}))
    return f"content: {wrong}" if wrong else None


def _messages_complaint(params: Mapping[str, Any]) -> str | None:
    return messages_complaint(params["messages"])


def _sampling_complaint(params: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    return message_complaint(result) if "content" in result else None


def _roots_complaint(params: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    for at, root in enumerate(result["roots"]):
        if wrong := root_complaint(root["uri"]):
            return f"roots[{at}].uri: {wrong}"
    return None


def _no_complaint(params: Mapping[str, Any]) -> str | None:
    return None


_CHECKS: Mapping[
    str,
    tuple[
        Callable[[Mapping[str, Any]], str | None],
        Callable[[Mapping[str, Any], Mapping[str, Any]], str | None],
    ],
] = {
    ELICITATION: (_no_complaint, _elicitation_complaint),
    SAMPLING: (_messages_complaint, _sampling_complaint),
    ROOTS: (_no_complaint, _roots_complaint),
}
"""By method: the check of the params, and the check of the params and the result."""
