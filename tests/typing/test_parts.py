"""Packages of a few parts, transports and features, under both type checkers in strict mode.

Mypy sees all modules, and pyright those that it has not seen in another package.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import mcpgen_runtime
from generator.selections import (
    LAST_WITH_SESSIONS,
    MIDDLE,
    NEWEST,
    OLDEST,
    PAIRWISE,
    rendered,
    write_package,
)
from mcpgen.model.feature_table import FEATURES
from mcpgen.render.closure import imported_files

pytestmark = [pytest.mark.typing, pytest.mark.timeout(900)]

ALL, NONE = ("all",), ("none",)
OF_SERVERS = tuple(
    each.name
    for each in FEATURES
    if (each.is_default or each.was_default) and each.parts == {"server"}
)
SOME = ("auth", "sync", "mount", "inspector", "elicitation", "direct", "methods", "reload")
OTHERS = ("groups", "proxy", "openapi", "telemetry", "restart", "migration", "dependencies")
CHOICES: tuple[tuple[str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    *((*choice, "", ALL) for choice in PAIRWISE),
    ("all", "all", (MIDDLE, NEWEST), "pydantic", ALL),
    *(("all", "all", (NEWEST,), "", features) for features in (NONE, SOME, OTHERS)),
    ("client", "http", (MIDDLE,), "", NONE),
    ("server", "stdio", (LAST_WITH_SESSIONS,), "", NONE),
    ("all", "all", (OLDEST, NEWEST), "", ()),
    *(("server", "stdio", (NEWEST,), "", ("none", name)) for name in OF_SERVERS),
    ("server", "http", (OLDEST, MIDDLE), "", ("none", "auth", "mount")),
)
PACKAGES = {f"package{number}": choice for number, choice in enumerate(CHOICES)}
STRICT = {"strict_structs": "", "strict_models": "pydantic"}
OF_THE_NEWEST = [
    name
    for name, (parts, _, revisions, models, features) in PACKAGES.items()
    if features == ALL
    and (models or revisions == (NEWEST,) or (parts, revisions) == ("types", (MIDDLE, NEWEST)))
]
"""Packages that pyright sees too. The modules of older revisions are in the committed package,
which it sees whole, and a name that a selection lacks is an error of mypy as well.
"""
COMMITTED = Path(mcpgen_runtime.__file__).parent
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
    output = run(folder, "mypy", "--strict", f"--cache-dir={os.devnull}", *PACKAGES, *STRICT, WRONG)
    for match in ERROR_OF_MYPY.finditer(output):
        errors[match["package"]].append(match[0])
    return errors


def modules_in(package: Path) -> dict[str, str]:
    """The texts of modules and stubs by their paths in a package."""
    files = (path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    return {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in files}


def unseen_modules(folder: Path) -> Iterator[str]:
    """Modules of packages that pyright has not seen, in the committed package or those before."""
    seen: set[tuple[str, ...]] = set()
    for package in (COMMITTED, *(folder / name for name in (*OF_THE_NEWEST, *STRICT))):
        modules = modules_in(package)
        for path, text in modules.items():
            imported = sorted({*imported_files(path, text, modules)})
            row = (path, text, *(part for each in imported for part in (each, modules[each])))
            if row not in seen and package != COMMITTED:
                yield f"{package.relative_to(folder) / path}"
            seen.add(row)


def run_pyright(folder: Path) -> dict[str, list[str]]:
    """The errors of each package."""
    names = [*unseen_modules(folder), WRONG]
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
    """A folder with every package, as it is rendered: layout means nothing to type checkers."""
    folder = tmp_path_factory.mktemp("packages").resolve()
    for name, choice in PACKAGES.items():
        write_package(rendered(*choice), folder, name)
    for name, models in STRICT.items():
        types = rendered("types", "all", (MIDDLE, NEWEST), models, decoding="strict")
        write_package(types, folder, name)
    return write_package({"__init__.py": "number: int = 'text'\n"}, folder, WRONG)


Checker = Callable[[Path], Mapping[str, list[str]]]
CASES = [(run_mypy, name) for name in PACKAGES] + [(run_pyright, name) for name in OF_THE_NEWEST]


@pytest.fixture(scope="module")
def errors_of(packages: Path) -> Callable[[Checker], Mapping[str, list[str]]]:
    """A function that returns the errors of a type checker by package; each checker runs once."""
    return cache(lambda checker: checker(packages))


@pytest.mark.parametrize("checker", [run_mypy, run_pyright])
@pytest.mark.parametrize("package", STRICT)
def test_a_type_checker_finds_nothing_in_strict_packages(
    errors_of: Callable[[Checker], Mapping[str, list[str]]], checker: Checker, package: str
) -> None:
    assert errors_of(checker).get(package, []) == []


@pytest.mark.parametrize(
    ("checker", "package"),
    CASES,
    ids=[f"{checker.__name__}-{'+'.join(map(str, PACKAGES[name]))}" for checker, name in CASES],
)
def test_a_strict_type_checker_finds_nothing(
    errors_of: Callable[[Checker], Mapping[str, list[str]]], checker: Checker, package: str
) -> None:
    errors = errors_of(checker)
    assert errors[WRONG]  # so that errors are seen
    assert errors.get(package, []) == []
