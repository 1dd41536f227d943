"""Files in arguments of tools, as `data:` URIs.

A draft: SEP-2356 was closed in June 2026 in favour of SEP-2631, a draft that keeps the keyword
`x-mcp-file`.

Source: SEP-2356 (File input support for tools and elicitation), state of May 2026.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from ...data_uris import read_data_uri
from ...foreign_text import safe_repr
from ...values.value_types import CustomType, Schema, Use


class _FileType(CustomType):
    """The metaclass of `FileInput`, whose values are instances, other than those of its base."""

    def __instancecheck__(self, value: object) -> bool:
        return type.__instancecheck__(self, value)


class FileInput(bytes, metaclass=_FileType):
    """A file that a client sends in an argument, as a `data:` URI: its bytes, and their type.

    The schema of the argument has the keyword `x-mcp-file`, by which a client knows that its user
    may choose a file. Other URIs are refused, and none is opened. A subclass has limits:

        class Picture(FileInput, accept=["image/png", "image/jpeg"], max_size=5_000_000): ...

    Attributes:
        media_type: Type and subtype, in lower case: a claim of the client.
    """

    accept: ClassVar[tuple[str, ...]] = ()
    max_size: ClassVar[int | None] = None
    media_type: str

    def __new__(cls, data: bytes, media_type: str = "application/octet-stream") -> Self:
        file = super().__new__(cls, data)
        file.media_type = media_type
        return file

    def __init_subclass__(cls, *, accept: Sequence[str] = (), max_size: int | None = None) -> None:
        """Set the limits of a kind of file.

        Args:
            accept: The media types that are taken, such as `image/png` or `image/*`. Extensions
                such as `.pdf` only tell the client what to offer: with one, no type is refused.
            max_size: Most bytes of the file.

        Raises:
            TypeError: `accept` is a text instead of a list of texts.
            ValueError: An item of `accept` is neither a media type nor an extension, or `max_size`
                is not above 0.
        """
        super().__init_subclass__()
        if isinstance(accept, str):
            raise TypeError(f"accept: expected a list of media types, got {accept!r}")
        for each in accept:
            kind, slash, subtype = each.partition("/")
            if not each.startswith(".") and not (kind and slash and subtype):
                raise ValueError(f"accept: expected a media type or '.extension', got {each!r}")
        if max_size is not None and max_size < 1:
            raise ValueError(f"max_size: expected more than 0 bytes, got {max_size}")
        cls.accept, cls.max_size = tuple(accept), max_size
        _add_conversion(cls)


def _add_conversion(kind: type[FileInput]) -> None:
    custom: Any = kind
    custom.read, custom.write = partial(_read_file, kind), _uri_of
    custom.make_schema = partial(_schema_of, kind)


def _read_file(kind: type[FileInput], value: Any, strict: bool) -> FileInput:
    """The file of a `data:` URI.

    Raises:
        ValueError: The value is no `data:` URI, or the file has another type or is too large.
    """
    match value:
        case str():
            file = read_data_uri(value)
        case _:
            raise ValueError(f"expected a data: URI, got {safe_repr(value)}")
    if not _accepts(kind.accept, file.media_type):
        expected = " or ".join(kind.accept)
        raise ValueError(f"expected a file of type {expected}, got {safe_repr(file.media_type)}")
    if kind.max_size is not None and len(file.data) > kind.max_size:
        raise ValueError(f"expected at most {kind.max_size} bytes, got {len(file.data)}")
    return kind(file.data, file.media_type)


def _uri_of(file: FileInput) -> str:
    return f"data:{file.media_type};base64,{base64.b64encode(file).decode()}"


def _schema_of(kind: type[FileInput], use: Use) -> Schema:
    """The JSON Schema, with the keyword `x-mcp-file`."""
    limits: Schema = {"accept": list(kind.accept), "maxSize": kind.max_size}
    stated = {name: value for name, value in limits.items() if value}
    return {"type": "string", "format": "uri", "x-mcp-file": stated}


def _accepts(accept: Sequence[str], media_type: str) -> bool:
    accepted = {each.lower() for each in accept}
    is_open = not accepted or any(each.startswith(".") for each in accepted)
    kind = media_type.partition("/")[0]
    return is_open or not accepted.isdisjoint({media_type, f"{kind}/*", "*/*"})


_add_conversion(FileInput)
