"""What a revision's messages can hold, asked of its generated types.

The toolkit builds results as wire objects in their newest form. Here they become the session's
own types: fields that these do not have fall away, and a block of content of a kind that they do
not have becomes a line of text.

Source: server/tools#tool-result, server/prompts#promptmessage.
"""

from __future__ import annotations

import binascii
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union

import msgspec

from ..._wire import UNSET, Untagged, convert, error_text, is_many, is_object, to_builtins
from ...errors import InternalError
from ...foreign_text import safe_repr
from ...merged_models import MergedType
from .content import Audio, EmbeddedResource, Image, ResourceLink, Text

_VALUE = "toolResult"
_FAILED = "isError"
_ROOT = __name__.rpartition(".server.")[0]
_OURS = (Text, Image, Audio, ResourceLink, EmbeddedResource)


def structs_in(annotation: Any) -> Iterator[type[msgspec.Struct]]:
    """The Structs that a type names: itself, or members of its unions and lists."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from structs_in(typing.get_args(annotation)[0])
    elif origin in (Union, types.UnionType, list):
        for part in typing.get_args(annotation):
            yield from structs_in(part)
    elif isinstance(annotation, type) and issubclass(annotation, Untagged):
        for variant in annotation.variants:
            yield from structs_in(variant.type)
    elif isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation


def field_type(struct: type[msgspec.Struct], wire_name: str) -> Any:
    """Type of the field with this name on the wire, or `None` if there is none."""
    for field in msgspec.structs.fields(struct):
        if field.encode_name == wire_name:
            return field.type
    return None


def struct_with(annotation: Any, wire_name: str) -> type[msgspec.Struct]:
    """The first Struct in a type that has this field.

    Raises:
        LookupError: None has it.
    """
    for struct in structs_in(annotation):
        if field_type(struct, wire_name) is not None:
            return struct
    raise LookupError(f"no member of {annotation!r} has the field {wire_name!r}")


def refusal(wire: Any, kind: Any) -> str | None:
    """Why a wire object is not of a type, or `None` if it is, with all that it has."""
    try:
        read = to_builtins(convert(wire, kind))
    except msgspec.ValidationError as error:
        return error_text(error)
    return _lost(wire, read, "")


def _lost(given: Any, kept: Any, path: str) -> str | None:
    """The first member that a value lost on its way through a type, in words."""
    if is_object(given) and is_object(kept):
        for name, value in given.items():
            here = f"{path}.{name}" if path else name
            if name not in kept:
                return f"there is no {safe_repr(here)}"
            if lost := _lost(value, kept[name], here):
                return lost
    elif is_many(given) and is_many(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return next((lost for at, two in pairs if (lost := _lost(*two, f"{path}[{at}]"))), None)
    return None


def blocks_in(annotation: Any) -> dict[str, type[msgspec.Struct]]:
    """Kinds of content that a type admits, by their `type` on the wire; empty for any value."""
    return {str(struct.__struct_config__.tag): struct for struct in structs_in(annotation)}


def is_content(value: object) -> bool:
    """Whether a value is a block of content: one of the toolkit's, or of generated models."""
    if isinstance(value, _OURS):
        return True
    return isinstance(value, msgspec.Struct) and is_content_type(type(value))


def is_content_type(kind: Any) -> bool:
    """The same of a class."""
    if isinstance(kind, MergedType):
        kind = next(kind.structs(), None)
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return False
    if kind in _OURS:
        return True
    tag = kind.__struct_config__.tag
    return tag in _TAGS and kind.__module__.startswith(f"{_ROOT}.")


_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in _OURS)


def wire_block(block: Any) -> dict[str, Any]:
    """A block of content as wire object; a string is text.

    Raises:
        ValueError: Its data is not base64 (generated models hold it as a string).
    """
    if isinstance(block, str):
        return {"type": "text", "text": block}
    made: dict[str, Any] = to_builtins(block)
    if made["type"] == "resource":
        inner: dict[str, Any] = made["resource"]
        inner.setdefault("mimeType", "text/plain" if "text" in inner else _BINARY)
    if not isinstance(block, _OURS) and "data" in made:
        _check_base64(made["data"])
    return made


_BINARY = "application/octet-stream"


def _check_base64(data: Any) -> None:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ValueError(f"data: expected base64, got {str(data)[:40]!r}") from error


def fitted(block: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The block itself where its kind is known, otherwise a line of text that says what it was."""
    if not known or block["type"] in known:
        return block
    made: dict[str, Any] = {"type": "text", "text": _in_words(block)}
    if "annotations" in block:
        made["annotations"] = block["annotations"]
    return made


def _in_words(block: dict[str, Any]) -> str:
    if block["type"] == "resource_link":
        said = f"{block.get('title') or block['name']}: {block['uri']}"
        return f"{said} ({block['description']})" if block.get("description") else said
    size = len(binascii.a2b_base64(block["data"])) if "data" in block else 0
    return f"[{block['type']}: {block.get('mimeType', 'unknown type')}, {size} bytes]"


class ToolShape:
    """The result of `tools/call` in one revision.

    Args:
        result: Type of the result as the method table has it, other kinds of result included.
        structured: What the revision lets `structuredContent` be.
    """

    def __init__(self, result: Any, structured: str) -> None:
        kinds = [kind for kind in structs_in(result) if field_type(kind, "content") is not None]
        kind: Any = next((kind for kind in kinds if not _requires_structure(kind)), kinds[0])
        self._kind = kind
        self._structured_kind: Any = next(filter(_requires_structure, kinds), kind)
        self._known = blocks_in(field_type(kind, "content"))
        self._text: Any = self._known.get("text", _text_object)
        self._structured = structured
        fields = msgspec.structs.fields(kind)
        required = any(field.required and field.encode_name == _FAILED for field in fields)
        self._success: dict[str, Any] = {_FAILED: False} if required else {}
        self._succeeded: dict[str, Any] = {"is_error": False} if required else {}

    def text(self, text: str) -> Any:
        """A result of one text; this is the short way, nothing is converted."""
        return self._kind(content=[self._text(text=text)], **self._succeeded)

    def failure(self, text: str) -> Any:
        """A result that says that the tool failed, and why."""
        return self._kind(content=[self._text(text=text)], is_error=True)

    def carries(self, value: Any) -> bool:
        """Whether a value may be `structuredContent` here."""
        return self._structured == "any" or (
            self._structured == "object" and isinstance(value, dict)
        )

    def full(
        self, content: list[dict[str, Any]], structured: Any, meta: Mapping[str, Any] | None
    ) -> Any:
        """A result with blocks, and with a structured value unless it is UNSET.

        Raises:
            ValidationError: A block does not fit the revision's type of it.
        """
        blocks = [fitted(block, self._known) for block in content]
        made: dict[str, Any] = {"content": blocks, **self._success}
        if structured is not UNSET and self.carries(structured):
            made["structuredContent"] = structured
        if meta:
            made["_meta"] = dict(meta)
        has_structure = "structuredContent" in made
        return convert(made, self._structured_kind if has_structure else self._kind)


def _text_object(*, text: str) -> dict[str, Any]:
    """A block of text where the type admits any value as content."""
    return {"type": "text", "text": text}


def _requires_structure(kind: type[msgspec.Struct]) -> bool:
    """Whether a result is one of those that have a structured value."""
    fields = msgspec.structs.fields(kind)
    return any(field.required and field.encode_name == "structuredContent" for field in fields)


class ValueShape:
    """The result of `tools/call` where it is one JSON value, `toolResult`, and never a failure.

    Args:
        result: Type of the result as the method table has it, other kinds of result included.
    """

    def __init__(self, result: Any) -> None:
        self._kind: Any = struct_with(result, _VALUE)

    def text(self, text: str) -> Any:
        """A result that is a text."""
        return convert({_VALUE: text}, self._kind)

    def failure(self, text: str) -> Any:
        """A failure, which only an error can tell.

        Raises:
            InternalError: Always.
        """
        raise InternalError(text)

    def carries(self, value: Any) -> bool:
        """Whether a value may be the result: any may."""
        return True

    def full(
        self, content: list[dict[str, Any]], structured: Any, meta: Mapping[str, Any] | None
    ) -> Any:
        """A result that is the structured value, else the text of one block, else the blocks.

        Raises:
            ValidationError: The type does not take the value.
        """
        value: Any = structured
        if structured is UNSET:
            is_text = len(content) == 1 and content[0]["type"] == "text"
            value = content[0]["text"] if is_text else content
        return convert({_VALUE: value, **({"_meta": dict(meta)} if meta else {})}, self._kind)


def tool_shape(result: Any, structured: str) -> ToolShape | ValueShape:
    """What the result of `tools/call` is in one revision.

    Args:
        result: Type of the result as the method table has it, other kinds of result included.
        structured: What the revision lets `structuredContent` be.
    """
    if any(field_type(struct, "content") is not None for struct in structs_in(result)):
        return ToolShape(result, structured)
    return ValueShape(result)


class PromptShape:
    """The result of `prompts/get` in one revision.

    Args:
        result: Type of the result as the method table has it, other kinds of result included.
    """

    def __init__(self, result: Any) -> None:
        self._kind = struct_with(result, "messages")
        (message,) = structs_in(field_type(self._kind, "messages"))
        self._known = blocks_in(field_type(message, "content"))

    def full(self, messages: list[dict[str, Any]], description: str | None) -> Any:
        """The result with these messages, each with one block.

        Raises:
            ValidationError: A message does not fit the revision's type of it.
        """
        made: dict[str, Any] = {
            "messages": [
                {"role": message["role"], "content": fitted(message["content"], self._known)}
                for message in messages
            ]
        }
        if description is not None:
            made["description"] = description
        return convert(made, self._kind)
