"""Ids that count once at all workers: proofs of DPoP that were used, sealed sessions that ended."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from kit.engine import Engine, run_engine
from kit.guarded import Guarded, protected_settings
from kit.issuer import proof_key, proof_of, token_of
from kit.wire import ALL, SESSIONS, initialize, request, sessions
from mcpgen_runtime import DpopValidation, MemoryUsedIds, SharedState, UsedIds
from package.server.shared.shared_servers import in_engine, run_workers
from requirements import EVERY_REVISION

pytestmark = [pytest.mark.processes, pytest.mark.workers]

KEY = proof_key()
HELLO = initialize(SESSIONS[-1])


@pytest.fixture
def store(state: SharedState) -> UsedIds:
    return state.used


def bound_token() -> str:
    """A token that only proofs by `KEY` may use."""
    return token_of(cnf={"jkt": KEY.thumbprint()})


async def test_an_id_counts_once_while_it_is_kept(store: UsedIds) -> None:
    assert not await store.is_used(b"one")
    assert [await store.use(b"one", 60.0) for _ in range(3)] == [True, False, False]
    assert await store.is_used(b"one")
    assert await store.use(b"two", 0.05)
    with anyio.fail_after(5):
        while await store.is_used(b"two"):
            await anyio.lowlevel.checkpoint()
    assert await store.use(b"two", 60.0)


@in_engine
async def test_a_command_that_is_sent_twice_uses_an_id_once(
    store: UsedIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tokens of writes: equal ones are what a lost answer looks like.
    monkeypatch.setattr("os.urandom", bytes)
    assert [await store.use(b"one", 60.0) for _ in range(2)] == [True, True]
    monkeypatch.setattr("os.urandom", lambda size: b"\1" * size)
    assert not await store.use(b"one", 60.0)


@pytest.mark.requirement("auth-ext.dpop-server-validates", revisions=EVERY_REVISION)
async def test_a_proof_is_accepted_by_one_worker(engine: Engine) -> None:
    auth, token = protected_settings(dpop=DpopValidation()), bound_token()
    async with run_workers(engine.url, Guarded, auth=auth) as workers:
        for order in ((0, 1, 2), (2, 0, 1)):
            fields = {"Authorization": f"DPoP {token}", "DPoP": proof_of(KEY, token)}
            statuses = [(await workers.each[each].post(HELLO, **fields)).status for each in order]
            assert statuses == [200, 401, 401]


async def test_without_the_engine_no_proof_is_accepted() -> None:
    auth = protected_settings(dpop=DpopValidation())
    with run_engine() as engine:
        async with run_workers(engine.url, Guarded, auth=auth) as workers:
            engine.stop()
            token = bound_token()
            proof = proof_of(KEY, token)
            workers.any.fields |= {"authorization": f"DPoP {token}", "dpop": proof}
            reply = await workers.any.ask(ALL[-1], "tools/list")
            assert (reply.status, reply.fields["retry-after"]) == (503, "1")


@pytest.mark.requirement("http.session-gone-404", "http.session-terminate")
@sessions
async def test_a_sealed_session_ends_at_each_worker(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, sessions="sealed") as workers:
        await workers.any.initialize(revision)
        workers.use_session()
        for http in workers.each:
            assert (await http.ask(revision, "ping")).status == 200
        reply = await workers.each[0].delete()
        assert (reply.status, reply.body) == (200, b"")
        for http in workers.each:
            for method in ("POST", "GET", "DELETE"):
                message = request(revision, "ping") if method == "POST" else None
                assert (await http.request(method, message)).status == 404


async def test_without_the_engine_sealed_sessions_are_503() -> None:
    with run_engine() as engine:
        async with run_workers(engine.url, sessions="sealed") as workers:
            await workers.any.initialize(SESSIONS[-1])
            engine.stop()
            for method in ("POST", "GET", "DELETE"):
                message = request(SESSIONS[-1], "ping") if method == "POST" else None
                reply = await workers.any.request(method, message)
                assert (reply.status, reply.fields["retry-after"]) == (503, "1")


async def test_memory_forgets_the_oldest_ids() -> None:
    store = MemoryUsedIds(2)
    assert [await store.use(each, 60.0) for each in (b"1", b"2", b"3")] == [True] * 3
    assert [await store.is_used(each) for each in (b"1", b"2", b"3")] == [False, True, True]
    assert [await store.use(each, 60.0) for each in (b"2", b"3", b"2")] == [False] * 3
