"""Whether tests fail when the code is wrong: a sample of single mutations, each tested.

A mutant is applied in a copy of the repository. First the tests run that reach it by the map of
`reach.py`, the most specific first, as far as their seconds fit; then some that may reach it in
other processes. If all pass, the committed package is compared with what the generator writes, and
the slow tests run that mirror the folder, for `server/shared` also on several workers. A survivor
that mypy refuses is mistyped; a mutant whose failing test fails without it too is undecided.
"""

from __future__ import annotations

import argparse
import queue
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from mutants.copies import KILLED, MISTYPED, SURVIVED, UNDECIDED, Copy, preload_libraries
from mutants.mutations import Mutant, mutants_of
from reach import COPIED, ROOT, Reach, copy_of, read

SOURCES = (COPIED, "generator/mcpgen/")
SIDE_BY_SIDE = 2
TEST_SECONDS = 40.0
"""How much recorded time of tests one mutant may take; the start of pytest is not counted."""

UNRECORDED_SECONDS = 12.0
"""The same for tests that reach the mutant in no recorded way."""

MIRRORS = {COPIED: "tests/package/", "generator/mcpgen/": "tests/generator/"}
"""Folders of tests that mirror folders of code."""

DOCUMENTED = (
    "tests/conventions/test_limits.py",
    "tests/generator/test_commands.py",
    "tests/package/test_public_signatures.py",
)
"""They compare values of the code with documents, without running a line."""

NEVER_REACHED = "never reached"


def functions_for(mutant: Mutant, reach: Reach, breadth: Mapping[str, int]) -> list[str]:
    """The test functions that reach a mutant, the most specific first, and those of their files."""
    path, header = copy_of(mutant.path)
    if mutant.reached_by is None:
        reaching = reach.reaching_file(path)
    else:
        shift = header.count("\n")
        reaching = reach.reaching(path, (line + shift for line in mutant.reached_by))
    reaching.sort(key=breadth.__getitem__)
    files = {file_of(name) for name in reaching}
    rest = [name for name in reach.tests if file_of(name) in files]
    return within(TEST_SECONDS, [*reaching, *rest], reach)


def unrecorded_functions_for(mutant: Mutant, reach: Reach) -> list[str]:
    """The test functions that may reach a mutant in a child process, by their place."""
    room, module = mirror_of(mutant)
    folder = f"{PurePosixPath(room, module.parent)}/"
    documented = [name for name in reach.tests if file_of(name) in DOCUMENTED]
    own = [name for name in reach.tests if name.startswith(room) and module.stem in file_of(name)]
    mirrors = (folder, f"{slow_tests_of(mutant)}::") if folder != room else ()
    beside = [name for name in reach.tests if name.startswith(mirrors)]
    return within(UNRECORDED_SECONDS, [*documented, *own, *beside], reach)


def mirror_of(mutant: Mutant) -> tuple[str, PurePosixPath]:
    """The folder of tests for a mutant's module, and the path of the module in its own folder."""
    source = next(each for each in MIRRORS if mutant.path.startswith(each))
    return MIRRORS[source], PurePosixPath(mutant.path.removeprefix(source))


def slow_tests_of(mutant: Mutant) -> str | None:
    """The folder of tests that mirrors that of a mutant, or a file of its name; `None` for none."""
    room, module = mirror_of(mutant)
    places = (f"{room}test_{module.parent.name}.py", f"{PurePosixPath(room, module.parent)}")
    return next((each for each in places if (ROOT / each).exists() and f"{each}/" != room), None)


def file_of(function: str) -> str:
    """The file of a test function."""
    return function.partition("::")[0]


def within(limit: float, functions: Iterable[str], reach: Reach) -> list[str]:
    """The test functions that fit some seconds, in order; the first one in any case."""
    seconds = dict(zip(reach.tests, reach.seconds, strict=True))
    chosen: list[str] = []
    total = 0.0
    for name in dict.fromkeys(functions):
        if not chosen or total + seconds[name] <= limit:
            total += seconds[name]
            chosen.append(name)
    return chosen


def sample(seed: int, count: int, room: str) -> list[Mutant]:
    """Some mutants of the modules whose paths begin with a room, in their order."""
    candidates = [
        mutant
        for source in SOURCES
        for file in sorted((ROOT / source).rglob("*.py"))
        if f"{file.relative_to(ROOT / source)}".startswith(room)
        or f"{file.relative_to(ROOT)}".startswith(room)
        for mutant in mutants_of(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
    ]
    return random.Random(seed).sample(candidates, min(count, len(candidates)))


def outcomes(mutants: list[Mutant], reach: Reach) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with its result and what decided it, in the order of the mutants."""
    breadth = reach.breadth()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(SIDE_BY_SIDE):
            copies.put(Copy(Path(name, f"{number}")))

        def judge(mutant: Mutant) -> tuple[Mutant, str, str]:
            functions = functions_for(mutant, reach, breadth)
            others = unrecorded_functions_for(mutant, reach)
            copy = copies.get()
            try:
                result, detail = copy.judge(mutant, [*functions, *others], slow_tests_of(mutant))
                if result == SURVIVED and not functions:
                    result = NEVER_REACHED
                return mutant, result, detail
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from pool.map(judge, mutants)


def main() -> None:
    """Read the arguments, test the mutants and print what became of each."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("map", type=Path, help="map of pytest --record-reach")
    parser.add_argument("--seed", type=int, default=1, help="what chooses the sample")
    parser.add_argument("--count", type=int, default=120, help="how many mutants")
    parser.add_argument("--room", default="", help="beginning of a path, as server/asgi")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    preload_libraries()
    reach = read(options.map)
    for mutant, result, detail in outcomes(
        sample(options.seed, options.count, options.room), reach
    ):
        counts[result] += 1
        text = (ROOT / mutant.path).read_text("utf-8")
        print(f"{result}: {mutant.describe(text)}  [{detail}]", flush=True)
    reached = counts[KILLED] + counts[SURVIVED]
    share = f", {counts[KILLED] / reached:.0%} of those reached" if reached else ""
    results = (KILLED, SURVIVED, MISTYPED, UNDECIDED, NEVER_REACHED)
    numbers = ", ".join(f"{counts[name]} {name}" for name in results)
    print(f"{numbers}{share}; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
