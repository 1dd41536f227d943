"""Messages to bytes and back: our models, those of the official SDK, and orjson without types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types
import orjson
from mcp_types.methods import parse_client_request, parse_server_result

from mcpgen_runtime import REVISIONS, _wire
from mcpgen_runtime.protocol import jsonrpc
from mcpgen_runtime.protocol.requests import InboundRequest, encode_response

from .measure import FLOOR, OURS, SDK, AtMost, Line, per_calls

REVISION = "2025-11-25"
TOOLS = 100

TWICE = "the envelope and the typed params are decoded one after the other, with checks"
"""Why decoding may take longer than a multiple of the floor, which has no types."""

CALL = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 17,
        "method": "tools/call",
        "params": {
            "name": "search_orders",
            "arguments": {
                "customer": "Kari Nordmann",
                "since": "2026-01-01",
                "limit": 20,
                "states": ["open", "packed", "sent"],
                "near": {"latitude": 59.91, "longitude": 10.75},
            },
            "_meta": {"progressToken": 17},
        },
    }
)


def tool(number: int) -> dict[str, Any]:
    """A typical tool: three arguments, an output schema, annotations."""
    return {
        "name": f"tool_{number}",
        "title": f"Tool {number}",
        "description": "Looks orders up by customer, date and state; newest first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "Name or number"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                "states": {"type": "array", "items": {"enum": ["open", "packed", "sent"]}},
            },
            "required": ["customer"],
        },
        "outputSchema": {"type": "object", "properties": {"orders": {"type": "array"}}},
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    }


LISTING = orjson.dumps(
    {"jsonrpc": "2.0", "id": 4, "result": {"tools": [tool(number) for number in range(TOOLS)]}}
)


def official_call() -> object:
    """Decode the request as the official server does."""
    message = mcp_types.jsonrpc_message_adapter.validate_json(CALL, by_name=False)
    assert isinstance(message, mcp_types.JSONRPCRequest)
    return parse_client_request(message.method, REVISION, message.params)


def official_listing() -> bytes:
    """Decode the result as the official client does, and encode it as the official server does."""
    message = mcp_types.jsonrpc_message_adapter.validate_json(LISTING, by_name=False)
    assert isinstance(message, mcp_types.JSONRPCResponse)
    result = parse_server_result("tools/list", REVISION, message.result)
    data = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    answer = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=data)
    return answer.model_dump_json(by_alias=True, exclude_unset=True).encode()


def codec(rounds: int) -> Iterable[Line]:
    """Rows on decoding and encoding."""
    methods = REVISIONS[REVISION].client_requests
    call, list_tools = methods["tools/call"], methods["tools/list"]
    params = _wire.decoder(call.params)
    listing = _wire.decoder(list_tools.result)
    listed = InboundRequest(list_tools, REVISIONS[REVISION], None, None, None, {})

    def our_call() -> object:
        message = jsonrpc.parse(CALL)
        assert isinstance(message, jsonrpc.Request)
        return params(message.params or b"{}")

    def our_listing() -> bytes:
        message = jsonrpc.parse(LISTING)
        assert isinstance(message, jsonrpc.Result)
        return encode_response(message.id, listing(message.result), listed)

    assert orjson.loads(our_listing()) == orjson.loads(LISTING)
    yield Line(
        f"decode of tools/call, {len(CALL)} bytes, envelope and typed params",
        per_calls({OURS: our_call, SDK: official_call, FLOOR: lambda: orjson.loads(CALL)}, rounds),
        (AtMost(FLOOR, 1.5, TWICE),),
    )
    yield Line(
        f"decode and encode of tools/list, {TOOLS} tools, {len(LISTING) // 1024} KiB",
        per_calls(
            {
                OURS: our_listing,
                SDK: official_listing,
                FLOOR: lambda: orjson.dumps(orjson.loads(LISTING)),
            },
            rounds,
        ),
    )
