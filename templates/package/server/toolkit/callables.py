"""Functions that users pass: their names and annotations, and `Depends`."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union

import msgspec

from .context import Context


class Dependency(msgspec.Struct, frozen=True):
    """What `Depends` returns.

    Attributes:
        function: Provides the value.

    Raises:
        TypeError: Not callable.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"Depends: expected a function, got {self.function!r}")


def Depends(function: Callable[..., Any]) -> Any:  # noqa: N802 - annotations name it like a class
    """In `Annotated[Db, Depends(open_db)]`: a function provides the value of the parameter.

    `db: Db = Depends(open_db)` says the same.

    The parameter is not part of the schema. The function is called once per call, however many
    parameters need its value, and may take a `Context` and dependencies of its own. What it opens
    is closed at the end of the call, if it is a generator, a function decorated by
    `contextlib.contextmanager` or `asynccontextmanager`, a function with the return annotation
    `AbstractContextManager[...]` or `AbstractAsyncContextManager[...]`, or a class of context
    managers; the value is what the context manager yields. Any other value is passed as it is. A
    plain function runs in a worker thread.

    Args:
        function: Provides the value.

    Raises:
        TypeError: Not callable.
    """
    return Dependency(function)


def source_name(function: Callable[..., Any]) -> str:
    """The name in the function's definition, or that of its class."""
    inner: Any = getattr(function, "func", function)
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a call of a function, or of an object with `__call__`, gives a coroutine."""
    kind: Any = type(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(kind.__call__)


def resolved_hints(
    function: Callable[..., Any], label: str, names: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The annotations of a function, those that are text resolved.

    Raises:
        TypeError: An annotation can't be resolved.
    """
    annotated: Any = function
    if "<locals>" not in getattr(function, "__qualname__", "<locals>"):
        names = None  # defined in a module: local names of whoever registers it mean other things
    if not isinstance(function, types.FunctionType | types.MethodType | type):
        annotated = getattr(function, "func", None) or type(function).__call__
    try:
        return typing.get_type_hints(annotated, localns=dict(names or {}), include_extras=True)
    except NameError as error:
        raise TypeError(f"{label}: annotation can't be resolved: {error}") from error
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from error


def local_names(frame: types.FrameType | None) -> Mapping[str, Any] | None:
    """The local names where the function of a frame was called; `None` at the top of a module.

    Methods of the toolkit that call each other are passed over.
    """
    caller = None if frame is None else frame.f_back
    while caller is not None and caller.f_globals.get("__package__") == __package__:
        caller = caller.f_back
    if caller is None or caller.f_locals is caller.f_globals:
        return None
    return dict(caller.f_locals)


def is_context(annotation: Any) -> bool:
    """Whether an annotation is `Context`, perhaps in a union."""
    if typing.get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(is_context(part) for part in typing.get_args(annotation))
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Context)
