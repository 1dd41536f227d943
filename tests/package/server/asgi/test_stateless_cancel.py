"""Closing the connection cancels its request, and no other."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from package.asgi_client import asgi
from package.rules import revisions_holding
from package.server.asgi.web import Web

REVISIONS = revisions_holding("http.close-is-cancel", "http.cancelled-silence")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("revision", REVISIONS),
    pytest.mark.processes,
]

SECONDS = 10
TOOLS_CHANGED = {"notifications": {"toolsListChanged": True}}


@pytest.mark.requirement(
    "http.close-is-cancel", "http.cancelled-work-stops", "cancellation.http-close-is-signal"
)
async def test_leaving_before_anything_was_said_cancels_the_handler(revision: str) -> None:
    web = Web()
    async with (
        asgi(web.server) as http,
        http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as stream,
    ):
        await web.begun.wait()
        stream.disconnect()
        with anyio.fail_after(SECONDS):
            await web.cancelled.wait()
            await stream.finished.wait()
    assert stream.raw == b""


@pytest.mark.requirement("http.close-is-cancel")
async def test_leaving_in_the_middle_of_a_stream_cancels_the_handler(revision: str) -> None:
    web = Web()
    async with asgi(web.server) as http:
        params = {"name": "counts", "arguments": {"to": 2, "wait": True}}
        async with http.asking(revision, "tools/call", params, meta={"progressToken": 1}) as stream:
            await stream.message()
            await web.begun.wait()
        with anyio.fail_after(SECONDS):
            await stream.finished.wait()
    assert b'"result"' not in stream.raw


@pytest.mark.requirement(
    "http.cancelled-silence", "cancellation.http-close-is-signal", "cancellation.nothing-further"
)
async def test_a_cancelled_request_says_nothing_and_others_go_on(
    revision: str,
) -> None:
    web = Web()
    async with (
        asgi(web.server) as http,
        http.asking(revision, "subscriptions/listen", TOOLS_CHANGED, id=1) as listening,
        http.asking(
            revision,
            "tools/call",
            {"name": "counts", "arguments": {"to": 1, "wait": True}},
            id=2,
            meta={"progressToken": "kept"},
        ) as other,
    ):
        await listening.message()
        await other.message()
        async with http.asking(
            revision,
            "tools/call",
            {"name": "wait"},
            id=3,
            meta={"progressToken": "gone"},
            begun=False,
        ) as gone:
            await web.begun.wait()
        with anyio.fail_after(SECONDS):
            await web.cancelled.wait()
            await gone.finished.wait()
        web.released.set()
        assert "result" in await other.message()
        web.server.remove_tool("logs")
        heard = await listening.message()
        assert heard["method"] == "notifications/tools/list_changed"
    assert gone.raw == b""


@pytest.mark.requirement("http.cancelled-silence")
async def test_a_function_in_a_thread_is_abandoned_and_not_heard(
    revision: str,
) -> None:
    web = Web()
    async with asgi(web.server) as http:
        async with http.asking(
            revision,
            "tools/call",
            {"name": "threaded"},
            meta={"progressToken": 1},
            begun=False,
        ) as stream:
            await web.begun.wait()
            stream.disconnect()
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()
        web.threads.set()
        assert await anyio.to_thread.run_sync(web.spoken.wait, SECONDS)
        assert (await http.ask(revision, "tools/list")).status == 200
    assert stream.raw == b""


async def test_leaving_before_the_body_is_whole_calls_nobody(revision: str) -> None:
    web = Web()
    async with (
        asgi(web.server) as http,
        http.stream("POST", parts=[b'{"jsonrpc":'], unfinished=True) as stream,
    ):
        stream.disconnect()
        with anyio.fail_after(SECONDS):
            await stream.finished.wait()
    assert (stream.status, web.called) == (0, [])


async def test_a_handler_that_ends_as_the_client_leaves_harms_nobody(revision: str) -> None:
    web = Web()
    async with asgi(web.server) as http:
        for _ in range(20):
            web.begun = anyio.Event()
            async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as stream:
                await web.begun.wait()
                web.released.set()
                stream.disconnect()
                with anyio.fail_after(SECONDS):
                    await stream.finished.wait()
            web.released = anyio.Event()
        assert (await http.ask(revision, "tools/list")).status == 200
