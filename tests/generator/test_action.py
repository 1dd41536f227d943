"""The composite action of the repository: what its steps do, and where their reports go."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import documents
from composite_action import CONDITION, EXPRESSION, Step, action, run_steps
from conventions.sources import GENERATOR
from generator.command_line import run
from generator.contract_surfaces import SHOP_SERVER
from generator.test_check_server import TINY

pytestmark = pytest.mark.costly

PROJECT = """
[tool.mcpgen]
output = "wire"
revisions = ["2025-06-18"]
parts = ["types"]
"""
CONTRACT = "server.contract.json"
NAME = "r2025_06_18/models.py"
MODELS = f"wire/{NAME}"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with settings, and the contract of another server."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "server.py").write_text(SHOP_SERVER, encoding="utf-8")
    words = ("-o", CONTRACT, "-r", "2025-06-18")
    written = run("contract", "write", f"{sys.executable} server.py", *words, cwd=folder)
    assert written.code == 0, written.err
    return folder


def run_action(folder: Path, **inputs: str) -> list[Step]:
    """Run the steps after the installation, with the command of these tests."""
    commands = folder / "commands"
    commands.mkdir(exist_ok=True)
    script = f'#!/bin/sh\nPYTHONPATH={GENERATOR.parent} exec {sys.executable} -m mcpgen "$@"\n'
    (commands / "mcpgen").write_text(script, encoding="utf-8")
    (commands / "mcpgen").chmod(0o755)
    path = {"PATH": os.pathsep.join((f"{commands}", os.environ["PATH"]))}
    named: Mapping[str, str] = {name.replace("_", "-"): word for name, word in inputs.items()}
    return run_steps(named, folder, path, "Generate", "Check")


def test_each_input_is_used_and_described() -> None:
    document = action()
    steps = document["runs"]["steps"]
    used = {
        name
        for step in steps
        for text in (step.get("if", ""), *step.get("env", {}).values())
        for name in (*CONDITION.findall(text), *EXPRESSION.findall(text))
    }
    assert used == document["inputs"].keys()
    assert all("${{" not in step["run"] for step in steps)  # no input is read as code
    for step in steps:
        assert all(f"${name}" in step["run"] or f"${{{name}" in step["run"] for name in step["env"])


def test_the_documents_name_the_inputs_of_the_action() -> None:
    inputs = action()["inputs"].keys()
    (block,) = (each for each in documents.blocks() if each.name == "check.yml")
    assert yaml.safe_load(block.text)["jobs"]["mcpgen"]["steps"][-1]["with"].keys() <= inputs
    page = (documents.ROOT / "docs" / "keeping-up.md").read_text("utf-8")
    assert {*re.findall(r"^\| `([a-z-]+)` \| (?!lines)", page, re.MULTILINE)} >= inputs


def test_a_package_is_generated_and_checked(project: Path) -> None:
    steps = run_action(project, generate=".", check=".")
    assert [(step.name, step.code) for step in steps] == [("Generate", 0), ("Check", 0)], steps
    (project / MODELS).write_text("# other\n", encoding="utf-8")
    (step,) = run_action(project, check=".")
    assert step.code == 1
    assert f"::error file={MODELS},title=FILE_DIFFERS::{NAME}: edited by hand" in step.out


def test_each_check_runs_and_writes_its_report(project: Path) -> None:
    words = {"contract": CONTRACT, "format": "junit", "reports": "reports", "fail_on": "warning"}
    (step,) = run_action(project, check="nowhere", server=TINY, **words)
    assert step.code != 0
    assert "mcpgen: error: nowhere" in step.out  # and the next checks run all the same
    texts = {path.name: path.read_text("utf-8") for path in (project / "reports").iterdir()}
    assert texts.pop("check.junit") == ""
    failures = {name: ElementTree.fromstring(text).get("failures") for name, text in texts.items()}
    assert failures.pop("contract.junit") not in {"0", None}
    assert failures == {"server.junit": "0"}
