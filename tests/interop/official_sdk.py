"""Runs the official Python SDK's own tests, on its own modules and on those of the example.

    python tests/interop/official_sdk.py FOLDER [--whole]

`mcpgen render` writes the types on the wire, the methods and the versions of the SDK from
`examples/python-sdk/templates`; they take the place of those in its source distribution. A test
that passes with the SDK's own modules has to pass with these. Prints the counts, and the lines that
a person maintains; exits 1 if a test is lost. FOLDER keeps the distribution, an environment and
these figures.

The tests of the SDK's examples and of the programs in its documentation run with `--whole`; those
of its documentation tools are left out, since they look at no message.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent.parent
TEMPLATES = ROOT / "examples" / "python-sdk" / "templates"
RELEASE = "2.3.0"
PACKAGES = (
    f"mcp[cli]=={RELEASE}",
    *("blockbuster", "coverage<=7.13", "dirty-equals", "inline-snapshot", "logfire"),
    *("opentelemetry-sdk", "pillow", "pydantic-settings", "pytest", "pytest-examples", "ruff"),
    "trio",
)
"""The SDK and what its tests import."""

TYPES = Path("src") / "mcp-types" / "mcp_types"
REPLACED = ("_v2025_11_25/__init__.py", "_v2026_07_28/__init__.py", "methods.py", "version.py")
"""The modules that are rendered."""

BY_HAND = ("scripts/gen_surface_types.py", f"{TYPES}/methods.py", f"{TYPES}/version.py")
"""The SDK's files for the same, written by hand: a script with patches, and tables."""

NEVER = ("tests/docs",)
WHOLE = ("tests/docs_src", "tests/examples", "tests/test_examples.py")
"""Tests of documentation tools, and those for `--whole` alone."""

QUIET = ("-q", "--color=no", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "log_cli=false")
FOREIGN = ("CI", "MCP_SPEC", "PYTEST_ADDOPTS")
"""Variables of our own runs."""

PROGRAMS = "Scripts" if os.name == "nt" else "bin"


def main() -> int:
    """Render, run both, compare."""
    name, *options = sys.argv[1:]
    ignored = NEVER if options == ["--whole"] else NEVER + WHOLE
    folder = Path(name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    archive, python = distribution(folder, RELEASE), environment(folder, PACKAGES)
    own, rendered = (unpack(archive, folder / name) for name in ("own", "rendered"))
    words = ("render", "-q", f"{TEMPLATES}", "-o", f"{folder / 'out'}", "-r", "all", "--force")
    subprocess.run([sys.executable, "-m", "mcpgen", *words], check=True)
    for path in REPLACED:
        shutil.copyfile(folder / "out" / path, rendered / TYPES / path)
    before, after = run_both(python, own, rendered, ignored)
    theirs = _print_lines("its own", own, BY_HAND)
    rendered_from = sorted(each.name for each in TEMPLATES.iterdir())
    ours = _print_lines("the example's", TEMPLATES, rendered_from)
    figures = {"own": len(before), "rendered": len(after), "lost": len(before - after)}
    figures |= {"lines_own": theirs, "lines_example": ours}
    (folder / "figures.json").write_text(json.dumps(figures), "utf-8")
    return 0 if before <= after and before else 1


Tests = set[tuple[str, str]]


def run_both(
    python: Path, own: Path, rendered: Path, ignored: Iterable[str]
) -> tuple[Tests, Tests]:
    """The tests that pass on the own modules, and on the rendered ones; prints what is lost."""
    for run in [start(python, source, ignored) for source in (own, rendered)]:
        run.wait()
    before, after = passed(own), passed(rendered)
    if before - after:  # a busy machine may miss time limits
        start(python, rendered, ignored, sorted({file for file, _ in before - after})).wait()
        after |= passed(rendered)
    print(f"{own.parent.name}: {len(before)} tests pass on its own modules, {len(after)} on these")
    for file, name in sorted(before - after):
        print(f"lost: {file}: {name}")
    return before, after


def distribution(folder: Path, release: str) -> Path:
    """The source distribution, with the tests and the package of types."""
    archive = folder / f"mcp-{release}.tar.gz"
    if not archive.is_file():
        words = ("download", "-q", "--no-deps", "--no-binary=:all:", "-d", f"{folder}")
        subprocess.run([sys.executable, "-m", "pip", *words, f"mcp=={release}"], check=True)
    return archive


def environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """The interpreter of an environment with some packages."""
    place, ready = folder / "environment", folder / "ready"
    python = place / PROGRAMS / "python"
    if not ready.is_file() or ready.read_text("utf-8") != "\n".join(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", f"{place}"], check=True)
        uv = shutil.which("uv")
        pip = [uv, "pip", "install", "-p", f"{python}"] if uv else [python, "-m", "pip", "install"]
        subprocess.run([*pip, "-q", *packages], check=True)
        ready.write_text("\n".join(packages), "utf-8")
    return python


def unpack(archive: Path, folder: Path) -> Path:
    """The sources, fresh."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def start(
    python: Path, source: Path, ignored: Iterable[str], tests: Iterable[str] = ()
) -> subprocess.Popen[bytes]:
    """Start the tests of a source tree, which writes `report.xml` there."""
    places = (source / "src", source / "src" / "mcp-types", source / "examples")
    report = (f"--junit-xml={source / 'report.xml'}", "-o", "junit_family=xunit1")
    without = (f"--ignore={path}" for path in ignored)
    words = (*QUIET, *report, *without, *(tests or ("tests",)))
    inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(map(str, places))}
    with (source / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [f"{python}", "-m", "pytest", *words],
            cwd=source,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def passed(source: Path) -> Tests:
    """The tests that passed, by file and name."""
    report = source / "report.xml"
    if not report.is_file():
        print((source / "output.txt").read_text("utf-8", "replace")[-2000:])
        return set()
    cases = ElementTree.parse(report).iter("testcase")
    return {
        (case.get("file", ""), f"{case.get('classname')}.{case.get('name')}")
        for case in cases
        if not {child.tag for child in case} & {"failure", "error", "skipped"}
    }


def _print_lines(whose: str, folder: Path, files: Iterable[str]) -> int:
    counts = {name: len((folder / name).read_text("utf-8").splitlines()) for name in files}
    each = ", ".join(f"{Path(name).name} {count}" for name, count in counts.items())
    print(f"lines by hand, {whose}: {sum(counts.values())} ({each})")
    return sum(counts.values())


if __name__ == "__main__":
    sys.exit(main())
