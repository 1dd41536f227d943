"""Type errors with decoded values: a member that an update took away is one."""

from __future__ import annotations

from mcpgen_runtime import convert, decoder
from mcpgen_runtime.r2026_07_28 import methods, models

decoder(models.Tool)(b"{}").nmae  # expect: error
convert({}, models.Tool).nmae  # expect: error
decoder(models.Tool, extra=True)(b"{}").nmae  # expect: error
decoder(models.ContentBlock)(b"{}").text  # expect: error
decoder(list[models.Tool])(b"[]")[0].nmae  # expect: error
methods.CALL_TOOL.decode_params(b"{}").nmae  # expect: error
methods.CALL_TOOL.decode_result(b"{}").content  # expect: error
methods.LIST_TOOLS.decode_result(b"{}").tools[0].nmae  # expect: error
tool: models.Prompt = decoder(models.Tool)(b"{}")  # expect: error
decoder(models.Tool)("{}")  # expect: error
