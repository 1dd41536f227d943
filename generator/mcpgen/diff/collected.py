"""The changes of one comparison while it runs: the same change in several messages is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mcpgen.diff.changes import Change, Message
from mcpgen.diff.rules import RULES, Severity
from mcpgen.methods import Role

_ORDER = {rule: number for number, rule in enumerate(RULES)}
_WEIGHT: Mapping[Severity, int] = {"breaking": 0, "warning": 1, "compatible": 2, "ignore": 3}


@dataclass(frozen=True)
class Spot:
    """Where a comparison is: the place in both revisions, and the messages that hold it.

    Attributes:
        owner: The method, type or table.
        old: The place in the old revision.
        new: The place in the new one.
        messages: Where it is sent.
    """

    owner: str
    old: str
    new: str
    messages: frozenset[Message]

    def member(self, old: str, new: str) -> Spot:
        """A member of the object here."""
        return replace(self, old=f"{self.old}.{old}", new=f"{self.new}.{new}")

    def below(self, suffix: str) -> Spot:
        """What an array or a map holds here."""
        return replace(self, old=self.old + suffix, new=self.new + suffix)


@dataclass
class Collected:
    """The changes so far.

    Args:
        severities: The severity of every rule.
    """

    severities: Mapping[str, Severity]
    changes: dict[tuple[str, str, str, str, str], Change] = field(
        default_factory=dict[tuple[str, str, str, str, str], Change]
    )

    def add(
        self,
        rule: str,
        spot: Spot,
        old: str = "",
        new: str = "",
        *,
        senders: Iterable[Role] = (),
        confidence: float | None = None,
    ) -> None:
        """Record a change.

        Args:
            rule: Its rule.
            spot: Where it is. The place in a revision that has nothing there is left out.
            old: What the old revision has.
            new: What the new one has.
            senders: Who sends it, if the messages of the spot do not say.
            confidence: How sure a renaming is.
        """
        severity = self.severities[rule]
        if severity == "ignore":
            return
        known = RULES[rule]
        old_place = "" if known.kind == "added" else spot.old
        new_place = "" if known.kind == "removed" else spot.new
        key = (rule, old_place, new_place, old, new)
        before = self.changes.get(key)
        messages = spot.messages | set(before.messages if before else ())
        who: frozenset[Role] = frozenset((*senders, *(each.sender for each in spot.messages)))
        self.changes[key] = Change(
            rule=known,
            severity=severity,
            owner=spot.owner,
            old_place=old_place,
            new_place=new_place,
            old=old,
            new=new,
            senders=who | before.senders if before else who,
            messages=tuple(sorted(messages)),
            confidence=confidence,
        )

    def sorted(self) -> tuple[Change, ...]:
        """All changes: the gravest first, then by rule and place."""
        return tuple(
            sorted(
                self.changes.values(),
                key=lambda change: (
                    _WEIGHT[change.severity],
                    _ORDER[change.rule.id],
                    change.place,
                    change.old,
                    change.new,
                ),
            )
        )
