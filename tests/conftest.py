"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Container, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from mcpgen.names import LIBRARIES
from requirements import REVISION_NAME

# A busy machine takes longer than Hypothesis waits for an example.
settings.register_profile("patient", deadline=None)
settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)
settings.load_profile("patient")

pytest_plugins = ["leftovers", "outcomes", "reach", "requirements.recording"]

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SPEC_VARIABLE = "MCP_SPEC"
*OLDER_REVISIONS, _, NEWEST_REVISION = sorted(path.name for path in (ROOT / "schema").glob("20*"))
CACHE_VARIABLE = "XDG_CACHE_HOME"
KEPT_CACHE_VARIABLE = "MCPGEN_TESTS_CACHE"
"""A folder that is kept: sessions of `nox` build each package once, until an input changes."""

FOLDER = pytest.StashKey[str]()
"""A folder of the run."""

PACKAGE_VARIABLE = "MCPGEN_TESTS_PACKAGE"
"""The folder of the package that is tested in place of the committed one."""

OVER_PROCESSES = (
    *(
        "package/inspector/",
        "package/server/asgi/",
        "package/server/shared/",
        "package/server/test_s",
        "package/server/test_w",
    ),
    *("package/transports/http/", "package/transports/test_process", "package/transports/test_std"),
    *("package/client/test_command_line", "package/client/test_restart"),
    "package/client/test_server_process",
    *("package/client/test_sync", "package/runtime/test_trace", "package/test_document_examples"),
    *("generator/test_cli", "generator/test_parts", "generator/test_injection"),
    *("generator/test_typescript_injection", "generator/test_document_commands"),
    *("generator/test_undecided", "generator/test_disagreements", "conventions/test_documents"),
    *("generator/test_diagnosis", "generator/test_features"),
)
"""Beginnings of the paths of test files with sockets, processes or many packages."""

COSTLY = (
    "conventions/test_run_plugins.py",
    *(
        f"generator/test_{name}.py"
        for name in (
            *("check", "check_server", "cli", "core_names", "deprecated_names"),
            *(
                "diff_properties",
                "diff_reports",
                "draft_toolkit",
                "extensions",
                "fitting",
                "formatting",
                "install_line",
                "installed_runtime",
            ),
            *("list_requests", "live_server", "mirror_lists", "new_project", "overrides"),
            *("package_cache", "parts", "patches", "pipeline", "pydantic_models"),
            *("pydantic_values", "renamed_types"),
            *("schema_add", "schema_files", "settings", "typescript", "typescript_history"),
            "update_report",
        )
    ),
    "package/client/test_command_line.py",
    "package/extension/test_generated_extensions.py",
    "package/proxy/test_bridge.py",
    "package/protocol/test_foreign_messages.py",
    "package/runtime/test_terminal_output.py",
    "package/server/shared/test_shared_processes.py",
    "package/server/commands/test_serve_http.py",
    "package/server/test_workers.py",
    "package/test_document_examples.py",
    "package/test_testing.py",
    "package/transports/test_stdio_end_to_end.py",
    "requirements/test_recording.py",
)
"""Files whose tests took more than ten CPU seconds: most build packages or start processes."""

NOT_QUICK = (
    *("conventions/", "decoding/", "mutants/", "requirements/"),
    *("package/client/auth/test_simulated_schedules", "package/protocol/test_properties"),
    *(
        f"generator/test_{name}"
        for name in (
            *("accounting", "datamodel", "deprecations", "directory", "draft_messages"),
            *(
                "explain_fuzz",
                "exporting",
                "mirror.py",
                "odd_names",
                "publishing",
                "render",
                "required_members",
                "running_server",
            ),
            *("schema_errata", "structure", "watching"),
        )
    ),
)
"""Beginnings of paths of more that `--quick` leaves out: what reads all code or the ledger, and
files that take more than two CPU seconds with one case of each function.
"""

WITH_SHARED = (
    "package/server/shared/",
    *(f"package/server/asgi/test_{name}" for name in ("listen", "resuming", "sessions.py")),
    "package/server/asgi/test_streams",
)
"""Beginnings of the paths of tests of state that processes share, and of those that servers of
three workers pass too.
"""

COLLECTED_AFTER = (20_000, 20, 50)
"""Thresholds of garbage collection while tests run: those of Python took a tenth of the time of
files that build packages, since what is left out of it does not count as old.
"""

SAMPLED = 6
"""Of so many cases of a function on trio or on an older revision, `--sample` takes one."""

WITH_SESSIONS = ("attacks/", "browser/", "history/", "interop/", "proxies/", "typing/")
"""Folders of tests that have a session of `nox` of their own."""
MARKS = {"attacks": "attack"}
"""Their marks, where these are not named like the folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which sessions of `nox` choose tests."""
    parser.addoption("--quick", action="store_true", help="the inner loop: each function once")
    text = "no files of tests with sockets, processes or builds of many packages"
    parser.addoption("--no-processes", action="store_true", help=text)
    text = "of cases whose names differ in their revision alone, the newest"
    parser.addoption("--newest", action="store_true", help=text)
    text = "one case of each test function, on its newest revision; no slow one if there is another"
    parser.addoption("--once", action="store_true", help=text)
    text = "all names and schedules where tests take a sample"
    parser.addoption("--every", action="store_true", help=text)
    text = "of the cases of a function on trio or on an older revision, each sixth, but for --every"
    parser.addoption("--sample", action="store_true", help=text)
    text = "schedules of workers that share a state, on a virtual clock: how many, or FIRST-LAST"
    parser.addoption("--schedules", default="100", help=text)
    text = "servers over HTTP have three workers and an engine; each request reaches a random one"
    parser.addoption("--shared", action="store_true", help=text)
    text = "what the models of the tested package are written for"
    parser.addoption("--models", choices=LIBRARIES, default=LIBRARIES[0], help=text)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of a run one cache: tests that build the same package share it.

    With `--models`, give them the package of that library in place of the committed one, too.
    """
    if config.getoption("--quick") or config.getoption("--once"):
        settings.load_profile("quick")
        config.option.warn_unused_snapshots = True  # those of the cases that are left out
    is_first = not hasattr(config, "workerinput")
    if is_first:
        config.stash[FOLDER] = tempfile.mkdtemp(prefix="mcpgen-tests-")
        os.environ[CACHE_VARIABLE] = os.environ.get(KEPT_CACHE_VARIABLE, config.stash[FOLDER])
        # Peers are on loopback. To read the authorities of a system takes 50 ms for each client.
        os.environ["SSL_CERT_FILE"] = f"{TESTS / 'trusted.pem'}"
    failures = getattr(config, "failures_db", None)  # of pytest-rerunfailures, per worker
    if not is_first and failures is not None:
        # It asks for each test by two small writes; the second would wait 40 ms for the first.
        failures.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    models = config.getoption("--models")
    if models != LIBRARIES[0]:
        if is_first:
            os.environ[PACKAGE_VARIABLE] = package_with(models, config.stash[FOLDER])
        sys.path.insert(0, os.environ[PACKAGE_VARIABLE])


def package_with(models: str, folder: str) -> str:
    """The folder, with `mcpgen_runtime`, whose models are for another library."""
    words = (
        "-q",
        "--revision",
        "all",
        "--features",
        "all",
        "--models",
        models,
        "-o",
        f"{folder}/mcpgen_runtime",
    )
    subprocess.run([sys.executable, "-m", "mcpgen", *words], check=True)
    return folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder of the run."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of garbage collection: nothing of it is garbage before the end.

    To search it each time took two fifths of the time of collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Generator[None, object, object]:
    """Plugins look for what holds an object, which they do not see in what is left out.

    What tests left is collected before, and all else left out again: pytest collects three times
    at the end, a second each.
    """
    gc.collect()
    gc.unfreeze()
    try:
        return (yield)
    finally:
        gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `--quick`, `--no-processes` or a choice of marks leaves out."""
    path = collection_path.relative_to(TESTS).as_posix()
    if config.getoption("--quick") and path.startswith(NOT_QUICK):
        return True
    if config.getoption("--shared") and collection_path.is_file():
        return not path.startswith(WITH_SHARED)
    if config.getoption("--quick") or config.getoption("--no-processes"):
        return path.startswith((*OVER_PROCESSES, *COSTLY, *WITH_SESSIONS)) or None
    if path in COSTLY and "not costly" in config.option.markexpr:
        return True
    folder, _, below = path.partition("/")
    mark = MARKS.get(folder, folder)
    is_left_out = f"{folder}/" in WITH_SESSIONS and f"not {mark} " in f"{config.option.markexpr} "
    return (is_left_out and below.startswith("test_")) or None


@dataclass(frozen=True)
class Case:
    """A case of a test function before pytest makes an item of it, which takes 0.2 ms."""

    function: pytest.Item
    name: str
    marks: tuple[str, ...]
    """Names of the marks that it has beside those of the function."""

    @property
    def nodeid(self) -> str:
        """The id that the item would have."""
        return f"{self.function.nodeid.removesuffix(self.function.name)}{self.name}"

    def get_closest_marker(self, name: str) -> object:
        """A mark of the case or its function, or `None`."""
        return name if name in self.marks else self.function.get_closest_marker(name)


AnyCase = TypeVar("AnyCase", pytest.Item, Case)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Leave out cases before they are items: most of those on trio, and of `--quick` and `--once`.

    One stays where all would go, since pytest takes a function without cases for one of its own.
    """
    yield
    config, calls = metafunc.config, metafunc._calls  # no hook is called with them
    definition = metafunc.definition
    cases = {
        Case(
            definition, f"{definition.name}[{call.id}]", tuple(mark.name for mark in call.marks)
        ): call
        for call in calls
    }
    if config.getoption("--quick") or config.getoption("--once"):
        chosen = one_of([*cases], is_quick=config.getoption("--quick"))
    elif "not trio" in config.option.markexpr:
        chosen = [case for case in cases if not on_trio(case)]
    else:
        return None
    metafunc._calls = [cases[case] for case in chosen] or calls[:1]  # as above
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """By `--quick` and `--once`, keep one case of each function, before others cost more time."""
    collected = yield
    config = collector.config
    if isinstance(collected, list) and (config.getoption("--quick") or config.getoption("--once")):
        cases = [each for each in collected if isinstance(each, pytest.Item)]
        return one_of(cases, is_quick=config.getoption("--quick")) if cases else collected
    return collected


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by loop, file and revision; leave out what `--newest` or the loop does.

    Tests of what only Structs do are skipped where the models are for another library.
    """
    is_of_structs = config.getoption("--models") == LIBRARIES[0]
    costly = {f"{TESTS / path}" for path in COSTLY}
    older = older_cases(items)
    for item in items:
        if on_trio(item):
            item.add_marker("trio")
        if f"{item.path}" in costly:
            item.add_marker("costly")
        if item.nodeid in older and revisions_of(item).issubset(OLDER_REVISIONS):
            item.add_marker("older")
        of_structs = None if is_of_structs else item.get_closest_marker("structs")
        if of_structs is not None:
            item.add_marker(pytest.mark.skip(reason=of_structs.args[0]))
    if config.getoption("--quick") or config.getoption("--once"):
        return
    if config.getoption("--newest"):
        wanted = [item for item in items if item.nodeid not in older]
    else:
        wanted = [item for item in items if not on_trio(item) or is_own(item, older)]
    if config.getoption("--sample") and not config.getoption("--every"):
        beyond = beyond_sample(wanted)
        wanted = [item for item in wanted if item.nodeid not in beyond]
    left_out = set(items).difference(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = wanted


def on_trio(item: pytest.Item | Case) -> bool:
    """Whether a test runs on trio."""
    return "trio" in item.name


def is_own(item: pytest.Item, older: Container[str]) -> bool:
    """Whether a test on trio has something of its own to show.

    What differs between event loops is the same code in all revisions of a lifecycle; the two
    newest revisions have both lifecycles.
    """
    revisions = revisions_of(item)
    return item.nodeid not in older and (not revisions or not revisions <= set(OLDER_REVISIONS))


def revisions_of(item: pytest.Item | Case) -> set[str]:
    """The revisions in the name of a test."""
    return set(REVISION_NAME.findall(item.name))


def older_cases(items: Iterable[pytest.Item | Case]) -> set[str]:
    """Ids of tests for whose function and other parameters there is a newer revision."""
    cases: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for item in items:
        revisions = revisions_of(item)
        if len(revisions) == 1:
            cases[REVISION_NAME.sub("*", item.nodeid)].append((revisions.pop(), item.nodeid))
    return {test for rows in cases.values() for _, test in sorted(rows)[:-1]}


def beyond_sample(items: Iterable[pytest.Item]) -> set[str]:
    """Ids of cases on trio or on older revisions that differ from others in their data alone.

    Of those of a function with the same loop, revisions and claims, each sixth runs. All cases with
    snapshots do: one that is not compared counts as unused.
    """
    alike: defaultdict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        is_older = item.get_closest_marker("older") is not None
        if (is_older or on_trio(item)) and "snapshot" not in getattr(item, "fixturenames", ()):
            name = item.nodeid.partition("[")[0]
            claims = tuple(mark.args for mark in item.iter_markers("requirement"))
            alike[name, on_trio(item), frozenset(revisions_of(item)), claims].append(item)
    beyond: set[str] = set()
    for key, rows in alike.items():
        first = zlib.crc32(f"{key[0]}".encode()) % len(rows)
        beyond |= {item.nodeid for n, item in enumerate(rows) if (n - first) % SAMPLED}
    return beyond


def one_of(cases: Sequence[AnyCase], *, is_quick: bool) -> list[AnyCase]:
    """The case of a function that runs by `--once`, or by `--quick`, where there may be none.

    Which one it is depends on the name of the function alone.
    """
    soon = [item for item in cases if not on_trio(item) and not is_slow(item)]
    if is_quick:
        chosen = [
            item for item in soon if not (names := revisions_of(item)) or NEWEST_REVISION in names
        ]
    else:
        older = older_cases(cases)
        chosen = [item for item in soon if item.nodeid not in older]
        chosen = chosen or [item for item in cases if item.nodeid not in older]
    if not chosen:
        return []
    name = cases[0].nodeid.partition("[")[0]
    return [chosen[zlib.crc32(name.encode()) % len(chosen)]]


def is_slow(item: pytest.Item | Case) -> bool:
    """Whether a test takes seconds."""
    return item.get_closest_marker("slow") is not None


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an async test runs on: each test runs on both."""
    name: str = request.param
    return name


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop of a server in a process of its own."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> bool:
    """Whether a test takes all of what it may take a sample of: by `--every`."""
    return bool(request.config.getoption("--every"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def spec() -> Path:
    """A checkout of the specification repository; the test is skipped where there is none."""
    place = os.environ.get(SPEC_VARIABLE)
    if not place:
        pytest.skip(f"{SPEC_VARIABLE} names no checkout of the specification repository")
    path = (ROOT / place).resolve()
    if not (path / "schema").is_dir():
        pytest.fail(f"{SPEC_VARIABLE}: expected a folder with schema/, got {path}")
    return path
