"""The cost of a request over HTTP in function calls."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from types import FrameType
from typing import Any

import pytest

from kit.asgi_client import fields_of, speaking
from kit.live import server_with
from kit.wire import encode_message, request, streamable
from mcpgen_runtime import Context, Limits, Server

pytestmark = [streamable, pytest.mark.processes]

MOST_CALLS = {"add": 122, "add_with_progress": 270}
ON_PYTHON_3_11 = 34  # calls more, as `runtime.eager_tasks` begins the task itself
BODY = 400  # bytes; brackets of longer ones are counted


def adding_server() -> Server:
    async def add(a: int, b: int) -> str:
        return str(a + b)

    async def add_with_progress(a: int, b: int, ctx: Context) -> str:
        await ctx.progress(1)
        return str(a + b)

    return server_with(add, add_with_progress)


@pytest.mark.structs("a model of pydantic takes a few calls more to be read and written")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio a task of its own serves
@pytest.mark.parametrize("tool", MOST_CALLS)
async def test_a_short_call_makes_few_function_calls(revision: str, tool: str) -> None:
    params = {"name": tool, "arguments": {"a": 1, "b": 2}}
    message = request(revision, "tools/call", params, meta={"progressToken": 7})
    message["id"] = "x" * (BODY - len(encode_message({**message, "id": ""})))
    body = encode_message(message)
    limits = Limits(body=BODY, in_flight=2)  # from half on, clients that left are looked for
    app: Any = adding_server().asgi(limits=limits)
    calls = 0
    answers: list[Any] = []

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def send(message: MutableMapping[str, Any]) -> None:
        answers.append(message)

    async with speaking(app, revision) as http:
        for _ in range(2):  # what is made once and kept is not counted
            reply = await http.post(message, **fields_of(revision, message))
            assert reply.text == "3"

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        scope = http.scope_of("POST", None, fields_of(revision, message))
        await app(scope, receive, send)
        answers.clear()
        sys.setprofile(count)
        try:
            await app(scope, receive, send)
        finally:
            sys.setprofile(None)
    assert b'"3"' in answers[-1]["body"]
    most = MOST_CALLS[tool] + (0 if sys.version_info >= (3, 12) else ON_PYTHON_3_11)
    assert calls <= most, calls
