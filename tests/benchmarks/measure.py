"""How times are measured, and what a row of the table holds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

OURS = "mcpgen"
SDK = "official SDK"
FASTMCP = "FastMCP"
TYPESCRIPT = "TypeScript SDK"
FLOOR = "floor"
RIVALS = (SDK, FASTMCP)
"""The rivals with a column of their own. The rival of another row stands in the first of them."""


@dataclass(frozen=True)
class AtMost:
    """A target: our figure is at most `factor` of that of `contender`, or missed for a reason."""

    contender: str
    factor: float
    reason: str = ""

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether these times reach the target."""
        return times[OURS] <= self.factor * times[self.contender]

    def __str__(self) -> str:
        if self.factor < 1:
            return f"{self.contender}: {1 / self.factor:g}x as fast"
        return f"{self.contender}: at most {self.factor:g}x"


@dataclass(frozen=True)
class RateOf:
    """A target: at least this share of the calls per second of `contender`."""

    contender: str
    share: float
    reason: str = ""

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether these times reach the target."""
        return times[OURS] * self.share <= times[self.contender]

    def __str__(self) -> str:
        return f"{self.contender}: {self.share:g} of its calls per second"


@dataclass(frozen=True)
class Near:
    """A target: our figure differs from that of `contender` by this share of it at most."""

    contender: str
    share: float
    reason: str = ""

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether these times reach the target."""
        expected = times[self.contender]
        return abs(times[OURS] - expected) <= self.share * expected

    def __str__(self) -> str:
        return f"{self.contender}: {self.share:.0%} more or less"


@dataclass(frozen=True)
class Within:
    """A target: our figure, of seconds or what `show` writes, is at most this one."""

    figure: float
    show: Callable[[float], str] = field(default=lambda figure: format_seconds(figure))
    reason: str = ""

    def met(self, times: Mapping[str, float]) -> bool:
        """Whether our figure reaches the target."""
        return times[OURS] <= self.figure

    def __str__(self) -> str:
        return f"at most {self.show(self.figure)}"


Target: TypeAlias = AtMost | RateOf | Near | Within


@dataclass(frozen=True)
class Line:
    """One row of the table: the measured work, seconds by contender, and the targets."""

    name: str
    times: Mapping[str, float]
    targets: Sequence[Target] = ()
    note: str = ""
    show: Callable[[float], str] = field(default=lambda figure: format_seconds(figure))

    @property
    def met(self) -> bool:
        """Whether every target is reached."""
        return all(self._met(target) for target in self.targets)

    def cells(self) -> list[str]:
        """The row as cells of the table."""
        ours, floor = self.times[OURS], self.times.get(FLOOR)
        targets = "; ".join(
            f"{target}{'' if self._met(target) else missed(target)}" for target in self.targets
        )
        return [
            self.name,
            self.show(ours) + (f", {self.note}" if self.note else ""),
            *(self._rival(name) for name in RIVALS),
            f"{self.show(floor)} (ours {ours / floor:.2f}x)" if floor else "",
            targets,
        ]

    def _met(self, target: Target) -> bool:
        """Whether a target is reached; one whose contender was left out is not judged."""
        return getattr(target, "contender", OURS) not in self.times or target.met(self.times)

    def _rival(self, name: str) -> str:
        if name == SDK and TYPESCRIPT in self.times:
            return f"{TYPESCRIPT}: {self._compared(TYPESCRIPT)}"
        return self._compared(name) if self.times.get(name) else ""

    def _compared(self, name: str) -> str:
        taken = self.times[name]
        return f"{self.show(taken)} ({taken / self.times[OURS]:.1f}x ours)"


def missed(target: Target) -> str:
    """The text of a row for a target that is missed."""
    return f" MISSED: {target.reason}" if target.reason else " MISSED"


def table(lines: Sequence[Line]) -> str:
    """A Markdown table."""
    head = ["", OURS, *RIVALS, FLOOR, "target"]
    rows = [head, ["---"] * len(head), *(line.cells() for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def format_seconds(seconds: float) -> str:
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


def per_calls(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds per call by contender."""
    return medians({name: partial(per_call, work) for name, work in contenders.items()}, rounds)


def medians(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Seconds by contender, as each measures itself."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, timed in contenders.items():
            taken[name].append(timed())
    return {name: statistics.median(times) for name, times in taken.items()}


async def medians_async(
    contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, float]:
    """Seconds by contender, as each measures itself on one event loop."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, timed in contenders.items():
            gc.collect()
            taken[name].append(await timed())
    return {name: statistics.median(times) for name, times in taken.items()}
