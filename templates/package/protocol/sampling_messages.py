"""Conversations with a model, as sampling requests carry them: which messages may follow which.

Both ends hold them against the same rules, a server before it asks and a client before it has the
model asked.

Source: client/sampling#message-content-constraints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .._wire import is_many
from ..foreign_text import safe_list, safe_repr

Message: TypeAlias = Mapping[str, Any]

_SPEAKER = {"tool_use": "assistant", "tool_result": "user"}


def blocks_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """What a message says, as a list even if it is one block."""
    content: object = message["content"]
    return content if is_many(content) else [message["content"]]


def complaint(messages: Sequence[Message]) -> str | None:
    """What is wrong with messages in a row, or `None` if nothing is.

    Args:
        messages: Wire objects, oldest first.
    """
    due: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        wrong = speaker_complaint(message) or _unbalanced(due, blocks)
        if wrong:
            return f"messages[{at}]: {wrong}"
        due = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return f"the last message leaves {_named(due)} without a result" if due else None


def speaker_complaint(message: Message) -> str | None:
    """What is wrong with a message by itself, or `None` if nothing is."""
    role: str = message["role"]
    kinds = {block["type"] for block in blocks_of(message)}
    for kind in kinds & _SPEAKER.keys():
        if role != _SPEAKER[kind]:
            return f"expected {kind} from the {_SPEAKER[kind]}, got it from the {role}"
    if "tool_result" in kinds and kinds != {"tool_result"}:
        return f"expected results of tools alone, got {safe_list(sorted(kinds))}"
    return None


def _unbalanced(due: set[str], blocks: Sequence[Mapping[str, Any]]) -> str | None:
    given = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
    if missing := due - set(given):
        return f"expected a result for {_named(missing)} first"
    if unasked := set(given) - due:
        return f"there is no use of a tool just before for the result of {_named(unasked)}"
    if len(given) > len(due):
        return "expected one result for each use of a tool, got more"
    return None


def _named(ids: set[str]) -> str:
    return safe_list([safe_repr(each) for each in sorted(ids)])
