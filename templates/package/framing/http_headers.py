"""Header fields of HTTP: media types, and the characters of values.

Names of fields are compared case-insensitively, values case-sensitively.
"""

from __future__ import annotations

import re

JSON = "application/json"
"""The content type of a message, or of a batch of messages."""

_ALLOWED = re.compile(r"[\t\x20-\x7e]*\Z")
_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")


def is_visible_ascii(text: str) -> bool:
    """Whether a text is one or more characters from 0x21 to 0x7E, as a session id must be.

    Source: basic/transports (session management).
    """
    return _VISIBLE.match(text) is not None


def is_field_value(text: str) -> bool:
    """Whether a text is a valid field value: visible ASCII, space, tab."""
    return _ALLOWED.match(text) is not None


def media_type(content_type: str) -> str:
    """The media type of a `Content-Type`, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()
