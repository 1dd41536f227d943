"""The calls that are measured."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"
ARGUMENTS = {"a": 1, "b": 2}
CLIENT = {"name": "bench", "version": "1"}
INITIALIZE = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
TOKEN = "progressToken"

IDS = itertools.count(1_000_000)
"""The ids of requests, which are progress tokens too; all have seven digits."""
PLACE = 9_999_999
"""Stands for the id in an encoded request."""


class Work(NamedTuple):
    """A call."""

    name: str
    tool: str
    answer: bytes
    has_token: bool = True

    def params(self, revision: str) -> dict[str, Any]:
        """The params of the call, with `PLACE` for the token."""
        meta: Mapping[str, Any] = META if revision == PER_REQUEST else {}
        if self.has_token:
            meta = {**meta, TOKEN: PLACE}
        params = {"name": self.tool, "arguments": ARGUMENTS}
        return {**params, "_meta": meta} if meta else params


REAL = Work("real call", "total", b'"total":3')
"""A tool with a `Context` and one await, whose result is structured."""
REPORTING = Work("call that reports progress once", "report", b'"3"')
WITH_TOKEN = Work("trivial call with a progress token", "add", b'"3"')
TRIVIAL = Work("trivial call", "add", b'"3"', has_token=False)


class EncodedRequest:
    """A request that is encoded once, and sent with another id and token each time."""

    def __init__(self, request: bytes) -> None:
        self._parts = request.split(b"%d" % PLACE)

    def with_id(self, identifier: bytes) -> bytes:
        """The request with this id, of seven digits."""
        return identifier.join(self._parts)


def encoded_request(method: str, params: Mapping[str, Any] | None) -> bytes:
    """The JSON of a message with the id `PLACE`; of a notification without id."""
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if not method.startswith("notifications/"):
        message["id"] = PLACE
    message["method"] = method
    if params is not None:
        message["params"] = params
    return json.dumps(message, separators=(",", ":")).encode()
