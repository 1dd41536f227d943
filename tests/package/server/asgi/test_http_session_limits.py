"""Bounds of sessions: memory, which end for those that come, and the counters."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import SESSION, Http, asgi, speaking
from kit.asgi_stream import SECONDS, Reply
from kit.asgi_wire import Line
from kit.web import Web
from kit.wire import (
    INITIALIZED,
    PER_REQUEST,
    SESSIONS,
    encode_message,
    initialize,
    request,
    sessions,
    streamable,
)
from mcpgen_runtime import Context, Limits, Server
from mcpgen_runtime.server.asgi.quotas import decoded_size
from mcpgen_runtime.server.asgi.request import network_of

pytestmark = pytest.mark.processes

STATELESS = PER_REQUEST[-1]
ELICITING = "2025-06-18"


def initialize_of_size(revision: str, size: int) -> dict[str, Any]:
    """An `initialize` of so many bytes."""
    short = initialize(revision, {"experimental": {"x": {"y": ""}}})
    padding = "x" * (size - len(encode_message(short)))
    return initialize(revision, {"experimental": {"x": {"y": padding}}})


async def open_session(
    http: Http, revision: str, size: int | None = None, address: str = ""
) -> str:
    """Open a session and do nothing with it; its id."""
    if address:
        http.scope["client"] = (address, 1)
    message = initialize(revision) if size is None else initialize_of_size(revision, size)
    reply = await http.post(message, **{SESSION: None})
    assert reply.status == 200, reply.body
    return reply.fields[SESSION]


async def open_confirmed_session(
    http: Http, revision: str, size: int | None = None, address: str = ""
) -> str:
    """Open a session and confirm it; its id."""
    identifier = await open_session(http, revision, size, address)
    assert (await http.post(INITIALIZED, **{SESSION: identifier})).status == 202
    return identifier


async def is_open(http: Http, revision: str, identifier: str) -> bool:
    """Whether there still is a session, which counts as a use of it."""
    reply = await http.post(request(revision, "ping"), **{SESSION: identifier})
    return reply.status == 200


@sessions
async def test_a_repeated_initialize_is_bounded_like_the_first(revision: str) -> None:
    async with speaking(
        Web().server, revision, limits=Limits(initialize=2000, session_bytes=30_000)
    ) as http:
        reply = await http.post(initialize_of_size(revision, 2001))
        assert (reply.status, "Limits.initialize" in reply.error["message"]) == (413, True)
        for _ in range(20):
            assert (await http.post(initialize_of_size(revision, 2000))).status == 200
    async with speaking(Web().server, revision, limits=Limits(session_bytes=12_000)) as http:
        assert (await http.post(initialize_of_size(revision, 60_000))).status == 503


@sessions
async def test_sessions_with_many_stored_bytes_make_room_for_new_ones(revision: str) -> None:
    limits = Limits(session_bytes=50_000)
    async with asgi(Web().server, limits=limits) as http:
        honest = [await open_confirmed_session(http, revision) for _ in range(3)]
        hogs = [await open_confirmed_session(http, revision, 10_000) for _ in range(20)]
        honest.append(await open_confirmed_session(http, revision))
        assert all([await is_open(http, revision, each) for each in honest])
        assert sum([await is_open(http, revision, each) for each in hogs]) <= 4
    async with asgi(Web().server, limits=limits) as http:
        large = await open_confirmed_session(http, revision, 15_000)
        for _ in range(20):
            await open_session(http, revision, 10_000)
        assert await is_open(http, revision, large)


@sessions
@pytest.mark.parametrize(("left", "is_ended"), [(0, False), (1, True)])
async def test_an_idle_session_ends_if_it_keeps_more_than_is_needed(
    revision: str, left: int, is_ended: bool
) -> None:
    size = decoded_size(encode_message(initialize_of_size(revision, 10_000)))
    async with asgi(Web().server, limits=Limits(session_bytes=size + left)) as http:
        first = await open_confirmed_session(http, revision)
        reply = await http.post(initialize_of_size(revision, 10_000), **{SESSION: None})
        assert (reply.status == 200) is is_ended
        assert await is_open(http, revision, first) is not is_ended


@sessions
async def test_a_flood_of_sessions_that_nobody_confirms_ends_no_others(revision: str) -> None:
    async with asgi(Web().server, limits=Limits(sessions=10)) as http:
        honest = [await open_confirmed_session(http, revision) for _ in range(4)]
        honest.append(await open_session(http, revision))
        await http.post(request(revision, "tools/list"), **{SESSION: honest[-1]})  # confirms it
        flood = [await open_session(http, revision) for _ in range(50)]
        assert all([await is_open(http, revision, each) for each in honest])
        assert [await is_open(http, revision, each) for each in flood[-6:]] == [False, *[True] * 5]


@sessions
async def test_the_address_that_has_most_sessions_makes_room(revision: str) -> None:
    async with asgi(Web().server, limits=Limits(sessions=10)) as http:
        honest = [
            await open_confirmed_session(http, revision, address=f"192.0.2.{n}") for n in range(4)
        ]
        for n in range(50):
            await open_confirmed_session(http, revision, address=f"2001:db8::{n:x}")
        assert all([await is_open(http, revision, each) for each in honest])


@pytest.mark.one_process
@sessions
async def test_of_the_sessions_of_an_address_the_longest_unused_ends(revision: str) -> None:
    async with asgi(Web().server, limits=Limits(sessions=4)) as http:
        other = await open_confirmed_session(http, revision, address="192.0.2.9")
        many = [await open_confirmed_session(http, revision, address="192.0.2.1") for _ in "abc"]
        assert await is_open(http, revision, many[0])
        new = await open_confirmed_session(http, revision, address="192.0.2.2")
        ids = [other, *many, new]
        opened = [await is_open(http, revision, each) for each in ids]
        assert opened == [True, True, False, True, True]


@sessions
async def test_of_unconfirmed_sessions_the_longest_unused_ends_if_one_is_idle(
    revision: str,
) -> None:
    async with asgi(Web().server, limits=Limits(sessions=3)) as http:
        ids = [await open_confirmed_session(http, revision)]
        ids += [await open_session(http, revision) for _ in "ab"]
        assert await is_open(http, revision, ids[1])  # a ping confirms nothing
        ids.append(await open_session(http, revision))
        async with (
            http.stream("GET", fields={SESSION: ids[1]}),
            http.stream("GET", fields={SESSION: ids[3]}),
        ):
            ids.append(await open_session(http, revision))
            opened = [await is_open(http, revision, each) for each in ids]
            assert opened == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("client", "network"),
    [
        (("192.0.2.1", 1), "192.0.2.1"),
        (("::ffff:192.0.2.1", 1), "192.0.2.1"),
        (("2001:db8:0:1::5", 1), "20010db800000001"),
        (("unix:path", 1), "unix:path"),
        (None, ""),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(client: Any, network: str) -> None:
    assert network_of(client) == network


class Asking:
    """A server whose tool asks its client something of so many characters."""

    def __init__(self) -> None:
        self.server = Server("tester")
        self.server.tool()(self.ask)

    async def ask(self, ctx: Context, size: int) -> str:
        answer = await ctx.elicit("x" * size, {"type": "object", "properties": {}})
        return answer.action


async def call_asking_tool(http: Http, id: int, size: int) -> Reply:
    params = {"name": "ask", "arguments": {"size": size}}
    return await http.post(request(ELICITING, "tools/call", params, id=id))


@pytest.mark.parametrize("limit", ["pending_bytes", "session_bytes"])
async def test_messages_that_wait_for_a_client_are_bounded_in_bytes(limit: str) -> None:
    limits = Limits(**{limit: 10_000})
    async with (
        speaking(
            Asking().server, ELICITING, {"elicitation": {}}, limits=limits, answers="json"
        ) as http,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(call_asking_tool, http, 1, 6000)
        await anyio.wait_all_tasks_blocked()
        refused = await call_asking_tool(http, 2, 6000)
        assert refused.result["isError"] or "error" in refused.json
        async with http.stream("GET") as stream:
            question = await stream.message()
            assert len(question["params"]["message"]) == 6000
        tasks.start_soon(call_asking_tool, http, 3, 6000)
        await anyio.wait_all_tasks_blocked()
        async with http.stream("GET") as stream:
            assert (await stream.message())["id"] != question["id"]
        tasks.cancel_scope.cancel()


@pytest.mark.one_process
async def test_messages_that_a_stream_lost_are_sent_on_the_next() -> None:
    app: Any = Asking().server.asgi(answers="json", events=None)
    sent, line = list[str](), Line()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])
        if len(sent) > 2:
            line.leave()
            raise OSError("the client left")

    async with (
        speaking(app, ELICITING, {"elicitation": {}}) as http,
        anyio.create_task_group() as tasks,
    ):
        for size in (10, 20):
            tasks.start_soon(call_asking_tool, http, size, size)
            await anyio.wait_all_tasks_blocked()
        await app(http.scope_of("GET", None, {}), line.receive, send)
        assert len(sent) == 3
        async with http.stream("GET") as stream:
            questions = [await stream.message() for _ in range(2)]
        assert [len(each["params"]["message"]) for each in questions] == [10, 20]
        tasks.cancel_scope.cancel()


SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"


@sessions
async def test_uris_that_sessions_follow_have_so_many_bytes_together(revision: str) -> None:
    server = Web(subscribe=True).server
    server.resource("long://{name}")(lambda name: name)
    async with asgi(server, limits=Limits(session_bytes=20_000)) as http:

        async def follow(method: str, number: int) -> int:
            uri = "long://" + "x" * 5000 + str(number)
            reply = await http.ask(revision, method, {"uri": uri})
            assert reply.status == 200 or "Limits.session_bytes" in reply.error["message"]
            return reply.status

        for _ in range(2):  # after the end of a session, nothing of it counts
            await http.initialize(revision)
            for _ in range(10):
                assert await follow(SUBSCRIBE, 1) == await follow(UNSUBSCRIBE, 1) == 200
            assert [await follow(SUBSCRIBE, n) for n in range(4)] == [200, 200, 200, 503]
            assert await follow(SUBSCRIBE, 2) == 503  # it is not looked at before there is room
            assert (await http.delete()).status == 200
            http.fields[SESSION] = None


async def test_filters_of_streams_are_bounded_and_the_longest_goes() -> None:
    def params(size: int, number: int) -> dict[str, Any]:
        return {"notifications": {"resourceSubscriptions": [f"long://{number}" + "x" * size]}}

    async with (
        asgi(Web(subscribe=True).server, limits=Limits(session_bytes=20_000)) as http,
        http.asking(STATELESS, "subscriptions/listen", params(500, 1)) as honest,
        http.asking(STATELESS, "subscriptions/listen", params(15_000, 2)) as hog,
    ):
        await honest.message()
        await hog.message()
        async with http.asking(STATELESS, "subscriptions/listen", params(9000, 3)) as another:
            await another.message()
            with anyio.fail_after(SECONDS):
                await hog.finished.wait()
            assert hog.ended
            refused = await http.ask(STATELESS, "subscriptions/listen", params(30_000, 4))
            assert refused.status == 503
            assert "Limits.session_bytes" in refused.error["message"]
            assert not honest.finished.is_set()


@streamable
async def test_an_application_counts_what_is_open(revision: str) -> None:
    web = Web()
    app, sessions = web.server.asgi(), int(revision in SESSIONS)

    def counts(requests: int = 0, streams: int = 0) -> bool:
        return app.counts == {"requests": requests, "sessions": sessions, "streams": streams}

    async with speaking(app, revision) as http:
        for _ in range(2):  # the second call has a plan
            call = http.asking(revision, "tools/call", {"name": "wait"}, begun=False)
            async with call as waiting:
                await web.begun.wait()
                await anyio.wait_all_tasks_blocked()
                assert counts(requests=1)
                web.released.set()
                await waiting.finished.wait()
            assert counts()
            web.begun, web.released = anyio.Event(), anyio.Event()
        async with http.listening(revision) as stream:
            assert counts(streams=1)
        await stream.finished.wait()
        assert counts()
    assert app.counts == {"requests": 0, "sessions": 0, "streams": 0}


async def test_a_session_that_found_no_room_takes_no_memory() -> None:
    limits = Limits(sessions=1, session_bytes=8000)
    async with asgi(Web().server, limits=limits) as http:
        await http.initialize(ELICITING)
        async with http.stream("GET") as stream:
            for _ in range(20):
                reply = await http.post(initialize(ELICITING), **{SESSION: None})
                assert "Limits.sessions" in reply.error["message"]
        await stream.finished.wait()
        assert (await http.post(initialize(ELICITING), **{SESSION: None})).status == 200


@sessions
async def test_some_may_be_about_to_confirm_though_all_others_are_idle(revision: str) -> None:
    async with asgi(Web().server, limits=Limits(sessions=200)) as http:
        for _ in range(200):
            await open_confirmed_session(http, revision)
        opened = [await open_session(http, revision) for _ in range(3)]
        for each in opened:
            assert (await http.post(INITIALIZED, **{SESSION: each})).status == 202
        opened = [await open_session(http, revision) for _ in range(4)]  # 2 are a hundredth
        assert [await is_open(http, revision, each) for each in opened] == [False, *[True] * 3]
