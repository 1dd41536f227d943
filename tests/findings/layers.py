"""The layers of a package and of the official SDK, in lines and in rules of the ledger."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from mcpgen import schema
from mcpgen.render import tree
from requirements.entries import ledger

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "generated" / "mcpgen_runtime"
FACTS = frozenset({"facts", "capability"})
"""Arguments in tables of methods that come from facts."""

WIRE = ("_v2025_11_25", "_v2026_07_28", "methods.py", "version.py")
"""The modules of types that `examples/python-sdk` renders for the official SDK."""


def lines_of(paths: Iterable[Path]) -> int:
    """The lines of some files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def package() -> dict[str, int]:
    """The lines of the committed package, with all revisions and features, by layer."""
    counts = Counter[str]()
    files: Mapping[str, object] = json.loads((PACKAGE / "mcpgen.json").read_text("utf-8"))["files"]
    for name in files:
        if not name.endswith((".py", ".pyi")):
            continue
        text = (PACKAGE / name).read_text("utf-8")
        lines = len(text.splitlines())
        if tree.is_copied(name):
            counts["by hand"] += lines
        elif name.startswith("r20") or name == "models.py":
            stated = lines_of_facts(text) if name.endswith("methods.py") else 0
            counts["facts"] += stated
            counts["schema"] += lines - stated
        else:
            counts["choice"] += lines
    return {**counts}


def lines_of_facts(source: str) -> int:
    """The lines of a module of methods that facts alone decide."""
    lines = set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg in FACTS:
            lines |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len(lines)


def sources() -> dict[str, int]:
    """The lines from which packages are made, by kind."""
    data, templates = ROOT / "schema", ROOT / "templates"
    revisions = [row.name for row in schema.revisions()]

    def of_revisions(name: str) -> int:
        return lines_of(data / revision / name for revision in revisions)

    return {
        "facts": of_revisions("facts.toml") + lines_of([data / "facts.toml"]),
        "errata": of_revisions("errata.toml"),
        "descriptions": lines_of([data / "docs.toml"]),
        "templates": lines_of(sorted(templates.rglob("*.jinja*"))),
        "generator": lines_of(sorted((ROOT / "generator" / "mcpgen").rglob("*.py"))),
    }


def official_sdk() -> dict[str, int]:
    """The lines of the official SDK that is installed, by layer."""
    types, sdk = _folder("mcp_types"), _folder("mcp")
    rendered = [path for name in WIRE for path in _python_files(types / name)]
    by_hand = [path for path in _python_files(types) if path not in rendered]
    return {
        "rendered": lines_of(rendered),
        "types by hand": lines_of(by_hand),
        "by hand": lines_of(_python_files(sdk)),
    }


def _folder(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"expected {name} to be installed, as `nox -s findings` has it")
    return Path(spec.origin).parent


def _python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def rules() -> dict[str, int]:
    """The rules of the ledger that a package keeps or enforces, by what decides them."""
    counts = Counter[str]()
    revisions = {row.name for row in schema.revisions()}
    for entry in ledger().values():
        if entry.scope != "runtime" or not revisions & {*entry.revisions}:
            continue
        if "schema" in entry.source.lower():
            counts["schema"] += 1
        elif revisions - {*entry.revisions}:
            counts["some revisions"] += 1
        else:
            counts["every revision"] += 1
    counts["all"] = counts.total()
    return {**counts}
