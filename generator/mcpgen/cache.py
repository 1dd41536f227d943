"""Results of earlier runs, by digest, below the user's cache directory.

An entry never changes: its key is a digest of all of its inputs. So processes need no lock: each
thread writes a file of its own, and one rename puts the file into place. An entry is read only if
its content has the digest that it begins with. A cache that cannot be read or written counts as
empty.

`MCPGEN_NO_CACHE`, set to anything, turns it off; so does `disable`.
"""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import platformdirs

VARIABLE = "MCPGEN_NO_CACHE"
"""The environment variable that turns the cache off."""

MAX_BYTES = 32 * 1024 * 1024
"""Size of all entries together, in bytes. The oldest are removed. A package takes some 400 kB."""

_is_disabled: ContextVar[bool] = ContextVar("is_disabled", default=False)
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".entry"
_LEVEL = 1  # of compression: the default takes 50 ms more for a package, and a fifth less space


def folder() -> Path:
    """The directory of the entries."""
    return platformdirs.user_cache_path("mcpgen", appauthor=False)


@contextmanager
def disable() -> Generator[None]:
    """Turn the cache off inside the block."""
    token = _is_disabled.set(True)
    try:
        yield
    finally:
        _is_disabled.reset(token)


def _is_off() -> bool:
    return _is_disabled.get() or bool(os.environ.get(VARIABLE))


def read(kind: str, key: str) -> bytes | None:
    """An entry, or `None` if there is none.

    Args:
        kind: The kind of entry, as a word.
        key: Digest of the inputs, in hex.
    """
    if _is_off():
        return None
    path = _path(kind, key)
    try:
        data = path.read_bytes()
        os.utime(path)  # the entry is in use
        content = zlib.decompress(data[_DIGEST:])
    except (OSError, zlib.error):
        return None
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def write(kind: str, key: str, content: bytes) -> None:
    """Store an entry, and remove the oldest ones beyond `MAX_BYTES`."""
    if _is_off():
        return
    path = _path(kind, key)
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            part.write_bytes(hashlib.sha256(content).digest() + zlib.compress(content, _LEVEL))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        _remove_oldest(path.parent)


def _path(kind: str, key: str) -> Path:
    return folder() / f"{kind}-{key}{_SUFFIX}"


def _remove_oldest(place: Path) -> None:
    with os.scandir(place) as entries:
        files = [(entry.stat(), entry.path) for entry in entries]
    files.sort(key=lambda row: row[0].st_mtime, reverse=True)
    total = 0
    for status, path in files:
        total += status.st_size
        if total > MAX_BYTES:
            Path(path).unlink(missing_ok=True)
