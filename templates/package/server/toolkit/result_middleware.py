"""Middleware on results: a cache of results, and a limit of the size of tools' results."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any

from ..._wire import UNSET, encode, replace, to_builtins
from ...errors import ToolError
from .middleware import MiddlewareFunction, MiddlewareRequest, Next
from .registry import checked_tags

KEPT_RESULTS = 1_000
"""Most results that `cache_results` keeps by default; the oldest are dropped first."""

_USES = frozenset({"tools/call", "resources/read", "prompts/get"})
_OF_ONE_REQUEST = ("_meta", "inputResponses", "requestState")


def cache_results(
    seconds: float,
    targets: Collection[str],
    *,
    size: int = KEPT_RESULTS,
    clock: Callable[[], float] = time.monotonic,
) -> MiddlewareFunction:
    """Middleware that keeps results of tools, prompts and resources, and returns them again.

        server.middleware(cache_results(60, ["forecast", "city://oslo/now"]))

    Another request of the same method, params, revision and principal gets the kept result. Errors
    and questions to the client are not kept. Other dependencies of a function, such as a session or
    a header field, are not considered.

    Args:
        seconds: How long a result is kept.
        targets: Names of tools and prompts, and URIs of resources.
        size: Most results that are kept.
        clock: The time in seconds.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: A number is not positive.
    """
    if not seconds > 0 or size < 1:
        raise ValueError(f"expected positive numbers, got {size} results for {seconds} seconds")
    kept: OrderedDict[bytes, tuple[float, Any]] = OrderedDict()
    names = checked_tags(targets, "targets")

    async def middleware(request: MiddlewareRequest, next: Next) -> Any:
        if request.method not in _USES or request.target not in names or _continues(request):
            return await next(request)
        key, now = _key(request), clock()
        until, result = kept.get(key, (now, None))
        if now < until:
            return result
        result = await next(request)
        if _is_complete(result):
            kept[key] = now + seconds, result
            kept.move_to_end(key)
            if len(kept) > size:
                kept.popitem(last=False)
        return result

    return middleware


def limit_results(characters: int, tools: Collection[str] | None = None) -> MiddlewareFunction:
    """Middleware that cuts long texts of tools' results.

        server.middleware(limit_results(20_000))

    A text beyond the limit is cut, with a note at its end. A result whose structured value is too
    long becomes an error that asks the model for a smaller request: a cut value breaks its schema.

    Args:
        characters: Most characters of the texts of a result together.
        tools: Names of the tools; all by default.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: Less than one character.
    """
    if characters < 1:
        raise ValueError(f"characters: expected at least 1, got {characters}")
    names = None if tools is None else checked_tags(tools, "tools")

    async def middleware(request: MiddlewareRequest, next: Next) -> Any:
        result = await next(request)
        if request.method != "tools/call" or (names is not None and request.target not in names):
            return result
        structured = getattr(result, "structured_content", None)
        has_value = structured is not None and structured is not UNSET
        if has_value and (length := len(encode(structured))) > characters:
            raise ToolError(
                f"the result has {length:,} characters, more than {characters:,}: ask for less"
            )
        return _cut(result, characters)

    return middleware


def _cut(result: Any, characters: int) -> Any:
    """A result whose texts are cut to a number of characters together."""
    content: list[Any] = []
    left, is_cut = characters, False
    for block in getattr(result, "content", ()):
        text = getattr(block, "text", None)
        if isinstance(text, str) and len(text) > left:
            text = f"{text[:left]}\n[cut: {left:,} of {len(text):,} characters]"
            block, is_cut, left = replace(block, text=text), True, 0
        elif isinstance(text, str):
            left -= len(text)
        content.append(block)
    return replace(result, content=content) if is_cut else result


def _continues(request: MiddlewareRequest) -> bool:
    """Whether a request answers questions of an earlier one."""
    return getattr(request.params, "request_state", None) is not None


def _key(request: MiddlewareRequest) -> bytes:
    """Bytes that are equal for requests with the same result."""
    params: dict[str, Any] = to_builtins(request.params)
    rest = {name: value for name, value in params.items() if name not in _OF_ONE_REQUEST}
    principal = request.principal
    owner = None if principal.is_anonymous else [*principal.identity, sorted(principal.scopes)]
    return encode([request.method, request.revision, owner, rest])


def _is_complete(result: Any) -> bool:
    """Whether a result is a complete success: no error, no request for input, no task."""
    if getattr(result, "result_type", None) not in (None, "complete"):
        return False
    members = ("content", "contents", "messages")
    has_value = any(getattr(result, name, None) is not None for name in members)
    return has_value and not getattr(result, "is_error", False)
