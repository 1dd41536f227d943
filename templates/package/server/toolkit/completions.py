"""Completions: suggested values for arguments of prompts and variables of resource templates.

Source: server/utilities/completion.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from ...errors import InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.request_context import RequestContext
from . import signatures
from .content import expect
from .context import Context
from .dispatcher import Dispatcher
from .server import Function, ServerKernel
from .signatures import local_names

MOST_VALUES = 100
"""Most values that one result may hold."""


class Completion(msgspec.Struct, frozen=True):
    """Suggested values, and the number of further ones.

    Attributes:
        values: Best first; more than 100 are cut off.
        total: Number of all values, if known.
        has_more: Whether there are further values; computed if `None`.
    """

    values: Iterable[str]
    total: int | None = None
    has_more: bool | None = None

    def wire(self) -> dict[str, Any]:
        """The `completion` member of the result.

        Raises:
            TypeError: A value is not a string.
        """
        has_length = hasattr(self.values, "__len__")  # an iterator may be endless
        values = list(self.values if has_length else islice(self.values, MOST_VALUES + 1))
        for value in values:
            expect(value, str, "completion")
        wire: dict[str, Any] = {"values": values[:MOST_VALUES]}
        total = self.total
        if total is None and has_length:
            total = len(values)
        if total is not None:
            wire["total"] = total
        has_more = self.has_more
        if has_more is None:
            has_more = len(values) > MOST_VALUES or (total or 0) > len(wire["values"])
        wire["hasMore"] = has_more
        return wire


class Completer:
    """A function that suggests values of one argument.

    Args:
        function: Takes the text typed so far; an optional second parameter receives the other
            arguments that have a value, by name. Returns strings or a `Completion`.
        label: Its name in error texts.
        names: Further names that the annotations may use.

    Attributes:
        dependencies: The values that other functions provide for a call, if any.

    Raises:
        TypeError: The function has other parameters.
    """

    def __init__(
        self, function: Callable[..., Any], label: str, names: Mapping[str, Any] | None = None
    ) -> None:
        self.label = label
        signature = signatures.read(function, label, names)
        parameters = list(signature.parameters)
        if not 1 <= len(parameters) <= 2:
            raise TypeError(
                f"{label}: expected a function of the text and perhaps of the other arguments, "
                f"got one of {', '.join(parameters) or 'nothing'}"
            )
        self._value = parameters[0]
        self._arguments = parameters[1] if len(parameters) == 2 else None
        self._context = signature.context
        self._call = signature.call
        self.dependencies = signature.dependencies

    async def complete(
        self, value: str, others: Mapping[str, str] | None, context: Context
    ) -> dict[str, Any]:
        """The result of `completion/complete` as wire object.

        Raises:
            TypeError: The function returned something else.
        """
        arguments: dict[str, Any] = {self._value: value}
        if self._arguments is not None:
            arguments[self._arguments] = dict(others or {})
        if self._context is not None:
            arguments[self._context] = context
        completion = await self._call(**arguments)
        if not isinstance(completion, Completion):
            completion = Completion(_strings(completion, self.label))
        return {"completion": completion.wire()}


def _strings(value: Any, label: str) -> Iterable[str]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{label}: expected strings, got {type(value).__name__}")
    strings: Iterable[str] = value  # `Completion.wire` checks each
    return strings


class CompletionDecorator(ServerKernel):
    """The decorator of completions; a base of `Server`."""

    def _use_options(self, options: dict[str, Any]) -> None:
        self._dispatcher.add_item_handlers(ITEM_HANDLERS)
        super()._use_options(options)

    def completion(
        self, *, argument: str, prompt: str | None = None, template: str | None = None
    ) -> Callable[[Function], Function]:
        """Register the decorated function as the completion of an argument.

        Args:
            argument: Name of the argument or variable.
            prompt: Name of the prompt that has the argument.
            template: The URI template that has the variable, instead of a prompt.

        Raises:
            ValueError: Not exactly one of prompt and template, or (from the decorator) the argument
                has a completion already.
        """
        if (prompt is None) == (template is None):
            raise ValueError("completion: expected either prompt or template")
        kind, owner = ("prompt", prompt) if prompt is not None else ("template", template)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            label = f"completion of {kind} {owner!r}, argument {argument!r}"
            completer = Completer(function, label, names)
            dispatcher, key = self._dispatcher, (kind, str(owner), argument)
            if key in dispatcher.functions:
                raise ValueError(f"{label} is registered already")
            dispatcher.functions[key] = completer
            dispatcher.serve_items(ITEM_HANDLERS)
            return function

        return register


async def _complete(dispatcher: Dispatcher, request: RequestContext) -> Any:
    params, registries = request.params, dispatcher.registries
    uri: str | None = getattr(params.ref, "uri", None)
    kind, owner = ("prompt", params.ref.name) if uri is None else ("template", uri)
    registry = registries.prompts if uri is None else registries.templates
    item = dispatcher.permitted_item(registry, request, owner)
    if item is None:
        raise InvalidParamsError(f"unknown {kind}: {safe_repr(owner)}")
    if item.respond is not None and (response := item.respond(request)) is not None:
        return await response
    argument: str = params.argument.name
    if argument not in (item.arguments if uri is None else item.template.names):
        raise InvalidParamsError(f"{kind} {safe_repr(owner)} has no argument {safe_repr(argument)}")
    completer = dispatcher.functions.get((kind, owner, argument))
    if completer is None:
        return {"completion": {"values": []}}
    others: Any = getattr(getattr(params, "context", None), "arguments", None)
    context = dispatcher.context_of(request)
    value: str = params.argument.value
    return await dispatcher.result_of(context, completer.complete(value, others or None, context))


ITEM_HANDLERS = {"completion/complete": _complete}
"""Handlers of requests about arguments of prompts and templates, by wire name."""
