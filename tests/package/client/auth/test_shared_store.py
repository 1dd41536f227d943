"""Clients that share the tokens of one user: in one process, and in two with many tasks each."""

from __future__ import annotations

import json
import os
import sys
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kit.http_script import Script
from kit.http_server import Asked, HttpServer, Reply
from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import FileStore, MemoryStore
from package.client.auth.protected import (
    NEWEST,
    Issuer,
    Protected,
    agreeing_user,
    client_of,
    run_issuer,
    run_protected_server,
)

pytestmark = pytest.mark.anyio

WORKER = Path(__file__).with_name("refreshing_worker.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
PROCESSES = 2
CALLS = 50
"""Of each process."""
ROUNDS = 3


class StrictIssuer(Issuer):
    """An authorization server that ends everything once a refresh token is used twice.

    Source: RFC 9700, section 4.14.2.
    """

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


class BoundServer(Protected):
    """A server that calls need a bound token for; takes any proof, and keeps the keys of proofs."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer)
        self.open = lambda asked: asked.what != "tools/call"
        self.keys: set[str] = set()

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        token = asked.fields.get("authorization", "").removeprefix("DPoP ")
        if token in self.issuer.valid:
            header = asked.fields["dpop"].partition(".")[0]
            self.keys.add(json.loads(urlsafe_b64decode(header + "=="))["jwk"]["x"])
            await Script.__call__(self, asked, reply)
        else:
            await super().__call__(asked, reply)


class Worker:
    """A process with a client."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def line(self) -> str:
        """The next line that it prints."""
        return (await self._lines.receive_until(b"\n", 100_000)).decode()

    async def round(self, tasks: int) -> None:
        """Have it do what `refreshing_worker` describes, and check that every call succeeded."""
        assert self._process.stdin is not None
        await self._process.stdin.send(f"{tasks}\n".encode())
        assert (await self.line()).split() == ["done"] * tasks


@asynccontextmanager
async def workers(script: Protected, folder: Path) -> AsyncIterator[list[Worker]]:
    """The processes, each with an open client."""
    command = [sys.executable, str(WORKER), script.url, script.revision, str(folder)]
    async with AsyncExitStack() as stack:
        started: list[Worker] = []
        for _ in range(PROCESSES):
            process = await anyio.open_process(command, stderr=None, env=ENVIRONMENT)
            await stack.enter_async_context(process)
            started.append(Worker(process))
        for worker in started:
            assert await worker.line() == "ready"
        yield started


@asynccontextmanager
async def signed_in(folder: Path) -> AsyncIterator[RefusingServer]:
    """A protected server, whose user has signed in and whose store has the tokens."""
    store = FileStore(folder, encrypted=False)
    async with run_issuer(StrictIssuer()) as issuer:
        script = RefusingServer(issuer, NEWEST)
        async with HttpServer(script) as server:
            script.url = server.url
            with anyio.fail_after(90):
                async with client_of(script, agreeing_user(issuer, store=store)) as client:
                    await client.call_tool("echo")
                issuer.forms.clear()
                yield script


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


async def test_a_token_of_another_client_is_used_with_its_bound_key() -> None:
    store = MemoryStore()
    async with run_issuer() as issuer:
        issuer.token_type = "DPoP"
        script = BoundServer(issuer)
        async with HttpServer(script) as server:
            script.url = server.url
            async with (
                client_of(script, agreeing_user(issuer, dpop=True, store=store)) as first,
                client_of(script, agreeing_user(issuer, dpop=True, store=store)) as second,
            ):
                await first.call_tool("echo")
                await second.call_tool("echo")
        assert len(issuer.visits) == 1
        assert len(script.keys) == 1


@pytest.mark.slow
async def test_a_token_that_both_processes_see_refused_is_renewed_once(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as script, workers(script, tmp_path) as processes:
        for count in range(1, ROUNDS + 1):
            script.revoke(PROCESSES * CALLS)
            async with anyio.create_task_group() as group:
                for worker in processes:
                    group.start_soon(worker.round, CALLS)
            assert [form["grant_type"] for form in script.issuer.forms] == ["refresh_token"] * count
        assert len(script.issuer.visits) == 1
