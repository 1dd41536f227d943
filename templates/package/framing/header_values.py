"""Values of messages in header fields: encoding, decoding and comparison.

A value that is not plain ASCII, or that looks like an encoded value, is encoded as
`=?base64?...?=`.

Source: basic/transports/streamable-http (2026-07-28: request metadata).
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from typing import Any

from ..errors import LocalProtocolError
from ..foreign_text import safe_repr
from .http_headers import is_field_value

SAFE_INTEGER = 2**53 - 1
"""The largest integer in a header; its negative is the smallest.

Source: basic/transports/streamable-http (2026-07-28: schema extension).
"""

_PREFIX, _SUFFIX = "=?base64?", "?="
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?\Z")


def value_text(value: Any) -> str:
    """The text of a value for a header, before encoding.

    Args:
        value: A string, an integer or a boolean; a float counts as the integer that it equals.

    Raises:
        LocalProtocolError: The value has another type, or is an integer beyond `SAFE_INTEGER`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise LocalProtocolError(
            f"expected a string, an integer or a boolean for a header, got {safe_repr(value, 80)}"
        )
    if abs(value) > SAFE_INTEGER:
        raise LocalProtocolError(
            f"expected an integer from {-SAFE_INTEGER} to {SAFE_INTEGER} for a header"
        )
    return str(value)


def encode_value(text: str) -> str:
    """A text as the value of a header, encoded if necessary.

    Raises:
        LocalProtocolError: The text has half of a surrogate pair, which has no UTF-8 form.
    """
    looks_encoded = text.startswith(_PREFIX) and text.endswith(_SUFFIX)
    if is_field_value(text) and text == text.strip() and not looks_encoded:
        return text
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError(f"expected text for a header, got {safe_repr(text, 80)}") from None
    return f"{_PREFIX}{base64.b64encode(raw).decode()}{_SUFFIX}"


def decode_value(value: str) -> str:
    """The decoded text of a header value.

    Args:
        value: The received value, without surrounding white space.

    Raises:
        ValueError: The value has invalid characters, or its encoding is invalid.
    """
    if not is_field_value(value):
        raise ValueError(f"invalid characters in {safe_repr(value, 80)}")
    shortest = len(_PREFIX) + len(_SUFFIX)
    if len(value) < shortest or not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)):
        return value
    inner = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        return base64.b64decode(inner, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"broken Base64 in {safe_repr(value, 80)}: {error}") from None


def equals_body_value(value: str, expected: Any) -> bool:
    """Whether the value of a header equals a value of the body.

    Numbers are compared as numbers: `42.0` equals 42.

    Args:
        value: The received value, without surrounding white space.
        expected: The value in the body.

    Raises:
        ValueError: The header value is invalid.
    """
    text = decode_value(value)
    if isinstance(expected, str):
        return text == expected
    if isinstance(expected, bool):
        return text == ("true" if expected else "false")
    if isinstance(expected, (int, float)):
        return _NUMBER.match(text) is not None and Decimal(text) == Decimal(expected)
    return False
