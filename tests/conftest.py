"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from mcpgen.names import LIBRARIES, Library

# A busy machine takes longer than Hypothesis waits for an example.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

pytest_plugins = [
    "kit.limits",
    "leftovers",
    "outcomes",
    "reach",
    "requirements.recording",
    "selection",
]

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SPEC_VARIABLE = "MCP_SPEC"
CACHE_VARIABLE = "XDG_CACHE_HOME"
KEPT_CACHE_VARIABLE = "MCPGEN_TESTS_CACHE"
"""A folder that is kept: sessions of `nox` build each package once, until an input changes."""

FOLDER = pytest.StashKey[str]()
"""A folder of the run."""

MODELS_VARIABLE = "MCP_MODELS"
"""The library that models of the tested package are written for; `msgspec` by default."""

PACKAGE_VARIABLE = "MCPGEN_TESTS_PACKAGE"
"""The folder of the package that is tested in place of the committed one."""

COLLECTED_AFTER = (20_000, 20, 50)
"""Thresholds of garbage collection while tests run: those of Python took a tenth of the time of
files that build packages, since what is left out of it does not count as old.
"""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of a run one cache: tests that build the same package share it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell that runs tests in background
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
    models = tested_library()
    if models != LIBRARIES[0]:
        if is_first:
            os.environ[PACKAGE_VARIABLE] = package_with(models, config.stash[FOLDER])
        sys.path.insert(0, os.environ[PACKAGE_VARIABLE])


def tested_library() -> Library:
    """The library that models of the tested package are written for."""
    name = os.environ.get(MODELS_VARIABLE, LIBRARIES[0])
    for library in LIBRARIES:
        if library == name:
            return library
    raise pytest.UsageError(f"{MODELS_VARIABLE}: expected one of {LIBRARIES}, got {name!r}")


def package_with(models: str, folder: str) -> str:
    """The folder, with `mcpgen_runtime`, whose models are for another library."""
    choice = ("--revision", "all", "--features", "all", "--models", models)
    words = ("-q", *choice, "-o", f"{folder}/mcpgen_runtime")
    subprocess.run([sys.executable, "-m", "mcpgen", *words], check=True)
    return folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder of the run."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of garbage collection, which took two fifths of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Generator[None, object, object]:
    """Plugins look for what holds an object, which they do not see in what is left out."""
    gc.collect()
    gc.unfreeze()
    try:
        return (yield)
    finally:
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of what only Structs do where the models are for another library."""
    if tested_library() == LIBRARIES[0]:
        return
    for item in items:
        of_structs = item.get_closest_marker("structs")
        if of_structs is not None:
            item.add_marker(pytest.mark.skip(reason=of_structs.args[0]))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an async test runs on: each test runs on both."""
    name: str = request.param
    return name


@pytest.fixture(scope="session", autouse=True)
def asyncio_backend() -> str:
    """The event loop of tests that are marked `on_asyncio`."""
    return "asyncio"


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop of a server in a process of its own."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> bool:
    """Whether a test takes all of what it may take a sample of: by `--cases=every`."""
    return bool(request.config.getoption("--cases") == "every")


@pytest.fixture(scope="session")
def models() -> Library:
    """The library that the models of the tested package are written for."""
    return tested_library()


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
