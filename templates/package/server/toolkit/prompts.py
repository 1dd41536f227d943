"""Prompts: functions that write messages for a model; suggested values for their arguments.

Arguments are strings on the wire; they are converted to the types of the parameters. Functions
suggest values for arguments of prompts and of resource templates.

Source: server/prompts, server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from ..._wire import encode, is_many, is_object
from ...errors import InvalidParamsError
from . import signatures
from .content import Message, expect, is_content, is_model, present, wire_block
from .context import Context
from .features import InputRequired
from .output_conversion import PromptResultBuilder
from .registry import Respond

_NO_ARGUMENTS: Mapping[str, str] = {}
_ROLES = ("user", "assistant")
_JSON_TYPES = frozenset({"array", "object"})


class Prompt:
    """A function that writes messages for a model.

    Args:
        function: Coroutine function, or a plain function, which runs in a worker thread. It
            returns text, a content block, a `Message`, or a list of these; text and blocks become
            user messages.
        name: Its name; that of the function by default.
        members: Further members of the wire object, such as `title`.
        names: Further names that the annotations may use.

    Attributes:
        arguments: Names of the arguments.
        scopes: Scopes that it needs.
        tags: Names for groups of items.
        respond: `None`: the server handles the requests about it.
        dependencies: What other functions provide for a call, if anything.

    Raises:
        TypeError: The signature can't be served.
        ValueError: The name is empty.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        members: Mapping[str, Any],
        names: Mapping[str, Any] | None,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.name = name if name is not None else signatures.source_name(function)
        self.label = f"prompt {self.name!r}"
        if not self.name.strip():
            raise ValueError(f"{self.label}: expected a name")
        self._signature = signatures.read(function, self.label, names)
        self.dependencies = self._signature.dependencies
        if self._signature.open:
            raise TypeError(f"{self.label}: expected arguments with names, got **kwargs")
        self.arguments = tuple(self._signature.parameters)
        self._wire = present(
            name=self.name,
            arguments=[_argument(p) for p in self._signature.parameters.values()] or None,
            **{"description": self._signature.description, **members},
        )

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The prompt in `prompts/list`, in its newest form."""
        return self._wire

    async def get(
        self, arguments: Mapping[str, str] | None, context: Context, results: PromptResultBuilder
    ) -> Any:
        """The result of `prompts/get` in the revision's type, or the function's `InputRequired`.

        Raises:
            InvalidParamsError: The arguments do not fit.
        """
        try:
            bound = self._signature.bind_strings(arguments or _NO_ARGUMENTS, context)
        except ValueError as error:
            raise InvalidParamsError(f"{self.label}: {error}") from error
        value = await self._signature.call(**bound)
        if isinstance(value, InputRequired):
            return value
        description, meta = self._wire.get("description"), None
        if is_model(value, "messages"):
            description, meta = value.description or description, value.meta
            value = value.messages
        items: Sequence[Any] = value if is_many(value) else [value]
        messages = [_message(item, self.label) for item in items]
        return results.full(messages, description, meta)


def _argument(parameter: signatures.Parameter) -> dict[str, Any]:
    argument: dict[str, Any] = {"name": parameter.name}
    kinds = parameter.json_types()
    form = ""
    if kinds and kinds <= _JSON_TYPES:  # the schema of a prompt can't say what it is
        form = f"JSON: {encode(parameter.type.schema()).decode()}"
    if parameter.description or form:
        argument["description"] = " ".join(filter(None, (parameter.description, form)))
    argument["required"] = parameter.required
    return argument


def _message(value: Any, label: str) -> dict[str, Any]:
    role: Any = "user"
    content = value
    if isinstance(value, Message) or is_model(value, "role", "content"):
        role, content = value.role, value.content
    elif is_object(value):
        role, content = value.get("role"), value.get("content")
    if role not in _ROLES:
        raise ValueError(f"{label}: role: expected user or assistant, got {role!r}")
    if not isinstance(content, str) and not is_content(content):
        raise TypeError(
            f"{label}: expected text or one block of content, got {type(content).__name__}"
        )
    return {"role": role, "content": wire_block(content)}


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
        dependencies: What other functions provide for a call, if anything.

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
            arguments[self._arguments] = dict(others or _NO_ARGUMENTS)
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
