"""Flows answered from a table: no sockets, no event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from mcpgen_runtime import REVISIONS, AddressRules, DeviceCode
from mcpgen_runtime.auth.address_rules import AddressCheck
from mcpgen_runtime.auth.discovery import AuthorizationServer, FlowContext, discover
from mcpgen_runtime.auth.jwt_signing import ProofKey
from mcpgen_runtime.auth.steps import (
    Call,
    Fetch,
    Fetched,
    Flow,
    Load,
    Pause,
    PrepareRedirect,
    Save,
    ShowCode,
    Visit,
)

Result = TypeVar("Result")

SERVER = "https://mcp.example/mcp"
ISSUER = "https://as.example"
PRM_URL = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
AS_URL = "https://as.example/.well-known/oauth-authorization-server"
REDIRECT_URI = "http://127.0.0.1:3118/callback"
NOW = 1_800_000_000.0

RESOURCE: Mapping[str, Any] = {"resource": SERVER, "authorization_servers": [ISSUER]}


def metadata_of(issuer: str, **members: Any) -> dict[str, Any]:
    """The metadata of an authorization server, with further or other members."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        **members,
    }


METADATA: Mapping[str, Any] = metadata_of(ISSUER)
TOKEN: Mapping[str, Any] = {
    "access_token": "access-1",
    "token_type": "Bearer",
    "expires_in": 3600,
    "refresh_token": "refresh-1",
}

NEWEST = REVISIONS.newest().name


def json_response(value: Any, status: int = 200, **fields: str) -> Fetched:
    """A response of JSON."""
    named = {name.replace("_", "-"): text for name, text in fields.items()}
    return Fetched(status, named, json.dumps(value).encode())


Answer = Fetched | Callable[[Fetch], Fetched]


class World:
    """The servers that flows reach: responses by method and URL; anything else is 404."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = {f"GET {PRM_URL}": json_response(RESOURCE)}
        serve_issuer(self, ISSUER)
        self.answers |= answers or {}
        self.asked: list[Fetch] = []
        self.records: dict[str, bytes] = {}
        self.visited: list[str] = []
        self.codes: list[DeviceCode] = []
        self.paused: list[float] = []
        self.returned: Callable[[str], str] = comes_back
        self.redirect_uri = REDIRECT_URI
        self.preferred: list[tuple[str, ...]] = []

    def run(self, flow: Flow[Result]) -> Result:
        """Run a flow to its end."""
        answer: Any = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: Result = end.value
                return result
            match step:
                case Fetch(method, url):
                    self.asked.append(step)
                    response = self.answers.get(f"{method} {url}", Fetched(404))
                    answer = response if isinstance(response, Fetched) else response(step)
                case PrepareRedirect(registered):
                    self.preferred.append(registered)
                    answer = self.redirect_uri
                case Visit(url):
                    self.visited.append(url)
                    answer = self.returned(url)
                case ShowCode(code):
                    self.codes.append(code)
                    answer = None
                case Pause(seconds):
                    self.paused.append(seconds)
                    answer = None
                case Call(function, arguments):
                    answer = function(*arguments)
                case Load(key):
                    answer = self.records.get(key)
                case Save(key, record):
                    assert record is not None
                    self.records[key] = record
                    answer = None

    def urls(self) -> list[str]:
        """Method and URL of each request, in order."""
        return [f"{step.method} {step.url}" for step in self.asked]

    def form(self, at: int = -1) -> dict[str, str]:
        """The form of a request."""
        body = self.asked[at].body
        assert body is not None
        return dict(parse_qsl(body.decode(), strict_parsing=True))


def issuer_of(revision: str) -> str:
    """The authorization server of `SERVER`: in some revisions, the origin of the server itself."""
    rules = REVISIONS[revision].facts.authorization
    return SERVER.removesuffix("/mcp") if rules.discovery == "origin" else ISSUER


def serve_issuer(world: World, issuer: str, **metadata: Any) -> None:
    """Answer what a flow asks an authorization server, with more in its metadata."""
    document = json_response(metadata_of(issuer, **metadata))
    world.answers[f"GET {issuer}/.well-known/oauth-authorization-server"] = document
    world.answers.setdefault(
        f"POST {issuer}/register", json_response({"client_id": "registered"}, 201)
    )
    world.answers.setdefault(f"POST {issuer}/token", json_response(TOKEN))


def world_of(revision: str, **metadata: Any) -> World:
    """Servers with the metadata of `SERVER` at the place where the revision looks for it."""
    world = World()
    serve_issuer(world, issuer_of(revision), **metadata)
    return world


def query_of(url: str) -> dict[str, str]:
    """The parameters of a URL."""
    return dict(parse_qsl(urlsplit(url).query, strict_parsing=True))


def comes_back(url: str, **more: str) -> str:
    """The URL by which a user comes back who agreed."""
    state = query_of(url)["state"]
    extra = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{REDIRECT_URI}?code=the-code&state={state}{extra}"


def around(
    revision: str = NEWEST,
    server: str = SERVER,
    proofs: ProofKey | None = None,
    rules: AddressRules = AddressRules(),  # noqa: B008 - a frozen value
    older: str | None = None,
    **more: Any,
) -> FlowContext:
    """The context of a flow."""
    return FlowContext(
        server,
        REVISIONS[revision],
        lambda: None if older is None else REVISIONS[older],
        AddressCheck(server, rules),
        lambda: NOW,
        proofs,
        **more,
    )


def discover_server(world: World, revision: str = NEWEST, **more: Any) -> AuthorizationServer:
    """Run discovery and return its authorization server; the requests are forgotten."""
    server = world.run(discover(around(revision, **more), [], None))
    world.asked.clear()
    return server
