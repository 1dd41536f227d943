"""Right and wrong code of users, under both type checkers in strict mode.

A line that ends in `# expect: error` must have one from each checker; any other must have none.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from documents import examples, snippets
from example_programs import program_files

pytestmark = pytest.mark.typing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SNIPPETS = sorted((HERE / "snippets").glob("*.py"))
EXPECTED = re.compile(r"#\s*expect:\s*error$")
MYPY_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: ")

Errors = dict[tuple[str, int], list[str]]


def run_checker(*words: str) -> subprocess.CompletedProcess[str]:
    """Have a type checker run to its end, in the repository."""
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@cache
def mypy_errors() -> Errors:
    """Errors of mypy by file name and line."""
    done = run_checker("mypy", "--no-error-summary", str(HERE / "snippets"))
    assert done.stderr == ""
    errors: Errors = {}
    for line in done.stdout.splitlines():
        if match := MYPY_ERROR.match(line):
            errors.setdefault((Path(match["file"]).name, int(match["line"])), []).append(line)
    return errors


@cache
def pyright_errors() -> Errors:
    """Errors of pyright by file name and line."""
    words = ("--outputjson", "--pythonpath", sys.executable, "-p", str(HERE))
    done = run_checker("pyright", *words)
    errors: Errors = {}
    for row in json.loads(done.stdout)["generalDiagnostics"]:
        if row["severity"] == "error":
            place = (Path(row["file"]).name, row["range"]["start"]["line"] + 1)
            errors.setdefault(place, []).append(row["message"])
    return errors


def expected_lines(snippet: Path) -> set[int]:
    """Numbers of the lines that are wrong on purpose."""
    lines = snippet.read_text("utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if EXPECTED.search(line)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.stem)
def test_a_checker_finds_the_wrong_lines_and_no_others(snippet: Path, errors: object) -> None:
    assert callable(errors)
    by_line = {line: texts for (file, line), texts in errors().items() if file == snippet.name}
    expected = expected_lines(snippet)
    assert {line: texts for line, texts in by_line.items() if line not in expected} == {}
    assert expected - by_line.keys() == set()


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Python of documents and examples/, and with the packages that it needs."""
    folder = tmp_path_factory.mktemp("documents")
    files = {name: text for name, text in examples().items() if name.endswith(".py")}
    for block in snippets():
        document = Path(block.document).stem.replace("-", "_")
        files[f"block_{document}_{block.line}.py"] = block.text
    programs = program_files()
    assert not files.keys() & programs.keys()
    files |= programs
    assert len(files) > 50
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        text = text.replace("from pkg", "from mcpgen_runtime")
        place.write_text(text.replace("from tasking", "from painting"), "utf-8")
    types = ("--revision", "2025-06-18", "--parts", "types", "-q", "-o")
    for choose in (("acme_types",), ("acme_strict", "--decoding", "strict")):
        subprocess.run([sys.executable, "-m", "mcpgen", *types, *choose], cwd=folder, check=True)
    (folder / "paint.json").write_text(examples()["paint.json"], "utf-8")
    extended = ("--extension", "paint.json", "--extension", "tasks", "-q", "-o", "painting")
    extend = [sys.executable, "-m", "mcpgen", "--revision", "2026-07-28", *extended]
    subprocess.run(extend, cwd=folder, check=True)
    settings = json.loads((HERE / "pyrightconfig.json").read_text("utf-8"))
    # Beside the examples, of what is generated only what extensions add: `typing` has the rest.
    checked = [*folder.glob("*.py"), *folder.glob("*/r*/*/")]
    names = [path.relative_to(folder).as_posix() for path in checked]
    paths = {"include": names, "extraPaths": [str(ROOT / "generated")]}
    (folder / "pyrightconfig.json").write_text(json.dumps({**settings, **paths}), "utf-8")
    return folder


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "checker", [("mypy",), ("pyright", "--pythonpath", sys.executable, "-p")], ids=lambda c: c[0]
)
def test_the_documents_pass_with_the_package_of_all_revisions(
    documents: Path, checker: tuple[str, ...]
) -> None:
    done = run_checker(*checker, str(documents))
    assert done.returncode == 0, done.stdout


def test_there_are_right_and_wrong_snippets() -> None:
    wrong = [snippet for snippet in SNIPPETS if expected_lines(snippet)]
    assert wrong
    assert len(wrong) < len(SNIPPETS)
