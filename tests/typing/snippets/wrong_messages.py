"""Wrong uses of messages of unknown kind."""

from __future__ import annotations

from mcpgen_runtime import Notification, Response
from mcpgen_runtime.r2025_06_18 import methods


def describe(line: bytes) -> None:
    message = methods.read_message(line, methods.CALL_TOOL)
    print(message.method)  # expect: error
    if isinstance(message, Response):
        print(message.result.contents)  # expect: error
    if isinstance(message, Notification):
        print(message.id)  # expect: error
        message.method = "other"  # expect: error
    methods.read_message("text")  # expect: error
    methods.read_message(line, {1: "tools/call"})  # expect: error
