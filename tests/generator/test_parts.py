"""Only the parts that one wants: what is written, that it imports, and what it shows."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import pytest

from generator.selections import (
    LAST_WITH_SESSIONS,
    MIDDLE,
    NAMES,
    NEWEST,
    OLDEST,
    PAIRWISE,
    pairwise,
    render_selection,
    rendered,
    spec_of,
    write_package,
)
from mcpgen.errors import UsageError
from mcpgen.model import feature_table, parts
from mcpgen.model.choice import selection
from mcpgen.model.parts import Selection, features
from mcpgen.render import tree
from mcpgen.schema import facts

pytestmark = [pytest.mark.processes, pytest.mark.costly]

TYPES_MODULES, TYPES_LINES = 13, 3_700
"""The most that the types of one revision may come to, headers included."""

PROTOCOL_MODULES = 34

AUTHORIZING = ("cryptography", "filelock", "joserfc", "keyring", "platformdirs")
"""Optional libraries that a client over HTTP uses if they are installed."""

TELEMETRY = "opentelemetry"
"""An optional library that a client or a server uses if it is installed."""

CODEC = ("_decoding.py", "_extra_members.py", "_structs.py", "_unions.py", "_wire.py")

ALWAYS = ("msgspec",)
TO_CONNECT = ("msgspec", "anyio", "sniffio", "idna", "typing_extensions")


def modules(files: Mapping[str, str]) -> set[str]:
    return {path for path in files if path.endswith(".py")}


def lines(files: Mapping[str, str]) -> int:
    return sum(len(files[path].splitlines()) for path in modules(files))


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
    files = rendered(chosen, transports, revisions)
    allowed = ALWAYS if chosen in ("types", "protocol") else TO_CONNECT
    command = [sys.executable, "-I", "-c", IMPORT_ALL, str(write_package(files, tmp_path))]
    done = subprocess.run(
        [*command, ",".join(allowed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = set(done.stdout.split())
    assert ("Server" in shown) is ("server" in chosen or chosen == "all")
    assert ("connect" in shown) is ("client" in chosen or chosen == "all")
    assert ("ServerHttpSettings" in shown) is (
        "Server" in shown and "http" in transports.replace("all", "http")
    )


@pairwise
def test_every_module_is_imported_by_another_or_begun_with(
    chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    files = rendered(chosen, transports, revisions)
    importing = modules(files) | {"__init__.pyi"}
    imported = {target for path in importing for target in targets(path, files)}
    begun = {path for path in modules(files) - imported if not path.endswith("__init__.py")}
    own = {f"{name.replace('-', '_')}/{stem}.py" for name in revisions for stem in STEMS}
    entries = {"__main__.py", "absence.py", "sdk_names.py", "testing.py", "proxy/proxy_server.py"}
    assert begun <= entries | {f"r{path}" for path in own} | ROOTS


STEMS = ("methods", "client", "client_sync", "server")
ROOTS = {"revisions.py", "models.py", "protocol/connection.py", "client/sync_base.py"}


@cache
def import_nodes(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The imports of a module, wherever in it; packages share most of their modules."""
    nodes = ast.walk(ast.parse(text))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def targets(path: str, files: Mapping[str, str]) -> Iterator[str]:
    """Modules of the package that a module imports, by a rule of this test's own."""
    package = path.split("/")[:-1]
    for node in import_nodes(files[path]):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            stem = "/".join(part for part in base if part)
            yield f"{stem}.py"
            yield from (f"{stem}/{name.name}.py".lstrip("/") for name in node.names)


@pytest.mark.parametrize("revision", NAMES)
def test_types_are_a_handful_of_modules(revision: str) -> None:
    files = render_selection("types", "all", (revision,))
    folder = f"r{revision.replace('-', '_')}"
    own = {f"{folder}/{name}.py" for name in ("__init__", "methods", "models")}
    assert modules(files) == own | {"__init__.py", *CODEC, "messages.py", "method_facts.py"}
    assert len(modules(files)) <= TYPES_MODULES
    assert lines(files) <= TYPES_LINES or revision > MIDDLE  # those have half as many types more


@pytest.mark.parametrize("revision", NAMES)
def test_the_protocol_is_few_modules_and_opens_nothing(revision: str) -> None:
    files = rendered("protocol", "all", (revision,))
    assert len(modules(files)) <= PROTOCOL_MODULES
    text = "".join(files.values())
    assert "import anyio" not in text
    assert "import socket" not in text


OVER_HTTP = ("server/asgi", "framing/s")
"""Beginnings of paths of modules that only HTTP needs."""

TO_CALL_AN_API = ("server/openapi/", "framing/http_headers.py")
"""Beginnings of paths of what makes the requests of an OpenAPI document, whatever the transport."""


@pytest.mark.parametrize("revision", NAMES)
def test_a_server_over_stdio_has_no_module_for_http(revision: str) -> None:
    files = rendered("server", "stdio", (revision,))
    others = [path for path in files if not path.startswith(TO_CALL_AN_API)]
    assert not [path for path in others if "http" in path or path.startswith(OVER_HTTP)]
    assert "client/async_client.py" not in files


OF_TYPE_CHECKERS = {"typing_extensions"}
"""Libraries that type checkers bundle; nothing imports them at run time."""


def foreign_imports(text: str) -> Iterator[str]:
    """Modules of others that a module imports, wherever in it."""
    for node in import_nodes(text):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


OF_COMMANDS = {"argcomplete", "ruamel", "tomlkit"}
"""Completion in shells, and the files of hosts in TOML and YAML."""


@pytest.mark.parametrize(
    ("chosen", "transports", "expected"),
    [
        ("types", "all", {"msgspec"}),
        ("protocol", "all", {"msgspec"}),
        ("server", "stdio", {"msgspec", "anyio", "rich", TELEMETRY, *OF_COMMANDS}),
        (
            "client",
            "stdio",
            {"msgspec", "anyio", "dotenv", "filelock", "rich", TELEMETRY, *OF_COMMANDS},
        ),
        (
            "server",
            "http",
            {
                *("msgspec", "anyio", "uvicorn", "httpx2", "joserfc", "watchfiles"),
                *("cryptography", "rich", "valkey", TELEMETRY, *OF_COMMANDS),
            },
        ),
        (
            "client",
            "http",
            {
                *("msgspec", "anyio", "aiohttp", "dotenv", "httpx2", "httpcore2", "rich"),
                TELEMETRY,
                *OF_COMMANDS,
                *AUTHORIZING,
            },
        ),
    ],
)
def test_a_choice_names_no_other_dependency_even_for_checkers(
    chosen: str, transports: str, expected: set[str]
) -> None:
    files = rendered(chosen, transports, (MIDDLE,))
    libraries = {name for path in modules(files) for name in foreign_imports(files[path])}
    assert libraries - set(sys.stdlib_module_names) - OF_TYPE_CHECKERS == expected


def test_modules_that_no_chosen_revision_needs_are_not_written() -> None:
    newest = rendered("all", "all", (NEWEST,), features=())
    oldest = rendered("server", "http+sse", (OLDEST,), features=())
    sessions = {
        "server/asgi/session_endpoint.py",
        "server/asgi/http_session.py",
        "transports/http/sessions.py",
    }
    assert sessions < rendered("all", "all", (MIDDLE,)).keys()
    assert not sessions & newest.keys()
    assert newest.keys() >= {STATELESS, PARAM_HEADERS}
    assert not {"server/asgi/sse_endpoint.py", "transports/http/http_sse.py"} & newest.keys()
    assert "server/asgi/sse_endpoint.py" in oldest
    assert "server/asgi/session_endpoint.py" not in oldest


STATELESS = "server/asgi/stateless_endpoint.py"
PARAM_HEADERS = "protocol/param_headers.py"


@pytest.mark.parametrize("revision", NAMES[1:-1])
def test_a_package_of_sessions_alone_has_no_stateless_endpoint(revision: str) -> None:
    files = rendered("all", "all", (revision,))
    draft = facts.load(revision).draft.method is not None
    assert STATELESS not in files
    assert (PARAM_HEADERS in files) is draft
    assert ("server/asgi/draft_headers.py" in files) is draft


@pytest.mark.parametrize("chosen", ["client", "server"])
def test_headers_that_repeat_arguments_come_with_http(chosen: str) -> None:
    over_http, without = rendered(chosen, "http", (NEWEST,)), rendered(chosen, "stdio", (NEWEST,))
    assert PARAM_HEADERS in over_http
    assert PARAM_HEADERS not in without


SERVER = """
from pkg import Server
server = Server("doubles")

@server.tool()
def double(n: int) -> int:
    return 2 * n
"""

CLIENT = """
import sys
from pkg import connect_sync
with connect_sync(sys.argv[1]) as client:
    print(client.call_tool("double", {"n": 21}).content[0].text)
"""


@pytest.mark.parametrize("revision", NAMES)
def test_a_package_of_one_revision_calls_a_tool_over_http(tmp_path: Path, revision: str) -> None:
    folder = write_package(rendered("all", "all", (revision,)), tmp_path)
    (folder / "doubles.py").write_text(SERVER, "utf-8")
    serve = [sys.executable, "-m", "pkg", "serve", "doubles:server", "--http", "127.0.0.1:0"]
    with subprocess.Popen(serve, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            command = [sys.executable, "-c", CLIENT, url]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
            )
            assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
        finally:
            process.terminate()


def test_every_part_together_is_the_whole() -> None:
    whole = rendered("all", "all", (NEWEST,))
    chosen = selection(parts.PARTS, ("stdio", "http"), features=("all",))
    each = tree.render_package([spec_of(NEWEST)], "pkg", chosen, form=dict)
    assert each == whole


def test_every_module_begins_with_its_origin_and_how_to_edit() -> None:
    for chosen, transports, revisions in PAIRWISE:
        files = rendered(chosen, transports, revisions)
        folders = {spec_of(name).folder: f" from MCP {name}" for name in revisions}
        for path in modules(files):
            first = files[path].partition("\n")[0]
            assert f"generated by mcpgen{folders.get(path.partition('/')[0], '')}: run " in first
            assert "mcpgen update" in first


@pytest.mark.parametrize(
    ("chosen", "transports", "expected"),
    [
        ((), (), Selection()),
        (("all",), ("all",), Selection()),
        (("types,all",), (), Selection()),
        (("server", "types"), (), Selection(("types", "server"))),
        (("client, server",), ("http,stdio",), Selection(("client", "server"), ("stdio", "http"))),
        (("types",), ("all",), Selection(("types",))),
    ],
)
def test_parts_and_transports_are_words_or_words_with_commas(
    chosen: tuple[str, ...], transports: tuple[str, ...], expected: Selection
) -> None:
    assert selection(chosen, transports, features=("all",)) == expected


@pytest.mark.parametrize(
    ("chosen", "transports", "text"),
    [
        (("server,",), (), "--parts: expected types, .* or all, got ''"),
        (("Server",), (), "--parts: expected types, .* or all, got 'Server'"),
        ((), ("tcp",), r"--transport: expected stdio, http, http\+sse or all, got 'tcp'"),
        (("types", "protocol"), ("stdio",), "got it with types, protocol, which opens no conn"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    chosen: tuple[str, ...], transports: tuple[str, ...], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        selection(chosen, transports)


def test_a_transport_that_no_revision_has_is_refused() -> None:
    old = [facts.load(OLDEST)]
    with pytest.raises(UsageError, match=r"a chosen revision has \(stdio, http\+sse\), got 'http'"):
        features(selection((), ("http",)), old)


def test_http_with_sse_includes_streamable_http_where_it_exists() -> None:
    both = [facts.load(name) for name in (OLDEST, NEWEST)]
    assert features(selection((), ("http+sse",)), both).http
    assert not features(selection((), ("http+sse",)), both[:1]).http
    assert not features(selection((), ("http",)), both).http_sse


TASKS, OTHER = "io.modelcontextprotocol/tasks", "com.example/other"


@pytest.mark.parametrize(
    ("chosen", "revisions", "expected"),
    [
        (Selection(("types",)), (NEWEST,), "per_request cache_hints"),
        (
            Selection(("protocol",)),
            (OLDEST, NEWEST),
            "protocol handshakes per_request cache_hints several",
        ),
        (Selection(("client",), ("stdio",)), (MIDDLE,), "protocol client stdio handshakes"),
        (
            Selection(("client",), ("http",)),
            (NEWEST,),
            "protocol client http http_stateless per_request param_headers cache_hints",
        ),
        (
            Selection(("server",), ("http",)),
            (LAST_WITH_SESSIONS,),
            "protocol server http http_sessions handshakes draft_headers tasks tasks_both_ways",
        ),
        (Selection(("server",), ("http+sse",)), (OLDEST,), "protocol server http_sse handshakes"),
        (
            Selection(("server",), ("http+sse",)),
            (OLDEST, MIDDLE),
            "protocol server http http_sse http_sessions handshakes several",
        ),
        (
            Selection(("client", "server"), ("stdio",), runtime="installed"),
            (OLDEST, LAST_WITH_SESSIONS),
            "protocol client server stdio handshakes several tasks tasks_both_ways installed",
        ),
    ],
)
def test_the_contents_of_a_package_follow_from_its_choice(
    chosen: Selection, revisions: tuple[str, ...], expected: str
) -> None:
    contents = features(replace(chosen, features=()), [facts.load(name) for name in revisions])
    flags = [name for name, value in asdict(contents).items() if value is True]
    assert flags == expected.split()


@pytest.mark.parametrize(
    ("chosen", "revisions", "expected"),
    [
        (Selection(("types",), features=()), (NEWEST,), "types"),
        (Selection(("protocol",), features=()), (NEWEST,), "connection protocol types"),
        (
            Selection(("client",), ("stdio",), features=("trace",)),
            (MIDDLE, NEWEST),
            (
                "client client+per_request client+stdio partial peer protocol several stdio trace "
                "trace+client types"
            ),
        ),
        (
            Selection(("server",), ("http",), features=("tasks",)),
            (LAST_WITH_SESSIONS,),
            (
                "draft_headers elicitation elicitation+server http param_headers partial peer"
                " protocol server server+http tasks tasks+mutual+server tasks+server types"
            ),
        ),
        (
            Selection(("server",), ("stdio",), features=()),
            (LAST_WITH_SESSIONS,),
            "partial peer protocol server stdio types",
        ),
        (
            Selection(("client",), ("http+sse",), features=("trace",)),
            (OLDEST,),
            "client client+http http partial peer protocol trace trace+client types",
        ),
    ],
)
def test_the_parts_of_a_package_are_named_with_their_sides(
    chosen: Selection, revisions: tuple[str, ...], expected: str
) -> None:
    contents = features(chosen, [facts.load(name) for name in revisions])
    assert sorted(contents.parts) == expected.split()


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


def test_a_package_is_a_runtime_if_it_has_everything() -> None:
    every = [facts.load(name) for name in NAMES]
    assert features(parts.EVERYTHING, every).is_runtime
    others: list[tuple[Selection, list[facts.Facts]]] = [
        (parts.EVERYTHING, every[:1]),
        (parts.EVERYTHING, every[-1:]),
        (parts.EVERYTHING, every[:-1]),
        (parts.EVERYTHING, every[1:]),
        (Selection(models="pydantic"), every),
        (Selection(runtime="installed"), every),
        (Selection(features=("all", "-groups")), every),
        (Selection(transports=("http", "http+sse"), features=("all",)), every),
        (Selection(("server",)), every),
        (Selection(("client",)), every),
    ]
    assert [features(*each).is_runtime for each in others] == [False] * len(others)


def test_a_selection_lacks_what_it_could_have() -> None:
    known = [facts.load(LAST_WITH_SESSIONS)]
    none = ("none",)
    client = features(selection(("client",), ("stdio",), features=none), known)
    assert client.lacks("restart")
    assert not client.lacks("auth")
    assert not client.lacks("mount")
    assert client.absent_members("client")["listen"] == "subscriptions"
    assert client.absent_options["connect.restart"] == "restart"
    assert not features(selection(("client",), features=("all",)), known).absent_of_client
    server = features(selection(("server",), ("stdio",), features=("visibility",)), known)
    assert not server.lacks("visibility")
    members = server.absent_members("context")
    assert (members["elicit"], members.get("enable_components")) == ("elicitation", None)
    every = features(selection(("server",), features=("all",)), known)
    assert {**every.absent_members("context"), **every.absent_of_server} == {}
    assert not features(selection(("types",)), known).absent


def test_an_option_of_several_features_comes_with_any() -> None:
    newest = [facts.load(NEWEST)]
    absent = {
        words: features(
            selection(("server",), ("http",), features=("none", *words)), newest
        ).absent_of_server.get("Server.state_key")
        for words in ((), ("scaling",), ("elicitation",))
    }
    assert absent == {(): "elicitation", ("scaling",): None, ("elicitation",): None}


def test_bases_are_those_of_chosen_features_and_transports() -> None:
    newest = [facts.load(NEWEST)]
    words = ("none", "resources", "prompts", "visibility")
    names = {
        (transport, of): " ".join(chosen.base_names(of))
        for transport in ("stdio", "http")
        for chosen in [features(selection(("server",), (transport,), features=words), newest)]
        for of in ("Server", "Context", "ServerOptions", "ResourceOptions")
    }
    of_server = "ServerVisibility ResourceDecorator PromptDecorator"
    assert names == {
        ("stdio", "Server"): f"{of_server} CachingServer StdioHosting",
        ("stdio", "Context"): "SessionVisibility",
        ("stdio", "ServerOptions"): "SubscriptionOptions CacheHintOptions",
        ("stdio", "ResourceOptions"): "ResourceCacheOptions",
        ("http", "Server"): f"{of_server} CachingServer ParamHeaderServer HttpHosting",
        ("http", "Context"): "SessionVisibility HttpContext",
        ("http", "ServerOptions"): "SubscriptionOptions CacheHintOptions",
        ("http", "ResourceOptions"): "ResourceCacheOptions",
    }


def test_an_installed_runtime_has_all_but_rendered_features() -> None:
    newest = [facts.load(NEWEST)]
    chosen = selection(("client",), ("stdio",), features=("none",), runtime="installed")
    rendered_ones = {each.name for each in feature_table.FEATURES if each.is_rendered}
    contents = features(chosen, newest)
    assert {each.name for each in contents.absent} == rendered_ones == {"groups", "sync"}
    with pytest.raises(UsageError, match="pydantic"):
        features(selection(models="pydantic", runtime="installed"), newest)


def test_a_feature_brings_those_of_the_features_that_it_brings() -> None:
    chosen = features(selection(features=("none", "inspector")), [facts.load(NEWEST)]).chosen
    brought = {"apps", "callbacks", "commands", "config", "resources", "subscriptions", "trace"}
    assert chosen == {"inspector", *brought}


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("models", "--models: expected msgspec or pydantic, got 'attrs'"),
        ("runtime", "--runtime: expected vendored or installed, got 'attrs'"),
    ],
)
def test_an_unknown_library_or_form_is_refused(option: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        selection(**{option: "attrs"})
    assert str(caught.value) == text


def test_types_alone_have_no_features_to_choose() -> None:
    for words in ((), ("none",), ("-prompts",)):
        assert selection(("types",), features=words).features == ("all",)
    assert selection(("types",), features=("auth",)).features == ("none", "auth")


def test_transports_are_those_of_clients_and_servers_alone() -> None:
    assert features(Selection(("protocol",), features=()), [facts.load(NEWEST)]).any_http is False
    assert features(Selection(transports=("http+sse",)), [facts.load(OLDEST)]).any_http
    with pytest.raises(UsageError, match=r"has \(stdio, http\), got 'http\+sse'"):
        features(selection((), ("http+sse",)), [facts.load(NEWEST)])


ONE_CLASS = """
import sys
sys.path.insert(0, sys.argv[1])
import pkg
from pkg import Client, ClientHandlers, ServerSession, SyncClient, {folder}
from pkg.{folder} import client, server
assert Client is client.Client
assert ClientHandlers is client.ClientHandlers
assert SyncClient.__name__ == "SyncClient"
assert ServerSession is server.ServerSession
"""


def test_a_package_of_one_revision_has_one_class_of_each_kind(tmp_path: Path) -> None:
    folder = write_package(
        rendered("all", "all", (NEWEST,), features=("methods", "sync")), tmp_path
    )
    program = ONE_CLASS.format(folder=spec_of(NEWEST).folder)
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
