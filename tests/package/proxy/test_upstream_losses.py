"""Values that have no place in the other revision of a proxy, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, speaking_to
from mcpgen_runtime import Server
from package.proxy.test_upstream import FRAME, Scripted, line_of

STRUCTURED = [each for each in ALL if facts(each).behaviour.structured_content != "any"]
"""The revisions whose structured results, if they have any, are objects."""

CODE = -32002
"""The code of an unknown resource in revisions with a handshake."""


async def outcome(
    kind: str, sent: bytes, method: str, params: dict[str, Any], near: str, far: str
) -> tuple[dict[str, Any], Scripted]:
    """The response that a client gets to a request, and the server that has answered it."""
    server = Scripted(kind, sent)
    async with speaking_to(Server.proxy(server, name="front", revision=far), near) as client:
        line = await line_of(client, method, params)
    response: dict[str, Any] = json.loads(line)
    return response, server


@pytest.mark.parametrize("near", STRUCTURED)
@pytest.mark.parametrize("value", [b"[1]", b'"a"', b"null", b"{}"])
async def test_a_structured_value_that_is_no_object_is_dropped(near: str, value: bytes) -> None:
    result = b'{"content":[], "structuredContent":%s %s}' % (value, FRAME)
    response, _ = await outcome("result", result, "tools/call", {"name": "t"}, near, ALL[-1])
    assert response["result"]["content"] == []
    has_member = facts(near).behaviour.structured_content == "object" and value == b"{}"
    assert ("structuredContent" in response["result"]) is has_member


@pytest.mark.parametrize("far", ALL)
async def test_members_below_the_params_pass_and_are_not_reported(
    far: str, caplog: pytest.LogCaptureFixture
) -> None:
    params: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "p", "x-own": [], "title": "P"},
        "argument": {"name": "a", "value": "", "x-own": 1.0},
    }
    near = ALL[0] if far != ALL[0] else ALL[1]
    frame = FRAME if far in PER_REQUEST else b""
    result = b'{"completion":{"values":[]} %s}' % frame
    _, server = await outcome("result", result, "completion/complete", params, near, far)
    sent = {name: value for name, value in server.params.items() if name != "_meta"}
    assert sent == params
    assert " is lost: " not in caplog.text


@pytest.mark.parametrize(("near", "far"), [(ALL[-1], ALL[0]), (ALL[0], ALL[-1])])
async def test_an_unknown_resource_keeps_its_message_and_data(near: str, far: str) -> None:
    codes = {name: CODE if name in HANDSHAKE else -32602 for name in ALL}
    data = {"uri": "x:y", "own": [1.0]}
    error = json.dumps({"code": codes[far], "message": "gone", "data": data}).encode()
    response, _ = await outcome("error", error, "resources/read", {"uri": "x:y"}, near, far)
    assert response["error"] == {"code": codes[near], "message": "gone", "data": data}


@pytest.mark.parametrize(("near", "far"), [(ALL[0], ALL[-1]), (ALL[-1], ALL[0])])
async def test_members_that_nobody_defines_are_one_warning(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    frame = FRAME if far in PER_REQUEST else b""
    own = {f"own\x1b[31m{number}": number for number in range(500)}
    result = json.dumps({"tools": [], **own}).encode()[:-1] + frame + b"}"
    await outcome("result", result, "tools/list", {}, near, far)
    (line,) = [each for each in caplog.messages if " is lost: " in each]
    assert line.startswith("proxy 'front': result.* is lost: ")
    assert r"(tools/list.result.own\x1b[31m0)" in line
