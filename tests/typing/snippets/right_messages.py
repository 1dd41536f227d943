"""Messages of unknown kind: `match` knows the type of each part."""

from __future__ import annotations

from typing import assert_never, assert_type

from mcpgen_runtime import ErrorResponse, Notification, Request, Response
from mcpgen_runtime.messages import RequestId
from mcpgen_runtime.r2025_06_18 import methods, models


def describe(line: bytes) -> str:
    message = methods.read_message(line, methods.CALL_TOOL)
    match message:
        case Request(id=identifier, params=models.CallToolRequestParams(name=name)):
            assert_type(identifier, RequestId)
            assert_type(name, str)
            return name
        case Request(method=method) | Notification(method=method):
            assert_type(method, str)
            return method
        case Response(result=result):
            assert_type(result, models.CallToolResult)
            return str(len(result.content))
        case ErrorResponse(code=code, message=text):
            assert_type(code, int)
            return text
        case _:
            assert_never(message)


def describe_all(line: bytes) -> list[str]:
    pending: dict[RequestId, methods.Method] = {1: methods.CALL_TOOL}
    messages = methods.read_messages(line, pending)
    return [each.method for each in messages if isinstance(each, Request)]
