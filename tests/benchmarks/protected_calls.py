"""A tool call with a verified JWT, and the same call to a server that is not protected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from mcpgen_runtime import REVISIONS, MemoryStore, OAuth
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import AccessToken, Grant, encode_record, grant_key

from .load import Load
from .measure import FLOOR, OURS, AtMost, Line, Within, medians_async
from .serving import HttpServer, run_contender
from .work import PER_REQUEST

URL = "https://mcp.example/mcp"
ADDED = 5e-6
"""Most seconds that a token adds to a client's call."""

CHECKED = "scopes, audience and expiry are checked with each call, also of a known token"
"""Why a token may take longer."""

CALLS = 6000
"""Calls of one round: the system counts CPU time in hundredths of a second."""


def protected_calls(rounds: int) -> Iterable[Line]:
    """The line on a call with a token; the floor is the call without."""
    with run_contender("protected") as ours, run_contender(OURS) as floor:
        times = asyncio.run(measure_calls(ours, floor, rounds))
    name = f"CPU time of the server for a call with a verified JWT, {PER_REQUEST}"
    yield Line(name, times, (AtMost(FLOOR, 1.15, CHECKED),))
    times = asyncio.run(medians_async({OURS: added_by_token}, rounds))
    yield Line("what a token adds to a client's call", times, (Within(ADDED),))


async def measure_calls(ours: HttpServer, floor: HttpServer, rounds: int) -> dict[str, float]:
    """Seconds of CPU time per call by contender, one call after the other."""
    url, _, token = ours.url.partition("#")
    loads = {OURS: Load(url, PER_REQUEST, token), FLOOR: Load(floor.url, PER_REQUEST)}
    servers = {OURS: ours, FLOOR: floor}
    for load in loads.values():
        await load.start()

    async def cpu_time(name: str) -> float:
        started = servers[name].cpu_time()
        for _ in range(CALLS):
            await loads[name].call()
        return (servers[name].cpu_time() - started) / CALLS

    times = await medians_async({name: partial(cpu_time, name) for name in loads}, rounds)
    for load in loads.values():
        load.close()
    return times


class Accepted:
    """The response to a request that the server serves."""

    status = 200

    def header(self, name: str) -> str | None:
        """No field is of interest."""
        return None


async def added_by_token() -> float:
    """Seconds that a client needs for the token of one call, which is in its store and valid."""
    store = MemoryStore()
    token = AccessToken("a" * 800, renew_at=time.time() + 3600)
    grant = Grant("https://idp.example", token, "https://idp.example/token")
    await store.save(grant_key(canonical_resource(URL)), encode_record(grant))
    authorizer = OAuth("bench", store=store).authorizer(URL, REVISIONS)
    request, every = ("POST", URL, b"{}"), {"Content-Type": "application/json"}
    response: Any = Accepted()
    started = time.perf_counter()
    for _ in range(CALLS):
        fields = await authorizer.fields("POST", URL)
        assert {**every, **fields}["Authorization"]
        assert not await authorizer.wants_retry(response, fields, request, 0)
    taken = (time.perf_counter() - started) / CALLS
    await authorizer.close()
    return taken
