"""What tools, prompts and resources return, whatever revision the peer speaks.

Each class is the newest wire form under its own name; a session whose revision knows less gets
less (see `shapes`). Bytes leave as base64.

Source: server/tools#tool-result, server/resources#data-types, server/prompts#promptmessage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base: camelCase on the wire, what is `None` stays away."""


class Annotations(Wire, frozen=True, kw_only=True):
    """Hints on whom something is for and how much it matters.

    Attributes:
        audience: Who should see it.
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
    """An image that stands for something in a user interface.

    Attributes:
        src: URL, or a `data:` URI.
        mime_type: Its type, if the source does not tell.
        sizes: Sizes such as `48x48`, or `any`.
        theme: The background it is made for.
    """

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] | None = None
    theme: Literal["light", "dark"] | None = None


class ToolAnnotations(Wire, frozen=True, kw_only=True):
    """What a tool says about its own behaviour; a hint, never a promise.

    Attributes:
        title: A name for people.
        read_only_hint: It changes nothing.
        destructive_hint: It may destroy something.
        idempotent_hint: Calling it again with the same arguments changes nothing further.
        open_world_hint: It deals with things outside the server.
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
    """A picture, as the bytes of its file."""


class Audio(_Media, frozen=True, tag="audio"):
    """A sound, as the bytes of its file. Revisions without audio get a line of text instead."""


class ResourceLink(_Block, frozen=True, kw_only=True, tag="resource_link"):
    """A pointer to a resource that a client can read.

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
    """What a resource contains: text or bytes, one of the two.

    Attributes:
        uri: Where it is; that of the request if left empty.
        text: The content, if it is text.
        blob: The content, if it is not.
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
    """A resource's contents inside a result or message."""

    resource: Contents

    def __post_init__(self) -> None:
        if not self.resource.uri:
            raise ValueError("uri: expected the resource's URI, got none")


Content: TypeAlias = Text | Image | Audio | ResourceLink | EmbeddedResource
"""Any block of content."""


class Message(Wire, frozen=True):
    """One message of a prompt. A plain string is text."""

    role: Literal["user", "assistant"]
    content: Content | str

    def __post_init__(self) -> None:
        if self.role not in ("user", "assistant"):
            raise ValueError(f"role: expected user or assistant, got {self.role!r}")


class ToolResult(Wire, frozen=True, kw_only=True):
    """A tool's result in full, for tools that say more than their return value can.

    Attributes:
        content: Blocks for the model; made from `structured` if `None`.
        structured: The value that `structuredContent` carries.
        meta: `_meta` of the result.
    """

    content: Sequence[Content | str] | None = None
    structured: Any = msgspec.UNSET
    meta: Mapping[str, Any] | None = None


def present(**members: Any) -> dict[str, Any]:
    """The members of a wire object, without those that are `None`."""
    return {name: value for name, value in members.items() if value is not None}


def expect(value: object, kind: type, what: str) -> None:
    """Hold what a caller without a type checker may have given against its type.

    Raises:
        TypeError: It is of another.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{what}: expected {kind.__name__}, got {type(value).__name__}")


def check_mime_type(value: str) -> str:
    """The MIME type, if it has the form of one.

    Raises:
        ValueError: It has not.
    """
    kind, slash, rest = value.partition("/")
    if not (kind and slash and rest) or any(c.isspace() for c in kind + rest.partition(";")[0]):
        raise ValueError(f"mime_type: expected type/subtype, got {value!r}")
    return value
