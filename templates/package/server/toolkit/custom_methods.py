"""Methods that the specification does not have, served by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..._wire import to_builtins
from ...errors import MethodNotFoundError
from ...facts import Method
from ...protocol.capabilities import CAPABILITY
from . import invocation, signatures
from .context import Context


class CustomMethod:
    """A request of the server's own.

    Args:
        function: Takes the typed params if there are any, and a `Context` by annotation.
        name: The method on the wire.
        params: Type of the params; `None` for a method without.
        result: Type of the result; `None` for an empty one.
        taken: Names of the specification's methods.
        extension: The extension that it belongs to; `None` for none.
        names: Further names that the annotations may use.

    Attributes:
        row: Its row for the method table.

    Raises:
        TypeError: The function takes something else.
        ValueError: The name is the specification's, or starts with `rpc.`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        params: Any,
        result: Any,
        taken: Iterable[str],
        extension: str | None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        label = f"method {name!r}"
        if not name or name.startswith("rpc."):
            raise ValueError(f"{label}: expected a name that does not start with 'rpc.'")
        if name in taken:
            raise ValueError(f"{label}: the specification has it already")
        self.row = Method(
            name=name,
            kind="request",
            sender="client",
            params=params,
            params_required=params is not None,
            result=Any if result is None else result,
            capability=() if extension is None else (CAPABILITY, extension),
            items=None,
            python_name=name.replace("/", "_"),
        )
        self._extension = extension
        signature = signatures.read(function, label, names)
        parameters = list(signature.parameters)
        if len(parameters) != (params is not None):
            expected = "one parameter for the params" if params is not None else "no parameter"
            raise TypeError(f"{label}: expected {expected}, got {', '.join(parameters) or 'none'}")
        self._params = parameters[0] if parameters else None
        self._context = signature.context
        self._call = invocation.caller(function)

    async def call(self, context: Context) -> Any:
        """The result: a Struct, or a wire object.

        Raises:
            MethodNotFoundError: The client does not declare the extension that it belongs to.
        """
        if self._extension is not None and context.client_extension(self._extension) is None:
            raise MethodNotFoundError(self.row.name)
        arguments: dict[str, Any] = {}
        if self._params is not None:
            arguments[self._params] = context.exchange.params
        if self._context is not None:
            arguments[self._context] = context
        value = await self._call(arguments)
        return {} if value is None else to_builtins(value)
