"""Requests to issuers: which addresses are reached, and what happens while an issuer is silent."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import asgi
from kit.cached import Clock
from kit.guarded import Guarded, protected_settings
from kit.http_server import Asked, HttpServer, Reply
from kit.issuer import LoopbackIssuer, bearer, new_key, serving_issuer, token_of
from kit.limits import SetLimit
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import (
    AddressRules,
    ConnectFailedError,
    Introspection,
    JwtVerifier,
    TransportError,
)
from mcpgen_runtime.auth.address_rules import AddressCheck
from mcpgen_runtime.server.auth.issuer_fetch import DOCUMENT_LIMIT, BackOff, IssuerHttp
from mcpgen_runtime.server.auth.jwt_verifier import LONGEST_RETRY

HELLO = initialize(SESSIONS[-1])
PACKAGE = "mcpgen_runtime.server.auth"


MONOTONIC = time.monotonic


class OwnClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time goes on while that of verifiers stands still, as on trio."""

    def time(self) -> float:
        """The monotonic clock of the machine."""
        return MONOTONIC()


@pytest.fixture(
    params=[pytest.param(("asyncio", {"loop_factory": OwnClockLoop}), id="asyncio"), "trio"]
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """The event loops, with clocks of their own."""
    return request.param


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, set_limit: SetLimit) -> Clock:
    """The clock of verifiers, which stands still until it is set forward."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    set_limit("pkg.server.auth.jwt_verifier.REFRESH_SECONDS", 0.05)
    return clock


Silence: TypeAlias = Callable[[bool], None]


@pytest.fixture
def silence(issuer: LoopbackIssuer, set_limit: SetLimit) -> Silence:
    """Lets an issuer be silent, for as short as it is waited for, or answer again."""

    def silence(begins: bool) -> None:
        (issuer.answering.clear if begins else issuer.answering.set)()
        set_limit("pkg.server.auth.issuer_fetch.FETCH_SECONDS", 0.3 if begins else 30)

    silence(False)
    return silence


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    with serving_issuer() as serving:
        yield serving


@asynccontextmanager
async def serving_keys(issuer: LoopbackIssuer, **settings: Any) -> AsyncIterator[Any]:
    """A server whose keys are those of an issuer; each request comes with a token of its own."""
    verifier = JwtVerifier(jwks=f"{issuer.url}/jwks", **settings)
    auth = protected_settings(issuers=[issuer.url], verifier=verifier)
    async with asgi(Guarded().server, auth=auth) as http:
        count = 0

        async def status(**more: Any) -> int:
            nonlocal count
            count += 1
            token = token_of(f"user-{count}", iss=issuer.url, **more)
            reply = await http.post(HELLO, Authorization=bearer(token))
            return int(reply.status)

        yield status


async def at_once(status: Any, times: int, **more: Any) -> list[int]:
    """The statuses of requests that come at once."""
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append(await status(**more))

    async with anyio.create_task_group() as tasks:
        for _ in range(times):
            tasks.start_soon(ask)
    return statuses


async def test_keys_in_use_stay_in_use_while_their_issuer_is_silent(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving_keys(issuer, max_age=100) as status:
        assert await status() == 200
        silence(True)
        clock.now += 101
        assert await at_once(status, 10) == [200] * 10
        assert len(issuer.requests) <= 2
        assert await status(key=new_key("other")) == 401  # waits for the fetch that is running
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "the old ones remain in use" in caplog.text
        for _ in range(5):
            assert await status() == 200
            assert await status(key=new_key("other")) == 401
        assert len(issuer.requests) <= 2  # not before some time has passed
        silence(False)
        clock.now += LONGEST_RETRY
        issuer.keys = [new := new_key("new")]
        assert await status(key=new) == 200
        assert await status() == 401
        assert len(issuer.requests) <= 3


async def test_keys_are_fetched_anew_after_30_seconds_or_an_hour(
    issuer: LoopbackIssuer, clock: Clock
) -> None:
    other = new_key("other")
    async with serving_keys(issuer) as status:
        for more, after, count in (
            ({}, 0, 1),
            ({"key": other}, 29.9, 1),
            ({"key": other}, 0.1, 2),
            ({}, 3599.9, 2),
            ({}, 0.1, 3),
        ):
            clock.now += after
            assert await status(**more) == (401 if more else 200)
            with anyio.fail_after(5):
                while len(issuer.requests) < count:
                    await anyio.lowlevel.checkpoint()
            assert len(issuer.requests) == count


async def test_a_token_in_use_ends_with_its_key(issuer: LoopbackIssuer, clock: Clock) -> None:
    auth = protected_settings(
        issuers=[issuer.url], verifier=JwtVerifier(jwks=f"{issuer.url}/jwks", max_age=100)
    )
    new = new_key("new")
    used = token_of("ann", iss=issuer.url)
    other = token_of("ann", iss=issuer.url, key=new)
    async with asgi(Guarded().server, auth=auth) as http:
        statuses = []
        for token in (used, used, other, used):
            statuses.append((await http.post(HELLO, Authorization=bearer(token))).status)
            issuer.keys = [new]
            clock.now += 99
    assert statuses == [200, 200, 200, 401]


async def test_requests_without_keys_wait_for_one_fetch_only(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence
) -> None:
    silence(True)
    async with serving_keys(issuer) as status:
        assert await at_once(status, 10) == [503] * 10
        assert await status() == 503
        assert len(issuer.requests) <= 1
        silence(False)
        clock.now += 4.9
        assert await status() == 503
        clock.now += 0.1
        assert await at_once(status, 10) == [200] * 10
        assert len(issuer.requests) <= 2


async def test_newer_keys_are_waited_for_unless_the_last_fetch_failed(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.auth.jwt_verifier.REFRESH_SECONDS", 30)
    async with serving_keys(issuer, max_age=100) as status:
        assert await status() == 200
        silence(True)
        clock.now += 101
        assert await status() == 200
        clock.now += LONGEST_RETRY
        set_limit("pkg.server.auth.issuer_fetch.FETCH_SECONDS", 100)
        with anyio.fail_after(5):
            assert await status() == 200
        silence(False)
        assert await status(key=new_key("other")) == 401  # waits for the fetch that is running
        issuer.keys = [new_key("new")]
        clock.now += 101
        assert await at_once(status, 5) == [401] * 5  # the old key is used no more


async def test_a_client_that_leaves_ends_no_fetch(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence
) -> None:
    issuer.answering.clear()
    async with serving_keys(issuer) as status:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(status)
            while not issuer.requests:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        issuer.answering.set()
        assert await status() == 200
        assert len(issuer.requests) == 1


def test_attempts_become_rarer_up_to_a_bound() -> None:
    back_off = BackOff(5, 60)
    waits = []
    now = 0.0
    for _ in range(6):
        assert back_off.is_open(now)
        back_off.fail(now)
        back_off.fail(now)  # of an attempt at the same time
        begin = now
        while not back_off.is_open(now):
            now += 1
        waits.append(now - begin)
    assert waits == [5, 10, 20, 40, 60, 60]
    for _ in range(5000):
        back_off.fail(now := now + 60)
    assert not back_off.is_open(now + 59)


@asynccontextmanager
async def connect_introspecting(issuer: LoopbackIssuer) -> AsyncIterator[Any]:
    """A server that asks an issuer about tokens."""
    verifier = Introspection(f"{issuer.url}/introspect", "id", "secret")
    auth = protected_settings(issuers=[issuer.url], verifier=verifier)
    async with asgi(Guarded().server, auth=auth) as http:

        async def status(token: str) -> int:
            answer: int = (await http.post(HELLO, Authorization=bearer(token))).status
            return answer

        yield status


async def test_requests_with_one_token_share_an_unanswered_request(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence
) -> None:
    silence(True)
    async with connect_introspecting(issuer) as status:
        assert await at_once(lambda: status("opaque"), 10) == [503] * 10
        assert len(issuer.requests) <= 1
        assert await status("other") == 503  # at once
        assert len(issuer.requests) <= 1
        silence(False)
        clock.now += 0.9
        assert await status("other") == 503
        clock.now += 0.1
        assert await status("other") == 401
        assert await status("another") == 401
        assert len(issuer.requests) <= 3
        silence(True)
        assert await status("third") == 503
        silence(False)
        clock.now += 1
        assert await status("third") == 401


async def test_an_endpoint_that_is_not_reached_is_asked_more_rarely(clock: Clock) -> None:
    trusted = protected_settings().trusted
    verify = Introspection("http://127.0.0.1:1/introspect", "id", "secret").bind(trusted)
    for pause in (1, 2, 4, 8, 10, 10):
        with pytest.raises(ConnectFailedError):
            await verify("token")
        clock.now += pause - 0.1
        with pytest.raises(TransportError, match="the introspection endpoint did not respond"):
            await verify("token")
        clock.now += 0.1


async def test_a_queue_of_unknown_tokens_waits_a_bounded_time(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence
) -> None:
    silence(True)
    numbers = iter(range(100))
    statuses: list[int] = []

    async def ask(times: int) -> None:
        statuses.extend(await at_once(lambda: status(f"token-{next(numbers)}"), times))

    async with connect_introspecting(issuer) as status:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 20)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(ask, 40)  # they have time left when the first have none
        assert statuses == [503] * 60
        assert len(issuer.requests) <= 20


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio, httpx2 leaves generators open
async def test_a_document_without_end_is_not_read() -> None:
    async def endless(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        while True:
            await reply.part(b"x" * DOCUMENT_LIMIT)

    async with HttpServer(endless) as server:
        with anyio.fail_after(5), pytest.raises(TransportError, match="at most 1048576 bytes"):
            await IssuerHttp([server.url]).get(server.url)


async def test_an_endpoint_with_errors_is_asked_about_other_tokens(
    issuer: LoopbackIssuer, clock: Clock, silence: Silence
) -> None:
    issuer.failing = True
    async with connect_introspecting(issuer) as status:
        assert await status("opaque") == 503
        issuer.failing = False
        assert await status("opaque") == 401


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of every name, to be set by the test."""
    addresses: list[str] = []
    known = socket.getaddrinfo

    def resolve(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
        lists = [known(each, port, *arguments, **more) for each in addresses]
        return [entry for entries in lists for entry in entries]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return addresses


async def test_a_checked_address_is_the_one_that_is_reached(
    issuer: LoopbackIssuer, resolved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = AddressCheck("http://localhost", AddressRules())
    # Loopback is the only address that a test can reach, and is no public one.
    monkeypatch.setattr(f"{PACKAGE}.issuer_fetch._PUBLIC_ONLY", local)
    resolved.append("127.0.0.1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    issuer.raw = b'{"a": "b"}'
    port = issuer.url.rpartition(":")[2]
    assert await IssuerHttp([]).get(f"http://localhost:{port}/jwks") == {"a": "b"}
    assert await IssuerHttp([issuer.url]).get(f"{issuer.url}/jwks") == {"a": "b"}
    resolved.append("10.0.0.1")
    with pytest.raises(ConnectFailedError, match="expected a public address"):
        await IssuerHttp([]).get(f"http://localhost:{port}/jwks")


@pytest.mark.parametrize(
    ("url", "trusted", "reason"),
    [
        ("http://127.0.0.1:1/x", True, "Error"),
        ("https://keys.example/jwks", False, "expected a public address"),
        ("https://127.0.0.1:1/x", False, "expected an https URL of a public host"),
        ("http://idp.example/x", True, "expected an https URL of a public host"),
    ],
)
async def test_an_address_that_is_not_public_is_not_reached(
    url: str, trusted: bool, reason: str, resolved: list[str]
) -> None:
    resolved.append("127.0.0.1")
    with pytest.raises(ConnectFailedError, match=reason):
        await IssuerHttp([url] if trusted else []).get(url)


async def test_a_redirect_of_an_issuer_is_not_followed() -> None:
    async def redirect(asked: Asked, reply: Reply) -> None:
        await reply.whole(302, Location="/elsewhere")

    async with HttpServer(redirect) as server:
        assert await IssuerHttp([server.url]).get(server.url) is None
        assert len(server.asked) == 1
