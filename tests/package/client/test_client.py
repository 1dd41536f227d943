"""The client: how it opens a session, and the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import TEXT, App, FakeServer, live, names_back, text_of
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.client.async_client import Client, ClientHandlers, connect
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.client.client_settings import Identity
from mcpgen_runtime.client.connect import is_config_path
from mcpgen_runtime.client.opening import (
    explain_error,
    in_memory,
    new_peer,
    run_concurrently,
)
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    InvalidParamsError,
    LocalProtocolError,
    MethodNotFoundError,
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
    RevisionError,
    ServerStartError,
)
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.testing import connected

every = pytest.mark.parametrize("revision", ALL)
LISTED = {"ttlMs": 0, "cacheScope": "private"}


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


async def test_client_and_server_of_all_revisions_speak_the_newest() -> None:
    async with live(App(names_back)) as (client, _):
        assert client.revision == ALL[-1]


@every
async def test_a_pinned_revision_has_the_client_class_of_its_own(revision: str) -> None:
    async with live(App(names_back), revision) as (client, _):
        assert client.revision == revision
        folder = "r" + revision.replace("-", "_")
        assert type(client).__module__ == f"mcpgen_runtime.{folder}.client"


@pytest.mark.requirement(
    "stdio.modern-client-legacy-server-error", "stdio.probe-modern-only-client"
)
@pytest.mark.parametrize("pinned", ALL)
@pytest.mark.parametrize("spoken", ALL)
async def test_without_a_common_revision_the_error_names_the_spoken(
    pinned: str, spoken: str
) -> None:
    server = App(names_back, REVISIONS.only(spoken))
    if pinned == spoken:
        return
    with pytest.raises((RevisionError, RemoteError)) as refused:
        async with connect(server, revision=pinned):
            pytest.fail("they have nothing in common")
    if isinstance(refused.value, RevisionError):
        assert refused.value.supported == (pinned,)
        assert pinned in str(refused.value)


async def test_a_revision_that_the_package_lacks_is_refused_by_name() -> None:
    with pytest.raises(RevisionError, match="1999-01-01"):
        connect(FakeServer(ALL[-1]), revision="1999-01-01")


@pytest.mark.requirement(
    "stdio.probe-legacy-fallback", "stdio.probe-not-one-code", revisions=PER_REQUEST
)
@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, 1234, 0])
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_an_error_of_older_servers_leads_to_the_handshake(revision: str, code: int) -> None:
    class Older(FakeServer):
        async def _agree(self, message: Mapping[str, Any]) -> None:
            if message["method"] == "server/discover":
                error = {"code": code, "message": "what?"}
                await self.say({"jsonrpc": "2.0", "id": message["id"], "error": error})
            else:
                await super()._agree(message)

    server = Older(revision)
    async with connect(server) as client:
        assert client.revision == revision
    assert [said["method"] for said in server.opening[:2]] == ["server/discover", "initialize"]


class Modern(FakeServer):
    """A server that knows per-request revisions, if not the one that is asked for first."""

    def __init__(self, supported: list[str]) -> None:
        super().__init__(PER_REQUEST[-1])
        self.supported = supported

    async def _agree(self, message: Mapping[str, Any]) -> None:
        if len(self.opening) > 1:
            await super()._agree(message)
            return
        data = {"supported": self.supported, "requested": PER_REQUEST[-1]}
        code = facts(PER_REQUEST[-1]).errors.unsupported_revision
        error = {"code": code, "message": "unsupported", "data": data}
        await self.say({"jsonrpc": "2.0", "id": message["id"], "error": error})


@pytest.mark.requirement("stdio.probe-modern-error", revisions=PER_REQUEST)
async def test_a_modern_server_without_common_revision_ends_it() -> None:
    server = Modern(["2099-01-01"])
    with pytest.raises(RevisionError, match="2099-01-01") as refused:
        async with connect(server):
            pytest.fail("they have nothing in common")
    assert refused.value.offered == ("2099-01-01",)
    assert refused.value.supported == ALL
    assert [said["method"] for said in server.opening] == ["server/discover"]


@pytest.mark.parametrize("target", ["python server.py", b"python"])
async def test_a_command_has_to_be_a_list_of_words(target: Any) -> None:
    with pytest.raises(TypeError, match="list of words"):
        async with connect(target):
            pytest.fail("that is no command")


@every
async def test_negotiated_values_can_be_read(revision: str) -> None:
    server = Server("told", "3", instructions="be kind")
    server.tool("one")(lambda: "1")
    async with live(server, revision, name="teller", version="2") as (client, record):
        assert client.server_info["name"] == "told"
        assert client.instructions == "be kind"
        assert client.supports("tools")
        assert client.supports("tools.listChanged")
        assert not client.supports("prompts")
        assert client.server_capabilities["tools"] == {"listChanged": True}
        assert client.session.revision is REVISIONS[revision]
    assert "teller" in str(record.sent[0])


@every
async def test_methods_absent_from_the_revision_are_not_sent(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server) as client:
        missing = "ping" if revision in PER_REQUEST else "server/discover"
        with pytest.raises(MethodNotFoundError):
            await client.request(missing)
        with pytest.raises(InvalidParamsError, match="nothing_of_the_kind"):
            await client._requests.call("tools/list", {"nothing_of_the_kind": 1}, None, None, None)
        with pytest.raises(MethodNotFoundError):
            await client._requests.pages("tools/call", {}, None, None)
        with pytest.raises(MethodNotFoundError):
            await client.notify("notifications/nothing_of_the_kind")
    assert server.heard == []


@every
async def test_a_capability_that_was_not_declared_keeps_a_request_back(revision: str) -> None:
    server = FakeServer(revision, {"tools": {}})
    async with connect(server, revision=revision) as client:
        with pytest.raises(Exception, match="needs the capability prompts"):
            await client.list_prompts()
    assert server.heard == []


def pages(server: FakeServer, cursors: list[str | None]) -> Callable[[], Any]:
    """A function that answers one request for a page after another, each with the next cursor."""

    async def answer() -> None:
        for number, cursor in enumerate(cursors):
            tool = {"name": f"tool{number}", "inputSchema": {"type": "object"}}
            more = {} if cursor is None else {"nextCursor": cursor}
            await server.answer(await server.next(), {"tools": [tool], **more, **LISTED})

    return answer


@pytest.mark.requirement("pagination.empty-cursor-is-valid")
@every
async def test_a_list_is_followed_to_its_end_despite_an_empty_cursor(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(pages(server, ["a", "", "b", None]))
        tools = await client.list_tools()
    assert [tool.name for tool in tools] == ["tool0", "tool1", "tool2", "tool3"]
    sent = [message.get("params", {}).get("cursor", "none") for message in server.heard]
    assert sent == ["none", "a", "", "b"]


@every
async def test_one_page_can_be_had_by_its_cursor(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(pages(server, ["b"]))
        page = await client.list_tools_page("a")
    assert page.next_cursor == "b"
    assert server.heard[0]["params"]["cursor"] == "a"


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


URL = "https://user:secret@host:8/mcp?key=secret"
COMMAND = ["serve", "--token=secret", "x"]


@pytest.mark.parametrize(
    ("target", "more", "text"),
    [
        (URL, "", "opening with https://host:8/mcp: no answer within 5 s"),
        (COMMAND, "no probe", "opening with 'serve --token=*** x': no answer within 5 s; no probe"),
        (Server("x"), "no probe", "opening: no answer within 5 s; no probe"),
    ],
    ids=["url", "command", "server"],
)
def test_an_error_of_opening_names_its_target_without_secrets(
    target: Any, more: str, text: str
) -> None:
    error = explain_error(RequestTimeoutError("opening", 1.0), target, 5.0, more)
    assert str(error) == text


def test_other_errors_of_opening_have_further_text() -> None:
    ended, start = ConnectionClosedError("ended"), ServerStartError("serve", ["serve"], 3, ())
    assert explain_error(ended, COMMAND, 5.0, "") is ended
    assert str(explain_error(ended, COMMAND, 5.0, "no probe")) == "ended; no probe"
    text = "server 'serve' ended with exit code 3; no probe"
    assert str(explain_error(start, COMMAND, 5.0, "no probe")) == text


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
        async with connect(Ending(None), revision=revision):
            pytest.fail("it has ended")
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
        async with connect(Broken(None), revision=HANDSHAKE[-1]):
            pytest.fail("nothing was sent")
    assert (error.value is failure) is (raised is not ConnectionClosedError)


async def test_work_beside_a_cancelled_body_is_ended_first() -> None:
    steps, over = list[str](), anyio.Event()

    async def work() -> None:
        await over.wait()
        steps.append("worked")

    async def end() -> None:
        await anyio.lowlevel.checkpoint()
        steps.append("ended")

    with anyio.CancelScope() as scope:
        async with run_concurrently(work, end):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert steps == ["ended"]


async def test_a_server_that_returns_closes_its_channel() -> None:
    class Returning:
        async def serve(self, channel: Any) -> None:
            await channel.send(OutgoingMessage(b"last"))

    with anyio.fail_after(5):
        async with in_memory(Returning()) as channel:
            assert await channel.receive() == b"last"
            with pytest.raises(ConnectionClosedError):
                while True:
                    await channel.send(OutgoingMessage(b"x"))
                    await anyio.lowlevel.checkpoint()


def test_a_path_that_is_no_script_is_a_configuration() -> None:
    names = ("mcp.json", "server.py", "server.mjs", "server.js", "servers")
    paths = [is_config_path(Path(name)) for name in names]
    assert paths == [True, False, False, False, True]
    assert not is_config_path("mcp.json")


def application_of(
    handlers: Any = None, capabilities: Mapping[str, Any] | None = None
) -> ChosenApplication:
    """An application that describes itself."""
    info = {"name": "me", "version": "1", "future": 5}
    return ChosenApplication(handlers, Identity(info, capabilities or {}))


async def test_a_client_needs_an_open_session() -> None:
    application = application_of()
    peer = new_peer(FakeServer(ALL[-1]), REVISIONS, application)
    with pytest.raises(LocalProtocolError, match="nothing was agreed"):
        Client(peer, application)
    unopened = object.__new__(Client)
    with pytest.raises(AttributeError, match=r"^session$"):
        unopened.session  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize(
    ("info", "shown"),
    [
        ({"name": "a\x1b", "version": "2"}, r"a\x1b 2"),
        ({"name": "a", "version": ""}, "a"),
        ({"name": "", "version": ""}, "unnamed server"),
    ],
)
async def test_a_client_is_shown_with_its_server(info: dict[str, str], shown: str) -> None:
    class Named(FakeServer):
        async def answer(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> None:
            await super().answer(request, {**result, "serverInfo": info})

    async with connect(Named(HANDSHAKE[-1]), revision=HANDSHAKE[-1]) as client:
        assert repr(client) == f"<Client of {shown}, {HANDSHAKE[-1]} over Named>"


@pytest.mark.parametrize("revision", [HANDSHAKE[-1], PER_REQUEST[-1]])
def test_capabilities_are_those_of_handlers_and_of_the_user(revision: str) -> None:
    class Rooted(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": []}

    user = {"roots": {"listChanged": True}, "experimental": {"x": {"listChanged": 1}}}
    application = application_of(Rooted(), user)
    own = application.describe(REVISIONS[revision])
    assert application.describe(REVISIONS[revision]) is own
    roots = {"listChanged": True} if revision in HANDSHAKE else {}
    assert own.capabilities == {"roots": roots, "experimental": {"x": {"listChanged": 1}}}
    assert user["roots"] == {"listChanged": True}
    assert own.info == {"name": "me", "version": "1"}
    alone = application_of(Rooted()).describe(REVISIONS[revision])
    assert alone.capabilities == {"roots": {}}
    assert application_of().describe(REVISIONS[revision]).capabilities == {}


@pytest.mark.parametrize(
    ("identifiers", "own", "declared"),
    [
        ((), {}, {}),
        (("a.b/c",), {}, {"a.b/c": {}}),
        (("a.b/c", "a.b/d"), {"a.b/c": {"x": 1}}, {"a.b/c": {"x": 1}, "a.b/d": {}}),
    ],
)
def test_extensions_of_a_client_are_added_to_those_of_its_user(
    identifiers: tuple[str, ...], own: dict[str, Any], declared: dict[str, Any]
) -> None:
    application = application_of(capabilities={"extensions": own})
    application.declare_extensions(identifiers)
    capabilities = application.describe(REVISIONS[PER_REQUEST[-1]]).capabilities
    assert capabilities["extensions"] == declared


def test_malformed_extensions_of_a_user_are_refused_not_replaced() -> None:
    application = application_of(capabilities={"extensions": 5})
    application.declare_extensions(("a.b/c",))
    with pytest.raises(ValueError, match="expected an object, got 5"):
        application.describe(REVISIONS[PER_REQUEST[-1]])


async def test_a_request_without_a_handler_is_refused() -> None:
    method = REVISIONS[HANDSHAKE[-1]].server_requests["roots/list"]
    context: Any = SimpleNamespace(method=method, revision=REVISIONS[HANDSHAKE[-1]])
    for handlers in (None, ClientHandlers()):
        with pytest.raises(MethodNotFoundError, match="roots/list"):
            await application_of(handlers).handle(context)


async def test_an_extension_counts_if_both_sides_declare_it() -> None:
    server = {"tools": {}, "extensions": {"a.b/c": {"x": 1}, "a.b/d": {}}}
    revision = PER_REQUEST[-1]
    own: dict[str, Any] = {"extensions": {"a.b/c": {}, "a.b/e": {}}}
    target = FakeServer(revision, server)
    async with connect(target, revision=revision, capabilities=own) as client:
        names = ("a.b/c", "a.b/d", "a.b/e")
        assert [client.extension(name) for name in names] == [{"x": 1}, None, None]


async def test_a_notification_of_an_undeclared_capability_is_not_sent() -> None:
    server = FakeServer(HANDSHAKE[-1])
    changed = "notifications/roots/list_changed"
    async with connect(server, revision=HANDSHAKE[-1]) as client:
        with pytest.raises(LocalProtocolError, match=r"did not declare roots\.listChanged"):
            await client.notify(changed)
    assert server.heard == []
    own = {"roots": {"listChanged": True}}
    async with connect(server := FakeServer(HANDSHAKE[-1]), capabilities=own) as client:
        await client.notify(changed)
    assert [said["method"] for said in server.heard] == [changed]


async def test_an_await_of_what_is_entered_says_so() -> None:
    server = Server("awaited")
    opening: Any
    for call, opening in (("connect", connect(server)), ("connected", connected(server))):
        with pytest.raises(TypeError, match=rf"expected `async with {call}\(...\) as ...:`"):
            await opening
        async with opening:  # an error of its use is no end
            pass
