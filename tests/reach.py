"""A pytest plugin that records which tests reach which lines, and runs the tests of a list."""

from __future__ import annotations

import functools
import json
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "generated/mcpgen_runtime/"
COPIED = "templates/package/"
MEASURED = ("generator/mcpgen/", PACKAGE)
CACHING = tuple(f"{ROOT / folder}/" for folder in ("generator", "generated", "tests"))
"""Folders of code whose caches are cleared."""

monitoring: Any = getattr(sys, "monitoring", None)
"""The module, which Python 3.11 lacks."""

FINDER, COUNTER = 4, 5
"""Ids of tools: one sees each function once, the other lines of ours. Hypothesis uses 3."""

KEY = "reach"
"""Under which a worker of pytest-xdist sends its map."""


@dataclass
class Reach:
    """Lines of the code, with the test functions that reach them."""

    tests: list[str] = field(default_factory=list)
    """`FILE::FUNCTION` of every test function of the run, sorted."""

    seconds: list[float] = field(default_factory=list)
    """How long each of them took, with all its cases."""

    lines: dict[str, dict[int, int]] = field(default_factory=dict)
    """By file and line, a set of tests: bit `n` is `tests[n]`."""

    def add(self, other: Reach) -> None:
        """Merge what another worker recorded in the same run."""
        both = zip(self.seconds or [0.0] * len(other.tests), other.seconds, strict=True)
        self.tests, self.seconds = other.tests, [one + another for one, another in both]
        for path, bits_of in other.lines.items():
            mine = self.lines.setdefault(path, {})
            for line, bits in bits_of.items():
                mine[line] = mine.get(line, 0) | bits

    def reaching(self, path: str, lines: Iterable[int]) -> list[str]:
        """The tests that reach any of some lines of a file."""
        of_file = self.lines.get(path, {})
        return self.named(functools.reduce(int.__or__, (of_file.get(n, 0) for n in lines), 0))

    def reaching_file(self, path: str) -> list[str]:
        """The tests that reach any line of a file."""
        return self.reaching(path, self.lines.get(path, {}))

    def named(self, bits: int) -> list[str]:
        """The tests of a set."""
        return [name for index, name in enumerate(self.tests) if bits >> index & 1]

    def breadth(self) -> Mapping[str, int]:
        """How many files of code each test reaches: a unit test reaches few."""
        counts = dict.fromkeys(self.tests, 0)
        for bits_of in self.lines.values():
            for name in self.named(functools.reduce(int.__or__, bits_of.values(), 0)):
                counts[name] += 1
        return counts

    def dump(self) -> str:
        """The map as JSON; equal sets stand there once."""
        sets: dict[int, int] = {}
        lines = {
            path: {line: sets.setdefault(bits, len(sets)) for line, bits in bits_of.items()}
            for path, bits_of in sorted(self.lines.items())
        }
        row = {"tests": self.tests, "seconds": self.seconds, "lines": lines}
        return json.dumps(row | {"sets": [f"{bits:x}" for bits in sets]})


def parse(text: str) -> Reach:
    """The map in what `Reach.dump` returned."""
    row = json.loads(text)
    sets = [int(bits, 16) for bits in row["sets"]]
    lines = {
        path: {int(line): sets[index] for line, index in bits_of.items()}
        for path, bits_of in row["lines"].items()
    }
    return Reach(row["tests"], row["seconds"], lines)


def read(file: Path) -> Reach:
    """The map in a file."""
    return parse(zlib.decompress(file.read_bytes()).decode())


def write(file: Path, reach: Reach) -> None:
    """Write a map into a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(zlib.compress(reach.dump().encode()))


def copy_of(path: str) -> tuple[str, str]:
    """The copy of a template in the committed package, and the header before the same text."""
    copy = path.replace(COPIED, PACKAGE)
    if copy == path or not (ROOT / copy).is_file():
        return copy, ""
    text = (ROOT / path).read_text("utf-8")
    return copy, (ROOT / copy).read_text("utf-8").removesuffix(text)


@functools.cache
def place_of(file: str) -> str | None:
    """The path of a measured module in the repository; `None` for any other file."""
    path = Path(file)
    if path.is_relative_to(ROOT):
        place = path.relative_to(ROOT).as_posix()
        return place if place.startswith(MEASURED) else None
    package = next((each for each in path.parents if (each / "mcpgen.json").is_file()), None)
    if package is None:
        return None
    place = f"{PACKAGE}{path.relative_to(package).as_posix()}"
    same = (ROOT / place).is_file() and (ROOT / place).read_bytes() == path.read_bytes()
    return place if same else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of both."""
    text = "write which tests reach which lines"
    parser.addoption("--record-reach", metavar="FILE", type=Path, help=text)
    text = "run the test functions that a file lists"
    parser.addoption("--functions", metavar="FILE", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Record where tests run, merge and write where workers report."""
    listed = config.getoption("--functions")
    if listed is not None:
        config.pluginmanager.register(_Selection(listed.read_text("utf-8").splitlines()))
    file = config.getoption("--record-reach")
    if file is None:
        return
    if monitoring is None:
        raise pytest.UsageError("--record-reach needs Python 3.12 or newer")
    distributes = bool(config.getoption("numprocesses", None))  # of pytest-xdist
    is_worker = hasattr(config, "workerinput")
    if is_worker or not distributes:
        config.pluginmanager.register(_Recorder(config, None if is_worker else file))
    else:
        config.pluginmanager.register(_Merger(file))


def function_of(item: pytest.Item) -> str:
    """`FILE::FUNCTION` of a test, without its parameters."""
    return item.nodeid.partition("[")[0]


class _Selection:
    """Runs the listed test functions; the file that comes first in the list runs first."""

    def __init__(self, functions: list[str]) -> None:
        self._functions = frozenset(functions)
        files = dict.fromkeys(name.partition("::")[0] for name in functions)
        self._order = {file: number for number, file in enumerate(files)}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        selected = [item for item in items if function_of(item) in self._functions]
        left_out = [item for item in items if function_of(item) not in self._functions]
        config.hook.pytest_deselected(items=left_out)
        selected.sort(key=lambda item: self._order[item.nodeid.partition("::")[0]])
        items[:] = selected


class _Merger:
    """Merges the maps of the workers of pytest-xdist."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._reach = Reach()

    def pytest_testnodedown(self, node: Any) -> None:
        text = getattr(node, "workeroutput", {}).get(KEY)
        if text is not None:
            self._reach.add(parse(text))

    def pytest_sessionfinish(self) -> None:
        write(self._file, self._reach)


class _Recorder:
    """Adds the lines that each test function executes to a map."""

    def __init__(self, config: pytest.Config, file: Path | None) -> None:
        self._config = config
        self._file = file
        self._hits: set[tuple[str, int]] = set()
        self._current = 0
        self._bits: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._index: dict[str, int] = {}
        self._users: defaultdict[str, int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._test_file: Path | None = None
        self._codes: dict[int, CodeType] = {}
        events = monitoring.events
        monitoring.use_tool_id(FINDER, "reach: functions")
        monitoring.register_callback(FINDER, events.PY_START, self._enter)
        monitoring.use_tool_id(COUNTER, "reach: lines")
        monitoring.register_callback(COUNTER, events.LINE, self._hit)
        monitoring.set_events(FINDER, events.PY_START)

    def _enter(self, code: CodeType, _offset: int) -> object:
        if place_of(code.co_filename) is not None:
            monitoring.set_local_events(COUNTER, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def _hit(self, code: CodeType, line: int) -> object:
        self._hits.add((place_of(code.co_filename) or "", line))
        self._codes[id(code)] = code
        return monitoring.DISABLE

    def _count_for(self, tests: int) -> None:
        """Count lines for a set of tests from now on, those of functions that were reached anew."""
        hits, codes, counted = self._hits, self._codes, self._current
        self._hits, self._codes, self._current = set(), {}, tests  # other threads go on
        for hit in hits:
            self._bits[hit] |= counted
        for code in codes.values():
            monitoring.set_local_events(COUNTER, code, 0)
            monitoring.set_local_events(COUNTER, code, monitoring.events.LINE)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        names = sorted({function_of(item) for item in session.items})
        self._index = {name: number for number, name in enumerate(names)}
        for item in session.items:
            for fixture in getattr(item, "fixturenames", ()):
                self._users[fixture] |= 1 << self._index[function_of(item)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if item.path != self._test_file:
            self._test_file = item.path
            clear_caches()
        name, begin = function_of(item), time.perf_counter()
        tests = 1 << self._index[name]
        if tests != self._current:
            self._count_for(tests)
        result = yield
        self._seconds[name] += time.perf_counter() - begin
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        tests = self._current
        self._count_for(self._users[fixturedef.argname])
        try:
            return (yield)
        finally:
            self._count_for(tests)

    def pytest_sessionfinish(self) -> None:
        self._count_for(0)
        monitoring.set_events(FINDER, 0)
        monitoring.register_callback(FINDER, monitoring.events.PY_START, None)
        monitoring.register_callback(COUNTER, monitoring.events.LINE, None)
        for tool in (FINDER, COUNTER):
            monitoring.free_tool_id(tool)
        lines: dict[str, dict[int, int]] = {}
        for (path, line), bits in sorted(self._bits.items()):
            if bits:
                lines.setdefault(path, {})[line] = bits
        seconds = [round(self._seconds[name], 3) for name in self._index]
        reach = Reach(list(self._index), seconds, lines)
        if self._file is not None:
            write(self._file, reach)
        else:
            self._config.workeroutput[KEY] = reach.dump()  # type: ignore[attr-defined]  # of pytest-xdist


def clear_caches() -> None:
    """Clear the caches of functions of the generator, the package and the tests."""
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(CACHING):
            values = [*vars(module).values()]
            values += [each for kind in values if isinstance(kind, type) for each in _own(kind)]
            for value in values:
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def _own(kind: type) -> list[object]:
    """Attributes of a class, functions of static and class methods among them."""
    return [getattr(value, "__func__", value) for value in vars(kind).values()]
