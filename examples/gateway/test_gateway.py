"""The gateway on lines, without processes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import Gateway
from pkg import decoder, encode

decode = decoder(dict[str, Any])


def line(method: str, params: dict[str, Any]) -> bytes:
    params = {"_meta": {}, **params}  # the latest revision requires it
    return encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@pytest.mark.parametrize(("name", "refused"), [("query", False), ("get_a", False), ("drop", True)])
def test_a_call_passes_if_its_tool_is_allowed(name: str, refused: bool) -> None:
    refusal = Gateway(["query", "get_*"]).refusal(line("tools/call", {"name": name}))
    assert (refusal is not None) == refused
    assert refusal is None or decode(refusal)["error"]["message"] == "unknown tool 'drop'"


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'])
def test_a_line_that_is_no_message_is_refused(text: bytes) -> None:
    assert Gateway(["*"]).refusal(text) is not None


@pytest.mark.parametrize("opening", [[], [line("initialize", {})]])  # of each revision
def test_a_list_has_the_allowed_tools_with_all_their_members(opening: list[bytes]) -> None:
    gateway = Gateway(["query"])
    for each in [*opening, line("tools/list", {})]:
        assert gateway.refusal(each) is None
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, "colour": "red"}
        for name in ("query", "drop")
    ]
    result = {"tools": tools, "ttl": 5}
    filtered = decode(gateway.filtered(encode({"jsonrpc": "2.0", "id": 1, "result": result})))
    assert filtered["result"]["tools"] == tools[:1]
    assert filtered["result"]["ttl"] == 5
