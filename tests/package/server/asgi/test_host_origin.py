"""Validation of `Host` and `Origin` against the names that a server has."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from kit.asgi_client import Http, asgi, fields_of
from kit.asgi_stream import Reply
from kit.faults import refusals
from kit.rules import revisions_holding
from kit.web import Web
from kit.wire import PER_REQUEST, SESSIONS, request

pytestmark = pytest.mark.processes

EVIL = "http://evil.example"
STATELESS = PER_REQUEST[-1]


async def list_tools(http: Http, **fields: str | None) -> Reply:
    message = request(STATELESS, "tools/list")
    return await http.post(message, **fields_of(STATELESS, message), **fields)


def is_refused(reply: Reply, field: str, value: str) -> bool:
    """Whether a refusal says which field, what was in it, and which setting it takes."""
    text = reply.error["message"]
    setting = {"Host": "'hosts'", "Origin": "'origins'"}[field]
    assert "id" not in reply.json
    assert reply.error["code"] == -32600
    return reply.status == 403 and all(part in text for part in (field, value, setting))


@pytest.mark.requirement(
    "transport-security.validate-origin",
    "transport-security.origin-403",
    "transport-security.origin-403-body",
)
@pytest.mark.parametrize("revision", revisions_holding("transport-security.validate-origin"))
async def test_a_foreign_origin_is_refused_whatever_it_asks_for(revision: str) -> None:
    web = Web()
    async with asgi(web.server, sse_path="/sse") as http:
        if revision in SESSIONS:
            await http.initialize(revision)
        for method, path in (
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("DELETE", "/mcp"),
            ("GET", "/sse"),
            ("POST", "/messages?session_id=x"),
            ("GET", "/nowhere"),
        ):
            message = request(revision, "tools/call", {"name": "echo", "arguments": {"text": ""}})
            fields = fields_of(revision, message)
            reply = await http.request(method, message, path, **fields, origin=EVIL)
            assert is_refused(reply, "Origin", EVIL)
            reply = await http.request(method, message, path, **fields, host="evil.example")
            assert is_refused(reply, "Host", "evil.example")
    assert web.called == []


LOOPBACK, LAN, SIX = "127.0.0.1", "192.168.1.5", "::1"


@pytest.mark.parametrize(
    ("bound", "host", "served"),
    [
        (LOOPBACK, "LocalHost:9", True),
        (LOOPBACK, "192.168.1.5:8000", False),
        (LOOPBACK, "0.0.0.0:8000", False),
        (LOOPBACK, "", False),
        (LOOPBACK, None, False),
        (LOOPBACK, "[::FFFF:127.0.0.1]:80", True),
        (LOOPBACK, "[::ffff:192.168.1.5]", False),
        (LOOPBACK, "localhost:000080", False),
        (LOOPBACK, "localhost\t", True),  # white space around a value is none of it
        ("fe80::5%eth0", "[fe80::5]:80", True),
        ("fe80::5%eth0", "[fe80::5%eth0]:80", False),
        ("fe80::5%eth0", "[fe80::6]:80", False),
        (LAN, "192.168.1.5:8000", True),
        (LAN, "localhost:8000", True),
        ("::ffff:192.168.1.5", "192.168.1.5:8000", True),
        (SIX, "[0:0:0:0:0:0:0:1]:8000", True),
        ("fd00::5", "[fd00::5]:8000", True),
        ("fd00::5", "[fd00::6]:8000", False),
        ("0.0.0.0", "localhost:8000", True),
        ("0.0.0.0", "0.0.0.0:8000", False),
        (None, "localhost", True),
        (None, "evil.example", False),
    ],
)
async def test_hosts_are_loopback_and_the_address_of_the_socket(
    bound: str | None, host: str | None, served: bool
) -> None:
    async with asgi(Web().server) as http:
        http.scope["server"] = None if bound is None else (bound, 8000)
        reply = await list_tools(http, host=host)
        assert (reply.status == 200) is served
        if not served:
            assert is_refused(reply, "Host", repr(host or "")[1:-1])
        origin = await list_tools(http, host="localhost", origin=f"http://{host}")
        assert (origin.status == 200) is served


PIECES = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    "::1",
    "evil.example",
    "user",
    "80",
    "65536",
    "0",
    "v1",
]
MARKS = [*".:@/?#[] ,-+\xb2x", "%25lo"]
LOCAL = re.compile(r"(?i)(localhost|127\.0\.0\.1|\[::1\])(:(?P<port>[0-9]{1,5}))?")


@given(st.lists(st.sampled_from(PIECES + MARKS), max_size=6).map("".join))
@example("[::1].evil.example:80")
@example("127.0.0.1@evil.example")
@example("localhost.evil.example")
@example("[[::1]]")
@example("[]")
@example("127.1")
@example("localhost:65536")
@example("localhost:\xb2")
@example("127.0.0.1.evil.example:8000")
async def test_no_text_but_a_name_of_loopback_and_a_port_is_a_host(host: str) -> None:
    def is_local(text: str) -> bool:
        match = LOCAL.fullmatch(text)
        return match is not None and int(match["port"] or 0) <= 65535

    async with asgi(Web().server, lifespan=False) as http:
        reply = await http.get("/nowhere", host=host)
        assert (reply.status == 404) is is_local(host.strip(" "))
        reply = await http.get("/nowhere", origin=f"http://{host}")
        assert (reply.status == 404) is is_local(host.rstrip(" "))


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "", "file://", "ftp://localhost", "localhost", "http://", "*", f"{EVIL}:80"),
        *("http:localhost", "http:///localhost", "http://localhost, http://localhost"),
    ],
)
async def test_origins_other_than_this_machine_are_refused(origin: str) -> None:
    async with asgi(Web().server) as http:
        assert is_refused(await list_tools(http, origin=origin), "Origin", origin)


@pytest.mark.parametrize(
    ("hosts", "host", "served"),
    [
        (["api.example"], "api.example", True),
        (["api.example"], "API.example:8443", True),
        (["api.example:8443"], "api.example:8443", True),
        (["api.example:8443"], "api.example", False),
        (["api.example"], "localhost", False),
        (["[fd00::5]"], "[fd00::5]:8000", True),
        (["fd00::5"], "[fd00:0::5]:8000", True),
        (["[fd00::5]"], "[fd00::5]evil.example", False),
        (["api.example"], "api.example.evil.example", False),
        (["api.example."], "api.example.:80", True),
        (["192.168.1.5"], "[::ffff:192.168.1.5]", True),
        (["*"], "anything", True),
        ([], "localhost", False),
    ],
)
async def test_hosts_can_be_listed_and_are_no_others_then(
    hosts: list[str], host: str, served: bool
) -> None:
    async with asgi(Web().server, hosts=hosts) as http:
        assert ((await list_tools(http, host=host)).status == 200) is served
        with_origin = await list_tools(http, host=host, origin=f"https://{host}")
        assert (with_origin.status == 200) is served


@pytest.mark.parametrize(
    ("origins", "origin", "served"),
    [
        (["https://app.example"], "https://app.example", True),
        (["https://app.example/"], "https://APP.example", True),
        (["https://app.example"], "http://app.example", False),
        (["https://app.example"], "https://app.example/", False),
        (["https://app.example"], "https://app.example, https://app.example", False),
        (["https://app.example"], "https://app.example:8443", False),
        (["vscode-webview://abc"], "vscode-webview://abc", True),
        (["*"], EVIL, True),
        (["null"], "null", True),
    ],
)
async def test_origins_can_be_listed_and_are_no_others_then(
    origins: list[str], origin: str, served: bool
) -> None:
    async with asgi(Web().server, origins=origins) as http:
        assert ((await list_tools(http, origin=origin)).status == 200) is served
        assert (await list_tools(http)).status == 200


async def test_a_request_that_passed_once_says_nothing_for_others() -> None:
    """Host, origin and address are remembered together, not each by itself."""
    async with asgi(Web().server) as http:
        assert (await list_tools(http, host="localhost", origin="http://localhost")).status == 200
        assert (await list_tools(http, host="localhost", origin=EVIL)).status == 403
        http.scope["server"] = (LAN, 8000)
        assert (await list_tools(http, host=LAN)).status == 200
        http.scope["server"] = (LOOPBACK, 8000)
        assert (await list_tools(http, host=LAN)).status == 403


def test_a_setting_that_could_never_fit_is_a_mistake(snapshot: SnapshotAssertion) -> None:
    wrong = (
        "https://api.example",
        "api.example/mcp",
        "a b",
        "",
        "api.example:99999",
        "[::1",
        "a@b",
    )
    options: list[Any] = [{"hosts": ["localhost", host]} for host in wrong]
    options += [{"hosts": "localhost"}, {"origins": "localhost"}]
    assert refusals(lambda each: Web().server.asgi(**each), options) == snapshot


@pytest.mark.parametrize("hosts", [None, ["localhost"]])
async def test_an_application_may_allow_hosts_unless_they_are_listed(
    hosts: list[str] | None,
) -> None:
    app = Web().server.asgi(hosts=hosts)
    app.allow_hosts(["My-Machine.local", "0.0.0.0", ""])
    async with asgi(app) as http:
        http.scope["server"] = ("0.0.0.0", 1)
        for host, served in (
            ("my-machine.local:8000", hosts is None),
            ("localhost", True),
            ("0.0.0.0:8000", False),
            ("", False),
        ):
            assert ((await list_tools(http, host=host)).status == 200) is served
