"""A pytest plugin: what a test leaves behind ends, and fails the test."""

from __future__ import annotations

import gc
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path

import psutil
import pytest

RUN_VARIABLE = "MCPGEN_TESTS_RUN"
TEST_VARIABLE = "PYTEST_CURRENT_TEST"
TASKS = "/proc/self/task"
DESCRIPTORS = "/proc/self/fd"
SHARED = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""In the command lines of processes that Python keeps until it ends itself."""

PARTING_SECONDS = 10.0
"""How long these may outlive the process that kept them, on a busy machine."""

KEPT = ("decimal_context",)
"""Context variables that libraries set once for each thread."""

SHARING = "interop"
"""The marker of tests that share peers, which start when the first test asks for one."""

SECONDS = 1.0
"""How long a thread may take to close a descriptor after its test."""

FAILED = 1


def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of a run one name."""
    if not hasattr(config, "workerinput"):
        os.environ[RUN_VARIABLE] = secrets.token_hex(8)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End processes that lost their parents; name their tests and fail."""
    if hasattr(session.config, "workerinput"):
        return
    lost = [each for each in lost_processes(os.environ[RUN_VARIABLE]) if not has_parted(each[0])]
    for process, test in lost:
        print(f"\nleft a process behind, ended now: {describe(process)}: {test}", file=sys.stderr)
        with suppress(psutil.NoSuchProcess):
            process.kill()
    if lost:
        session.exitstatus = FAILED


def lost_processes(run: str) -> Iterator[tuple[psutil.Process, str]]:
    """Processes of a run beside this one and its children, with the names of their tests."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment = process.environ()
            if environment.get(RUN_VARIABLE) == run and process.pid not in own:
                yield process, environment.get(TEST_VARIABLE, "no test")


def is_shared(process: psutil.Process) -> bool:
    """Whether Python keeps a process until it ends itself."""
    command = " ".join(process.cmdline())
    return any(word in command for word in SHARED)


def has_parted(process: psutil.Process) -> bool:
    """Whether a process ended soon after the worker of the tests that kept it."""
    try:
        if is_shared(process):
            process.wait(PARTING_SECONDS)
        return not process.is_running()
    except psutil.TimeoutExpired:
        return False
    except psutil.NoSuchProcess:
        return True


def describe(process: psutil.Process) -> str:
    """The id and the command line of a process, as far as it still has one."""
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    return f"{process.pid}"


@pytest.fixture(autouse=True)
def leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose processes, descriptors or context outlive it; end the processes."""
    shares = request.node.get_closest_marker(SHARING) is not None
    if shares or not Path(TASKS).is_dir():  # only Linux shows both cheaply
        yield
        return
    processes, descriptors, values = children(), open_descriptors(), values_in_context()
    yield
    left = [process for pid in children() - processes for process in running_process(pid)]
    names = [describe(process) for process in left]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    names += sorted(left_open(descriptors))
    names += [
        f"a value of the context variable {name!r}"
        for name, value in values_in_context().items()
        if values.get(name) is not value
    ]
    if names:
        pytest.fail(f"the test left behind: {', '.join(names)}", pytrace=False)


def values_in_context() -> dict[str, object]:
    """The values of context variables, by name; a test without a loop shares them with the next."""
    return {each.name: value for each, value in copy_context().items() if each.name not in KEPT}


def left_open(before: set[str]) -> set[str]:
    """Descriptors that were not open before, and are not closed soon by a thread that ends."""
    end = time.monotonic() + SECONDS
    while (opened := open_descriptors() - before) and time.monotonic() < end:
        gc.collect()  # what nothing refers to any more is closed, with a warning of its own
        time.sleep(0.01)
    return opened


def children() -> set[int]:
    """The ids of the child processes, the ended ones that nobody waited for among them."""
    ids: set[int] = set()
    for task in os.scandir(TASKS):
        with suppress(OSError):  # a thread ends meanwhile
            ids.update(map(int, Path(task.path, "children").read_bytes().split()))
    return ids


def running_process(pid: int) -> Iterator[psutil.Process]:
    """The process of an id, unless it ended, or Python keeps it until the end."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE and not is_shared(process):
            yield process


def open_descriptors() -> set[str]:
    """Descriptors of sockets, pipes and files, with their numbers."""
    opened = set()
    for descriptor in os.scandir(DESCRIPTORS):
        with suppress(OSError):  # the listing's own is closed by now
            target = os.readlink(descriptor.path)  # noqa: PTH115 # a Path takes four times as long
            if not target.startswith(("anon_inode:", "/dev/", "/proc/")):
                opened.add(f"descriptor {descriptor.name} {target}")
    return opened
