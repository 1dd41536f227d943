"""User code and its package where only the printed install command ran, under mypy.

An environment has what the command names and nothing else; equal commands share one.
"""

from __future__ import annotations

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
    command = (sys.executable, "-m", "mypy", *words, f"use_{name}.py", name)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
