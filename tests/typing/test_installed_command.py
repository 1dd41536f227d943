"""User code and its package where only the printed install command ran, under both type checkers.

An environment has what the command names and nothing else: no library that is optional, and no type
checker. Packages whose commands name the same libraries share one.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from generator.command_line import run

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
BOTH = ("default_package", "of_types", "of_models", "everything")
"""The packages that pyright sees: it takes longer, and the others are parts of these."""

OF_TYPES = """
from {package} import DecodeError, convert, decoder, to_builtins
from {package}.r2026_07_28 import methods, models

tool = decoder(models.Tool)(b"{{}}")
print(tool.nmae)
print(convert({{}}, models.Tool).nmae, decoder(models.Tool, extra=True)(b"{{}}").nmae)
print(decoder(models.ContentBlock)(b"{{}}").nmae)
print(methods.CALL_TOOL.decode_params(b"{{}}").nmae)
row: methods.Method = methods.CLIENT_REQUESTS["tools/call"]
try:
    print(row.name, to_builtins(tool))
except DecodeError:
    pass
"""
WRONG = (6, 7, 8, 9)
"""The lines of the program for which a type checker has an error."""

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


@pytest.fixture(scope="module", params=CHOICES)
def package(folder: Path, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A package and a program beside the others, and the interpreter for them."""
    name: str = request.param
    done = run("-o", str(folder / name), *CHOICES[name])
    (install,) = (
        line for line in (done.out + done.err).splitlines() if line.startswith("install: ")
    )
    (folder / f"use_{name}.py").write_text(program_of(name), "utf-8")
    return name, environment(folder, install.removeprefix("install: "))


def expected_lines(name: str) -> set[int]:
    return set(WRONG if name in ("of_types", "of_models") else ())


def test_mypy_finds_no_error_in_the_package_of_a_user(
    folder: Path, package: tuple[str, Path]
) -> None:
    name, python = package
    words = ("--strict", "--no-error-summary", f"--cache-dir={folder / 'cache'}")
    command = (sys.executable, "-m", "mypy", *words, f"--python-executable={python}")
    targets = (f"use_{name}.py", name)
    done = subprocess.run([*command, *targets], cwd=folder, capture_output=True, text=True)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error: " in line]
    assert not done.stderr
    assert {row[0] for row in errors} <= {f"use_{name}.py"}, done.stdout
    assert {int(row[1]) for row in errors} == expected_lines(name), done.stdout


def test_pyright_finds_no_error_in_the_package_of_a_user(
    folder: Path, package: tuple[str, Path]
) -> None:
    name, python = package
    if name not in BOTH:
        pytest.skip("mypy has seen it; pyright sees packages with the same modules")
    settings = folder / f"{name}.json"
    settings.write_text(
        json.dumps({"include": [f"use_{name}.py", name], "typeCheckingMode": "strict"}), "utf-8"
    )
    command = ("pyright", "--outputjson", "-p", str(settings), "--pythonpath", str(python))
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    rows = json.loads(done.stdout)["generalDiagnostics"]
    errors = [row for row in rows if row["severity"] == "error"]
    in_package = [row for row in errors if Path(row["file"]).name != f"use_{name}.py"]
    assert in_package == []
    assert {row["range"]["start"]["line"] + 1 for row in errors} == expected_lines(name)
