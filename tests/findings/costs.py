"""The cost of a revision by hand: data of its own, modules that it brought, and later edits."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpgen import schema
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline
from mcpgen.render import tree

ROOT = Path(__file__).parents[2]
DATA = ("facts.toml", "errata.toml")
FIRST = "2025-06-18"
"""The first revision whose costs are counted."""


@dataclass(frozen=True)
class Cost:
    """Lines of one step from a revision to the next."""

    data: int
    modules: int
    brought: int
    rendered: int
    commits: int
    edited: int


def costs() -> dict[str, Cost]:
    """By revision, from `FIRST` on."""
    names = [row.name for row in schema.revisions()]
    packages = {name: _package(name) for name in names[names.index(FIRST) - 1 :]}
    return {
        new: _cost(old, new, packages[old], packages[new])
        for old, new in zip(packages, [*packages][1:], strict=False)
    }


def _package(revision: str) -> Mapping[str, str]:
    """The files of a package of one revision with the default features."""
    request = build_request.BuildRequest("pkg", schema_sources.by_name((revision,)))
    files = pipeline.build(request, form=dict)
    folder = f"r{revision.replace('-', '_')}"
    return {
        path.replace(folder, "r"): text.replace(revision, "DATE").replace(folder, "r")
        for path, text in files.items()
        if path.endswith(".py")
    }


def _cost(old: str, new: str, before: Mapping[str, str], after: Mapping[str, str]) -> Cost:
    brought = [path for path in after if tree.is_copied(path) and path not in before]
    rendered = [path for path in after if not tree.is_copied(path.replace("r/", f"r{new}/"))]
    commits, edited = _edits(new)
    return Cost(
        data=sum(_changed(*(_data(name, file) for name in (old, new))) for file in DATA),
        modules=len(brought),
        brought=sum(len(after[path].splitlines()) for path in brought),
        rendered=sum(_changed(before.get(path, ""), after[path]) for path in rendered),
        commits=commits,
        edited=edited,
    )


def _data(revision: str, name: str) -> str:
    return (schema.entry(revision).folder / name).read_text("utf-8").replace(revision, "DATE")


def _changed(before: str, after: str) -> int:
    """Lines that are added or removed."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return sum(line[0] in "+-" and not line.startswith(("+++", "---")) for line in lines)


def _edits(revision: str) -> tuple[int, int]:
    """The commits after the first that edit the data of a revision, and their lines."""
    paths = [f"schema/{revision}/{name}" for name in DATA]
    words = ("git", "log", "--numstat", "--format=format:@", "--no-renames", "--", *paths)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    commits = [block.split("\n") for block in done.stdout.split("@\n")[1:]]
    rows = [row.split("\t") for commit in commits[:-1] for row in commit if "\t" in row]
    return len(commits) - 1, sum(int(added) + int(removed) for added, removed, _ in rows)


def has_history() -> bool:
    """Whether the commits of the repository are at hand: an archive or a shallow clone has none."""
    words = ("git", "rev-parse", "--is-shallow-repository")
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return done.stdout.strip() == "false"
