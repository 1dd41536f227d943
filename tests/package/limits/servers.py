"""Limits of servers over HTTP, in memory on a virtual clock, and of what a process stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from kit.asgi_client import SESSION, Http, asgi, fields_of
from kit.asgi_stream import Reply
from kit.guarded import Guarded, protected_settings
from kit.issuer import proof_key, proof_of, token_of
from kit.live import server_with
from kit.requestor import requestor
from kit.web import Web, echo_call
from kit.wire import INITIALIZED, LISTEN, PER_REQUEST, SESSIONS, encode_message, initialize, request
from mcpgen_runtime import Context, DpopValidation, Limits, MemoryBus, MemoryKeyRing, Server, Tasks
from mcpgen_runtime.server.asgi.request import AcceptedHeads, HttpRequest
from mcpgen_runtime.server.auth.verifiers import PrincipalCache
from package.limits.table import limit

NEWEST, WITH_SESSION = PER_REQUEST[-1], SESSIONS[-1]
LISTS = {"notifications": {"toolsListChanged": True}}
CHUNKED = {"transfer-encoding": "chunked"}


def is_accepted(reply: Reply, setting: str, status: int = 503) -> bool:
    """Whether a request was served; a refusal has to name the setting."""
    if reply.status in (200, 202):
        return True
    assert (reply.status, f"Limits.{setting}" in reply.error["message"]) == (status, True)
    return False


def half_body(http: Http, size: int = 1) -> Any:
    """A request of whose body so many bytes come, and no more."""
    fields = fields_of(NEWEST, request(NEWEST, "tools/list"))
    return http.stream("POST", parts=[b"x" * size], unfinished=True, fields=fields)


@limit("Limits.body", 1000, place="of a length")
async def body(amount: int, limits: Limits) -> bool:
    message = echo_call(NEWEST, amount)
    fields = fields_of(NEWEST, message) | {"content-length": str(amount)}
    web = Web()
    async with asgi(web.server, limits=limits) as http:
        reply = await http.post(message, **fields)
    assert len(web.called) == (reply.status == 200)
    return is_accepted(reply, "body", 413)


@limit("Limits.body", 1000, place="in pieces")
async def body_in_pieces(amount: int, limits: Limits) -> bool:
    sent, fields = (
        encode_message(echo_call(NEWEST, amount)),
        fields_of(NEWEST, echo_call(NEWEST, amount)),
    )
    pieces = [sent[at : at + 1] for at in range(amount)]
    async with asgi(Web().server, limits=limits) as http:
        async with http.stream("POST", parts=pieces, fields=fields) as stream:
            await stream.end()
        return is_accepted(Reply(stream), "body", 413)


@limit("Limits.bodies", 200_000)
async def bodies(amount: int, limits: Limits) -> bool:
    message = echo_call(NEWEST, amount - 100_000)
    meta = {"example.com/padding": ""}
    call = request(NEWEST, "tools/call", {"name": "wait", "arguments": {}}, meta=meta)
    call["params"]["_meta"]["example.com/padding"] = "x" * (100_000 - len(encode_message(call)))
    async with (
        asgi(Web().server, limits=limits) as http,
        http.stream("POST", call, begun=False, fields=fields_of(NEWEST, call)),
    ):
        await anyio.wait_all_tasks_blocked()
        return is_accepted(await http.post(message, **fields_of(NEWEST, message)), "bodies")


@limit("Limits.reading", 2)
async def incomplete_bodies(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http, AsyncExitStack() as stack:
        streams = []
        for _ in range(amount):
            streams.append(await stack.enter_async_context(half_body(http)))
            await anyio.wait_all_tasks_blocked()
        return not any(stream.status for stream in streams)


@limit("Limits.body_seconds", 20)
async def seconds_of_a_body(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http, half_body(http) as stream:
        await anyio.sleep(amount - 0.5)
        return not stream.status


@limit("Limits.discard", 20)
async def dropped_bytes(amount: int, limits: Limits) -> bool:
    parts, refused = [b"x"] * amount, {"host": "evil.example", **CHUNKED}
    async with (
        asgi(Web().server, limits=limits) as http,
        http.stream("POST", parts=parts, fields=refused) as stream,
    ):
        await stream.end()
        assert stream.status == 403
        return stream.unread == 0


@limit("Limits.fields", 10)
async def header_fields(amount: int, limits: Limits) -> bool:
    message = request(NEWEST, "tools/list")
    fields = fields_of(NEWEST, message)
    standard = {"host", "accept", "content-type", *fields}
    more = {f"x-{number}": "y" for number in range(amount - len(standard))}
    async with asgi(Web().server, limits=limits) as http:
        return is_accepted(await http.post(message, **fields, **more), "fields", 431)


@limit("Limits.send_seconds", 20)
async def seconds_of_a_response(amount: int, limits: Limits) -> bool:
    web = Web()
    async with (
        asgi(web.server, limits=limits, keep_alive=None) as http,
        http.asking(NEWEST, LISTEN, LISTS) as stream,
    ):
        await stream.message()
        stream.stop_reading()
        web.server.remove_tool("logs")
        await anyio.sleep(amount - 0.5)
        return not stream.finished.is_set()


@asynccontextmanager
async def waiting_calls(http: Http, revision: str, count: int) -> AsyncIterator[None]:
    """Calls of the tool `wait` while the block runs."""
    async with AsyncExitStack() as stack:
        for number in range(count):
            params = {"name": "wait", "arguments": {}}
            call = http.asking(revision, "tools/call", params, id=number, begun=False)
            await stack.enter_async_context(call)
        await anyio.wait_all_tasks_blocked()
        yield


@limit("Limits.in_flight", 3)
async def served_requests(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http, waiting_calls(http, NEWEST, amount - 1):
        return is_accepted(await http.ask(NEWEST, "tools/list", id="list"), "in_flight")


@limit("Limits.per_session", 3)
async def served_requests_of_a_session(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http:
        await http.initialize(WITH_SESSION)
        async with waiting_calls(http, WITH_SESSION, amount - 1):
            return is_accepted(await http.ask(WITH_SESSION, "ping", id="ping"), "per_session")


async def leave_calls(http: Http, count: int) -> None:
    """Begin calls of the tool `wait` in a session, and leave them."""
    await http.initialize(WITH_SESSION)
    async with waiting_calls(http, WITH_SESSION, count):
        pass
    await anyio.wait_all_tasks_blocked()


@limit("Limits.abandoned", 2)
async def abandoned_calls(amount: int, limits: Limits) -> bool:
    web = Web()
    async with asgi(web.server, limits=limits) as http:
        await leave_calls(http, amount)
        await anyio.sleep(60)
        return not web.cancelled.is_set()


@limit("Limits.abandoned_seconds", 5)
async def seconds_of_an_abandoned_call(amount: int, limits: Limits) -> bool:
    web = Web()
    async with asgi(web.server, limits=limits, keep_alive=0.1) as http:
        await leave_calls(http, 1)
        await anyio.sleep(amount - 0.5)
        return not web.cancelled.is_set()


@limit("Limits.streams", 2, place="subscriptions")
async def streams(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http, AsyncExitStack() as stack:
        for number in range(amount - 1):
            await stack.enter_async_context(http.asking(NEWEST, LISTEN, LISTS, id=number))
        async with http.asking(NEWEST, LISTEN, LISTS, id="last") as stream:
            return stream.status == 200


@limit("Limits.streams", 2, place="of sessions and subscriptions together")
async def streams_of_sessions(amount: int, limits: Limits) -> bool:
    async with (
        asgi(Web().server, limits=limits) as http,
        http.asking(NEWEST, LISTEN, LISTS) as subscription,
        AsyncExitStack() as stack,
    ):
        streams = [subscription]
        for _ in range(amount - 1):
            client = http.another()
            await client.initialize(WITH_SESSION)
            streams.append(await stack.enter_async_context(client.stream("GET")))
        return {stream.status for stream in streams} == {200}


async def open_sessions(http: Http, count: int) -> list[str]:
    """Open and confirm sessions; their ids."""
    ids = []
    for _ in range(count):
        reply = await http.post(initialize(WITH_SESSION))
        ids.append(reply.fields[SESSION])
        assert (await http.post(INITIALIZED, **{SESSION: ids[-1]})).status == 202
    return ids


async def are_open(http: Http, ids: list[str]) -> bool:
    """Whether there still are sessions."""
    ping = request(WITH_SESSION, "ping")
    return all([(await http.post(ping, **{SESSION: each})).status == 200 for each in ids])


@limit("Limits.sessions", 10)
async def sessions(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http:
        return await are_open(http, await open_sessions(http, amount))


@limit("Limits.idle", 100)
async def seconds_of_an_idle_session(amount: int, limits: Limits) -> bool:
    async with asgi(Web().server, limits=limits) as http:
        ids = await open_sessions(http, 1)
        await anyio.sleep(amount - 0.5)
        return await are_open(http, ids)


@limit("Limits.initialize", 1000)
async def opening_request(amount: int, limits: Limits) -> bool:
    message = initialize(WITH_SESSION, {"experimental": {"x": {"y": ""}}})
    padding = "x" * (amount - len(encode_message(message)))
    message["params"]["capabilities"]["experimental"]["x"]["y"] = padding
    async with asgi(Web().server, limits=limits) as http:
        return is_accepted(await http.post(message), "initialize", 413)


@limit("Limits.pending", 2)
async def waiting_messages(amount: int, limits: Limits) -> bool:
    async def ask(ctx: Context, size: int) -> str:
        await ctx.elicit("x" * size, {"type": "object", "properties": {}})
        return "answered"

    async with asgi(server_with(ask), limits=limits, answers="json") as http:
        await http.initialize(WITH_SESSION, {"elicitation": {}})
        async with AsyncExitStack() as stack:
            streams = []
            for number in range(amount):
                params = {"name": "ask", "arguments": {"size": 1}}
                call = http.asking(WITH_SESSION, "tools/call", params, id=number, begun=False)
                streams.append(await stack.enter_async_context(call))
                await anyio.wait_all_tasks_blocked()
            return not any(stream.status for stream in streams)


@limit("pkg.server.asgi.sealed_sessions.ENDED", 2)
async def ended_sealed_sessions(amount: int) -> bool:
    async with asgi(Server("sealed", state_key=bytes(32)), sessions="sealed") as http:
        ids = await open_sessions(http, amount)
        for each in ids:
            assert (await http.delete(**{SESSION: each})).status == 200
        return not any([await are_open(http, [each]) for each in ids])


@limit("pkg.server.asgi.request.KEPT_HEADS", 5)
def stored_heads(amount: int) -> bool:
    heads = AcceptedHeads(Limits(), "json")
    requests = [request_with(accept=f"*/*;n={number}") for number in range(amount)]
    for each in requests:
        heads.accepts(each)
        heads.add(each)
    return all(heads.accepts(each) for each in requests)


@limit("pkg.server.asgi.request.KEPT_BYTES", 100)
def bytes_of_a_stored_head(amount: int) -> bool:
    heads, long = AcceptedHeads(Limits(), "json"), request_with(accept="*/*".ljust(amount - 8))
    heads.accepts(long)
    heads.add(long)
    return len(heads) == 1


def request_with(**fields: str) -> HttpRequest:
    """A POST with header fields."""
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": headers})


@limit("pkg.server.shared.bus.KEPT_CHANGES", 10)
async def changes(amount: int) -> bool:
    bus = MemoryBus()
    first = (await bus.changes(None)).cursor
    for number in range(amount):
        await bus.publish(b"%d" % number)
    return not (await bus.changes(first)).gap


@limit("pkg.server.shared.bus.LETTERS", 10)
async def letters(amount: int) -> bool:
    bus = MemoryBus()
    await bus.beat("worker")
    for number in range(amount):
        assert await bus.send("worker", b"%d" % number)
    return b"0" in await bus.receive("worker")


@limit("pkg.server.shared.bus.ALIVE_SECONDS", 2)
async def seconds_of_a_worker(amount: int) -> bool:
    bus = MemoryBus()
    await bus.beat("worker")
    await anyio.sleep(amount - 0.5)
    return await bus.send("worker", b"letter")


async def pages_of_tasks(server: Server, count: int) -> bool:
    """Whether the first page of a list of tasks has so many."""
    async with requestor("memory", server, "ada") as client:
        for _ in range(count):
            await client.start("quick")
        page = await client.result("tasks/list", {})
    return len(page["tasks"]) == count


@limit("pkg.server.toolkit.tasks.PAGE_SIZE", 3)
async def page_of_tasks(amount: int) -> bool:
    server = Server("tasks")
    server.tool("quick", runner=Tasks(server))(lambda: "")
    return await pages_of_tasks(server, amount)


@limit("pkg.server.auth.verifiers.STORED_TOKENS", 5)
def stored_tokens(amount: int) -> bool:
    cache = PrincipalCache(60)
    for number in range(amount):
        cache.add(str(number), None)
    return cache.get("0") is not None


@limit("pkg.server.toolkit.key_ring.KEPT_KEYS")
async def keys_after_a_rotation(amount: int) -> bool:
    ring = MemoryKeyRing(b"k" * 16)
    for number in range(amount - 1):
        await ring.rotate(bytes([number]) * 16)
    known = ring.keys()
    return b"k" * 16 in known


@limit("pkg.server.auth.dpop_validation.STORED_IDS", 3)
async def used_proofs(amount: int) -> bool:
    key = proof_key()
    token = token_of(cnf={"jkt": key.thumbprint()})
    proofs = [proof_of(key, token) for _ in range(amount)]
    async with asgi(Guarded().server, auth=protected_settings(dpop=DpopValidation())) as http:
        http.fields["authorization"] = f"DPoP {token}"
        hello = initialize(SESSIONS[-1])
        statuses = [(await http.post(hello, DPoP=each)).status for each in [*proofs, proofs[0]]]
    assert set(statuses[:-1]) == {200}
    return statuses[-1] == 401
