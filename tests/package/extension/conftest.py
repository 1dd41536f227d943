"""The package of these tests: made with the extension io.modelcontextprotocol/tasks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgen.names import Library
from package.extension.task_work import PACKAGE, REVISIONS, importable_package


@pytest.fixture(scope="session")
def pkg(tmp_path_factory: pytest.TempPathFactory, models: Library) -> Iterator[Any]:
    """The modules of a package with the extension."""
    root = tmp_path_factory.mktemp("packages")
    with importable_package(root, PACKAGE, REVISIONS, ["tasks"], models):
        yield SimpleNamespace(
            root=importlib.import_module(PACKAGE),
            client=importlib.import_module(f"{PACKAGE}.client.tool_tasks"),
            principal=importlib.import_module(f"{PACKAGE}.runtime.request_context"),
        )
