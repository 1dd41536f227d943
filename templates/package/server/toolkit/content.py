"""Content that tools, prompts and resources return, the same classes in every revision.

Each class has the members of the newest revision. For an older revision `output_conversion` drops
members and replaces blocks that the revision does not have. Bytes are sent as base64.

Source: server/tools#tool-result, server/resources#data-types, server/prompts#promptmessage.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from ..._wire import to_builtins
from ...merged_models import MergedType


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base: camelCase on the wire; members that are `None` are left out."""


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


class _Media(_Block, frozen=True, tag=""):
    data: bytes
    mime_type: str

    def __post_init__(self) -> None:
        expect(self.data, bytes, "data")
        check_mime_type(self.mime_type)


class Image(_Media, frozen=True, tag="image"):
    """An image, as the bytes of its file."""


class Audio(_Media, frozen=True, tag="audio"):
    """Audio, as the bytes of its file. Revisions without audio get a line of text instead."""


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
        content: Blocks for the model; made from `structured` if `None`.
        structured: The value of `structuredContent`.
        meta: `_meta` of the result.
    """

    content: Sequence[Content | str] | None = None
    structured: Any = msgspec.UNSET
    meta: Mapping[str, Any] | None = None


def present(**members: Any) -> dict[str, Any]:
    """The members of a wire object, without those that are `None`."""
    return {name: value for name, value in members.items() if value is not None}


def expect(value: object, kind: type, what: str) -> None:
    """Check the type of an argument at run time.

    Raises:
        TypeError: The value has another type.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{what}: expected {kind.__name__}, got {type(value).__name__}")


def check_mime_type(value: str) -> str:
    """The MIME type, after a check of its form.

    Raises:
        ValueError: It is not of the form type/subtype.
    """
    kind, slash, rest = value.partition("/")
    if not (kind and slash and rest) or any(c.isspace() for c in kind + rest.partition(";")[0]):
        raise ValueError(f"mime_type: expected type/subtype, got {value!r}")
    return value


_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
_BLOCK_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in _BLOCKS)
_PACKAGE = __name__.rpartition(".server.")[0]


def is_content(value: object) -> bool:
    """Whether a value is a block of content: a class of this module, or a generated model."""
    if isinstance(value, _BLOCKS):
        return True
    return isinstance(value, msgspec.Struct) and is_content_type(type(value))


def is_content_type(kind: Any) -> bool:
    """Whether the instances of a class are blocks of content."""
    if isinstance(kind, MergedType):
        kind = next(kind.structs(), None)
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return False
    if kind in _BLOCKS:
        return True
    tag = kind.__struct_config__.tag
    return tag in _BLOCK_TAGS and kind.__module__.startswith(f"{_PACKAGE}.")


def wire_block(block: Any) -> dict[str, Any]:
    """A block of content as wire object; a string is text.

    Raises:
        ValueError: The data of a generated model, which is a string, is not base64.
    """
    if isinstance(block, str):
        return {"type": "text", "text": block}
    wire: dict[str, Any] = to_builtins(block)
    if wire["type"] == "resource":
        contents: dict[str, Any] = wire["resource"]
        default = "text/plain" if "text" in contents else "application/octet-stream"
        contents.setdefault("mimeType", default)
    if not isinstance(block, _BLOCKS) and "data" in wire:
        _check_base64(wire["data"])
    return wire


def _check_base64(data: Any) -> None:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ValueError(f"data: expected base64, got {str(data)[:40]!r}") from error
