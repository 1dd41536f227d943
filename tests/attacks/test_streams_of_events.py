"""Streams of events that fill memory or keep a client busy: neither happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest

from kit.http_script import Script
from kit.http_server import Asked, HttpServer, Reply
from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import REVISIONS, RequestTimeoutError, connect
from mcpgen_runtime.facts import Lifecycle

pytestmark = pytest.mark.attack

LIMIT_MIB = 6

MEMORY = """
import json, resource, sys
from mcpgen_runtime.framing.sse_decoder import EventDecoder

limit = int(sys.argv[1]) * 1024 * 1024
flood, times = json.loads(sys.argv[2]), int(sys.argv[3])
decoder = EventDecoder(limit)
piece = flood.encode() * (65536 // len(flood))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(times * limit // len(piece)):
    decoder.feed(piece)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(
    "flood", ["data: ab\n", "data\n", "x", ":\n", "id: 1\nevent: a\n"], ids=ascii
)
def test_a_stream_takes_little_more_memory_than_its_limit(flood: str) -> None:
    words = [str(LIMIT_MIB), json.dumps(flood), "2"]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *words],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 4 * LIMIT_MIB * 1024 * 1024


RESUMABLE = [
    name
    for name, revision in REVISIONS.items()
    if revision.lifecycle is Lifecycle.HANDSHAKE and revision.facts.http.resumable
]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_server_that_demands_instant_polling_is_polled_rarely() -> None:
    revision = RESUMABLE[-1]
    numbers = iter(range(1_000_000))

    async def at_once(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id=str(next(numbers)), retry=0)
        await reply.end()

    script = Script(revision, "s")
    script.on = {"tools/call": at_once, "GET": at_once}
    async with HttpServer(script) as server, connect(server.url, revision=revision) as client:
        with anyio.fail_after(20), pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=3)
        assert len(server.of("GET")) < 40
