"""Request state: a signed text that a client returns with its retry of one request.

The text is `body.signature`, both base64url. The body holds the time of expiry, a digest of the
request, and the payload. The signature is HMAC-SHA256 over the text of the body. The state is
signed, not encrypted: a client can read it.

Source: basic/patterns/mrtr#server-requirements-basic-workflow (2026-07-28).
"""

from __future__ import annotations

import base64
import os
import struct
import time
from collections.abc import Sequence
from typing import TypeAlias

from ...._wire import is_many
from ....errors import InternalError, InvalidParamsError
from ..content import expect

STATE_LIMIT = 262_144
"""Most characters of a signed state, sent or received."""

KEY_BYTES = 16
"""Least length of a key."""

StateKey: TypeAlias = bytes | Sequence[bytes]
"""One key, or several: the first signs, all verify."""

_PURPOSE = b"mcp requestState 1\n"
_HEAD = struct.Struct(">d32s")
_KEY_ADVICE = "; processes that serve together need the same setting 'state_key'"

# hashlib and hmac are imported when used first: they load slowly, and few servers need them.


class RequestStateSigner:
    """Signs and verifies the request states of one server.

    Args:
        name: The server's name; servers with another name refuse the state, even with one key.
        key: Keys for signatures; `None` makes a random one, so that no other process, and no later
            start of this one, accepts the state.
        seconds: How long a state is valid.

    Raises:
        TypeError: A key is not bytes, or `seconds` is not a number.
        ValueError: There is no key, a key is too short, or `seconds` is not positive.
    """

    def __init__(self, name: str, key: StateKey | None, seconds: float) -> None:
        if type(seconds) not in (float, int):
            raise TypeError(f"state_seconds: expected a number, got {seconds!r}")
        if not seconds > 0:
            raise ValueError(f"state_seconds: expected more than 0, got {seconds!r}")
        self._name = name
        self._keys = (os.urandom(32),) if key is None else _checked_keys(key)
        self._advice = _KEY_ADVICE if key is None else ""
        self._seconds = seconds

    def adopt_keys(self, signer: RequestStateSigner) -> None:
        """Take the keys of another server, unless this one was given keys of its own."""
        if self._advice and not signer._advice:
            self._keys, self._advice = signer._keys, ""

    def adopt_key(self, key: bytes) -> None:
        """Take a key, unless this signer was given keys."""
        if self._advice:
            self._keys, self._advice = (key,), ""

    def sign(self, payload: bytes, binding: bytes, owner: bytes = b"") -> str:
        """A text that `verify` accepts for the same binding and owner until it expires.

        Args:
            payload: The state.
            binding: Identifies the request that the state belongs to.
            owner: Identifies the principal that the state belongs to; empty for any.

        Raises:
            InternalError: The state is too large.
        """
        head = _HEAD.pack(time.time() + self._seconds, _digest(binding))
        body = _base64(head + payload)
        signed = f"{body}.{self._signature(self._keys[0], body, owner)}"
        if len(signed) > STATE_LIMIT:
            raise InternalError(
                f"the state of the request takes {len(signed)} characters, "
                f"more than the {STATE_LIMIT} allowed"
            )
        return signed

    def verify(self, signed: str, binding: bytes, owner: bytes = b"") -> bytes:
        """The payload of a state that a client returned.

        Raises:
            InvalidParamsError: The state was not signed by these keys for this owner, was altered,
                belongs to another request, or has expired.
        """
        body, _, signature = signed.partition(".")
        if len(signed) > STATE_LIMIT or not self._is_valid(body, signature, owner):
            raise InvalidParamsError(
                f"requestState: expected one that this server gave, unaltered{self._advice}"
            )
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        expires, request_digest = _HEAD.unpack_from(raw)
        if not _is_same(request_digest, _digest(binding)):
            raise InvalidParamsError("requestState: expected that of this request, not of another")
        if time.time() >= expires:
            raise InvalidParamsError("requestState: it has expired; send the request without it")
        return raw[_HEAD.size :]

    def _is_valid(self, body: str, signature: str, owner: bytes) -> bool:
        """Compare with the signatures of all keys, so that the time taken tells none of them."""
        received = signature.encode("utf-8", "surrogatepass")
        expected = [self._signature(key, body, owner).encode() for key in self._keys]
        matches = [_is_same(each, received) for each in expected]
        return any(matches)

    def _signature(self, key: bytes, body: str, owner: bytes) -> str:
        import hmac

        name = self._name.encode() + (b"\n" + owner if owner else b"")
        name_digest = _digest(name)  # of fixed length, so that no two inputs agree
        message = _PURPOSE + name_digest + body.encode("utf-8", "surrogatepass")
        return _base64(hmac.digest(key, message, "sha256"))


def _checked_keys(key: StateKey) -> tuple[bytes, ...]:
    unchecked: object = (key,) if isinstance(key, bytes) else key
    if not is_many(unchecked):
        raise TypeError(f"state_key: expected bytes, got {type(key).__name__}")
    keys: tuple[bytes, ...] = tuple(unchecked)
    for each in keys:
        expect(each, bytes, "state_key")
        if len(each) < KEY_BYTES:
            raise ValueError(f"state_key: expected at least {KEY_BYTES} bytes, got {len(each)}")
    if not keys:
        raise ValueError("state_key: expected a key, got an empty list")
    return keys


def _is_same(first: bytes, second: bytes) -> bool:
    import hmac

    return hmac.compare_digest(first, second)


def _digest(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).digest()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
