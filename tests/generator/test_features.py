"""Features that are chosen: what a package has without them, and what using one says then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import documents
from generator.command_line import run
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
from mcpgen.model.choice import changed_features, selection, short_words
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import features
from mcpgen.package import manifest

pytestmark = pytest.mark.processes

NAMES = tuple(each.name for each in FEATURES)
DEFAULTS = tuple(each.name for each in FEATURES if each.is_default)
OF_SERVER = tuple(name for name in DEFAULTS if name != "returns")
"""The default features of a server."""
FORMER_DEFAULTS = tuple(each.name for each in FEATURES if each.was_default)
NONE = ("none",)

SIZES = {
    ("server", "stdio", NONE): (59, 15_000),
    ("server", "http", NONE): (74, 19_600),
    ("client", "all", NONE): (79, 17_850),
    ("all", "all", NONE): (116, 28_800),
    ("server", "stdio", ()): (65, 16_300),
    ("server", "http", ()): (81, 21_050),
    ("all", "all", ()): (124, 30_400),
}
"""The most files and lines of a package of one revision, headers included: without features, and
with the default ones.
"""


@pytest.mark.parametrize(("choice", "limits"), SIZES.items(), ids=lambda value: str(value))
def test_a_package_of_few_features_is_small(
    choice: tuple[str, str, tuple[str, ...]], limits: tuple[int, int]
) -> None:
    parts, transports, words = choice
    files = render_selection(parts, transports, (MIDDLE,), features=words)
    assert len(files) <= limits[0]
    assert (
        sum(text.count("\n") for path, text in files.items() if path.endswith((".py", ".pyi")))
        <= limits[1]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_feature_adds_its_public_names_alone(name: str) -> None:
    facts = [spec_of(LAST_WITH_SESSIONS).facts]
    without = features(selection(features=NONE), facts)
    chosen = features(selection(features=["none", name]), facts)
    added = {each for row in exports.exports_of(chosen, unset=True) for each in row.names}
    added -= {each for row in exports.exports_of(without, unset=True) for each in row.names}
    brought = chosen.chosen
    owners: dict[str, list[set[str]]] = {}
    for row in exports.EXPORTS:
        needed = [set(part.split("+")) & {*NAMES} for part in row.parts]
        owners |= {each: owners.get(each, []) + needed for each in row.names}
    missing = exports.missing_names(without)
    assert added == {each for each in missing if any(own <= brought for own in owners[each])}
    assert name in brought
    assert {each.name for each in chosen.absent} == set(NAMES) - brought


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
import asyncio, importlib, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
revision = sys.argv[2]

def tool(name: str) -> str:
    return f"Hello {name}"

async def prompt(name: str) -> str:
    return f"Greet {name}"

async def resource() -> str:
    return "text"

async def completion(value: str) -> list[str]:
    return [value + "1"]

def messages(pkg):
    about = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": about}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in params.items()}
    common = {}
    if "initialize" in pkg.REVISIONS[revision].client_requests:
        yield {"id": 0, "method": "initialize", "params": params}
        yield {"method": "notifications/initialized"}
    else:
        common["_meta"] = {
            key.replace("/capabilities", "/clientCapabilities"): each for key, each in meta.items()
        }
    ref = {"type": "ref/prompt", "name": "prompt"}
    argument = {"name": "name", "value": "a"}
    for number, (method, own) in enumerate({
        "tools/list": {},
        "tools/call": {"name": "tool", "arguments": {"name": "Ada"}},
        "prompts/get": {"name": "prompt", "arguments": {"name": "Ada"}},
        "resources/read": {"uri": "x://y"},
        "completion/complete": {"ref": ref, "argument": argument},
    }.items(), 1):
        yield {"id": number, "method": method, "params": {**own, **common}}

async def served(pkg):
    server = pkg.Server("tools")
    server.add_tool(tool)
    for add, *arguments in (("add_prompt", prompt), ("add_resource", resource, "x://y")):
        try:
            getattr(server, add)(*arguments)
        except AttributeError:
            pass
    try:
        server.completion(argument="name", prompt="prompt")(completion)
    except AttributeError:
        pass
    if "Completion" in dir(pkg):
        assert pkg.Completion(["a"]).values == ["a"]
    answers = {}

    class Lines(pkg.Channel):
        waiting = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in messages(pkg)]

        async def receive(self):
            if not self.waiting:
                while len(answers) < 5:
                    await asyncio.sleep(0)
                raise importlib.import_module(pkg.__name__ + ".channel").EndOfChannel
            return self.waiting.pop(0)

        async def send(self, message):
            if message.is_response and message.id:
                answers[message.id] = json.loads(message.data)

        async def close(self): ...

    await server.serve(Lines())
    assert [each["name"] for each in answers[1]["result"]["tools"]] == ["tool"]
    assert answers[2]["result"]["content"][0]["text"] == "Hello Ada"
    return ["result" in answers[number] for number in (3, 4, 5)]

async def main():
    for name in sys.argv[3:]:
        pkg = importlib.import_module(name)
        for module in pkgutil.walk_packages(pkg.__path__, f"{name}."):
            importlib.import_module(module.name)
        print(name, *await served(pkg))

asyncio.run(main())
"""


@pytest.mark.parametrize("revision", [OLDEST, MIDDLE, NEWEST])
def test_each_feature_can_be_left_out_or_be_the_only_one(tmp_path: Path, revision: str) -> None:
    choices = {"none": NONE, "defaults": ()}
    choices |= {f"only_{name}": ("none", name) for name in OF_SERVERS}
    choices |= {f"no_{name}": (*OF_SERVERS, f"-{name}") for name in OF_SERVERS}
    expected: list[str] = []
    for name, words in choices.items():
        files = rendered("server", "stdio", (revision,), features=words)
        write_package(files, tmp_path, name)
        own = features(selection(features=words), [spec_of(revision).facts]).chosen
        assert {each for each, path in OF_SERVERS.items() if path in files} - {"state"} == (
            own - {"returns", "state"}
        )
        assert (OF_SERVERS["state"] in files) is bool(own & {"state", "visibility"})
        serves = [each in own for each in ("prompts", "resources")]
        serves.append({"prompts", "completions"} <= own)
        expected.append(" ".join([name, *map(str, serves)]))
    command = [sys.executable, "-I", "-c", SERVES_TOOLS, str(tmp_path), revision, *choices]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


USES_EACH = """
import sys
sys.path.insert(0, sys.argv[1])
import pkg
errors = []
for name in sys.argv[2].split(","):
    for kind in (lambda: getattr(pkg, name), lambda: exec(f"from pkg import {name}")):
        try:
            kind()
        except (AttributeError, ImportError) as error:
            errors.append(f"{type(error).__name__}: {error}")
server = pkg.Server("one")
context = object.__new__(pkg.Context)
for owner, members in ((server, sys.argv[3]), (context, sys.argv[4])):
    for member in members.split(","):
        assert not hasattr(type(owner), member) and member not in dir(owner), member
        try:
            getattr(owner, member)
        except AttributeError as error:
            errors.append(str(error))
for call in sys.argv[5].split(","):
    function, keyword = call.split(".")
    try:
        {"Server": pkg.Server, "tool": server.tool}[function]("a", **{keyword: True})
    except TypeError as error:
        errors.append(str(error))
try:
    pkg.connect([sys.executable, "-c", "input()"], restart=True)
except TypeError as error:
    errors.append(str(error))
try:
    pkg.connect({"mcpServers": {}})
except TypeError as error:
    errors.append(str(error))
try:
    server.asgi(auth=pkg)
except TypeError as error:
    errors.append(str(error))
print(*errors, sep="\\n")
"""


def test_errors_for_absent_features_say_how_to_add_them(tmp_path: Path) -> None:
    folder = write_package(render_selection("all", "all", (NEWEST,), features=NONE), tmp_path)
    missing = exports.missing_names(features(selection(features=NONE), [spec_of(NEWEST).facts]))
    none = features(selection(features=NONE), [spec_of(NEWEST).facts])
    members, of_context = none.absent_members("server"), none.absent_members("context")
    options = {
        option: feature
        for option, feature in none.absent_options.items()
        if option.startswith(("Server.", "tool."))
    }
    command = [sys.executable, "-I", "-c", USES_EACH, str(folder), ",".join(missing)]
    done = subprocess.run(
        [*command, ",".join(members), ",".join(of_context), ",".join(options)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    expected = [of for of in missing.values() for _ in range(2)]
    expected += [*members.values(), *of_context.values(), *options.values()]
    expected += ["restart", "groups", "auth"]
    assert len(told) == len(expected)
    for line, feature in zip(told, expected, strict=True):
        assert line.endswith(
            f" comes with the feature {feature}, which this package was generated without:"
            f" mcpgen update pkg --features +{feature}"
        )


USES_A_CLIENT = """
import inspect, sys
sys.path.insert(0, sys.argv[1])
import pkg
members, options, of_calls = (each.split(",") for each in sys.argv[2:5])
assert not [each for each in (*members, "ask_for_logs", "cache") if hasattr(pkg.Client, each)]
assert not inspect.signature(pkg.Client.call_tool).parameters.keys() & {*of_calls}
for option in options:
    try:
        pkg.connect(["server"], **{option: True})
    except TypeError as error:
        print(error)
"""


def test_a_client_has_no_member_and_no_option_without_effect(tmp_path: Path) -> None:
    files = render_selection("client", "all", (MIDDLE,), features=NONE)
    folder = write_package(files, tmp_path)
    none = features(selection(("client",), features=NONE), [spec_of(MIDDLE).facts])
    options = {
        function: [each for each in none.absent_options if each.startswith(f"{function}.")]
        for function in ("connect", "call_tool")
    }
    words = [
        ",".join(none.absent_members("client")),
        *(",".join(each.rpartition(".")[2] for each in names) for names in options.values()),
    ]
    command = [sys.executable, "-I", "-c", USES_A_CLIENT, str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split(" which ")[0] for line in done.stdout.splitlines()] == [
        f"connect: {each.rpartition('.')[2]}= comes with the feature {none.absent_options[each]},"
        for each in options["connect"]
    ]
    assert options["connect"]
    assert options["call_tool"]


@pytest.mark.parametrize(
    ("option", "name", "feature", "module"),
    [
        ("sessions='sealed'", "sessions=", "scaling", "sealed_sessions"),
        ("shared='redis://127.0.0.1/0'", "shared=", "shared", "shared_endpoint"),
    ],
)
def test_ways_to_share_sessions_that_were_not_chosen_are_errors(
    option: str, name: str, feature: str, module: str, tmp_path: Path
) -> None:
    files = render_selection("server", "http", (MIDDLE,), features=NONE)
    assert not [path for path, text in files.items() if module in path + text]
    folder = write_package(files, tmp_path)
    code = f"""
import sys
sys.path.insert(0, {str(folder)!r})
import pkg
pkg.Server("a").asgi({option})
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stderr.splitlines()[-1] == (
        f"TypeError: server.asgi: {name} comes with the feature {feature}, which this package was"
        f" generated without: mcpgen update pkg --features +{feature}"
    )


def test_a_trace_that_nothing_writes_is_an_error(tmp_path: Path) -> None:
    folder = write_package(render_selection("server", "stdio", (MIDDLE,), features=NONE), tmp_path)
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import pkg; pkg.Server('a').run()"
    environment = {"MCP_TRACE": str(tmp_path / "trace.jsonl")}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        input="",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MCP_TRACE comes with the feature trace" in done.stderr
    assert not (tmp_path / "trace.jsonl").exists()


@pytest.mark.parametrize(
    ("before", "words", "expected"),
    [
        (("all",), (), ("all",)),
        ((), (), ("none", *DEFAULTS)),
        (("none", "auth"), (), ("none", "auth")),
        (("none", "auth"), ("groups,mount",), ("none", *DEFAULTS, "groups", "mount")),
        (("none", "auth"), ("none,skills",), ("none", "skills")),
        (("none", "auth"), ("+mount",), ("none", "auth", "mount")),
        (("none", "auth", "mount"), ("-auth",), ("none", "mount")),
        (("none", "auth"), ("-auth",), ("none",)),
        (
            ("none", *DEFAULTS),
            ("-prompts,+auth",),
            ("none", "resources", "serve", "auth", "returns"),
        ),
        (("none", "auth"), ("+prompts",), ("none", "prompts", "auth")),
        (("none", "resources"), ("-auth",), ("none", "resources")),
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
        (("none",), ()),
        (("none,auth",), ("auth",)),
        (("none", "prompts"), ("prompts",)),
        (("-prompts",), tuple(name for name in DEFAULTS if name != "prompts")),
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


@pytest.mark.parametrize(
    "words",
    [
        ("none",),
        ("none", "prompts", "auth"),
        ("-prompts",),
        ("auth", "-serve"),
        ("all",),
        ("all", "-auth"),
    ],
)
def test_features_are_written_in_few_words(words: tuple[str, ...]) -> None:
    assert short_words(selection(features=words).features) == words


def test_a_client_has_one_default_feature() -> None:
    facts = [spec_of(NEWEST).facts]
    chosen = selection(("client",), features=("trace",))
    assert features(chosen, facts).chosen == {"returns", "trace"}


EARLIER = json.loads((Path(__file__).parent / "earlier_manifest.json").read_text())
"""The manifest of a server over stdio, written when more features were default ones."""

OLD_NONE = [f"-{each.name}" for each in FEATURES if each.name in OF_SERVERS]
KEPT = {*DEFAULTS, *FORMER_DEFAULTS}
ALWAYS = KEPT - {*OF_SERVERS}
"""Features that earlier packages could not be without."""


@pytest.mark.parametrize(
    ("part", "recorded", "expected"),
    [
        ("all", [], KEPT),
        ("all", ["auth"], KEPT | {"auth"}),
        ("all", ["-prompts", "-state"], KEPT - {"prompts", "state"}),
        ("all", OLD_NONE, ALWAYS),
        ("all", ["auth", *OLD_NONE], ALWAYS | {"auth"}),
        ("all", ["trace", *OLD_NONE], ALWAYS | {"trace"}),
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


def test_an_update_of_an_earlier_package_keeps_its_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("-r", MIDDLE, "--parts", "server", "--transport", "stdio", "-o", "stdio")
    assert run(*words).code == 0
    record = tmp_path / "stdio" / manifest.NAME
    assert json.loads(record.read_text())["options"]["features"] == ["none", *OF_SERVER]
    record.write_text(json.dumps(EARLIER))
    done = run("update", "stdio", "--force")
    assert done.code == 0
    assert "no longer has" not in done.out
    for path in OF_SERVERS.values():
        assert (tmp_path / "stdio" / path).is_file()
    done = run(*words)
    assert "no longer has completions, visibility, state; name these features" in done.out
    assert not (tmp_path / "stdio" / OF_SERVERS["visibility"]).exists()


def test_a_server_beside_a_client_has_the_default_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("-r", MIDDLE, "--parts", "client", "-o", "pkg").code == 0
    record = tmp_path / "pkg" / manifest.NAME
    assert json.loads(record.read_text())["options"]["features"] == ["none", "returns"]
    assert run("update", "pkg", "--parts", "client,server").code == 0
    assert json.loads(record.read_text())["options"]["features"] == ["none", *DEFAULTS]


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


def test_the_manifest_records_features_and_update_changes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("-r", MIDDLE, "--parts", "server", "--transport", "stdio", "-o", "pkg").code == 0
    record = tmp_path / "pkg" / manifest.NAME
    assert json.loads(record.read_text())["options"]["features"] == ["none", *OF_SERVER]
    assert not (tmp_path / "pkg/server/openapi").exists()
    assert run("update", "pkg", "--features", "+openapi").code == 0
    recorded = json.loads(record.read_text())["options"]["features"]
    assert recorded == ["none", *OF_SERVER, "openapi"]
    assert (tmp_path / "pkg/server/openapi/openapi_server.py").is_file()
    assert run("check", "pkg").code == 0
    assert run("update", "pkg", "--features", "all").code == 0
    assert "features" not in json.loads(record.read_text())["options"]
    assert run("update", "pkg", "--features", "none").code == 0
    assert not (tmp_path / "pkg/server/openapi").exists()
    assert run("update", "pkg", "--features", "+prompts").code == 0
    assert json.loads(record.read_text())["options"]["features"] == ["none", "prompts"]


def test_a_project_names_features_as_the_option_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = f'[tool.mcpgen]\noutput = "pkg"\nrevisions = ["{MIDDLE}"]\nparts = ["server"]\n'
    table += 'transports = ["stdio"]\n'
    for words, expected in (
        ('"none", "prompts", "serve"', ["prompts", "serve"]),
        ('"-prompts"', ["resources", "serve"]),
        ('"direct"', [*OF_SERVER, "direct"]),
    ):
        (tmp_path / "pyproject.toml").write_text(f"{table}features = [{words}]\n")
        assert run("check").code == (1 if (tmp_path / "pkg").exists() else 2)
        assert run().code == 0
        assert run("check").code == 0
        recorded = json.loads((tmp_path / "pkg" / manifest.NAME).read_text())["options"]["features"]
        assert recorded == ["none", *expected]


USES_ALL = """
import sys
sys.path.insert(0, sys.argv[1])
from weather.server import server
assert {*server._dispatcher.handlers} >= {"tools/call", "resources/read", "prompts/get"}
"""


def test_a_new_server_has_the_features_that_it_uses(tmp_path: Path) -> None:
    words = ("new", "server", "weather", "-q", "-r", MIDDLE, "--features", "none")
    assert run(*words, "--transport", "stdio", cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    settings = (project / "pyproject.toml").read_text("utf-8")
    assert 'features = ["config", "-serve", "-returns"]' in settings
    assert run("check", "weather", cwd=tmp_path).code == 0
    command = [sys.executable, "-c", USES_ALL, str(project / "src")]
    subprocess.run(command, check=True, cwd=tmp_path)


def test_git_is_told_what_is_generated_unless_a_setting_says_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("-r", MIDDLE, "--parts", "types", "-o", "pkg")
    assert run(*words).code == 0
    attributes = tmp_path / "pkg/.gitattributes"
    assert attributes.read_text() == "* linguist-generated\n"
    done = run(*words, "--no-gitattributes")
    assert "changed: 1 other rendered, 1 manifest" in done.out
    assert not attributes.exists()
    assert run("update", "pkg").code == 0
    assert not attributes.exists()
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.mcpgen]\noutput = "pkg"\nrevisions = ["{MIDDLE}"]\nparts = ["types"]\n'
    )
    assert run().code == 0
    assert attributes.exists()


def test_each_feature_stands_in_the_table_of_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs/parts.md").read_text("utf-8")
    for feature in FEATURES:
        assert f"| `{feature.name}` |" in text


DOCUMENTED = {
    "`server`, stdio": ("server", "stdio"),
    "`server`, HTTP": ("server", "http"),
    "`client`": ("client", "all"),
    "client and server": ("all", "all"),
}
"""The rows of the table of sizes in docs/parts.md."""


@pytest.mark.parametrize("row", DOCUMENTED)
def test_the_documented_sizes_are_those_of_packages(row: str) -> None:
    text = (Path(__file__).parents[2] / "docs/parts.md").read_text("utf-8")
    [line] = [
        each for each in text.splitlines() if each.startswith(f"| {row} |") and "files" in each
    ]
    none, default, every = line.strip("| ").split(" | ")[1:]
    for cell, words in ((none, NONE), (default, ()), (every, ("all",))):
        files = render_selection(*DOCUMENTED[row], (MIDDLE,), features=words)
        modules = [text for path, text in files.items() if path.endswith((".py", ".pyi"))]
        lines = round(sum(text.count("\n") for text in modules), -2)
        if cell != "the same":
            assert cell == f"{len(files)} files, {lines:,} lines"


IN_README = {
    "`types`": ("types", "all"),
    "`server`": ("server", "all"),
    "`client`": ("client", "all"),
    "`all`, the default": ("all", "all"),
}
"""The rows of the table of sizes in the README by their second cell."""


@pytest.mark.parametrize("row", IN_README)
@pytest.mark.parametrize(("column", "runtime"), [(2, ""), (3, "installed")])
def test_the_sizes_in_the_readme_are_those_of_packages(row: str, column: int, runtime: str) -> None:
    [cells] = [each for each in documents.tables_of(documents.README) if each[1] == row]
    files = render_selection(*IN_README[row], (MIDDLE,), features=(), runtime=runtime)
    modules = [text for path, text in files.items() if path.endswith((".py", ".pyi"))]
    lines = round(sum(text.count("\n") for text in modules), -2)
    assert cells[column] == f"{len(files)} files, {lines:,} lines"


SENDS_HEADERS = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import httpx2
from pkg import Context, Server, connect

server = Server("one")

@server.tool
async def tenant(ctx: Context) -> str:
    return ctx.http_request.headers["x-tenant"]

async def same():
    return {"x-tenant": "b"}

async def main():
    for headers in ({"x-tenant": "a"}, same):
        transport = httpx2.ASGITransport(server.asgi(hosts=["app"]))
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            connect("http://app/mcp", http_client=http, headers=headers) as client,
        ):
            print(await client.call_tool("tenant", returns=str))
            assert hasattr(client, "cache") == (sys.argv[2] == "cached")

asyncio.run(main())
"""


@pytest.mark.parametrize("revision", [MIDDLE, NEWEST])
def test_a_client_sends_its_header_fields_with_and_without_cache(
    tmp_path: Path, revision: str
) -> None:
    files = render_selection("all", "all", (revision,), features=("none", "returns"))
    folder = write_package(files, tmp_path)
    assert (folder / "pkg/client/response_cache.py").exists() is (revision == NEWEST)
    word = "cached" if revision == NEWEST else "plain"
    done = subprocess.run(
        [sys.executable, "-c", SENDS_HEADERS, str(folder), word],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["a", "b"]


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from pkg import Server
server = Server("script")

@server.tool
def double(number: int) -> int:
    return 2 * number

server.run("stdio")
"""

USES_A_PATH = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pkg import Client, connect, connect_sync

async def main():
    async with connect(Path("server.py")) as client:
        assert isinstance(client, Client)
        print((await client.call_tool("double", {"number": 4})).structured_content)
    try:
        connect(Path("mcp.json"))
    except TypeError as error:
        print(error)

asyncio.run(main())
with connect_sync(Path("server.py")) as blocking:
    print([tool.name for tool in blocking.list_tools()])
"""


def test_a_path_of_a_script_is_run_without_features(tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    files = render_selection("all", "all", (NEWEST,), features=("none", "sync"))
    write_package(files, folder)
    (tmp_path / "server.py").write_text(SCRIPT.format(folder=str(folder)), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USES_A_PATH, str(folder)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    result, complaint, tools = done.stdout.splitlines()
    assert (result, tools) == ("{'result': 8}", "['double']")
    assert "a configuration of servers" in complaint
    assert "--features +groups" in complaint
