"""A module of `mcpgen mirror` has no error of strict type checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from documents import ROOT
from generator.command_line import run
from generator.contract_surfaces import contract
from mcpgen.contract.document import text_of

pytestmark = pytest.mark.typing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the calls of a contract."""
    (tmp_path / "shop.contract.json").write_text(text_of(contract()))
    words = ("-o", "calls.py", "--package", "mcpgen_runtime")
    assert run("mirror", "shop.contract.json", *words, cwd=tmp_path).code == 0
    settings = {"include": ["calls.py"], "extraPaths": [str(ROOT / "generated")]}
    strict = {**settings, "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(strict))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("mypy", "--strict", "calls.py"), ("pyright", "--pythonpath", sys.executable)],
    ids=lambda words: words[0],
)
def test_the_module_passes_in_strict_mode(words: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "generated"), "PATH": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
