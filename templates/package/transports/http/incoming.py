"""What HTTP has to know of a message that comes: which of our requests it answers, and how.

Source: basic/transports, basic/index (messages).
"""

from __future__ import annotations

from ...channel import RequestId
from ...protocol import jsonrpc


def answers_in(data: bytes, batching: bool) -> dict[RequestId, bytes | None]:
    """The requests that a message answers, or several do in revisions with batches.

    Returns:
        By id, the result as it came; `None` for an error, or for an answer that is malformed.
    """
    several = batching and jsonrpc.is_batch(data)
    answers: dict[RequestId, bytes | None] = {}
    for message in jsonrpc.parse_batch(data) if several else [jsonrpc.parse(data)]:
        match message:
            case jsonrpc.Result(id=identifier, result=result):
                answers[identifier] = bytes(result)
            case jsonrpc.Failure(id=str() | int() as identifier):
                answers[identifier] = None
            case jsonrpc.InvalidMessage(id=str() | int() as identifier, response=True):
                answers[identifier] = None
            case _:
                pass
    return answers


def failure_in(data: bytes) -> jsonrpc.Failure | None:
    """The JSON-RPC error that a body is, with or without id; `None` if it is something else."""
    message = jsonrpc.parse(data) if data else None
    return message if isinstance(message, jsonrpc.Failure) else None
