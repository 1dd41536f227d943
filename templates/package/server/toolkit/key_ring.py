"""The keys of a server, which processes that serve together share, and their rotation.

The first key signs and seals; all keys verify and open. A new key is put first. The previous one
stays as long as signatures or session ids made with it are in use.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, runtime_checkable

from ..._wire import is_many
from .content import expect
from .dispatcher import Hooks
from .server import ServerKernel

KEY_BYTES = 16
"""Least length of a key."""

KEPT_KEYS = 2
"""Keys that a `MemoryKeyRing` keeps by default, the newest among them."""


@runtime_checkable
class KeyRing(Protocol):
    """The keys of one server, which may change while it serves."""

    def keys(self) -> Sequence[bytes]:
        """The keys, newest first; read for each signature and each session id."""
        ...

    async def rotate(self, key: bytes | None = None) -> None:
        """Put a new key before all others; a random one by default."""
        ...


StateKey: TypeAlias = bytes | Sequence[bytes] | KeyRing
"""One key, several keys with the newest first, or a `KeyRing`."""


class MemoryKeyRing:
    """Keys in the memory of one process.

    Args:
        key: One key, or several, newest first.
        kept: Keys that a rotation leaves, the new one among them.

    Raises:
        TypeError: A key is not bytes.
        ValueError: There is no key, a key is too short, or `kept` is less than 1.
    """

    def __init__(self, key: bytes | Sequence[bytes], kept: int = KEPT_KEYS) -> None:
        if kept < 1:
            raise ValueError(f"kept: expected at least 1, got {kept}")
        self._keys = _checked_keys(key)
        self._kept = kept

    def keys(self) -> Sequence[bytes]:
        """The keys, newest first."""
        return self._keys

    async def rotate(self, key: bytes | None = None) -> None:
        """Put a new key before all others, and drop the oldest ones beyond `kept`.

        Raises:
            TypeError: The key is not bytes.
            ValueError: The key is too short.
        """
        [new] = _checked_keys(os.urandom(32) if key is None else (key,))
        self._keys = (new, *self._keys)[: self._kept]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {len(self._keys)} keys>"


class ServerKeys:
    """The keys of one server: its own ones, or adopted ones of another server.

    Args:
        key: The keys; `None` makes a random one, which no other process has.
    """

    def __init__(self, key: StateKey | None) -> None:
        self._is_own = key is None
        self._ring: KeyRing
        if key is None:
            self._ring = MemoryKeyRing(os.urandom(32))
        else:
            self._ring = key if isinstance(key, KeyRing) else MemoryKeyRing(key)

    def keys(self) -> Sequence[bytes]:
        """The keys, newest first."""
        return self._ring.keys()

    def shared_keys(self) -> Sequence[bytes]:
        """The keys that other processes may have too; empty for a random one of this process."""
        return () if self._is_own else self._ring.keys()

    def adopt_keys(self, keys: ServerKeys) -> None:
        """Take the keys of another server, unless this one was given keys of its own."""
        if self._is_own and not keys._is_own:
            self._ring, self._is_own = keys._ring, False

    def adopt_key(self, key: bytes) -> None:
        """Take a key, unless this server was given keys."""
        if self._is_own:
            self._ring, self._is_own = MemoryKeyRing(key), False


class KeyOptions(TypedDict, total=False):
    """The keys of a server.

    Attributes:
        state_key: Key for signing request states and for sealing sessions into their ids, at least
            16 bytes; or several keys, of which the first signs and seals and all are accepted; or a
            `KeyRing`. The default is a random key per process, so that retries have to reach the
            same process. Set it if several processes serve together.
    """

    state_key: StateKey | None


class KeyedServer(ServerKernel):
    """A server that has keys."""

    def _use_options(self, options: dict[str, Any]) -> None:
        server_keys(self._dispatcher.hooks, options)
        super()._use_options(options)


def server_keys(hooks: Hooks, options: dict[str, Any]) -> ServerKeys:
    """The keys of a server, made of its option `state_key` if there are none yet.

    Raises:
        TypeError: A key is not bytes.
        ValueError: There is no key, or a key is too short.
    """
    if not isinstance(hooks.keys, ServerKeys):
        hooks.keys = ServerKeys(options.pop("state_key", None))
    return hooks.keys


def _checked_keys(key: bytes | Sequence[bytes]) -> tuple[bytes, ...]:
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
