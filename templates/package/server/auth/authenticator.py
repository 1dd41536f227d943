"""Authentication and authorization of HTTP requests to one application, and its metadata document.

    head of a request -> authenticate -> 401, 400, or the principal of the request
    message in a POST -> authorize    -> 403 with all required scopes, or nothing

A request is authenticated before its body is read. The scopes of a POST are checked after its
messages are parsed, so that one challenge names all required scopes. Challenges name the URL of the
metadata document, which the application serves without authentication.

Source: basic/authorization (error handling, protected resource metadata); RFC 6750, section 3;
RFC 9449, section 7; RFC 9728, sections 2 and 3.
"""

from __future__ import annotations

import logging
import secrets
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import msgspec
from msgspec import UNSET

from ..._wire import is_object
from ...auth.challenges import Challenge, format_challenges
from ...auth.identifiers import PROTECTED_RESOURCE, protected_resource_url
from ...errors import TransportError
from ...facts import Revisions
from ...foreign_text import safe_text
from ...protocol import jsonrpc
from ...runtime.request_context import PRINCIPAL, Principal
from ..asgi import http_response
from ..asgi.http_response import HttpResponse, Receive, Refused, Scope, Send
from ..asgi.request import HttpRequest
from ..asgi.used_ids import UsedIds
from .dpop_validation import InvalidProofError, NonceRequiredError, ProofValidator
from .protected import Protected
from .verifiers import InvalidTokenError, bind_verifier, is_bearer_token

ScopesOf = Callable[[jsonrpc.Message], Collection[str]]
"""Returns the scopes that a message requires in addition to those of every request."""

_SCHEMES = {b"bearer": "bearer", b"dpop": "dpop"}
_HIDDEN = "[access token]"
_INVALID = "the access token is not valid for this server, or not any more"

logger = logging.getLogger(__name__)


FAILURE_SECONDS = 10.0
"""Least seconds between two log records, or tracebacks, of failures of one kind."""


class FailureLog:
    """Limits how often failures of one kind are logged, since any client can cause failures."""

    def __init__(self) -> None:
        self._logged: dict[str, float] = {}

    def is_new(self, kind: str, now: float) -> bool:
        """Whether a failure is the first of its kind within `FAILURE_SECONDS`; records the time."""
        if now - self._logged.get(kind, -FAILURE_SECONDS) < FAILURE_SECONDS:
            return False
        self._logged[kind] = now
        return True


class Authenticator:
    """Authenticates and authorizes the requests of one application on one event loop.

    Args:
        protected: The settings.
        revisions: The revisions that are served.
        required: Returns the scopes that a message requires.
        path: Path of the endpoint, below the mount point.
        used: Stores the ids of DPoP proofs; by default in this process.
    """

    def __init__(
        self,
        protected: Protected,
        revisions: Revisions,
        required: ScopesOf,
        path: str,
        used: UsedIds | None = None,
    ) -> None:
        self._protected = protected
        self._revisions = revisions
        self._version_header = revisions.newest().facts.headers.protocol_version
        self._required = required
        self._verify = bind_verifier(protected.verifier, protected.trusted)
        self._failures = FailureLog()
        self._proofs = None if protected.dpop is None else ProofValidator(protected.dpop, used)
        split = urlsplit(protected.resource)
        self._path = path.rstrip("/")
        self._base = f"{split.scheme}://{split.netloc}{split.path.removesuffix(self._path)}"

    async def authenticate(self, request: HttpRequest) -> None:
        """Set the principal of the current task. For a POST, call `authorize` next.

        Raises:
            Refused: The request has no valid token.
        """
        value = request.headers.get(b"authorization", b"").strip(b" \t")
        name, _, credentials = value.partition(b" ")
        scheme = _SCHEMES.get(name.lower())
        if scheme is None:
            raise Refused(self._refuse_without_token(request), "unread")
        token = credentials.lstrip(b" ").decode("latin-1")
        if not is_bearer_token(token) or (request.query and _contains_token(request.query)):
            text = "Authorization: expected one scheme and one token"
            refused = self._refusal(request, 400, scheme, text, error="invalid_request")
            raise Refused(refused, "unread")
        try:
            principal = await self._verify(token)
            if principal is None:
                raise InvalidTokenError("no verifier knows the token")
            await self._check_binding(request, principal, scheme, token)
        except InvalidTokenError as error:
            logger.info("a token was refused: %s", error)
            refused = self._refusal(request, 401, scheme, _INVALID, error="invalid_token")
            raise Refused(refused, "unread") from None
        except (InvalidProofError, NonceRequiredError) as error:
            raise Refused(self._refuse_proof(request, error), "unread") from None
        except TransportError as error:
            if self._failures.is_new("TransportError", anyio.current_time()):
                logger.warning("a token could not be verified: %s", error)
            refused = http_response.unavailable("the token can't be verified now")
            raise Refused(refused, "unread") from None
        except Exception as error:
            incident = secrets.token_hex(4)
            failure = safe_text(f"{type(error).__name__}: {error}".replace(token, _HIDDEN))
            if self._failures.is_new(type(error).__qualname__, anyio.current_time()):
                failure = "\n" + traceback.format_exc().replace(token, _HIDDEN)
            logger.error("the verifier failed (incident %s): %s", incident, failure)
            text = "the token can't be verified now; the log of the server says why under"
            raise Refused(http_response.unavailable(f"{text} {incident}"), "unread") from None
        if self._protected.implies:
            principal = principal.with_scopes(self._protected.with_implied(principal.scopes))
        PRINCIPAL.set(principal)
        if request.method != "POST":
            self._check_scopes(request, (), UNSET)

    def authorize(self, request: HttpRequest, messages: Sequence[jsonrpc.Message]) -> None:
        """Check that a principal has the scopes of all messages of a POST.

        Args:
            request: The POST.
            messages: The messages in its body.

        Raises:
            Refused: The principal lacks a scope.
        """
        if len(messages) == 1:
            (message,) = messages
            identifier: object = message.id if isinstance(message, jsonrpc.Request) else UNSET
            self._check_scopes(request, self._required(message), identifier)
            return
        required = [scope for message in messages for scope in self._required(message)]
        self._check_scopes(request, required, UNSET)

    def deadline(self) -> float:
        """When the token of the principal expires, on the clock of `anyio.current_time`."""
        expires = PRINCIPAL.get().expires
        if expires is None:
            return float("inf")
        return anyio.current_time() + max(0.0, expires - time.time())

    def metadata(self, request: HttpRequest) -> HttpResponse | None:
        """The response with the metadata document; `None` for a request to another path."""
        if self._protected.issuers is None:
            return None
        if not is_metadata_path(self._protected, request.path, request.root):
            return None
        return metadata_response(request, self._protected)

    def _check_scopes(
        self, request: HttpRequest, more: Collection[str], identifier: object
    ) -> None:
        principal = PRINCIPAL.get()
        required = (*self._protected.scopes, *sorted(more)) if more else self._protected.scopes
        if principal.has_scopes(*required):
            return
        scopes = [*required]
        if not self._client_adds_scopes(request):
            scopes += sorted(principal.scopes)
        value = request.field("Authorization") or ""
        refused = self._refusal(
            request,
            403,
            value.partition(" ")[0].lower(),
            "the access token lacks a scope that the request needs",
            error="insufficient_scope",
            scope=" ".join(dict.fromkeys(scopes)),
            id=identifier,
        )
        raise Refused(refused)

    def _client_adds_scopes(self, request: HttpRequest) -> bool:
        """Whether the client requests the scopes of a challenge in addition to the granted ones.

        Clients of other revisions request the scopes of the challenge only, so that the challenge
        has to repeat the granted scopes.
        """
        name = request.field(self._version_header)
        if name is None or name not in self._revisions:
            return False
        return self._revisions[name].facts.authorization.step_up == "union"

    async def _check_binding(
        self, request: HttpRequest, principal: Principal, scheme: str, token: str
    ) -> None:
        """Check that a bound token comes with a proof of its key, and a bearer token without."""
        binding = principal.claims.get("cnf")
        if self._proofs is None:
            if scheme == "dpop" or binding is not None:
                raise InvalidTokenError("tokens that are bound to a key are not accepted")
            return
        assert self._protected.dpop is not None
        jkt: object = binding.get("jkt") if is_object(binding) else None
        if jkt is None:
            if scheme == "dpop" or binding is not None or self._protected.dpop.required:
                raise InvalidTokenError("cnf: expected a token that is bound to a key by jkt")
            return
        if scheme != "dpop":
            raise InvalidTokenError("a token that is bound to a key came without a proof")
        path = request.path.rstrip("/")
        url = self._protected.resource if path == self._path else f"{self._base}{request.path}"
        await self._proofs.check(request.field("DPoP"), token, str(jkt), request.method, url)

    def _refuse_proof(
        self, request: HttpRequest, error: InvalidProofError | NonceRequiredError
    ) -> HttpResponse:
        assert self._proofs is not None
        logger.info("a DPoP proof was refused: %s", error)
        if isinstance(error, InvalidProofError):
            text = "the DPoP proof is missing or not valid"
            return self._refusal(request, 401, "dpop", text, error="invalid_dpop_proof")
        text = "the DPoP proof needs a fresh nonce"
        refused = self._refusal(request, 401, "dpop", text, error="use_dpop_nonce")
        headers = {**refused.headers, "DPoP-Nonce": self._proofs.nonce()}
        return HttpResponse(refused.status, refused.body, headers)

    def _refuse_without_token(self, request: HttpRequest) -> HttpResponse:
        """The response to a request without a token: a challenge per scheme, without error code."""
        text = "Authorization: expected an access token"
        schemes = ["bearer", "dpop"] if self._proofs is not None else ["bearer"]
        if self._protected.dpop is not None and self._protected.dpop.required:
            schemes = ["dpop"]
        challenges = [self._challenge(request, scheme) for scheme in schemes]
        headers = {"WWW-Authenticate": format_challenges(challenges)}
        return http_response.refusal(401, text, headers=headers)

    def _refusal(
        self,
        request: HttpRequest,
        status: int,
        scheme: str,
        text: str,
        *,
        error: str,
        scope: str | None = None,
        id: object = UNSET,
    ) -> HttpResponse:
        if scheme == "dpop" and self._proofs is None:
            scheme = "bearer"
        if error == "invalid_token" and self._protected.dpop is not None:
            scheme = "dpop" if self._protected.dpop.required else scheme
        challenge = self._challenge(request, scheme, error, text, scope)
        headers = {"WWW-Authenticate": format_challenges([challenge])}
        return http_response.refusal(status, text, id=id, headers=headers)

    def _challenge(
        self,
        request: HttpRequest,
        scheme: str,
        error: str | None = None,
        description: str | None = None,
        scope: str | None = None,
    ) -> Challenge:
        protected = self._protected
        parameters = {"realm": protected.realm}
        if error is not None:
            parameters["error"] = error
        if description is not None:
            parameters["error_description"] = description
        if scope is None:
            scope = " ".join(protected.first_scopes)
        if scope:
            parameters["scope"] = scope
        if protected.issuers is not None:
            parameters["resource_metadata"] = metadata_url(protected, request.root)
        if scheme != "dpop":
            return Challenge("Bearer", parameters)
        if protected.dpop is not None:
            parameters["algs"] = " ".join(protected.dpop.algorithms)
        return Challenge("DPoP", parameters)


def _contains_token(query: bytes) -> bool:
    """Whether a query contains an access token, which is forbidden."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return any(name == "access_token" for name, _ in pairs)


class ProtectedResourceMetadata:
    """An ASGI application that serves the metadata documents of several protected servers.

    Mount the application at `/.well-known/oauth-protected-resource` of the root application, for
    servers that are mounted below the root. The rest of the path selects the server whose
    `resource` has that path. If there is only one server, an empty rest selects this server too.

    Args:
        protected: The settings of the servers.

    Raises:
        ValueError: There is no server, two servers have the same path, or one has no issuers.
    """

    def __init__(self, *protected: Protected) -> None:
        if any(each.issuers is None for each in protected):
            raise ValueError("expected servers with issuers: the others have no metadata document")
        self._by_path = {urlsplit(each.resource).path.rstrip("/"): each for each in protected}
        if not protected or len(self._by_path) < len(protected):
            raise ValueError("expected protected servers with paths that differ")
        if len(protected) == 1:
            self._by_path[""] = protected[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            return
        request = HttpRequest(scope)
        path = request.path.removeprefix(PROTECTED_RESOURCE).rstrip("/")
        protected = self._by_path.get(path)
        if protected is None:
            await http_response.refusal(404, "no protected server has this path").send(send)
        else:
            await metadata_response(request, protected).send(send)


def metadata_response(request: HttpRequest, protected: Protected) -> HttpResponse:
    """The response to a request for the metadata document. Pages of any origin may read it."""
    if request.method != "GET":
        return http_response.not_allowed("GET")
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=300"}
    return HttpResponse(200, metadata_document(protected), headers)


def metadata_document(protected: Protected) -> bytes:
    """The metadata document of a server, as JSON."""
    scopes = protected.scopes_supported
    if scopes is None:
        scopes = protected.first_scopes
    members: dict[str, Any] = {
        "resource": protected.resource,
        "authorization_servers": list(protected.issuers or ()),
        "bearer_methods_supported": ["header"],
    }
    if scopes:
        members["scopes_supported"] = list(scopes)
    if protected.dpop is not None:
        members["dpop_signing_alg_values_supported"] = list(protected.dpop.algorithms)
        members["dpop_bound_access_tokens_required"] = protected.dpop.required
    return msgspec.json.encode({**protected.metadata, **members})


def metadata_url(protected: Protected, mount_point: str) -> str:
    """The URL of the metadata document, for `resource_metadata` of a challenge.

    An outer application may not route the well-known URL of an application that is mounted below a
    path. For a mounted application, the URL is therefore one that the application serves itself.

    Args:
        protected: The settings of the server.
        mount_point: The path that the application is mounted at; empty for the root.
    """
    if protected.metadata_url is not None:
        return protected.metadata_url
    root = mount_point.rstrip("/")
    split = urlsplit(protected.resource)
    if not root or not split.path.startswith(f"{root}/"):
        return protected_resource_url(protected.resource)
    rest = split.path.removeprefix(root)
    return f"{split.scheme}://{split.netloc}{root}{PROTECTED_RESOURCE}{rest}"


def is_metadata_path(protected: Protected, path: str, mount_point: str) -> bool:
    """Whether the metadata document is served at a path, relative to the mount point."""
    if not path.startswith(PROTECTED_RESOURCE):
        return False
    resource_path = urlsplit(protected.resource).path.rstrip("/")
    rest = path.removeprefix(PROTECTED_RESOURCE).rstrip("/")
    return rest in ("", resource_path, resource_path.removeprefix(mount_point.rstrip("/")))
