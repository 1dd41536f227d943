"""The client: how it opens a session, and the requests that it sends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import TEXT, App, FakeServer, expect_refusal, live, names_back, text_of
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, every, facts, legacy, opening_result
from mcpgen_runtime import (
    REVISIONS,
    AbsentMethodError,
    ConnectionClosedError,
    MethodNotFoundError,
    OutgoingMessage,
    RemoteError,
    ResponseLostError,
    RevisionError,
    Server,
    connect,
    connect_sync,
)
from mcpgen_runtime.testing import connected


@pytest.mark.requirement(
    "stdio.probe-discover", "stdio.probe-modern-result", "stdio.probe-legacy-fallback"
)
@every
async def test_a_client_finds_out_what_a_server_of_any_age_speaks(revision: str) -> None:
    async with live(App(names_back, REVISIONS.only(revision))) as (client, record):
        assert client.revision == revision
        assert text_of(await client.call_tool("x")) == "x"
    first = ["server/discover"]
    if revision in HANDSHAKE:
        first += ["initialize", "notifications/initialized"]
    methods = [message["method"] for message in record.sent]
    assert methods == [*first, "tools/call"]
    probe, *_ = record.sent
    version_key = facts(PER_REQUEST[-1]).meta.protocol_version
    assert probe["params"]["_meta"][version_key] == PER_REQUEST[-1]


@pytest.mark.requirement(
    "stdio.modern-client-legacy-server-error", "stdio.probe-modern-only-client"
)
@pytest.mark.parametrize(
    ("pinned", "spoken"), [(one, other) for one in ALL for other in ALL if one != other]
)
async def test_without_a_common_revision_the_error_names_the_pinned(
    pinned: str, spoken: str
) -> None:
    with pytest.raises((RevisionError, RemoteError)) as refused:
        await expect_refusal(connect(App(names_back, REVISIONS.only(spoken)), revision=pinned))
    if isinstance(refused.value, RevisionError):
        assert refused.value.supported == (pinned,)
        assert pinned in str(refused.value)


class Refusing(FakeServer):
    """A server that answers the probe by an error, or by nothing that makes sense."""

    def __init__(self, revision: str, **answer: Any) -> None:
        super().__init__(revision)
        self.probed = answer

    async def agree_to_open(self, message: Mapping[str, Any]) -> None:
        if message["method"] == "server/discover":
            await self.say({"jsonrpc": "2.0", "id": message["id"], **self.probed})
        else:
            await super().agree_to_open(message)


CODES = (-32601, -32602, -32600, -32000, -32003, 404, 1234, 0)
OF_OLDER_SERVERS: list[dict[str, Any]] = [
    *({"error": {"code": code, "message": "what?"}} for code in CODES),
    *({"error": {"message": "no code"}}, {"error": "no"}, {"result": {}}, {"result": None}, {}),
    {"result": opening_result(HANDSHAKE[-1])},
]


@pytest.mark.requirement(
    "stdio.probe-legacy-fallback", "stdio.probe-not-one-code", revisions=PER_REQUEST
)
@pytest.mark.requirement("versioning.fallback-any-code", revisions=PER_REQUEST)
@pytest.mark.requirement("seed-compat.code-32003", revisions=PER_REQUEST)
@pytest.mark.requirement("versioning.no-modern-in-initialize")
@pytest.mark.parametrize("answer", OF_OLDER_SERVERS, ids=repr)
@legacy
async def test_any_answer_of_an_older_server_leads_to_the_handshake(
    revision: str, answer: dict[str, Any]
) -> None:
    server = Refusing(revision, **answer)
    async with connect(server) as client:
        assert client.revision == revision
    assert [said["method"] for said in server.opening[:2]] == ["server/discover", "initialize"]
    assert server.opening[1]["params"]["protocolVersion"] == HANDSHAKE[-1]


@pytest.mark.requirement("stdio.probe-modern-error", revisions=PER_REQUEST)
async def test_a_modern_server_without_common_revision_ends_it() -> None:
    code = facts(PER_REQUEST[-1]).errors.unsupported_revision
    data = {"supported": ["2099-01-01"], "requested": PER_REQUEST[-1]}
    error = {"code": code, "message": "unsupported", "data": data}
    server = Refusing(PER_REQUEST[-1], error=error)
    with pytest.raises(RevisionError, match="2099-01-01") as refused:
        await expect_refusal(connect(server))
    assert refused.value.offered == ("2099-01-01",)
    assert refused.value.supported == ALL
    assert [said["method"] for said in server.opening] == ["server/discover"]


@every
async def test_a_gateway_sends_by_wire_name_and_keeps_unknown_members(revision: str) -> None:
    server = FakeServer(revision)
    params = {"name": "x", "arguments": {"a": 1.0, "b": {}}, "future": [1, None], "_meta": {"k": 1}}
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def answer() -> None:
            await server.answer(await server.next(), TEXT)

        tasks.start_soon(answer)
        assert text_of(await client.request("tools/call", params)) == "done"
    sent = server.heard[0]["params"]
    assert sent["_meta"]["k"] == 1
    assert {name: sent[name] for name in params if name != "_meta"} == {
        name: value for name, value in params.items() if name != "_meta"
    }
    assert type(sent["arguments"]["a"]) is float


@pytest.mark.parametrize(
    ("revision", "advised"), [(None, True), (HANDSHAKE[-1], False), (PER_REQUEST[-1], False)]
)
async def test_a_server_that_ends_after_the_probe_is_explained(
    revision: str | None, advised: bool
) -> None:
    class Ending(FakeServer):
        async def send(self, message: OutgoingMessage) -> None:
            await self.hang_up()

    with pytest.raises(ConnectionClosedError) as ended:
        await expect_refusal(connect(Ending(None), revision=revision))
    assert ("leaves out the probe" in str(ended.value)) is advised


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (ValueError("broken"), ValueError),
        (ConnectionClosedError("broken"), ConnectionClosedError),
        (ResponseLostError("broken"), ResponseLostError),
    ],
    ids=repr,
)
async def test_a_message_of_opening_that_cannot_be_sent_fails_it(
    failure: Exception, raised: type[Exception]
) -> None:
    class Broken(FakeServer):
        async def send(self, message: OutgoingMessage) -> None:
            if isinstance(failure, ConnectionClosedError):
                await self.hang_up()
            raise failure

    with anyio.fail_after(5), pytest.raises(raised) as error:
        await expect_refusal(connect(Broken(None), revision=HANDSHAKE[-1]))
    assert (error.value is failure) is (raised is not ConnectionClosedError)


async def test_an_await_of_what_is_entered_says_so() -> None:
    server = Server("awaited")
    opening: Any
    for call, opening in (("connect", connect(server)), ("connected", connected(server))):
        with pytest.raises(TypeError, match=rf"expected `async with {call}\(...\) as ...:`"):
            await opening
        async with opening:  # an error of its use is no end
            pass


FAILURES: list[Callable[[], BaseException]] = [
    lambda: ValueError("mine"),
    lambda: ExceptionGroup("mine", [ValueError("inner")]),
    lambda: KeyboardInterrupt("mine"),
    lambda: SystemExit(3),
    lambda: BaseExceptionGroup("mine", [KeyboardInterrupt()]),
    lambda: StopAsyncIteration("mine"),
    lambda: ConnectionClosedError("mine"),
]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("target", ["server", "channel"])
async def test_errors_of_the_body_propagate_unchanged(
    failure: Callable[[], BaseException], target: str
) -> None:
    raised = failure()
    server: Any = Server("any") if target == "server" else FakeServer(ALL[-1])
    with pytest.raises(type(raised)) as caught:
        async with connect(server):
            raise raised
    assert caught.value is raised


@pytest.mark.parametrize("target", ["server", "channel"])
async def test_a_body_that_is_cancelled_is_just_cancelled(target: str) -> None:
    server: Any = Server("any") if target == "server" else FakeServer(ALL[-1])
    with anyio.CancelScope() as scope:
        async with connect(server) as client:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            pytest.fail("it was cancelled")
    assert scope.cancelled_caught
    with pytest.raises(ConnectionClosedError):
        await client.list_tools()


async def test_nothing_can_be_done_with_a_client_that_was_closed() -> None:
    async with connect(Server("any")) as client:
        async with anyio.create_task_group() as tasks:  # another task may close it
            tasks.start_soon(client.close)
        await client.close()
        for call in (
            client.list_tools(),
            client.list_tools_page(),
            client.call_tool("any"),
            client.request("tools/list"),
            client.request_raw("tools/list"),
            client.notify("notifications/progress", {"progressToken": 1, "progress": 1}),
            client.listen(tools=True).__aenter__(),
        ):
            with pytest.raises(ConnectionClosedError, match="the connection is closed"):
                await call


@pytest.mark.parametrize("when", ["before", "during", "after", "after, and the body fails"])
async def test_a_server_in_memory_that_crashes_gives_its_own_error(when: str) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if when == "before":
            raise LookupError("no database")
        yield
        if when.startswith("after"):
            raise LookupError("no database")

    class Crashing(Server):
        async def serve(self, channel: Any) -> None:
            if when == "during":
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(super().serve, channel)
                    await crash.wait()
                    tasks.cancel_scope.cancel()
                raise LookupError("no database")
            await super().serve(channel)

    crash = anyio.Event()
    mine = when == "after, and the body fails"
    raised = (ValueError, "mine") if mine else (LookupError, "no database")
    with anyio.fail_after(10), pytest.raises(raised[0], match=raised[1]):
        async with connect(Crashing("any", lifespan=lifespan)) as client:
            if mine:
                raise ValueError("mine")
            if when == "during":
                crash.set()
                await anyio.wait_all_tasks_blocked()
                await client.request("tools/list")


@every
async def test_a_pinned_client_is_of_its_own_class_and_sends_no_other_methods(
    revision: str,
) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision, name="teller", version="2") as client:
        folder = "r" + revision.replace("-", "_")
        assert type(client).__module__ == f"mcpgen_runtime.{folder}.client"
        assert client.session.revision is REVISIONS[revision]
        assert client.supports("tools.listChanged")
        assert not client.supports("tools.nonsense")
        missing = "ping" if revision in PER_REQUEST else "server/discover"
        with pytest.raises(MethodNotFoundError):
            await client.request(missing)
        with pytest.raises(MethodNotFoundError):
            await client.notify("notifications/nothing_of_the_kind")
    assert server.heard == []
    assert "teller" in str(server.opening)


pytestmark = pytest.mark.on_asyncio

NEWEST, OLDEST = ALL[-1], ALL[0]
HANDSHAKES = ", ".join(ALL[:-1])


def absent_attribute(client: object, name: str) -> Any:
    """An attribute that type checkers would refuse."""
    return getattr(client, name)


ABSENT = [
    (NEWEST, "set_level", ("info",), "logging/setLevel", "client.ask_for_logs(level)"),
    (NEWEST, "subscribe", ("memo://one",), "resources/subscribe", "client.listen(uris=[...])"),
    (NEWEST, "ping", (), "ping", "client.discover()"),
    (OLDEST, "discover", (), "server/discover", "client.server_capabilities"),
]


@pytest.mark.parametrize(("revision", "name", "arguments", "method", "instead"), ABSENT)
async def test_a_missing_message_names_what_to_use_instead(
    revision: str, name: str, arguments: tuple[Any, ...], method: str, instead: str
) -> None:
    async with connect(Server("s"), revision=revision) as narrow:
        with pytest.raises(AttributeError) as missing:
            absent_attribute(narrow, name)
        assert not hasattr(narrow, name)
    handshake = "handshake" if revision != NEWEST else None
    async with connect(Server("s"), revision=handshake) as wide:
        assert wide.revision == (NEWEST if revision == NEWEST else ALL[-2])
        with pytest.raises(MethodNotFoundError) as refused:
            await getattr(wide, name)(*arguments)
    for error, spoken in ((missing.value, revision), (refused.value, wide.revision)):
        assert isinstance(error, AbsentMethodError)
        assert error.method == method
        assert str(error).startswith(f"{spoken} has no ")
        assert instead in str(error)
        others = HANDSHAKES if revision == NEWEST else NEWEST
        assert str(error).endswith(f"; it is in {others}")


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("initialize", r"connect\(\), which has sent it; client\.server_info has the answer"),
        ("initialized", r"connect\(\), which has sent it"),
        ("cancelled", "cancel the task that waits for the request"),
    ],
)
async def test_messages_that_a_client_sends_itself_are_no_methods(
    revision: str, name: str, instead: str
) -> None:
    async with connect(Server("s"), revision=revision) as client:
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use .*{instead}"):
            absent_attribute(client, name)


async def test_a_missing_message_names_the_revisions_that_have_it() -> None:
    async with connect(Server("s"), revision="2025-06-18") as client:
        text = r"^2025-06-18 has no list_tasks\(\) \(tasks/list\); it is in 2025-11-25$"
        with pytest.raises(AbsentMethodError, match=text):
            absent_attribute(client, "list_tasks")
        with pytest.raises(AttributeError, match="object has no attribute 'call_tol'") as info:
            absent_attribute(client, "call_tol")
        assert (type(info.value), info.value.obj) == (AttributeError, client)
        with pytest.raises(MethodNotFoundError, match=r"^2025-06-18 has no request tasks/list$"):
            await client.request("tasks/list")
    with (
        connect_sync(Server("s"), revision=NEWEST) as blocking,
        pytest.raises(AbsentMethodError, match="ask_for_logs"),
    ):
        absent_attribute(blocking, "set_level")


async def test_a_revision_that_nobody_knows_is_not_the_offer_of_a_peer() -> None:
    with pytest.raises(RevisionError) as info:
        connect(Server("s"), revision="2020-01-01")
    assert str(info.value) == f"unknown revision '2020-01-01'; this side speaks {', '.join(ALL)}"
    assert (info.value.supported, info.value.offered) == (tuple(REVISIONS), ())
