"""Sessions for development and CI; `nox --list` shows all.

`nox` checks a change in minutes. CI runs the same sessions, and then
the slow ones, which `.ci/run` names.
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

sys.path.insert(0, f"{Path(__file__).parent / 'tests'}")

from sessions.environments import (
    IN_MEMORY,
    ON_ALL_CORES,
    ON_ASYNCIO,
    QUICK,
    ROOT,
    SOON,
    WHILE_WAITING,
    WITHOUT_SESSION,
    enter,
    fresh,
    give_up,
    install_other,
    interpreters,
    measured,
    outcomes_of,
    run_tests,
    tested_interpreters,
)
from sessions.peers import (
    CHROMIUM,
    RIVALS,
    SCHEMAS_OF_NPM,
    chromium,
    conformance_suite,
    json_schema_suite,
    npm_peers,
    peers,
    proxy_programs,
)
from sessions.projects import check_projects
from sessions.wheels import check_wheels

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "none"  # sessions share environments: see `enter`
nox.options.sessions = ["lint", "quick", "check"]
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile all modules again
os.environ.setdefault("PIP_COMPILE", "0")  # most modules that are installed are never imported

os.environ.setdefault("NODE_COMPILE_CACHE", f"{ROOT / '.nox' / '.cache' / 'node'}")
GOLDEN = "generated/mcpgen_runtime"
CODE = ("generator", "generated", "templates", "tests", "examples", "noxfile.py")
WITH_PACKAGE = {"PYTHONPATH": os.pathsep.join(("tests", "generated"))}
"""Lets programs in the folder of the tests import the committed package."""
SHARED_ENVIRONMENTS = ("test", "interop", "lint")
"""Groups of dependencies with an environment each, which sessions share."""
BYTES = tuple(
    f"tests/package/{folder}"
    for folder in ("auth", "client/auth", "framing", "json_schema", "server/auth", "transports")
)
"""Folders of tests of what knows no models."""
ON_INSTALLED = (
    *("test_testing.py", "revision", "server/toolkit", "proxy/test_proxy.py"),
    *("client/test_response_cache.py", "client/test_async_client.py"),
    *("client/test_client_questions.py", "client/test_sync.py"),
    *("server/asgi/test_session_endpoint.py", "server/asgi/test_stateless_endpoint.py"),
)
"""Tests of what a package on an installed runtime has of its own, and hands to the runtime."""
RECORDS = ("quick", "tests", "rest-generator", "rest-package", "shared")
"""Sessions that record which requirements their tests prove; `requirements` judges all of them."""
MEASURED = ("--cov", "--cov-report=", "--cov-fail-under=0")
UNMONITORED = ("3.11",)  # versions without `sys.monitoring`
OTHERS_RUN = ("tests/package", "tests/mutants/test_reach.py")
OFFICIAL = "tests/interop/official"  # the tests of `official-sdk`
HISTORY = "history.tar.xz"
"""The published states of the schema, in a folder of the specification."""
SITE_IN_BROWSER = "tests/browser/test_site.py"


def record_of(session: nox.Session, name: str) -> Path:
    """The file in which a session records what its tests prove."""
    return session.cache_dir / "requirements" / f"{name}.tsv"


def map_of(session: nox.Session) -> Path:
    """The file that says which tests reach which lines; `map` writes it."""
    return session.cache_dir / "reach.map"


@measured
def install(session: nox.Session) -> None:
    """Make what other sessions run in and talk to; they do so themselves where it is missing.

    `-- shared` leaves out what one session alone needs.
    """
    for group in SHARED_ENVIRONMENTS:
        enter(session, group)
    chromium()
    if session.posargs == ["shared"]:
        return
    enter(session, "proxies")
    for version, interpreter in tested_interpreters().items():
        install_other(session, version, interpreter)
    peers(session)
    conformance_suite(session)
    enter(session, "test")
    json_schema_suite(session)


@measured
def quick(session: nox.Session) -> None:
    """Tests for the inner loop: each function once, on the newest revision, asyncio, in memory."""
    enter(session, "test")
    run_tests(session, *QUICK, *recorded(session), *ON_ALL_CORES, *session.posargs, repeated=())


@measured
def tests(session: nox.Session) -> None:
    """Tests of generator, package, conventions and ledger that take no long time.

    In CI without the cases that `quick` runs there.
    """
    enter(session, "test")
    if session.posargs:
        run_tests(session, *session.posargs, repeated=())
        return
    cases = ("--cases=others",) if os.environ.get("CI") else ()
    run_tests(session, *SOON, *cases, *recorded(session), *ON_ALL_CORES)


@measured
def coverage(session: nox.Session) -> None:
    """Branch coverage of what `tests` runs, which takes twice as long so; fails below 95 %."""
    enter(session, "test")
    run_tests(session, *ON_ASYNCIO, *MEASURED, *ON_ALL_CORES)
    session.run("coverage", "report")


@measured
def rest_generator(session: nox.Session) -> None:
    """Slow and costly tests of generator and commands; `-- --cases=every` samples nothing."""
    run_rest(session, "--ignore=tests/package")


@measured
def rest_package(session: nox.Session) -> None:
    """Slow and costly tests of the package, trio, older; `-- --cases=every` samples nothing."""
    run_rest(session, "tests/package", "--ignore=tests/package/server/shared")


@measured
def shared(session: nox.Session) -> None:
    """Processes that share an engine; tests of sessions, each request at a random one of three."""
    enter(session, "test")
    selected = ("-m", "workers and not trio and not one_process", "tests/package/server")
    words = (*selected, "--cases=sample", *session.posargs, *ON_ALL_CORES, *recorded(session))
    run_tests(session, *words, env={"MCP_WORKERS": "3", "MCP_SCHEDULES": "250", **os.environ})


def run_rest(session: nox.Session, *places: str) -> None:
    """Run the tests in some places that `tests` leaves out."""
    enter(session, "test")
    selected = ("-m", f"(slow or trio or costly or older) and {WITHOUT_SESSION}", *places)
    words = (*selected, "--cases=sample", *session.posargs)
    run_tests(session, *words, *recorded(session), *ON_ALL_CORES)


@measured
def models_pydantic(session: nox.Session) -> None:
    """The tests of a package on models of pydantic: one case of each function, on asyncio."""
    enter(session, "test")
    without = [*IN_MEMORY, "--cases=once", *(f"--ignore={path}" for path in BYTES)]
    selected = (*(session.posargs or without), "tests/package")
    run_tests(session, *selected, *ON_ALL_CORES, env={"MCP_MODELS": "pydantic"})


@measured
def installed(session: nox.Session) -> None:
    """The tests of a package on an installed runtime, in memory and over HTTP, and its types."""
    enter(session, "lint")
    folder = session.cache_dir.resolve() / "installed"
    session.run("python", "tests/installed.py", f"{folder}")
    tests_there = folder / "tests"
    places = (f"{tests_there}", f"{ROOT / 'generated'}")
    spec = os.environ.get("MCP_SPEC", "")  # perhaps relative to the repository
    env = {"PYTHONPATH": os.pathsep.join(places), "MCP_SPEC": spec and f"{(ROOT / spec).resolve()}"}
    there = ("-c", f"{folder / 'pyproject.toml'}", f"--rootdir={folder}")
    paths = (f"{tests_there / 'package' / path}" for path in ON_INSTALLED)
    words = session.posargs or [*SOON, "--cases=newest", *paths]
    run_tests(session, *there, *words, *ON_ALL_CORES, env=env)
    if not session.posargs:
        wrong_lines = ("-k", "finds_the_wrong_lines", f"{tests_there / 'typing/test_snippets.py'}")
        run_tests(session, *there, "-m", "typing", *wrong_lines, env=env)


def recorded(session: nox.Session) -> tuple[str]:
    """The option of pytest by which this session records what its tests prove, from now on."""
    record = record_of(session, session.name)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("", "utf-8")  # it stays empty where no test claims a rule
    # One word: pytest takes a path of its own for a folder of tests.
    return (f"--record={record}",)


@measured
def requirements(session: nox.Session) -> None:
    """Binding rules were tested in each revision, by the last runs of the sessions in `RECORDS`."""
    enter(session, "test")
    records = (f"{record_of(session, name)}" for name in RECORDS)
    session.run("python", "-m", "tests.requirements.coverage", *records)


@measured
def tests_others(session: nox.Session) -> None:
    """The tests of the package on the other installed Python versions; the tool writes it there.

    In CI only the newest is tested. Versions are found on the path and among those of pyenv. The
    tool has to write the committed package, byte for byte. Of each test function one case runs, on
    its newest revision; with words of pytest after `--`, those that they choose.
    """
    others = tested_interpreters()
    if not others:
        give_up(session, "found no other Python version, neither on the path nor of pyenv")
    for version, interpreter in others.items():
        python = f"{install_other(session, version, interpreter) / 'python'}"
        session.run(python, "-m", "mcpgen", "check", GOLDEN)
        chosen = session.posargs or (
            "--cases=once",
            "-m",
            f"{SOON[1]} and not lengthy",
            *OTHERS_RUN,
        )
        selected = ("--quiet", "--cases=newest", *SOON, *chosen)
        run_tests(session, *selected, *ON_ALL_CORES, python=python)


@nox.session
def wheels(session: nox.Session) -> None:
    """Each declared version of Python has wheels on six platforms; asks the index, for minutes."""
    check_wheels(session)


@nox.session(name="map", venv_backend="none")
def record_map(session: nox.Session) -> None:
    """Record which tests reach which lines, by the run of `tests`; `mutants` asks it."""
    record_reach(session)


def record_reach(session: nox.Session) -> None:
    """Run tests on a version of Python that reports lines cheaply, and write the map."""
    versions = interpreters()
    version = max(versions, key=lambda name: tuple(map(int, name.split("."))))
    if version in UNMONITORED:
        give_up(session, "found no Python 3.12 or newer, neither on the path nor of pyenv")
    python = f"{install_other(session, version, versions[version]) / 'python'}"
    words = (f"--record-reach={map_of(session)}", "--quiet", *ON_ASYNCIO, *ON_ALL_CORES)
    run_tests(session, *words, *session.posargs, python=python, repeated=())


@nox.session
def mutants(session: nox.Session) -> None:
    """Tests fail when the code is wrong: a sample of mutants, each against what reaches it.

    `-- --seed N --count 120 --room server/asgi` chooses. Records a map if there is none.
    """
    enter(session, "lint")
    if not map_of(session).is_file():
        record_reach(session)
    ask = ("python", "-m", "mutants", f"{map_of(session)}", *session.posargs)
    session.run(*ask, env={"PYTHONPATH": "tests"})


@measured
def attacks(session: nox.Session) -> None:
    """Hostile peers against real processes, which keep answering in bounded time and memory."""
    enter(session, "test")
    run_tests(session, "-m", "attack", "tests/attacks", *session.posargs)


@measured
def lint(session: nox.Session) -> None:
    """Format, lint, and both type checkers side by side, also over snippets of user code."""
    enter(session, "lint")
    session.run("ruff", "format", "--check", "-q", *(path for path in CODE if path != "generated"))
    session.run("ruff", "check", *CODE)
    session.run("towncrier", "build", "--draft", "--version", "next", silent=True)
    for kind, file in (("actions", "action.yml"), ("workflows", ".github/workflows/ci.yml")):
        session.run("check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", file)
    typed = ("generator/mcpgen", GOLDEN, "noxfile.py", "tests")
    with ThreadPoolExecutor() as pool:
        pyright = pool.submit(session.run, "pyright", silent=True)
        session.run("mypy", *typed, "--exclude=tests/typing/", silent=True)
        # What user code imports, mypy has in its cache now.
        files = ("tests/typing/test_snippets.py", "tests/mutants/test_copies.py")
        run_tests(session, "-m", "typing", *files, repeated=())
    pyright.result()


@nox.session
def prose(session: nox.Session) -> None:
    """Report names and sentences that readers stumble over; fails nothing."""
    enter(session, "test")
    session.run("python", "-m", "prose", env={"PYTHONPATH": "tests"})


@measured
def typing(session: nox.Session) -> None:
    """Packages of some parts, transports and features, under both type checkers in strict mode."""
    enter(session, "lint")
    run_tests(session, "-m", "typing", "tests/typing", "-k", "not test_snippets", repeated=())


@measured
def check(session: nox.Session) -> None:
    """The committed package is what the generator writes today."""
    enter(session, "test")
    session.run("mcpgen", "check", GOLDEN)


@measured
def package_single(session: nox.Session) -> None:
    """The README as a user meets it: the tool generates, another environment runs the result.

    Also: types alone run on msgspec alone, and `generated/` can be installed by itself. The tool is
    installed as the composite action of the repository does it.
    """
    work = Path(session.create_tmp()).resolve()
    enter(session, "test")
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", f"{work / 'wheels'}", ".")
    wheel = max((work / "wheels").glob("mcpgen-*.whl"), key=lambda path: path.stat().st_mtime)
    shutil.rmtree(work / "runner", ignore_errors=True)
    (work / "runner").mkdir()
    install = ("python", "tests/composite_action.py", f"{work / 'runner'}", f"{wheel}[http]")
    tool = Path(str(session.run(*install, silent=True)).strip())  # as the action installs it
    user = fresh(session, work / "user", "anyio", "msgspec")
    session.run(
        f"{user / 'python'}",
        "tests/package_single.py",
        f"{tool / 'mcpgen'}",
        f"{work}",
        *(session.posargs or ["2024-11-05", "2025-06-18", "2026-07-28"]),
    )
    session.run("python", "tests/package_single.py", "--as-printed", "uvx")
    types = fresh(session, work / "types", "msgspec")
    choose = ("--revision", "latest", "--parts", "types", "-o", f"{work / 'mcp_types'}", "--force")
    session.run(f"{tool / 'mcpgen'}", *choose)
    with session.chdir(work):
        session.run(f"{types / 'python'}", f"{ROOT / 'tests' / 'types_alone.py'}")
    ready = fresh(session, work / "ready", f"{ROOT / 'generated'}")
    with session.chdir(work):
        session.run(f"{ready / 'python'}", f"{ROOT / 'tests' / 'calls_a_tool.py'}")


@measured
def skeletons(session: nox.Session) -> None:
    """Projects of `mcpgen new` as written: the commands of their CI pass in a fresh environment.

    All projects share it; `uv` installs them, where it is found, and `pip` what the image runs:
    what the steps of a Dockerfile install serves behind a public name.
    """
    enter(session, "test")
    check_projects(session, Path(session.create_tmp()).resolve())


@measured
def history(session: nox.Session) -> None:
    """Packages of published states of the schema: each imports and serves a tool call.

    Also: the schema of MCP Apps, exported documents, and 100,000 values that are decoded.
    Takes a sample, which needs some three minutes on two cores; every state with `-- --whole`.
    """
    specification = os.environ.get("MCP_SPEC")
    if not specification or not (ROOT / specification / HISTORY).is_file():
        give_up(session, f"MCP_SPEC names no folder with {HISTORY}")
    enter(session, "lint")
    whole = "--whole" in session.posargs
    arguments = [word for word in session.posargs if word != "--whole"]
    environment = {"MCP_HISTORY": "all"} if whole else {}
    folder = Path(session.create_tmp()).resolve() / "npm"
    environment["MCP_NPM_SCHEMAS"] = npm_peers(session, folder, SCHEMAS_OF_NPM)
    selected = ("-m", "history", "tests/history", *ON_ALL_CORES)
    run_tests(session, *selected, *arguments, repeated=(), env=environment)
    if not arguments:
        decoded = {"MCP_DECODED_CASES": "42000"}  # each of twelve tests has a fifth
        selected = ("-k", "decode_as", "tests/decoding", *ON_ALL_CORES)
        run_tests(session, *selected, repeated=(), env=decoded)


@measured
def interop(session: nox.Session) -> None:
    """Real peers over pipes and sockets: the SDKs, servers, gateways, tools and hosts of others.

    What fails runs again: on a busy machine some peers start later than clients wait.
    """
    enter(session, "interop")
    selected = ("-m", "interop", "tests/interop", f"--ignore={OFFICIAL}", *WHILE_WAITING)
    run_tests(session, *selected, *session.posargs, env=peers(session))


@measured
def official_sdk(session: nox.Session) -> None:
    """The official Python SDK's own tests, on modules of the example in place of its own.

    Also: what its next revision leaves to write, and its types on the wire as judges of ours; with
    `-- --whole` all of its tests, and 2,000 values of each definition.
    """
    enter(session, "interop")
    work = f"{session.cache_dir.resolve() / 'official-sdk'}"
    with ThreadPoolExecutor() as pool:  # the other release side by side
        types = pool.submit(session.run, "python", "tests/interop/official_types.py", f"{work}-1")
        session.run("python", "tests/interop/official_sdk.py", work, *session.posargs)
    types.result()
    judged = {"MCP_JUDGED_FIGURES": work, "MCP_JUDGED_VALUES": "2000" if session.posargs else "100"}
    run_tests(session, "-m", "interop", OFFICIAL, *WHILE_WAITING, repeated=(), env=judged)


@measured
def findings(session: nox.Session) -> None:
    """The figures of docs/generated-sdk.md are those of this tree; `-- --write` renews them."""
    enter(session, "interop")
    program = ("python", "-m", "tests.findings", f"{session.cache_dir}")
    session.run(*program, *session.posargs, env=WITH_PACKAGE)


@measured
def proxies(session: nox.Session) -> None:
    """Silent calls, cancelled ones and rolling restarts behind nginx, HAProxy and Caddy."""
    enter(session, "proxies")
    environment = proxy_programs(session)
    run_tests(session, "-m", "proxies", "tests/proxies", *session.posargs, env=environment)


@measured
def browser(session: nox.Session) -> None:
    """The page of `inspect --web` in headless Chromium; `MCP_SCREENSHOTS` keeps pictures."""
    program = chromium()
    if program is None:
        give_up(session, f"found no Chromium; `apt-get install {CHROMIUM[0]}` helps")
    enter(session, "interop")
    packages = npm_peers(session, Path(session.create_tmp()).resolve() / "npm", SCHEMAS_OF_NPM)
    selected = ("-m", "browser", "tests/browser", f"--ignore={SITE_IN_BROWSER}", *session.posargs)
    environment = {"MCP_CHROMIUM": program, "MCP_NPM_SCHEMAS": packages}
    run_tests(session, *selected, env=environment)


@measured
def docs(session: nox.Session) -> None:
    """The site of documents, in build/website/site: no warning, no dead link, read in Chromium."""
    enter(session, "lint")
    session.run("python", "-m", "website", env={"PYTHONPATH": "tests"})
    program = chromium()
    if program is None:
        give_up(session, f"found no Chromium; `apt-get install {CHROMIUM[0]}` helps")
    selected = ("-m", "not slow", "tests/website", SITE_IN_BROWSER, *session.posargs)
    run_tests(session, *selected, env={"MCP_CHROMIUM": program})


@measured
def conformance(session: nox.Session) -> None:
    """The official conformance suite against our server and our client; fails below 100 %.

    Also: the official tests of JSON Schema against what checks arguments and results. In CI the
    suite asks the server a second time, for answers as streams of events.
    """
    enter(session, "test")
    if not session.posargs:
        tests_of_schemas = {"MCP_JSON_SCHEMA_SUITE": json_schema_suite(session)}
        run_tests(session, "tests/conformance", repeated=(), env=tests_of_schemas)
    suite = conformance_suite(session)
    counts = f"--outcomes={outcomes_of(session)}"
    run = ("python", "-m", "tests.conformance", "--npm", suite, counts)
    session.run(*run, *session.posargs, env=WITH_PACKAGE)
    if os.environ.get("CI") and not session.posargs:
        session.run(*run, "--side", "server", "--answers", "sse", env=WITH_PACKAGE)


@measured
def bench(session: nox.Session) -> None:
    """Ratios against other SDKs and against floors, from one run; fails below a target.

    Runs on Python 3.12, for which the targets are set, and takes some ten minutes;
    `-- --only SECTION` measures a part.
    """
    python = interpreters().get("3.12")
    if python is None:
        give_up(session, "found no Python 3.12, neither on the path nor of pyenv")
    enter(session, "lint", "bench", python)
    folder = npm_peers(session, Path(session.create_tmp()).resolve() / "npm", RIVALS)
    environment = {"MCP_NPM_PEERS": folder}
    session.run("python", "-m", "tests.benchmarks", *session.posargs, env=environment)
