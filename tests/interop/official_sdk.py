"""Runs the official Python SDK's own tests, on modules of the example in place of its own.

    python tests/interop/official_sdk.py FOLDER [--whole]

`mcpgen render` writes the types on the wire, the methods and the versions of the SDK from
`examples/python-sdk/templates`; they take the place of those in its source distribution. A test
that does not pass with these must not pass with the SDK's own modules either. Prints the counts,
and the lines that a person maintains; exits 1 if a test is lost. FOLDER keeps the distribution, an
environment and these figures.

The tests of the SDK's examples and of the programs in its documentation run with `--whole`; those
of its documentation tools are left out, since they look at no message.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

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

QUIET = (
    *("-q", "-rfEp", "--color=no", "-p", "no:cacheprovider"),
    *("-o", "addopts=", "-o", "log_cli=false"),
)
PASSED = re.compile(r"^PASSED (\S+::.+)$", re.MULTILINE)
COLLECTED = re.compile(r"^(tests/\S+::.+)$", re.MULTILINE)
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
    passing, lost = compare_runs(python, own, rendered, ignored)
    theirs = _print_lines("its own", own, BY_HAND)
    rendered_from = sorted(each.name for each in TEMPLATES.iterdir())
    ours = _print_lines("the example's", TEMPLATES, rendered_from)
    figures = {"passing": len(passing), "lost": len(lost)}
    figures |= {"lines_own": theirs, "lines_example": ours}
    (folder / "figures.json").write_text(json.dumps(figures), "utf-8")
    return 0 if passing and not lost else 1


def compare_runs(
    python: Path, own: Path, rendered: Path, ignored: Iterable[str]
) -> tuple[set[str], set[str]]:
    """The tests that pass on the rendered modules, and those that are lost; prints both.

    A test that does not pass there runs on the SDK's own modules too.
    """
    run = start(python, rendered, ignored, "tests")
    start(python, own, ignored, "--collect-only", "tests").wait()
    run.wait()
    collected, passing = {*COLLECTED.findall(text_of_run(own))}, passed(rendered)
    assert passing <= collected
    lost = collected - passing
    files = {test.partition("::")[0] for test in lost}
    if lost:
        start(python, own, ignored, *files).wait()
        lost &= passed(own)
    if lost:  # a busy machine may miss time limits
        start(python, rendered, ignored, *files).wait()
        passing |= passed(rendered)
        lost -= passing
    name = own.parent.parent.name
    print(f"{name}: of {len(collected)} tests {len(passing)} pass, {len(lost)} are lost")
    for each in sorted(lost):
        print(f"lost: {each}")
    return passing, lost


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
        venv = (sys.executable, "-m", "venv", "--clear", "--without-pip", f"{place}")
        subprocess.run(venv, check=True)
        uv, pip = shutil.which("uv"), (sys.executable, "-m", "pip", "--python", f"{python}")
        install = [uv, "pip", "install", "-p", f"{python}"] if uv else [*pip, "install"]
        subprocess.run([*install, "-q", *packages], check=True)
        ready.write_text("\n".join(packages), "utf-8")
    return python


def unpack(archive: Path, folder: Path) -> Path:
    """The sources, fresh."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def start(
    python: Path, source: Path, ignored: Iterable[str], *words: str
) -> subprocess.Popen[bytes]:
    """Start the tests of a source tree, which writes `output.txt` there."""
    places = (source / "src", source / "src" / "mcp-types", source / "examples")
    without = (f"--ignore={path}" for path in ignored)
    options = (*QUIET, *without, *words)
    inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(map(str, places))}
    with (source / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [f"{python}", "-m", "pytest", *options],
            cwd=source,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def text_of_run(source: Path) -> str:
    """The output of the last run in a source tree."""
    return (source / "output.txt").read_text("utf-8", "replace")


def passed(source: Path) -> set[str]:
    """The tests that passed in the last run."""
    output = text_of_run(source)
    tests = {*PASSED.findall(output)}
    if not tests:
        print(output[-2000:])
    return tests


def _print_lines(whose: str, folder: Path, files: Iterable[str]) -> int:
    counts = {name: len((folder / name).read_text("utf-8").splitlines()) for name in files}
    each = ", ".join(f"{Path(name).name} {count}" for name, count in counts.items())
    print(f"lines by hand, {whose}: {sum(counts.values())} ({each})")
    return sum(counts.values())


if __name__ == "__main__":
    sys.exit(main())
