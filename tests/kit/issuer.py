"""An authorization server for tests: it signs tokens, and serves metadata and keys on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from joserfc import jws
from joserfc.jwk import ECKey, JWKRegistry, Key
from joserfc.jws import JWSRegistry
from joserfc.registry import HeaderParameter

from kit.pages import serving

RESOURCE = "https://h/mcp"
IDP = "https://idp.example"


def new_key(kid: str = "one", kind: str = "EC", crv: str | int = "P-256") -> Key:
    """A new private key."""
    return JWKRegistry.generate_key(kind, crv, {"kid": kid, "use": "sig"})


KEY = new_key()
DAY = 86_400
"""How long a token holds, in seconds: longer than any run that imports a table of tokens."""


def jwk_set(*keys: Key) -> dict[str, Any]:
    """The JWK set of the public parts of keys."""
    return {"keys": [key.as_dict(private=False) for key in keys]}


def sign_token(header: Mapping[str, Any], claims: Mapping[str, Any], key: Key | None) -> str:
    """A token in compact serialization, whatever is wrong with it."""
    anything = HeaderParameter("any value", lambda _: None)
    known = dict.fromkeys(header.keys() - {"alg"}, anything)
    registry = JWSRegistry(known, [header["alg"]], strict_check_header=False)
    registry.max_header_length = 100_000
    return jws.serialize_compact(dict(header), json.dumps(claims), key, registry=registry)


def claims_of(
    subject: str = "alice", scope: str | None = "mcp:read", **more: Any
) -> dict[str, Any]:
    """The claims of an access token; `None` leaves one out."""
    now = int(time.time())
    claims = {
        "iss": IDP,
        "aud": RESOURCE,
        "sub": subject,
        "client_id": "agent",
        "scope": scope,
        "iat": now,
        "exp": now + DAY,
        **more,
    }
    return {name: value for name, value in claims.items() if value is not None}


def token_of(
    subject: str = "alice",
    scope: str | None = "mcp:read",
    *,
    key: Key | None = KEY,
    header: Mapping[str, Any] = {},
    **more: Any,
) -> str:
    """An access token."""
    kid = key.kid if key is not None else None
    head = {"alg": "ES256", "typ": "at+jwt", "kid": kid, **header}
    head = {name: value for name, value in head.items() if value is not None}
    return sign_token(head, claims_of(subject, scope, **more), key)


def bearer(token: str) -> str:
    """The value of `Authorization` for a token."""
    return f"Bearer {token}"


def proof_of(
    key: Key,
    token: str,
    *,
    method: str = "POST",
    url: str = RESOURCE,
    header: Mapping[str, Any] = {},
    sign_with: Key | None = None,
    **more: Any,
) -> str:
    """A DPoP proof."""
    ath = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=").decode()
    jwk = {k: v for k, v in key.as_dict(private=False).items() if k in ("kty", "crv", "x", "y")}
    head = {"alg": "ES256", "typ": "dpop+jwt", "jwk": jwk, **header}
    claims = {
        "jti": secrets.token_hex(8),
        "htm": method,
        "htu": url,
        "iat": int(time.time()),
        "ath": ath,
        **more,
    }
    return sign_token(head, {k: v for k, v in claims.items() if v is not None}, sign_with or key)


def proof_key() -> ECKey:
    """A key of a client for DPoP."""
    return ECKey.generate_key("P-256")


class LoopbackIssuer:
    """The authorization server that `serving_issuer` serves."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Key] = [KEY]
        self.requests: list[str] = []
        self.active: dict[str, dict[str, Any]] = {}
        self.jwks_uri: str | None = None
        self.failing = False
        self.raw: bytes | None = None
        self.answering = threading.Event()
        self.answering.set()
        self.forms: list[tuple[str | None, dict[str, list[str]]]] = []

    def document(self, path: str) -> Any:
        """The document at a path; `None` for none."""
        if path == "/.well-known/oauth-authorization-server":
            return {
                "issuer": self.url,
                "jwks_uri": self.jwks_uri or f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
            }
        return jwk_set(*self.keys) if path == "/jwks" else None

    def answer(self, path: str, form: dict[str, list[str]]) -> Any:
        """A token for the client's own credentials, or what a token stands for."""
        if path != "/token":
            return self.active.get(form["token"][0], {"active": False})
        scope = form.get("scope", [""])[0]
        token = token_of("robot", scope, iss=self.url, aud=form["resource"][0])
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": scope}


@contextmanager
def serving_issuer() -> Iterator[LoopbackIssuer]:
    """An issuer at a free port of loopback, in a thread."""
    issuer = LoopbackIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.requests.append(self.path)
            self.answer(issuer.document(self.path))

        def do_POST(self) -> None:
            issuer.requests.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = parse_qs(body)
            issuer.forms.append((self.headers["Authorization"], form))
            self.answer(issuer.answer(self.path, form))

        def answer(self, document: Any) -> None:
            issuer.answering.wait(60)
            status = 500 if issuer.failing else 404 if document is None else 200
            body = json.dumps(document).encode() if issuer.raw is None else issuer.raw
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle_one_request(self) -> None:
            with suppress(ConnectionError):  # of a client that waits no longer
                super().handle_one_request()

    with serving(Handler) as issuer.url:
        try:
            yield issuer
        finally:
            issuer.answering.set()
