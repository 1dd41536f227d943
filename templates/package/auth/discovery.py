"""Discovery of the authorization server of an MCP server, from the metadata documents of both.

Errors about a document name the document and the member, and contain no text of the document.

Source: basic/authorization (authorization server discovery); RFC 9728, sections 2, 3.3 and 5;
RFC 8414, sections 2 and 3; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..errors import AuthorizationError
from ..facts import Revision
from ..foreign_text import safe_text
from .address_rules import AddressCheck
from .challenges import Challenge
from .identifiers import (
    AUTHORIZATION_SERVER,
    OFFLINE_ACCESS,
    authorization_server_urls,
    canonical_resource,
    includes_url,
    origin_of,
    parse_scopes,
    protected_resource_urls,
    union_of_scopes,
)
from .json_documents import parse_object
from .jwt_signing import ProofKey
from .steps import Fetch, Fetched, Flow

DOCUMENT_LIMIT = 512 * 1024
"""Longest document, or other response of an authorization server, in bytes."""

_DEFAULT_ENDPOINTS: Mapping[str, str] = {
    "authorization_endpoint": "/authorize",
    "registration_endpoint": "/register",
    "token_endpoint": "/token",
}


@dataclass(frozen=True)
class ResourceMetadata:
    """The metadata of a protected resource.

    Attributes:
        resource: The resource identifier, as written.
        authorization_servers: The issuers, as written; at least one.
        scopes_supported: The supported scopes; `None` if absent.
    """

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] | None


@dataclass(frozen=True)
class AuthorizationServerMetadata:
    """The metadata of an authorization server.

    Attributes:
        issuer: The issuer identifier, as written.
        members: The whole document.
    """

    issuer: str
    members: Mapping[str, Any]

    def strings(self, name: str) -> tuple[str, ...] | None:
        """A member that is an array of strings, without items of other types; `None` if absent."""
        return _strings(self.members.get(name))

    def is_true(self, name: str) -> bool:
        """Whether a member is `true`."""
        return self.members.get(name) is True


@dataclass(frozen=True)
class FlowContext:
    """The state that all flows for one MCP server share.

    Attributes:
        server_url: The URL of the MCP server.
        revision: The newest revision that the client offers.
        older: Returns the revision to fall back to, whose authorization server is at the origin of
            the MCP server; `None` if the client offers no such revision.
        addresses: Checks URLs before requests.
        now: Returns the time, in seconds since 1970.
        proofs: The key that tokens are bound to; `None` for bearer tokens.
        send_resource: Whether requests have the `resource` parameter.
        accept_issuer_slash: Whether the issuer in metadata may differ by a trailing slash.
    """

    server_url: str
    revision: Revision
    older: Callable[[], Revision | None]
    addresses: AddressCheck
    now: Callable[[], float]
    proofs: ProofKey | None = None
    send_resource: bool = True
    accept_issuer_slash: bool = False


@dataclass(frozen=True)
class AuthorizationServer:
    """The authorization server of an MCP server: the result of discovery.

    Attributes:
        metadata: The metadata of the authorization server.
        resource: The `resource` parameter of requests; `None` to omit it.
        scopes_supported: The scopes that the MCP server lists; `None` if it lists none.
        revision: The revision whose rules apply.
    """

    metadata: AuthorizationServerMetadata
    resource: str | None
    scopes_supported: tuple[str, ...] | None
    revision: Revision

    def endpoint(self, name: str, context: FlowContext) -> str:
        """The URL of an endpoint, by its member of the metadata.

        Raises:
            AuthorizationError: The metadata has no such endpoint, or its URL is not allowed.
        """
        value = self.metadata.members.get(name)
        if value is None:
            raise AuthorizationError(f"{safe_text(self.metadata.issuer)} has no `{name}`")
        return context.addresses.check(value, f"`{name}`")


def discover(
    context: FlowContext, challenges: Sequence[Challenge], required_issuer: str | None
) -> Flow[AuthorizationServer]:
    """Find the authorization server of an MCP server.

    Args:
        context: The state that all flows for the MCP server share.
        challenges: The challenges of the MCP server's refusal; empty without a refusal.
        required_issuer: The issuer that the client's credentials belong to; `None` for any issuer.

    Raises:
        AuthorizationError: The MCP server names no authorization server, or does not list the
            required issuer, or the metadata is malformed.
    """
    context.addresses.check_server(context.server_url)
    if context.revision.facts.authorization.discovery == "origin":
        return (yield from _discover_at_origin(context, context.revision))
    metadata = yield from _find_resource_metadata(context, challenges)
    if metadata is not None:
        issuer = _select_issuer(context, metadata.authorization_servers, required_issuer)
        resource, scopes = metadata.resource, metadata.scopes_supported
    elif required_issuer is not None:
        issuer, resource, scopes = required_issuer, canonical_resource(context.server_url), None
    else:
        older = context.older()
        if older is None:
            raise AuthorizationError("the server has no metadata with an authorization server")
        return (yield from _discover_at_origin(context, older))
    server_metadata = yield from _fetch_metadata(context, issuer)
    return AuthorizationServer(
        server_metadata, resource if context.send_resource else None, scopes, context.revision
    )


def _select_issuer(context: FlowContext, listed: Sequence[str], required_issuer: str | None) -> str:
    """The issuer to use: the required issuer, or the first that the metadata lists."""
    if required_issuer is None:
        return listed[0]
    for issuer in listed:
        if _is_same_issuer(context, issuer, required_issuer):
            return required_issuer
    raise AuthorizationError(
        f"expected the authorization server {safe_text(required_issuer)}, which the"
        f" credentials belong to; the server names {safe_text(listed[0])}"
    )


def _is_same_issuer(context: FlowContext, issuer: str, other: str) -> bool:
    if context.accept_issuer_slash:
        return issuer.removesuffix("/") == other.removesuffix("/")
    return issuer == other


def _find_resource_metadata(
    context: FlowContext, challenges: Sequence[Challenge]
) -> Flow[ResourceMetadata | None]:
    """The metadata of the MCP server, at the URL of a challenge or at a well-known URL."""
    for challenge in challenges:
        if url := challenge.parameters.get("resource_metadata"):
            context.addresses.check(url, "`resource_metadata` of the challenge")
            response: Fetched = yield Fetch("GET", url, _request_fields(context.revision))
            if response.status != 200:
                raise AuthorizationError(
                    f"the metadata that the challenge names: HTTP {response.status}"
                )
            return _read_own_metadata(context, response.body)
    for url in protected_resource_urls(context.server_url):
        context.addresses.check(url, "the server's URL")
        response = yield Fetch("GET", url, _request_fields(context.revision))
        if response.status == 200 and _has_object(response.body):
            return _read_own_metadata(context, response.body)
    return None


def _read_own_metadata(context: FlowContext, body: bytes) -> ResourceMetadata:
    """The metadata of the MCP server, or of a parent of its URL.

    RFC 9728, section 3.3, wants `resource` to be the very URL. Widespread servers name their origin
    or a parent path, and their authorization servers expect that text as `resource` of requests.
    """
    metadata = read_resource_metadata(body, "the metadata of the server")
    if not includes_url(metadata.resource, context.server_url):
        raise AuthorizationError("the metadata of the server is that of another resource")
    return metadata


def _fetch_metadata(context: FlowContext, issuer: str) -> Flow[AuthorizationServerMetadata]:
    context.addresses.check(issuer, "the issuer")
    for url in authorization_server_urls(issuer):
        response: Fetched = yield Fetch("GET", url, _request_fields(context.revision))
        if response.status == 200 and _has_object(response.body):
            expected = issuer
            if context.accept_issuer_slash:
                named = read_object(response.body, "the issuer").get("issuer")
                if isinstance(named, str) and _is_same_issuer(context, named, issuer):
                    expected = named
            return read_server_metadata(response.body, "the metadata of the issuer", expected)
    raise AuthorizationError(f"{safe_text(issuer)} has no metadata at its well-known URLs")


def _discover_at_origin(context: FlowContext, revision: Revision) -> Flow[AuthorizationServer]:
    """The authorization server at the origin of the MCP server, by metadata or by default."""
    origin = origin_of(context.server_url)
    url = context.addresses.check(origin + AUTHORIZATION_SERVER, "the server's URL")
    response: Fetched = yield Fetch("GET", url, _request_fields(revision))
    if response.status == 200 and _has_object(response.body):
        members = read_object(response.body, "the metadata of the issuer")
        # A trailing slash is allowed: this revision derives the issuer from the URL of the server.
        issuer = f"{origin}/" if members.get("issuer") == f"{origin}/" else origin
        metadata = read_server_metadata(response.body, "the metadata of the issuer", issuer)
    else:
        endpoints = {name: origin + path for name, path in _DEFAULT_ENDPOINTS.items()}
        metadata = AuthorizationServerMetadata(origin, {"issuer": origin, **endpoints})
    return AuthorizationServer(metadata, None, None, revision)


def _request_fields(revision: Revision) -> dict[str, str]:
    header = revision.facts.authorization.version_header
    named = {} if header is None else {header: revision.name}
    return {"Accept": "application/json", **named}


def _has_object(body: bytes) -> bool:
    """Whether a body is a JSON object. Some servers respond to all URLs with a web page."""
    return parse_object(body) is not None


def initial_scopes(
    challenges: Sequence[Challenge], server: AuthorizationServer, configured: Sequence[str]
) -> tuple[str, ...]:
    """The scopes to request first; empty to omit the `scope` parameter.

    They are the scopes of the challenge, or those that the MCP server lists if the challenge names
    none, together with the configured scopes. An MCP server cannot make a client request
    `offline_access` of an authorization server that does not list it.

    Source: basic/authorization (scope selection strategy, refresh tokens).
    """
    challenged = next((c.parameters["scope"] for c in challenges if "scope" in c.parameters), None)
    listed = server.scopes_supported or ()
    named = listed if challenged is None else parse_scopes(challenged)
    if server.revision.facts.authorization.offline_access and not _lists_offline_access(server):
        named = tuple(scope for scope in named if scope != OFFLINE_ACCESS)
    return union_of_scopes(named, configured)


def step_up_scopes(
    challenges: Sequence[Challenge],
    server: AuthorizationServer,
    configured: Sequence[str],
    requested: Sequence[str],
) -> tuple[str, ...]:
    """The scopes to request after a server refused a token for missing scopes.

    Source: basic/authorization (step-up authorization flow).
    """
    scopes = initial_scopes(challenges, server, configured)
    return (
        union_of_scopes(requested, scopes)
        if server.revision.facts.authorization.step_up == "union"
        else scopes
    )


def with_offline_access(scopes: tuple[str, ...], server: AuthorizationServer) -> tuple[str, ...]:
    """Scopes, with `offline_access` if the authorization server supports that scope."""
    if server.revision.facts.authorization.offline_access and _lists_offline_access(server):
        return union_of_scopes(scopes, [OFFLINE_ACCESS])
    return scopes


def _lists_offline_access(server: AuthorizationServer) -> bool:
    return OFFLINE_ACCESS in (server.metadata.strings("scopes_supported") or ())


def read_object(body: bytes, where: str) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        AuthorizationError: The body is not a JSON object.
    """
    value = parse_object(body)
    if value is None:
        raise AuthorizationError(f"{where}: expected a JSON object")
    return value


def read_resource_metadata(body: bytes, where: str) -> ResourceMetadata:
    """The metadata of a protected resource.

    Raises:
        AuthorizationError: The document is malformed, or names no authorization server.
    """
    members = read_object(body, where)
    resource = members.get("resource")
    if not isinstance(resource, str):
        raise AuthorizationError(f"{where}: expected the string `resource`")
    servers = _strings(members.get("authorization_servers"))
    if not servers:
        raise AuthorizationError(f"{where}: expected an authorization server")
    return ResourceMetadata(resource, servers, _strings(members.get("scopes_supported")))


def read_server_metadata(body: bytes, where: str, issuer: str) -> AuthorizationServerMetadata:
    """The metadata of an authorization server.

    Args:
        body: The document.
        where: Name of the document, for errors.
        issuer: The issuer that the document must name, character by character.

    Raises:
        AuthorizationError: The document is malformed, or names another issuer.
    """
    members = read_object(body, where)
    if members.get("issuer") != issuer:
        raise AuthorizationError(f"{where}: `issuer` is not the expected issuer")
    return AuthorizationServerMetadata(issuer, members)


def _strings(value: object) -> tuple[str, ...] | None:
    if not _is_array(value):
        return None
    return tuple(each for each in value if isinstance(each, str))


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list)
