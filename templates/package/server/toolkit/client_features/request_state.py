"""State that travels through the client's hands: signed, for one request, for a while.

A sealed text is `body.signature`, both base64url. The body holds when it expires, a digest of what
it belongs to, and the payload; the signature is HMAC-SHA256 over the body as text, so no other
text passes for the same state. It is signed, not hidden: a client can read what is in it.

Source: basic/patterns/mrtr#server-requirements-basic-workflow (2026-07-28).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from collections.abc import Sequence

from ....errors import InternalError, InvalidParamsError

STATE_LIMIT = 262_144
"""Most characters of a sealed state, given or taken."""

_PURPOSE = b"mcp requestState 1\n"
_HEAD = struct.Struct(">d32s")


class RequestStateSigner:
    """Seals and opens the states of one server.

    Args:
        name: The server's name: a state of one server is none of another with the same key.
        keys: The first signs, all verify.
        seconds: How long a state is good for.
        advice: What to say more when a state turns out not to be of these keys.
    """

    def __init__(self, name: str, keys: Sequence[bytes], seconds: float, advice: str = "") -> None:
        self._keys = keys
        self._advice = advice
        self._whose = _digest(name.encode())  # of one length, whatever the name
        self._seconds = seconds

    def seal(self, payload: bytes, binding: bytes) -> str:
        """A text that `open` takes back, for the same binding, until it expires.

        Args:
            payload: What to keep.
            binding: What the state belongs to.

        Raises:
            InternalError: It is too much for a state.
        """
        head = _HEAD.pack(time.time() + self._seconds, _digest(binding))
        body = _text(head + payload)
        sealed = f"{body}.{self._signature(self._keys[0], body)}"
        if len(sealed) > STATE_LIMIT:
            raise InternalError(
                f"the state of the request takes {len(sealed)} characters, "
                f"more than the {STATE_LIMIT} allowed"
            )
        return sealed

    def open(self, sealed: str, binding: bytes) -> bytes:
        """The payload of a state that comes back.

        Raises:
            InvalidParamsError: It was not sealed here, or was altered, belongs to something else,
                or has expired.
        """
        body, _, signature = sealed.partition(".")
        if len(sealed) > STATE_LIMIT or not self._verifies(body, signature):
            raise InvalidParamsError(
                f"requestState: expected one that this server gave, unaltered{self._advice}"
            )
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        expires, belongs_to = _HEAD.unpack_from(raw)
        if not hmac.compare_digest(belongs_to, _digest(binding)):
            raise InvalidParamsError("requestState: expected that of this request, not of another")
        if time.time() >= expires:
            raise InvalidParamsError("requestState: it has expired; send the request without it")
        return raw[_HEAD.size :]

    def _verifies(self, body: str, signature: str) -> bool:
        given = signature.encode("utf-8", "surrogatepass")
        found = [
            hmac.compare_digest(self._signature(key, body).encode(), given) for key in self._keys
        ]
        return any(found)

    def _signature(self, key: bytes, body: str) -> str:
        signed = _PURPOSE + self._whose + body.encode("utf-8", "surrogatepass")
        return _text(hmac.digest(key, signed, "sha256"))


def _digest(binding: bytes) -> bytes:
    return hashlib.sha256(binding).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
