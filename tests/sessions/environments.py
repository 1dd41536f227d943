"""The environments that sessions of nox run in, and how they run pytest there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import NoReturn

import nox

ROOT = Path(__file__).parents[2]
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PATH = os.environ.get("PATH", "")
UV = shutil.which("uv", path=os.pathsep.join((f"{Path(sys.executable).parent}", PATH)))
OLDEST_PYTHON = (3, 11)
REPEATED = ("--reruns=2", "--reruns-delay=1", "-rR")
"""Repeats failed tests, and names them: a busy machine may miss the time limits of some tests."""
IN_ONE_PROCESS = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") == "1"
"""Whether a session has one core: to pass on what a worker does would cost 2 ms a test."""
ON_ALL_CORES = () if IN_ONE_PROCESS else ("--numprocesses=auto", "--dist=loadfile")
"""Runs files of tests side by side: tests of one file share what takes long."""
WHILE_WAITING = ("--numprocesses=2", "--dist=loadfile")
"""Runs two files of tests side by side on any machine: they wait for peers most of the time."""
WITHOUT_SESSION = (
    "not interop and not typing and not attack and not proxies and not history and not browser"
)
"""Selects the tests that have no session of their own; pyproject.toml says the same."""
ON_ASYNCIO = ("-m", f"not slow and not trio and {WITHOUT_SESSION}")
"""Selects the tests of a map and of coverage."""
SOON = ("-m", f"not slow and not trio and not costly and not older and {WITHOUT_SESSION}")
"""Selects the tests of `tests`."""
IN_MEMORY = ("-m", f"{SOON[1]} and not processes")
"""Selects those of them without sockets, processes and builds of many packages."""
QUICK = ("--cases=quick", "-m", f"{IN_MEMORY[1]} and not lengthy")
"""Selects the tests of the inner loop."""


def measured(run: Callable[[nox.Session], None]) -> Callable[[nox.Session], None]:
    """Make a session of a function, named like it with hyphens, that prints what it takes."""

    @wraps(run)
    def run_and_measure(session: nox.Session) -> None:
        started, used = time.monotonic(), cpu_seconds()
        try:
            run(session)
        finally:
            os.environ["PATH"] = PATH
            seconds, cpu = time.monotonic() - started, cpu_seconds() - used
            session.log(f"{session.name}: {seconds:.0f} seconds, {cpu:.0f} CPU seconds")
            file = outcomes_of(session)
            file.parent.mkdir(exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"cpu": round(cpu, 1)}) + "\n")

    return nox.session(name=run.__name__.replace("_", "-"))(run_and_measure)


def cpu_seconds() -> float:
    """The CPU seconds of all child processes that ended; 0 on Windows."""
    times = os.times()
    return times.children_user + times.children_system


def outcomes_of(session: nox.Session) -> Path:
    """The file with the counts of the runs of a session, which `.ci/run` sums up."""
    return session.cache_dir / "outcomes" / f"{session.name}.jsonl"


def enter(session: nox.Session, group: str, name: str = "", python: str = sys.executable) -> Path:
    """Run the programs of a group's environment from now on; it is made anew if it changed."""
    packages = ("-e", ".", *nox.project.dependency_groups(PROJECT, group))
    folder = session.cache_dir / "environments" / (name or group)
    scripts = kept(session, folder, *packages, python=python)
    os.environ["PATH"] = os.pathsep.join((f"{scripts}", PATH))
    return scripts


def kept(session: nox.Session, folder: Path, *packages: str, python: str = sys.executable) -> Path:
    """The programs of an environment that is kept until other packages are wanted."""
    wanted = (sys.version, *packages, *([f"{PROJECT['project']}"] if "-e" in packages else []))
    if is_new(folder, *wanted):
        fresh(session, folder, *packages, python=python)
        set_ready(folder, *wanted)
    return folder.resolve() / SCRIPTS


def is_new(folder: Path, *wanted: str) -> bool:
    """Whether a folder lacks content, or has other content than what is wanted."""
    ready = folder / "ready"
    return not ready.is_file() or ready.read_text("utf-8") != digest(*wanted)


def set_ready(folder: Path, *wanted: str) -> None:
    """Note what a folder has, after all of it was written."""
    (folder / "ready").write_text(digest(*wanted), "utf-8")


def digest(*words: str) -> str:
    """A digest of words, in hex."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def fresh(session: nox.Session, folder: Path, *packages: str, python: str = sys.executable) -> Path:
    """The programs of a new environment with pip, some packages and their dependencies."""
    if UV:
        session.run(UV, "venv", "-q", "--clear", "--seed", "-p", python, f"{folder}")
    else:
        session.run(python, "-m", "venv", "--clear", f"{folder}")
    scripts = folder.resolve() / SCRIPTS
    if packages:
        install_into(session, f"{scripts / 'python'}", *packages)
    return scripts


def install_into(session: nox.Session, python: str, *packages: str) -> None:
    """Install packages into the environment of an interpreter: by uv where it is found, or pip."""
    pip = (python, "-m", "pip", "install", "-q")
    session.run(*((UV, "pip", "install", "-q", "-p", python) if UV else pip), *packages)


def run_tests(
    session: nox.Session,
    *words: str,
    python: str = "python",
    repeated: tuple[str, ...] = REPEATED,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run pytest, and add its counts to those of the session."""
    cache = f"cache_dir={session.cache_dir / 'pytest' / session.name}"
    outcomes = f"--outcomes={outcomes_of(session)}"
    command = (python, "-m", "pytest", "-o", cache, outcomes, *repeated, *words)
    variables = {"MCPGEN_TESTS_CACHE": f"{session.cache_dir.resolve() / 'built'}", **(env or {})}
    if python != "python":  # programs that the tests start are of the same version
        path = session.env.get("PATH") or os.environ["PATH"]
        variables["PATH"] = os.pathsep.join((f"{Path(python).parent.resolve()}", path))
    session.run(*command, env=variables)


def give_up(session: nox.Session, reason: str) -> NoReturn:
    """End a session that lacks a program or a file: a failure in CI, skipped elsewhere."""
    if os.environ.get("CI"):
        session.error(reason)
    session.skip(reason)


def install_other(session: nox.Session, version: str, interpreter: str) -> Path:
    """The programs of the environment with the group `test` for another version of Python."""
    packages = ("-e", ".", *nox.project.dependency_groups(PROJECT, "test"))
    folder = session.cache_dir / "environments" / f"python{version}"
    return kept(session, folder, *packages, python=interpreter)


def tested_interpreters() -> dict[str, str]:
    """Other interpreters by version; in CI, where time is short, the newest alone."""
    others = other_interpreters()
    return dict([others.popitem()]) if others and os.environ.get("CI") else others


def interpreters() -> dict[str, str]:
    """All interpreters by version, that of this process too; see `other_interpreters`."""
    return other_interpreters() | {"{}.{}".format(*sys.version_info): sys.executable}


def other_interpreters() -> dict[str, str]:
    """Interpreters from `OLDEST_PYTHON` on by version, without that of this process."""
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
