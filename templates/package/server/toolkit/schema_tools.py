"""Tools with JSON Schemas of the user, for their arguments and their structured results.

Source: server/tools#output-schema, basic/index#json-schema-usage.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from ..._wire import is_object
from ...json_schema import VALIDATION_SECONDS, CheckedSchema, Complaint, Deadline
from .context import Context
from .output_conversion import Output, OutputError, ToolResultBuilder
from .server import ServerKernel
from .tools import Tool

FromSignature: TypeAlias = Literal["from signature"]
FROM_SIGNATURE: FromSignature = "from signature"

_ADDITIONAL = "additionalProperties"


class ToolSchemas(TypedDict, total=False):
    """JSON Schemas of `Server.tool`.

    Attributes:
        input_schema: JSON Schema of the arguments, instead of one from the signature.
        output_schema: JSON Schema of the structured result, instead of one from the return
            annotation; `None` for none: then only objects are structured, unchecked.

    Raises:
        ValueError: (from the decorator) Not a JSON Schema.
        MissingExtraError: (from the decorator) `jsonschema` is not installed.
    """

    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | FromSignature | None


class ValidationOptions(TypedDict, total=False):
    """Validation against JSON Schemas of the user.

    Attributes:
        validation_seconds: Time limit for validating the arguments of a tool, and then its result,
            against such a schema. Other calls are not blocked meanwhile.
    """

    validation_seconds: float


class SchemaServer(ServerKernel):
    """A server whose tools may have JSON Schemas of the user."""

    _validation_seconds: float

    def _use_options(self, options: dict[str, Any]) -> None:
        seconds: float = options.pop("validation_seconds", VALIDATION_SECONDS)
        if not seconds > 0:
            raise ValueError(f"validation_seconds: expected more than 0, got {seconds}")
        self._validation_seconds = seconds
        super()._use_options(options)

    def _use_tool_options(self, options: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
        input_schema = options.pop("input_schema", None)
        output_schema = options.pop("output_schema", FROM_SIGNATURE)
        made = super()._use_tool_options(options, members)
        if input_schema is None and isinstance(output_schema, str):
            return made
        return {
            **made,
            "kind": SchemaTool,
            "input_schema": input_schema,
            "output_schema": output_schema,
            "validation_seconds": self._validation_seconds,
        }


class SchemaTool(Tool):
    """A tool with a JSON Schema of the user.

    Args:
        function: See `Tool`.
        input_schema: JSON Schema of the arguments; `None` for that of the signature.
        output_schema: See `ToolSchemas`.
        validation_seconds: Time limit of one validation.
        options: See `Tool`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        input_schema: Mapping[str, Any] | None,
        output_schema: Mapping[str, Any] | FromSignature | None,
        validation_seconds: float,
        **options: Any,
    ) -> None:
        self._own_input, self._own_output = input_schema, output_schema
        self._as_written: list[Mapping[str, Any]] = []
        self._input_complaint: Complaint | None = None
        self._output_complaint: Complaint | None = None
        self._seconds = validation_seconds
        super().__init__(function, *arguments, **options)

    def call(
        self, arguments: Mapping[str, Any] | None, context: Context, results: ToolResultBuilder
    ) -> Coroutine[Any, Any, Any]:
        if self._input_complaint is None:
            return super().call(arguments, context, results)
        return self._call_validated(arguments or {}, context, results, self._input_complaint)

    async def _call_validated(
        self,
        arguments: Mapping[str, Any],
        context: Context,
        results: ToolResultBuilder,
        complaint: Complaint,
    ) -> Any:
        from ...json_schema.validation import complaint_in_time  # loaded already

        try:
            text = await complaint_in_time(complaint, arguments, self._deadline())
        except ValueError as error:
            text = str(error)
        if text:
            return await self._refuse(text, arguments, context, results)
        bound = dict(arguments)
        if self.signature.context is not None:
            bound[self.signature.context] = context
        return await self._run(bound, results)

    def _deadline(self) -> Deadline:
        return Deadline.after(self._seconds, "validation_seconds of the server")

    def _input_schema(self) -> Mapping[str, Any]:
        own, signature = self._own_input, self.signature
        if own is None:
            return super()._input_schema()
        from ...json_schema.validation import validator  # few tools have schemas

        root = own.get("type") if is_object(own) else None
        if root != "object":
            got = f"type {root!r}" if root is not None else repr(own)
            raise ValueError(
                f'{self.label}: input_schema: expected a JSON Schema with type "object", got {got}'
            )
        schema = dict(own)
        if isinstance(own, CheckedSchema) and not self._closed:  # validation checks names too
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
        return self._written(schema, own)

    def _output_of(self, structured: bool) -> Output:
        from ...json_schema.validation import validator  # few tools have schemas

        schema = self._own_output
        if not structured and is_object(schema):
            raise TypeError(f"{self.label}: expected structured=True beside an output_schema")
        if not structured or isinstance(schema, str):
            return super()._output_of(structured)
        if schema is None:
            return Output("by value")
        self._output_complaint = validator(schema, "an output_schema")
        self.check_output = self._check_output
        return Output("by value", None, self._written(dict(schema), schema))

    async def _check_output(self, structured: Any) -> None:
        from ...json_schema.validation import complaint_in_time  # loaded already

        assert self._output_complaint is not None
        error = await complaint_in_time(self._output_complaint, structured, self._deadline())
        if error:
            raise OutputError(f"the output schema is not kept: {error}")

    def _written(self, schema: dict[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema, which is listed as the user wrote it."""
        if not isinstance(own, CheckedSchema):
            self._as_written.append(schema)
        return schema

    def _listed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if any(schema is each for each in self._as_written):
            return schema
        return super()._listed(schema)
