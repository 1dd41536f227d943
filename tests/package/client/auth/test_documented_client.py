"""The example of docs/authorization.md, with a protected server."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import mcpgen_runtime
from documents import examples
from mcpgen_runtime import MemoryStore
from package.client.auth.protected import run_protected_server

pytestmark = pytest.mark.anyio


async def test_a_user_signs_in_in_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pkg", mcpgen_runtime)
    signin = ModuleType("signin")
    exec(compile(examples()["signin.py"], "signin.py", "exec"), vars(signin))
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        url, text = await signin.begin(script.url, store)
        await signin.finish(text, await script.issuer.visit(url), store)
        assert await signin.names_of_tools(script.url, store) == ["echo"]
