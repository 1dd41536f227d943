"""The plugin of pytest: the option `--contract-update`, and the fixture `contract`.

pytest loads it wherever mcpgen is installed, so the comparison is imported by the first test that
needs it.
"""

from __future__ import annotations

from os import PathLike
from typing import Protocol

import pytest

from mcpgen.contract import RUN, RunSettings


class CheckContract(Protocol):
    """The type of the fixture `contract`."""

    def __call__(self, server: object, file: str | PathLike[str], *, fail_on: str = "any") -> None:
        """Check a server against a contract; see `mcpgen.contract.testing.check`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("mcpgen").addoption(
        "--contract-update",
        action="store_true",
        help="Write the contracts of servers anew, where tests would compare them.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hand the option to `testing.contract` of packages, which has no fixture."""
    updates = bool(config.getoption("--contract-update"))
    token = RUN.set(RunSettings(updates, config.rootpath))
    config.add_cleanup(lambda: RUN.reset(token))


@pytest.fixture
def contract() -> CheckContract:
    """Check a server against its contract: `contract(server, "server.contract.json")`."""
    from mcpgen.contract import testing

    return testing.check
