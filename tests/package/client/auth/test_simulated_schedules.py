"""Opening, calls and renewals of tokens under many schedules, on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import anyio
import pytest

from kit.auth_answers import REDIRECT_URI
from kit.http_server import Asked, Reply
from kit.rules import revisions_holding
from kit.simulation import Network, SharedStore, simulate, use_network
from mcpgen_runtime import McpError, OAuth, Redirect, Timeouts, connect
from package.client.auth.protected import Issuer, Protected, store_grant

pytestmark = pytest.mark.lengthy

RS, AS = "https://mcp.example", "https://as.example"
LIFETIME = 15.0
"""Seconds for which a token is accepted."""

SLOW = 8.0
"""Seconds that the token endpoint takes, about."""

LIMITS = Timeouts(opening=60.0, probe=5.0, retries=(0.0,) * 4)
WITH_METADATA = revisions_holding("auth-flow.resource-implemented")
EPOCH = 1_800_000_000.0

backends = pytest.mark.parametrize(
    "backend", ["asyncio", pytest.param("trio", marks=pytest.mark.trio)]
)
revisions = pytest.mark.parametrize("revision", WITH_METADATA)


class World:
    """An MCP server, its authorization server and clients with one store, by a schedule."""

    def __init__(self, seed: int, revision: str, *, broken: bool = False) -> None:
        self.random = random = Random(seed)
        self.broken = broken
        self.issuer = _Issuer(random, broken)
        self.issuer.url = AS
        self.script = _Protected(self.issuer, revision)
        self.script.url = f"{RS}/mcp"
        self.store = SharedStore()
        self.network = Network(random, {RS: self.script, AS: self.issuer}, self.delay)
        self.network.lost = 0.05 if broken else 0.0
        self.is_slow = not broken and random.random() < 0.3
        self.opened: list[float] = []
        self.failures: list[Exception] = []

    def delay(self, asked: Asked) -> tuple[float, float]:
        """How long a request takes there and back."""
        if asked.target == "/token":
            whole = SLOW * self.random.uniform(0.5, 1.5)
            share = self.random.random()
            return whole * share, whole * (1 - share)
        if self.is_slow and asked.target == "/mcp":
            return self.random.uniform(0.0, 5.0), self.random.uniform(0.0, 5.0)
        return self.random.choice([0.0, 0.01, 0.3]), self.random.choice([0.0, 0.01, 0.3])

    async def visit(self, url: str) -> str:
        """A user who takes a while."""
        with self.network.working():
            await anyio.sleep(self.random.uniform(0.0, 90.0))
        return await self.issuer.visit(url)

    def auth(self) -> OAuth:
        """The credentials of one client, which shares the store with the others."""
        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, self.visit), store=self.store)
        auth.settings = replace(auth.settings, now=lambda: EPOCH + anyio.current_time())
        return auth

    async def run(self) -> None:
        """Open clients, and make calls with them."""
        random = self.random
        if random.random() < 0.8:
            await self.store_grant()
        async with anyio.create_task_group() as tasks:
            for _ in range(random.choice([1, 1, 2, 3])):
                tasks.start_soon(self.use_client, random.uniform(0.0, 20.0))
        if self.broken:
            self.issuer.fails = self.network.lost = 0.0
            self.failures.clear()
            await self.use_client(10.0)  # for which a failed refresh is postponed

    async def store_grant(self) -> None:
        """Store the grant of an earlier run, whose token ends soon or has ended."""
        ends = self.random.uniform(-5.0, LIFETIME)
        self.issuer.valid["old"] = frozenset()
        self.issuer.ends["old"] = ends
        self.issuer.refresh_tokens["refresh-x"] = frozenset()
        renew_at = self.random.choice([None, EPOCH + ends - LIFETIME / 2])
        await store_grant(self.script, self.store, renew_at=renew_at)

    async def use_client(self, after: float) -> None:
        """Open a client after a pause, and make calls side by side, some of which are given up."""
        await anyio.sleep(after)
        random, revision = self.random, self.script.revision
        pinned = revision if self.is_slow or random.random() < 0.7 else None
        began = anyio.current_time()
        self.network.change(watched=1)
        is_open = False
        try:
            target = connect(self.script.url, revision=pinned, auth=self.auth(), timeouts=LIMITS)
            async with target as client:
                self.network.change(watched=-1)
                is_open = True
                self.opened.append(anyio.current_time() - began)
                async with anyio.create_task_group() as tasks:
                    for _ in range(random.randrange(6)):
                        tasks.start_soon(self.call, client)
        except McpError as error:
            self.record(error)
        finally:
            if not is_open:
                self.network.change(watched=-1)

    def record(self, error: McpError) -> None:
        """Record a failure, unless the user would have been asked too often: that is a bound."""
        if "the user was asked to authorize" not in str(error):
            self.failures.append(error)

    async def call(self, client: Any) -> None:
        """Make calls, of which some are given up."""
        for _ in range(self.random.randrange(1, 4)):
            await anyio.sleep(self.random.uniform(0.0, LIFETIME))
            seconds = self.random.choice([3.0, 10.0, 60.0, 60.0, 60.0])
            began = anyio.current_time()
            try:
                with anyio.move_on_after(seconds):
                    await client.call_tool("echo")
            except McpError as error:
                self.record(error)
            assert anyio.current_time() - began <= seconds + 1.0 + 0.01  # to part


class _Issuer(Issuer):
    """An authorization server whose tokens end, and whose token endpoint fails now and then."""

    def __init__(self, random: Random, broken: bool) -> None:
        super().__init__()
        self.expires_in = LIFETIME
        self.ends: dict[str, float] = {}
        self.fails = 0.2 if broken else 0.0
        self._random = random

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.target != "/token":
            await super().__call__(asked, reply)
            return
        fails = self._random.random() < self.fails
        self.refused = (503, {}) if fails else None
        before = set(self.valid)
        await self.issue_token(dict(parse_qsl(asked.body.decode())), reply)
        for token in set(self.valid) - before:
            self.ends[token] = anyio.current_time() + LIFETIME


class _Protected(Protected):
    """An MCP server that refuses tokens which have ended."""

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        assert isinstance(self.issuer, _Issuer)
        ends = self.issuer.ends
        for token in [each for each in self.issuer.valid if ends[each] <= anyio.current_time()]:
            del self.issuer.valid[token]
        await super().__call__(asked, reply)


@contextmanager
def on_network(monkeypatch: pytest.MonkeyPatch, network: Network) -> Iterator[None]:
    """Let clients make their requests by the simulated network, as by any HTTP library."""

    with monkeypatch.context() as patch:
        use_network(patch, network)
        yield


def run_world(
    monkeypatch: pytest.MonkeyPatch, backend: str, seed: int, revision: str, *, broken: bool = False
) -> World:
    async def main() -> World:
        world = World(seed, revision, broken=broken)
        with on_network(monkeypatch, world.network):
            await world.run()
        return world

    return simulate(backend, seed, main)


@revisions
@backends
def test_no_opening_waits_while_no_request_is_under_way(
    monkeypatch: pytest.MonkeyPatch, backend: str, revision: str
) -> None:
    for seed in range(100):
        world = run_world(monkeypatch, backend, seed, revision)
        assert (seed, world.failures) == (seed, [])
        assert (seed, round(world.network.idle, 2)) == (seed, 0.0)


@revisions
@backends
def test_a_client_recovers_from_failures_of_every_kind(
    monkeypatch: pytest.MonkeyPatch, backend: str, revision: str
) -> None:
    for seed in range(100):
        world = run_world(monkeypatch, backend, seed, revision, broken=True)
        assert (seed, world.failures) == (seed, [])
        assert (seed, round(world.network.idle, 2)) == (seed, 0.0)
