"""Only the parts that one wants: what is written, that it imports, and what it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import output_of
from generator.selections import (
    LAST_WITH_SESSIONS,
    MIDDLE,
    NAMES,
    NEWEST,
    OLDEST,
    pairwise,
    rendered,
    spec_of,
    write_package,
)
from mcpgen.errors import UsageError
from mcpgen.model.choice import selection
from mcpgen.model.parts import Selection, features
from mcpgen.schema import facts

pytestmark = [pytest.mark.processes, pytest.mark.costly]

CODEC = ("_decoding.py", "_extra_members.py", "_structs.py", "_unions.py", "_wire.py")

IMPORT_ALL = """
import importlib, importlib.abc, pkgutil, sys
sys.path.insert(0, sys.argv[1])
allowed = set(sys.argv[2].split(",")) | {"pkg"} | set(sys.stdlib_module_names)

class OnlyAllowed(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, OnlyAllowed())
import pkg
for module in pkgutil.walk_packages(pkg.__path__, "pkg."):
    importlib.import_module(module.name)
for name in pkg.__all__:
    getattr(pkg, name)
assert set(pkg.__all__) <= set(dir(pkg))
print(*pkg.__all__)
"""


@pairwise
def test_a_choice_imports_with_its_own_dependencies_alone(
    tmp_path: Path, chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    folder = write_package(rendered(chosen, transports, revisions), tmp_path)
    allowed = ["msgspec"]
    if chosen not in ("types", "protocol"):
        allowed += ["anyio", "sniffio", "idna", "typing_extensions"]
    shown = {*output_of(IMPORT_ALL, folder, ",".join(allowed), cwd=tmp_path).split()}
    is_server = chosen in ("server", "client,server", "all")
    assert ("Server" in shown) is is_server
    assert ("connect" in shown) is (chosen in ("client", "client,server", "all"))
    over_http = transports == "all" or "http" in transports
    assert ("ServerHttpSettings" in shown) is (is_server and over_http)


@pytest.mark.parametrize("revision", NAMES)
def test_types_are_a_handful_of_modules(revision: str) -> None:
    files = rendered("types", "all", (revision,))
    modules = {path for path in files if path.endswith(".py")}
    own = {f"{spec_of(revision).folder}/{name}.py" for name in ("__init__", "methods", "models")}
    assert modules == own | {"__init__.py", *CODEC, "messages.py", "method_facts.py"}


SESSIONS = {
    "server/asgi/session_endpoint.py",
    "server/asgi/http_session.py",
    "transports/http/sessions.py",
}
OVER_SSE = {"server/asgi/sse_endpoint.py", "transports/http/http_sse.py"}
STATELESS, DRAFT_HEADERS = "server/asgi/stateless_endpoint.py", "server/asgi/draft_headers.py"
PARAM_HEADERS = "protocol/param_headers.py"


@pytest.mark.parametrize(
    ("transports", "revision", "having", "lacking"),
    [
        ("all", NEWEST, {STATELESS, PARAM_HEADERS}, SESSIONS | OVER_SSE),
        ("http", NEWEST, {PARAM_HEADERS}, set()),
        ("stdio", NEWEST, set(), {PARAM_HEADERS, STATELESS}),
        ("all", LAST_WITH_SESSIONS, SESSIONS | {PARAM_HEADERS, DRAFT_HEADERS}, {STATELESS}),
        ("all", MIDDLE, SESSIONS, {STATELESS, PARAM_HEADERS, DRAFT_HEADERS}),
        ("http+sse", OLDEST, {"server/asgi/sse_endpoint.py"}, SESSIONS | {STATELESS}),
    ],
)
def test_modules_that_no_chosen_revision_needs_are_not_written(
    transports: str, revision: str, having: set[str], lacking: set[str]
) -> None:
    choice = "all" if transports == "all" else "server"
    files = rendered(choice, transports, (revision,), features=())
    assert (having - files.keys(), lacking & files.keys()) == (set(), set())


@pytest.mark.parametrize("revision", NAMES)
def test_a_server_over_stdio_has_no_module_for_http(revision: str) -> None:
    files = rendered("server", "stdio", (revision,))
    # What makes the requests of an OpenAPI document is there whatever the transport.
    of_an_api = ("server/openapi/", "framing/http_headers.py")
    others = [path for path in files if not path.startswith(of_an_api)]
    assert not [path for path in others if "http" in path or path.startswith("server/asgi")]
    assert "client/async_client.py" not in files


SERVER = """
from pkg import Context, Server
server = Server("doubles")

@server.tool()
def double(word: str, ctx: Context) -> str:
    return word + ctx.http_request.headers["x-tenant"]

if __name__ == "__main__":
    server.run("stdio")
"""

CLIENT = """
import pathlib, sys
from pkg import connect_sync
with connect_sync(pathlib.Path("doubles.py")) as client:
    print([tool.name for tool in client.list_tools()])
with connect_sync(sys.argv[1], headers={"x-tenant": "of a"}) as client:
    print(client.call_tool("double", {"word": "call "}).content[0].text)
"""


@pytest.mark.parametrize("revision", [OLDEST, LAST_WITH_SESSIONS, NEWEST])
def test_a_package_of_one_revision_calls_a_tool_over_http(tmp_path: Path, revision: str) -> None:
    folder = write_package(rendered("all", "all", (revision,)), tmp_path)
    (folder / "doubles.py").write_text(SERVER, "utf-8")
    serve = [sys.executable, "-m", "pkg", "serve", "doubles:server", "--http", "127.0.0.1:0"]
    with subprocess.Popen(serve, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            assert output_of(CLIENT, url, cwd=folder) == "['double']\ncall of a\n"
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("chosen", "transports", "expected"),
    [
        ((), (), Selection()),
        (("types,all",), (), Selection()),
        (("client, server",), ("http,stdio",), Selection(("client", "server"), ("stdio", "http"))),
        (("types",), ("all",), Selection(("types",))),
    ],
)
def test_parts_and_transports_are_words_or_words_with_commas(
    chosen: tuple[str, ...], transports: tuple[str, ...], expected: Selection
) -> None:
    assert selection(chosen, transports, features=("all",)) == expected


@pytest.mark.parametrize(
    ("options", "revisions", "text"),
    [
        ({"parts": ("server,",)}, (), "--parts: expected types, .* or all, got ''"),
        ({"parts": ("Server",)}, (), "--parts: expected types, .* or all, got 'Server'"),
        (
            {"transports": ("tcp",)},
            (),
            r"--transport: expected stdio, http, http\+sse or all, got 'tcp'",
        ),
        (
            {"parts": ("types", "protocol"), "transports": ("stdio",)},
            (),
            "got it with types, protocol, which opens no conn",
        ),
        ({"models": "attrs"}, (), "--models: expected msgspec or pydantic, got 'attrs'"),
        ({"runtime": "attrs"}, (), "--runtime: expected vendored or installed, got 'attrs'"),
        ({"transports": ("http",)}, (OLDEST,), r"has \(stdio, http\+sse\), got 'http'"),
        ({"transports": ("http+sse",)}, (NEWEST,), r"has \(stdio, http\), got 'http\+sse'"),
        ({"models": "pydantic", "runtime": "installed"}, (NEWEST,), "pydantic"),
        (
            {"runtime": "installed", "decoding": "strict"},
            (NEWEST,),
            "--decoding strict: expected --runtime vendored",
        ),
        ({"mutability": "mutable"}, (), "mutable: expected --models pydantic, got msgspec"),
    ],
)
def test_choices_that_no_package_can_have_are_refused(
    options: dict[str, Any], revisions: tuple[str, ...], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        features(selection(**options), [facts.load(name) for name in revisions])


TASKS, OTHER = "io.modelcontextprotocol/tasks", "com.example/other"


def test_extensions_bring_features_of_their_own_and_of_any() -> None:
    newest, some = [facts.load(NEWEST)], selection(("server",), ("stdio",), features=("none",))
    assert features(some, newest).chosen == frozenset()
    tasks = features(some, newest, (TASKS,))
    assert tasks.chosen == {"elicitation", "methods", "tasks"}
    assert (tasks.tasks, tasks.tasks_both_ways, tasks.mutual_tasks) == (True, False, False)
    assert features(some, newest, (OTHER,)).chosen == {"methods"}
    assert f"{OTHER}+server" in features(some, newest, (OTHER,)).parts
    assert f"{OTHER}+client" not in features(some, newest, (OTHER,)).parts
    clients = features(selection(("client",), ("stdio",), features=("none",)), newest, (OTHER,))
    assert clients.chosen == frozenset()
