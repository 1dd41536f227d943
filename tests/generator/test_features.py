"""Features that are chosen: what a package has without them, and what using one says then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.command_line import run
from generator.selections import LAST_WITH_SESSIONS, MIDDLE, NEWEST, made, spec_of, written
from mcpgen.errors import UsageError
from mcpgen.model import exports, parts
from mcpgen.model.parts import FEATURES, changed_features, features, selection
from mcpgen.package import manifest

NAMES = tuple(each.name for each in FEATURES)
NONE = ("none",)

SIZES = {
    ("server", "stdio"): (66, 19_070),
    ("server", "http"): (82, 24_550),
    ("client", "all"): (85, 21_950),
    ("all", "all"): (128, 36_670),
}
"""The most files and lines of a package of one revision without features, headers included."""


@pytest.mark.parametrize(("choice", "limits"), SIZES.items(), ids=lambda value: str(value))
def test_a_package_without_features_is_small(
    choice: tuple[str, str], limits: tuple[int, int]
) -> None:
    files = made(*choice, (MIDDLE,), features=NONE)
    assert len(files) <= limits[0]
    assert (
        sum(text.count("\n") for path, text in files.items() if path.endswith((".py", ".pyi")))
        <= limits[1]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_feature_adds_its_public_names_alone(name: str) -> None:
    facts = [spec_of(LAST_WITH_SESSIONS).facts]
    without = features(selection(features=NONE), facts)
    chosen = features(selection(features=[name]), facts)
    added = {each for row in exports.exports_of(chosen, unset=True) for each in row.names}
    added -= {each for row in exports.exports_of(without, unset=True) for each in row.names}
    brought = chosen.chosen
    assert added == {each for each, of in exports.missing(without).items() if of in brought}
    assert name in brought
    assert {each.name for each in chosen.absent} == set(NAMES) - brought


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
for member in sys.argv[3].split(","):
    try:
        getattr(server, member)()
    except AttributeError as error:
        errors.append(str(error))
for member in sys.argv[4].split(","):
    try:
        getattr(pkg.Context, member)("text")
    except AttributeError as error:
        errors.append(str(error))
try:
    server.tool("a", visibility=["app"])
except TypeError as error:
    errors.append(str(error))
try:
    pkg.Server("one", discovery="search")
except TypeError as error:
    errors.append(str(error))
try:
    server.tool("a", input_schema={"type": "object", "minProperties": 1})(lambda **arguments: "")
except pkg.MissingExtraError as error:
    errors.append(str(error))
try:
    with pkg.connect_sync([sys.executable, "-c", "input()"], restart=True):
        pass
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


def test_what_was_not_chosen_says_how_to_add_it(tmp_path: Path) -> None:
    folder = written(made("all", "all", (NEWEST,), features=NONE), tmp_path)
    missing = exports.missing(features(selection(features=NONE), [spec_of(NEWEST).facts]))
    members = {member: each.name for each in FEATURES for member in each.server_members}
    of_context = {member: each.name for each in FEATURES for member in each.context_members}
    command = [sys.executable, "-I", "-c", USES_EACH, str(folder), ",".join(missing)]
    done = subprocess.run(
        [*command, ",".join(members), ",".join(of_context)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    expected = [of for of in missing.values() for _ in range(2)]
    expected += [*members.values(), *of_context.values()]
    expected += ["apps", "discovery", "schemas", "restart", "groups", "auth"]
    assert len(told) == len(expected)
    for line, feature in zip(told, expected, strict=True):
        assert line.endswith(
            f" comes with the feature {feature}, which this package was generated without:"
            f" mcpgen update pkg --features +{feature}"
        )


@pytest.mark.parametrize(
    ("option", "name", "feature", "module"),
    [
        ("sessions='sealed'", "sessions='sealed'", "scaling", "sealed_sessions"),
        ("shared='redis://127.0.0.1/0'", "shared=", "shared", "shared_sessions"),
    ],
)
def test_ways_to_share_sessions_that_were_not_chosen_are_errors(
    option: str, name: str, feature: str, module: str, tmp_path: Path
) -> None:
    files = made("server", "http", (MIDDLE,), features=NONE)
    assert not [path for path, text in files.items() if module in path + text]
    folder = written(files, tmp_path)
    code = f"""
import sys
sys.path.insert(0, {str(folder)!r})
import pkg
pkg.Server("a", state_key=b"k" * 32).asgi({option})
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stderr.splitlines()[-1] == (
        f"ValueError: {name} comes with the feature {feature}, which this package was"
        f" generated without: mcpgen update pkg --features +{feature}"
    )


def test_a_trace_that_nothing_writes_is_an_error(tmp_path: Path) -> None:
    folder = written(made("server", "stdio", (MIDDLE,), features=NONE), tmp_path)
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
        ((), (), ()),
        (("auth",), ("groups,mount",), ("groups", "mount")),
        (("auth",), ("+mount",), ("auth", "mount")),
        (("auth", "mount"), ("-auth",), ("mount",)),
        (("auth",), ("-auth",), ("none",)),
        (("all",), ("-auth, -proxy",), tuple(n for n in NAMES if n not in ("auth", "proxy"))),
    ],
)
def test_an_update_replaces_adds_or_removes_features(
    before: tuple[str, ...], words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert changed_features(before, words) == expected


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("dict",), "--features: expected auth, "),
        (("+auth", "mount"), "--features: expected + or - before each name"),
        (("+keys",), "--features: expected auth, "),
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
    assert json.loads(record.read_text())["options"]["features"] == []
    assert not (tmp_path / "pkg/server/openapi").exists()
    assert run("update", "pkg", "--features", "+openapi").code == 0
    assert json.loads(record.read_text())["options"]["features"] == ["openapi"]
    assert (tmp_path / "pkg/server/openapi/openapi_server.py").is_file()
    assert run("check", "pkg").code == 0
    assert run("update", "pkg", "--features", "all").code == 0
    assert "features" not in json.loads(record.read_text())["options"]
    assert run("update", "pkg", "--features", "none").code == 0
    assert not (tmp_path / "pkg/server/openapi").exists()


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
    for feature in parts.FEATURES:
        assert f"| `{feature.name}` |" in text


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
            client.cache.clear()

asyncio.run(main())
"""


@pytest.mark.parametrize("revision", [MIDDLE, NEWEST])
def test_a_client_sends_its_header_fields_with_and_without_cache(
    tmp_path: Path, revision: str
) -> None:
    folder = written(made("all", "all", (revision,), features=NONE), tmp_path)
    assert (folder / "pkg/client/response_cache.py").exists() is (revision == NEWEST)
    done = subprocess.run(
        [sys.executable, "-c", SENDS_HEADERS, str(folder)],
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
    written(made("all", "all", (NEWEST,), features=NONE), folder)
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
