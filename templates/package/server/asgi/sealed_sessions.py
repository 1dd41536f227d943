"""Sessions that any process serves: the session id contains the encrypted session.

An id is `base64url(salt ciphertext tag)`. The plain text contains the revision, the capabilities
and implementation info of the client, and the times of start and expiry. Each id has its own key,
which HMAC-SHA-512 derives from the server's key and the salt: a random 128-bit salt is safe for far
more ids than a random nonce of AES-GCM under one key. The name of the server and the identity of
the owner are authenticated as associated data, so an id of another server or owner does not open.

Each POST of a sealed session is served on its own, as on a server without sessions, but with the
capabilities and the implementation info of the client. Features that need the same process again
are refused with an error that says so. If the client's data do not fit into an id, the session is
not sealed, and is kept in one process, as on a server without sealed ids.

Source: basic/transports#session-management (2025-03-26 to 2025-11-25).
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..._wire import UNREADABLE, UNWRITABLE
from ...errors import MissingExtraError, TransportError
from ...facts import Revisions
from ...protocol import jsonrpc
from ...protocol.lifecycle import Session
from ...runtime.request_context import PRINCIPAL, Identity
from ...runtime.task_scope import TaskScope
from ..serving import Service
from . import http_response
from .http_response import HttpResponse, Receive, Refused
from .http_response import Send as AsgiSend
from .http_session import HttpSession
from .quotas import Quotas
from .request import HttpRequest
from .session_endpoint import SessionEndpoint, initialize_request
from .settings import HttpSettings, Limits
from .used_ids import MemoryUsedIds, UsedIds

logger = logging.getLogger(__name__)

ID_CHARACTERS = 4096
"""Most characters of a sealed session id."""

ENDED = 10_000
"""Most ids of ended sessions that a process refuses; beyond that, the oldest are accepted again."""

LACKS = (
    "a store that the processes of this server share, and it has none: any process serves a "
    "session whose id carries it (sessions='sealed')"
)
"""The store that a sealed session lacks, as errors name it."""

_PURPOSE = b"mcp session id 1\n"
_SALT_BYTES = 16
_KEY_BYTES, _NONCE_BYTES = 32, 12

# hmac and cryptography are imported on first use: few servers need them.


class SealedSession(msgspec.Struct, frozen=True, array_like=True):
    """The session in a sealed id.

    Attributes:
        revision: Name of the revision.
        capabilities: The capabilities that the client declared.
        info: The client's implementation info.
        start: Time of the `initialize`, in seconds since the epoch.
        expires: Time after which the id is unknown, in seconds since the epoch.
    """

    revision: str
    capabilities: dict[str, Any]
    info: dict[str, Any] | None
    start: int
    expires: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SealedSession).decode


class SessionCipher:
    """Seals sessions into ids, and opens the ids.

    Args:
        name: Name of the server; servers of other names refuse the ids, even with the same keys.
        keys: Returns the keys: the first key seals, all keys open.
        seconds: Time from the start of a session to its expiry.
        now: The clock, in seconds since the epoch.

    Raises:
        MissingExtraError: `cryptography` is not installed.
    """

    def __init__(
        self,
        name: str,
        keys: Callable[[], Sequence[bytes]],
        seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtraError("sessions='sealed'", "cryptography") from None
        import hmac

        self._algorithm, self._invalid, self._digest = AESGCM, InvalidTag, hmac.digest
        self._name = name
        self._keys = keys
        self._seconds = seconds
        self._now = now

    def seal(self, session: Session, owner: Identity | None) -> str | None:
        """Seal a session into an id; `None` if the id would exceed `ID_CHARACTERS`.

        Args:
            session: The session.
            owner: The identity of the principal; `None` without authorization.
        """
        start = int(self._now())
        sealed = SealedSession(
            session.revision.name,
            dict(session.peer_capabilities),
            None if session.peer_info is None else dict(session.peer_info),
            start,
            start + max(1, round(self._seconds)),
        )
        try:
            text = _encode(sealed)
        except UNWRITABLE:  # such as a number of more than 64 bits
            return None
        salt = os.urandom(_SALT_BYTES)
        cipher, nonce = self._cipher_of(self._keys()[0], salt)
        identifier = _text_of(salt + cipher.encrypt(nonce, text, self._associated_data(owner)))
        return identifier if len(identifier) <= ID_CHARACTERS else None

    def open(self, identifier: str, owner: Identity | None) -> SealedSession | None:
        """Open a sealed id.

        Returns:
            `None` for an id that was not sealed with these keys for this owner, was altered, or
            has expired.
        """
        raw = _bytes_of(identifier)
        if raw is None:
            return None
        salt, text, associated = raw[:_SALT_BYTES], raw[_SALT_BYTES:], self._associated_data(owner)
        for key in self._keys():
            cipher, nonce = self._cipher_of(key, salt)
            try:
                sealed = _decode(cipher.decrypt(nonce, text, associated))
            except (self._invalid, *UNREADABLE):
                continue
            return sealed if self._now() < sealed.expires else None
        return None

    def _cipher_of(self, key: bytes, salt: bytes) -> tuple[Any, bytes]:
        """The cipher and the nonce of one id."""
        derived = self._digest(key, _PURPOSE + salt, "sha512")
        nonce = derived[_KEY_BYTES : _KEY_BYTES + _NONCE_BYTES]
        return self._algorithm(derived[:_KEY_BYTES]), nonce

    def _associated_data(self, owner: Identity | None) -> bytes:
        return _encode((self._name, owner))


class SealedEndpoint(SessionEndpoint):
    """Serves the revisions with sessions, with sealed ids; see `SessionEndpoint`.

    Args:
        worker: Its state has the ids of ended sessions; `None` to store them in this process. The
            other arguments are those of `SessionEndpoint`.

    Raises:
        ValueError: The server has no key.
        MissingExtraError: `cryptography` is not installed.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        worker: Any = None,
    ) -> None:
        super().__init__(service, settings, revisions, background, quotas)
        used = None if worker is None else worker.state.ended or worker.state.used
        self._ended: UsedIds = MemoryUsedIds(ENDED) if used is None else used
        self._end_response = _ENDED_HERE if used is None else HttpResponse(200)
        self._cipher = session_cipher(service, settings.limits)
        self._warned = False

    async def post(
        self,
        request: HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: Receive,
        send: AsgiSend,
        session: HttpSession | None = None,
    ) -> None:
        """Respond to one POST; see `SessionEndpoint.post`."""
        identifier = self.session_id_of(request)
        sealed = await self._open(identifier)
        initialize = initialize_request(message)
        if initialize is not None and (identifier is None or sealed is not None):
            await self.initialize(request, initialize, body, receive, send, self._identify)
            return
        if sealed is not None:
            revision = self.revisions[sealed.revision]
            self.check_version(request)
            if any(map(_is_response, messages)):
                text = f"a response needs {LACKS}: this server sends no requests in such a session"
                raise Refused(http_response.refusal(revision.facts.http.rejected, text))
            stated = Session(revision, {}, sealed.capabilities, sealed.info)
            session = self.single_session(request, stated, LACKS)
            session.session_id = identifier
        waiting = super().post(request, message, messages, body, receive, send, session)
        if waiting is not None:
            await waiting

    async def get(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        """Refuse to open a stream, which would carry the changes of one process only."""
        if await self._open(self.session_id_of(request)) is None:
            await super().get(request, receive, send)
            return
        self.check_version(request)
        raise Refused(_NO_STREAM)

    async def delete(self, request: HttpRequest, send: AsgiSend) -> None:
        """End a session. Processes without shared state do not learn this, and still serve it."""
        identifier = self.session_id_of(request)
        sealed = await self._open(identifier)
        if identifier is None or sealed is None:
            await super().delete(request, send)
            return
        self.check_version(request)
        try:
            await self._ended.use(_digest_of(identifier), sealed.expires - time.time())
        except TransportError:
            raise Refused(_UNREACHABLE) from None
        await self._end_response.send(send)

    async def _open(self, identifier: str | None) -> SealedSession | None:
        """Open a sealed id, if its revision is served and the session was not ended.

        Raises:
            Refused: The shared state can't be reached.
        """
        if identifier is None or self.registry.get(identifier) is not None:
            return None
        sealed = self._cipher.open(identifier, self._owner())
        if sealed is None or sealed.revision not in self.revisions:
            return None
        try:
            return None if await self._ended.is_used(_digest_of(identifier)) else sealed
        except TransportError:
            raise Refused(_UNREACHABLE) from None

    def _identify(self, session: Session) -> str | None:
        """The sealed id of a new session; `None` if this process has to keep it."""
        identifier = self._cipher.seal(session, self._owner())
        if identifier is None and not self._warned:
            self._warned = True
            logger.warning(
                "a client's info and capabilities don't fit into a session id of %d characters, so "
                "its session lives in this process; further ones are not logged",
                ID_CHARACTERS,
            )
        return identifier

    def _owner(self) -> Identity | None:
        return PRINCIPAL.get().identity if self.settings.is_protected else None


_NO_STREAM = http_response.refusal(
    405,
    f"a stream of changes, and what is resumed, needs {LACKS}",
    headers={"Allow": "POST, DELETE"},
)
_UNREACHABLE = http_response.unavailable(
    "the state that the processes of this server share can't be had now"
)
_ENDED_HERE = HttpResponse(
    200, b'{"ended":"in this process; others serve the id until it expires"}'
)


def session_cipher(service: Service, limits: Limits) -> SessionCipher:
    """The cipher of a server's session ids.

    Raises:
        ValueError: The server has no key.
        MissingExtraError: `cryptography` is not installed.
    """
    if not service.shared_keys():
        raise ValueError(
            "sessions='sealed': expected a key that all processes have, Server(state_key=...)"
        )
    info: Mapping[str, Any] = service.describe(service.revisions.newest()).info
    return SessionCipher(info["name"], service.shared_keys, limits.sealed_seconds)


def _is_response(message: jsonrpc.Message) -> bool:
    if isinstance(message, jsonrpc.InvalidMessage):
        return message.response
    return isinstance(message, (jsonrpc.Result, jsonrpc.Failure))


def _digest_of(identifier: str) -> bytes:
    return hashlib.sha256(identifier.encode()).digest()


def _text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bytes_of(identifier: str) -> bytes | None:
    """Decode an id; `None` unless it is the canonical base64url text of its bytes."""
    if len(identifier) > ID_CHARACTERS:
        return None
    try:
        raw = base64.urlsafe_b64decode(identifier + "=" * (-len(identifier) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if _text_of(raw) == identifier else None
