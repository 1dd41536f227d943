"""Proof Key for Code Exchange (PKCE): the code verifier and its challenge.

Source: RFC 7636, sections 4.1 and 4.2; OAuth 2.1, section 7.5.2.
"""

from __future__ import annotations

from .base64url import base64url_sha256, random_base64url

METHOD = "S256"
"""The only supported code challenge method."""


def new_verifier() -> str:
    """A code verifier: 64 characters with 384 random bits."""
    return random_base64url(48)


def challenge_of(verifier: str) -> str:
    """The S256 code challenge of a code verifier."""
    return base64url_sha256(verifier)
