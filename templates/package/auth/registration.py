"""Client ids: pre-registered, a client id metadata document, or dynamic registration.

Source: basic/authorization (client registration); RFC 7591; the draft
draft-ietf-oauth-client-id-metadata-document-00.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ..errors import AuthorizationError
from ..foreign_text import safe_text
from ..framing.http_hosts import is_loopback
from .discovery import AuthorizationServer, FlowContext
from .identifiers import parse_scopes, union_of_scopes
from .json_documents import finite_number
from .jwt_signing import PrivateKey
from .steps import Fetch, Fetched, Flow, Load, Save
from .token_endpoint import (
    AuthMethod,
    ClientIdentity,
    OAuthError,
    decode_record,
    encode_record,
    read_success,
)

ApplicationType: TypeAlias = Literal["native", "web"]
"""Whether a client runs on the user's machine or on a web server (OpenID Connect)."""

GRANT_TYPES = ("authorization_code", "refresh_token")

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
"""The grant type of the device flow (RFC 8628)."""


@dataclass(frozen=True)
class ClientProfile:
    """The configuration of a client.

    Attributes:
        client_name: The name to show the user.
        client_id: A pre-registered client id; `None` to obtain a client id.
        client_secret: The secret of the pre-registered client id.
        metadata_url: The URL of the client id metadata document, which is the client id at servers
            that support such documents.
        key: The key that signs assertions.
        method: The authentication method; `None` to choose a method.
        audience: The audience of assertions; `None` for the issuer.
        application_type: `native` or `web`; `None` to derive it from the redirect URI.
    """

    client_name: str = "MCP client"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    metadata_url: str | None = None
    key: PrivateKey | None = None
    method: AuthMethod | None = None
    audience: str | None = None
    application_type: ApplicationType | None = None


@dataclass(frozen=True)
class Registration:
    """A client registration at an authorization server.

    Attributes:
        issuer: The authorization server.
        client_id: The issued client id.
        client_secret: The issued client secret; `None` for a public client.
        method: The registered authentication method of the token endpoint.
        redirect_uris: The registered redirect URIs.
        expires_at: When the secret expires, in seconds since 1970; 0 for never.
        scopes: The scopes that the client may request; `None` if neither side named any.
        limits_scopes: Whether the authorization server limits the client to `scopes`.
        any_port: Whether the authorization server accepts a redirect URI on loopback with another
            port than the registered port; `None` before the first attempt, `False` until one
            succeeds.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    redirect_uris: tuple[str, ...] = ()
    expires_at: float = 0
    scopes: tuple[str, ...] | None = None
    limits_scopes: bool = True
    any_port: bool | None = None


def check_metadata_url(url: str) -> None:
    """Check the URL of a client id metadata document.

    Raises:
        ValueError: The URL is not https, has no path, or has credentials, a fragment or dot
            segments.
    """
    split = urlsplit(url)
    if split.scheme != "https" or not split.hostname or split.path in ("", "/"):
        raise ValueError("metadata_url: expected https, a host and a path")
    if "@" in split.netloc or "#" in url or {".", ".."} & set(split.path.split("/")):
        raise ValueError("metadata_url: expected no credentials, fragment or dot segments")


def check_redirect_uri(uri: str) -> None:
    """Check a redirect URI, so that authorization codes cannot be intercepted.

    Raises:
        ValueError: The URI is neither https nor http to loopback, or has a fragment.
    """
    split = urlsplit(uri)
    local = split.scheme == "http" and is_loopback(split.hostname or "")
    if not split.hostname or not (local or split.scheme == "https") or "#" in uri:
        raise ValueError("redirect URI: expected https, or http to loopback, without fragment")


def client_metadata_document(
    url: str, client_name: str, redirect_uris: tuple[str, ...], **members: Any
) -> dict[str, Any]:
    """The document to publish at `metadata_url`.

    Args:
        url: The exact URL that the document is published at.
        client_name: The name of the client.
        redirect_uris: The redirect URIs, at least one.
        members: Further members, such as `jwks` with `token_endpoint_auth_method`.

    Raises:
        ValueError: A required member is missing, a URL is not allowed, or the authentication
            method requires a shared secret.
    """
    check_metadata_url(url)
    if not client_name or not redirect_uris:
        raise ValueError("expected a client name and a redirect URI")
    for uri in redirect_uris:
        check_redirect_uri(uri)
    method = members.get("token_endpoint_auth_method", "none")
    if method not in ("none", "private_key_jwt") or "client_secret" in members:
        raise ValueError("expected no shared secret: `none` or `private_key_jwt`")
    return {
        "client_id": url,
        "client_name": client_name,
        "redirect_uris": list(redirect_uris),
        "grant_types": list(GRANT_TYPES),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        **members,
    }


def identify_client(
    context: FlowContext,
    profile: ClientProfile,
    server: AuthorizationServer,
    redirect_uri: str | None,
    scopes: tuple[str, ...],
) -> Flow[ClientIdentity]:
    """Identify the client at an authorization server; register the client if necessary.

    Args:
        context: The state that all flows for the MCP server share.
        profile: The client.
        server: The authorization server.
        redirect_uri: The redirect URI; `None` for the device flow.
        scopes: The scopes to request. A client that needs further scopes registers again if the
            server limits the client to the scopes of its registration.

    Raises:
        OAuthError: The registration was refused.
        AuthorizationError: The client has no id, and the server offers no registration.
    """
    if profile.client_id is not None:
        return ClientIdentity(
            profile.client_id, profile.client_secret, profile.method, profile.key, profile.audience
        )
    metadata = server.metadata
    if profile.metadata_url and metadata.is_true("client_id_metadata_document_supported"):
        method: AuthMethod = "none" if profile.key is None else "private_key_jwt"
        return ClientIdentity(profile.metadata_url, None, method, profile.key, profile.audience)
    stored = yield from load_registration(metadata.issuer)
    if stored is not None and _is_valid(stored, redirect_uri, scopes, context.now()):
        registration = stored
        if stored.any_port is None and not _is_registered(stored, redirect_uri):
            yield from _save_registration(replace(stored, any_port=False))
    else:
        if metadata.members.get("registration_endpoint") is None:
            raise AuthorizationError(
                f"{safe_text(metadata.issuer)} does not register clients: give the `client_id`"
                " of a pre-registered client"
            )
        request = _registration_request(profile, server, redirect_uri, scopes)
        registration = yield from _register(context, server, request)
        if stored is not None and stored.any_port is False:
            registration = replace(registration, any_port=False)
        yield from _save_registration(registration)
    return ClientIdentity(
        registration.client_id,
        registration.client_secret,
        registration.method,
        profile.key,
        profile.audience,
    )


def registration_key(issuer: str) -> str:
    """The store key of a registration."""
    return f"registration {issuer}"


def load_registration(issuer: str) -> Flow[Registration | None]:
    """The stored registration at an authorization server; `None` if there is none."""
    stored = decode_record((yield Load(registration_key(issuer))), Registration)
    return stored if stored is not None and stored.issuer == issuer else None


def _save_registration(registration: Registration) -> Flow[None]:
    yield Save(registration_key(registration.issuer), encode_record(registration))


def confirm_redirect_uri(issuer: str, client_id: str | None, redirect_uri: str) -> Flow[None]:
    """Record that an authorization server accepted a redirect URI for a client."""
    stored = yield from load_registration(issuer)
    if stored is None or stored.client_id != client_id or stored.any_port:
        return
    if not _is_registered(stored, redirect_uri):
        yield from _save_registration(replace(stored, any_port=True))


def limit_scopes(issuer: str, client_id: str | None, scopes: tuple[str, ...]) -> Flow[bool]:
    """Record that an authorization server refused scopes that the registration does not have.

    Returns:
        Whether the registration lacks the scopes, so that a new registration may help.
    """
    stored = yield from load_registration(issuer)
    if stored is None or stored.client_id != client_id or stored.limits_scopes:
        return False
    if _is_for_scopes(stored, scopes):
        return False
    yield from _save_registration(replace(stored, limits_scopes=True))
    return True


def _is_valid(
    stored: Registration, redirect_uri: str | None, scopes: tuple[str, ...], now: float
) -> bool:
    is_for_uri = _is_registered(stored, redirect_uri) or (
        redirect_uri is not None
        and stored.any_port is not False
        and _without_port(redirect_uri) in map(_without_port, stored.redirect_uris)
    )
    is_for_scopes = not stored.limits_scopes or _is_for_scopes(stored, scopes)
    return is_for_uri and is_for_scopes and not 0 < stored.expires_at <= now


def _is_registered(stored: Registration, redirect_uri: str | None) -> bool:
    """Whether a registration has a redirect URI; `None` stands for the device flow."""
    uris = stored.redirect_uris
    return not uris if redirect_uri is None else redirect_uri in uris


def _is_for_scopes(stored: Registration, scopes: tuple[str, ...]) -> bool:
    return stored.scopes is None or set(scopes) <= set(stored.scopes)


def _without_port(uri: str) -> str:
    """A redirect URI; on loopback without its port.

    Source: RFC 8252, section 7.3.
    """
    split = urlsplit(uri)
    if split.scheme != "http" or not is_loopback(split.hostname or ""):
        return uri
    return urlunsplit(split._replace(netloc=re.sub(r":[0-9]*\Z", "", split.netloc)))


def _registration_request(
    profile: ClientProfile,
    server: AuthorizationServer,
    redirect_uri: str | None,
    scopes: tuple[str, ...],
) -> dict[str, Any]:
    """The client metadata, with the scopes to request and those that the MCP server lists."""
    for_code = redirect_uri is not None
    request: dict[str, Any] = {
        "client_name": profile.client_name,
        "redirect_uris": [redirect_uri] if for_code else [],
        "grant_types": list(GRANT_TYPES) if for_code else [DEVICE_GRANT, "refresh_token"],
        "response_types": ["code"] if for_code else [],
        "token_endpoint_auth_method": _registered_method(profile, server),
    }
    if registered := union_of_scopes(scopes, server.scopes_supported or ()):
        request["scope"] = " ".join(registered)
    if server.revision.facts.authorization.application_type:
        local = redirect_uri is None or is_loopback(urlsplit(redirect_uri).hostname or "")
        request["application_type"] = profile.application_type or ("native" if local else "web")
    return request


def _registered_method(profile: ClientProfile, server: AuthorizationServer) -> AuthMethod:
    """The authentication method to register: the simplest that the server supports."""
    if profile.method is not None and profile.method != "private_key_jwt":
        return profile.method
    supported = server.metadata.strings("token_endpoint_auth_methods_supported")
    methods: tuple[AuthMethod, ...] = ("none", "client_secret_basic", "client_secret_post")
    for method in methods:
        if supported is None or method in supported:
            return method
    raise AuthorizationError("the token endpoint supports no method for a registered client")


def _register(
    context: FlowContext, server: AuthorizationServer, request: Mapping[str, Any]
) -> Flow[Registration]:
    url = server.endpoint("registration_endpoint", context)
    fields = {"Accept": "application/json", "Content-Type": "application/json"}
    response: Fetched = yield Fetch("POST", url, fields, msgspec.json.encode(request))
    try:
        members = read_success(response, "registration of the client")
    except OAuthError as error:
        if error.code != "invalid_client_metadata" or "scope" not in request:
            raise
        # Some servers do not know the scopes of the resources that they protect.
        without_scope = {name: value for name, value in request.items() if name != "scope"}
        return (yield from _register(context, server, without_scope))
    identifier, secret = members.get("client_id"), members.get("client_secret")
    method = members.get("token_endpoint_auth_method")
    if method is None:
        method = request["token_endpoint_auth_method"]
        if method == "none" and isinstance(secret, str) and secret:
            method = _secret_method(server)
    expires = members.get("client_secret_expires_at")
    if not isinstance(identifier, str) or not identifier:
        raise AuthorizationError("registration of the client: expected a `client_id`")
    return Registration(
        server.metadata.issuer,
        identifier,
        secret if isinstance(secret, str) and secret else None,
        method if method in get_args(AuthMethod) else None,
        tuple(request["redirect_uris"]),
        finite_number(expires) or 0,
        _registered_scopes(request.get("scope"), members.get("scope")),
        isinstance(members.get("scope"), str),
    )


def _secret_method(server: AuthorizationServer) -> AuthMethod:
    """The method of a client that got a secret, and no method with it.

    Source: RFC 7591, section 2 (`client_secret_basic` by default).
    """
    supported = server.metadata.strings("token_endpoint_auth_methods_supported") or ()
    only_post = "client_secret_post" in supported and "client_secret_basic" not in supported
    return "client_secret_post" if only_post else "client_secret_basic"


def _registered_scopes(requested: object, registered: object) -> tuple[str, ...] | None:
    """The scopes that a client may request; `None` if neither side named any."""
    named = [parse_scopes(each) for each in (requested, registered) if isinstance(each, str)]
    return union_of_scopes(*named) if named else None
