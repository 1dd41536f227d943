"""What the handlers of one server ask their clients with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...._wire import is_many
from ....runtime.request_context import RequestContext
from ..content import expect
from .url_elicitation import Elicitations

if TYPE_CHECKING:
    from .multi_round_trip import MultiRoundTrip
    from .request_state import RequestStateSigner

StateKey: TypeAlias = bytes | Sequence[bytes]
"""One key, or several: the first signs, all verify."""

KEY_BYTES = 16
"""Least length of a key."""

_OWN_KEY = "; processes that serve together need the same setting 'state_key'"


class FeatureSettings:
    """What is kept for all requests of one server.

    Args:
        name: The server's name.
        key: What signs the states that travel through the hands of clients; made up if `None`, so
            that no other process can open what this one sealed, nor this one after a restart.
        seconds: How long a state is good for.

    Attributes:
        elicitations: URL mode elicitations under way.

    Raises:
        TypeError: A key is not bytes, or the time no number.
        ValueError: No key, a short one, or no time at all.
    """

    def __init__(self, name: str, key: StateKey | None, seconds: float) -> None:
        if type(seconds) not in (float, int):
            raise TypeError(f"state_seconds: expected a number, got {seconds!r}")
        if not seconds > 0:
            raise ValueError(f"state_seconds: expected more than 0, got {seconds!r}")
        self._name = name
        self._keys = _keys(key)
        self._advice = _OWN_KEY if key is None else ""
        self._seconds = seconds
        self._sealer: RequestStateSigner | None = None
        self.elicitations = Elicitations()

    def dialogue(self, exchange: RequestContext) -> MultiRoundTrip:
        """A fresh dialogue for a request.

        Raises:
            InvalidParamsError: The request's state is not one that was given for it.
        """
        from .multi_round_trip import MultiRoundTrip  # what a server never asks is not loaded
        from .request_state import RequestStateSigner

        if self._sealer is None:
            self._sealer = RequestStateSigner(self._name, self._keys, self._seconds, self._advice)
        return MultiRoundTrip(exchange, self._sealer)


def _keys(key: StateKey | None) -> tuple[bytes, ...]:
    if key is None:
        return (os.urandom(32),)
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
