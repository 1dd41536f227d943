"""The command line: what it says, what it writes, how it ends."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, Installation, run, run_python
from generator.draft_packages import save_schema, with_request
from generator.schemas import TEXT
from mcpgen import __version__, cli, schema
from mcpgen.package import manifest
from mcpgen_runtime.__main__ import main

pytestmark = [pytest.mark.processes, pytest.mark.costly]

OLDEST, NEWEST = schema.revisions()[0].name, schema.revisions()[-1].name


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the width of the terminal, so that output is the same for whoever runs the tests."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["check", "--help"],
        ["list", "--help"],
        ["facts", "--help"],
        ["schema", "verify", "--help"],
        ["update", "--help"],
        ["doctor", "--help"],
        ["completion", "--help"],
        ["contract", "check", "--help"],
    ],
)
def test_help_shows_the_common_calls_first(words: list[str], snapshot: SnapshotAssertion) -> None:
    assert CliRunner().invoke(cli.cli, words, prog_name="mcpgen").output == snapshot


def test_it_shows_help_without_words_and_its_version() -> None:
    shown = [
        CliRunner().invoke(cli.cli, words, prog_name="mcpgen").output
        for words in ([], ["-h"], ["--help"])
    ]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0].startswith("Usage: mcpgen [OPTIONS]")
    assert run("--version") == Done(0, f"mcpgen {__version__}\n", "")
    assert gc.isenabled()


def test_list_shows_what_each_revision_has(snapshot: SnapshotAssertion) -> None:
    assert run("list").out == snapshot
    listed = json.loads(run("list", "--json").out)["revisions"]
    assert [row["revision"] for row in listed] == [row.name for row in schema.revisions()]
    assert listed[0]["transports"] == ["stdio", "HTTP+SSE"]
    assert listed[0]["client_sends"]["requests"] > 0


def test_list_shows_the_modules_of_a_package_by_room(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    assert run("-q", "-r", "2025-06-18", "--parts", "types", "-o", package).code == 0
    rows = [line.split() for line in run("list", "--modules", package).out.splitlines()]
    assert rows[0] == ["module", "lines", "imported", "by"]
    assert ["_structs.py", "_decoding.py"] in [row[::2] for row in rows]
    rooms = {row[0]: int(row[1]) for row in rows if row[0].endswith("/")}
    assert rooms.keys() == {"./", "r2025_06_18/"}
    assert rows[-1] == ["all", str(sum(rooms.values())), "12", "modules"]
    (package / "_structs.py").write_bytes(b"\xff")
    shown = f"mcpgen: error: {package}: 'utf-8' codec can't decode byte 0xff in position 0"
    assert run("list", "--modules", package).err.startswith(shown)


REFUSED = {
    "--bogus": "error: no such option '--bogus'",
    "--revison latest": "--revision",
    "chek pkg": "Did you mean",
    "schema": "expected a command; try mcpgen --help",
    "--revision latest": "expected the directory to write to",
    "-o pkg": "expected --revision R (a date, latest or all) or --schema FILE, got none",
    "--revision latest list": "options for generating go without list",
    f"--revision latest --facts a/{OLDEST}.json -o pkg": (
        "expected one --schema FILE with --facts, got --facts alone"
    ),
    f"--schema a/{OLDEST}.json --schema b/{OLDEST}.json --facts a/{OLDEST}.json -o pkg": (
        "expected one --schema FILE with --facts, got 2 of them"
    ),
    "--revision latest -o pkg --watch --json": "--json",
    "--schema nowhere -o pkg": "nowhere",
    f"--revision all --schema a/{OLDEST}.json -o pkg": (
        f"revision {OLDEST} comes twice: by --revision and --schema"
    ),
    f"--schema a/{OLDEST}.json --schema b/{OLDEST}.json -o pkg": "comes twice: by --schema twice",
    f"-r {OLDEST} --transport http -o pkg -q": "--transport: expected one that a chosen revision",
    f"-r {OLDEST} -q --runtime installed --decoding strict -o pkg": "expected --runtime vendored",
    "--force --trusted --watch": "expected --revision R or a pyproject.toml with [tool.mcpgen]",
    "update pkg": "pkg: expected a package of mcpgen's, got no mcpgen.json",
    f"-r {OLDEST} -o a": "expected an empty directory or a package of mcpgen's",
    f"-r {OLDEST} -o .": "-o . holds the current directory: run mcpgen from outside it",
    "list --modules a": "expected a package of mcpgen, got no mcpgen.json in it",
}


@pytest.mark.parametrize(("words", "text"), REFUSED.items())
def test_what_cannot_be_done_is_refused_in_one_line(words: str, text: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{OLDEST}.json").write_text("{}")
    done = run(*words.split(), cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.err.startswith("mcpgen: error: ")
    assert text in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_wrong_schema_is_one_line_with_file_pointer_and_code_2(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"$defs": {"X": {"$ref": "#/$defs/Y"}}}))
    ended = run("-q", "--schema", path, "-o", tmp_path / "pkg")
    expected = 'expected a reference to a definition, #/$defs/<name>, got "#/$defs/Y"'
    assert ended == Done(2, "", f"mcpgen: error: {path}#/$defs/X/$ref: {expected}\n")
    assert not (tmp_path / "pkg").exists()
    traced = run("--debug", "-q", "--schema", path, "-o", tmp_path / "pkg")
    assert traced.err.startswith("Traceback (most recent call last):\n")
    assert traced.err.endswith(ended.err)


def test_a_fault_of_our_own_is_one_line_too(installation: Installation) -> None:
    with (installation.package / "schema" / "__init__.py").open("a") as module:
        module.write("revisions = None\n")  # no input is known to fail like this
    done = installation.run("list")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("mcpgen: error: unexpected TypeError: ")


def test_an_interrupt_is_one_line_too(tmp_path: Path, root: Path) -> None:
    os.mkfifo(tmp_path / "schema.json")
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", "--schema", "schema.json", "-o", "pkg"],
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with (tmp_path / "schema.json").open("w"):  # opens when the process reads
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate()
    assert (process.returncode, shown) == (2, "\nmcpgen: error: interrupted\n")


def test_a_pipe_that_closes_early_is_no_fault(root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", "--help"],
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


def test_generating_says_what_was_written_and_what_to_do_next(tmp_path: Path) -> None:
    first = run("--revision", OLDEST, "-o", "out/pkg", cwd=tmp_path)
    record = json.loads((tmp_path / "out" / "pkg" / manifest.NAME).read_text())
    files = len(record["files"]) + 1
    assert first.code == 0
    assert first.out == (
        f"out/pkg: {files} files created ({OLDEST})\n"
        "install: pip install msgspec anyio uritemplate\n"
        "for HTTP also: pip install httpx2 uvicorn\n"
        "next: cd out && python -m pkg --help\n"
    )
    assert first.err == f"generating pkg ({OLDEST}) ...\n"
    again = run("--revision", OLDEST, "-o", "out/pkg", cwd=tmp_path)
    assert again.out == f"out/pkg: unchanged, {files} files ({OLDEST})\n"
    assert run("-q", "-r", OLDEST, "-o", "out/pkg", cwd=tmp_path) == Done(0, "", "")
    assert run("check", "-q", "out/pkg", cwd=tmp_path) == Done(0, "", "")


def test_a_schema_file_says_whose_facts_it_got(tmp_path: Path) -> None:
    document = json.loads((schema.entry(NEWEST).folder / "schema.json").read_text())
    document["$defs"]["Tool"]["properties"]["colour"] = {"type": "string"}
    (tmp_path / "next.json").write_text(json.dumps(document))
    ended = run("--schema", "next.json", "--parts", "types", "-o", "pkg", cwd=tmp_path)
    assert ended.code == 0
    count = len(schema.load(NEWEST).errata)
    corrected = f"next.json: {count} corrections of {NEWEST} applied"
    first, second, third, *_ = ended.out.splitlines()
    assert first == "next.json: taken as revision draft"
    assert second.startswith(f"facts: those of {NEWEST}, the nearest: ")
    assert re.search(r"(\d\d) of \1 methods, (\d+) of \2 definitions, ", second)
    assert ("changed" in second, third) == (False, corrected)
    (tmp_path / "own.toml").write_text(f'based_on = "{OLDEST}"\n')
    words = ("--schema", "next.json", "--facts", "own.toml", "--parts", "types", "-o", "other")
    based = f"facts: those of {OLDEST}, on which the facts file is based, changed by own.toml"
    assert run(*words, cwd=tmp_path).out.splitlines()[1] == based
    checked = run("check", "pkg", "--schema", "next.json", cwd=tmp_path)
    assert checked == Done(0, "pkg: up to date\n", "")


def test_guesses_and_odd_references_are_listed_and_refused_by_strict(tmp_path: Path) -> None:
    definitions = with_request("2025-11-25", "Paint", "tools/paint", Id=TEXT)
    definitions["PaintRequest"]["properties"]["id"] = {"$ref": "#/definitions/Id"}
    save_schema(tmp_path, definitions)
    words = ["--schema", "schema.json", "--parts", "types", "-o", "pkg"]
    lines = run(*words, cwd=tmp_path).out.splitlines()
    for begin in (
        "note: schema.json#/$defs/PaintRequest/properties/id: 1 reference such as #/definitions/Id",
        'guess: /capabilities/tools~1paint = "tools", beside the facts of 2025-11-25: ',
        'guess: /results/client/tools~1paint = ["EmptyResult"], beside the facts of 2025-11-25: ',
        "guess: /methods/tools~1paint = {}, beside the facts of 2025-11-25: ",
        "carried over: ",
    ):
        assert len([line for line in lines if line.startswith(begin)]) == 1, begin
    refused = run("--strict", *words, cwd=tmp_path).err
    expected = "expected a fact that --facts states, got the guess"
    assert f"error: schema.json#/results/client/tools~1paint: {expected}" in refused
    assert re.search(r" \(and \d+ more, which mcpgen facts lists\)$", refused.rstrip())
    stated = run("facts", "schema.json", cwd=tmp_path).out
    assert stated.startswith("# All facts that are used for the schema")
    own = tmp_path / "own.toml"
    own.write_text(stated.replace("polling = true  # carried over from 2025-11-25\n", ""))
    refused = run("--strict", *words, "--facts", "own.toml", cwd=tmp_path).err
    expected = "expected a fact that --facts states, got true, carried over from 2025-11-25\n"
    assert refused.endswith(f"error: schema.json#/http/polling: {expected}")
    own.write_text(stated)
    assert run("--strict", "-q", *words, "--facts", "own.toml", cwd=tmp_path) == Done(0, "", "")
    for fact in ("methods.ping2 = false", "defaults.Tool.nothing = 1"):
        own.write_text(fact)
        for command in (["facts", "schema.json"], words):
            refused = run(*command, "--facts", "own.toml", cwd=tmp_path).err
            assert f"own.toml#/{'/'.join(fact.split()[0].split('.'))}: " in refused


def test_an_update_repeats_what_the_manifest_says(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # the package and its schemas are of one project
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").touch()
    places = {name: f"schemas/{name}/schema.json" for name in (OLDEST, NEWEST)}
    for name, place in places.items():
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes((schema.entry(name).folder / "schema.json").read_bytes())
    words = [f"--schema={place}" for place in places.values()]
    first = run(*words, "--parts", "types", "-o", "acme/types", cwd=tmp_path)
    command = f"from acme.types.r{OLDEST.replace('-', '_')} import models; help(models)"
    assert first.out.splitlines()[-2:] == [
        "install: pip install msgspec",
        f'next: python -c "{command}"',
    ]
    package = tmp_path / "acme" / "types"
    record = json.loads((package / manifest.NAME).read_text())
    origins = {name: origin["schema"] for name, origin in record["revisions"].items()}
    assert origins == {name: f"../../{place}" for name, place in places.items()}
    before = {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    next(iter(before)).write_text("")
    assert run("update", "acme/types", cwd=tmp_path).code == 2
    assert "holds the current directory" in run("update", package, cwd=package).err
    assert run("-q", "update", "acme/types", "--force", cwd=tmp_path) == Done(0, "", "")
    assert before == {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    assert run("check", package).code == 0


def test_generating_and_updating_report_as_json(tmp_path: Path) -> None:
    words = ["--revision", OLDEST, "--parts", "types"]
    written = json.loads(run(*words, "-o", "pkg", "--json", cwd=tmp_path).out)
    assert "__init__.py" in written["created"]
    nothing = {key: list[str]() for key in ("updated", "removed", "notes", "changes")}
    named = {"directory": "pkg", "package": "pkg", "revisions": [OLDEST]}
    assert written == named | nothing | {"created": written["created"], "unchanged": 0}
    again = json.loads(run("update", "pkg", "--json", cwd=tmp_path).out)
    assert (again["created"], again["unchanged"]) == ([], len(written["created"]))
    newer = json.loads(run("update", "pkg", "--revision", "latest", "--json", cwd=tmp_path).out)
    assert newer["revisions"] == [NEWEST]
    assert not (tmp_path / "pkg" / f"r{OLDEST.replace('-', '_')}").exists()


def test_a_shell_completes_what_was_begun(root: Path) -> None:
    line = "mcpgen --revision 2025-0"
    words = {"_MCPGEN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "2"}
    done = run_python("-m", "mcpgen", cwd=root / "generator", environment=words)
    completed = {row.partition(",")[2] for row in done.out.splitlines()}
    assert completed == {"2025-03-26", "2025-06-18"}


@pytest.mark.parametrize(
    ("words", "begun", "completed"),
    [
        (["-r"], "", ["latest", "all", *(row.name for row in schema.revisions())]),
        (["--parts"], "types,server,cl", ["types,server,client"]),
        (["update", "--transport"], "s", ["stdio"]),
        (["update", "--transport"], "ht", ["http", "http+sse"]),
        ([], "che", ["check", "check-server"]),
        (["--features"], "auth,ap", ["auth,apps"]),
        (["new", "server", "--transport"], "stdio,", ["stdio,stdio", "stdio,http"]),
        (["new"], "", ["client", "server"]),
        (["templates", "copy"], "package/revision/met", ["package/revision/methods.py.jinja"]),
    ],
)
def test_words_are_completed_in_order(words: list[str], begun: str, completed: list[str]) -> None:
    complete = ShellComplete(cli.cli, {}, "mcpgen", "_MCPGEN_COMPLETE")
    values = [item.value for item in complete.get_completions(words, begun)]
    assert values[: len(completed)] == completed
    assert all(value.startswith(begun) for value in values)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_calls_mcpgen(shell: str) -> None:
    script = CliRunner().invoke(cli.cli, ["completion", shell]).output
    assert f"_MCPGEN_COMPLETE={shell}_complete" in script


INPUTS = (
    *("src/pkg/mcpgen.json", "pkg/models.py", "pkg/__init__.pyi", "pkg/py.typed"),
    *("pkg/.gitattributes", "pkg.patch", "draft/schema.json", "schema.ts", "facts.toml"),
    *("pyproject.toml", "own/package/revision/methods.py.jinja", "mcpgen.json"),
)
OTHER_FILES = ("README.md", "a.json5", "docs/x.txt", "src/tsx", "a.py.bak")


def test_the_hook_for_pre_commit_checks_a_package_for_each_input(root: Path, package: Path) -> None:
    hooks = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())
    [hook] = (each for each in hooks if each["id"] == "mcpgen-check")
    program, *words = hook["entry"].split()
    assert program == "mcpgen"
    assert not hook["pass_filenames"]  # the package is named by the user, as an argument
    assert run(*words, package).code == 0
    files = re.compile(hook["files"])
    assert [path for path in (*INPUTS, *OTHER_FILES) if files.search(path)] == [*INPUTS]


def test_verify_names_every_difference(tmp_path: Path) -> None:
    for row in schema.revisions():
        place = tmp_path / "schema" / row.name
        place.mkdir(parents=True)
        document = json.loads((row.folder / "schema.json").read_text())
        (place / "schema.json").write_text(json.dumps(document))
    path = tmp_path / "schema" / NEWEST / "schema.json"
    own = ("--schemas", tmp_path / "own")
    assert run("schema", "add", path, "-r", "2030-01-01", *own).code == 0
    assert run("schema", "verify", "--against", tmp_path, *own).code == 0
    document["$defs"]["Tool"]["required"] = ["name"]
    path.write_text(json.dumps(document))
    ended = run("schema", "verify", "--against", tmp_path)
    assert ended.code == 1
    assert (
        f'{path}#/$defs/Tool/required: ["inputSchema", "name"] here, ["name"] there\n' in ended.out
    )
    assert f"{NEWEST}: 1 difference, another file than the one on record\n" in ended.out
    assert f"{OLDEST}: same structure, another file than the one on record\n" in ended.out
    record = json.loads(run("schema", "verify", "--against", tmp_path, "--json").out)
    text = '["inputSchema", "name"] here, ["name"] there'
    differences = [{"pointer": "/$defs/Tool/required", "text": text}]
    shown = {"file": f"{path}", "same_file": False, "differences": differences}
    assert (record["same_structure"], record["revisions"][NEWEST]) == (False, shown)


NOWHERE = "http://127.0.0.1:1/mcp"
OTHERWISE = {
    "check-server": NOWHERE,
    "completion": "tcsh",
    "contract accept": "none.json",
    "contract check": f"{NOWHERE} NOWHERE.json",
    "contract diff": "NOWHERE.json NOWHERE.json",
    "contract rules": "--format toml",
    "contract write": "none.json -o a.json",
    "diff": "NOWHERE.json latest",
    "generate": "",
    "list": "--modules NOWHERE",
    "mirror": "none.json -o calls.py",
    "record": "none.json -o a.jsonl",
    "render": "NOWHERE -r latest -o out",
    "replay": f"NOWHERE --against {NOWHERE}",
    "schema errata": "NOWHERE.json NOWHERE.ts",
    "schema verify": "--against NOWHERE",
    "templates accept": "NOWHERE a",
    "templates copy": "NOWHERE here",
}
"""The words with which commands of mcpgen can't do their work, unless a place that is not there."""
DIFFERS = {
    "check": "pkg",
    "diff": "2024-11-05 2025-03-26 --fail-on any",
    "doctor": ".",
    "validate": "wrong.json -r 2025-06-18",
}
"""Commands whose answer is that something differs, with words for it."""
FINE = {
    "check": "fine",
    "diff": "2025-03-26 2025-03-26 --fail-on any",
    "doctor": "fine",
    "validate": "right.json -r 2025-06-18",
}
OF_PACKAGE = {
    "announce": ("nothing:server", "tools", "--shared", "redis://127.0.0.1:1/0"),
    "call": (NOWHERE, "add"),
    "config": ("", "--client", "cursor"),
    "inspect": (NOWHERE,),
    "list": (NOWHERE,),
    "prompt": (NOWHERE, "greet"),
    "read": (NOWHERE, "a://b"),
    "serve": ("nothing:server",),
    "trace": ("NOWHERE",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package, one that was edited, messages and contracts."""
    place = tmp_path_factory.mktemp("codes")
    for name in ("pkg", "fine"):
        words = ("-q", "-r", "2025-06-18", "--parts", "types", "-o", name)
        assert run(*words, cwd=place).code == 0
    (place / "pkg" / "__init__.py").write_text("edited = True\n")
    (place / "none.json").write_text('{"mcpServers": {}}')
    for name, method in (("right", "ping"), ("wrong", "ping/pong")):
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        (place / f"{name}.json").write_text(json.dumps(message))
    return place


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    """The words of all commands of a group that do something."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


CANNOT = dict.fromkeys(commands(cli.cli), "NOWHERE") | OTHERWISE
ROWS = [
    *(
        (code, name, words)
        for code, table in enumerate((FINE, DIFFERS, CANNOT))
        for name, words in table.items()
    )
]


@pytest.mark.parametrize(("code", "name", "words"), ROWS, ids=lambda value: f"{value}")
def test_a_command_exits_as_the_table_says(folder: Path, code: int, name: str, words: str) -> None:
    done = run(*name.split(), *words.split(), cwd=folder)
    assert done.code == code, done
    last = done.err.splitlines()[-1:]
    assert [line.startswith("mcpgen: error: ") for line in last] == [True] * (code == 2)
    assert "please report it" not in done.err


@pytest.mark.parametrize("command", OF_PACKAGE)
def test_a_command_of_a_package_that_cannot_run_exits_with_2(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with chdir(folder), pytest.raises(SystemExit) as ended:
        main([command, *OF_PACKAGE[command]])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert ("error: " in shown, "Traceback" in shown) == (True, False)
