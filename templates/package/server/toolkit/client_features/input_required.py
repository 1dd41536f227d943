"""Input that a request needs before it can be served: input requests, URL elicitations.

A handler asks through its `Context`, returns `InputRequired`, or raises
`URLElicitationRequiredError`. The client obtains the input and sends the request again.

The user acts on a web page outside the protocol, so only the server's own code knows when a URL
elicitation is complete. Only the client that was asked is notified then, by the elicitation's id.

The request state is a signed text that the client returns with its retry of the request. The text
is `body.signature`, both base64url. The body holds the time of expiry, a digest of the request, and
the payload. The signature is HMAC-SHA256 over the text of the body. The state is signed, not
encrypted: a client can read it.

Source: basic/patterns/mrtr, basic/patterns/mrtr#server-requirements-basic-workflow (2026-07-28),
client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import base64
import os
import struct
import time
import weakref
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ...._wire import to_builtins
from ....errors import (
    InternalError,
    InvalidParamsError,
    MissingCapabilityError,
    ProtocolError,
    TransportError,
)
from ....foreign_text import WEB_SCHEMES, safe_repr
from ....protocol.lifecycle import missing_capability
from ....runtime.pending_requests import PendingRequests
from ....runtime.request_context import RequestContext
from ..content import UnfinishedResult
from ..key_ring import ServerKeys

ELICITATION_COMPLETE = "notifications/elicitation/complete"
URL_ELICITATION_REQUIRED = -32042
ELICITATION_LIMIT = 10_000
"""Most open URL elicitations of one server; beyond that the oldest are forgotten."""

STATE_LIMIT = 262_144
"""Most characters of a signed state, sent or received."""

_PURPOSE = b"mcp requestState 1\n"
_HEAD = struct.Struct(">d32s")
_KEY_ADVICE = "; processes that serve together need the same setting 'state_key'"

# hashlib and hmac are imported when used first: they load slowly, and few servers need them.


class InputPending(BaseException):
    """Ends a handler whose question the client has not answered yet. Handlers must not catch it.

    It is not an `Exception`, so that `except Exception` in a handler lets it pass.
    """


class InputRequired(UnfinishedResult):
    """A result that asks the client to send the request again with answers.

    The retry has the answers in `Context.input_responses` and the state in
    `Context.request_state`. The toolkit signs the state, so the client can read but not change it.

    Args:
        requests: Input requests by keys of the handler's choice:
            `{"method": ..., "params": ...}`.
        state: Text that comes back with the answers.

    Raises:
        ValueError: There are neither requests nor a state, or a request has another form.
    """

    def __init__(
        self, requests: Mapping[str, Mapping[str, Any]] | None = None, state: str | None = None
    ) -> None:
        if not requests and state is None:
            raise ValueError("expected input requests, a state, or both; got neither")
        for key, request in (requests or {}).items():
            if "method" not in request or set(request) - {"method", "params"}:
                raise ValueError(
                    f"input request {key!r}: expected method and params, got {dict(request)!r}"
                )
        self.requests: dict[str, Any] = to_builtins(requests or {})
        self.state = state

    def check(self, request: RequestContext) -> None:
        """Check that the revision and the client allow this result of a request.

        Raises:
            InternalError: The revision has no such result for the method, or no such input request.
            MissingCapabilityError: The client did not declare a required capability.
        """
        method, revision = request.method.name, request.revision
        if not request.method.facts.input_required:
            raise InternalError(f"{method} can't ask for input in {revision.name}")
        for input_request in self.requests.values():
            name = input_request["method"]
            row = revision.input_requests.get(name)
            if row is None:
                raise InternalError(f"{name} is no input request in {revision.name}")
            path = missing_capability(row, input_request.get("params"), request.peer_capabilities)
            if path is not None:
                raise MissingCapabilityError(path, row.name)


class URLElicitation(msgspec.Struct, frozen=True):
    """A web page that the user has to visit.

    Attributes:
        message: Why the visit is needed.
        url: URL of the page, without secrets.
        elicitation_id: Id in revisions that have one; generated if `None`.
        schemes: Allowed schemes of the URL; most clients open http and https only.
    """

    message: str
    url: str
    elicitation_id: str | None = None
    schemes: Collection[str] = WEB_SCHEMES


class URLElicitationRequiredError(ProtocolError):
    """The user has to visit web pages before the request can be served; the client may retry then.

    In revisions with input requests the toolkit asks for the visits by its result instead.

    Attributes:
        elicitations: The pages, at least one.

    Source: client/elicitation#url-elicitation-required-error (2025-11-25).
    """

    default_code = URL_ELICITATION_REQUIRED

    def __init__(
        self,
        *elicitations: URLElicitation,
        message: str = "the user has to go to a web page first",
    ) -> None:
        if not elicitations:
            raise ValueError("expected a URL elicitation, got none")
        with_ids = [each if each.elicitation_id else _with_new_id(each) for each in elicitations]
        wire = [
            {
                "mode": "url",
                "message": each.message,
                "url": each.url,
                "elicitationId": each.elicitation_id,
            }
            for each in with_ids
        ]
        super().__init__(message, data={"elicitations": wire})
        self.elicitations = tuple(with_ids)


def _with_new_id(elicitation: URLElicitation) -> URLElicitation:
    return msgspec.structs.replace(elicitation, elicitation_id=_new_id())


def _new_id() -> str:
    return os.urandom(16).hex()


class OpenURLElicitations:
    """The URL elicitations of one server that are not complete yet.

    The elicitations of a client are forgotten when its connection is gone.
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[weakref.ref[PendingRequests], str]] = {}

    def begin(self, request: RequestContext, url: str, identifier: str | None) -> str:
        """Register an elicitation and return its id, which is generated if `None`.

        Raises:
            ValueError: The id belongs to another elicitation.
        """
        identifier = _new_id() if identifier is None else identifier
        peer, open_url = self._open.pop(identifier, (None, url))
        if peer is not None and (peer() is not request.peer or open_url != url):
            self._open[identifier] = (peer, open_url)
            raise ValueError(
                f"elicitation_id {safe_repr(identifier)} is that of another elicitation"
            )
        self._open[identifier] = (weakref.ref(request.peer), url)
        if len(self._open) > ELICITATION_LIMIT:
            del self._open[next(iter(self._open))]
        return identifier

    async def complete(self, identifier: str) -> bool:
        """Notify the client of a completed elicitation; return whether it was notified."""
        reference, _ = self._open.pop(identifier, (None, ""))
        peer = None if reference is None else reference()
        if peer is None:
            return False
        try:
            await peer.notify(ELICITATION_COMPLETE, {"elicitationId": identifier})
        except TransportError:
            return False
        return True


class RequestStateSigner:
    """Signs and verifies the request states of one server, with the keys of that server.

    Args:
        name: The server's name; servers with another name refuse the state, even with one key.
        keys: The keys for signatures. A process with another random key refuses the state.
        seconds: How long a state is valid.

    Raises:
        TypeError: `seconds` is not a number.
        ValueError: `seconds` is not positive.
    """

    def __init__(self, name: str, keys: ServerKeys, seconds: float) -> None:
        if type(seconds) not in (float, int):
            raise TypeError(f"state_seconds: expected a number, got {seconds!r}")
        if not seconds > 0:
            raise ValueError(f"state_seconds: expected more than 0, got {seconds!r}")
        self._keys = keys
        self._name = name
        self._seconds = seconds

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
        signed = f"{body}.{self._signature(self._keys.keys()[0], body, owner)}"
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
            advice = "" if self._keys.shared_keys() else _KEY_ADVICE
            raise InvalidParamsError(
                f"requestState: expected one that this server gave, unaltered{advice}"
            )
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        expires, request_digest = _HEAD.unpack_from(raw)
        if not _is_same(request_digest, _digest(binding)):
            raise InvalidParamsError("requestState: expected that of this request, not of another")
        if time.time() >= expires:
            raise InvalidParamsError("requestState: it has expired; send the request without it")
        return raw[_HEAD.size :]

    def _is_valid(self, body: str, signature: str, owner: bytes) -> bool:
        """Compare with the signatures of all keys, so that the time does not reveal the key."""
        received = signature.encode("utf-8", "surrogatepass")
        keys = self._keys.keys()
        expected = [self._signature(key, body, owner).encode() for key in keys]
        matches = [_is_same(each, received) for each in expected]
        return any(matches)

    def _signature(self, key: bytes, body: str, owner: bytes) -> str:
        import hmac

        name = self._name.encode() + (b"\n" + owner if owner else b"")
        name_digest = _digest(name)  # fixed length: names and bodies can't be shifted
        message = _PURPOSE + name_digest + body.encode("utf-8", "surrogatepass")
        return _base64(hmac.digest(key, message, "sha256"))


def _is_same(first: bytes, second: bytes) -> bool:
    import hmac

    return hmac.compare_digest(first, second)


def _digest(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).digest()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
