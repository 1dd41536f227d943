"""Documents of servers whose numbers, depth and lengths have no bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kit.auth_answers import (
    AS_URL,
    ISSUER,
    METADATA,
    RESOURCE,
    TOKEN,
    World,
    around,
    json_response,
)
from mcpgen_runtime import AuthorizationError
from mcpgen_runtime.auth.discovery import discover
from mcpgen_runtime.auth.flows import code_flow, device_flow
from mcpgen_runtime.auth.registration import ClientProfile
from mcpgen_runtime.auth.steps import Fetched, Flow

DEVICE = f"{ISSUER}/device"
CODE = {"device_code": "d", "user_code": "A", "verification_uri": f"{ISSUER}/v", "interval": 1}
DEPTH = 100_000
DEEP = b'{"error": ' + b"[" * DEPTH + b"]" * DEPTH + b"}"
HUGE = 10**400


def world(**answers: Fetched) -> World:
    """A server and an authorization server with all flows; answers by the end of their URL."""
    made = World({f"POST {DEVICE}": json_response(CODE)})
    made.answers[f"GET {AS_URL}"] = json_response(
        {**METADATA, "device_authorization_endpoint": DEVICE}
    )
    for name, answer in answers.items():
        (key,) = (each for each in made.answers if each.endswith(name.replace("_", "-")))
        made.answers[key] = answer
    return made


def authorize(there: World, flow: Callable[..., Flow[Any]] = code_flow) -> Any:
    """Discovery and a flow of a client that registers itself."""

    def whole() -> Flow[Any]:
        server = yield from discover(around(), [], None)
        return (yield from flow(around(), ClientProfile("Agent"), server, ()))

    return there.run(whole())


def with_huge_numbers(members: dict[str, Any]) -> Fetched:
    """A document with numbers that no float represents, in its members and in others."""
    numbers = ("expires_in", "interval", "client_secret_expires_at", "client_id_issued_at", "x")
    return json_response({**members, **dict.fromkeys(numbers, HUGE), "y": [-HUGE], "z": 1e308})


@pytest.mark.parametrize("flow", [code_flow, device_flow])
def test_numbers_that_no_float_represents_stop_no_flow(flow: Callable[..., Flow[Any]]) -> None:
    there = world(
        mcp=with_huge_numbers(dict(RESOURCE)),
        register=with_huge_numbers({"client_id": "i", "client_secret": "s"}),
        device=with_huge_numbers(CODE),
        token=with_huge_numbers(dict(TOKEN)),
    )
    metadata = {**METADATA, "device_authorization_endpoint": DEVICE}
    there.answers[f"GET {AS_URL}"] = with_huge_numbers(metadata)
    grant = authorize(there, flow)
    assert grant.token.value == "access-1"
    assert grant.token.renew_at is None
    assert authorize(there, flow).client_id == "i"  # the records are read again


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("document", ["mcp", "server", "register", "device", "token"])
def test_documents_that_are_nested_too_deep_are_errors(document: str, status: int) -> None:
    there = world(**{document: Fetched(status, {}, DEEP)})
    with pytest.raises(AuthorizationError) as caught:
        authorize(there, device_flow)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["9" * 5000, "1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_are_no_json_are_errors(text: str) -> None:
    body = json.dumps({**TOKEN, "expires_in": 0.5}).replace("0.5", text).encode()
    with pytest.raises(AuthorizationError, match="token endpoint: expected a JSON object"):
        authorize(world(token=Fetched(200, {}, body)))
