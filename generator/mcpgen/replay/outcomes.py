"""Outcomes of replayed sessions: where messages of a server are not as they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcpgen.json_types import Json
from mcpgen.replay.matching import Difference

Level: TypeAlias = Literal["error", "note"]


@dataclass(frozen=True)
class Rule:
    """One kind of outcome.

    Attributes:
        id: Its name, which reports use.
        level: `error` for a difference, `note` for what could not be compared.
        text: The outcome in words.
    """

    id: str
    level: Level
    text: str


RULES: Mapping[str, Rule] = {
    rule.id: rule
    for rule in (
        Rule("ANSWER_DIFFERS", "error", "the answer is not as it was recorded"),
        Rule("ANSWER_MISSING", "error", "a request that was answered has no answer"),
        Rule("ANSWER_UNEXPECTED", "error", "a request that was cancelled is answered"),
        Rule("REQUEST_DIFFERS", "error", "a request of the server is not as it was recorded"),
        Rule("REQUEST_MISSING", "error", "the server does not ask what it asked"),
        Rule("REQUEST_UNEXPECTED", "error", "the server asks what it did not ask"),
        Rule("NOTIFICATION_DIFFERS", "error", "a notification is not as it was recorded"),
        Rule("NOTIFICATION_MISSING", "error", "a notification does not come"),
        Rule("NOTIFICATION_UNEXPECTED", "error", "a notification comes that did not come"),
        Rule("ORDER_DIFFERS", "error", "messages of one request come in another order"),
        Rule("MESSAGE_INVALID", "error", "the server sends something else than a message"),
        Rule("SERVER_ENDED", "error", "the server ends, or refuses the connection"),
        Rule("NOT_SENT", "note", "a message of the client could not be sent again"),
        Rule("NO_COUNTERPART", "note", "the revision has no counterpart of the message"),
    )
}
"""The kinds of outcomes by id, in the order of reports."""


@dataclass(frozen=True)
class Outcome:
    """One difference, or one message that could not be compared.

    Attributes:
        rule: Its kind.
        line: The line of the trace, from 1.
        item: The request that it is about, such as `tools/call echo`; `session` for the whole.
        text: The difference in words.
        difference: The place in the message with both values; `None` for the whole message.
        expected: The recorded message; `None` if there was none.
        actual: The message of this time; `None` if there is none.
    """

    rule: Rule
    line: int
    item: str
    text: str
    difference: Difference | None = None
    expected: Json = None
    actual: Json = None

    @property
    def pointer(self) -> str:
        """The place in the message as a JSON pointer; empty for the whole."""
        return "" if self.difference is None else self.difference.pointer


@dataclass(frozen=True)
class Run:
    """One session that was replayed.

    Attributes:
        session: Its number in the trace, from 1.
        revision: The revision in which it was replayed; empty if the trace names none.
        sent: The number of messages that were sent.
        compared: The number of messages of the server that were compared.
        outcomes: The outcomes, in the order of the trace.
    """

    session: int
    revision: str
    sent: int
    compared: int
    outcomes: tuple[Outcome, ...]

    @property
    def differs(self) -> bool:
        """Whether anything is not as it was recorded."""
        return any(each.rule.level == "error" for each in self.outcomes)
