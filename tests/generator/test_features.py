"""Features that are chosen: what a package has without them, and what using one says then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import documents
from conventions.sources import PACKAGE, ROOT, TESTS
from generator.command_line import output_of, run, run_python
from generator.selections import (
    LAST_WITH_SESSIONS,
    MIDDLE,
    NEWEST,
    OLDEST,
    render_selection,
    rendered,
    spec_of,
    write_package,
)
from mcpgen.errors import UsageError
from mcpgen.model import exports
from mcpgen.model.choice import changed_features, selection
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import features
from mcpgen.package import manifest

pytestmark = pytest.mark.processes

NAMES = tuple(each.name for each in FEATURES)
DEFAULTS = tuple(each.name for each in FEATURES if each.is_default)
OF_SERVER = tuple(name for name in DEFAULTS if name != "returns")
"""The default features of a server."""
NONE = ("none",)


OF_SERVERS = {
    "prompts": "server/toolkit/prompts.py",
    "resources": "server/toolkit/resources.py",
    "completions": "server/toolkit/completions.py",
    "visibility": "server/toolkit/visibility.py",
    "state": "server/toolkit/session_values.py",
    "serve": "server/commands/serve_command.py",
}
"""A module of each feature that is a default one, or was."""

SERVES_TOOLS = """
import importlib, pkgutil, sys
import anyio

def tool(name: str) -> str:
    return f"Hello {name}"

async def resource() -> str:
    return "text"

async def completion(value: str) -> list[str]:
    return [value + "1"]

async def works(request):
    try:
        await request
    except Exception:
        return False
    return True

async def served(pkg):
    server = pkg.Server("tools")
    server.add_tool(tool)
    if hasattr(server, "add_prompt"):
        server.add_prompt(tool)
    if hasattr(server, "add_resource"):
        server.add_resource(resource, "x://y")
    if hasattr(server, "completion"):
        server.completion(argument="name", prompt="tool")(completion)
    ref = {"type": "ref/prompt", "name": "tool"}
    async with pkg.testing.connected(server) as pair:
        assert [each.name for each in await pair.client.list_tools()] == ["tool"]
        result = await pair.client.call_tool("tool", {"name": "Ada"})
        assert result.content[0].text == "Hello Ada"
        requests = (
            pair.client.get_prompt("tool", {"name": "Ada"}),
            pair.client.read_resource("x://y"),
            pair.client.complete({"name": "name", "value": "a"}, ref),
        )
        return [await works(each) for each in requests]

for name in sys.argv[1:]:
    pkg = importlib.import_module(name)
    for module in pkgutil.walk_packages(pkg.__path__, f"{name}."):
        importlib.import_module(module.name)
    print(name, *anyio.run(served, pkg))
"""


@pytest.mark.parametrize("revision", [OLDEST, MIDDLE, NEWEST])
def test_each_feature_can_be_left_out_or_be_the_only_one(tmp_path: Path, revision: str) -> None:
    choices: dict[str, tuple[str, ...]] = {"none": NONE, "defaults": ()}
    if revision != MIDDLE:
        choices |= {f"only_{name}": ("none", name) for name in OF_SERVERS}
    if revision != OLDEST:
        choices |= {f"no_{name}": (*OF_SERVERS, f"-{name}") for name in OF_SERVERS}
    expected: list[str] = []
    for name, words in choices.items():
        files = rendered("client,server", "stdio", (revision,), features=words)
        write_package(files, tmp_path, name)
        own = features(selection(features=words), [spec_of(revision).facts]).chosen
        assert {each for each, path in OF_SERVERS.items() if path in files} - {"state"} == (
            own & {*OF_SERVERS} - {"state"}
        )
        assert (OF_SERVERS["state"] in files) is bool(own & {"state", "visibility"})
        serves = [each in own for each in ("prompts", "resources")]
        serves.append({"prompts", "completions"} <= own)
        expected.append(" ".join([name, *map(str, serves)]))
    assert output_of(SERVES_TOOLS, *choices, cwd=tmp_path).splitlines() == expected


USES_EACH = """
import pathlib, sys
import pkg
errors = []
for name in sys.argv[1].split(","):
    for kind in (lambda: getattr(pkg, name), lambda: exec(f"from pkg import {name}")):
        try:
            kind()
        except (AttributeError, ImportError) as error:
            errors.append(f"{type(error).__name__}: {error}")
assert not [each for each in sys.argv[5].split(",") if hasattr(pkg.Client, each)]
server = pkg.Server("one")
context = object.__new__(pkg.Context)
for owner, members in ((server, sys.argv[2]), (context, sys.argv[3])):
    for member in members.split(","):
        assert not hasattr(type(owner), member) and member not in dir(owner), member
        try:
            getattr(owner, member)
        except AttributeError as error:
            errors.append(str(error))
for call in sys.argv[4].split(","):
    function, keyword = call.split(".")
    try:
        called = {"Server": pkg.Server, "tool": server.tool, "connect": pkg.connect}
        called[function]("a", **{keyword: True})
    except TypeError as error:
        errors.append(str(error))
for call in (
    lambda: pkg.connect({"mcpServers": {}}),
    lambda: pkg.connect(pathlib.Path("mcp.json")),
    lambda: server.asgi(auth=pkg),
    lambda: server.asgi(sessions="sealed"),
    lambda: server.asgi(shared="redis://127.0.0.1/0"),
):
    try:
        call()
    except TypeError as error:
        errors.append(str(error))
print(*errors, sep="\\n")
"""


def test_errors_for_absent_features_say_how_to_add_them(tmp_path: Path) -> None:
    files = rendered("all", "all", (LAST_WITH_SESSIONS,), features=NONE)
    assert not [
        path for path in files if path.endswith(("sealed_sessions.py", "shared_endpoint.py"))
    ]
    write_package(files, tmp_path)
    none = features(selection(features=NONE), [spec_of(LAST_WITH_SESSIONS).facts])
    missing = exports.missing_names(none)
    tables = [none.absent_members("server"), none.absent_members("context")]
    options = none.absent_options.items()
    called = ("Server.", "tool.", "connect.")
    tables.append({each: of for each, of in options if each.startswith(called)})
    of_clients = none.absent_members("client")
    words = (",".join(names) for names in (missing, *tables, of_clients))
    errors = output_of(USES_EACH, *words, cwd=tmp_path).splitlines()
    expected = [feature for feature in missing.values() for _ in range(2)]
    expected += [feature for table in tables for feature in table.values()]
    expected += ["groups", "groups", "auth", "scaling", "shared"]
    for line, feature in zip(errors, expected, strict=True):
        assert line.endswith(
            f" comes with the feature {feature}, which this package was generated without:"
            f" mcpgen update pkg --features +{feature}"
        )


def test_a_trace_that_nothing_writes_is_an_error(tmp_path: Path) -> None:
    write_package(rendered("server", "stdio", (MIDDLE,), features=NONE), tmp_path)
    trace = {"MCP_TRACE": str(tmp_path / "trace.jsonl")}
    code = "import pkg; pkg.Server('a').run()"
    done = run_python("-c", code, cwd=tmp_path, environment=trace)
    assert "MCP_TRACE comes with the feature trace" in done.err
    assert not (tmp_path / "trace.jsonl").exists()


@pytest.mark.parametrize(
    ("before", "words", "expected"),
    [
        ((), (), ("none", *DEFAULTS)),
        (("none", "auth"), ("groups,mount",), ("none", *DEFAULTS, "groups", "mount")),
        (("none", "auth"), ("none,skills",), ("none", "skills")),
        (("none", "auth"), ("+mount",), ("none", "auth", "mount")),
        (("none", "auth", "mount"), ("-auth",), ("none", "mount")),
        (("none", "auth"), ("+prompts",), ("none", "prompts", "auth")),
        (("-prompts",), ("+auth",), ("none", "resources", "serve", "auth", "returns")),
        (("all",), ("-auth, -prompts, -proxy",), ("all", "-prompts", "-auth", "-proxy")),
        (("all", "-auth"), ("+auth",), ("all",)),
    ],
)
def test_an_update_replaces_adds_or_removes_features(
    before: tuple[str, ...], words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert selection(features=changed_features(before, words)).features == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), DEFAULTS),
        (("auth",), (*DEFAULTS, "auth")),
        (("none", "prompts"), ("prompts",)),
        (("+auth,-serve",), ("prompts", "resources", "auth", "returns")),
        (("none,skills",), ("resources", "skills")),
        (
            ("none,proxy",),
            ("prompts", "resources", "completions", "subscriptions", "mount", "proxy"),
        ),
        (("all,-auth",), tuple(name for name in NAMES if name != "auth")),
    ],
)
def test_names_add_to_the_default_features(
    words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    chosen = selection(features=words)
    facts = [spec_of(LAST_WITH_SESSIONS).facts]
    assert features(chosen, facts).chosen == {*expected}
    assert selection(features=chosen.features) == chosen  # as a manifest is read again


EARLIER = json.loads((Path(__file__).parent / "earlier_manifest.json").read_text())
"""The manifest of a server over stdio, written when more features were default ones."""

OLD_NONE = [f"-{each.name}" for each in FEATURES if each.name in OF_SERVERS]
KEPT = {*DEFAULTS, *(each.name for each in FEATURES if each.was_default)}
ALWAYS = KEPT - {*OF_SERVERS}
"""Features that earlier packages could not be without."""


@pytest.mark.parametrize(
    ("part", "recorded", "expected"),
    [
        ("all", [], KEPT),
        ("all", ["auth"], KEPT | {"auth"}),
        ("all", OLD_NONE, ALWAYS),
        ("all", None, {*NAMES}),
        ("all", ["all", "-auth"], {*NAMES} - {"auth"}),
        ("client", [], ALWAYS - {"resume"}),
        ("server", [], KEPT - {"aiohttp", "callbacks", "returns", "sync"}),
    ],
)
def test_packages_of_earlier_versions_keep_their_features(
    part: str, recorded: list[str] | None, expected: set[str], tmp_path: Path
) -> None:
    options = {"errata": True, "parts": [part], "transports": ["all"]}
    options |= {} if recorded is None else {"features": recorded}
    (tmp_path / manifest.NAME).write_text(json.dumps(EARLIER | {"options": options}))
    record = manifest.read(tmp_path)
    assert record is not None
    facts = [spec_of(LAST_WITH_SESSIONS).facts]
    assert features(record.options.selection(), facts).chosen == expected
    (tmp_path / manifest.NAME).write_text(record.text())
    assert manifest.read(tmp_path) == record


@pytest.mark.parametrize(("revision", "resumes"), [(MIDDLE, True), (NEWEST, False)])
def test_earlier_packages_with_sessions_keep_resuming(
    tmp_path: Path, revision: str, resumes: bool
) -> None:
    [origin] = EARLIER["revisions"].values()
    options = {"errata": True, "parts": ["all"], "transports": ["all"], "features": []}
    record = EARLIER | {"options": options, "revisions": {revision: origin}, "files": {}}
    (tmp_path / manifest.NAME).write_text(json.dumps(record))
    read = manifest.read(tmp_path)
    assert read is not None
    assert ("resume" in read.options.features) is resumes


def recorded_features(package: Path) -> object:
    """The features that the manifest of a package records."""
    return json.loads((package / manifest.NAME).read_text())["options"].get("features")


def test_an_update_of_an_earlier_package_keeps_its_features(tmp_path: Path) -> None:
    words = ("-r", MIDDLE, "--parts", "server", "--transport", "stdio", "-o", "pkg")
    package = tmp_path / "pkg"
    assert run(*words, cwd=tmp_path).code == 0
    assert recorded_features(package) == ["none", *OF_SERVER]
    (package / manifest.NAME).write_text(json.dumps(EARLIER))
    done = run("update", "pkg", "--force", cwd=tmp_path)
    assert (done.code, "no longer has" in done.out) == (0, False)
    assert all((package / path).is_file() for path in OF_SERVERS.values())
    done = run(*words, cwd=tmp_path)
    assert "no longer has completions, visibility, state; name these features" in done.out
    assert not (package / OF_SERVERS["visibility"]).exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("dict",), "--features: expected prompts, "),
        (("+auth", "mount"), "--features: expected + or - before each name"),
        (("+keys",), "--features: expected prompts, "),
        (("-none",), "--features: expected prompts, "),
        (("all", "none"), "--features: expected all or none, got both"),
        (("+apps", "-resources"), "--features: resources comes with apps, got -resources"),
    ],
)
def test_words_for_features_are_checked(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(UsageError, match="--features") as caught:
        selection(features=changed_features((), words))
    assert str(caught.value).startswith(text)


def test_a_feature_without_its_part_is_refused() -> None:
    facts = [spec_of(NEWEST).facts]
    for part, name, needs in (
        ("server", "groups", "client"),
        ("client", "prompts", "server"),
        ("types", "trace", "client or server"),
        ("client", "inspector", "client and http and server"),
    ):
        with pytest.raises(UsageError) as caught:
            features(selection((part,), features=(name,)), facts)
        assert str(caught.value) == f"--features: {name} needs {needs} in the package"


def test_the_manifest_records_features_and_update_changes_them(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    done = run("-r", MIDDLE, "--parts", "protocol", "-o", "protocol_pkg", cwd=tmp_path)
    assert "help(Connection)" in done.out
    done = run("-r", MIDDLE, "--parts", "client", "-o", "pkg", cwd=tmp_path)
    assert done.out.endswith('next: python -c "from pkg import connect; help(connect)"\n')
    assert recorded_features(package) == ["none", "returns"]
    for words, expected in (
        (("--parts", "client,server"), ["none", *DEFAULTS]),
        (("--parts", "server", "--transport", "stdio"), ["none", *OF_SERVER]),
        (("--features", "+openapi"), ["none", *OF_SERVER, "openapi"]),
        (("--features", "all"), None),
        (("--features", "none"), ["none"]),
        (("--features", "+prompts"), ["none", "prompts"]),
    ):
        done = run("update", "pkg", *words, cwd=tmp_path)
        assert done.code == 0
        assert ("import Server; help(Server)" in done.out) is (words[1] in ("none", "+prompts"))
        assert ("optional: pip install google-re2 rich " in done.out) is (words[1] == "all")
        assert recorded_features(package) == expected
        assert run("check", "pkg", cwd=tmp_path).code == 0
        has_openapi = expected is None or "openapi" in expected
        assert (package / "server/openapi/openapi_server.py").is_file() is has_openapi


def test_a_project_names_features_as_the_option_does(tmp_path: Path) -> None:
    table = f'[tool.mcpgen]\noutput = "pkg"\nrevisions = ["{MIDDLE}"]\nparts = ["server"]\n'
    for words, expected in (
        ('"none", "prompts", "serve"', ["prompts", "serve"]),
        ('"-prompts"', ["resources", "serve"]),
        ('"direct"', [*OF_SERVER, "direct"]),
    ):
        features = f'transports = ["stdio"]\nfeatures = [{words}]\n'
        (tmp_path / "pyproject.toml").write_text(table + features)
        assert run("check", cwd=tmp_path).code == (1 if (tmp_path / "pkg").exists() else 2)
        assert (run(cwd=tmp_path).code, run("check", cwd=tmp_path).code) == (0, 0)
        assert recorded_features(tmp_path / "pkg") == ["none", *expected]


def test_a_new_server_has_the_features_that_it_uses(tmp_path: Path) -> None:
    words = ("new", "server", "weather", "-q", "-r", MIDDLE, "--features", "none")
    assert run(*words, "--transport", "stdio", cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    settings = (project / "pyproject.toml").read_text("utf-8")
    assert 'features = ["config", "-serve", "-returns"]' in settings
    assert run("check", "weather", cwd=tmp_path).code == 0
    assert run_python("-m", "pytest", "-q", cwd=project, paths=(project / "src",)).code == 0


def test_git_is_told_what_is_generated_unless_an_option_says_no(tmp_path: Path) -> None:
    words = ("-r", MIDDLE, "--parts", "types", "-o", "pkg")
    assert run(*words, cwd=tmp_path).code == 0
    attributes = tmp_path / "pkg/.gitattributes"
    assert attributes.read_text() == "* linguist-generated\n"
    assert "unchanged" in run("update", "pkg", cwd=tmp_path).out
    done = run(*words, "--no-gitattributes", cwd=tmp_path)
    assert "changed: 1 other rendered, 1 manifest" in done.out
    assert not attributes.exists()
    assert run("update", "pkg", cwd=tmp_path).code == 0
    assert not attributes.exists()


def test_each_feature_stands_in_the_table_of_the_documents() -> None:
    cells = {row[0] for row in documents.tables_of(ROOT / "docs/parts.md")}
    assert {f"`{name}`" for name in NAMES} <= cells


def size_of(files: Mapping[str, str]) -> str:
    """The size of a package, as the documents have it."""
    modules = [text for path, text in files.items() if path.endswith((".py", ".pyi"))]
    lines = sum(len(text.splitlines()) for text in modules)
    return f"{len(files)} files, {round(lines, -2):,} lines"


@pytest.mark.parametrize(
    ("row", "parts", "transports"),
    [
        ("`server`, stdio", "server", "stdio"),
        ("`server`, HTTP", "server", "http"),
        ("`client`", "client", "all"),
        ("client and server", "all", "all"),
    ],
)
def test_the_documented_sizes_are_those_of_packages(row: str, parts: str, transports: str) -> None:
    rows = documents.tables_of(ROOT / "docs/parts.md")
    [cells] = [each[1:] for each in rows if each[0] == row and "files" in each[1]]
    for cell, words in zip(cells, (NONE, (), ("all",)), strict=True):
        files = render_selection(parts, transports, (MIDDLE,), features=words)
        assert cell == size_of(files)


@pytest.mark.parametrize("parts", ["types", "server", "client", "all"])
def test_the_sizes_in_the_readme_are_those_of_packages(parts: str) -> None:
    name = "`all`, the default" if parts == "all" else f"`{parts}`"
    [cells] = [each for each in documents.tables_of(documents.README) if each[1] == name]
    for cell, runtime in zip(cells[2:4], ("", "installed"), strict=True):
        files = render_selection(parts, "all", (MIDDLE,), features=(), runtime=runtime)
        assert cell == size_of(files)


LISTENS = """
import sys
import anyio, pkg
from kit.asgi_client import Http

def first() -> str:
    return "text"

async def main():
    server = pkg.Server("streams", "1")
    server.add_tool(first)
    app = server.asgi()
    async with anyio.create_task_group() as tasks:
        http = Http(app, tasks, "/mcp")
        await http.initialize(sys.argv[1])
        async with http.stream("GET", fields={"last-event-id": "unknown-1"}) as stream:
            server.add_tool(main)
            await stream.message()
            print(stream.status, stream.raw)
    await app.end()

anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("revision", [MIDDLE, LAST_WITH_SESSIONS])
def test_a_stream_by_get_has_no_ids_and_resumes_nothing(
    tmp_path: Path, revision: str, backend: str
) -> None:
    files = rendered("server", "http", (revision,), features=())
    assert "server/asgi/event_store.py" not in files
    write_package(files, tmp_path)
    event = b'data: {"method":"notifications/tools/list_changed","jsonrpc":"2.0"}\n\n'
    shown = output_of(LISTENS, revision, backend, cwd=tmp_path, paths=(TESTS, PACKAGE.parent))
    assert shown == f"200 {event!r}\n"
