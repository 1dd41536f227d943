"""`data:` URIs: a media type and bytes, in a text.

Source: RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from .foreign_text import safe_repr

_SHOWN = 40
_BASE64 = ";base64"


@dataclass(frozen=True)
class DataUri:
    """The content of a `data:` URI.

    Attributes:
        media_type: Type and subtype in lower case, without parameters.
        data: The bytes.
    """

    media_type: str
    data: bytes


def is_data_uri(text: str) -> bool:
    """Whether a text has the scheme of `data:` URIs."""
    return text[:5].lower() == "data:"


def read_data_uri(text: str) -> DataUri:
    """Decode a `data:` URI, in Base64 or percent-encoded.

    Raises:
        ValueError: The text has another scheme, or is malformed.
    """
    if not is_data_uri(text):
        raise ValueError(f"expected a data: URI, got {safe_repr(text[:_SHOWN])}")
    head, comma, encoded = text[5:].partition(",")
    if not comma:
        raise ValueError(f"expected data:TYPE;base64,DATA, got {safe_repr(text[:_SHOWN])}")
    media_type = head.partition(";")[0].strip().lower() or "text/plain"
    data = unquote_to_bytes(encoded)
    if head.lower().endswith(_BASE64):
        data = from_base64(data)
    return DataUri(media_type, data)


def from_base64(value: str | bytes) -> bytes:
    """Decode Base64.

    Raises:
        ValueError: The value has other characters or no padding.
    """
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"expected Base64: {error}") from error
