"""Formatters and linters of a user's project leave a package as it is."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache as computed_once
from pathlib import Path

import black
import pytest
from syrupy.assertion import SnapshotAssertion

from generator.conftest import REVISION
from generator.tables import table
from mcpgen import cache
from mcpgen.errors import OutputError
from mcpgen.model import schema_sources
from mcpgen.model.parts import Selection
from mcpgen.package import output, pipeline
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.check import check
from mcpgen.render import formatting

pytestmark = pytest.mark.costly

TOOLS = {
    "black": ["black", "--quiet"],
    "ruff format": ["ruff", "format", "--quiet", "--isolated"],
    "ruff check": ["ruff", "check", "--fix", "--isolated", "--select=E,F,I,UP,D,Q,COM"],
    "isort": ["isort", "--quiet"],
    "isort like black": ["isort", "--quiet", "--profile=black"],
}
TYPES = Selection(("types",))


@computed_once
def types_of_a_revision() -> Mapping[str, str]:
    """A package with rendered and copied modules: all modules have the same lines above."""
    sources = schema_sources.by_name((REVISION,))
    return pipeline.build(BuildRequest("pkg", sources, selection=TYPES))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_of_the_users_project_changes_nothing(tmp_path: Path, tool: str) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    own = project / "src" / "own.py"
    own.write_text("import sys,   os\nx = [ 1,2 ]\nprint(sys, os)\n")
    vendored = project / "src" / "pkg"
    output.write(vendored, types_of_a_revision())
    name, *words = TOOLS[tool]
    command = [sys.executable, "-m", name, *words, "src"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "pkg" not in done.stdout + done.stderr
    assert "import sys,   os\nx = [ 1,2 ]" not in own.read_text(), done.stderr
    assert check(vendored).edited == ()


MODULES: dict[str, str] = table("modules")


def kept_rows(place: Path) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """The kind and the key of the only entry of a cache, and the pieces in it by digest."""
    [entry] = place.iterdir()
    kind, key = entry.stem.split("-")
    return (kind, key), json.loads(cache.read(kind, key) or b"")


@pytest.mark.parametrize("case", MODULES)
def test_a_module_in_pieces_is_formatted_as_the_whole_is(
    case: str, place: Path, snapshot: SnapshotAssertion
) -> None:
    long = f"{case:x>4000}"
    for source in (MODULES[case], f"{MODULES[case]}\nx = '{long}'\n"):
        whole = black.format_str(source, mode=black.Mode(line_length=100))
        assert formatting.format_modules({"a.py": source}) == {"a.py": whole}
    assert [text.replace(long, "long") for _, text in kept_rows(place)[1]] == snapshot


def test_pieces_are_kept_for_other_modules_of_the_same_path(place: Path) -> None:
    for length in (3_999, 4_000):
        formatting.format_modules({"a.py": f"kept =  '{'x' * (length - 11)}'\n"})
        assert place.exists() is (length == 4_000)
    entry, _ = kept_rows(place)
    digest = hashlib.sha256(b"def kept( ): pass\n").hexdigest()
    rows = [*((str(number), "") for number in range(999)), (digest, "kept = 0\n")]
    cache.write(*entry, json.dumps(rows).encode())
    source = f"def kept( ): pass\n\ndef new( ): '{'x' * 4_000}'\n"
    written = formatting.format_modules({"a.py": source})["a.py"]
    assert written.startswith("kept = 0\n\n\ndef new():\n")
    assert [row[0] for row in kept_rows(place)[1]][:-1] == [row[0] for row in rows[1:]]


@pytest.mark.parametrize("size", [199_999, 200_000])
def test_half_of_much_source_is_formatted_by_another_process(
    size: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = zip("abcd", (80_000, 60_000, 40_000, size - 180_000), strict=True)
    texts = {f"{name}.py": f"{name} = '{f'{size}':x>{length - 7}}'\n" for name, length in lengths}
    expected = {path: text.replace("'", '"') for path, text in texts.items()}
    asked, answer, program = (tmp_path / name for name in ("asked", "answer", "python"))
    answer.write_text(json.dumps({texts["b.py"]: "b = 0\n"}))
    program.write_text(f"#!/bin/sh\ncat > '{asked}'\ncat '{answer}'\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    expected |= {"b.py": "b = 0\n"} if size == 200_000 else {}
    assert list(formatting.format_modules(texts).items()) == list(expected.items())
    assert len([*place.iterdir()]) == 4
    passed_on = json.loads(asked.read_text()) if asked.exists() else None
    assert passed_on == ([texts["b.py"], texts["d.py"]] if size == 200_000 else None)


@pytest.mark.parametrize("count", [0, 30_000])
def test_invalid_python_is_one_error(count: int) -> None:
    sources = {"long.py": f"x = '{'long ' * count}'\n", "b.py": "def", "c.py": "y = 1\n"}
    with pytest.raises(OutputError, match=r"^black could not format b\.py: "):
        formatting.format_modules(sources)
