"""Batches: JSON arrays of messages, in the one revision that has them.

Source: basic/index#batching (2025-03-26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE, error_text
from ..errors import InvalidRequestError, ParseError
from .jsonrpc import InvalidMessage, Message, Request, is_batch, parse
from .lifecycle import INITIALIZE

BATCH_MESSAGES = 100
"""Most messages in one JSON array; a longer array is refused as a whole."""


@cache
def _decoder() -> Callable[[bytes], msgspec.Struct]:
    """A decoder that stops after `BATCH_MESSAGES`; one for lists would decode the whole array."""
    parts = msgspec.defstruct(
        "_Parts",
        [(f"part_{at}", Raw | UnsetType, UNSET) for at in range(BATCH_MESSAGES)],
        array_like=True,
        forbid_unknown_fields=True,
    )
    return msgspec.json.Decoder(parts).decode


def parse_array(data: bytes) -> list[Message]:
    """Parse the messages of a JSON array.

    An empty array, or an array of more than `BATCH_MESSAGES`, is a single invalid message.
    """
    try:
        parts = msgspec.structs.astuple(_decoder()(data))
    except msgspec.ValidationError:
        text = f"expected at most {BATCH_MESSAGES} messages in an array, got more"
        return [InvalidMessage(None, InvalidRequestError(text), True)]
    except UNREADABLE as error:
        return [InvalidMessage(None, ParseError(f"expected JSON: {error_text(error)}"), True)]
    messages = [parse(part) for part in parts if part is not UNSET]
    if not messages:
        text = "expected messages, got an empty array"
        return [InvalidMessage(None, InvalidRequestError(text), True)]
    return messages


def parse_batch(data: bytes) -> Sequence[Message] | None:
    """The messages of a batch, for a connection; `None` if the data are no batch."""
    return refuse_initialize(parse_array(data)) if is_batch(data) else None


def refuse_initialize(messages: Iterable[Message]) -> list[Message]:
    """The messages of a batch, in which `initialize` is not allowed."""
    error = InvalidRequestError("initialize: expected a message of its own, got a batch")
    return [
        InvalidMessage(each.id, error, True)
        if isinstance(each, Request) and each.method == INITIALIZE
        else each
        for each in messages
    ]
