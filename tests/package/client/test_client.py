"""The client: how it opens a session, and the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest

from mcp_protocol.client.async_client import connect
from mcp_protocol.errors import InvalidParamsError, MethodNotFoundError, RemoteError, RevisionError
from mcp_protocol.revisions import REVISIONS
from mcp_protocol.server.toolkit.server import Server
from package.live import TEXT, App, FakeServer, live, names_back, text_of
from package.wire import ALL, HANDSHAKE, PER_REQUEST, facts

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
        assert type(client).__module__ == f"mcp_protocol.{folder}.client"


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
