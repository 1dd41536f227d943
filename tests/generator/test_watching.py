"""`mcpgen --watch`: a package is generated again when an input changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpgen import paths, schema
from mcpgen.package import commands, watching

SMALLEST = schema.revisions()[0]


@contextmanager
def watching_process(root: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """mcpgen as a process that watches; ended at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", *map(str, words), "--watch"],
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], text: str) -> list[str]:
    """The lines that a process writes, up to the first that holds a text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"{text!r} was never written: {lines}")


@pytest.mark.slow
def test_a_changed_schema_is_generated_again_until_an_interrupt(root: Path, tmp_path: Path) -> None:
    draft = tmp_path / "2030-01-01.json"
    document = json.loads((SMALLEST.folder / "schema.json").read_text())
    draft.write_text(json.dumps(document))
    package = tmp_path / "pkg"
    with watching_process(root, "--schema", draft, "--parts", "types", "-o", package) as process:
        lines_until(process, "waiting for changes")
        assert "colour" not in (package / "r2030_01_01" / "models.py").read_text()
        document["definitions"]["Tool"]["properties"]["colour"] = {"type": "string"}
        draft.write_text(json.dumps(document))
        lines = lines_until(process, "updated")
        assert "changed: 2030-01-01.json" in lines
        assert "colour" in (package / "r2030_01_01" / "models.py").read_text()
        draft.write_text("{")
        lines_until(process, "mcpgen: error: ")  # and it goes on
        draft.write_text(json.dumps(document))
        lines_until(process, "unchanged")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


def test_inputs_are_own_data_and_named_files(tmp_path: Path) -> None:
    draft = tmp_path / "2030-01-01.json"
    inputs = watching.inputs(commands.PackageOptions(schemas=(draft,)), tmp_path / "pkg")
    assert inputs == (paths.schema_dir(), paths.templates_dir(), draft.resolve())


def test_inputs_of_an_update_are_those_of_the_manifest(root: Path, tmp_path: Path) -> None:
    draft = tmp_path / "2030-01-01.json"
    draft.write_bytes((SMALLEST.folder / "schema.json").read_bytes())
    subprocess.run(
        [sys.executable, "-m", "mcpgen", "-q", "--schema", draft, "--parts", "types", "-o", "pkg"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        check=True,
    )
    assert draft.resolve() in watching.inputs(commands.PackageOptions(), tmp_path / "pkg")
