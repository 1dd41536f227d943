"""How times are taken, and what a line of the table holds.

Contenders take turns within each round, so that a busy moment of the machine hits all of them. Of
calls in memory and over pipes the best round of each counts; over HTTP, and where processes are
started, the median.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

OURS = "mcpgen"
SDK = "official SDK"
FASTMCP = "FastMCP"
FLOOR = "floor"
RIVALS = (SDK, FASTMCP)


@dataclass(frozen=True)
class AtMost:
    """A target: our time is at most `factor` of the time of `contender`."""

    contender: str
    factor: float

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether these times reach the target."""
        return times[OURS] <= self.factor * times[self.contender]

    def __str__(self) -> str:
        if self.factor < 1:
            return f"{self.contender}: {1 / self.factor:g}x as fast"
        return f"{self.contender}: {self.factor:g}x the time"


@dataclass(frozen=True)
class Within:
    """A target: our time is at most so many seconds."""

    seconds: float

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether our time reaches the target."""
        return times[OURS] <= self.seconds

    def __str__(self) -> str:
        return f"{shown(self.seconds)}"


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, seconds by contender, what is to be reached.

    Attributes:
        show: Writes one figure; another one than `shown` where they are no seconds.
    """

    name: str
    times: Mapping[str, float]
    targets: Sequence[AtMost | Within] = ()
    note: str = ""
    show: Callable[[float], str] = field(default=lambda figure: shown(figure))

    @property
    def met(self) -> bool:
        """Whether every target is reached."""
        return all(target.met(self.times) for target in self.targets)

    def cells(self) -> list[str]:
        """The line as cells of the table."""
        ours, floor = self.times[OURS], self.times.get(FLOOR)
        targets = "; ".join(str(target) for target in self.targets)
        return [
            self.name,
            self.show(ours) + (f", {self.note}" if self.note else ""),
            *(self._rival(name) for name in RIVALS),
            f"{self.show(floor)} (ours {ours / floor:.2f}x)" if floor else "",
            targets + ("" if self.met else " MISSED"),
        ]

    def _rival(self, name: str) -> str:
        taken = self.times.get(name)
        return f"{self.show(taken)} ({taken / self.times[OURS]:.1f}x ours)" if taken else ""


def table(lines: Sequence[Line]) -> str:
    """A Markdown table."""
    head = ["", OURS, *RIVALS, FLOOR, "target"]
    rows = [head, ["---"] * len(head), *(line.cells() for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def shown(seconds: float) -> str:
    """A time with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def per_call(work: Callable[[], object], budget: float = 0.1) -> float:
    """Seconds for one call of `work`, from as many calls as fit the budget."""
    start = time.perf_counter()
    work()
    once = time.perf_counter() - start
    count = max(1, min(200_000, int(budget / max(once, 1e-7))))
    gc.collect()
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def best(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds per call by contender: the best of the rounds."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            taken[name].append(per_call(work))
    return {name: min(times) for name, times in taken.items()}


def typical(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Seconds by contender, as each measures itself: the median of the rounds."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, timed in contenders.items():
            taken[name].append(timed())
    return {name: statistics.median(times) for name, times in taken.items()}


async def best_async(
    contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, float]:
    """Seconds by contender, as each measures itself on one event loop: the best of the rounds."""
    taken = await _rounds(contenders, rounds)
    return {name: min(times) for name, times in taken.items()}


async def typical_async(
    contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, float]:
    """The same, but the median of the rounds."""
    taken = await _rounds(contenders, rounds)
    return {name: statistics.median(times) for name, times in taken.items()}


async def _rounds(
    contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, timed in contenders.items():
            gc.collect()
            taken[name].append(await timed())
    return taken
