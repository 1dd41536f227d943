"""A protected server serves calls by plans too, and refuses the same requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcpgen_runtime.server import planned_calls
from mcpgen_runtime.server.toolkit.dispatcher import Dispatcher
from package.asgi_client import asgi, fields_of
from package.server.auth.guarded import (
    SHARE,
    WHOAMI,
    WRITE,
    Guarded,
    protected_settings,
    revisions,
    text_in,
)
from package.server.auth.issuer import bearer, token_of
from package.wire import HANDSHAKE, request

pytestmark = [pytest.mark.anyio, revisions]

TOKENS: dict[str, Callable[[], str | None]] = {
    "enough": lambda: bearer(token_of(scope="mcp:read files:write")),
    "too few": lambda: bearer(token_of(scope="files:write")),
    "of another": lambda: bearer(token_of("mallory")),
    "expired": lambda: bearer(token_of(exp=1)),
    "malformed": lambda: "Bearer x",
    "none": lambda: None,
}


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("call", [WHOAMI, WRITE, SHARE], ids=["whoami", "write", "share"])
async def test_both_ways_ask_for_the_same_token(
    revision: str, call: dict[str, Any], token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: list[Any] = []
    good, tested = TOKENS["enough"](), TOKENS[token]()
    for enabled in (True, False):
        monkeypatch.setattr(planned_calls, "ENABLED", enabled)
        async with asgi(Guarded().server, auth=protected_settings()) as http:
            http.fields["authorization"] = good
            if revision in HANDSHAKE:
                await http.initialize(revision)
            message = request(revision, "tools/call", call)
            await http.post(message, **fields_of(revision, message))
            fields = {**fields_of(revision, message), "authorization": tested}
            reply = await http.post(message, **fields)
            replies.append((reply.status, reply.fields.get("www-authenticate"), reply.body))
    assert replies[0] == replies[1]


async def test_a_call_with_a_token_is_served_by_its_plan(
    revision: str, monkeypatch: pytest.MonkeyPatch, anyio_backend_name: str
) -> None:
    async with asgi(Guarded().server, auth=protected_settings()) as http:
        http.fields["authorization"] = TOKENS["enough"]()
        if revision in HANDSHAKE:
            await http.initialize(revision)
        message = request(revision, "tools/call", WHOAMI)
        await http.post(message, **fields_of(revision, message))
        handled: list[object] = []
        monkeypatch.setattr(planned_calls, "ENABLED", True)
        monkeypatch.setattr(Dispatcher, "handle", record_calls(Dispatcher.handle, handled))
        reply = await http.post(message, **fields_of(revision, message))
        assert text_in(reply) == "alice"
    assert bool(handled) is (revision in HANDSHAKE and anyio_backend_name == "trio")


def record_calls(function: Callable[..., Awaitable[Any]], calls: list[object]) -> Any:
    async def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return await function(*arguments)

    return call
