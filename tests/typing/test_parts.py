"""Packages of a few parts and transports, under both type checkers in strict mode.

All packages lie in one folder, and each checker runs once: most of its time goes into what all of
them import.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from generator.selections import MIDDLE, NEWEST, PAIRWISE, made, written

pytestmark = [pytest.mark.typing, pytest.mark.timeout(900)]

CHOICES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    *((*choice, "") for choice in PAIRWISE),
    ("all", "all", (MIDDLE, NEWEST), "pydantic"),
)
PACKAGES = {f"package{number}": choice for number, choice in enumerate(CHOICES)}
WRONG = "wrong"
ERROR_OF_MYPY = re.compile(r"^(?P<package>\w+)[/\\].*: error: .*$", re.MULTILINE)


def run(folder: Path, *command: str) -> str:
    """The output of a type checker that ran to its end, with errors or without."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def run_mypy(folder: Path) -> dict[str, list[str]]:
    """The errors of each package."""
    errors = defaultdict(list)
    for match in ERROR_OF_MYPY.finditer(run(folder, "mypy", "--strict", *PACKAGES, WRONG)):
        errors[match["package"]].append(match[0])
    return errors


def run_pyright(folder: Path) -> dict[str, list[str]]:
    """The errors of each package."""
    names = [*PACKAGES, WRONG]
    settings = {"include": names, "typeCheckingMode": "strict", "reportPrivateUsage": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    output = run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable)
    errors = defaultdict(list)
    for row in json.loads(output)["generalDiagnostics"]:
        if row["severity"] == "error":
            package = Path(row["file"]).relative_to(folder).parts[0]
            errors[package].append(f"{row['file']}:{row['range']['start']}: {row['message']}")
    return errors


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every package."""
    folder = tmp_path_factory.mktemp("packages").resolve()
    for name, choice in PACKAGES.items():
        written(made(*choice), folder, name)
    return written({"__init__.py": "number: int = 'text'\n"}, folder, WRONG)


@pytest.fixture(scope="module", params=[run_mypy, run_pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, packages: Path) -> Mapping[str, list[str]]:
    """The errors of a type checker by package; one is wrong, so that errors are seen."""
    by_package: Mapping[str, list[str]] = request.param(packages)
    assert by_package[WRONG]
    return by_package


@pytest.mark.parametrize("package", PACKAGES, ids=lambda name: "+".join(map(str, PACKAGES[name])))
def test_a_strict_type_checker_finds_nothing(errors: Mapping[str, list[str]], package: str) -> None:
    assert errors.get(package, []) == []
