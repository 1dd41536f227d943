"""Clients that share the tokens of one user."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from kit.http_server import Asked, Reply
from mcpgen_runtime import FileStore, MemoryStore
from package.client.auth.protected import (
    NEWEST,
    Issuer,
    Protected,
    agreeing_user,
    client_of,
    run_issuer,
    run_protected_server,
    serve_script,
)

pytestmark = pytest.mark.anyio

CALLS = 20
"""Of each client."""


class StrictIssuer(Issuer):
    """An authorization server that ends everything once a refresh token is used twice."""

    def _scopes(self, form: dict[str, str]) -> frozenset[str] | None:
        scopes = super()._scopes(form)
        if scopes is None:
            self.refresh_tokens.clear()
            self.valid.clear()
        return scopes


class RefusingServer(Protected):
    """A protected server that can hold back all new tokens until a number of calls was refused."""

    to_refuse = 0

    def revoke(self, calls: int) -> None:
        """Refuse the tokens of now; the authorization server waits for as many refused calls."""
        self.issuer.valid.clear()
        self.issuer.gate = anyio.Event()
        self.to_refuse = calls

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        refusing = self.to_refuse > 0 and asked.what == "tools/call"
        await super().__call__(asked, reply)
        if refusing:
            self.to_refuse -= 1
            if not self.to_refuse:
                self.issuer.gate.set()


async def test_a_token_of_another_client_is_used_before_the_user() -> None:
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        script.open = lambda asked: asked.what != "tools/call"
        async with (
            client_of(script, agreeing_user(script.issuer, store=store)) as first,
            client_of(script, agreeing_user(script.issuer, store=store)) as second,
        ):
            await first.call_tool("echo")
            await second.call_tool("echo")
        assert len(script.issuer.visits) == 1


async def test_scopes_of_another_client_are_used_before_the_user() -> None:
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        async with (
            client_of(script, agreeing_user(script.issuer, store=store)) as first,
            client_of(script, agreeing_user(script.issuer, store=store)) as second,
        ):
            script.needed["tools/call"] = frozenset({"write"})
            await first.call_tool("echo")
            await second.call_tool("echo")
            assert len(script.issuer.visits) == 2
            script.needed["tools/call"] = frozenset({"write", "more"})
            await second.call_tool("echo")
        assert len(script.issuer.visits) == 3


async def test_a_token_that_all_calls_of_two_clients_see_refused_is_renewed_once(
    tmp_path: Path,
) -> None:
    """Two stores of one folder are as far from each other as those of two processes."""
    async with run_issuer(StrictIssuer()) as issuer, AsyncExitStack() as stack:
        script = RefusingServer(issuer, NEWEST)
        await stack.enter_async_context(serve_script(script))
        clients: list[Any] = []
        for _ in range(2):
            auth = agreeing_user(issuer, store=FileStore(tmp_path, encrypted=False))
            clients.append(await stack.enter_async_context(client_of(script, auth)))
            await clients[-1].call_tool("echo")
        for count in range(1, 3):
            script.revoke(2 * CALLS)
            async with anyio.create_task_group() as group:
                for client in clients * CALLS:
                    group.start_soon(client.call_tool, "echo")
            kinds = [form["grant_type"] for form in issuer.forms]
            assert kinds == ["authorization_code"] + ["refresh_token"] * count
        assert len(issuer.visits) == 1
