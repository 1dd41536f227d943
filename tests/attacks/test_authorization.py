"""Hostile tokens, issuers and authorization servers against processes that serve or sign in."""

from __future__ import annotations

import http.client
import json
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from kit.http_process import Process
from kit.http_server import Asked, HttpServer, Reply
from kit.issuer import (
    IDP,
    KEY,
    RESOURCE,
    jwk_set,
    new_key,
    proof_key,
    proof_of,
    serving_issuer,
    token_of,
)
from kit.processes import PACKAGE_ROOT
from kit.wire import SESSIONS, initialize
from mcpgen_runtime.client.auth.interactions import PROMPTS
from package.server.auth.test_authenticator import TOKENS

pytestmark = [pytest.mark.attack, pytest.mark.on_asyncio]

SECONDS = 60
HELLO = json.dumps(initialize(SESSIONS[-1]))
SERVER = """
    import json, logging, os
    from mcpgen_runtime import DpopValidation, JwtVerifier, Protected, Server

    logging.basicConfig(level=logging.WARNING)

    def create() -> Server:
        return Server("target", "1", drain=0.1)

    def auth() -> Protected:
        issuer = os.environ["ISSUER"]
        if "KEYS" in os.environ:
            verifier = JwtVerifier(keys=json.loads(os.environ["KEYS"]))
        else:
            verifier = JwtVerifier(jwks=f"{issuer}/jwks", max_age=0, cool_down=0.1)
        resource = os.environ["RESOURCE"]
        dpop = DpopValidation(nonce="NONCE" in os.environ)
        return Protected(resource, issuers=[issuer], verifier=verifier, dpop=dpop)

    if __name__ == "__main__":
        import target
        if "WORKERS" in os.environ:
            Server.run_workers(target.create, 2, http="127.0.0.1:0", auth=target.auth())
        else:
            create().run(http="127.0.0.1:0", auth=auth())
"""


class Target(Process):
    """A protected server as a process."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__([sys.executable, "target.py"], environment, folder)
        self.port = int(self.wait_for(r"serving at http://127.0.0.1:(\d+)/mcp")[0][1])

    def post(self, authorization: str, **fields: str) -> http.client.HTTPResponse:
        """The response to a request over a new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        accept = {"Accept": "application/json, text/event-stream"}
        fields = {**accept, "Content-Type": "application/json", **fields}
        connection.request("POST", "/mcp", HELLO, {**fields, "Authorization": authorization})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response

    def log(self) -> str:
        """End it; all that it wrote to standard error."""
        if self.runs:
            self.send(signal.SIGTERM)
            anyio.run(self.ended)
        return "\n".join(self.lines)


@contextmanager
def target(folder: Path, **environment: str) -> Iterator[Target]:
    """A protected server that runs."""
    (folder / "target.py").write_text(textwrap.dedent(SERVER))
    keys = {} if "ISSUER" in environment else {"ISSUER": IDP, "KEYS": json.dumps(jwk_set(KEY))}
    target = Target(folder, {"RESOURCE": RESOURCE, **keys, **environment})
    try:
        yield target
    finally:
        target.log()


def test_tokens_beyond_any_parser_get_401_and_fill_no_log(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        assert server.post(f"Bearer {token_of()}").status == 200
        refused = 0
        for _ in range(20):
            statuses = [server.post(f"Bearer {token}").status for token in TOKENS.values()]
            refused += statuses.count(401)
        assert refused == 20 * len(TOKENS)
        assert server.post(f"Bearer {token_of('bob')}").status == 200
        log = server.log()
    assert "Traceback" not in log
    assert len(log) < 2000


def test_a_silent_issuer_delays_nobody_whose_key_is_in_use(tmp_path: Path) -> None:
    with serving_issuer() as issuer, target(tmp_path, ISSUER=issuer.url) as server:

        def ask(subject: str, key: Any = KEY) -> tuple[int, float]:
            before = time.monotonic()
            token = token_of(subject, key=key, iss=issuer.url)
            return server.post(f"Bearer {token}").status, time.monotonic() - before

        assert ask("first")[0] == 200
        issuer.answering.clear()
        with ThreadPoolExecutor(20) as threads:
            forged = [threads.submit(ask, f"eve-{n}", new_key(f"k{n}")) for n in range(10)]
            honest = [threads.submit(ask, f"user-{n}") for n in range(10)]
            assert [each.result()[0] for each in forged] == [401] * 10
        assert [each.result()[0] for each in honest] == [200] * 10
        assert max(each.result()[1] for each in honest) < 8  # 2 s, on a machine that is not busy
        later = [ask(f"later-{n}") for n in range(20)]
        assert {status for status, _ in later} == {200}
        assert sum(seconds for _, seconds in later) < 15
        assert len(issuer.requests) <= 4
        assert len(server.log()) < 4000


@pytest.mark.parametrize("nonce", [False, True])
def test_each_worker_accepts_a_proof_once_and_says_so(tmp_path: Path, nonce: bool) -> None:
    key = proof_key()
    token = token_of(cnf={"jkt": key.thumbprint()})
    more = {"NONCE": "1"} if nonce else {}
    with target(tmp_path, WORKERS="1", **more) as server:
        value = None
        if nonce:  # from any worker, as all share the key of nonces
            value = server.post(f"DPoP {token}", DPoP=proof_of(key, token)).getheader("DPoP-Nonce")
            assert value is not None
        stolen = proof_of(key, token, nonce=value)
        with ThreadPoolExecutor(10) as threads:
            posts = [threads.submit(server.post, f"DPoP {token}", DPoP=stolen) for _ in range(30)]
        statuses = [each.result().status for each in posts]
        assert 1 <= statuses.count(200) <= 2
        assert statuses.count(401) == 30 - statuses.count(200)
        own = [server.post(f"DPoP {token}", DPoP=proof_of(key, token, nonce=value)) for _ in "1234"]
        assert [each.status for each in own] == [200] * 4
        assert "a DPoP proof is accepted once by each worker" in server.log()


class HostileServer(HttpServer):
    """An MCP server and its authorization server; what it answers is up to a test."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.documents: dict[str, dict[str, Any]] = {}
        self.raw: dict[str, bytes] = {}
        self.pending = False
        self._used: set[str] = set()
        self._tokens = 0

    async def _answer(self, asked: Asked, reply: Reply) -> None:
        name = asked.target.rsplit("/", 1)[-1]
        if asked.target == "/mcp":
            await self._serve(asked, reply)
        elif name == "token" and self.pending:
            await reply.json({"error": "authorization_pending"}, 400)
        elif name in (documents := self._documents()):
            document = {**documents[name], **self.documents.get(name, {})}
            await reply.json(self.raw.get(name, document))
        else:
            await reply.json({}, 404)

    def _documents(self) -> dict[str, dict[str, Any]]:
        url = self.url.removesuffix("/mcp")
        endpoints = {
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "device_authorization_endpoint": f"{url}/device",
        }
        code = {"device_code": "d", "user_code": "A", "verification_uri": f"{url}/v"}
        challenges = {"code_challenge_methods_supported": ["S256"]}
        self._tokens += 1
        return {
            "mcp": {"resource": f"{url}/mcp", "authorization_servers": [url]},
            "oauth-authorization-server": {"issuer": url, **challenges, **endpoints},
            "register": {"client_id": "c"},
            "device": {**code, "interval": 1, "expires_in": 60},
            "token": {"access_token": f"access-{self._tokens}", "token_type": "Bearer"},
        }

    async def _serve(self, asked: Asked, reply: Reply) -> None:
        token = asked.fields.get("authorization")
        if token is None or token in self._used:
            await reply.json({}, 401, WWW_Authenticate="Bearer")
        elif asked.verb != "POST":
            await reply.json({}, 405)
        elif "id" not in asked.message:
            await reply.json({}, 202)
        else:
            result: dict[str, Any] = {"tools": [], "content": []}
            if asked.what == "tools/call":
                self._used.add(token)
            if asked.what == "initialize":
                result = {
                    "protocolVersion": asked.message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "hostile", "version": "1"},
                }
            await reply.json({"jsonrpc": "2.0", "id": asked.id, "result": result})


CLIENT = """
    import json, sys, threading, urllib.request
    from contextlib import suppress
    from urllib.parse import parse_qs, urlsplit
    import anyio
    from mcpgen_runtime import Device, Loopback, McpError, OAuth, connect

    url, kind, calls, seconds, backend = sys.argv[1:]
    windows = []
    outcome = []

    def browser(url):
        windows.append(url)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        def visit():
            for tail in ("", "?code=x", "?code=x&state=evil", "?error=no&state=",
                         "?code=good&state=" + query["state"]):
                with suppress(OSError):
                    urllib.request.urlopen(query["redirect_uri"] + tail, timeout=20).close()
        threading.Thread(target=visit, daemon=True).start()

    device = Device(windows.append)
    auth = OAuth("A", interaction=device if kind == "device" else Loopback(open_url=browser))

    async def main():
        with anyio.move_on_after(float(seconds)):
            try:
                async with connect(url, auth=auth, revision="2025-06-18") as client:
                    await client.list_tools()
                    outcome.append("signed in")
                    for number in range(int(calls)):
                        try:
                            await client.call_tool("tool")
                            outcome.append("called")
                        except McpError as error:
                            outcome.append(type(error).__name__)
            except McpError as error:
                outcome.append(type(error).__name__)
            return
        outcome.append("waits")

    anyio.run(main, backend=backend)
    print(json.dumps([outcome, len(windows)]))
"""


async def outcome_of(
    folder: Path,
    hostile: HostileServer,
    backend: str,
    kind: str = "code",
    calls: int = 0,
    seconds: int = 30,
) -> tuple[list[str], int]:
    """Outcome lines of a client process, and the number of windows or codes shown to its user."""
    script = folder / "client.py"
    script.write_text(textwrap.dedent(CLIENT))
    words = (hostile.url, kind, f"{calls}", f"{seconds}", backend)
    with anyio.fail_after(2 * SECONDS):
        done = await anyio.run_process(
            [sys.executable, str(script), *words],
            env={"PYTHONPATH": str(PACKAGE_ROOT)},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    outcome, windows = json.loads(done.stdout)
    return outcome, windows


both = pytest.mark.parametrize("backend", ["asyncio", "trio"])
NAMES = ("mcp", "oauth-authorization-server", "register", "device", "token")
NUMBERS = dict.fromkeys(("expires_in", "interval", "client_secret_expires_at"), 10**400)


@both
@pytest.mark.parametrize("kind", ["code", "device"])
async def test_numbers_beyond_floats_and_stray_returns_stop_no_sign_in(
    kind: str, tmp_path: Path, backend: str
) -> None:
    async with HostileServer() as hostile:
        hostile.documents = dict.fromkeys(NAMES, NUMBERS)
        assert await outcome_of(tmp_path, hostile, backend, kind) == (["signed in"], 1)


@both
@pytest.mark.parametrize("document", NAMES)
async def test_a_deeply_nested_document_is_an_error_of_the_package(
    document: str, tmp_path: Path, backend: str
) -> None:
    async with HostileServer() as hostile:
        hostile.raw[document] = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        outcome, _ = await outcome_of(tmp_path, hostile, backend, "device")
        assert outcome == ["AuthorizationError"]


@both
async def test_a_device_that_nobody_confirms_polls_once_a_second(
    tmp_path: Path, backend: str
) -> None:
    async with HostileServer() as hostile:
        hostile.pending = True
        hostile.documents["device"] = {"interval": 0}
        outcome, windows = await outcome_of(tmp_path, hostile, backend, "device", seconds=5)
        assert (outcome, windows) == (["waits"], 1)
        assert 1 <= [each.target for each in hostile.asked].count("/token") <= 5


@both
async def test_a_server_that_forgets_each_token_opens_few_windows(
    tmp_path: Path, backend: str
) -> None:
    async with HostileServer() as hostile:
        outcome, windows = await outcome_of(tmp_path, hostile, backend, calls=20)
        assert windows == PROMPTS
        refused = ["AuthorizationError"] * (20 - PROMPTS)
        assert outcome == ["signed in", *["called"] * PROMPTS, *refused]
