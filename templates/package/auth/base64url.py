"""Base64url without padding: encoding, decoding, digests and random values.

Source: RFC 7515, section 2; RFC 4648, section 5.
"""

from __future__ import annotations

import base64
import hashlib
import secrets


def base64url(data: bytes) -> str:
    """Bytes as base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def base64url_decoded(text: str) -> bytes:
    """The bytes of base64url; padding may be absent.

    Raises:
        ValueError: The length is impossible, or the text is not ASCII.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base64url_sha256(text: str) -> str:
    """The SHA-256 digest of text, as PKCE challenges and DPoP proofs contain it."""
    return base64url(hashlib.sha256(text.encode()).digest())


def random_base64url(size: int = 32) -> str:
    """An unguessable value.

    Args:
        size: Random bytes.
    """
    return secrets.token_urlsafe(size)
