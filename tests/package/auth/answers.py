"""Flows answered from a table: no sockets, no event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from mcp_protocol.auth.addresses import AddressCheck, AddressRules
from mcp_protocol.auth.discovery import Discovered, Surroundings, discovered
from mcp_protocol.auth.dpop import ProofKey
from mcp_protocol.auth.steps import (
    DeviceCode,
    Fetch,
    Fetched,
    Flow,
    Load,
    Obtain,
    Pause,
    PrepareRedirect,
    Save,
    ShowCode,
    Visit,
)
from mcp_protocol.revisions import REVISIONS

Result = TypeVar("Result")

SERVER = "https://mcp.example/mcp"
ISSUER = "https://as.example"
PRM_URL = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
AS_URL = "https://as.example/.well-known/oauth-authorization-server"
REDIRECT_URI = "http://127.0.0.1:3118/callback"
NOW = 1_800_000_000.0

RESOURCE: Mapping[str, Any] = {"resource": SERVER, "authorization_servers": [ISSUER]}
METADATA: Mapping[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
}
TOKEN: Mapping[str, Any] = {
    "access_token": "access-1",
    "token_type": "Bearer",
    "expires_in": 3600,
    "refresh_token": "refresh-1",
}

NEWEST = REVISIONS.newest().name


def said(value: Any, status: int = 200, **fields: str) -> Fetched:
    """A response of JSON."""
    named = {name.replace("_", "-"): text for name, text in fields.items()}
    return Fetched(status, named, json.dumps(value).encode())


Answer = Fetched | Callable[[Fetch], Fetched]


class World:
    """What flows find, by method and URL; anything else is 404.

    Attributes:
        answers: What is answered.
        asked: The requests, in order.
        records: The store.
        visited: URLs that the user was sent to.
        codes: Codes that the user was shown.
        paused: Seconds of each pause.
        returned: Makes the URL that the user comes back by.
    """

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = {
            f"GET {PRM_URL}": said(RESOURCE),
            f"GET {AS_URL}": said(METADATA),
            f"POST {ISSUER}/register": said({"client_id": "registered"}, 201),
            f"POST {ISSUER}/token": said(TOKEN),
            **(answers or {}),
        }
        self.asked: list[Fetch] = []
        self.records: dict[str, bytes] = {}
        self.visited: list[str] = []
        self.codes: list[DeviceCode] = []
        self.paused: list[float] = []
        self.returned: Callable[[str], str] = comes_back

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
                    found = self.answers.get(f"{method} {url}", Fetched(404))
                    answer = found if isinstance(found, Fetched) else found(step)
                case PrepareRedirect():
                    answer = REDIRECT_URI
                case Visit(url):
                    self.visited.append(url)
                    answer = self.returned(url)
                case ShowCode(code):
                    self.codes.append(code)
                    answer = None
                case Pause(seconds):
                    self.paused.append(seconds)
                    answer = None
                case Obtain(function, arguments):
                    answer = function(*arguments)
                case Load(key):
                    answer = self.records.get(key)
                case Save(key, record):
                    assert record is not None
                    self.records[key] = record
                    answer = None

    def urls(self) -> list[str]:
        """What was asked for."""
        return [f"{step.method} {step.url}" for step in self.asked]

    def form(self, at: int = -1) -> dict[str, str]:
        """The form of a request."""
        body = self.asked[at].body
        assert body is not None
        return dict(parse_qsl(body.decode(), strict_parsing=True))


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
) -> Surroundings:
    """The surroundings of a flow."""
    return Surroundings(
        server,
        REVISIONS[revision],
        lambda: None if older is None else REVISIONS[older],
        AddressCheck(server, rules),
        lambda: NOW,
        proofs,
        **more,
    )


def found(world: World, revision: str = NEWEST, **more: Any) -> Discovered:
    """What discovery finds; its requests are forgotten."""
    server = world.run(discovered(around(revision, **more), [], None))
    world.asked.clear()
    return server
