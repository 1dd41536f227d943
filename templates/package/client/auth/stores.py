"""Stores of grants and registrations: the interface, a store in memory, and a store in files.

Only the owner can read the files. Their locks hold between processes.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import anyio
from anyio import to_thread

from ...errors import AuthorizationError, MissingExtraError

_POLL_SECONDS = 0.01
_FILE_POLL_SECONDS = 0.05
_SERVICE = "mcp-authorization"
_NONCE_BYTES = 12


class Store(Protocol):
    """Stores the records of one user by key. Records contain secrets.

    Several tasks and processes may share a store. To store the records of several users, give each
    a store that adds the user to the key.
    """

    async def load(self, key: str) -> bytes | None:
        """The record of a key; `None` if absent."""
        ...

    async def save(self, key: str, record: bytes | None) -> None:
        """Write a record atomically; `None` removes it."""
        ...

    def lock(self, key: str) -> AbstractAsyncContextManager[object]:
        """Lock a key against other tasks and processes, while its token is refreshed.

        The lock is held for a request to a token endpoint, never for a request to an MCP server.
        Leaving the context releases the lock, also on cancellation.
        """
        ...


class MemoryStore:
    """Stores records until the process ends. Event loops of several threads may share it."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._locks: dict[str, Lock] = {}

    def __repr__(self) -> str:
        return f"<MemoryStore of {len(self._records)} records>"

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        return self._records.get(key)

    async def save(self, key: str, record: bytes | None) -> None:
        """See `Store.save`."""
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """See `Store.lock`."""
        lock = self._locks.setdefault(key, Lock())
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - no event works across threads
            await anyio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()


class FileStore:
    """Stores each record in a file, which is replaced atomically. Needs filelock.

    Records are encrypted with a key in the keyring of the system, if there is one.

    Args:
        folder: The folder, which is created if necessary; `None` for the data folder of the user
            (needs platformdirs).
        encrypted: Whether records are encrypted (needs keyring and cryptography); `None` to encrypt
            if these are installed and the system has a keyring.

    Raises:
        MissingExtraError: A library is not installed.
    """

    def __init__(self, folder: str | Path | None = None, *, encrypted: bool | None = None) -> None:
        try:
            import filelock
        except ImportError:
            raise MissingExtraError("a store in files", "filelock") from None
        self._filelock = filelock
        self._folder = _user_folder() if folder is None else Path(folder)
        self._encrypted = encrypted
        self._cipher: Any = None
        self._cipher_opened = encrypted is False

    def __repr__(self) -> str:
        return f"<FileStore {str(self._folder)!r}>"

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`. A record that cannot be decrypted is treated as absent."""
        return await to_thread.run_sync(self._read, key)

    async def save(self, key: str, record: bytes | None) -> None:
        """See `Store.save`."""
        with anyio.CancelScope(shield=True):  # a refreshed token must not be lost
            await to_thread.run_sync(self._write, key, record)

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """See `Store.lock`."""
        self._make_folder()
        lock = self._filelock.FileLock(f"{self._path(key)}.lock", thread_local=False, mode=0o600)
        while True:
            try:
                lock.acquire(blocking=False)
                break
            except self._filelock.Timeout:
                await anyio.sleep(_FILE_POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()

    def _read(self, key: str) -> bytes | None:
        try:
            data = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        cipher = self._open_cipher()
        if cipher is None:
            return data
        from cryptography.exceptions import InvalidTag

        try:
            nonce, rest = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            plain: bytes = cipher.decrypt(nonce, rest, key.encode())
        except (InvalidTag, ValueError):
            return None
        return plain

    def _write(self, key: str, record: bytes | None) -> None:
        path = self._path(key)
        if record is None:
            path.unlink(missing_ok=True)
            return
        self._make_folder()
        data, cipher = record, self._open_cipher()
        if cipher is not None:
            nonce = secrets.token_bytes(_NONCE_BYTES)
            data = nonce + bytes(cipher.encrypt(nonce, record, key.encode()))
        handle, name = tempfile.mkstemp(dir=self._folder)  # with mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    def _open_cipher(self) -> Any:
        """The cipher; `None` to store records unencrypted."""
        if not self._cipher_opened:
            self._cipher = _keyring_cipher(str(self._folder.resolve()), self._encrypted is True)
            self._cipher_opened = True
        return self._cipher


def _keyring_cipher(name: str, required: bool) -> Any:
    """AES-GCM with a key in the keyring, created if absent; `None` if that is impossible."""
    try:
        import keyring
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from keyring.errors import KeyringError
    except ImportError:
        if required:
            raise MissingExtraError("an encrypted store", "keyring cryptography") from None
        return None
    try:
        text = keyring.get_password(_SERVICE, name)
        if text is None:
            text = b64encode(secrets.token_bytes(32)).decode()
            keyring.set_password(_SERVICE, name, text)
            text = keyring.get_password(_SERVICE, name) or text
        return AESGCM(b64decode(text))
    except (KeyringError, RuntimeError, ValueError):
        if required:
            raise AuthorizationError("an encrypted store needs a keyring of the system") from None
        return None


def _user_folder() -> Path:
    try:
        import platformdirs
    except ImportError:
        raise MissingExtraError("a store without a folder", "platformdirs") from None
    return Path(platformdirs.user_data_path(_SERVICE))
