"""The package in a REPL: representations, names to complete, imports by type."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import mcpgen_runtime
from kit.rules import module_of, revision_fixture
from kit.scripted import ScriptedServer
from kit.wire import ALL
from mcpgen_runtime import REVISIONS, Server, connect, connect_sync

revision = revision_fixture(ALL)

pytestmark = pytest.mark.on_asyncio


async def test_a_client_shows_what_it_is_connected_to(revision: str) -> None:
    server = Server("weather", "1.2")
    assert repr(server) == "<Server weather 1.2, 0 clients>"
    async with connect(server, revision=revision) as client:
        assert repr(client) == f"<Client of weather 1.2, {revision} over memory>"
        assert repr(server) == "<Server weather 1.2, 1 client>"
        if revision == ALL[-1]:
            with connect_sync(server) as blocking:
                assert repr(blocking).startswith("<SyncClient on <Client of weather 1.2, ")
    assert repr(server) == "<Server weather 1.2, 0 clients>"


async def test_a_servers_name_is_shown_as_text_and_in_short() -> None:
    server = ScriptedServer("2025-06-18", ())
    async with connect(server, revision="2025-06-18") as client:
        client.session.peer_info = {"name": "\x1b[2J\n" + "x" * 10_000}
        assert repr(client).isprintable()
        assert len(repr(client)) < 1000
        assert repr(client).endswith("2025-06-18 over ScriptedServer>")
        client.session.peer_info = None
        assert repr(client) == "<Client of unnamed server, 2025-06-18 over ScriptedServer>"


def test_a_type_is_imported_from_its_revision(revision: str) -> None:
    package = importlib.import_module(module_of(revision).__package__)
    models = module_of(revision)
    assert package.Tool is models.Tool
    assert all(getattr(package, name) is getattr(models, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Hammer'"):
        _ = package.Hammer


def test_only_public_names_are_listed(revision: str) -> None:
    package = importlib.import_module(module_of(revision).__package__)
    assert dir(mcpgen_runtime) == sorted(importlib.import_module("mcpgen_runtime").__all__)
    assert dir(package) == sorted(package.__all__)
    assert {"Tool", "CallToolResult", "Implementation"} <= set(dir(package))
    assert REVISIONS[revision].implementation is package.Implementation


TYPES_OF_A_REVISION = """
import sys, mcpgen_runtime.r2025_06_18 as revision
assert "mcpgen_runtime.r2025_06_18.models" not in sys.modules
assert revision.Tool and "mcpgen_runtime.r2025_06_18.models" in sys.modules
"""
WHAT_CONVERTS_TYPES = """
import sys
from mcpgen_runtime import connect
assert not [name for name in sys.modules if name.endswith(("value_types", "type_schemas"))]
"""


@pytest.mark.parametrize("code", [TYPES_OF_A_REVISION, WHAT_CONVERTS_TYPES])
def test_nothing_is_loaded_before_it_is_asked_for(code: str) -> None:
    above = Path(mcpgen_runtime.__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=above)
