"""Proof key for code exchange, and other unguessable values.

Source: RFC 7636, sections 4.1 and 4.2; OAuth 2.1, section 7.5.2.
"""

from __future__ import annotations

import base64
import hashlib
import secrets

METHOD = "S256"
"""The one method that is used."""


def base64url(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_verifier() -> str:
    """A code verifier: 64 characters with 384 bits."""
    return secrets.token_urlsafe(48)


def challenge_of(verifier: str) -> str:
    """The code challenge of a verifier, by S256."""
    return base64url(hashlib.sha256(verifier.encode("ascii")).digest())


def new_state() -> str:
    """A value for `state`, with 256 bits."""
    return secrets.token_urlsafe(32)
