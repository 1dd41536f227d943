"""Tools: functions that a model may call.

Source: server/tools.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Literal, Protocol, TypeAlias

import anyio

from ..._wire import encode, is_object
from ...errors import InvalidParamsError, ProtocolError, ToolError
from ...json_schema import WRAPPER, CheckedSchema, Complaint, Deadline
from . import output_conversion, signatures
from .content import UnfinishedResult, as_tool_result, present_members
from .context import Context
from .output_conversion import ContentResultBuilder, ToolResultBuilder
from .registry import Respond

FromSignature: TypeAlias = Literal["from signature"]
FROM_SIGNATURE: FromSignature = "from signature"

SchemaForm: TypeAlias = Literal["inline", "refs"]
"""Whether listed schemas have definitions in place of references, or references to `$defs`."""

_NAME = r"[A-Za-z0-9_.\-]{1,128}"
_ADDITIONAL = "additionalProperties"
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


class Tool:
    """A function that a model may call.

    Args:
        function: Coroutine function, or a plain function, which runs in a worker thread.
        members: Further members of the wire object, such as `title`.
        names: Further names that the annotations may use.
        output_schema: JSON Schema of the structured result, or `None` for none.

    `Decorators.tool` describes the other options, `ServerSettings` those of the whole server.

    Attributes:
        schema: JSON Schema of the arguments.
        param_headers: HTTP headers that repeat arguments, by the path of the argument; none if the
            revisions have no such headers.
        scopes: Scopes that a call needs.
        tags: Names for groups of items.
        respond: `None`: the server handles the requests about it.
        dependencies: The values that other functions provide for a call, if any.
        coerce: As passed.
        runner: Runs the calls; `None` for the tasks of the requests.
        signature: Parameters and return type of the function.
        function: A coroutine function that gives the value of a call.

    Raises:
        TypeError: The signature can't be served.
        ValueError: The name, a schema or the timeout is invalid.
        MissingExtraError: A schema was given and `jsonschema` is not installed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        members: Mapping[str, Any],
        input_schema: Mapping[str, Any] | None,
        output_schema: Mapping[str, Any] | FromSignature | None,
        structured: bool,
        names: Mapping[str, Any] | None,
        coerce: bool,
        additional_properties: Literal[False] | None = None,
        schemas: SchemaForm = "inline",
        show_errors: bool,
        validation_seconds: float,
        timeout: float | None = None,
        threads: bool = True,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.runner: ToolRunner | None = None
        self.param_headers: Mapping[tuple[str, ...], str] = {}
        self.name = name if name is not None else signatures.source_name(function)
        self.label = f"tool {self.name!r}"
        check_tool_name(self.name, self.label)
        self.signature = signatures.read(function, self.label, names, threads=threads)
        self.dependencies = self.signature.dependencies
        self.function: Callable[..., Awaitable[Any]] = self.signature.call
        if timeout is not None:
            self.function = _limit_time(self.function, self.label, timeout)
        self._input_complaint: Complaint | None = None
        self.coerce = coerce
        self._show_errors = show_errors
        self._validation_seconds = validation_seconds
        schema = self._input_schema(input_schema, additional_properties)
        self.schema = schema
        self._output = self._output_of(output_schema, structured)
        own_output = None if isinstance(output_schema, str) else output_schema
        self._wire = present_members(
            name=self.name,
            inputSchema=_inline_definitions(schema, input_schema, schemas),
            outputSchema=_inline_definitions(self._output.schema, own_output, schemas),
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
        if self._input_complaint is not None:
            return self._call_validated(arguments, context, results, self._input_complaint)
        try:
            bound = signature.bind(arguments, coerce=self.coerce)
        except ValueError as error:
            return self._refuse(error, arguments, context, results)
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
            if output.complaint is not None and not is_error:
                await output.check(structured, self._deadline())
            return results.full(content, structured, meta, is_error=is_error)
        except ToolError as error:
            return results.failure(str(error))
        except ProtocolError:
            raise
        except Exception as error:
            _logger.exception("%s failed", self.label)
            if self._show_errors:
                return results.failure(str(error))
            _warn_of_hidden_text()
            return results.failure(f"{self.label} failed")

    async def _refuse(
        self,
        error: ValueError,
        arguments: Mapping[str, Any],
        context: Context,
        results: ToolResultBuilder,
    ) -> Any:
        """Report arguments that do not fit, by a result or an error, as the revision does."""
        text = str(error)
        if self.secret_names:
            from .argument_errors import without_values

            text = without_values(text, arguments, self.secret_names)
        text = f"{self.label}: {text}"
        if context.request_context.revision.facts.behaviour.bad_tool_arguments == "error":
            raise InvalidParamsError(text)
        return results.failure(text)

    async def _call_validated(
        self,
        arguments: Mapping[str, Any],
        context: Context,
        results: ToolResultBuilder,
        complaint: Complaint,
    ) -> Any:
        """The result of a call whose arguments are validated against the user-defined schema."""
        from ...json_schema.checks import complaint_in_time  # loaded already

        try:
            complaint_text = await complaint_in_time(complaint, arguments, self._deadline())
        except ValueError as error:
            complaint_text = str(error)
        if complaint_text:
            return await self._refuse(ValueError(complaint_text), arguments, context, results)
        bound = dict(arguments)
        if self.signature.context is not None:
            bound[self.signature.context] = context
        return await self._run(bound, results)

    def _deadline(self) -> Deadline:
        return Deadline.after(self._validation_seconds, "validation_seconds of the server")

    def _input_schema(
        self, schema: Mapping[str, Any] | None, additional_properties: Literal[False] | None
    ) -> Mapping[str, Any]:
        signature = self.signature
        closed = {} if additional_properties is None else {_ADDITIONAL: additional_properties}
        if schema is None:
            if signature.open:
                raise TypeError(f"{self.label}: **kwargs needs an input_schema")
            return signature.schema() | closed
        own, root = schema, schema.get("type") if is_object(schema) else None
        if root != "object":
            got = f"type {root!r}" if root is not None else repr(schema)
            raise ValueError(
                f'{self.label}: input_schema: expected a JSON Schema with type "object", got {got}'
            )
        from ...json_schema.checks import validator  # few tools have schemas

        schema = dict(own)
        if isinstance(own, CheckedSchema) and not closed:  # validation checks names too
            schema.pop(_ADDITIONAL, None)
        self._input_complaint = validator(own, "an input_schema")
        properties: Mapping[str, Any] = schema.get("properties", {})
        required: Sequence[str] = schema.get("required", ())
        parameters = signature.parameters
        missing = [name for name in properties if name not in parameters]
        if missing and not signature.open:
            raise TypeError(f"{self.label}: the function takes no {', '.join(missing)}")
        optional = [p.name for p in parameters.values() if p.required and p.name not in required]
        if optional:
            raise TypeError(
                f"{self.label}: input_schema does not require {', '.join(optional)}, "
                "the function does"
            )
        return schema

    def _output_of(
        self, schema: Mapping[str, Any] | FromSignature | None, structured: bool
    ) -> output_conversion.Output:
        if not structured:
            if is_object(schema):
                raise TypeError(f"{self.label}: expected structured=True beside an output_schema")
            return output_conversion.Output("unstructured")
        if schema is None:
            return output_conversion.Output("by value")
        if isinstance(schema, str):
            return output_conversion.from_annotation(self.signature.returns, self.label)
        return output_conversion.from_schema(schema)


@cache
def _warn_of_hidden_text() -> None:
    """Warn, once in a process, that clients do not get the text of an unexpected exception."""
    _logger.warning(
        "the text of an exception is hidden from clients: raise ToolError for texts that clients"
        " may see, or write Server(show_errors=True)"
    )


def check_tool_name(name: str, label: str) -> None:
    """Check a name.

    Raises:
        ValueError: The name is too long, or has other characters.
    """
    if not re.fullmatch(_NAME, name):
        raise ValueError(f"{label}: expected a name of 1 to 128 letters, digits, '_', '-' and '.'")


def _limit_time(
    call: Callable[..., Awaitable[Any]], label: str, seconds: float
) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that cancels another one after some seconds.

    Raises:
        ValueError: The seconds are not positive.
    """
    if not seconds > 0:
        raise ValueError(f"{label}: timeout: expected more than 0 seconds, got {seconds}")

    async def call_in_time(**arguments: Any) -> Any:
        with anyio.move_on_after(seconds):
            return await call(**arguments)
        raise ToolError(f"{label} timed out after {seconds:g} seconds")

    return call_in_time


def _inline_definitions(
    schema: Mapping[str, Any] | None, own: Mapping[str, Any] | None, form: SchemaForm
) -> Mapping[str, Any] | None:
    """A schema as it is listed: definitions are inlined unless it is the user's or by `refs`."""
    is_own = own is not None and not isinstance(own, CheckedSchema)
    if schema is None or is_own or form == "refs" or "$defs" not in schema:
        return schema
    from ...json_schema.inlining import inline_references  # few schemas have definitions

    return inline_references(schema)
