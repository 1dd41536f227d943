"""Rendered modules, formatted by Ruff: one process for all of them, with settings of ours alone."""

from __future__ import annotations

import importlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mcpgen.errors import OutputError, safe_text
from mcpgen.literals import WIDTH

_FORMAT = (
    "format",
    "--isolated",
    "--no-cache",
    "--no-respect-gitignore",
    "--target-version",
    "py311",
)


def formatted(sources: Mapping[str, str]) -> dict[str, str]:
    """Modules as Ruff formats them, by their paths.

    Args:
        sources: The modules; a path is a file path within a package.

    Raises:
        OutputError: Ruff cannot be run, or takes a module for no Python.
    """
    ruff: str = importlib.import_module("ruff").find_ruff_bin()
    with tempfile.TemporaryDirectory(prefix="mcpgen-") as folder:
        root = Path(folder)
        for path, source in sources.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(source, encoding="utf-8", newline="\n")
        command = [ruff, *_FORMAT, "--line-length", str(WIDTH), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            came = safe_text(done.stderr.replace(f"{root}{os.sep}", ""))
            raise OutputError(f"ruff could not format the modules: {came}")
        return {path: (root / path).read_text(encoding="utf-8") for path in sources}
