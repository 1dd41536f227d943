"""`--decoding strict`: recorded, kept, and without a trace in packages that decode leniently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.command_line import run
from generator.selections import NEWEST, OLDEST, rendered
from mcpgen.errors import UsageError
from mcpgen.model import choice

OPTIONS = ("--revision", OLDEST, "--parts", "types")


def test_only_a_strict_package_has_definitions() -> None:
    lenient = rendered("types", "all", (NEWEST,))
    strict = rendered("types", "all", (NEWEST,), decoding="strict")
    folder = f"r{NEWEST.replace('-', '_')}"
    assert strict.keys() - lenient.keys() == {f"{folder}/definitions.py"}
    differing = {path for path in lenient if lenient[path] != strict[path]}
    assert differing == {"_decoding.py", f"{folder}/models.py"}
    assert not any("DEFINITIONS" in text for text in lenient.values())


def test_an_update_keeps_strict_decoding(tmp_path: Path) -> None:
    package = str(tmp_path / "acme")
    assert run(*OPTIONS, "--decoding", "strict", "-o", package).code == 0
    record = tmp_path / "acme/mcpgen.json"
    assert json.loads(record.read_text())["options"]["decoding"] == "strict"
    definitions = tmp_path / "acme/r2024_11_05/definitions.py"
    assert run("check", package).code == 0
    assert run("update", package).code == 0
    assert definitions.exists()
    assert run("update", "--decoding", "lenient", package).code == 0
    assert not definitions.exists()
    assert "decoding" not in json.loads(record.read_text())["options"]


def test_the_settings_of_a_project_choose_strict_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = f"[tool.mcpgen]\noutput='acme'\nrevisions=['{OLDEST}']\nparts=['types']\n"
    project = tmp_path / "pyproject.toml"
    project.write_text(f"{settings}decoding='strict'\n")
    assert run("-q").code == 0
    assert (tmp_path / "acme/r2024_11_05/definitions.py").exists()
    project.write_text(settings)
    assert "the settings changed: decoding" in run("check").out


def test_an_unknown_kind_of_decoding_is_refused() -> None:
    with pytest.raises(UsageError, match="--decoding: expected lenient or strict, got 'loose'"):
        choice.selection(decoding="loose")


def test_an_installed_runtime_decodes_leniently_alone() -> None:
    with pytest.raises(UsageError, match="--decoding strict: expected --runtime vendored"):
        rendered("types", "all", (NEWEST,), runtime="installed", decoding="strict")
