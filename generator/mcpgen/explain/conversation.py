"""The sender of each message of a recording, and the request that each response answers.

A trace records the messages that its own side sent and received. The role of that side follows from
methods that only one side may send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcpgen.diff.changes import OTHER
from mcpgen.explain.recordings import Direction, Recorded
from mcpgen.explain.revision import Kind, Revision, kind_of
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.name import Role
from mcpgen.model.schema_queries import canonical


@dataclass(frozen=True)
class Turn:
    """One message of a conversation.

    Attributes:
        recorded: The message as it was recorded.
        kind: The kind of message.
        sender: The role of the sender; `None` if unknown.
        request: The request that a response answers; `None` for other messages, or if the recording
            lacks the request.
        problem: The error of its place in the conversation; empty if there is none.
    """

    recorded: Recorded
    kind: Kind
    sender: Role | None
    request: Node | None = None
    problem: str = ""

    @property
    def message(self) -> Json:
        """The message."""
        return self.recorded.value


@dataclass(frozen=True)
class Conversation:
    """All messages of a recording, in order.

    Attributes:
        turns: The messages, with those of a batch one by one.
        unanswered: The requests without a response.
    """

    turns: tuple[Turn, ...]
    unanswered: tuple[Turn, ...]

    @property
    def answered_requests(self) -> int:
        """The number of responses whose request is known."""
        return sum(turn.request is not None for turn in self.turns)


def follow(recorded: Sequence[Recorded], revisions: Sequence[Revision]) -> Conversation:
    """Arrange the messages of a recording as a conversation.

    Args:
        recorded: The messages.
        revisions: The revisions that tell the sender of a method; the first that has the method
            counts.
    """
    roles = _roles(recorded, revisions)
    pending: dict[tuple[str, Direction | None, str], Turn] = {}
    turns: list[Turn] = []
    for each in recorded:
        kind = kind_of(each.value)
        sender = roles.get((each.channel, each.direction)) if each.direction else None
        if sender is None:
            sender = _only_sender(each.value, revisions)
        turn = Turn(each, kind, sender)
        match kind:
            case "request":
                key = (each.channel, each.direction, _id(each.value))
                if key in pending and each.direction is not None:
                    turn = Turn(each, kind, sender, problem="its id is that of an open request")
                pending[key] = turn
            case "success response" | "error response":
                turn = _answer(each, kind, sender, pending)
            case _:
                pass
        turns.append(turn)
    return Conversation(tuple(turns), tuple(pending.values()))


def _answer(
    each: Recorded,
    kind: Kind,
    sender: Role | None,
    pending: dict[tuple[str, Direction | None, str], Turn],
) -> Turn:
    request_direction: Direction | None = None
    if each.direction is not None:
        request_direction = "received" if each.direction == "sent" else "sent"
    request = pending.pop((each.channel, request_direction, _id(each.value)), None)
    if request is None:
        has_id = is_object(each.value) and each.value.get("id") is not None
        alone = "no open request has its id" if has_id or kind == "success response" else ""
        return Turn(each, kind, sender, problem=alone)
    if sender is None and request.sender is not None:
        sender = OTHER[request.sender]
    return Turn(each, kind, sender, request.message)


def _id(message: Json) -> str:
    return canonical(message.get("id")) if is_object(message) else ""


def _roles(
    recorded: Sequence[Recorded], revisions: Sequence[Revision]
) -> dict[tuple[str, Direction | None], Role]:
    """The sender in each direction of each channel, by the methods that only one side sends."""
    votes: dict[str, Counter[Role]] = {}
    for each in recorded:
        sender = _only_sender(each.value, revisions)
        if sender is not None and each.direction is not None:
            own = sender if each.direction == "sent" else OTHER[sender]
            votes.setdefault(each.channel, Counter())[own] += 1
    roles: dict[tuple[str, Direction | None], Role] = {}
    for channel, counter in votes.items():
        own = max(counter, key=counter.__getitem__)
        roles[channel, "sent"] = own
        roles[channel, "received"] = OTHER[own]
    return roles


def _only_sender(message: Json, revisions: Sequence[Revision]) -> Role | None:
    if not is_object(message) or not isinstance(message.get("method"), str):
        return None
    for revision in revisions:
        senders: set[Role] = {method.sender for method in revision.methods(message["method"])}
        if senders:
            return senders.pop() if len(senders) == 1 else None
    return None


def versions_in(message: Json) -> Iterator[str]:
    """The versions of the protocol that a message declares or negotiates."""
    if not is_object(message):
        return
    for part in (message.get("params"), message.get("result")):
        if is_object(part):
            meta = part.get("_meta")
            named = [part.get("protocolVersion")]
            if is_object(meta):
                named += [v for key, v in meta.items() if key.endswith("/protocolVersion")]
            yield from (text for text in named if isinstance(text, str))


def split_batches(recorded: Sequence[Recorded]) -> Iterator[Recorded]:
    """The messages of a recording, with those of batches one by one."""
    for each in recorded:
        if is_array(each.value):
            for item in each.value:
                yield replace(each, value=item)
        else:
            yield each
