"""Tools: functions that a model may call.

Source: server/tools.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..._wire import to_builtins
from ...errors import InvalidParamsError, ProtocolError, ToolError
from ...json_schema.validation import (
    VALIDATION_SECONDS,
    Complaint,
    Deadline,
    complaint_in_time,
    validator,
)
from ...runtime.request_context import RequestContext
from . import docstrings, invocation, output_conversion, signatures, tool_schemas
from .client_features.input_required import InputRequired
from .content import Icon, ToolAnnotations, present
from .context import Context
from .declared_headers import marks_of
from .revision_types import ToolShape, ValueShape

FromSignature: TypeAlias = Literal["from signature"]
FROM_SIGNATURE: FromSignature = "from signature"

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_NO_ARGUMENTS: Mapping[str, Any] = {}
_logger = logging.getLogger(__name__)


class Tool:
    """A function that a model may call.

    Args:
        function: Coroutine function, or a plain one that then runs in a thread.
        name: Its name; that of the function by default.
        title: A name for people.
        description: What it does; the docstring's first paragraph by default.
        annotations: Hints on its behaviour.
        icons: Images for user interfaces.
        meta: `_meta` of the tool.
        input_schema: JSON Schema of the arguments, instead of one from the signature.
        output_schema: JSON Schema of the structured result, or `None` for no such result.
        names: Further names that the annotations may use.
        validation_seconds: How long arguments, and then the result, may be held against a schema
            that was given. It happens in the event loop only while it takes some milliseconds.

    Attributes:
        marks: Paths of the arguments that HTTP headers repeat, each with its mark.

    Raises:
        TypeError: The signature can't be served.
        ValueError: Name or schema are not usable.
        MissingExtraError: A schema was given and `jsonschema` is not installed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | FromSignature | None = FROM_SIGNATURE,
        names: Mapping[str, Any] | None = None,
        validation_seconds: float = VALIDATION_SECONDS,
    ) -> None:
        self.name = name if name is not None else invocation.source_name(function)
        self.label = f"tool {self.name!r}"
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.label}: expected a name of 1 to 128 letters, digits, '_', '-' and '.'"
            )
        self._signature = signatures.read(function, self.label, names)
        self._context = self._signature.context
        self._complaint: Complaint | None = None
        self._validation_seconds = validation_seconds
        schema = self._inputs(input_schema)
        self.marks = marks_of(schema)
        self._output = self._outputs(output_schema)
        self._call = invocation.caller(function)
        self._listed = present(
            name=self.name,
            title=title,
            description=description or docstrings.paragraph(inspect.getdoc(function)),
            icons=[to_builtins(icon) for icon in icons] or None,
            inputSchema=schema,
            outputSchema=self._output.schema,
            annotations=to_builtins(annotations) if annotations else None,
            _meta=dict(meta) if meta else None,
        )

    def listed(self, structured: str) -> dict[str, Any]:
        """The tool as `tools/list` shows it, in its newest form.

        Args:
            structured: What the revision lets a structured result be; an output schema that asks
                for more is left out.
        """
        schema = self._output.schema
        if schema is None or structured == "any" or schema.get("type") == "object":
            return self._listed
        return {name: value for name, value in self._listed.items() if name != "outputSchema"}

    async def call(
        self,
        arguments: Mapping[str, Any] | None,
        context: Context,
        shape: ToolShape | ValueShape,
        show_errors: bool,
    ) -> Any:
        """The result of a call, in the session's own type, or what it needs to be told first.

        Raises:
            InvalidParamsError: The arguments do not fit, and the revision wants that as an error.
            ProtocolError: The tool raised it.
        """
        given = arguments or _NO_ARGUMENTS
        try:
            if self._complaint is None:
                bound = self._signature.bind(given)
            else:
                bound = await self._held(given, self._complaint)
        except ValueError as error:
            return self._refused(str(error), context.exchange, shape)
        if self._context is not None:
            bound[self._context] = context
        try:
            value = await self._call(bound)
            if type(value) is str and self._output.schema is None:
                return shape.text(value)
            if isinstance(value, InputRequired):
                return value
            results = self._output.results(value)
            if self._output.complaint is not None:
                await self._output.check(results[1], self._deadline())
            return shape.full(*results)
        except ToolError as error:
            return shape.failure(str(error))
        except ProtocolError:
            raise
        except Exception as error:
            _logger.exception("%s failed", self.label)
            return shape.failure(str(error) if show_errors else f"{self.label} failed")

    def _refused(self, reason: str, exchange: RequestContext, shape: ToolShape | ValueShape) -> Any:
        text = f"{self.label}: {reason}"
        if exchange.revision.facts.behaviour.bad_tool_arguments == "error":
            raise InvalidParamsError(text)
        return shape.failure(text)

    async def _held(self, arguments: Mapping[str, Any], complaint: Complaint) -> dict[str, Any]:
        """The arguments, if they are as the schema has them that was given."""
        wrong = await complaint_in_time(complaint, arguments, self._deadline())
        if wrong:
            raise ValueError(wrong)
        return dict(arguments)

    def _deadline(self) -> Deadline:
        return Deadline.after(self._validation_seconds, "validation_seconds of the server")

    def _inputs(self, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if given is None:
            if self._signature.open:
                raise TypeError(f"{self.label}: **kwargs needs an input_schema")
            return self._signature.schema()
        schema = tool_schemas.check_object_root(given, f"{self.label}: input_schema")
        self._complaint = validator(schema, "an input_schema")
        named: Mapping[str, Any] = schema.get("properties", {})
        required: Sequence[str] = schema.get("required", ())
        parameters = self._signature.parameters
        if not self._signature.open:
            missing = [name for name in named if name not in parameters]
            if missing:
                raise TypeError(f"{self.label}: the function takes no {', '.join(missing)}")
        lacking = [p.name for p in parameters.values() if p.required and p.name not in required]
        if lacking:
            raise TypeError(
                f"{self.label}: input_schema does not require {', '.join(lacking)}, "
                "the function does"
            )
        return schema

    def _outputs(self, given: Mapping[str, Any] | FromSignature | None) -> output_conversion.Output:
        if given is None:
            return output_conversion.Output("by value")
        if isinstance(given, str):
            return output_conversion.from_annotation(self._signature.returns, self.label)
        return output_conversion.from_schema(given)
