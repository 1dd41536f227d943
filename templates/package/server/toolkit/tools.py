"""Tools: functions that a model may call.

Source: server/tools.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache, cached_property
from typing import Any, Literal, Protocol, TypeAlias

import anyio
import msgspec

from ..._wire import encode
from ...errors import InvalidParamsError, ProtocolError, ToolError
from ...json_schema import WRAPPER
from . import signatures
from .content import UnfinishedResult, as_tool_result, check_json, expect, present_members
from .context import Context
from .output_conversion import ContentResultBuilder, Output, ToolResultBuilder, from_annotation
from .registry import Respond

SchemaForm: TypeAlias = Literal["inline", "refs"]
"""Whether listed schemas have definitions in place of references, or references to `$defs`."""

ForbiddenItems: TypeAlias = Literal["listed", "hidden"]
"""The treatment of items whose scopes a principal lacks."""

_NAME = r"[A-Za-z0-9_.\-]{1,128}"
_NO_ARGUMENTS: Mapping[str, Any] = {}
_logger = logging.getLogger(__name__)


class ToolRunner(Protocol):
    """Runs the calls of a tool elsewhere than in the tasks of their requests."""

    @property
    def tool_members(self) -> Mapping[str, Any]:
        """Members of the wire object of the tool."""
        ...

    def run(self, context: Context, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The response to a call; `call` is awaited or closed. Raises errors that refuse it."""
        ...


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one server, as arguments of `ServerKernel`; `info` is its `Implementation`.

    Raises:
        TypeError: A text is none.
        ValueError: The name is empty, a value has no JSON form, or a limit is not positive.
    """

    info: Mapping[str, Any]
    instructions: str | None
    page_size: int | None
    list_changed: bool
    logging: bool
    coerce: bool
    additional_properties: Literal[False] | None
    schemas: SchemaForm
    show_errors: bool
    capabilities: Mapping[str, Any]
    forbidden_items: ForbiddenItems = "listed"

    def __post_init__(self) -> None:
        described = present_members(**self.info, instructions=self.instructions)
        for name, value in described.items():
            if name != "icons":
                expect(value, str, name)
        check_json({**described, "capabilities": self.capabilities}, "Server")
        if not self.info["name"]:
            raise ValueError("name: expected a server's name, got an empty string")
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size: expected at least 1, got {self.page_size}")
        if self.schemas not in ("inline", "refs"):
            raise ValueError(f"schemas: expected inline or refs, got {self.schemas!r}")


class Tool:
    """A function that a model may call.

    Args:
        function: Coroutine function, or a plain function, which runs in a worker thread.
        settings: Those of the server.
        members: Further members of the wire object, such as `title`.
        names: Further names that the annotations may use.
        runner: Runs the calls; `None` for the tasks of the requests.

    `ServerKernel.tool` describes the other options.

    Attributes:
        schema: JSON Schema of the arguments.
        param_headers: HTTP headers that repeat arguments, by the path of the argument; none if the
            revisions have no such headers.
        scopes: Scopes that a call needs.
        tags: Names for groups of items.
        respond: `None`: the server handles the requests about it.
        dependencies: The values that other functions provide for a call, if any.
        signature: Parameters and return type of the function.
        function: A coroutine function that gives the value of a call.

    Raises:
        TypeError: The signature can't be served.
        ValueError: The name, a schema or the timeout is invalid.
    """

    check_output: Callable[[Any], Awaitable[None]] | None = None
    """Validates a structured value against a schema of the user, if there is one."""

    def __init__(
        self,
        function: Callable[..., Any],
        settings: ServerSettings,
        *,
        name: str | None,
        members: Mapping[str, Any],
        structured: bool,
        names: Mapping[str, Any] | None,
        timeout: float | None = None,
        threads: bool = True,
        runner: ToolRunner | None = None,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.runner = runner
        self.param_headers: Mapping[tuple[str, ...], str] = {}
        self.name = name if name is not None else signatures.source_name(function)
        self.label = f"tool {self.name!r}"
        check_tool_name(self.name, self.label)
        self.signature = signatures.read(function, self.label, names, threads=threads)
        self.dependencies = self.signature.dependencies
        self.function: Callable[..., Awaitable[Any]] = self.signature.call
        if timeout is not None:
            self.function = _limit_time(self.function, self.label, timeout)
        self._settings = settings
        self._coerce = settings.coerce
        self.schema = self._input_schema()
        self._output = self._output_of(structured)
        self._wire = present_members(
            name=self.name,
            inputSchema=self._listed(self.schema),
            outputSchema=None if self._output.schema is None else self._listed(self._output.schema),
            **{"description": self.signature.description, **members},
        )

    @cached_property
    def secret_names(self) -> frozenset[str]:
        """Names of arguments, and of members in these, that the schema declares secret."""
        from .argument_errors import secret_members  # for traces and errors only

        return secret_members(self._wire["inputSchema"])

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The tool in `tools/list`, in its newest form.

        Args:
            structured_content: What the revision allows as `structuredContent`; an output schema
                that needs more is left out.
        """
        schema = self._output.schema
        if schema is None or structured_content == "any" or schema.get("type") == "object":
            return self._wire
        return {name: value for name, value in self._wire.items() if name != "outputSchema"}

    def call(
        self, arguments: Mapping[str, Any] | None, context: Context, results: ToolResultBuilder
    ) -> Coroutine[Any, Any, Any]:
        """The result of a call in the revision's own type, or the unfinished one of the function.

        Raises:
            InvalidParamsError: (from the coroutine) The arguments do not fit, and the revision
                reports that by an error.
            ProtocolError: (from the coroutine) The tool raised it.
        """
        arguments, signature = arguments or _NO_ARGUMENTS, self.signature
        try:
            bound = signature.bind(arguments, coerce=self._coerce)
        except ValueError as error:
            return self._refuse(str(error), arguments, context, results)
        if signature.context is not None:
            bound[signature.context] = context
        return self._run(bound, results)

    async def _run(self, bound: Mapping[str, Any], results: ToolResultBuilder) -> Any:
        """The result of a call with bound arguments; the plainest results are built at once."""
        output = self._output
        try:
            value = await self.function(**bound)
            kind: Any = value.__class__
            if kind is str:
                if output.form == "text":
                    return results.text(value, {WRAPPER: value})
                if output.schema is None:
                    return results.text(value)
            elif (
                output.form == "object"
                and kind is dict
                and isinstance(results, ContentResultBuilder)
            ):
                plain = output.validated(value)
                return results.text(encode(plain).decode(), plain)
            if isinstance(value, UnfinishedResult):
                return value
            whole = as_tool_result(value)
            is_error = whole is not None and whole.is_error
            content, structured, meta = output.results(value if whole is None else whole)
            if self.check_output is not None and not is_error:
                await self.check_output(structured)
            return results.full(content, structured, meta, is_error=is_error)
        except ToolError as error:
            return results.failure(str(error))
        except ProtocolError:
            raise
        except Exception as error:
            _logger.exception("%s failed", self.label)
            if self._settings.show_errors:
                return results.failure(str(error))
            _warn_of_hidden_text()
            return results.failure(f"{self.label} failed")

    async def _refuse(
        self,
        text: str,
        arguments: Mapping[str, Any],
        context: Context,
        results: ToolResultBuilder,
    ) -> Any:
        """Report arguments that do not fit, by a result or an error, as the revision does."""
        if self.secret_names:
            from .argument_errors import without_values

            text = without_values(text, arguments, self.secret_names)
        text = f"{self.label}: {text}"
        if context.request_context.revision.facts.behaviour.bad_tool_arguments == "error":
            raise InvalidParamsError(text)
        return results.failure(text)

    def _input_schema(self) -> Mapping[str, Any]:
        if self.signature.open:
            raise TypeError(f"{self.label}: **kwargs needs an input_schema")
        return {**self.signature.schema(), **self._closed}

    @property
    def _closed(self) -> Mapping[str, Any]:
        """The keyword of schemas that refuse other arguments, if the server lists it."""
        value = self._settings.additional_properties
        return {} if value is None else {"additionalProperties": value}

    def _output_of(self, structured: bool) -> Output:
        if not structured:
            return Output("unstructured")
        return from_annotation(self.signature.returns, self.label)

    def _listed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema as it is listed: definitions are inlined unless the server lists references."""
        if self._settings.schemas == "refs" or "$defs" not in schema:
            return schema
        from ...json_schema.inlining import inline_references  # few schemas have definitions

        return inline_references(schema)


@cache
def _warn_of_hidden_text() -> None:
    """Warn, once in a process, that clients do not get the text of an unexpected exception."""
    _logger.warning(
        "the text of an exception is hidden from clients: raise ToolError for texts that clients"
        " may see, or write Server(show_errors=True)"
    )


def check_tool_name(name: str, label: str) -> None:
    """Raise a `ValueError` if a name is too long or has other characters."""
    if not re.fullmatch(_NAME, name):
        raise ValueError(f"{label}: expected a name of 1 to 128 letters, digits, '_', '-' and '.'")


def _limit_time(
    call: Callable[..., Awaitable[Any]], label: str, seconds: float
) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that cancels another one after some seconds."""
    if not seconds > 0:
        raise ValueError(f"{label}: timeout: expected more than 0 seconds, got {seconds}")

    async def call_in_time(**arguments: Any) -> Any:
        with anyio.move_on_after(seconds):
            return await call(**arguments)
        raise ToolError(f"{label} timed out after {seconds:g} seconds")

    return call_in_time
