"""Roots: where a client wants a server to work, asked, answered and changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.live import FakeServer, live, text_of
from kit.respondent import ROOTS, connect_respondent, refusal_code
from kit.rules import revisions_holding
from kit.wire import HANDSHAKE, PER_REQUEST, every, legacy, modern, text_in
from mcpgen_runtime import (
    ClientHandlers,
    Context,
    LocalProtocolError,
    MethodNotFoundError,
    RequestContext,
    Root,
    Server,
    connect,
)
from package.client.questioner import ask_client

ASK = "roots/list"
CHANGED = "notifications/roots/list_changed"


class Provider(ClientHandlers):
    """Gives these roots; `None` for a failure."""

    def __init__(self, *uris: str, **more: Any) -> None:
        self.roots: Any = [{"uri": uri, **more} for uri in uris]

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        if self.roots is None:
            raise LookupError("mine")
        return {"roots": self.roots}


def asking_server() -> Server:
    """A server whose tool lists the roots."""
    server = Server("asking")

    @server.tool()
    async def ask(ctx: Context) -> str:
        roots = await ctx.list_roots(key="where")
        return " ".join(f"{root.uri} {root.name}" for root in roots)

    return server


@pytest.mark.requirement(
    "roots.declare-capability-initialize",
    "roots.declare-capability-per-request",
    "roots.list-changed-flag",
)
@every
async def test_a_client_declares_that_it_has_roots(revision: str) -> None:
    provider = Provider("file:///a")
    assert (await ask_client(revision, ASK, None, provider)).declared["roots"] == {}
    nobody = await ask_client(revision, ASK, None, ClientHandlers(), {"sampling": {}})
    assert "roots" not in nobody.declared
    flag = {"roots": {"listChanged": True}}
    declared = (await ask_client(revision, ASK, None, provider, flag)).declared["roots"]
    assert declared == ({"listChanged": True} if revision in HANDSHAKE else {})
    if revision in PER_REQUEST:
        each_request = (await ask_client(revision, ASK, None, provider, flag)).declared_each()
        assert each_request == [{"roots": {}}] * 3


@pytest.mark.requirement("roots.result-shape", "roots.name-optional", "roots.meta-optional")
@every
async def test_roots_are_answered_by_uri_and_perhaps_name(revision: str) -> None:
    provider = Provider("file:///a", "FILE:///b%20c/d.txt")
    provider.roots[0]["name"] = "A"
    if revision in revisions_holding("roots.meta-optional"):
        provider.roots[0]["_meta"] = {"a": [1]}
    assert (await ask_client(revision, ASK, None, provider)).answer == {"roots": provider.roots}
    assert (await ask_client(revision, ASK, {}, Provider())).answer == {"roots": []}


@pytest.mark.requirement("roots.uri-file-scheme", "roots.validate-uris")
@every
@pytest.mark.parametrize(
    "uri",
    [
        "https://x",
        "file:/a",
        "file:///a/../../etc",
        "file:///a/%252e%252e/etc",
        "file:///a\\..\\etc",
        "file:///a%00b",
    ],
)
async def test_a_root_that_is_none_does_not_leave(revision: str, uri: str) -> None:
    outcome = await ask_client(revision, ASK, None, Provider("file:///good", uri))
    assert outcome.verdict == "kept back"


@pytest.mark.requirement(
    "roots.unsupported-error", "roots.internal-error", "roots.no-error-replay-2026"
)
@every
async def test_errors_of_a_client_are_answered_or_reach_the_caller(revision: str) -> None:
    broken = Provider()
    broken.roots = None
    failed = await ask_client(revision, ASK, None, broken)
    if revision in PER_REQUEST:
        assert isinstance(failed.raised, LookupError)
        assert len(failed.heard) == 1
    else:
        assert failed.code == -32603
        assert (await ask_client(revision, ASK, None, ClientHandlers())).code == -32601


FLAG: dict[str, Any] = {"roots": {"listChanged": True}}


@pytest.mark.requirement("roots.list-changed-flag", "roots.notify-on-change")
@legacy
@pytest.mark.parametrize("declared", [True, False])
async def test_changes_are_told_by_those_who_said_so(revision: str, declared: bool) -> None:
    server = FakeServer(revision)
    own: dict[str, Any] = {"handlers": Provider("file:///a")}
    if declared:
        own["capabilities"] = FLAG
    async with connect(server, revision=revision, **own) as client:
        for tell in (client.roots_list_changed, lambda: client.notify(CHANGED)):
            if declared:
                await tell()
            else:
                with pytest.raises(LocalProtocolError, match=r"did not declare roots\.listCh"):
                    await tell()
    assert [message["method"] for message in server.heard] == [CHANGED] * (2 * declared)


@pytest.mark.requirement("roots.no-change-notification-2026")
@modern
async def test_a_revision_without_root_changes_has_no_method_for_them(revision: str) -> None:
    server = FakeServer(revision)
    own: dict[str, Any] = {"handlers": Provider("file:///a"), "capabilities": FLAG}
    async with connect(server, revision=revision, **own) as client:
        with pytest.raises(MethodNotFoundError):
            await client.notify(CHANGED)
    assert server.heard == []


@pytest.mark.requirement("roots.server-handles-changes", "roots.server-relists")
@legacy
async def test_a_server_asks_anew_after_a_change(revision: str) -> None:
    provider = Provider("file:///a")
    own: dict[str, Any] = {"handlers": provider, "capabilities": FLAG}
    async with live(asking_server(), revision, **own) as (client, _):
        assert text_of(await client.call_tool("ask")) == "file:///a None"
        provider.roots = [{"uri": "file:///b"}]
        await client.roots_list_changed()
        assert text_of(await client.call_tool("ask")) == "file:///b None"


def test_a_root_knows_what_lies_within(tmp_path: Path) -> None:
    root = Root(tmp_path.as_uri(), "Top")
    assert root.path == tmp_path
    assert Root((tmp_path / "a b").as_uri()).path == tmp_path / "a b"
    for inside in (tmp_path, tmp_path / "a", tmp_path / "a" / ".." / "b", str(tmp_path)):
        assert root.contains(inside)
    for outside in (tmp_path / ".." / "x", tmp_path.parent, f"{tmp_path}x", "relative"):
        assert not root.contains(outside)
    with pytest.raises(ValueError, match="file://"):
        _ = Root("https://x/a").path


@pytest.mark.requirement(
    "roots.list-request", "roots.list-via-mrtr", "roots.server-checks-capability"
)
@every
async def test_a_client_that_has_roots_is_asked_in_the_way_of_its_revision(revision: str) -> None:
    async with connect_respondent(asking_server(), revision, {ASK: ROOTS}) as client:
        assert text_in(await client.call("ask")) == "file:///top Top"
        assert client.asked == [(ASK, None)]
        questions = [round["inputRequests"] for round in client.rounds]
        assert questions == ([{"where": {"method": ASK}}] if revision in PER_REQUEST else [])
    async with connect_respondent(asking_server(), revision, {}, {"sampling": {}}) as client:
        answer = await client.call("ask")
        assert (client.asked, client.rounds) == ([], [])
    assert answer["error"]["code"] == refusal_code(revision)
    assert answer["error"]["data"] == {"requiredCapabilities": {"roots": {}}}
