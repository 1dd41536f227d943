"""What a tool's return value becomes: blocks of content, a structured value, or both.

The return annotation decides, once, at registration:

    str, None                         content: one text, or nothing
    content, lists of content         content as it is
    object types (dataclass,          structured, with a schema; the same as JSON text in content
    TypedDict, Struct, dict)
    any other type                    the same, but structured as {"result": value}, since two
                                      revisions want an object; the text is the bare value
    no annotation, Any, object        by the value: like its type above, without a schema; only
                                      objects become structured

With a schema the value is held against it before it leaves.

Source: server/tools#structured-content, server/tools#output-schema.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, Union

import msgspec

from ..._wire import UNSET, convert, encode, is_many, is_object, to_builtins
from ...json_schema.validation import Complaint, Deadline, complaint_in_time, validator
from . import revision_types, signatures, tool_schemas
from .client_features.input_required import without_input_required
from .content import ToolResult

Blocks: TypeAlias = list[dict[str, Any]]
Form: TypeAlias = Literal["content", "object", "wrapped", "by value"]


class OutputError(Exception):
    """A tool returned what its schema or the protocol does not allow; for the log."""


class Output(msgspec.Struct, frozen=True):
    """How values of one tool are turned into results.

    Attributes:
        form: Which row of the module's table applies.
        kind: Type that values are held against.
        schema: `outputSchema`, or `None` if there is none.
        complaint: Says what a schema of the user's own finds wrong with a value.
    """

    form: Form
    kind: Any = None
    schema: Mapping[str, Any] | None = None
    complaint: Complaint | None = None

    def results(self, value: Any) -> tuple[Blocks, Any, Mapping[str, Any] | None]:
        """Blocks, structured value (or UNSET) and `_meta` for what a tool returned.

        The value is yet to be held against a schema of the user's own: `check` does it.

        Raises:
            OutputError: The value does not fit.
        """
        if isinstance(value, ToolResult):
            return self._told(value)
        blocks = content_of(value) if self.form in ("content", "by value") else None
        if blocks is not None:
            if self.complaint is not None:
                raise OutputError("expected a value for the output schema, got content alone")
            return blocks, UNSET, None
        if self.form == "content":
            raise OutputError(f"expected content, got {type(value).__name__}")
        plain = self._checked(value)
        text = {"type": "text", "text": _json(plain)}
        if self.form == "wrapped":
            return [text], {"result": plain}, None
        if self.form == "by value" and self.complaint is None and not is_object(plain):
            return [text], UNSET, None
        return [text], plain, None

    def _told(self, value: ToolResult) -> tuple[Blocks, Any, Mapping[str, Any] | None]:
        structured = value.structured
        if structured is not UNSET:
            structured = self._checked(structured)
        elif self.schema is not None:
            raise OutputError("expected ToolResult.structured, since there is an output schema")
        if value.content is not None:
            blocks = [revision_types.wire_block(block) for block in value.content]
        else:
            blocks = [] if structured is UNSET else [{"type": "text", "text": _json(structured)}]
        if self.form == "wrapped":
            structured = {"result": structured}
        return blocks, structured, value.meta

    def _checked(self, value: Any) -> Any:
        """The value as plain JSON data, if it is what the schema says."""
        try:
            plain = to_builtins(value)
            if self.kind is not None:
                convert(plain, self.kind)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise OutputError(str(error)) from error
        return plain

    async def check(self, structured: Any, deadline: Deadline) -> None:
        """Hold a structured value against a schema of the user's own, if there is one.

        Args:
            structured: The value.
            deadline: Until when.

        Raises:
            OutputError: The value does not fit.
        """
        if self.complaint is None:
            return
        wrong = await complaint_in_time(self.complaint, structured, deadline)
        if wrong:
            raise OutputError(f"the output schema is not kept: {wrong}")


def content_of(value: Any) -> Blocks | None:
    """A value as blocks, or `None` if it is not content."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if revision_types.is_content(value):
        return [revision_types.wire_block(value)]
    if is_many(value) and any(map(revision_types.is_content, value)):
        return [revision_types.wire_block(item) for item in value]
    return None


def from_annotation(annotation: Any, label: str) -> Output:
    """The output of a tool by its return annotation.

    Raises:
        TypeError: The type has no JSON Schema.
    """
    annotation = without_input_required(annotation)
    if annotation in (signatures.Signature.NOTHING_SAID, Any, object, ToolResult):
        return Output("by value")
    if _is_content(annotation):
        return Output("content")
    try:
        schema = tool_schemas.schema_of(annotation)
    except TypeError as error:
        said = " ".join(str(error).split())
        raise TypeError(
            f"{label}: no JSON Schema for the return annotation ({said}); "
            "output_schema=None sends such values without one"
        ) from error
    if schema.get("type") == "object" and not _is_optional(annotation):
        return Output("object", annotation, schema)
    return Output("wrapped", annotation, _wrapped(schema))


def from_schema(schema: Mapping[str, Any]) -> Output:
    """The output of a tool with a JSON Schema of the user's own.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ValueError: Not a JSON Schema.
    """
    return Output("by value", None, dict(schema), validator(schema, "an output_schema"))


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.pop("$defs", None)
    made: dict[str, Any] = {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
    }
    return {**made, "$defs": definitions} if definitions else made


def _is_content(annotation: Any) -> bool:
    """Whether every value of a type is content: text, nothing, blocks, or lists with blocks."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _is_content(parts[0])
    if origin in (Union, types.UnionType):
        return all(_is_content(part) for part in parts)
    if origin in (list, Sequence, tuple):
        inner = [part for part in parts if part is not Ellipsis]
        return _names_block(inner) and all(_is_content(part) for part in inner)
    return annotation in (str, None, type(None)) or revision_types.is_content_type(annotation)


def _names_block(annotations: Sequence[Any]) -> bool:
    return any(
        revision_types.is_content_type(part) or _names_block(typing.get_args(part))
        for part in annotations
    )


def _is_optional(annotation: Any) -> bool:
    return type(None) in typing.get_args(annotation)


def _json(value: Any) -> str:
    return encode(value).decode()
