"""From a server to its authorization server: the metadata of both, as flows.

Source: basic/authorization (authorization server discovery); RFC 9728, section 5; RFC 8414,
section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AuthorizationError
from ..facts import Revision
from ..foreign_text import safe_text
from .addresses import AddressCheck
from .challenges import Challenge
from .documents import (
    IssuerMetadata,
    ResourceMetadata,
    canonical_resource,
    read_issuer_metadata,
    read_object,
    read_resource_metadata,
    same_resource,
)
from .dpop import ProofKey
from .scopes import OFFLINE_ACCESS, selected, united
from .steps import Fetch, Fetched, Flow
from .well_known import (
    AUTHORIZATION_SERVER,
    ProtectedResourceUrl,
    authorization_server_urls,
    origin_of,
    protected_resource_urls,
)

_DEFAULT_ENDPOINTS: Mapping[str, str] = {
    "authorization_endpoint": "/authorize",
    "registration_endpoint": "/register",
    "token_endpoint": "/token",
}


@dataclass(frozen=True)
class Surroundings:
    """What all flows for one server have in common.

    Attributes:
        server_url: The URL of the server.
        revision: The newest revision that the client offers.
        older: A revision whose authorization server is found at the origin of the MCP server, if
            the client offers one.
        addresses: What may be fetched.
        now: The time, in seconds since 1970.
        proofs: The key that tokens are bound to; `None` for none.
        send_resource: Whether requests have `resource`.
        accept_issuer_slash: Whether an issuer may differ by a slash in the end.
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
class Discovered:
    """An authorization server, and what the MCP server says of itself.

    Attributes:
        issuer: The authorization server.
        resource: The identifier for `resource`; `None` to leave it out.
        scopes_supported: The scopes of the MCP server; `None` if it lists none.
        revision: The revision whose rules hold.
    """

    issuer: IssuerMetadata
    resource: str | None
    scopes_supported: tuple[str, ...] | None
    revision: Revision

    def endpoint(self, name: str, around: Surroundings) -> str:
        """The address of an endpoint.

        Raises:
            AuthorizationError: The metadata has none, or one that may not be used.
        """
        value = self.issuer.members.get(name)
        if value is None:
            raise AuthorizationError(f"{safe_text(self.issuer.issuer)} has no `{name}`")
        return around.addresses.check(value, f"`{name}`")


def discovered(
    around: Surroundings, challenges: Sequence[Challenge], wanted: str | None
) -> Flow[Discovered]:
    """Find the authorization server of an MCP server.

    Args:
        around: The MCP server, and the rules.
        challenges: Those of its refusal; none if there was no refusal.
        wanted: The issuer that the client's credentials belong to; `None` for any.

    Raises:
        AuthorizationError: There is none, or not the wanted one.
    """
    around.addresses.check_server(around.server_url)
    if around.revision.facts.authorization.discovery == "origin":
        return (yield from _at_origin(around, around.revision))
    metadata = yield from _resource_metadata(around, challenges)
    if metadata is None and wanted is None:
        older = around.older()
        if older is None:
            raise AuthorizationError("the server has no metadata that names who authorizes")
        return (yield from _at_origin(around, older))
    resource = canonical_resource(around.server_url) if metadata is None else metadata.resource
    servers = (wanted or "",) if metadata is None else metadata.authorization_servers
    issuer = servers[0] if wanted is None else _wanted(wanted, servers)
    return Discovered(
        (yield from _issuer_metadata(around, issuer)),
        resource if around.send_resource else None,
        None if metadata is None else metadata.scopes_supported,
        around.revision,
    )


def _wanted(wanted: str, servers: Sequence[str]) -> str:
    if wanted not in servers:
        raise AuthorizationError(
            f"the credentials are those of {safe_text(wanted)}; the server is authorized by"
            f" {safe_text(servers[0])}"
        )
    return wanted


def _resource_metadata(
    around: Surroundings, challenges: Sequence[Challenge]
) -> Flow[ResourceMetadata | None]:
    """The metadata of the MCP server; `None` if there is none and its challenge names none."""
    server = around.server_url
    for challenge in challenges:
        if url := challenge.parameters.get("resource_metadata"):
            around.addresses.check(url, "`resource_metadata` of the challenge")
            response: Fetched = yield Fetch("GET", url, _accepting(around.revision))
            if response.status != 200:
                raise AuthorizationError(
                    f"the metadata that the challenge names: HTTP {response.status}"
                )
            metadata = read_resource_metadata(response.body, "the metadata of the server")
            expected = (server.partition("#")[0], server.partition("?")[0])
            if not any(same_resource(metadata.resource, each) for each in expected):
                raise AuthorizationError("the metadata of the server is that of another resource")
            return metadata
    for place in protected_resource_urls(server):
        metadata_there = yield from _probed(around, place)
        if metadata_there is not None:
            return metadata_there
    return None


def _probed(around: Surroundings, place: ProtectedResourceUrl) -> Flow[ResourceMetadata | None]:
    around.addresses.check(place.url, "the server's URL")
    response: Fetched = yield Fetch("GET", place.url, _accepting(around.revision))
    if response.status != 200 or not _is_object(response.body):
        return None
    metadata = read_resource_metadata(response.body, "the metadata of the server")
    if not same_resource(metadata.resource, place.resource):
        raise AuthorizationError("the metadata of the server is that of another resource")
    return metadata


def _issuer_metadata(around: Surroundings, issuer: str) -> Flow[IssuerMetadata]:
    around.addresses.check(issuer, "the issuer")
    for url in authorization_server_urls(issuer):
        response: Fetched = yield Fetch("GET", url, _accepting(around.revision))
        if response.status == 200 and _is_object(response.body):
            expected = issuer
            if around.accept_issuer_slash:
                given = read_object(response.body, "the issuer").get("issuer")
                if isinstance(given, str) and given.rstrip("/") == issuer.rstrip("/"):
                    expected = given
            return read_issuer_metadata(response.body, "the metadata of the issuer", expected)
    raise AuthorizationError(f"{safe_text(issuer)} has no metadata at its well-known URLs")


def _at_origin(around: Surroundings, revision: Revision) -> Flow[Discovered]:
    """The authorization server at the origin of the MCP server, by its metadata or by default."""
    origin = origin_of(around.server_url)
    url = around.addresses.check(origin + AUTHORIZATION_SERVER, "the server's URL")
    response: Fetched = yield Fetch("GET", url, _accepting(revision))
    if response.status == 200 and _is_object(response.body):
        members = read_object(response.body, "the metadata of the issuer")
        # The identifier may have a slash: this revision builds it from the URL of the server.
        issuer = f"{origin}/" if members.get("issuer") == f"{origin}/" else origin
        metadata = read_issuer_metadata(response.body, "the metadata of the issuer", issuer)
    else:
        endpoints = {name: origin + path for name, path in _DEFAULT_ENDPOINTS.items()}
        metadata = IssuerMetadata(origin, {"issuer": origin, **endpoints})
    return Discovered(metadata, None, None, revision)


def _accepting(revision: Revision) -> dict[str, str]:
    header = revision.facts.authorization.version_header
    named = {} if header is None else {header: revision.name}
    return {"Accept": "application/json", **named}


def _is_object(body: bytes) -> bool:
    """Whether a body is a JSON object; some servers answer any address with a page."""
    try:
        read_object(body, "")
    except AuthorizationError:
        return False
    return True


def initial_scopes(
    challenges: Sequence[Challenge], server: Discovered, configured: Sequence[str]
) -> tuple[str, ...]:
    """The scopes of a first request: those of the challenge, else those that the server lists."""
    challenged = next((c.parameters["scope"] for c in challenges if "scope" in c.parameters), None)
    return selected(challenged, server.scopes_supported, configured)


def step_up_scopes(
    challenges: Sequence[Challenge],
    server: Discovered,
    configured: Sequence[str],
    requested: Sequence[str],
) -> tuple[str, ...]:
    """The scopes of a request after one whose token lacked some."""
    scopes = initial_scopes(challenges, server, configured)
    return (
        united(requested, scopes)
        if server.revision.facts.authorization.step_up == "union"
        else scopes
    )


def with_offline_access(scopes: tuple[str, ...], server: Discovered) -> tuple[str, ...]:
    """Scopes with the one for refresh tokens, where the authorization server lists it."""
    listed = server.issuer.texts("scopes_supported") or ()
    if server.revision.facts.authorization.offline_access and OFFLINE_ACCESS in listed:
        return united(scopes, [OFFLINE_ACCESS])
    return scopes
