"""Packages on an installed runtime: what is in them, what they import, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.command_line import Installation, output_of, run, run_python
from generator.futures import Draft, change_revision, save_draft
from generator.runtime_interface import all_used, installed_package, text_of
from generator.selections import MIDDLE, NEWEST, PAIRWISE, contents, write_package
from mcpgen.model import runtime
from mcpgen.package import manifest
from mcpgen.render import tree

pytestmark = pytest.mark.costly


COPIED = {"py.typed", "client/__init__.py"}


@pytest.mark.parametrize(("parts", "transports", "revisions"), [PAIRWISE[2], *PAIRWISE[1::2]])
def test_nothing_is_copied_but_markers(
    parts: str, transports: str, revisions: tuple[str, ...]
) -> None:
    files = installed_package(parts, transports, revisions)
    assert {path for path in files if tree.is_copied(path)} <= COPIED | {"server.py"}


def test_runtime_names_that_packages_use_are_listed(root: Path) -> None:
    """A name that goes, or means something else, is for a new minor version."""
    listed = (root / "generated" / "interface.txt").read_text("utf-8")
    assert listed == text_of(all_used())


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.2.0.dev1", ">=0.2,<0.3"), ("0.9.12", ">=0.9,<0.10"), ("2.3.1", ">=2.3,<2.4")],
)
def test_the_range_is_that_of_a_minor_version(version: str, expected: str) -> None:
    assert runtime.version_range(version) == expected


OURS = f"_DISTRIBUTION = {runtime.DISTRIBUTION!r}; __version__ = "
OTHERS = f"another package of the name {runtime.PACKAGE}: "


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "none"),
        (f"{OURS}'0.0.9'", "0.0.9 in FILE"),
        (f"{OURS}'0.11.0'; _INTERFACES = {runtime.interfaces()}", "0.11.0 in FILE"),
        (f"{OURS}'0.1.0'; _INTERFACES = ('other',)", "an older 0.1.0 in FILE"),
        ("__version__ = '0.1.0'", f"{OTHERS}0.1.0 in FILE"),
        ("import gone_long_ago", "one that fails: No module named 'gone_long_ago'"),
        (f"{OURS}'0.1.7'; _INTERFACES = {(*runtime.interfaces(), 'later')}", ""),
    ],
)
def test_another_runtime_is_an_error_of_one_line(
    tmp_path: Path, text: str | None, shown: str
) -> None:
    folder = write_package(installed_package("types", "all", (MIDDLE,)), tmp_path)
    if text is not None:
        (tmp_path / runtime.PACKAGE).mkdir()
        (tmp_path / runtime.PACKAGE / "__init__.py").write_text(text, "utf-8")
    code = "import sys; sys.path[:] = [p for p in sys.path if p]; import pkg"
    error = run_python("-c", code, cwd=folder).err
    file = tmp_path / runtime.PACKAGE / "__init__.py"
    expected = (
        f"ImportError: pkg needs {runtime.DISTRIBUTION} {runtime.version_range()}, got"
        f" {shown.replace('FILE', str(file))}; install it from a wheel of it or the folder"
        " generated/ of mcpgen's sources: no package index has it"
    )
    assert error.splitlines()[-1:] == ([expected] if shown else [])


SAME = """
import mcpgen_runtime, pkg
from pkg import Server, Context, McpError, connect, REVISIONS
assert McpError is mcpgen_runtime.McpError
assert issubclass(Server, mcpgen_runtime.Server)
assert issubclass(Context, mcpgen_runtime.Context)
assert mcpgen_runtime.Server.revisions is mcpgen_runtime.REVISIONS is not REVISIONS
assert [*Server.revisions] == [*REVISIONS]
print(*REVISIONS)
"""


def test_classes_are_the_runtimes_and_revisions_its_own(tmp_path: Path, root: Path) -> None:
    folder = write_package(installed_package("all", "all", (MIDDLE,)), tmp_path)
    assert output_of(SAME, cwd=folder, paths=(root / "generated",)) == f"{MIDDLE}\n"


def test_update_changes_the_form_and_back_to_the_same_bytes(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    run("-q", "--revision", MIDDLE, "--features", "telemetry", "-o", package)
    before = contents(package)
    updated = run("update", package, "--runtime", "installed")
    assert (updated.code, "runtime changed" in updated.out) == (0, False)
    record = json.loads((package / "mcpgen.json").read_text("utf-8"))
    assert record["options"]["runtime"] == "installed"
    assert record["requires"] == runtime.requirement_specifier()
    assert not (package / "errors.py").exists()
    modules = json.loads(run("list", "--modules", package, "--json").out)["modules"]
    assert {"server.py", "__init__.pyi"} < {row["module"] for row in modules}
    assert run("check", package).out == f"{package}: up to date\n"
    assert run("update", package, "--runtime", "vendored").code == 0
    assert contents(package) == before


def test_a_package_on_the_runtime_of_another_name_is_moved(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    run("-q", "--revision", MIDDLE, "--runtime", "installed", "-o", package)
    before = contents(package)
    record = json.loads((package / "mcpgen.json").read_text("utf-8"))
    for path in record["files"]:  # as an earlier version wrote it
        text = (package / path).read_text("utf-8").replace(runtime.PACKAGE, "mcp_protocol")
        text = text.replace(runtime.DISTRIBUTION, "mcp-protocol")
        (package / path).write_text(text, "utf-8")
        record["files"][path] = manifest.fingerprint(text)
    record["requires"] = record["requires"].replace(runtime.DISTRIBUTION, "mcp-protocol")
    (package / "mcpgen.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    moved = "the runtime changed: mcp-protocol>=0.1,<0.2 is now mcpgen-runtime>=0.1,<0.2"
    checked = run("check", package)
    assert (checked.code, moved in checked.out.splitlines()) == (1, True)
    required = "mcp-protocol>=0.1,<0.2"
    assert json.loads(run("check", package, "--json").out)["runtime_changed"] == required
    shown = f"the runtime changed: the package requires {required}"
    assert shown in run("check", package, "--format", "github").out
    assert "made for mcp-protocol>=0.1,<0.2; " in run("doctor", tmp_path).out
    updated = run("update", package)
    assert (updated.code, updated.err.count("\n")) == (0, 1)
    assert f"{moved}; {runtime.SOURCES}" in updated.out.splitlines()
    assert contents(package) == before


def test_generating_says_what_to_install(
    tmp_path: Path, root: Path, installation: Installation
) -> None:
    words = ("--revision", MIDDLE, "--runtime", "installed", "-o")
    lines = run(*words, tmp_path / "pkg").out.splitlines()
    assert f"install: pip install {root / 'generated'}" in lines
    for what, extra in (("HTTP also", "http"), ("all features", "all")):
        assert f"for {what}: pip install '{root / 'generated'}[{extra}]'" in lines
    assert "HTTP" not in run(*words, tmp_path / "few", "--parts", "types").out
    done = installation.run(*words, tmp_path / "other")  # which has no sources
    assert f"install: {runtime.requirement_specifier()}, {runtime.SOURCES}\n" in done.out
    assert "pip install" not in done.out


DRAFT = """
import anyio
from typing import Any
from pkg import Server, connect
from pkg.rdraft.server import ServerHandlers

class Handlers(ServerHandlers):
    async def new0(self, params: Any, ctx: Any) -> Any:
        return {"colour": params.colour}

async def main() -> None:
    server = Server("painter", handlers=[Handlers()])
    async with connect(server) as client:
        print(client.revision, (await client.new0(colour="red")).colour)

anyio.run(main)
"""


@pytest.mark.parametrize("name", [MIDDLE, NEWEST])
def test_a_draft_has_messages_that_the_runtime_has_not(
    tmp_path: Path, root: Path, name: str
) -> None:
    draft = change_revision(name, [(Draft.add_request, "colour")])
    path = save_draft(draft, tmp_path)
    done = run("-q", "--schema", path, "--runtime", "installed", "-o", tmp_path / "pkg")
    assert done.code == 0, done.err
    assert output_of(DRAFT, cwd=tmp_path, paths=(root / "generated",)) == "draft red\n"


PAINT = Path(__file__).parent / "extensions" / "paint.json"


def test_extensions_have_their_modules_in_the_package_or_the_runtime(
    tmp_path: Path, root: Path
) -> None:
    words = ("--revision", NEWEST, "--runtime", "installed", "--features", "sync")
    extensions = ("--extension", PAINT, "--extension", "tasks")
    assert run("-q", *words, "-o", tmp_path / "pkg", *extensions).code == 0
    code = (
        "from pkg.r2026_07_28.paint import client, client_sync, server\n"
        "from pkg import Server, Tasks; print(type(Tasks(Server('s')).store).__module__)"
    )
    shown = output_of(code, cwd=tmp_path, paths=(root / "generated",))
    assert shown == "mcpgen_runtime.runtime.task_store\n"
