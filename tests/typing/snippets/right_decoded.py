"""The types that decoders return."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

from mcpgen_runtime import DecodeError, convert, decoder, to_builtins
from mcpgen_runtime.r2025_11_25 import methods as older
from mcpgen_runtime.r2026_07_28 import methods, models

tool = decoder(models.Tool)(b"{}")
assert_type(tool, models.Tool)
assert_type(tool.title, str | None)
assert_type(convert({}, models.Tool), models.Tool)
assert_type(decoder(models.Tool, extra=True)(b"{}"), models.Tool)
assert_type(decoder(list[models.Tool])(b"[]"), list[models.Tool])
assert_type(decoder(models.Role)(b'"user"'), models.Role)

block = decoder(models.ContentBlock)(b"{}")
assert_type(block, models.ContentBlock)
if isinstance(block, models.TextContent):
    assert_type(block.text, str)
assert_type(convert({}, models.JSONRPCMessage), models.JSONRPCMessage)

assert_type(methods.CALL_TOOL.decode_params(b"{}"), models.CallToolRequestParams)
assert_type(methods.CALL_TOOL.decode_result(b"{}"), models.CallToolResultResponseResult)
assert_type(methods.PROGRESS.decode_result(b"{}"), None)
assert_type(older.LIST_TOOLS.decode_result(b"{}").tools[0].name, str)

row: methods.Method = methods.CLIENT_REQUESTS["tools/call"]
typed: methods.Method[models.PaginatedRequestParams, models.ListToolsResult] = methods.LIST_TOOLS
for name, each in methods.CLIENT_REQUESTS.items():
    try:
        each.decode_params(name.encode())
    except DecodeError as error:
        print(error, to_builtins(error))


def read_all(texts: list[bytes], read: Callable[[bytes], models.Tool]) -> list[models.Tool]:
    return [read(text) for text in texts]


read_all([], decoder(models.Tool))
