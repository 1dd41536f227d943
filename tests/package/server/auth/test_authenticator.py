"""The authenticator of an application alone: requests that are refused, and their challenges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kit.guarded import protected_settings
from kit.issuer import bearer, proof_key, proof_of, token_of
from kit.wire import PER_REQUEST, SESSIONS
from mcpgen_runtime import DpopValidation, Principal
from mcpgen_runtime.auth.challenges import Challenge, parse_challenges
from mcpgen_runtime.protocol.jsonrpc import Notification, Request
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.request_context import PRINCIPAL
from mcpgen_runtime.server.asgi.http_response import HttpResponse, Refused
from mcpgen_runtime.server.asgi.request import HttpRequest
from mcpgen_runtime.server.auth.authenticator import Authenticator

pytestmark = pytest.mark.anyio

KEY = proof_key()
CALL = Request(7, "tools/call", msgspec.Raw(b"{}"))
NOTICE = Notification("notifications/initialized", None)


@pytest.fixture(autouse=True)
def principal() -> Iterator[None]:
    """Forget the principal of a test after it."""
    token = PRINCIPAL.set(PRINCIPAL.get())
    yield
    PRINCIPAL.reset(token)


def authenticator_of(*, path: str = "/mcp", **settings: Any) -> Authenticator:
    """The authenticator of a server whose tool calls need the scope `call`."""
    return Authenticator(
        protected_settings(**settings),
        REVISIONS,
        lambda message: ("call",) if isinstance(message, Request) else (),
        path,
    )


def head(method: str = "POST", path: str = "/mcp", query: str = "", **fields: str) -> HttpRequest:
    """The head of a request."""
    headers = [(name.replace("_", "-").encode(), text.encode()) for name, text in fields.items()]
    return HttpRequest(
        {"method": method, "path": path, "query_string": query.encode(), "headers": headers}
    )


async def authenticated(authenticator: Authenticator, request: HttpRequest) -> HttpResponse | None:
    """The response of the refusal of a request; `None` if it is accepted."""
    try:
        await authenticator.authenticate(request)
    except Refused as refused:
        return refused.response
    return None


def authorized(authenticator: Authenticator, request: HttpRequest, messages: Any) -> Any:
    """The response of the refusal of a POST; `None` if it is accepted."""
    try:
        authenticator.authorize(request, messages)
    except Refused as refused:
        return refused.response
    return None


def refusal_of(response: HttpResponse | None) -> tuple[int, Challenge, Any]:
    """The status, the challenge and the id of a refusal."""
    assert response is not None
    (challenge,) = parse_challenges(response.headers["WWW-Authenticate"])
    return response.status, challenge, json.loads(response.body).get("id")


@pytest.mark.parametrize(
    ("query", "status"),
    [("", None), ("a=1", None), ("xaccess_token=", None), ("a=1&access_token=b", 400)],
)
async def test_a_query_may_have_any_parameter_but_a_token(query: str, status: int | None) -> None:
    request = head(query=query, authorization=bearer(token_of()))
    response = await authenticated(authenticator_of(), request)
    assert (response and response.status) == status


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_scopes_of_every_request_are_checked_without_a_body(method: str) -> None:
    request = head(method, authorization=bearer(token_of(scope="other")))
    response = await authenticated(authenticator_of(), request)
    if method == "POST":
        assert response is None  # the scopes of a message are checked with it
        response = authorized(authenticator_of(), request, [NOTICE])
    status, challenge, identifier = refusal_of(response)
    assert (status, identifier) == (403, None)
    assert challenge.parameters == {
        "realm": "mcp",
        "error": "insufficient_scope",
        "error_description": "the access token lacks a scope that the request needs",
        "scope": "mcp:read other",
        "resource_metadata": "https://h/.well-known/oauth-protected-resource/mcp",
    }


@pytest.mark.parametrize(
    ("messages", "scopes", "identifier"),
    [
        ([CALL], "mcp:read call granted", 7),
        ([CALL, NOTICE], "mcp:read call granted", None),
        ([NOTICE], None, None),
        ([NOTICE, NOTICE], None, None),
        ([], None, None),
    ],
)
def test_messages_without_their_scopes_are_refused_together(
    messages: list[Any], scopes: str | None, identifier: object
) -> None:
    PRINCIPAL.set(Principal("ann", scopes=["mcp:read", "granted"]))
    response = authorized(authenticator_of(), head(authorization="Bearer x"), messages)
    if scopes is None:
        assert response is None
        return
    status, challenge, named = refusal_of(response)
    assert (status, challenge.parameters["scope"], named) == (403, scopes, identifier)


@pytest.mark.parametrize(
    ("version", "adds"),
    [(PER_REQUEST[-1], True), (SESSIONS[-1], False), ("1999-01-01", False), (None, False)],
)
def test_granted_scopes_are_repeated_unless_clients_add_them(
    version: str | None, adds: bool
) -> None:
    PRINCIPAL.set(Principal("ann", scopes=["b", "a"]))
    fields = {} if version is None else {"mcp_protocol_version": version}
    response = authorized(authenticator_of(), head(authorization="Bearer x", **fields), [CALL])
    _, challenge, _ = refusal_of(response)
    assert challenge.parameters["scope"] == ("mcp:read call" if adds else "mcp:read call a b")


@pytest.mark.parametrize(
    ("settings", "value", "scheme"),
    [
        ({"dpop": DpopValidation()}, "DPoP x", "DPoP"),
        ({"dpop": DpopValidation()}, "Bearer x", "Bearer"),
        ({}, "DPoP x", "Bearer"),
    ],
)
def test_a_challenge_for_scopes_has_the_scheme_of_the_request(
    settings: dict[str, Any], value: str, scheme: str
) -> None:
    PRINCIPAL.set(Principal("ann"))
    authenticator = authenticator_of(**settings)
    _, challenge, _ = refusal_of(authorized(authenticator, head(authorization=value), [CALL]))
    assert challenge.is_scheme(scheme)


@pytest.mark.parametrize(
    ("resource", "endpoint", "path", "url"),
    [
        ("https://h/mcp", "/mcp", "/mcp", "https://h/mcp"),
        ("https://h/mcp", "/mcp", "/mcp/", "https://h/mcp"),
        ("https://h", "/mcp", "/mcp/", "https://h"),
        ("https://h/mcp", "/mcp/", "/messages", "https://h/messages"),
        ("https://h/team/mcp", "/mcp", "/messages", "https://h/team/messages"),
        ("https://h/other", "/mcp", "/messages", "https://h/other/messages"),
    ],
)
async def test_a_proof_is_for_the_public_url_of_each_path(
    resource: str, endpoint: str, path: str, url: str
) -> None:
    token = token_of(aud=resource, cnf={"jkt": KEY.thumbprint()})
    settings: dict[str, Any] = {"resource": resource, "dpop": DpopValidation()}
    authenticator = authenticator_of(path=endpoint, **settings)
    for place, status in (("https://h/elsewhere", 401), (url, None)):
        proof = proof_of(KEY, token, url=place)
        request = head(path=path, authorization=f"dpop  {token}", dpop=proof)
        response = await authenticated(authenticator, request)
        assert (response and response.status) == status
    assert PRINCIPAL.get().subject == "alice"
