"""Ways to the user: the loopback callback, and pasting by hand."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
import webbrowser
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from anyio import from_thread, to_thread

from kit.auth_answers import REDIRECT_URI
from kit.cached import Clock
from kit.http_server import Asked, Reply
from kit.live import open_and_close
from kit.rules import revisions_holding
from kit.wire import SESSIONS
from mcpgen_runtime import (
    AuthorizationError,
    Device,
    HttpStatusError,
    Loopback,
    MemoryStore,
    OAuth,
    Paste,
    Redirect,
)
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import grant_key
from mcpgen_runtime.client.auth.interactions import PROMPT_SECONDS, PROMPTS, PromptLimit
from package.client.auth.protected import agreeing_user, client_of, run_issuer, run_protected_server
from package.client.auth.test_device_flow import DeviceIssuer
from requirements import EVERY_REVISION, requirement

URL = "https://as.example/authorize?a=1&b=$(id);`id`|x&state=s"


def get(uri: str, target: str, method: str = "GET") -> tuple[int, bytes, Any]:
    """The response of a callback address to a request."""
    connection = http.client.HTTPConnection(uri.split("/")[2], timeout=5)
    connection.request(method, target)
    response = connection.getresponse()
    result = response.status, response.read(), response.headers
    connection.close()
    return result


class Browser:
    """Opens a URL by asking targets of the callback address, in a thread."""

    def __init__(self, *targets: str) -> None:
        self.targets = targets
        self.opened: list[str] = []
        self.uri = ""
        self.answers: list[tuple[int, bytes, Any]] = []
        self.thread = threading.Thread(target=self._run)

    def __call__(self, url: str) -> bool:
        self.opened.append(url)
        self.thread.start()
        return True

    def _run(self) -> None:
        self.answers = [get(self.uri, target) for target in self.targets]


async def test_the_browser_gets_the_exact_url_and_returns_the_result() -> None:
    browser = Browser("/callback?code=c&state=s")
    async with Loopback(open_url=browser).open() as agent:
        browser.uri = agent.redirect_uri
        assert agent.redirect_uri.startswith("http://127.0.0.1:")
        assert await agent.visit(URL) == f"{agent.redirect_uri}?code=c&state=s"
        await to_thread.run_sync(browser.thread.join)
    assert browser.opened == [URL]
    ((status, page, headers),) = browser.answers
    assert status == 200
    assert b"code" not in page
    assert {name: value for name, value in headers.items() if name != "Date"} == {
        "Server": "callback",
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": f"{len(page)}",
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'",
        "Referrer-Policy": "no-referrer",
        "Connection": "close",
    }
    with pytest.raises(OSError):  # noqa: PT011 - refused, in the words of the system
        get(agent.redirect_uri, "/callback?code=again")


RECORDER = """#!{python}
import sys
with open({file!r}, "w") as file:
    file.write("\\n".join(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
@requirement(
    "auth-security.url-no-shell", "auth-security.url-platform-opener", revisions=EVERY_REVISION
)
async def test_a_url_is_one_argument_of_the_browser_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(RECORDER.format(python=sys.executable, file=f"{opened}"))
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser}")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # is read from the environment once
    monkeypatch.setattr(webbrowser, "_browsers", {})
    async with Loopback(timeout=0.01).open() as agent:
        with pytest.raises(AuthorizationError, match="within"):
            await agent.visit(URL)
    assert opened.read_text().splitlines() == [URL]


STRAY = (
    "/callback",
    "/callback?code=stolen",
    "/callback?code=stolen&state=",
    "/callback?code=stolen&state=other",
    "/callback?error=access_denied&state=other",
    "/callback?code=stolen&state=s&state=other",
    "/callback?state=%ff" + "&x=1" * 200,
)


@requirement("auth-flow.state-mismatch-discarded", revisions=EVERY_REVISION)
async def test_only_the_return_with_the_awaited_state_ends_the_wait() -> None:
    returns = "/callback?code=1&state=s", "/callback?code=2&state=s"
    browser = Browser("/favicon.ico", "/other?code=x&state=s", *STRAY, *returns)
    async with Loopback(open_url=browser).open() as agent:
        browser.uri = agent.redirect_uri
        assert (await agent.visit(URL)).endswith("?code=1&state=s")
        await to_thread.run_sync(browser.thread.join)
    statuses = [status for status, _, _ in browser.answers]
    assert statuses == [404, 404, *[400] * len(STRAY), 200, 400]
    page = browser.answers[3][1]
    assert b"not the response" in page
    assert b"stolen" not in page


@pytest.mark.parametrize(("method", "refused"), [("GET", 400), ("POST", 501)])
async def test_a_return_before_the_user_was_sent_away_is_refused(method: str, refused: int) -> None:
    async with Loopback().open() as agent:
        status, _, _ = await to_thread.run_sync(get, agent.redirect_uri, "/callback?code=1", method)
        assert status == refused


async def test_half_requests_to_the_callback_take_so_many_threads() -> None:
    async with Loopback().open() as agent, AsyncExitStack() as stack:
        port = int(agent.redirect_uri.split("/")[2].partition(":")[2])
        before = threading.active_count()
        for _ in range(3 * 16):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            half.sendall(b"GET /call")
        refused = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert await to_thread.run_sync(refused.recv, 1) == b""
        assert threading.active_count() <= before + 16 + 2


async def test_a_port_can_be_fixed_and_may_be_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AuthorizationError, match=f"port {port} of 127.0.0.1 is in use"):
            async with Loopback(port).open():
                pass
    async with Loopback(port, path="/back").open() as agent:
        assert agent.redirect_uri == f"http://127.0.0.1:{port}/back"


async def test_the_port_of_a_registration_is_reused_while_it_is_free() -> None:
    async with Loopback().open() as agent:
        registered = agent.redirect_uri
        async with Loopback().open([registered]) as other:
            assert other.redirect_uri != registered
    for uri in ("https://app.example/callback", "http://127.0.0.1:1/callback", registered):
        async with Loopback(path="/elsewhere").open([uri]) as agent:
            assert agent.redirect_uri.startswith("http://127.0.0.1:")
            assert agent.redirect_uri.endswith("/elsewhere")
            assert urlsplit(agent.redirect_uri).port != urlsplit(registered).port
    async with Loopback().open(["https://app.example/callback", registered]) as agent:
        assert agent.redirect_uri == registered


async def test_a_user_who_does_not_return_is_waited_for_in_bounds() -> None:
    async with Loopback(timeout=0.05, open_url=lambda url: True).open() as agent:
        with pytest.raises(AuthorizationError, match=r"within 0\.05 s"):
            await agent.visit(URL)


async def test_a_machine_without_a_browser_gets_an_error_with_a_way() -> None:
    async with Loopback(timeout=1, open_url=lambda url: False).open() as agent:
        with pytest.raises(AuthorizationError, match="`Paste`"):
            await agent.visit(URL)


async def test_a_cancelled_wait_closes_the_port() -> None:
    with anyio.CancelScope() as scope:
        async with Loopback(
            open_url=lambda url: from_thread.run_sync(scope.cancel)
        ).open() as agent:
            await agent.visit(URL)
    with pytest.raises(OSError):  # noqa: PT011 - refused, in the words of the system
        get(agent.redirect_uri, "/callback?code=1")


@pytest.mark.parametrize("how", ["browser", "paste"])
async def test_a_cancelled_wait_leaves_a_thread_that_blocks(how: str) -> None:
    begun, released, ended = Event(), Event(), Event()

    def block(*_: str) -> str:
        begun.set()
        released.wait(2)
        ended.set()
        return ""

    interaction = Loopback(open_url=block) if how == "browser" else Paste(read=block)
    async with interaction.open() as agent:

        async def visit() -> None:
            await agent.visit(URL)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(visit)
            await to_thread.run_sync(begun.wait, 5)
            tasks.cancel_scope.cancel()
        assert not ended.is_set()
        released.set()
        await to_thread.run_sync(ended.wait, 5)


async def test_a_url_can_be_pasted_by_hand() -> None:
    shown: list[str] = []
    paste = Paste(show=shown.append, read=lambda: " http://127.0.0.1:33418/callback?code=c \n")
    async with paste.open() as agent:
        assert agent.redirect_uri == "http://127.0.0.1:33418/callback"
        assert await agent.visit(URL) == "http://127.0.0.1:33418/callback?code=c"
    assert URL in shown[0]


async def test_a_redirect_without_a_visit_is_for_two_halves() -> None:
    async with Redirect("https://app.example/cb").open() as agent:
        with pytest.raises(AuthorizationError, match="`begin` and `finish`"):
            await agent.visit(URL)
    for make in (Redirect, Paste):
        with pytest.raises(ValueError, match="redirect URI"):
            make("http://app.example/cb")


with_sessions = pytest.mark.parametrize(
    "revision",
    [each for each in revisions_holding("auth-flow.401-at-any-request") if each in SESSIONS],
)


def test_a_user_is_asked_so_often_within_a_time_for_each_server() -> None:
    clock = Clock()
    clock.now = 1000.0
    limit = PromptLimit(clock)
    for _ in range(PROMPTS):
        limit.add("https://a.example")
        clock.now += 1
    limit.add("https://b.example")
    with pytest.raises(AuthorizationError, match=f"next authorization in {300 - PROMPTS} s"):
        limit.add("https://a.example")
    clock.now += PROMPT_SECONDS - PROMPTS
    limit.add("https://a.example")  # the first one is past
    with pytest.raises(AuthorizationError, match="next authorization in 1 s"):
        limit.check("https://a.example")


async def refused_calls(client: Any, *names: str) -> list[str]:
    """The errors of calls of tools."""
    errors = []
    for name in names:
        try:
            await client.call_tool(name)
        except (AuthorizationError, HttpStatusError) as error:
            errors.append(str(error))
    return errors


async def test_requests_that_wait_for_a_user_share_the_refusal() -> None:
    async with run_protected_server() as (script, _):

        async def visit(url: str) -> str:
            agreed = await script.issuer.visit(url)
            if len(script.issuer.visits) == 1:
                return agreed
            while len(refusals) < 10:
                await anyio.lowlevel.checkpoint()
            return agreed.replace("code=", "error=access_denied&x=")

        refusals: list[None] = []

        async def refuse(asked: Asked, reply: Reply) -> None:
            refusals.append(None)
            await reply.whole(401, WWW_Authenticate="Bearer")

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth) as client:
            script.issuer.refresh_tokens.clear()
            errors: list[str] = []

            async def call() -> None:
                errors.extend(await refused_calls(client, "echo"))

            await client.list_tools()
            script.issuer.valid.clear()
            script.on["tools/call"] = refuse
            script.open = lambda asked: asked.what == "tools/call"
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(call)
            assert len(errors) == 10
            assert all("access_denied" in error for error in errors)
            visits = len(script.issuer.visits)
            assert 2 <= visits <= 4  # a call whose refusal arrived later asks again
            await refused_calls(client, "echo")
            assert len(script.issuer.visits) == visits + 1


async def test_codes_for_other_devices_count_too() -> None:
    shown: list[Any] = []
    async with run_protected_server(issuer=DeviceIssuer()) as (script, _):
        auth = OAuth("Agent", interaction=Device(shown.append), store=(store := MemoryStore()))
        key = grant_key(canonical_resource(script.url))
        for _ in range(PROMPTS - 1):
            auth.settings.prompts.add(key)
        await open_and_close(client_of(script, auth))
        await store.save(key, None)
        with pytest.raises(AuthorizationError, match=f"{PROMPTS} times"):
            await open_and_close(client_of(script, auth))
        assert len(shown) == 1
        async with run_issuer(DeviceIssuer()) as script.issuer:  # nor is a client registered there
            with pytest.raises(AuthorizationError, match=f"{PROMPTS} times"):
                await open_and_close(client_of(script, auth))
        assert script.issuer.registered == {}


@with_sessions
async def test_nobody_is_asked_for_the_end_of_a_session(revision: str) -> None:
    async with run_protected_server(revision, session="s") as (script, server):
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
            script.issuer.valid.clear()
            script.issuer.refresh_tokens.clear()
        assert "DELETE" in [asked.verb for asked in server.asked]
        assert len(script.issuer.visits) == 1
