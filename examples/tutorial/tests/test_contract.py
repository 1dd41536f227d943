"""The server library shows its contract: `pytest --contract-update` writes it anew."""

from __future__ import annotations

import pytest

from library.protocol.testing import contract
from library.server import server

pytest.importorskip("mcpgen", reason="mcpgen compares contracts, and is not installed")
pytestmark = pytest.mark.anyio


async def test_the_server_keeps_its_contract() -> None:
    await contract(server, "server.contract.json")
