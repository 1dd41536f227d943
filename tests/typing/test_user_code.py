"""User code and its package: as installed, under the plugin of pydantic, and as mirrored calls."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from documents import ROOT
from generator.command_line import run
from generator.contract_surfaces import contract
from generator.selections import NAMES, NEWEST, rendered, write_package
from mcpgen.contract.document import text_of

pytestmark = [pytest.mark.typing, pytest.mark.timeout(900)]

CHOICES = {
    "default_package": ("-r", "latest"),
    "of_types": ("-r", "latest", "--parts", "types"),
    "of_models": ("-r", "latest", "--parts", "types", "--models", "pydantic"),
    "bare_server": ("-r", "latest", "--parts", "server", "--features", "none"),
    "bare_client": ("-r", "latest", "--parts", "client", "--features", "none"),
    "over_stdio": ("-r", "latest", "--transport", "stdio"),
    "over_http": ("-r", "latest", "--transport", "http"),
    "everything": ("-r", "all", "--features", "all"),
}

OF_TYPES = """
from {package} import DecodeError, convert, decoder, to_builtins
from {package}.r2026_07_28 import methods, models

tool = decoder(models.Tool)(b"{{}}")
print(convert({{}}, models.Tool).name, methods.CALL_TOOL.decode_params(b"{{}}").name)
row: methods.Method = methods.CLIENT_REQUESTS["tools/call"]
try:
    print(row.name, to_builtins(tool))
except DecodeError:
    pass
"""

OF_SERVERS = """
from {package} import Context, Server

server = Server("weather")


@server.tool()
def forecast(city: str, ctx: Context) -> str:
    ctx.progress(1)
    return city
"""
OF_CLIENTS = """
from {package} import connect


async def main() -> None:
    async with connect({target}) as client:
        print(await client.list_tools())
"""


def run_checker(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Have a type checker run to its end, in a folder."""
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def program_of(package: str) -> str:
    """The program of a user of a package."""
    if package in ("of_types", "of_models"):
        return OF_TYPES.format(package=package)
    target = '"https://example.com/mcp"' if "http" in package else '["python", "weather.py"]'
    program = OF_SERVERS.format(package=package) if "client" not in package else ""
    if "server" not in package:
        program += OF_CLIENTS.format(package=package, target=target)
    return program


def environment(folder: Path, install: str) -> Path:
    """The interpreter of an environment in which one command to install has run."""
    words = shlex.split(install)
    assert words[:2] == ["pip", "install"]
    place = folder / "-".join(["with", *words[2:]])
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *words[2:]], check=True)
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("installed").resolve()


@pytest.mark.parametrize("name", CHOICES)
def test_mypy_finds_no_error_in_the_package_of_a_user(folder: Path, name: str) -> None:
    made = run("-o", str(folder / name), *CHOICES[name])
    (install,) = (
        line for line in (made.out + made.err).splitlines() if line.startswith("install: ")
    )
    (folder / f"use_{name}.py").write_text(program_of(name), "utf-8")
    python = environment(folder, install.removeprefix("install: "))
    words = ("--strict", f"--cache-dir={folder / 'cache'}", f"--python-executable={python}")
    done = run_checker(folder, "mypy", *words, f"use_{name}.py", name)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


ERROR = re.compile(r"^([^:]+):(\d+): error: ", re.MULTILINE)
MODULE = f"r{NEWEST.replace('-', '_')}"
USER = f"""
from typing import assert_type

from pkg import decoder, encode
from pkg.{MODULE} import models

tool = models.Tool(name="add", input_schema={{"type": "object"}}, title="Add")
assert_type(tool.title, str | None)
text = models.TextContent(text="5", annotations=models.Annotations(priority=1))
result = models.CallToolResult(content=[text], structured_content={{"sum": 5}})
assert_type(decoder(models.CallToolResult)(encode(result)), models.CallToolResult)
models.Tool(input_schema={{"type": "object"}})  # expect: error
models.Tool(name=5, input_schema={{"type": "object"}})  # expect: error
models.Tool(name="add", inputSchema={{"type": "object"}})  # expect: error
models.Tool(name="add", input_schema={{"type": "object"}}, titel="Add")  # expect: error
tool.title = "Sum"  # expect: error
"""
OF_ALL = f"""
from typing import assert_type

from pkg import decoder, models
from pkg.{MODULE} import models as newest


class PricedTool(models.Tool, frozen=True):
    price: int


tool = PricedTool(name="add", input_schema={{"type": "object"}}, price=5)
assert_type(tool.price, int)
assert_type(decoder(models.Tool)(b"{{}}"), models.Tool)
assert_type(models.Tool.model_validate(tool), models.Tool)
block: newest.ContentBlock = newest.TextContent(text="5")
if isinstance(block, newest.ContentBlock):
    print(newest.EmptyResult(), models.Tool.model_json_schema())
PricedTool(name="add", input_schema={{"type": "object"}})  # expect: error
PricedTool(name="add", input_schema={{"type": "object"}}, price="5")  # expect: error
"""
SETTINGS = """
[mypy]
plugins = pydantic.mypy
strict = true

[pydantic-mypy]
init_forbid_extra = true
init_typed = true
warn_required_dynamic_aliases = true
"""


@pytest.mark.parametrize(("revisions", "user"), [((NEWEST,), USER), (NAMES, OF_ALL)])
def test_the_plugin_finds_wrong_lines_of_a_user_alone(
    tmp_path: Path, revisions: tuple[str, ...], user: str
) -> None:
    write_package(rendered("types", "all", revisions, "pydantic"), tmp_path)
    (tmp_path / "user.py").write_text(user, "utf-8")
    (tmp_path / "mypy.ini").write_text(SETTINGS, "utf-8")
    done = run_checker(tmp_path, "mypy", f"--cache-dir={os.devnull}", "user.py", "pkg")
    errors = {(file, int(line)) for file, line in ERROR.findall(done.stdout)}
    wrong = {number for number, line in enumerate(user.splitlines(), 1) if "# expect" in line}
    assert not done.stderr
    assert errors == {("user.py", line) for line in wrong}, done.stdout


@pytest.fixture
def mirrored(tmp_path: Path) -> Path:
    """A folder with the calls of a contract."""
    (tmp_path / "shop.contract.json").write_text(text_of(contract()))
    words = ("-o", "calls.py", "--package", "mcpgen_runtime")
    assert run("mirror", "shop.contract.json", *words, cwd=tmp_path).code == 0
    settings = {"include": ["calls.py"], "extraPaths": [str(ROOT / "generated")]}
    strict = {**settings, "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(strict))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("mypy", "--strict", "calls.py"), ("pyright", "--pythonpath", sys.executable)],
    ids=lambda words: words[0],
)
def test_the_module_passes_in_strict_mode(
    words: tuple[str, ...], mirrored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT / "generated"))
    done = run_checker(mirrored, *words)
    assert done.returncode == 0, done.stdout
