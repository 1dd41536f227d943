"""The examples of the documents do what the documents say of them, in every revision."""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import httpx2
import pytest

import mcpgen_runtime
from documents import ROOT, Block, examples, outputs, prose_of, snippets
from generator.selections import spec_of, write_package
from kit.guarded import protected_settings
from kit.wire import ALL, every
from mcpgen.model import choice
from mcpgen.render import tree
from mcpgen_runtime import HttpStatusError, RemoteError, connect, testing
from mcpgen_runtime.testing import connected
from package_single import BOOKED, FORECAST, serve_module

pytestmark = [pytest.mark.processes, pytest.mark.costly]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "pkg.testing"])


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of the documents, as a module of its own that found our package as `pkg`."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "pkg", mcpgen_runtime)
    monkeypatch.setitem(sys.modules, "pkg.testing", testing)
    source = examples()[f"{name}.py"]
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


@every
async def test_the_notes_stay_in_their_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str
) -> None:
    notes = example("notes", monkeypatch)
    (tmp_path / "secret").write_text("hunter2")
    notes.ROOT = tmp_path / "notes"
    notes.ROOT.mkdir()
    (notes.ROOT / "today").write_text("sun")
    async with connected(notes.server, revision=revision) as pair:
        client: Any = pair.client
        for uri in ("notes://today", f"file://{notes.ROOT}/today"):
            assert (await client.read_resource(uri)).contents[0].text == "sun"
        for uri in ("notes://..%2Fsecret", f"file://{tmp_path}/secret", "notes://%2Fetc%2Fpasswd"):
            with pytest.raises(RemoteError) as refused:
                await client.read_resource(uri)
            assert "hunter2" not in str(refused.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: the examples, `pkg` and packages of types side by side."""
    folder = tmp_path_factory.mktemp("reader")
    for name, text in examples().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    package = Path(mcpgen_runtime.__file__).parent
    shutil.copytree(package, folder / "pkg")  # and what was compiled
    for name, decoding in (("acme_types", "lenient"), ("acme_strict", "strict")):
        types_only = choice.selection(("types",), (), decoding=decoding)
        files = tree.render_package([spec_of("2025-06-18")], name, types_only)
        write_package(files, folder, name)
    with pytest.MonkeyPatch.context() as patch:
        # The process that forks finds modules there alone.
        patch.setenv("PYTHONPATH", os.pathsep.join((f"{folder}", *sys.path)))
        forkserver.ensure_running()
    return folder


def activated_environment() -> dict[str, str]:
    """The environment in which `python` is the one of the tests, as `activate` makes it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path}


def python_output(folder: Path, *words: str) -> str:
    """Run Python in a folder and return its output."""
    command = [sys.executable, *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=activated_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_script(folder: str, name: str, environment: Mapping[str, str]) -> None:
    """Run a file of a folder in this process, whose output goes into files there."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in ((1, ".stdout"), (2, ".stderr")):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.path.insert(0, folder)
    sys.argv[:] = [name]
    runpy.run_path(name, run_name="__main__")


def run_in_fork(folder: Path, name: str) -> None:
    """Run a file of a folder, which must succeed, in a fork of a process that has imported most."""
    process = FORKS.Process(target=run_script, args=(f"{folder}", name, activated_environment()))
    process.start()
    process.join(60)
    assert process.exitcode == 0, (folder / ".stderr").read_text("utf-8")


PRINTED = {
    "client.py": ["forecast: Weather forecast for a city.", FORECAST],
    "read_books.py": ["published: The year in which a book was published.", "1965"],
    "calls.py": [FORECAST, "Bergen was cancelled"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_client_starts_its_server_and_prints_the_results_of_its_calls(
    folder: Path, name: str
) -> None:
    assert python_output(folder, name).splitlines() == PRINTED[name]


def test_the_blocking_client_calls_the_server_over_http(folder: Path) -> None:
    with serve_module("server:server", folder) as url:
        assert python_output(folder, "remote.py", url) == f"{ALL[-1]} {FORECAST}\n"


def test_the_guest_answers_the_booking_over_http(folder: Path) -> None:
    with serve_module("booking:server", folder) as url:
        assert python_output(folder, "guest.py", url) == f"{BOOKED}\n"


def test_inputs_of_a_configuration_are_asked_by_a_function(folder: Path) -> None:
    entry = {"command": sys.executable, "args": ["${workspaceFolder}/${input:file}"]}
    declared = {"id": "file", "type": "promptString", "description": "Server"}
    text = json.dumps({"inputs": [declared], "servers": {"weather": entry}})
    (folder / "inputs.json").write_text(text, "utf-8")
    code = (
        "import io, runpy, sys; sys.argv[:] = ['inputs.py', 'inputs.json']; "
        "sys.stdin = io.StringIO('server.py\\n'); runpy.run_path('inputs.py', run_name='__main__')"
    )
    assert python_output(folder, "-c", code) == "Server: forecast\n"


def test_messages_are_read_with_the_types_alone(folder: Path) -> None:
    for name in ("read_messages.py", "read_lines.py", "keep_members.py", "strict.py"):
        assert python_output(folder, name) == outputs()[name]


def test_the_tests_of_the_documents_pass(folder: Path) -> None:
    words = ("-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", f"{folder}", "test_weather.py")
    assert "4 passed" in python_output(folder, *words)


async def test_a_server_in_another_application_has_the_documented_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example("city", monkeypatch)
    app = example("mounted", monkeypatch).app
    async with client_at("/team/mcp", app) as client:
        names = {tool.name for tool in await client.list_tools()}
    assert names == {"forecast", "population"}
    with pytest.raises(HttpStatusError):
        async with client_at("/mcp", app):
            pass


async def test_a_protected_server_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    app = example("protected", monkeypatch).app
    with pytest.raises(HttpStatusError) as refused:
        async with client_at("/mcp", app):
            pass
    assert refused.value.status == 401


async def test_fixed_tokens_open_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_TOKEN", "a-1")
    monkeypatch.setenv("CI_TOKEN", "c-1")
    module = example("tokens", monkeypatch)
    app = module.server.asgi(auth=module.auth)
    for token in ("a-1", "c-1"):
        async with client_at("/mcp", app, auth=token) as client:
            assert client.server_info["name"] == "files"
    with pytest.raises(HttpStatusError, match="401"):
        async with client_at("/mcp", app, auth="x-1"):
            pass


async def test_a_route_beside_the_endpoint_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    app = example("health", monkeypatch).server.asgi(auth=protected_settings())
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
        assert (await http.get("http://127.0.0.1/health")).json() == {"status": "ok"}
        assert (await http.post("http://127.0.0.1/orders")).status_code == 401


@asynccontextmanager
async def client_at(path: str, app: Any, **options: Any) -> AsyncIterator[Any]:
    """A client of an ASGI application, at a path of it."""
    transport = httpx2.ASGITransport(app=app)
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        connect(f"http://127.0.0.1{path}", http_client=http, **options) as client,
    ):
        yield client


NEED_MORE = {
    *("guest.py", "inputs.py", "record.py", "remote.py"),  # an argument
    "tokens.py",  # variables of the environment
    *("edit_tool.py", "painter.py", "reporter.py"),  # packages that other commands write
}
"""Files that their pages start with something beside Python; tests of their own do so."""


@pytest.mark.parametrize(
    "name", sorted({name for name in examples() if name.endswith(".py")} - NEED_MORE)
)
def test_a_file_of_the_documents_runs_as_it_is_printed(folder: Path, name: str) -> None:
    run_in_fork(folder, name)


NEED_A_SIGN_IN = {"docs/authorization.md"}
"""Documents whose blocks may define functions that they do not call: these need a user or an
authorization server."""


@pytest.mark.parametrize("block", snippets(), ids=lambda block: block.place)
def test_a_block_of_python_runs_as_it_is_printed(block: Block, folder: Path) -> None:
    (folder / "block.py").write_text(block.text, "utf-8")
    run_in_fork(folder, "block.py")


@pytest.mark.parametrize("block", snippets(), ids=lambda block: block.place)
def test_a_block_calls_the_functions_that_it_defines(block: Block) -> None:
    uncalled = uncalled_functions(block.text)
    assert not uncalled or block.document in NEED_A_SIGN_IN


@pytest.mark.parametrize("block", snippets(), ids=lambda block: block.place)
def test_a_page_names_the_file_that_its_block_imports(block: Block) -> None:
    def imported_modules(source: str) -> set[str]:
        """The modules that a block imports names of."""
        nodes = ast.walk(ast.parse(source))
        return {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}

    files = {f"{name}.py" for name in imported_modules(block.text)} & examples().keys()
    prose = prose_of(ROOT / block.document)
    assert [file for file in sorted(files) if f"`{file}`" not in prose] == []


def uncalled_functions(source: str) -> list[str]:
    """The functions at the top of a block that it neither registers, calls nor passes on."""
    tree = ast.parse(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [f.name for f in tree.body if isinstance(f, functions) and not f.decorator_list]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return [name for name in defined if name not in used]
