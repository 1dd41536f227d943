"""Arguments of tools as another SDK takes them: schemas, conversion and errors are pydantic's.

FastMCP validates a call of the function. The official SDK validates a model that has a field for
each parameter, and parses texts first where a parameter takes no text.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from ...errors import MissingExtraError

Parameters: TypeAlias = Sequence[inspect.Parameter]
"""Parameters whose annotations are types, not texts."""

_EMPTY = inspect.Parameter.empty


class Arguments(Protocol):
    """The arguments of a tool."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as pydantic writes it."""
        ...

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the parameters.

        Raises:
            ValueError: The arguments do not fit; the text is pydantic's.
        """
        ...


class CallArguments:
    """Arguments of a call, as FastMCP validates them.

    Args:
        function: The function, which is not called.
        parameters: Its parameters that clients see.
    """

    def __init__(self, function: Callable[..., Any], parameters: Parameters) -> None:
        pydantic = pydantic_module()
        noted = [each.replace(annotation=_noted(each.annotation)) for each in parameters]
        signature = inspect.Signature(noted)

        def collect(*values: Any, **named: Any) -> dict[str, Any]:
            return signature.bind(*values, **named).arguments  # with defaults

        made: Any = collect
        made.__name__ = made.__qualname__ = _name_of(function)
        made.__signature__ = signature
        made.__annotations__ = {
            each.name: each.annotation for each in noted if each.annotation is not _EMPTY
        }
        self._adapter = pydantic.TypeAdapter(made)

    def schema(self) -> dict[str, Any]:
        """See `Arguments`."""
        schema: dict[str, Any] = self._adapter.json_schema()
        return schema

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See `Arguments`."""
        bound: dict[str, Any] = self._adapter.validate_python(dict(arguments))
        return bound


class ModelArguments:
    """Arguments of a model, as the official SDK validates them.

    Args:
        function: The function, which is not called.
        parameters: Its parameters that clients see.
    """

    def __init__(self, function: Callable[..., Any], parameters: Parameters) -> None:
        pydantic = pydantic_module()
        self._names: dict[str, str] = {}
        fields: dict[str, Any] = {}
        for each in parameters:
            name, kind = each.name, each.annotation
            if kind is _EMPTY:
                shown = pydantic.WithJsonSchema({"title": name, "type": "string"})
                kind = typing.Annotated[Any, shown]
            field = name
            if callable(getattr(pydantic.BaseModel, name, None)):  # a method of each model
                field = f"field_{name}"
                kind = typing.Annotated[kind, pydantic.Field(alias=name)]
            self._names[field] = name
            fields[field] = (kind, ... if each.default is _EMPTY else each.default)
        self._model = pydantic.create_model(
            f"{_name_of(function)}Arguments",
            __config__=pydantic.ConfigDict(arbitrary_types_allowed=True),
            **fields,
        )
        self._texts = {
            name
            for field, name in self._names.items()
            if self._model.model_fields[field].annotation is str
        }

    def schema(self) -> dict[str, Any]:
        """See `Arguments`."""
        schema: dict[str, Any] = self._model.model_json_schema(by_alias=True)
        return schema

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See `Arguments`."""
        parsed = {name: self._parsed(name, value) for name, value in arguments.items()}
        model = self._model.model_validate(parsed)
        return {name: getattr(model, field) for field, name in self._names.items()}

    def _parsed(self, name: str, value: Any) -> Any:
        """The value of a JSON text of an array, an object or null; any other value as it is."""
        if isinstance(value, str) and name in self._names.values() and name not in self._texts:
            with suppress(ValueError):
                parsed = json.loads(value)
                return value if isinstance(parsed, str | int | float) else parsed
        return value


@functools.cache
def pydantic_module() -> Any:
    """The module `pydantic`.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module("pydantic")
    except ModuleNotFoundError as error:
        raise MissingExtraError("Server(compatibility=...)", "pydantic") from error


def _name_of(function: Callable[..., Any]) -> str:
    inner: Any = getattr(function, "func", function)  # of a `functools.partial`
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name


def _noted(annotation: Any) -> Any:
    """An annotation whose only note, a text, is a description as FastMCP reads it."""
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *notes = typing.get_args(annotation)
        if len(notes) == 1 and isinstance(notes[0], str):
            return typing.Annotated[kind, pydantic_module().Field(description=notes[0])]
    return annotation
