"""Content that tools, prompts and resources return, the same classes in every revision.

Each class has the members of the newest revision. For an older revision `output_conversion` drops
members and replaces blocks that the revision does not have. Bytes are sent as base64.

Source: server/tools#tool-result, server/resources#data-types, server/prompts#promptmessage.
"""

from __future__ import annotations

import binascii
import os
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Union

import msgspec

from ..._structs import MessageType
from ..._wire import (
    STRUCTS,
    EncodingError,
    Struct,
    StructType,
    convert,
    encode,
    fields,
    is_many,
    is_object,
    structs_in,
    tag_of,
    to_builtins,
)
from ...facts import MergedClass, python_names
from ...foreign_text import safe_repr, safe_text

if TYPE_CHECKING:
    FilePath: TypeAlias = str | os.PathLike[str]
else:
    FilePath = Any  # msgspec has no such type, and never decodes one


class Wire(msgspec.Struct, metaclass=MessageType, frozen=True, rename="camel", omit_defaults=True):
    """Base: camelCase on the wire; members that are `None` are left out."""


class UnfinishedResult:
    """Base of results of handlers that are no result of their request yet, such as a question."""


def without_unfinished(annotation: Any) -> Any:
    """A return annotation without unfinished results; `Any` if it was nothing else."""
    if _is_unfinished(annotation):
        return Any
    if typing.get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if not _is_unfinished(part)]
        return Union[tuple(parts)]  # noqa: UP007 - the members are known at run time only
    return annotation


def _is_unfinished(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, UnfinishedResult)


class Annotations(Wire, frozen=True, kw_only=True):
    """The intended audience of an item, and its importance.

    Attributes:
        audience: Roles that should see the item.
        priority: From 0 (optional) to 1 (required).
        last_modified: ISO 8601 time.
    """

    audience: Sequence[Literal["user", "assistant"]] | None = None
    priority: float | None = None
    last_modified: str | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError(f"priority: expected a number from 0 to 1, got {self.priority!r}")


class Icon(Wire, frozen=True, kw_only=True):
    """An image that represents an item in a user interface.

    Attributes:
        src: URL, or a `data:` URI.
        mime_type: Its type, if the source does not state one.
        sizes: Sizes such as `48x48`, or `any`.
        theme: The background for which it is designed.
    """

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] | None = None
    theme: Literal["light", "dark"] | None = None


class ToolAnnotations(Wire, frozen=True, kw_only=True):
    """Hints on the behaviour of a tool; clients must not rely on them.

    Attributes:
        title: A name for display.
        read_only_hint: The tool changes nothing.
        destructive_hint: The tool may destroy data.
        idempotent_hint: A repeated call with the same arguments has no further effect.
        open_world_hint: The tool interacts with systems outside the server.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class _Block(Wire, frozen=True, kw_only=True, tag_field="type"):
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)


class Text(_Block, frozen=True, tag="text"):
    """A block of text."""

    text: str


class _FromFile(_Block, frozen=True, kw_only=True, tag=""):
    path: FilePath | None = None


class _Media(_FromFile, frozen=True, tag=""):
    data: bytes = b""
    mime_type: str = ""
    format: str | None = None

    kind: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ...absence import attribute_error  # for the error only

            raise attribute_error(self, name)

    def __post_init__(self) -> None:
        if self.format is not None:
            if self.mime_type:
                raise ValueError("expected either mime_type or format, got both")
            _set(self, mime_type=_media_type(self.format, self.kind), format=None)
        if self.path is not None:
            if self.data:
                raise ValueError("expected either data or path, got both")
            data, mime_type = _read_file(self.path, self.mime_type)
            if not self.mime_type and not mime_type.startswith(self.kind):
                name = os.fsdecode(self.path)
                raise ValueError(f"{name!r}: expected {self.kind}*, got {mime_type}; set mime_type")
            _set(self, data=data, mime_type=mime_type, path=None)
        if isinstance(self.data, str | os.PathLike):
            kind = type(self.data).__name__
            raise TypeError(f"data: expected bytes, got {kind}; a file is path=...")
        expect(self.data, bytes, "data")
        check_mime_type(self.mime_type)


class Image(_Media, frozen=True, tag="image"):
    """An image: `Image(data, "image/png")`, or `Image(path="a.png")`.

    Args:
        data: The bytes of its file.
        mime_type: Its MIME type; for a path, that of the file's ending by default.
        format: The ending of such a file, such as `png`, instead of the MIME type; the attribute is
            `None` then.
        path: A file, which is read at once; the attribute is `None` then.
    """

    kind: ClassVar[str] = "image/"


class Audio(_Media, frozen=True, tag="audio"):
    """Audio, with the arguments of `Image`. Revisions without audio get a line of text instead."""

    kind: ClassVar[str] = "audio/"


class ResourceLink(_Block, frozen=True, kw_only=True, tag="resource_link"):
    """A link to a resource that a client can read.

    Revisions without links get a line of text instead.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[Icon] | None = None


class Contents(Wire, frozen=True):
    """The contents of a resource: either text or bytes.

    Attributes:
        uri: URI of the contents; empty stands for that of the request.
        text: The contents, if they are text.
        blob: The contents, if they are bytes.
    """

    uri: str = ""
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise ValueError("expected either text or blob")


class EmbeddedResource(_Block, frozen=True, tag="resource"):
    """The contents of a resource inside a result or message."""

    resource: Contents

    def __post_init__(self) -> None:
        if not self.resource.uri:
            raise ValueError("uri: expected the resource's URI, got none")


class File(EmbeddedResource, frozen=True, kw_only=True, tag="resource"):
    """A file as embedded resource: `File(path="report.pdf")`, or `File(data=..., mime_type=...)`.

    A file that is UTF-8 and has a type of text is sent as text, any other as bytes.

    Args:
        path: A file, which is read at once; the attribute is `None` then, like the next three.
        data: The contents, instead of a path.
        mime_type: Its MIME type; by default that of the ending of the path or the name.
        format: The ending of such a file, such as `pdf`, instead of the MIME type.
        name: The last part of its URI, `file:///name`; by default that of the path. Where the file
            lies is not sent.
    """

    resource: Contents = msgspec.field(default_factory=lambda: Contents(text=""))
    path: FilePath | None = None
    data: bytes | None = None
    mime_type: str | None = None
    format: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            if self.mime_type:
                raise ValueError("expected either mime_type or format, got both")
            _set(self, mime_type=guessed_mime_type(f"file.{self.format.lower()}"), format=None)
        if (self.path is None) == (self.data is None):
            raise ValueError("expected either data or path")
        name = self.name or "file"
        if self.path is not None:
            name = self.name or os.path.split(os.fsdecode(self.path))[1]
            data, mime_type = _read_file(self.path, self.mime_type or "")
        else:
            expect(self.data, bytes, "data")
            data = self.data or b""
            mime_type = self.mime_type or guessed_mime_type(name)
        from urllib.parse import quote  # loads slowly, and few tools return files

        uri = f"file:///{quote(name)}"
        try:
            text = data.decode() if _is_text(check_mime_type(mime_type)) else None
        except UnicodeDecodeError:
            text = None
        blob = data if text is None else None
        contents = Contents(uri, text=text, blob=blob, mime_type=mime_type)
        _set(self, resource=contents, path=None, data=None, mime_type=None, name=None)


Content: TypeAlias = Text | Image | Audio | ResourceLink | EmbeddedResource
"""Any block of content."""


class Message(Wire, frozen=True):
    """A message of a prompt. A plain string is text."""

    role: Literal["user", "assistant"]
    content: Content | str

    def __post_init__(self) -> None:
        if self.role not in ("user", "assistant"):
            raise ValueError(f"role: expected user or assistant, got {self.role!r}")


class ToolResult(Wire, frozen=True, kw_only=True):
    """A complete tool result: content, structured value and `_meta`.

    Attributes:
        content: Blocks for the model, or a single one; made from `structured` if `None`.
        structured: The value of `structuredContent`.
        structured_content: Another name for `structured`.
        meta: `_meta` of the result.
        is_error: Whether the tool failed; such a result needs no structured value.
    """

    content: Sequence[Content | str] | Content | str | None = None
    structured: Any = msgspec.UNSET
    structured_content: Any = msgspec.UNSET
    meta: Mapping[str, Any] | None = None
    is_error: bool = False

    def __post_init__(self) -> None:
        if self.structured_content is not msgspec.UNSET:
            _set(self, structured=self.structured_content)


def present_members(**members: Any) -> dict[str, Any]:
    """The members of a wire object, without those that are `None`."""
    return {name: value for name, value in members.items() if value is not None}


def expect(value: object, kind: type, what: str) -> None:
    """Check the type of an argument at run time.

    Raises:
        TypeError: The value has another type.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{what}: expected {kind.__name__}, got {type(value).__name__}")


def check_json(value: object, label: str) -> None:
    """Check that a wire object has a JSON form: one such item would make the list of all fail.

    Raises:
        ValueError: A part has no JSON form; the text names its place, and the item by `label`.
    """
    place_and_part = _part_without_json(value, "", 20)
    if place_and_part is not None:
        place, part = place_and_part
        raise ValueError(
            f"{label}: {place.removeprefix('.') or 'members'}: expected a value that JSON can "
            f"express, got {safe_repr(part)}"
        )


def _part_without_json(value: object, place: str, levels: int) -> tuple[str, object] | None:
    """The place and the value of the innermost part that has no JSON form, within some levels."""
    try:
        encode(value)
    except EncodingError:
        pass
    else:
        return None
    parts: Iterator[tuple[str, object]] = iter(())
    if levels and is_object(value):
        parts = ((f".{safe_text(str(name))}", member) for name, member in value.items())
    elif levels and is_many(value):
        parts = ((f"[{index}]", item) for index, item in enumerate(value))
    inner = (_part_without_json(part, place + name, levels - 1) for name, part in parts)
    return next(filter(None, inner), (place, value))


def wire_of(value: object, kind: type[Wire], what: str) -> dict[str, Any]:
    """An object, or a mapping with its members, as wire object.

    Args:
        value: An object of the class or of a generated one, or a mapping; its keys are the names of
            members in Python or on the wire.
        kind: The class.
        what: Name of the argument, for a `TypeError`.
    """
    own: Any = kind
    if isinstance(value, STRUCTS):
        own, wire = type(value), to_builtins(value)
    elif is_object(value):
        fields, names = kind.__struct_fields__, kind.__struct_encode_fields__
        members = dict(zip(names + fields, names + names, strict=True))
        if unknown := value.keys() - members.keys():
            raise TypeError(
                f"{what}: unknown member {', '.join(sorted(map(repr, unknown)))}; "
                f"expected {', '.join(fields)}"
            )
        wire = {members[name]: each for name, each in value.items()}
    else:
        raise TypeError(f"{what}: expected {kind.__name__}, got {value!r}")
    try:
        checked: dict[str, Any] = to_builtins(convert(wire, own))
    except msgspec.ValidationError as error:
        raise TypeError(f"{what}: {error}") from error
    return checked


def check_mime_type(value: str) -> str:
    """The MIME type, after a check of its form.

    Raises:
        ValueError: It is not of the form type/subtype.
    """
    kind, slash, rest = value.partition("/")
    if not (kind and slash and rest) or any(c.isspace() for c in kind + rest.partition(";")[0]):
        raise ValueError(f"mime_type: expected type/subtype, got {value!r}")
    return value


_BINARY = "application/octet-stream"


def _read_file(path: FilePath, mime_type: str) -> tuple[bytes, str]:
    """The bytes of a file, and its MIME type."""
    from pathlib import Path  # not every program has it loaded

    return Path(path).read_bytes(), mime_type or guessed_mime_type(os.fsdecode(path))


def guessed_mime_type(name: str) -> str:
    """The MIME type of a file by the end of its name."""
    import mimetypes  # reads files of the system

    return mimetypes.guess_type(name, strict=False)[0] or _BINARY


def _media_type(ending: str, kind: str) -> str:
    """The MIME type of files with an ending, of a kind such as `image/`."""
    ending = ending.lower().removeprefix(".")
    guessed = guessed_mime_type(f"file.{ending}")
    return guessed if guessed.startswith(kind) else f"{kind}{ending}"


def _is_text(mime_type: str) -> bool:
    kind = mime_type.partition(";")[0]
    return kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "toml", "javascript"))


def _set(block: msgspec.Struct, **members: Any) -> None:
    """Set members of a new block. Members that are `None` are not sent."""
    for name, value in members.items():
        msgspec.structs.force_setattr(block, name, value)


_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource, File)
_BLOCK_TAGS = frozenset(tag_of(kind) for kind in _BLOCKS)


def is_content(value: object) -> bool:
    """Whether a value is a block of content: a class of this module, or a generated model."""
    if isinstance(value, _BLOCKS):
        return True
    return isinstance(value, STRUCTS) and is_content_type(type(value))


def _struct_of(kind: Any) -> StructType | None:
    """A class of messages, the newest one of a merged class; `None` for any other type."""
    if isinstance(kind, MergedClass):
        kind = next(kind.structs(), None)
    return kind if isinstance(kind, type) and issubclass(kind, STRUCTS) else None


def is_content_type(kind: Any) -> bool:
    """Whether the instances of a class are blocks of content."""
    struct = _struct_of(kind)
    if struct is None or struct in _BLOCKS:
        return struct is not None
    tag = tag_of(struct) if issubclass(struct, Struct) else None
    return tag is not None and (tag in _BLOCK_TAGS or _is_block_of_schema(struct))


@cache
def _is_block_of_schema(kind: StructType) -> bool:
    """Whether the results of tools in the revision of a generated class may have it as block."""
    results = filter(is_tool_result_type, vars(sys.modules[kind.__module__]).values())
    return any(kind in structs_in(field_type(each, "content")) for each in results)


def is_model(value: object, *members: str) -> bool:
    """Whether a value is a generated model with these members."""
    return isinstance(value, Struct) and all(hasattr(value, name) for name in members)


def is_tool_result_type(kind: Any) -> bool:
    """Whether a type is that of complete results: `ToolResult`, or a generated `CallToolResult`."""
    struct = _struct_of(kind)
    if struct is None or struct is ToolResult:
        return struct is not None
    return issubclass(struct, Struct) and "isError" in python_names(struct)


def as_tool_result(value: object) -> ToolResult | None:
    """A complete result as `ToolResult`; `None` for any other value."""
    if isinstance(value, ToolResult):
        return value
    if not is_model(value, "content", "is_error"):
        return None
    wire: dict[str, Any] = to_builtins(value)
    return ToolResult(
        content=value.content,  # type: ignore[attr-defined]  # by the check above
        structured=wire.get("structuredContent", msgspec.UNSET),
        meta=wire.get("_meta"),
        is_error=wire.get("isError", False),
    )


def wire_block(block: Any) -> dict[str, Any]:
    """A block of content as wire object; a string is text.

    Raises:
        ValueError: The data of a generated model, which is a string, is not base64.
    """
    if isinstance(block, str):
        return {"type": "text", "text": block}
    wire: dict[str, Any] = to_builtins(block)
    if isinstance(block, _Media):
        wire.setdefault("data", "")
    if wire["type"] == "resource":
        contents: dict[str, Any] = wire["resource"]
        default = "text/plain" if "text" in contents else "application/octet-stream"
        contents.setdefault("mimeType", default)
    if not isinstance(block, _BLOCKS) and wire["type"] in ("image", "audio"):
        _check_base64(wire.get("data"))
    return wire


def _check_base64(data: Any) -> None:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ValueError(f"data: expected base64, got {str(data)[:40]!r}") from error


def field_type(struct: StructType, wire_name: str) -> Any:
    """Type of the field with this wire name, or `None` if the Struct has no such field."""
    for field in fields(struct):
        if field.encode_name == wire_name:
            return field.type
    return None


def requires(struct: StructType, wire_name: str) -> bool:
    """Whether a Struct has a required field with this wire name."""
    return any(field.required and field.encode_name == wire_name for field in fields(struct))


def struct_with(annotation: Any, wire_name: str) -> StructType:
    """The first Struct of a type that has this field.

    Raises:
        LookupError: No Struct has it.
    """
    for struct in structs_in(annotation):
        if field_type(struct, wire_name) is not None:
            return struct
    raise LookupError(f"no member of {annotation!r} has the field {wire_name!r}")


def content_types(annotation: Any) -> dict[str, StructType]:
    """The content blocks that a type admits, by their `type` on the wire; empty for any value."""
    tagged = ((tag_of(struct), struct) for struct in structs_in(annotation))
    return {tag[1]: struct for tag, struct in tagged if tag is not None}
