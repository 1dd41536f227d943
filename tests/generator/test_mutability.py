"""`--mutability`: whether members of models of pydantic can be assigned."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from generator.selections import LAST_WITH_SESSIONS
from mcpgen.names import MUTABILITIES

WORDS = ("--revision", LAST_WITH_SESSIONS, "--parts", "types", "--models", "pydantic", "-q")


@pytest.mark.parametrize("mutability", MUTABILITIES)
def test_members_are_assigned_where_models_are_mutable(
    mutability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"models_{mutability}"
    done = run(*WORDS, "--mutability", mutability, "-o", name, cwd=tmp_path)
    assert done.code == 0, done.err
    monkeypatch.syspath_prepend(tmp_path)
    package: Any = importlib.import_module(name)
    models: Any = importlib.import_module(f"{name}.r2025_11_25.models")
    for tool in (
        models.Tool(name="a", input_schema={"type": "object"}),
        package.decoder(models.Tool, extra=True)(
            b'{"name":"a","inputSchema":{"type":"object"},"more":1}'
        ),
    ):
        if mutability == "mutable":
            tool.title = "b"
            assert b'"title":"b"' in package.encode(tool)
        else:
            with pytest.raises(ValueError, match="Instance is frozen"):
                tool.title = "b"
    for module in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[module]


def test_the_choice_is_kept_by_an_update_and_changed_by_a_word(tmp_path: Path) -> None:
    assert run(*WORDS, "--mutability", "mutable", "-o", "pkg", cwd=tmp_path).code == 0
    assert run("update", "pkg", "-q", cwd=tmp_path).code == 0
    base = tmp_path / "pkg" / "_model_base.py"
    assert "frozen=False" in base.read_text()
    assert run("update", "pkg", "-q", "--mutability", "frozen", cwd=tmp_path).code == 0
    assert "frozen=False" not in base.read_text()
    assert '"mutability"' not in (tmp_path / "pkg" / "mcpgen.json").read_text()


def test_structs_are_always_frozen(tmp_path: Path) -> None:
    words = ("--revision", LAST_WITH_SESSIONS, "--mutability", "mutable", "-o", "pkg")
    done = run(*words, cwd=tmp_path)
    assert done.code == 2
    assert "--mutability mutable: expected --models pydantic, got msgspec" in done.err
