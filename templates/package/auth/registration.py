"""How a client comes to an id: given, the address of its metadata, or by registration.

Source: basic/authorization (client registration); RFC 7591; the draft
draft-ietf-oauth-client-id-metadata-document-00.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

from ..errors import AuthorizationError
from ..foreign_text import safe_text
from .addresses import is_loopback
from .client_authentication import AuthMethod, ClientIdentity
from .discovery import Discovered, Surroundings
from .records import Registration, decoded_record, encoded_record, registration_key
from .steps import Fetch, Fetched, Flow, Load, Save
from .tokens import read_success

if TYPE_CHECKING:  # signing is an extra
    from .jwt_keys import PrivateKey

ApplicationType: TypeAlias = Literal["native", "web"]
"""What a client is, by OpenID Connect: an application on the user's machine, or on a host."""

GRANT_TYPES = ("authorization_code", "refresh_token")

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
"""The grant type of the device flow (RFC 8628)."""


@dataclass(frozen=True)
class ClientProfile:
    """What a user says of a client.

    Attributes:
        client_name: Its name, which the user is shown.
        client_id: An id that was registered beforehand.
        client_secret: The secret of that.
        issuer: The authorization server that these belong to.
        metadata_url: The address of its metadata, as an id for servers that support it.
        key: What it signs assertions with.
        method: How it authenticates; `None` to choose.
        audience: The audience of assertions; `None` for the issuer.
        application_type: What it is; `None` to tell from the redirect URI.
    """

    client_name: str = "MCP client"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    metadata_url: str | None = None
    key: PrivateKey | None = None
    method: AuthMethod | None = None
    audience: str | None = None
    application_type: ApplicationType | None = None


def check_metadata_url(url: str) -> None:
    """Refuse what can't be the address of a client's metadata.

    Raises:
        ValueError: It is not https, has no path, or has credentials, a fragment or dot segments.
    """
    split = urlsplit(url)
    if split.scheme != "https" or not split.hostname or split.path in ("", "/"):
        raise ValueError("metadata_url: expected https, a host and a path")
    if "@" in split.netloc or "#" in url or {".", ".."} & set(split.path.split("/")):
        raise ValueError("metadata_url: expected no credentials, fragment or dot segments")


def check_redirect_uri(uri: str) -> None:
    """Refuse a redirect URI that codes could be read at.

    Raises:
        ValueError: It is neither https nor loopback.
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
        url: The address that it is published at, to the letter.
        client_name: The name of the client.
        redirect_uris: Its redirect URIs, at least one.
        members: Further members, such as `jwks` with `token_endpoint_auth_method`.

    Raises:
        ValueError: A required member is missing, a URL is not allowed, or the document would need
            a shared secret.
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


def identified(
    around: Surroundings,
    profile: ClientProfile,
    server: Discovered,
    redirect_uri: str | None,
) -> Flow[ClientIdentity]:
    """Who the client is at an authorization server; registers it if need be.

    Args:
        around: The MCP server, and the rules.
        profile: The client.
        server: The authorization server.
        redirect_uri: Where the user comes back to; `None` for the device flow.

    Raises:
        OAuthError: The registration was refused.
        AuthorizationError: There is no way to an id.
    """
    if profile.client_id is not None:
        return ClientIdentity(
            profile.client_id, profile.client_secret, profile.method, profile.key, profile.audience
        )
    issuer = server.issuer
    if profile.metadata_url and issuer.says("client_id_metadata_document_supported"):
        method: AuthMethod = "none" if profile.key is None else "private_key_jwt"
        return ClientIdentity(profile.metadata_url, None, method, profile.key, profile.audience)
    key = registration_key(issuer.issuer)
    known = decoded_record((yield Load(key)), Registration)
    usable = known is not None and known.issuer == issuer.issuer
    if known is None or not usable or not _is_valid(known, redirect_uri, around.now()):
        if issuer.members.get("registration_endpoint") is None:
            raise AuthorizationError(
                f"{safe_text(issuer.issuer)} registers no clients: give the `client_id` that it"
                " knows the client by"
            )
        request = _request(profile, server, redirect_uri)
        known = yield from _registered(around, server, request)
        yield Save(key, encoded_record(known))
    return ClientIdentity(
        known.client_id, known.client_secret, known.method, profile.key, profile.audience
    )


def _is_valid(known: Registration, redirect_uri: str | None, now: float) -> bool:
    uris = known.redirect_uris
    fits = not uris if redirect_uri is None else redirect_uri in uris
    return fits and not 0 < known.expires_at <= now


def _request(
    profile: ClientProfile, server: Discovered, redirect_uri: str | None
) -> dict[str, Any]:
    """The metadata, without `scope`: a server that registers scopes refuses further ones later."""
    for_code = redirect_uri is not None
    request: dict[str, Any] = {
        "client_name": profile.client_name,
        "redirect_uris": [redirect_uri] if for_code else [],
        "grant_types": list(GRANT_TYPES) if for_code else [DEVICE_GRANT, "refresh_token"],
        "response_types": ["code"] if for_code else [],
        "token_endpoint_auth_method": _registered_method(profile, server),
    }
    if server.revision.facts.authorization.application_type:
        local = redirect_uri is None or is_loopback(urlsplit(redirect_uri).hostname or "")
        request["application_type"] = profile.application_type or ("native" if local else "web")
    return request


def _registered_method(profile: ClientProfile, server: Discovered) -> AuthMethod:
    """The authentication to ask for: the least that the server supports."""
    if profile.method is not None and profile.method != "private_key_jwt":
        return profile.method
    supported = server.issuer.texts("token_endpoint_auth_methods_supported")
    methods: tuple[AuthMethod, ...] = ("none", "client_secret_basic", "client_secret_post")
    for method in methods:
        if supported is None or method in supported:
            return method
    raise AuthorizationError("the token endpoint supports no method for a registered client")


def _registered(
    around: Surroundings, server: Discovered, request: Mapping[str, Any]
) -> Flow[Registration]:
    url = server.endpoint("registration_endpoint", around)
    fields = {"Accept": "application/json", "Content-Type": "application/json"}
    response: Fetched = yield Fetch("POST", url, fields, msgspec.json.encode(request))
    members = read_success(response, "registration of the client")
    identifier, secret = members.get("client_id"), members.get("client_secret")
    method = members.get("token_endpoint_auth_method", request["token_endpoint_auth_method"])
    expires = members.get("client_secret_expires_at")
    if not isinstance(identifier, str) or not identifier:
        raise AuthorizationError("registration of the client: expected a `client_id`")
    return Registration(
        server.issuer.issuer,
        identifier,
        secret if isinstance(secret, str) and secret else None,
        method if method in get_args(AuthMethod) else None,
        tuple(request["redirect_uris"]),
        float(expires) if isinstance(expires, int | float) else 0,
    )
