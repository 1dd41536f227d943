"""The table of checks: each has a rule, the transports where the rule shows, and a function.

The function sends messages and checks the replies. It returns if the rule is kept, and raises
`BrokenRuleError` or `NotApplicableError` otherwise. The revisions are those of the rule.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from mcpgen.check_server.connections import Transport
from mcpgen.check_server.rules import Rule, rules
from mcpgen.check_server.session import Session

Run: TypeAlias = Callable[[Session], Awaitable[None]]

EVERYWHERE: tuple[Transport, ...] = ("stdio", "http")
STDIO: tuple[Transport, ...] = ("stdio",)
HTTP: tuple[Transport, ...] = ("http",)


@dataclass(frozen=True)
class Check:
    """One row of the table.

    Attributes:
        id: The rule's id.
        transports: The transports on which the rule can be checked.
        run: The function of the check.
        compares: Whether it needs to know which of all revisions the server speaks.
    """

    id: str
    transports: tuple[Transport, ...]
    run: Run
    compares: bool

    @property
    def rule(self) -> Rule:
        """The rule."""
        return rules()[self.id]


class Table:
    """Checks by the id of their rule, in the order of execution."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {}

    def add(
        self, *ids: str, on: tuple[Transport, ...] = EVERYWHERE, compares: bool = False
    ) -> Callable[[Run], Run]:
        """Register a function as the check of rules, each of other revisions.

        Args:
            ids: The rules.
            on: The transports on which they can be checked.
            compares: Whether it needs to know which of all revisions the server speaks.
        """

        def register(run: Run) -> Run:
            self.checks |= {id: Check(id, on, run, compares) for id in ids}
            return run

        return register
