"""Changes between two revisions: rule, place, messages and affected parties.

`Collected` gathers the changes of one comparison, and merges equal changes of several messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mcpgen.diff.rules import RULES, SEVERITIES, Rule, Severity
from mcpgen.model.name import Role

OTHER: dict[Role, Role] = {"client": "server", "server": "client"}
"""The peer of a side."""

PARTIES = (
    "client that sends",
    "server that receives",
    "server that sends",
    "client that receives",
)
"""All parties that a change can affect."""

_ORDER = {rule: number for number, rule in enumerate(RULES)}
_WEIGHT = {severity: number for number, severity in enumerate(SEVERITIES)}


@dataclass(frozen=True, order=True)
class Message:
    """A kind of message, or a part of one.

    Attributes:
        sender: The role of the sender.
        text: The description: `tools/call`, `tools/call result`, `error response`.
    """

    sender: Role
    text: str


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        rule: The rule of the change.
        severity: The severity, by the rule or by settings.
        owner: The method, type or table that contains the change, by its new name.
        old_place: The changed element in the old revision, such as `Tool.title`; empty if it has
            none.
        new_place: The changed element in the new revision, likewise.
        old: The content in the old revision, in words.
        new: The content in the new revision, in words.
        senders: The roles that send the changed element.
        messages: The messages that contain it.
        confidence: The confidence of a renaming, from 0 to 1; `None` for other changes.
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
        """The name of the changed thing, in the new revision if that has it."""
        return self.new_place or self.old_place

    @cached_property
    def directions(self) -> tuple[str, ...]:
        """The directions of the messages: `client to server`, `server to client`, or both."""
        return tuple(f"{sender} to {OTHER[sender]}" for sender in sorted(self.senders))

    @cached_property
    def affected_parties(self) -> tuple[str, ...]:
        """The parties of `PARTIES` that the change affects."""
        parties: set[str] = set()
        for sender in self.senders:
            if self.rule.affects in ("sender", "both"):
                parties.add(f"{sender} that sends")
            if self.rule.affects in ("receiver", "both"):
                parties.add(f"{OTHER[sender]} that receives")
        return tuple(party for party in PARTIES if party in parties)

    @property
    def reason(self) -> str:
        """The reason of the severity."""
        return self.rule.reason

    @property
    def sentence(self) -> str:
        """The change in words, without its place."""
        sure = "" if self.confidence is None else f" ({self.confidence:.0%} sure)"
        senders = " and ".join(f"the {sender}" for sender in sorted(self.senders))
        text = self.rule.text.format(old=self.old, new=self.new, senders=senders)
        return text.rstrip(" :") + sure


def counts(changes: Iterable[Change]) -> dict[Severity, int]:
    """The number of changes of each severity."""
    numbers = Counter(change.severity for change in changes)
    return {severity: numbers[severity] for severity in SEVERITIES[:-1]}


@dataclass(frozen=True)
class Spot:
    """The current place of a comparison in both revisions, and the messages that contain it.

    Attributes:
        owner: The method, type or table.
        old: The place in the old revision.
        new: The place in the new revision.
        messages: The messages that contain the place.
    """

    owner: str
    old: str
    new: str
    messages: frozenset[Message]

    def member(self, old: str, new: str) -> Spot:
        """The place of a member of the object at this place."""
        return replace(self, old=f"{self.old}.{old}", new=f"{self.new}.{new}")

    def below(self, suffix: str) -> Spot:
        """The place of the items of an array, or of the values of a map, at this place."""
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
            rule: The rule.
            spot: The place; left out for a revision without content.
            old: The content in the old revision.
            new: The content in the new revision.
            senders: The roles that send it; by default those of the messages of the spot.
            confidence: The confidence of a renaming.
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

    def in_order(self) -> tuple[Change, ...]:
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
