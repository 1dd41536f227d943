"""An enterprise's two authorization servers by Authlib, in Flask: they speak ID-JAG."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.drafts.id_jag import IDJAGGrant  # type: ignore[import-not-found] # no stubs
from authlib.oauth2.rfc6749 import (
    BaseGrant,
    ClientMixin,
    InvalidGrantError,
    InvalidRequestError,
    TokenEndpointMixin,
)
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify, request
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet
from werkzeug.serving import WSGIRequestHandler, make_server

from interop.protected import Place

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"


@dataclass
class Client(ClientMixin):
    """A client that was registered beforehand."""

    client_id: str
    secret: str = ""
    key: dict[str, Any] | None = None

    def get_client_id(self) -> str:
        return self.client_id

    def get_allowed_scope(self, scope: Any) -> str:
        return str(scope or "")

    def check_client_secret(self, client_secret: str) -> bool:
        return bool(self.secret) and client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == ("client_secret_basic" if self.key is None else "client_assertion_jwt")

    def check_grant_type(self, grant_type: str) -> bool:
        return True


@dataclass(frozen=True)
class User:
    """A user, and the MCP server that a token is for."""

    subject: str
    resource: str

    def get_user_id(self) -> str:
        return self.subject


@dataclass
class Issuer:
    """An authorization server."""

    url: str
    clients: dict[str, Client] = field(default_factory=dict[str, Client])
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256", {"use": "sig"}))
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    used: set[str] = field(default_factory=set[str])

    @property
    def token_endpoint(self) -> str:
        return f"{self.url}/token"


class IdentityProvider(Issuer):
    """Where users of the enterprise sign in."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.trusting: dict[str, str] = {}

    def id_token(self, subject: str, client_id: str = "desktop") -> str:
        """An ID token, as a client gets one when the user signs in."""
        now = int(time.time())
        claims = {"iss": self.url, "sub": subject, "aud": client_id, "iat": now, "exp": now + 600}
        return jwt.encode({"alg": "ES256"}, claims, self.key)

    def assertion(self, subject: str, issuer: str, resource: str, scope: str) -> str:
        """An ID-JAG for an authorization server."""
        now = int(time.time())
        text: str = IDJAGGrant.sign(
            self.key,
            self.url,
            issuer,
            subject,
            self.trusting[issuer],
            issued_at=now,
            expires_at=now + 300,
            claims={"resource": resource, "scope": scope},
            alg="ES256",
        )
        return text


def identity_provider(provider: IdentityProvider) -> Flask:
    """The application of an identity provider."""

    class Exchange(BaseGrant, TokenEndpointMixin):
        """RFC 8693, for assertions only."""

        GRANT_TYPE = EXCHANGE

        def validate_token_request(self) -> None:
            form = self.request.form
            self.request.client = self.authenticate_token_endpoint_client()
            if form.get("requested_token_type") != ID_JAG:
                raise InvalidRequestError("expected an ID-JAG to be asked for")
            if form.get("subject_token_type") != ID_TOKEN:
                raise InvalidRequestError("expected an ID token")
            if form.get("audience") not in provider.trusting or "resource" not in form:
                raise InvalidRequestError("expected an audience of this enterprise and a resource")
            try:
                claims = jwt.decode(form["subject_token"], provider.key).claims
                expected: Any = {
                    "iss": {"essential": True, "value": provider.url},
                    "aud": {"essential": True, "value": self.request.client.get_client_id()},
                    "exp": {"essential": True},
                }
                jwt.JWTClaimsRegistry(**expected).validate(claims)
            except (JoseError, ValueError):
                raise InvalidGrantError("expected an ID token of this client") from None
            self.request.user = claims["sub"]

        def create_token_response(self) -> Any:
            form = self.request.form
            scope = form.get("scope", "")
            assertion = provider.assertion(
                str(self.request.user), form["audience"], form["resource"], scope
            )
            body = {
                "issued_token_type": ID_JAG,
                "access_token": assertion,
                "token_type": "N_A",
                "scope": scope,
                "expires_in": 300,
            }
            return 200, body, self.TOKEN_RESPONSE_HEADER

    return _application(provider, Exchange)


def authorization_server(issuer: Issuer, provider: IdentityProvider) -> Flask:
    """The application of an authorization server that trusts an identity provider."""

    class Grant(IDJAGGrant):  # type: ignore[misc] # Authlib's stubs lack it
        """Authlib's grant, with what it asks applications for."""

        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_assertion_jwt")

        def get_audiences(self) -> list[str]:
            return [issuer.url]

        def resolve_issuer_key(self, url: str, headers: Any) -> KeySet:
            if url != provider.url:
                raise InvalidGrantError("expected an assertion of the enterprise")
            return KeySet([provider.key])

        def authenticate_user(self, subject: str) -> User:
            return User(subject, self.request.id_jag_claims["resource"])

        def check_jti(self, claims: Any, jti: str) -> bool:
            is_new = jti not in issuer.used
            issuer.used.add(jti)
            return is_new

        def check_id_jag_permission(self, client: Any, user: Any, scopes: Any) -> bool:
            return True

    class Generator(JWTBearerTokenGenerator):
        """Access tokens for the resource of the assertion."""

        def get_jwks(self) -> Any:
            return issuer.key

        def get_audiences(self, client: Any, user: Any, scope: Any) -> str:
            return str(user.resource)

    class Assertion(JWTBearerClientAssertion):
        """Clients that authenticate by a key."""

        def get_audiences(self) -> list[str]:
            return [issuer.url]

        def validate_jti(self, claims: Any, jti: str) -> bool:
            return True

        def resolve_client_public_key(self, client: Any) -> Any:
            return ECKey.import_key(client.key)

    app = _application(issuer, Grant)
    server: AuthorizationServer = app.extensions["authorization"]
    server.register_client_auth_method(Assertion.CLIENT_AUTH_METHOD, Assertion())

    server.register_token_generator("default", Generator(issuer.url, "ES256"))
    return app


def _application(issuer: Issuer, grant: Any) -> Flask:
    """Metadata, keys and a token endpoint."""
    app = Flask(__name__)
    server = AuthorizationServer(app, issuer.clients.get, lambda token, request: None)
    server.register_grant(grant)
    app.extensions["authorization"] = server

    def metadata() -> Any:
        return jsonify(
            issuer=issuer.url,
            token_endpoint=issuer.token_endpoint,
            jwks_uri=f"{issuer.url}/keys",
            grant_types_supported=[grant.GRANT_TYPE],
            token_endpoint_auth_methods_supported=["client_secret_basic", "private_key_jwt"],
        )

    def keys() -> Any:
        return jsonify(KeySet([issuer.key]).as_dict(private=False))

    def token() -> Any:
        issuer.forms.append(request.form.to_dict())
        return server.create_token_response()

    app.add_url_rule("/.well-known/oauth-authorization-server", view_func=metadata)
    app.add_url_rule("/keys", view_func=keys)
    app.add_url_rule("/token", view_func=token, methods=["POST"])
    return app


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextmanager
def run_app(app: Flask, place: Place) -> Iterator[None]:
    """Serve an application in a thread while the block runs."""
    descriptor = place.listener.fileno()
    server = make_server("127.0.0.1", 0, app, True, request_handler=_Quiet, fd=descriptor)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
