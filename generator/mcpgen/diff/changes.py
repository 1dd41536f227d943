"""A change between two revisions: what, where, in which messages, and whom it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from mcpgen.diff.rules import Rule, Severity
from mcpgen.methods import Role

OTHER: dict[Role, Role] = {"client": "server", "server": "client"}
"""The peer of a side."""

PARTIES = (
    "client that sends",
    "server that receives",
    "server that sends",
    "client that receives",
)
"""Everyone whom a change can concern."""


@dataclass(frozen=True, order=True)
class Message:
    """A kind of message, or a part of one.

    Attributes:
        sender: Who sends it.
        text: What it is: `tools/call`, `tools/call result`, `error response`.
    """

    sender: Role
    text: str


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        rule: The rule that names it.
        severity: How much it matters, by the rule or by settings.
        owner: The method, type or table that it is in, as the new revision calls it.
        old_place: What changes, in the old revision: `Tool.title`; empty if that has no such thing.
        new_place: The same in the new revision.
        old: What is there in the old revision, in words.
        new: The same in the new revision.
        senders: Who sends what changes.
        messages: Where it is sent.
        confidence: How sure a renaming is, from 0 to 1; `None` for all else.
    """

    rule: Rule
    severity: Severity
    owner: str
    old_place: str
    new_place: str
    old: str
    new: str
    senders: frozenset[Role]
    messages: tuple[Message, ...] = ()
    confidence: float | None = None

    @property
    def place(self) -> str:
        """What changes, by its name in the new revision if that has it."""
        return self.new_place or self.old_place

    @property
    def is_breaking(self) -> bool:
        """Whether code of one side has to change."""
        return self.severity == "breaking"

    @cached_property
    def directions(self) -> tuple[str, ...]:
        """Which way it is sent: `client to server`, `server to client`, or both."""
        return tuple(f"{sender} to {OTHER[sender]}" for sender in sorted(self.senders))

    @cached_property
    def affected(self) -> tuple[str, ...]:
        """Who has to look at it, of `PARTIES`."""
        found: set[str] = set()
        for sender in self.senders:
            if self.rule.affects in ("sender", "both"):
                found.add(f"{sender} that sends")
            if self.rule.affects in ("receiver", "both"):
                found.add(f"{OTHER[sender]} that receives")
        return tuple(party for party in PARTIES if party in found)

    @property
    def reason(self) -> str:
        """Why it matters as it does."""
        return self.rule.reason

    @property
    def sentence(self) -> str:
        """The change in words, without its place."""
        sure = "" if self.confidence is None else f" ({self.confidence:.0%} sure)"
        return self.rule.text.format(old=self.old, new=self.new).rstrip() + sure


def counts(changes: Iterable[Change]) -> dict[Severity, int]:
    """How many changes there are of each severity."""
    found: dict[Severity, int] = {"breaking": 0, "warning": 0, "compatible": 0}
    for change in changes:
        found[change.severity] = found.get(change.severity, 0) + 1
    return found
