"""HTTP requests of a client: header fields, redirects, refusals, and servers out of reach."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import anyio
import httpx2
import pytest

from kit.cached import cacheable_result, names
from kit.http_script import (
    Script,
    connect_scripted,
    fail_to_open,
    result,
    says,
    stay_silent,
    stream_events,
)
from kit.http_server import Asked, Handler, HttpServer, Reply, unused_port
from kit.rules import revision_fixture, revisions_holding
from kit.simulation import URL, MemoryReply, StreamResponse, reach, simulate
from kit.wire import ONE_OF_EACH, PER_REQUEST, SESSIONS, STREAMABLE
from mcpgen_runtime import (
    ConnectFailedError,
    HttpStatusError,
    HttpTimeouts,
    LocalProtocolError,
    McpError,
    MissingExtraError,
    RequestTimeoutError,
    ResponseLostError,
    Server,
    Timeouts,
    connect,
)
from package.tables import table

pytestmark = pytest.mark.processes

NEWEST = STREAMABLE[-1]

revision = revision_fixture(STREAMABLE)


async def connection_error(url: str, **how: Any) -> McpError:
    """The error by which `connect` fails."""
    with anyio.fail_after(20), pytest.raises(McpError) as caught:
        await fail_to_open(url, **how)
    return caught.value


async def test_fields_of_the_user_are_on_every_request(revision: str) -> None:
    headers = {"Authorization": "Bearer x", "X-Own": "a"}
    async with connect_scripted(Script(revision, "s"), headers=headers) as (client, server):
        await client.list_tools()
    assert {asked.fields["authorization"] for asked in server.asked} == {"Bearer x"}
    assert {asked.fields["x-own"] for asked in server.asked} == {"a"}


async def test_fields_of_the_protocol_go_first(revision: str) -> None:
    headers = {"accept": "text/plain", "MCP-PROTOCOL-VERSION": "x", "content-type": "text/plain"}
    async with connect_scripted(Script(revision), headers=headers) as (client, server):
        await client.list_tools()
    (asked,) = server.of("tools/list")
    assert "application/json" in asked.fields["accept"]
    assert asked.fields["content-type"] == "application/json"
    if revision in PER_REQUEST:
        assert asked.fields["mcp-protocol-version"] == revision
    names = [name.lower() for name, _ in asked.pairs]
    assert len(names) == len(set(names))


async def test_errors_of_the_headers_function_propagate_unchanged(revision: str) -> None:
    broken = False

    def make() -> dict[str, str]:
        if broken:
            raise KeyError("no token")
        return {}

    async with connect_scripted(Script(revision), headers=make) as (client, _):
        broken = True
        with pytest.raises(KeyError, match="no token"):
            await client.list_tools()
        broken = False
        await client.list_tools()
        broken = True
    with pytest.raises(KeyError, match="no token"):
        await fail_to_open(Script(revision), headers=make)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Own", "a\r\nX-Evil: 1"),
        ("X-Own", "\u4e16"),
        ("X-Own", "a\0"),
        ("X Own", "a b"),
        ("", "a"),
    ],
)
async def test_a_field_that_cannot_be_sent_is_refused(name: str, value: str) -> None:
    with pytest.raises(LocalProtocolError, match="headers: a header field can't be sent"):
        await fail_to_open(Script(NEWEST), headers={name: value})


async def test_an_authentication_of_httpx2_is_asked_each_time(revision: str) -> None:
    class Signing(httpx2.Auth):
        def auth_flow(
            self, request: httpx2.Request
        ) -> Generator[httpx2.Request, httpx2.Response, None]:
            request.headers["X-Signed"] = "yes"
            yield request

    async with connect_scripted(Script(revision, "s"), auth=Signing()) as (client, server):
        await client.list_tools()
    assert {asked.fields["x-signed"] for asked in server.asked} == {"yes"}


async def test_an_application_of_this_process_can_be_the_server(revision: str) -> None:
    server = Server("app")
    server.tool("called")(lambda: "called")
    app = server.asgi(stateless=True)
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as own,
        connect("http://127.0.0.1/mcp", http_client=own, revision=revision) as client,
    ):
        assert names(await client.list_tools()) == ["called"]
    await app.end()


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed(revision: str, status: int) -> None:
    script = Script(revision, "s")

    async def moved(asked: Asked, reply: Reply) -> None:
        if asked.target == "/mcp":
            await reply.whole(status, b"", Location="/mcp/")
        else:
            await script(asked, reply)

    async with HttpServer(moved) as server, connect(server.url, revision=revision) as client:
        await client.list_tools()
        await client.list_tools()
    targets = [asked.target for asked in server.of("tools/list")]
    assert targets[-1] == "/mcp/"
    assert targets.count("/mcp") == (2 if status == 307 else 0)
    assert len({asked.body for asked in server.of("tools/list")}) == 2


def refusal_of(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str] | None = None
) -> tuple[str, float]:
    """The error of a call that is refused, and the seconds until then."""

    async def main() -> tuple[str, float]:
        async with connect(URL, revision=NEWEST, headers=headers or {}) as client:
            before = anyio.current_time()
            with pytest.raises(HttpStatusError) as caught:
                await client.call_tool("echo")
            return str(caught.value), anyio.current_time() - before

    reach(Script(NEWEST, once={"tools/call": [handler]}), monkeypatch)
    text, seconds = simulate("asyncio", 0, main)
    return " ".join(text.split()), seconds


@pytest.mark.parametrize(("status", "location", "shown"), table("client_urls")["redirects"])
def test_other_redirects_are_shown_without_what_is_secret(
    status: int, location: str, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = says(b"", status, Location=location)
    text, _ = refusal_of(refusal, monkeypatch, {"Authorization": "x"})
    where = "" if shown is None else f" (a redirect to {shown})"
    assert text == f"POST {URL} answered HTTP {status}{where}"


CHALLENGES = ", ".join(f'A{n} realm="r", error_description="reason {n}"' for n in (1, 1, 2, 3))
REASONS = "the server's reason: reason 1"
SIGN_IN = "auth=OAuth('Name of the client') signs in, auth='...' sends a token"
WERE_REFUSED = "the credentials of auth= or headers= were refused"


@pytest.mark.parametrize(
    ("status", "challenges", "headers", "advice"),
    [
        (401, None, {}, f"; {SIGN_IN}"),
        (401, None, {"AUTHORIZATION": "x"}, f"; {WERE_REFUSED}"),
        (401, 'A error="b"', {}, f"; the server's reason: b; {SIGN_IN}"),
        (401, CHALLENGES, {"X-Own": "x"}, f"; {REASONS}; {SIGN_IN}"),
        (403, CHALLENGES, {}, f"; {REASONS}"),
        (403, 'A realm="r"', {"Authorization": "x"}, ""),
        (402, CHALLENGES, {}, ""),
    ],
)
def test_a_refusal_has_the_reasons_of_the_server_and_advice(
    status: int,
    challenges: str | None,
    headers: dict[str, str],
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields = {} if challenges is None else {"WWW_Authenticate": challenges}
    text, _ = refusal_of(says(b"", status, **fields), monkeypatch, headers)
    assert text == f"POST {URL} answered HTTP {status}{advice}"


def test_a_reason_in_the_body_of_a_refusal_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    challenge = 'A error_description="expired", B error="other"'
    refusal = says(b"it is expired", 403, WWW_Authenticate=challenge)
    text, _ = refusal_of(refusal, monkeypatch)
    assert text.endswith(": it is expired; the server's reason: other")


def test_the_body_of_a_refusal_has_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(silent=True)
        reply.response.status = 500

    assert refusal_of(handler, monkeypatch)[1] == pytest.approx(5)


@pytest.mark.parametrize("revision", [None, *ONE_OF_EACH])
@pytest.mark.parametrize(("url", "reason"), table("client_urls")["unreachable"])
async def test_no_connection_is_a_readable_error_at_once(
    url: str, reason: str, revision: str | None
) -> None:
    with unused_port() as port:
        url = url.format(port=port)
        failure = await connection_error(url, revision=revision)
    assert isinstance(failure, ConnectFailedError)
    with pytest.raises(McpError, match=f"no connection .*{reason.format(url=url, port=port)}"):
        raise failure
    assert "secret" not in str(failure)
    assert "pw" not in str(failure)


async def test_a_server_without_tls_is_no_connection_in_time() -> None:
    async with HttpServer(stay_silent) as server:
        url = server.url.replace("http:", "https:")
        failure = await connection_error(url, timeouts=Timeouts(connect=0.2))
    assert isinstance(failure, ConnectFailedError)
    assert f"no connection to {url}: none within 0.2 s" in str(failure)


@pytest.mark.parametrize("handler", [stay_silent, stream_events(last=Reply.gone)])
@pytest.mark.parametrize("revision", [None, *STREAMABLE])
async def test_silence_says_where_without_what_is_secret(
    revision: str | None, handler: Handler
) -> None:
    async with HttpServer(handler) as server:
        url = server.url.replace("//", "//user:pw@") + "?key=secret"
        timeouts = Timeouts(probe=0.1, opening=0.3)
        failure = await connection_error(url, revision=revision, timeouts=timeouts)
        assert isinstance(failure, RequestTimeoutError)
        assert str(failure) == f"opening the session with {server.url}: no answer within 0.3 s"


async def test_an_unaccepted_ready_notification_fails_the_opening() -> None:
    script = Script(SESSIONS[-1], on={"notifications/initialized": stay_silent})
    timeouts = Timeouts(opening=5, http=HttpTimeouts(accept=0.2))
    with pytest.raises(ResponseLostError, match=r"/initialized was not accepted within 0\.2 s"):
        await fail_to_open(script, timeouts=timeouts)


@pytest.mark.parametrize("text", ["server.py", "ftp://host/", "localhost:80", b"http://host/"])
async def test_a_text_that_is_no_url_is_a_mistake(text: Any) -> None:
    with pytest.raises(TypeError, match=r"a command as a list of words.*; a URL that begins"):
        await fail_to_open(text)


@pytest.mark.parametrize(
    "option",
    [{"transport": "sse"}, {"headers": {}}, {"http_client": object()}, {"auth": ("a", "b")}],
)
async def test_options_for_http_are_refused_for_other_targets(option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="only for a URL"):
        await fail_to_open(["server"], **option)


async def test_the_library_that_is_missing_is_named(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "aiohttp" if anyio_backend == "asyncio" else "httpx2"
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"pip install {library}"):
        await fail_to_open("http://127.0.0.1/mcp")


WITH_SCOPES = revisions_holding("caching.private-not-shared")


def cached_for(revision: str, scope: str) -> Script:
    """A server whose list of tools, which may be kept, names the user who asks."""

    async def listing(asked: Asked, reply: Reply) -> None:
        tool = {"name": asked.fields["authorization"], "inputSchema": {"type": "object"}}
        lists = cacheable_result("tools/list", 60_000, scope, tools=[tool])
        await reply.json(result(asked, **lists))

    return Script(revision, on={"tools/list": listing})


@pytest.mark.requirement("caching.private-not-shared", "caching.private-same-authorization")
@pytest.mark.requirement("caching.public-shareable", "caching.public-crosses-authorization")
@pytest.mark.parametrize("revision", WITH_SCOPES)
@pytest.mark.parametrize(
    ("scope", "for_two"),
    [("private", "two"), ("public", "one")],
)
@pytest.mark.parametrize("how", ["mapping", "function", "coroutine function"])
async def test_results_are_kept_for_the_user_or_for_all(
    revision: str, scope: str, for_two: str, how: str
) -> None:
    user = {"Authorization": "one"}
    numbers = iter(range(100))

    def make() -> dict[str, str]:
        return {**user, "traceparent": str(next(numbers))}

    async def make_later() -> dict[str, str]:
        return make()

    headers = {"mapping": user, "function": make, "coroutine function": make_later}[how]
    async with connect_scripted(cached_for(revision, scope), headers=headers) as (client, server):
        for _ in range(3):
            assert names(await client.list_tools()) == ["one"]
        assert len(server.of("tools/list")) == 1
        user["Authorization"] = "two"
        for _ in range(3):
            assert names(await client.list_tools()) == [for_two]
        user["Authorization"] = "one"
        assert names(await client.list_tools()) == ["one"]
    assert scope == "private" or len(server.of("tools/list")) == 1


@pytest.mark.requirement("caching.private-not-shared")
@pytest.mark.parametrize("revision", WITH_SCOPES)
async def test_a_result_after_a_token_change_is_not_kept_for_others(revision: str) -> None:
    user = {"Authorization": "one"}
    script = cached_for(revision, "private")

    async def late(asked: Asked, reply: Reply) -> None:
        user["Authorization"] = "two"
        await client.call_tool("echo", {})
        user["Authorization"] = "one"
        await script.on["tools/list"](asked, reply)

    script.once["tools/list"] = [late]
    async with connect_scripted(script, headers=lambda: dict(user)) as (client, server):
        for _ in range(2):
            assert names(await client.list_tools()) == ["one"]
        assert len(server.of("tools/list")) == 2
