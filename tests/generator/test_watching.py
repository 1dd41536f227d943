"""`mcpgen --watch`: a package is generated again when an input changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.command_line import run
from mcpgen import paths, schema
from mcpgen.errors import UsageError
from mcpgen.package import commands, manifest, watching

pytestmark = pytest.mark.lengthy

SMALLEST = schema.revisions()[0]
RENDERED = f"render pages -r {SMALLEST.name} -o docs"


@contextmanager
def watching_process(
    root: Path, *words: object, cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """mcpgen as a process that watches; ended at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", *map(str, words), "--watch"],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
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


PROJECT = f"""
[tool.mcpgen]
schemas = ["2030-01-01.json"]
parts = ["types"]
output = "pkg"

[[tool.mcpgen.render]]
templates = "pages"
output = "docs"
revisions = ["{SMALLEST.name}"]
"""


@pytest.mark.slow
def test_each_input_of_a_project_is_watched_until_an_interrupt(root: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    draft, page = tmp_path / "2030-01-01.json", tmp_path / "pages" / "{revision}.md.jinja"
    document = json.loads((SMALLEST.folder / "schema.json").read_text())
    draft.write_text(json.dumps(document))
    page.parent.mkdir()
    page.write_text("one")
    models = tmp_path / "pkg" / "r2030_01_01" / "models.py"
    written = tmp_path / "docs" / f"r{SMALLEST.name.replace('-', '_')}.md"
    with watching_process(root, cwd=tmp_path) as process:
        lines_until(process, "waiting for changes")
        assert ("colour" in models.read_text(), written.read_text()) == (False, "one")
        document["definitions"]["Tool"]["properties"]["colour"] = {"type": "string"}
        draft.write_text(json.dumps(document))
        assert "changed: 2030-01-01.json" in lines_until(process, "updated")
        assert "colour" in models.read_text()
        draft.write_text("{")
        lines_until(process, "mcpgen: error: ")  # and it goes on
        draft.write_text(json.dumps(document))
        lines_until(process, "unchanged")
        page.write_text("two")
        lines_until(process, "changed: {revision}.md.jinja")
        lines_until(process, "docs: ")
        assert written.read_text() == "two"
        (tmp_path / "pyproject.toml").write_text(PROJECT.replace('"docs"', '"pages_of_docs"'))
        lines_until(process, "pages_of_docs: ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    "words", ["", "update", f"-r {SMALLEST.name} -o new", "update pkg", "update docs", RENDERED]
)
def test_watching_runs_the_same_command_again(
    words: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "pages").mkdir()
    (here / "pages" / "a.txt").touch()
    text = PROJECT.replace('schemas = ["2030-01-01.json"]', f'revisions = ["{SMALLEST.name}"]')
    (here / "pyproject.toml").write_text(text)
    assert run("-q").code == 0
    program = here / "python"
    program.write_text('#!/bin/sh\necho "$@" >> ran\n')
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "argv", ["mcpgen", *words.split(), "--watch"])
    changes = SimpleNamespace(watch=lambda *_, **__: iter([set(), {(1, "a.txt")}]))
    monkeypatch.setitem(sys.modules, "watchfiles", changes)
    done = run(*words.split(), "--watch")
    assert (done.code, done.out) == (0, "")
    assert (here / "ran").read_text() == f"{f'-m mcpgen {words}'.strip()}\n" * 2


DRAFT = manifest.Origin("file", "", "", "../a.json", "../a.toml")
RECORD = manifest.Manifest(
    *("1.0", "", "pkg", manifest.Options(errata=True)),
    {"2030-01-01": DRAFT, "2030-01-02": manifest.Origin("mcpgen", "", "")},
    {
        "com.example/paint": manifest.ExtensionOrigin("../paint.json", ""),
        "io.modelcontextprotocol/none": manifest.ExtensionOrigin("", ""),
    },
    {},
    manifest.Templates("../templates"),
    manifest.PatchOrigin("../pkg.patch"),
)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, "a.json a.toml templates pkg.patch paint.json none"),
        ({"patch": Path("own.patch")}, "a.json a.toml templates own.patch paint.json none"),
        ({"schemas": (Path("b.json"),)}, "b.json pkg.patch paint.json none"),
        ({"facts": Path("b.toml")}, "b.toml pkg.patch paint.json none"),
        ({"templates": Path("own")}, "own pkg.patch paint.json none"),
        ({"extensions": ("tasks",)}, "a.json a.toml templates pkg.patch tasks.json"),
    ],
)
def test_options_replace_the_inputs_that_a_manifest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / manifest.NAME).write_text(RECORD.text())
    with paths.own_schemas(tmp_path):
        inputs = watching.inputs(commands.PackageOptions(**chosen), Path("pkg"))
    own, others = inputs[:3], inputs[3:]
    assert own == (paths.schema_dir(), paths.templates_dir(), tmp_path.resolve())
    assert [path.name for path in others] == expected.split()
    assert all(path.is_absolute() for path in others)
    assert watching.inputs(commands.PackageOptions(), Path("none")) == own[:2]
    bare = replace(RECORD, revisions={}, extensions={}, templates=manifest.Templates())
    (tmp_path / "pkg" / manifest.NAME).write_text(
        replace(bare, patch=manifest.PatchOrigin()).text()
    )
    assert watching.inputs(commands.PackageOptions(), Path("pkg")) == own[:2]


def test_each_change_of_an_input_runs_the_command_again(
    root: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "pages" / "more").mkdir(parents=True)
    for name in ("facts.toml", "pages/a.txt"):
        (here / name).touch()

    def report(*folders: Path, watch_filter: Callable[[int, str], bool], **options: object) -> Any:
        assert folders == (here, here / "pages", here / "pages" / "more")
        assert options.pop("yield_on_timeout") is True
        assert [*options.values()] == [200, 500, False, False], options
        print("begins", file=sys.stderr, flush=True)
        yield set()
        changed = [f"{here / name}" for name in ("pages/more/b", "other", "facts.toml")]
        yield {(1, path) for path in changed if watch_filter(1, path)}
        yield set()

    monkeypatch.setitem(sys.modules, "watchfiles", SimpleNamespace(watch=report, Change=int))
    monkeypatch.setenv("PYTHONPATH", f"{root / 'generator'}")
    watching.watch(["--bogus", "--watch"], [here / "facts.toml", here / "pages"])
    run = "mcpgen: error: no such option '--bogus'\n"
    waits = "waiting for changes; Ctrl-C ends this\n"
    expected = f"begins\n{run}{waits}changed: b, facts.toml\n{run}"
    assert capfd.readouterr() == ("", expected)


def test_watching_names_the_library_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(UsageError, match="--watch needs watchfiles: pip install watchfiles"):
        watching.watch([], [])
