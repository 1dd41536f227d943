"""The package of these tests: made with the extension io.modelcontextprotocol/tasks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgen.model import schema_sources
from mcpgen.model.parts import Selection
from mcpgen.names import Library
from mcpgen.package import build_request, output, pipeline
from mcpgen.package.build_request import BuildRequest
from package.extension.task_work import PACKAGE, REVISIONS


@pytest.fixture(scope="session")
def pkg(tmp_path_factory: pytest.TempPathFactory, models: Library) -> Iterator[Any]:
    """The modules of a package with the extension."""
    root = tmp_path_factory.mktemp("packages")
    named = build_request.named_extensions(["tasks"])
    sources = schema_sources.by_name(REVISIONS)
    chosen = Selection(models=models)
    request = BuildRequest(PACKAGE, sources, selection=chosen, extensions=named)
    output.write(root / PACKAGE, pipeline.build(request, form=dict))
    sys.path.insert(0, str(root))
    yield SimpleNamespace(
        root=importlib.import_module(PACKAGE),
        client=importlib.import_module(f"{PACKAGE}.client.tool_tasks"),
        principal=importlib.import_module(f"{PACKAGE}.runtime.request_context"),
    )
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
