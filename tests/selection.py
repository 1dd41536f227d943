"""A pytest plugin that chooses files by their marks, and cases of test functions by `--cases`."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Container, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from requirements import REVISION_NAME

SCHEMA = Path(__file__).resolve().parents[1] / "schema"
*OLDER_REVISIONS, _, NEWEST_REVISION = sorted(path.name for path in SCHEMA.glob("20*"))

MARK = re.compile(r"pytest\.mark\.(\w+)")
MARKS_OF_FILE = re.compile(r"^pytestmark = (\[\n(?: .*\n)*\]|.*)$", re.MULTILINE)
"""The statement that marks all tests of a file."""

OF_WHOLE_FILES = frozenset(
    {"attack", "browser", "costly", "history", "interop", "lengthy", "processes", "proxies"}
    | {"typing", "workers"}
)
"""Marks that no single test has."""

CASES = {
    "all": "all cases, of the costly properties a sample",
    "every": "all cases, names and schedules",
    "newest": "of cases whose names differ in their revision alone, the newest",
    "others": "all cases that do not run by `quick`, all goldens of a function, and its properties",
    "once": "one case of each function, on its newest revision; no slow one if there is another",
    "quick": "one case of each function on the newest revision that is not slow, if there is one",
    "sample": "of the cases of a function on trio or on an older revision, each sixth",
}
"""The values of `--cases`."""

NOT_QUICK = OF_WHOLE_FILES - {"workers"} | {"slow"}
"""Marks of tests that the session `quick` leaves out."""

ONE_EACH = ("once", "quick")
"""Values by which a function has one case at most."""

SAMPLED = 6
"""Of so many cases of a function on trio or on an older revision, `--cases=sample` takes one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cases`."""
    text = "; ".join(f"{name}: {meaning}" for name, meaning in CASES.items())
    parser.addoption("--cases", choices=CASES, default="all", help=text)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where a function has one case, let a property have fewer examples."""
    if config.getoption("--cases") in ONE_EACH:
        settings.register_profile("quick", settings(), max_examples=20)
        settings.load_profile("quick")
        config.option.warn_unused_snapshots = True  # of the cases that do not run


def marks_of_file(path: Path) -> frozenset[str]:
    """Names of the marks that all tests of a file have."""
    statement = MARKS_OF_FILE.search(path.read_text("utf-8"))
    return frozenset(MARK.findall(statement[1]) if statement else ())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file whose marks the expression of `-m` excludes, or lacks."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    terms = re.sub(r"\(.*?\)", "", config.option.markexpr).split(" and ")
    words = {term.strip() for term in terms}
    marks = marks_of_file(collection_path)
    is_excluded = any(f"not {mark}" in words for mark in marks)
    return is_excluded or bool(words & (OF_WHOLE_FILES - marks)) or None


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
    """Leave out cases before they are items: most on trio, and all but one by `ONE_EACH`."""
    definition = metafunc.definition
    fixtures = metafunc._arg2fixturedefs  # no hook is called with these, nor with the cases
    if "anyio_backend" in fixtures and definition.get_closest_marker("on_asyncio"):
        fixtures["anyio_backend"] = fixtures["asyncio_backend"]
    yield
    config, calls = metafunc.config, metafunc._calls
    cases = {
        Case(
            definition, f"{definition.name}[{call.id}]", tuple(mark.name for mark in call.marks)
        ): call
        for call in calls
    }
    if config.getoption("--cases") in ONE_EACH:
        chosen = one_of([*cases], is_quick=config.getoption("--cases") == "quick")
    elif "not trio" in config.option.markexpr:
        chosen = [case for case in cases if not on_trio(case)]
    else:
        return None
    metafunc._calls = [cases[case] for case in chosen] or calls[:1]  # as above
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Keep one case of each function by `ONE_EACH`, before others cost more time, or the others."""
    collected = yield
    chosen = collector.config.getoption("--cases")
    if not isinstance(collected, list) or chosen not in {*ONE_EACH, "others"}:
        return collected
    cases = [each for each in collected if isinstance(each, pytest.Item)]
    if not cases:
        return collected
    if chosen == "others":
        quick = one_of(cases, is_quick=True)
        return [each for each in cases if each not in quick or shows_more(each)]
    return one_of(cases, is_quick=chosen == "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by loop and revision; deselect what `--cases` or the loop does not choose."""
    older = older_cases(items)
    for item in items:
        if on_trio(item):
            item.add_marker("trio")
        if item.nodeid in older and revisions_of(item).issubset(OLDER_REVISIONS):
            item.add_marker("older")
    cases = config.getoption("--cases")
    if cases in ONE_EACH:
        return
    if cases == "newest":
        wanted = [item for item in items if item.nodeid not in older]
    else:
        wanted = [item for item in items if not on_trio(item) or is_own(item, older)]
    if cases == "sample":
        beyond = beyond_sample(wanted)
        wanted = [item for item in wanted if item.nodeid not in beyond]
    refused = set(items).difference(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item in refused])
    items[:] = wanted


def on_trio(item: pytest.Item | Case) -> bool:
    """Whether a test runs on trio."""
    return "trio" in item.name


def is_own(item: pytest.Item, older: Container[str]) -> bool:
    """Whether a test on trio has something of its own to show."""
    revisions = revisions_of(item)
    return item.nodeid not in older and (not revisions or not revisions <= set(OLDER_REVISIONS))


def has_goldens(item: pytest.Item | Case) -> bool:
    """Whether a test compares what it sees with goldens of syrupy."""
    function = item.function if isinstance(item, Case) else item
    return "snapshot" in getattr(function, "fixturenames", ())


def shows_more(item: pytest.Item) -> bool:
    """Whether a case that `--cases=quick` chooses shows more in other sessions, or runs there only.

    There a property has more examples.
    """
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    is_left_out = any(mark.name in NOT_QUICK for mark in item.iter_markers())
    return is_left_out or is_property or has_goldens(item)


def revisions_of(item: pytest.Item | Case) -> set[str]:
    """The revisions in the name of a test."""
    return set(REVISION_NAME.findall(item.name))


def older_cases(items: Iterable[pytest.Item | Case]) -> set[str]:
    """Ids of tests for whose function and other parameters there is a newer revision.

    A function with goldens keeps all its cases together: a golden that no case asks for is unused.
    """
    cases: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for item in items:
        revisions = revisions_of(item)
        if len(revisions) == 1 and not has_goldens(item):
            cases[REVISION_NAME.sub("*", item.nodeid)].append((revisions.pop(), item.nodeid))
    return {test for rows in cases.values() for _, test in sorted(rows)[:-1]}


def beyond_sample(items: Iterable[pytest.Item]) -> set[str]:
    """Ids of cases on trio or on older revisions that differ from others in their data alone."""
    alike: defaultdict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        is_older = item.get_closest_marker("older") is not None
        if (is_older or on_trio(item)) and not has_goldens(item):
            name = item.nodeid.partition("[")[0]
            claims = tuple(mark.args for mark in item.iter_markers("requirement"))
            alike[name, on_trio(item), frozenset(revisions_of(item)), claims].append(item)
    beyond: set[str] = set()
    for key, rows in alike.items():
        first = zlib.crc32(f"{key[0]}".encode()) % len(rows)
        beyond |= {item.nodeid for n, item in enumerate(rows) if (n - first) % SAMPLED}
    return beyond


def one_of(cases: Sequence[AnyCase], *, is_quick: bool) -> list[AnyCase]:
    """The case of a function that runs by `--cases=once`, or by `quick`, if there is one."""
    soon = [item for item in cases if not on_trio(item) and not item.get_closest_marker("slow")]
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
