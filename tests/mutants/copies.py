"""Copies of the repository, in which mutants are applied and tested."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mutants.mutations import Mutant
from reach import ROOT, copy_of

KILLED, SURVIVED, UNDECIDED, MISTYPED = "killed", "survived", "undecided", "mistyped"
LONGEST = 240.0
"""After so many seconds of a clock, the tests of a mutant are ended."""

FIRST = 8
"""So many test functions, which most probably fail, run without waiting for files of others."""

GENERATOR = "generator/"
GOLDEN = ("check", "--quiet", "--no-cache", "generated/mcpgen_runtime")
"""The command that compares the committed package with what the generator writes."""

MYPY = ("--no-error-summary", "--no-color-output")

PYTEST = (
    *("-x", "-q", "--tb=no", "-rfE", "-m", "not slow and not trio", "--reruns=1", "--timeout=30"),
    "--snapshot-warn-unused",  # those of the test functions that were not chosen
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:cov"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of plugins in `LIBRARIES`
)
SLOW = ("-m", "slow and not trio", "--timeout=60")
OWN: Mapping[str, str] = {}
ON_WORKERS = ("-m", "workers and not trio and not one_process", "--timeout=60")
WORKERS = {"MCP_WORKERS": "3", "MCP_SCHEDULES": "100"}
"""Variables of `nox -s shared`, with fewer schedules, for the tests in `SHARED`."""

SHARED = "tests/package/server/shared"
SLOW_TOO = ("-m", "not trio", "--timeout=60")
"""Options that come after those, and take their place."""

LIBRARIES = ["aiohttp", "anyio", "hypothesis.strategies", "jsonschema", "msgspec", "pytest", "trio"]
"""Libraries that are slow to import: every run of pytest forks a process that has them."""

FORKS = multiprocessing.get_context("forkserver")
TYPE_ERROR = re.compile(r"^.+: error: .+$", re.MULTILINE)
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Copy:
    """A copy of the repository, in which one mutant at a time is applied."""

    def __init__(self, folder: Path, root: Path = ROOT, longest: float = LONGEST) -> None:
        self.folder = folder
        self._longest = longest
        self._passing: set[str] = set()
        self._is_golden_current: bool | None = None
        list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(list_files, cwd=root, check=True, capture_output=True).stdout
        for name in filter(None, listing.decode().split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, folder / name)

    def judge(
        self, mutant: Mutant, functions: list[str], slow: str | None = None
    ) -> tuple[str, str]:
        """The result of some tests with a mutant, and what decided it.

        `slow` is a file or folder whose slow tests run if `functions` pass, as long as they may.
        """
        text = (self.folder / mutant.path).read_text("utf-8")
        begin = time.monotonic()
        self._write(mutant.path, mutant.apply(text))
        golden_code: int | None = 0
        type_error, env = "", OWN
        try:
            code, output = self._run_functions(functions[:FIRST])
            if code == 0 and functions[FIRST:]:
                code, output = self._run_functions(functions[FIRST:])
            if code == 0 and mutant.path.startswith(GENERATOR):
                golden_code, output = self._start(run_generator, *GOLDEN)
            if code == golden_code == 0 and slow is not None:
                code, output, env = self._run_slow(slow)
            if code == golden_code == 0:
                type_error = self._find_type_error(copy_of(mutant.path)[0])
        finally:
            self._write(mutant.path, text)
        if golden_code != 0:
            return self._judge_golden(golden_code)
        if type_error:
            return MISTYPED, type_error
        if code == 0:
            return SURVIVED, f"{len(functions)} test functions, {time.monotonic() - begin:.0f} s"
        if code is None:
            is_endless = self._run_functions(functions)[0] is not None
            return KILLED if is_endless else UNDECIDED, f"no end after {self._longest:g} s"
        failed = FAILED_TEST.search(output)
        if failed is None:
            return KILLED, output.strip()[-200:]
        test = failed.group(1)
        if not self._passes(test, env):
            return UNDECIDED, f"{test} fails without the mutant too"
        return KILLED, test

    def _judge_golden(self, code: int | None) -> tuple[str, str]:
        """The result of a mutant with which the committed package is another one, or no package."""
        if self._is_golden_current is None:
            self._is_golden_current = self._start(run_generator, *GOLDEN)[0] == 0
        if code is None or not self._is_golden_current:
            return UNDECIDED, "the generator does not write generated/mcpgen_runtime"
        return KILLED, "nox -s check"

    def _find_type_error(self, path: str) -> str:
        """The first error that mypy finds in a module; empty if it finds none."""
        if not (self.folder / path).is_file():
            return ""
        code, output = self._start(run_mypy, *MYPY, path)
        error = TYPE_ERROR.search(output)
        if (code, error is None) not in ((0, True), (1, False)):
            raise RuntimeError(f"mypy {path}: expected errors or none, got code {code}: {output}")
        return error[0] if error is not None else ""

    def _run_slow(self, slow: str) -> tuple[int, str, Mapping[str, str]]:
        """The exit code of slow tests, then of those on workers; 0 if they took too long."""
        runs = [(SLOW, OWN)]
        if slow == SHARED:
            runs.append((ON_WORKERS, WORKERS))
        for words, env in runs:
            code, output = self._run(*words, slow, env=env)
            if code:
                return code, output, env
        return 0, "", OWN

    def _passes(self, test: str, env: Mapping[str, str]) -> bool:
        """Whether a test, or a file of tests, passes without a mutant."""
        if test not in self._passing and self._run(*SLOW_TOO, test, env=env)[0] == 0:
            self._passing.add(test)
        return test in self._passing

    def _write(self, path: str, text: str) -> None:
        """Write a module, and its copy in the package; forget their bytecode."""
        for name, header in ((path, ""), copy_of(path)):
            file = self.folder / name
            if not file.is_file():
                continue  # a part that the committed package lacks
            file.write_text(header + text, "utf-8")
            for bytecode in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
                bytecode.unlink()

    def _run_functions(self, functions: Sequence[str]) -> tuple[int | None, str]:
        """The exit code of some test functions, and the output."""
        (self.folder / "functions.txt").write_text("\n".join(functions), "utf-8")
        files = dict.fromkeys(name.partition("::")[0] for name in functions)
        return self._run("--functions=functions.txt", *files)

    def _run(self, *words: str, env: Mapping[str, str] = OWN) -> tuple[int | None, str]:
        """The exit code of pytest, 0 without tests, and its output; no code if it took too long."""
        code, output = self._start(run_pytest, *words, env=env)
        return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code, output

    def _start(
        self, run: Callable[[Sequence[str]], None], *words: str, env: Mapping[str, str] = OWN
    ) -> tuple[int | None, str]:
        """The exit code of a command in the copy and its output; no code if it took too long."""
        output = self.folder / "output.txt"
        process = FORKS.Process(target=run_in_copy, args=(self.folder, output, run, words, env))
        process.start()
        process.join(self._longest)
        if process.is_alive() and process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return None, ""
        return process.exitcode, output.read_text("utf-8", "replace")


def run_in_copy(
    folder: Path,
    output: Path,
    run: Callable[[Sequence[str]], None],
    words: Sequence[str],
    env: Mapping[str, str],
) -> None:
    """Run a command in a copy of the repository, as a process group of its own."""
    os.setsid()
    with output.open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.chdir(folder)
    sources = (folder / "generator", folder / "generated")
    os.environ.update(env)
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, sources))
    run(words)


def run_pytest(words: Sequence[str]) -> None:
    """Run pytest, and exit."""
    sys.exit(pytest.main([*PYTEST, *words]))


def run_generator(words: Sequence[str]) -> None:
    """Run mcpgen, and exit."""
    sys.path.insert(0, f"{Path.cwd() / GENERATOR}")
    from mcpgen.cli import main

    main(words)


def run_mypy(words: Sequence[str]) -> None:
    """Run mypy, and exit."""
    from mypy import api

    output, errors, code = api.run(list(words))
    print(output or errors, flush=True)
    sys.exit(code)


def preload_libraries() -> None:
    """Import what all runs need, in the process that they are forks of."""
    FORKS.set_forkserver_preload(LIBRARIES)
