"""Contracts as tests: `testing.contract` of a package, and the plugin of pytest."""

from __future__ import annotations

import re
import shutil
import sys
from contextvars import copy_context
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from conventions.sources import ROOT
from documents import examples
from generator.command_line import Done, output_of, run, run_with_plugin
from generator.contract_surfaces import SHOP_SERVER, SMALLER_SIZES, WHOLE_SIZES
from mcpgen.contract import RUN, RunSettings, testing
from mcpgen.errors import UsageError
from mcpgen_runtime import Server

FILE = "server.contract.json"
LISTS = ROOT / "tests" / "generator" / "weather.json"
SMALLER = SHOP_SERVER.replace(WHOLE_SIZES, SMALLER_SIZES)
IN_COROUTINE = f"""
import pytest
from mcpgen_runtime.testing import contract
from shop import server

MARK
async def test_it() -> None:
    await contract(server, "{FILE}")
"""
BY_FIXTURE = f"""
from shop import server

def test_in_memory(contract) -> None:
    contract(server, "{FILE}")
"""
BY_COMMAND = f"""
import sys

def test_of_a_command(contract) -> None:
    contract(f"{{sys.executable}} shop.py", "{FILE}")
"""
BY_SEVERITY = f"""
import pytest
from shop import server

@pytest.mark.parametrize("word", ["any", "warning", "breaking"])
def test_severity(contract, word: str) -> None:
    contract(server, "{FILE}", fail_on=word)
"""
WRONG_USES = f"""
from shop import server

def test_object(contract) -> None:
    contract(object(), "{FILE}")

def test_severity(contract) -> None:
    contract(server, "{FILE}", fail_on="all")

def test_file(contract) -> None:
    contract(server, "shop.py")
"""
ASYNCIO = ("-ppytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
RUNS = {
    "anyio": (("-panyio", "-pno:asyncio"), "@pytest.mark.anyio"),
    "asyncio, strict": ((*ASYNCIO, "--asyncio-mode", "strict"), "@pytest.mark.asyncio"),
    "asyncio, auto": ((*ASYNCIO, "--asyncio-mode", "auto"), ""),
}
"""By name: options of pytest, and the mark of the test."""


def pytest_in(folder: Path, *words: str) -> Done:
    """Run the tests of a folder with the plugin."""
    return run_with_plugin(folder, "mcpgen.contract.pytest_plugin", *words)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server, its contract, and a test that uses the fixture."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP_SERVER)
    (folder / "test_it.py").write_text(BY_FIXTURE)
    done = pytest_in(folder, "--contract-update")
    assert done.code == 0, done.out
    return folder


@pytest.fixture
def folder(shop: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    for name in ("shop.py", "test_it.py", FILE):
        shutil.copy2(shop / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", RUNS)
def test_a_test_fails_with_the_report_of_a_check(name: str, folder: Path) -> None:
    options, mark = RUNS[name]
    if "asyncio" in name:
        pytest.importorskip("pytest_asyncio")
    test = IN_COROUTINE.replace("MARK", mark)
    (folder / "test_it.py").write_text(test)
    (folder / "smaller.py").write_text(SMALLER)
    (folder / "test_smaller.py").write_text(test.replace("from shop", "from smaller"))
    failed = pytest_in(folder, *options)
    assert (failed.code, failed.err) == (1, ""), failed.out
    assert {*re.findall(r"^FAILED (\S+)::", failed.out, re.MULTILINE)} == {"test_smaller.py"}
    assert " passed in " in failed.out
    assert f"{FILE}: the server has changed: 1 change: 1 breaking" in failed.out
    assert "breaking: ARGUMENT_NARROWED: tool order: the argument size is" in failed.out
    assert 'for example "l"' in failed.out
    assert "pytest --contract-update writes the file anew" in failed.out
    assert "mcpgen/contract" not in failed.out


def test_the_fixture_takes_the_command_of_a_server(folder: Path) -> None:
    (folder / "test_it.py").write_text(BY_COMMAND)
    (folder / "smaller.py").write_text(SMALLER)
    (folder / "test_smaller.py").write_text(BY_COMMAND.replace("shop.py", "smaller.py"))
    failed = pytest_in(folder).out
    assert "1 failed, 1 passed" in failed
    assert ("ARGUMENT_NARROWED" in failed, "mcpgen/contract" in failed) == (True, False)


def test_a_file_that_is_not_there_fails_and_names_the_option(folder: Path) -> None:
    (folder / FILE).unlink()
    failed = pytest_in(folder)
    assert f"{FILE}: expected a contract, got no file; pytest --contract-update" in failed.out
    assert not (folder / FILE).exists()


def test_an_update_writes_the_file_of_the_command_line(folder: Path) -> None:
    (folder / "shop.py").write_text(SMALLER)
    assert pytest_in(folder, "--contract-update").code == 0
    other = folder / "other.json"
    written = run("contract", "write", f"{sys.executable} shop.py", "-o", other, cwd=folder)
    assert written.code == 0
    assert (folder / FILE).read_bytes() == other.read_bytes()
    before = (folder / FILE).stat().st_mtime_ns
    assert pytest_in(folder, "--contract-update").code == 0
    assert (folder / FILE).stat().st_mtime_ns == before  # nothing to write


def test_the_severity_that_fails_a_test_is_chosen(folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP_SERVER.replace(WHOLE_SIZES, f'{WHOLE_SIZES}, "xl"'))
    (folder / "test_it.py").write_text(BY_SEVERITY)
    done = pytest_in(folder, "-rA")
    assert {line for line in done.out.splitlines() if line.startswith("PASSED")} == {
        "PASSED test_it.py::test_severity[warning]",
        "PASSED test_it.py::test_severity[breaking]",
    }
    assert "ARGUMENT_WIDENED" in done.out


def test_a_check_compares_with_the_file_or_writes_it(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    def check(server: Server, fail_on: str = "any", *, updates: bool = False) -> None:
        context = copy_context()
        context.run(RUN.set, RunSettings(updates, tmp_path))
        context.run(testing.check, server, FILE, fail_on=fail_on)

    server, other = Server("shop"), Server("shop", instructions="Order.")
    errors: list[str] = []
    for fail_on in ("any", "all"):
        with pytest.raises((AssertionError, UsageError)) as no_file:
            check(server, fail_on)
        errors.append(str(no_file.value))
    check(server, updates=True)
    check(server)
    check(other, "breaking")
    with pytest.raises(AssertionError) as changed:
        check(other)
    assert [*errors, str(changed.value)] == snapshot


def test_a_wrong_use_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "test_it.py").write_text(WRONG_USES)
    failed = pytest_in(folder)
    assert "3 failed" in failed.out
    for expected in (
        "expected a Server of a generated package with a client",
        "expected fail_on of breaking, warning",
        "expected JSON",
    ):
        assert expected in failed.out


@pytest.mark.parametrize(
    ("server", "test"), [("shop.py", "test_shop.py"), ("server.py", "test_contract.py")]
)
def test_the_examples_of_the_documents_pass(server: str, test: str, tmp_path: Path) -> None:
    for name in (server, test):
        text = examples()[name].replace("from pkg", "from mcpgen_runtime")
        (tmp_path / name).write_text(text)
    assert pytest_in(tmp_path, "-panyio", "--contract-update").code == 0
    done = pytest_in(tmp_path, "-panyio")
    assert (done.code, "passed" in done.out) == (0, True), done.out


@pytest.mark.slow
@pytest.mark.parametrize("words", [("-r", "latest"), ("-r", "latest", "--from", "lists.json")])
def test_a_new_server_keeps_the_contract_that_it_has(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "lists.json").write_bytes(LISTS.read_bytes())
    made = run("new", "server", "weather", *words, cwd=tmp_path)
    assert made.code == 0, made.err
    project = tmp_path / "weather"
    again = project / "again.json"
    written = run("contract", "write", "weather.server:server", "-o", again, cwd=project / "src")
    assert written.code == 0, written.err
    assert (project / FILE).read_bytes() == again.read_bytes()
    settings = ("-c", f"{project / 'pyproject.toml'}", "-panyio", "tests/test_contract.py")
    assert "1 passed" in pytest_in(project, *settings).out
    server = project / "src/weather/server.py"
    stated = re.compile(r"(, instructions=mirror.INSTRUCTIONS)?\)")
    text = server.read_text()
    place = text.index('version="0.1.0"')
    changed = stated.sub(', instructions="Other.")', text[place:], count=1)
    server.write_text(text[:place] + changed)
    failed = pytest_in(project, *settings)
    assert "INSTRUCTIONS_CHANGED: server: the instructions changed" in failed.out


def test_the_plugin_imports_little() -> None:
    code = (
        "import sys, mcpgen.contract.pytest_plugin\n"
        "print([name for name in sys.modules if name.startswith('mcpgen')])"
    )
    expected = ["mcpgen", "mcpgen.contract", "mcpgen.contract.pytest_plugin"]
    assert output_of(code, cwd=ROOT / "generator") == f"{expected}\n"
