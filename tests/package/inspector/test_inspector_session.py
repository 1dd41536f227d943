"""The session behind the page of the inspector, and the page as an application, in memory."""

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi
from kit.live import FakeServer
from mcpgen_runtime import (
    REVISIONS,
    ConnectionClosedError,
    Csp,
    Limits,
    ProtocolError,
    RemoteError,
    Server,
    UiResource,
    connect,
)
from mcpgen_runtime.inspector import app_sandbox
from mcpgen_runtime.inspector.inspector_app import InspectorApplication
from mcpgen_runtime.inspector.inspector_session import (
    CAPABILITIES,
    ActionError,
    EventLog,
    InspectorSession,
)
from package.client.test_client_listen import Losing
from package.inspector.inspected import HOSTILE, SERVER
from package.tables import table

pytestmark = pytest.mark.processes

SECONDS = 10
REQUESTS: dict[str, dict[str, Any]] = table("inspector_requests")
"""Requests of the page, with the status and the field `Allow` of their responses."""
ENDS = [max(REVISIONS), min(REVISIONS)]


def make_server() -> Server:
    """The server that is inspected, in this process."""
    module: dict[str, Any] = {}
    exec(textwrap.dedent(SERVER), module)
    server: Server = module["server"]
    return server


class Inspected:
    """A session that runs, and its events."""

    def __init__(self, session: InspectorSession) -> None:
        self.session = session
        self._read = 0

    async def events(self, after: int = 0) -> list[dict[str, Any]]:
        """The events after a number, of which there are some now."""
        events: list[dict[str, Any]] = json.loads(await self.session.events.after(after, 0))
        return events

    async def event(self, kind: str, **members: Any) -> dict[str, Any]:
        """The next event of a kind with some members."""
        with anyio.fail_after(SECONDS):
            while True:
                data = await self.session.events.after(self._read, SECONDS)
                events: list[dict[str, Any]] = json.loads(data)
                for event in events:
                    self._read = event["number"]
                    if event["kind"] == kind and members.items() <= event.items():
                        return event

    async def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool, and return the text of its result."""
        params = {"name": name, "arguments": arguments}
        result = await self.session.act(
            "request", {"method": "call_tool", "params": params, "call": 1}
        )
        return result["content"][0]["text"]


def make_session(server: Server, revision: str | None) -> InspectorSession:
    """A session with a server in this process, to open in a revision."""

    def open_client(revision: str | None, handlers: Any) -> Any:
        return connect(
            server, revision=revision, handlers=handlers, capabilities=CAPABILITIES, cache=False
        )

    return InspectorSession(open_client, "demo:server", REVISIONS, revision)


@asynccontextmanager
async def inspect(revision: str | None = None) -> AsyncIterator[Inspected]:
    """Run a session with a server in this process, opened in a revision."""
    inspected = Inspected(make_session(make_server(), revision))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inspected.session.run)
        yield inspected
        tasks.cancel_scope.cancel()


async def test_events_are_numbered_and_kept_up_to_a_number() -> None:
    log = EventLog()
    for number in range(1, 2002):
        log.append("k", n=number)
    events = json.loads(await log.after(0, 0))
    assert events[0] == {"number": 2, "kind": "k", "n": 2}
    assert [event["number"] for event in events] == [*range(2, 2002)]
    assert [event["n"] for event in json.loads(await log.after(2000, 0))] == [2001]
    assert await log.after(2001, 0) == b"[]"


async def test_events_of_64_mib_are_kept() -> None:
    log = EventLog()
    for number in range(1, 65):
        others = len(f'{{"number":{number},"kind":"k","text":""}}')
        log.append("k", text="x" * (2**20 - others))
    assert (await log.after(0, 0)).startswith(b'[{"number":1,')
    log.append("k")
    assert (await log.after(0, 0)).startswith(b'[{"number":2,')


@pytest.mark.parametrize("closed", [False, True])
async def test_a_reader_waits_for_news_until_the_log_closes(closed: bool) -> None:
    log = EventLog()
    log.append("first")
    read: list[bytes] = []

    async def wait() -> None:
        read.append(await log.after(1, SECONDS))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert read == []
        if closed:
            log.close()
        else:
            log.append("second")
    assert read == [b"[]" if closed else b'[{"number":2,"kind":"second"}]']
    if closed:
        with anyio.fail_after(1):
            assert await log.after(1, SECONDS) == b"[]"


@pytest.mark.parametrize("revision", ENDS)
async def test_the_page_is_told_what_opened(revision: str) -> None:
    async with inspect(revision) as inspected:
        common = {"target": "demo:server", "revisions": [*reversed([*REVISIONS])]}
        state = {"number": 1, "kind": "state", "state": "connecting", "revision": revision}
        assert await inspected.event("state") == {**state, **common}
        opened = await inspected.event("state")
        assert common.items() <= opened.items()
        assert (opened["state"], opened["revision"]) == ("open", revision)
        assert opened["server"]["name"] == "demo"
        assert opened["capabilities"]["tools"] == {"listChanged": True}
        assert opened["instructions"] == HOSTILE
        methods = {
            event["message"].get("method")
            for event in await inspected.events()
            if event["kind"] == "wire" and event["direction"] == "sent"
        }
        assert {"initialize", "server/discover"} & methods


@pytest.mark.parametrize("revision", ENDS)
async def test_a_question_waits_for_the_answer_of_the_user(revision: str) -> None:
    texts: list[str] = []

    async def call() -> None:
        try:
            texts.append(await inspected.call("poem"))
        except ProtocolError as error:  # the revision asks in the result of the call
            texts.append(f"{error} {error.code}")

    async with inspect(revision) as inspected:
        await inspected.event("state", state="open")
        text = {"type": "text", "text": "roses"}
        for result in ({"role": "assistant", "content": text, "model": "me"}, None):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                question = await inspected.event("question")
                assert question["method"] == "sampling/createMessage"
                assert question["params"]["maxTokens"] == 9
                answer = {"id": question["id"], "result": result}
                await inspected.session.act("answer", answer)
                await inspected.event("answered", id=question["id"])
            with pytest.raises(ActionError, match="the question was answered or withdrawn"):
                await inspected.session.act("answer", answer)
        assert texts[0] == "roses"
        assert "the user refused" in texts[1]
        assert " -1" in texts[1] or revision != max(REVISIONS)


NO_SESSION = "there is no session: connect again"
METHODS = (
    "request: expected one of list_tools, list_resources, list_resource_templates, list_prompts,"
    " call_tool, read_resource, get_prompt, complete with an object, got "
)


@pytest.mark.parametrize(
    ("name", "members", "error"),
    [
        (
            "x",
            {},
            "expected one of request, app, answer, connect, follow, unfollow, log_level",
        ),
        ("request", {}, "request: 'method'"),
        ("request", {"method": "list_tools"}, "request: 'call'"),
        ("app", {"tool": "gone"}, "app: 'gone'"),
        ("follow", {}, "follow: 'uri'"),
        ("log_level", {}, "log_level: 'level'"),
        ("request", {"method": "close", "params": {}, "call": 1}, f"{METHODS}'close'"),
        ("request", {"method": "list_tools", "params": [], "call": 1}, f"{METHODS}'list_tools'"),
    ],
)
async def test_an_action_that_lacks_something_says_what(
    name: str, members: Mapping[str, Any], error: str
) -> None:
    async with inspect() as inspected:
        await inspected.event("state", state="open")
        with pytest.raises(ActionError) as caught:
            await inspected.session.act(name, members)
        assert str(caught.value).startswith(error)


@pytest.mark.parametrize("revision", ENDS)
async def test_another_session_has_the_level_of_logs_that_was_set_for_it(revision: str) -> None:
    async with inspect(revision) as inspected:
        await inspected.event("state", state="open")
        await inspected.session.act("connect", {"revision": revision})
        states = [(await inspected.event("state"))["state"] for _ in range(3)]
        assert states == ["closed", "connecting", "open"]
        await inspected.session.act("log_level", {"level": "info"})
        place = {"city": "Oslo", "tags": []}
        assert (
            await inspected.call("forecast", place=place) == "Place(city='Oslo', tags=[]) metric 3"
        )
        logged = [
            event["message"]["params"]["data"]
            for event in await inspected.events()
            if (event["kind"], event.get("direction")) == ("wire", "received")
            and event.get("message", {}).get("method") == "notifications/message"
        ]
    assert logged == ["forecast of Oslo"]


@pytest.mark.parametrize("revision", ENDS)
async def test_changes_of_lists_and_followed_resources_are_events(revision: str) -> None:
    async with inspect(revision) as inspected:
        session = inspected.session
        await inspected.event("state", state="open")
        await anyio.wait_all_tasks_blocked()
        await inspected.call("grow")
        assert (await inspected.event("changed"))["lists"] == ["tools"]
        uri = {"uri": "weather://Oslo/today"}
        for _ in range(2):
            await session.act("follow", uri)
        await inspected.call("rain")
        assert (await inspected.event("updated"))["uri"] == uri["uri"]
        for _ in range(2):
            await session.act("unfollow", uri)
        await anyio.wait_all_tasks_blocked()
        await inspected.call("rain")
        await session.act("follow", uri)
        await inspected.call("rain")
        await inspected.event("updated")
        await anyio.wait_all_tasks_blocked()
        updates = [event for event in await inspected.events() if event["kind"] == "updated"]
        assert len(updates) == 2


async def test_a_failed_opening_is_told_and_another_can_be_asked_for() -> None:
    def fail(revision: str | None, handlers: Any) -> Any:
        raise ValueError(f"no server \ud800 in {revision}")

    session = InspectorSession(fail, "demo:server", ["1", "2"], "1")
    inspected = Inspected(session)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        assert (await inspected.event("state", state="failed"))["error"] == "no server ? in 1"
        for name, members in (
            ("request", {"method": "list_tools", "call": 1}),
            ("follow", {"uri": "a:b"}),
            ("log_level", {"level": "info"}),
        ):
            with pytest.raises(ActionError) as caught:
                await session.act(name, members)
            assert str(caught.value) == NO_SESSION
        for chosen, revision in (({"revision": 2}, "2"), ({}, None)):
            await session.act("connect", chosen)
            assert (await inspected.event("state"))["revision"] == revision
            assert (await inspected.event("state"))["error"] == f"no server ? in {revision}"
        assert len(await inspected.events()) == 6
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def inspect_fake(fake: FakeServer) -> AsyncIterator[Inspected]:
    """Run a session with a server that says what it is told to."""
    session = InspectorSession(
        lambda revision, handlers: connect(fake, handlers=handlers, cache=False), "f", [], None
    )
    inspected = Inspected(session)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        await inspected.event("state", state="open")
        yield inspected
        tasks.cancel_scope.cancel()


async def test_a_request_of_a_lost_connection_ends_the_session() -> None:
    fake = FakeServer(max(REVISIONS), {"tools": {}})
    async with inspect_fake(fake) as inspected:
        await fake.hang_up()
        with pytest.raises(ConnectionClosedError):
            await inspected.session.act("request", {"method": "list_tools", "call": 1})
        await inspected.event("state", state="closed")
    changing = Losing(max(REVISIONS))
    async with inspect_fake(changing) as inspected:
        await changing.agree()
        await changing.hang_up()  # which the subscription sees
        await inspected.event("state", state="closed")


async def test_the_user_is_told_of_changes_that_are_not_shown() -> None:
    fake, refusal = Losing(max(REVISIONS)), RemoteError(-32000, "not today")

    async def refuse() -> None:
        error = {"code": -32000, "message": "not today"}
        await fake.say({"jsonrpc": "2.0", "id": (await fake.take())["id"], "error": error})

    async with inspect_fake(fake) as inspected:
        await refuse()
        notice = (await inspected.event("notice"))["text"]
        assert notice == "changes are not shown: subscriptions/listen: not today (code -32000)"
        for begin in (refuse, fake.agree):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(begin)
                with pytest.raises(RemoteError) if begin == refuse else nullcontext():
                    await inspected.session.act("follow", {"uri": "a:b"})
        await fake.lose(refusal)
        assert (await inspected.event("notice"))["text"] == f"a:b: {refusal}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fake.agree)
            await inspected.session.act("follow", {"uri": "a:b"})


@asynccontextmanager
async def open_page(revision: str | None = None) -> AsyncIterator[tuple[Http, Inspected]]:
    """The page of an inspector, called in this process with its token in the header field."""
    session = make_session(make_server(), revision)
    app, inspected = InspectorApplication(session), Inspected(session)
    await app.start()
    try:
        await inspected.event("state", state="open")
        async with asgi(app, path=app.endpoint_path, lifespan=False) as http:
            token = app.endpoint_path.removeprefix("/?token=")
            http.fields["authorization"] = f"Bearer {token}"
            yield http, inspected
    finally:
        await app.end()


async def test_the_session_of_an_application_ends_with_it() -> None:
    closed: list[bool] = []
    async with open_page() as (_, inspected):
        closed.append(inspected.session.events.closed)
    closed.append(inspected.session.events.closed)
    assert closed == [False, True]
    with pytest.raises(ActionError, match=NO_SESSION):
        await inspected.call("rain")
    await InspectorApplication(make_session(make_server(), None)).end()  # though never started


async def test_an_application_that_drains_ends_all_waits_for_events() -> None:
    async with open_page() as (http, inspected):
        await anyio.wait_all_tasks_blocked()
        last = (await inspected.events())[-1]["number"]
        async with http.stream("GET", path=f"/events?after={last}", begun=False) as stream:
            await anyio.wait_all_tasks_blocked()
            assert stream.status == 0
            app: Any = http.app
            app.start_drain()
            await stream.end()
            assert stream.raw == b"[]"


async def test_the_page_is_sent_with_a_policy_for_its_own_code() -> None:
    async with open_page() as (http, _):
        reply = await http.get()
        assert reply.status == 200
        policy = reply.fields.pop("content-security-policy")
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert len(nonce) == 24
        assert reply.body.count(f'nonce="{nonce}"'.encode()) == 2
        assert b"{{nonce}}" not in reply.body
        assert "frame-src http://localhost:8000;" in policy
        assert reply.fields == {
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "content-type": "text/html; charset=utf-8",
            "content-length": f"{len(reply.body)}",
        }


@pytest.mark.parametrize("row", REQUESTS.values(), ids=REQUESTS)
async def test_only_requests_of_the_page_are_served(row: dict[str, Any]) -> None:
    async with open_page() as (http, _):
        reply = await http.request(row["method"], None, row["path"], **row["fields"])
        assert (reply.status, reply.fields.get("allow")) == (row["status"], row["allowed"])


async def test_events_are_read_after_a_number() -> None:
    queries = ("", "?after=0", "?after=2", "?after=2&after=1", "?after=x", "?after=-1")
    async with open_page() as (http, inspected):
        inspected.session.events.close()
        replies = [await http.get(f"/events{query}") for query in queries]
        first = [json.loads(reply.body)[0]["number"] for reply in replies]
        assert first == [1, 1, 3, 3, 1, 1]
        assert {reply.fields["cache-control"] for reply in replies} == {"no-store"}
        for number, is_read in (("9" * 15, False), ("1" + "0" * 15, True)):
            reply = await http.get(f"/events?after={number}")
            assert bool(json.loads(reply.body)) is is_read


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"[]", {"text": "expected a JSON object"}),
        (b"{", {"text": "Input data was truncated"}),
        (
            b"[" * 100_000,
            {"text": "maximum recursion depth exceeded while deserializing an object"},
        ),
        (
            b'{"method": "read_resource", "params": {"uri": "weather://Nowhere"}, "call": 1}',
            {
                "text": "resources/read: resource not found: weather://Nowhere (code -32602)",
                "code": -32602,
                "data": {"uri": "weather://Nowhere"},
            },
        ),
    ],
    ids=["no object", "no JSON", "too deep", "refused"],
)
async def test_the_page_gets_errors_as_data(body: bytes, error: Mapping[str, Any]) -> None:
    async with open_page() as (http, _):
        reply = await http.post(body, "/actions/request")
        assert (reply.status, reply.fields["cache-control"]) == (200, "no-store")
        assert json.loads(reply.body) == {"error": error}


async def test_a_page_that_leaves_cancels_its_action() -> None:
    async with open_page(min(REVISIONS)) as (http, inspected):
        body = {"method": "call_tool", "params": {"name": "poem"}, "call": 1}
        async with http.stream("POST", body, "/actions/request", begun=False):
            question = await inspected.event("question")
        assert await inspected.event("answered", id=question["id"])


async def test_a_body_of_an_action_has_a_limit() -> None:
    async with open_page() as (http, _):
        parts = [b" " * 2**20] * (Limits().body // 2**20 + 2)
        async with http.stream("POST", path="/actions/request", parts=parts) as stream:
            assert (stream.status, stream.fields["connection"]) == (413, "close")


def test_the_oldest_sandboxes_are_forgotten() -> None:
    sandbox = app_sandbox.AppSandbox()
    paths = [sandbox.add(UiResource("ui://a", "")) for _ in range(app_sandbox.KEPT + 1)]
    assert sandbox.fields(paths[0], "http://a") is None
    policies = [(sandbox.fields(path, "http://a") or {}) for path in paths[1:]]
    own = f"{Csp().policy}; frame-ancestors http://a"
    assert {each["Content-Security-Policy"] for each in policies} == {own}
