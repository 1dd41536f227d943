"""The server under test, protected, and the access token that a load sends to it."""

from __future__ import annotations

import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from mcpgen_runtime import JwtVerifier, Protected

from . import our_server

RESOURCE, ISSUER = "https://bench.example/mcp", "https://idp.example"


def protected_app(path: str) -> tuple[Any, str]:
    """The application, and a token for it."""
    key = ECKey.generate_key("P-256", {"kid": "one"})
    verifier = JwtVerifier(keys={"keys": [key.as_dict(private=False)]})
    auth = Protected(RESOURCE, issuers=[ISSUER], verifier=verifier, scopes=["mcp:read"])
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "alice",
        "client_id": "bench",
        "scope": "mcp:read",
        "iat": now,
        "exp": now + 3600,
    }
    token = jwt.encode({"alg": "ES256", "kid": "one", "typ": "at+jwt"}, claims, key)
    return our_server.server.asgi(path, auth=auth), token
