"""Conversion of return values into results, in the types of each revision.

For a tool the return annotation decides at registration:

    None                              no content
    content, lists of content         content as returned
    object types (dataclass,          structured, with a schema; the same as JSON text in content
    TypedDict, Struct, dict)
    any other type (str, int, list)   the same, but structured as {"result": value}, since two
                                      revisions require an object; the content is the bare value
    Annotated[ToolResult, X]          as X, for a function that builds its `ToolResult` of an X
    no annotation, Any, object        by the value: as its type above, without a schema; only
                                      objects become structured
    any type, with structured=False   content alone: JSON text, or content as returned

A text stands in the content as it is, any other value as JSON, and a null not at all. A value is
validated against its schema before it is sent; a `str` where the annotation is `str` is not.

Results are built as wire objects of the newest form and converted to the revision's types: members
that these types lack are dropped, and a content block of an unknown kind becomes a line of text.

Source: server/tools#tool-result, server/tools#structured-content, server/tools#output-schema,
server/prompts#promptmessage.
"""

from __future__ import annotations

import binascii
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeAlias, Union

import msgspec

from ..._wire import UNSET, convert, create, encode, is_many, is_object, structs_in
from ...errors import InternalError
from ...json_schema import WRAPPED_MARKER, WRAPPER
from ...values.value_types import ValueType, one_line, to_json, value_type
from . import signatures
from .content import (
    ToolResult,
    content_types,
    field_type,
    is_content,
    is_content_type,
    is_tool_result_type,
    requires,
    struct_with,
    wire_block,
    without_unfinished,
)

Blocks: TypeAlias = list[dict[str, Any]]
Form: TypeAlias = Literal["content", "object", "wrapped", "text", "by value", "unstructured"]

_VALUE = "toolResult"
_STRUCTURED = "structuredContent"
_IS_ERROR = "isError"


_CONTENT = (
    "content is a str, Text, Image, Audio, File, ResourceLink, EmbeddedResource, or a list of these"
)
_DATA = (
    "what has a JSON form is a dict, list, str, number, dataclass, TypedDict, NamedTuple, or class "
    "of pydantic, attrs or msgspec; files are Image, Audio or File"
)


class OutputError(Exception):
    """A return value breaks its schema or the protocol. The text is for the log."""


class Output(msgspec.Struct, frozen=True):
    """The output conversion of one tool.

    Attributes:
        form: The row of the module's table; `text` is `wrapped` for the annotation `str`.
        kind: Type that values are written by, and validated against.
        schema: `outputSchema`, or `None` if there is none.
    """

    form: Form
    kind: ValueType | None = None
    schema: Mapping[str, Any] | None = None

    def results(self, value: Any) -> tuple[Blocks, Any, Mapping[str, Any] | None]:
        """Content blocks, structured value (or UNSET) and `_meta` of a return value.

        Raises:
            OutputError: The value does not fit.
        """
        if isinstance(value, ToolResult):
            return self._explicit_results(value)
        blocks = _content_of(value) if self.form in _MAY_BE_CONTENT else None
        if blocks is not None:
            if self.schema is not None and self.form == "by value":
                raise OutputError("expected a value for the output schema, got content alone")
            return blocks, UNSET, None
        if self.form == "content":
            if is_many(value) and all(isinstance(each, str) for each in value):
                return list(map(wire_block, value)), UNSET, None
            raise OutputError(f"expected content, got {type(value).__name__}; {_CONTENT}")
        plain = self.validated(value)
        if self.form in _WRAPPED:  # a list of any values may have images among them
            return _blocks_among(value) or _bare_content(plain), {WRAPPER: plain}, None
        if self.form == "unstructured" or (
            self.form == "by value" and self.schema is None and not is_object(plain)
        ):
            return _bare_content(plain), UNSET, None
        return _bare_content(plain), plain, None

    def _explicit_results(self, value: ToolResult) -> tuple[Blocks, Any, Mapping[str, Any] | None]:
        structured = value.structured
        if value.is_error:
            structured = structured if structured is UNSET else to_json(structured)
        elif structured is not UNSET:
            structured = self.validated(structured)
        elif self.schema is not None:
            raise OutputError("expected ToolResult.structured, since there is an output schema")
        if value.content is not None:
            content: Any = value.content
            single = _is_single(content)
            blocks = [wire_block(block) for block in ([content] if single else content)]
        else:
            blocks = [] if structured is UNSET else _bare_content(structured)
        if self.form in _WRAPPED and not value.is_error:
            structured = {WRAPPER: structured}
        return blocks, structured, value.meta

    def validated(self, value: Any) -> Any:
        """The value as plain JSON data, validated against its type.

        Raises:
            OutputError: The value does not fit.
        """
        try:
            return to_json(value) if self.kind is None else self.kind.write(value)
        except (msgspec.ValidationError, ValueError) as error:
            raise OutputError(one_line(error)) from error
        except TypeError as error:
            raise OutputError(f"{one_line(error)}; {_DATA}") from error


_MAY_BE_CONTENT: frozenset[Form] = frozenset({"content", "by value", "unstructured"})
_WRAPPED: frozenset[Form] = frozenset({"wrapped", "text"})


def _bare_content(plain: Any) -> Blocks:
    """The content that repeats plain JSON data."""
    if plain is None:
        return []
    return [{"type": "text", "text": plain if isinstance(plain, str) else json_text(plain)}]


def _content_of(value: Any) -> Blocks | None:
    """A value as content blocks, or `None` if it is not content."""
    if value is None:
        return []
    return [wire_block(value)] if _is_single(value) else _blocks_among(value)


def _is_single(value: Any) -> bool:
    return isinstance(value, str) or is_content(value)


def _blocks_among(value: Any) -> Blocks | None:
    """A list or tuple with blocks among its items as content; `None` for anything else.

    Items that are neither blocks nor texts become a text each: their JSON.
    """
    if not is_many(value) or not any(map(is_content, value)):
        return None
    return [wire_block(each if _is_single(each) else json_text(to_json(each))) for each in value]


def from_annotation(annotation: Any, label: str) -> Output:
    """The output conversion for a return annotation.

    Raises:
        TypeError: The type has no JSON Schema.
    """
    annotation = without_unfinished(annotation)
    if typing.get_origin(annotation) is Annotated:
        kind, *notes = typing.get_args(annotation)
        if is_tool_result_type(kind):
            annotation = next(filter(_is_type, notes), kind)
    untyped = annotation in (signatures.Signature.NO_ANNOTATION, Any, object)
    if untyped or is_tool_result_type(annotation):
        return Output("by value")
    if _is_content(annotation):
        return Output("content")
    try:
        kind = value_type(annotation)
        schema = kind.schema("serialization")
    except TypeError as error:
        reason = one_line(error)
        raise TypeError(
            f"{label}: no JSON Schema for the return annotation ({reason}); "
            "structured=False sends such values as content"
        ) from error
    if annotation is str:
        return Output("text", kind, _wrap_schema(schema))
    schema = _with_object_root(schema)
    if schema.get("type") == "object" and type(None) not in typing.get_args(annotation):
        return Output("object", kind, schema)
    return Output("wrapped", kind, _wrap_schema(schema))


def _with_object_root(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose root is not a reference to an object, unlike that of a recursive type."""
    name = schema.get("$ref", "").rpartition("/")[2]
    definition = schema.get("$defs", {}).get(name, {})
    if definition.get("type") != "object":
        return schema
    return {**definition, "$defs": schema["$defs"]}


def _is_type(note: Any) -> bool:
    return isinstance(note, type) or typing.get_origin(note) is not None


def _wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.pop("$defs", None)
    wrapper: dict[str, Any] = {
        "type": "object",
        "properties": {WRAPPER: schema},
        "required": [WRAPPER],
        WRAPPED_MARKER: True,
    }
    return {**wrapper, "$defs": definitions} if definitions else wrapper


def _is_content(annotation: Any) -> bool:
    """Whether a type is `None`, or names blocks and nothing but blocks, texts and `None`."""
    if annotation in (None, type(None)):
        return True
    return _names_block([annotation]) and _may_be_content(annotation)


def _may_be_content(annotation: Any) -> bool:
    """Whether every value of a type is content: text, `None`, blocks, or lists with blocks."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _may_be_content(parts[0])
    if origin in (Union, types.UnionType):
        return all(_may_be_content(part) for part in parts)
    if origin in (list, Sequence, tuple):
        inner = [part for part in parts if part is not Ellipsis]
        return _names_block(inner) and all(_may_be_content(part) for part in inner)
    return annotation in (str, None, type(None)) or is_content_type(annotation)


def _names_block(annotations: Sequence[Any]) -> bool:
    return any(is_content_type(part) or _names_block(typing.get_args(part)) for part in annotations)


def json_text(value: Any) -> str:
    """A value as JSON."""
    return encode(value).decode()


class ContentResultBuilder:
    """Builds results of `tools/call` with content blocks; see `tool_result_builder`."""

    def __init__(self, result: Any, structured_content: str) -> None:
        kinds = [kind for kind in structs_in(result) if field_type(kind, "content") is not None]
        structured_kinds = [kind for kind in kinds if requires(kind, _STRUCTURED)]
        plain_kinds = [kind for kind in kinds if kind not in structured_kinds]
        kind: Any = (plain_kinds or kinds)[0]
        self._kind = kind
        self._structured_kind: Any = (structured_kinds or [kind])[0]
        self._blocks = content_types(field_type(kind, "content"))
        text_class = self._blocks.get("text")
        self._text: Callable[..., Any] = (
            _text_object if text_class is None else partial(create, text_class)
        )
        self._structured_content = structured_content
        states_success = requires(kind, _IS_ERROR)
        self._success: dict[str, Any] = {_IS_ERROR: False} if states_success else {}
        self._success_field: dict[str, Any] = {"is_error": False} if states_success else {}

    def text(self, text: str, structured: Any = UNSET) -> Any:
        """A result with one text block, and the object that it shows, built without conversion."""
        content = [self._text(text=text)]
        if structured is UNSET or self._structured_content == "none":
            return create(self._kind, content=content, **self._success_field)
        return create(
            self._structured_kind,
            content=content,
            structured_content=structured,
            **self._success_field,
        )

    def failure(self, text: str) -> Any:
        """A result that reports a failure of the tool."""
        return self._kind(content=[self._text(text=text)], is_error=True)

    def full(
        self,
        content: Blocks,
        structured: Any,
        meta: Mapping[str, Any] | None,
        *,
        is_error: bool = False,
    ) -> Any:
        """A result with content blocks, and with a structured value unless it is UNSET."""
        members: dict[str, Any] = {"content": known_blocks(content, self._blocks)}
        members |= {_IS_ERROR: True} if is_error else self._success
        kind = self._kind
        if structured is not UNSET and (
            self._structured_content == "any"
            or (self._structured_content == "object" and isinstance(structured, dict))
        ):
            members[_STRUCTURED] = structured
            kind = self._structured_kind
        if meta:
            members["_meta"] = dict(meta)
        return convert(members, kind)


def _text_object(*, text: str) -> dict[str, Any]:
    """A text block where the type admits any value as content."""
    return {"type": "text", "text": text}


class ValueResultBuilder:
    """Builds results of `tools/call` that are one JSON value, `toolResult`.

    Such results have no error flag, so a failure of the tool is an `InternalError`.
    """

    def __init__(self, result: Any) -> None:
        self._kind: Any = struct_with(result, _VALUE)

    def text(self, text: str, structured: Any = UNSET) -> Any:
        """A result whose value is a text, without the object that wraps it."""
        return convert({_VALUE: text}, self._kind)

    def failure(self, text: str) -> Any:
        """Raise an `InternalError`."""
        raise InternalError(text)

    def full(
        self,
        content: Blocks,
        structured: Any,
        meta: Mapping[str, Any] | None,
        *,
        is_error: bool = False,
    ) -> Any:
        """A result whose value is the structured value, else the only text, else the blocks."""
        if is_error:
            return self.failure("\n".join(block["text"] for block in map(_as_text, content)))
        value: Any = structured
        if structured is UNSET:
            is_text = len(content) == 1 and content[0]["type"] == "text"
            value = content[0]["text"] if is_text else content
        return convert({_VALUE: value, **({"_meta": dict(meta)} if meta else {})}, self._kind)


ToolResultBuilder: TypeAlias = ContentResultBuilder | ValueResultBuilder


@cache
def tool_result_builder(result: Any, structured_content: str) -> ToolResultBuilder:
    """The builder for results of `tools/call` in one revision, which all servers share.

    Args:
        result: Type of the result as in the method table, other kinds of result included.
        structured_content: What the revision allows as `structuredContent`, as in its facts.
    """
    if any(field_type(struct, "content") is not None for struct in structs_in(result)):
        return ContentResultBuilder(result, structured_content)
    return ValueResultBuilder(result)


def known_blocks(blocks: Blocks, types: Mapping[str, Any]) -> Blocks:
    """Content blocks; those of unknown kinds are replaced by a line of text.

    Where the type admits any value as content, `types` is empty, and all blocks stay.
    """
    if not types:
        return blocks
    return [block if block["type"] in types else _as_text(block) for block in blocks]


def _as_text(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return block
    text_block: dict[str, Any] = {"type": "text", "text": _description(block)}
    if "annotations" in block:
        text_block["annotations"] = block["annotations"]
    return text_block


def _description(block: dict[str, Any]) -> str:
    if block["type"] == "resource_link":
        text = f"{block.get('title') or block['name']}: {block['uri']}"
        return f"{text} ({block['description']})" if block.get("description") else text
    try:
        size = f", {len(binascii.a2b_base64(block.get('data', '')))} bytes"
    except (TypeError, ValueError):  # a block of a draft, whose data is no base64
        size = ""
    return f"[{block['type']}: {block.get('mimeType', 'unknown type')}{size}]"
