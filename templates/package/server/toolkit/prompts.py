"""Prompts: functions that write messages for a model.

Arguments travel as text; a parameter of another type gets its value read from it.

Source: server/prompts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..._wire import is_many, is_object, to_builtins
from ...errors import InvalidParamsError
from . import docstrings, invocation, revision_types, signatures
from .client_features.input_required import InputRequired
from .content import Icon, Message, present
from .context import Context

_NO_ARGUMENTS: Mapping[str, str] = {}
_ROLES = ("user", "assistant")


class Prompt:
    """A function that writes messages for a model.

    Args:
        function: Coroutine function, or a plain one that then runs in a thread. It returns text,
            a block of content, a `Message`, or a list of these; what is no message is the user's.
        name: Its name; that of the function by default.
        title: A name for people.
        description: What it is for; the docstring's first paragraph by default.
        icons: Images for user interfaces.
        meta: `_meta` of the prompt.
        names: Further names that the annotations may use.

    Attributes:
        arguments: Names of its arguments.

    Raises:
        TypeError: The signature can't be served.
        ValueError: The name is empty.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name if name is not None else invocation.source_name(function)
        self.label = f"prompt {self.name!r}"
        if not self.name.strip():
            raise ValueError(f"{self.label}: expected a name")
        self._signature = signatures.read(function, self.label, names)
        if self._signature.open:
            raise TypeError(f"{self.label}: expected arguments with names, got **kwargs")
        self._call = invocation.caller(function)
        self.arguments = tuple(self._signature.parameters)
        self._description = description or docstrings.paragraph(inspect.getdoc(function))
        self._listed = present(
            name=self.name,
            title=title,
            description=self._description,
            arguments=[_argument(p) for p in self._signature.parameters.values()] or None,
            icons=[to_builtins(icon) for icon in icons] or None,
            _meta=dict(meta) if meta else None,
        )

    def listed(self, structured: str) -> dict[str, Any]:
        """The prompt as `prompts/list` shows it, the same whatever the revision."""
        return self._listed

    async def get(
        self,
        arguments: Mapping[str, str] | None,
        context: Context,
        shape: revision_types.PromptShape,
    ) -> Any:
        """The result of `prompts/get`, in the session's own type, or what it needs to be told.

        Raises:
            InvalidParamsError: The arguments do not fit.
        """
        try:
            bound = self._signature.bind_text(arguments or _NO_ARGUMENTS)
        except ValueError as error:
            raise InvalidParamsError(f"{self.label}: {error}") from error
        if self._signature.context is not None:
            bound[self._signature.context] = context
        value = await self._call(bound)
        if isinstance(value, InputRequired):
            return value
        items: Sequence[Any] = value if is_many(value) else [value]
        return shape.full([_message(item, self.label) for item in items], self._description)


def _argument(parameter: signatures.Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {"name": parameter.name}
    if parameter.description:
        made["description"] = parameter.description
    made["required"] = parameter.required
    return made


def _message(value: Any, label: str) -> dict[str, Any]:
    role: Any = "user"
    content = value
    if isinstance(value, Message) or _is_model_message(value):
        role, content = value.role, value.content
    elif is_object(value):
        role, content = value.get("role"), value.get("content")
    if role not in _ROLES:
        raise ValueError(f"{label}: role: expected user or assistant, got {role!r}")
    if not isinstance(content, str) and not revision_types.is_content(content):
        raise TypeError(
            f"{label}: expected text or one block of content, got {type(content).__name__}"
        )
    return {"role": role, "content": revision_types.wire_block(content)}


def _is_model_message(value: Any) -> bool:
    return (
        isinstance(value, msgspec.Struct) and hasattr(value, "role") and hasattr(value, "content")
    )
