"""The work that a next revision of the protocol would be for the official Python SDK.

    PYTHONPATH=tests python -m interop.official.next_revision [--write]

A rehearsal is a draft: the newest revision with one change that the roadmap of the specification
plans, and the newest published draft, where `MCP_SPEC` has the published states. `mcpgen schema
add` makes a revision of it, and the example's templates render the SDK's modules with that revision
beside the known ones. What these refer to and the SDK lacks is what its maintainers write by hand.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import mcp
import mcp_types
import mcp_types.methods
from pydantic import BaseModel

from generator.command_line import run
from generator.futures import NAMES, PLANS, change_revision, save_draft
from history.test_published_states import archive, write_newest_draft

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "examples" / "python-sdk" / "templates"
PAGE = ROOT / "examples" / "python-sdk" / "next.md"
SETTINGS_FILE = TEMPLATES / "render.toml"
NEWEST = NAMES[-1]
NEXT = "2027-01-15"
"""The date of a rehearsed revision."""

PUBLISHED = "the newest draft"
TITLES = {
    "not modified": "Entity tags, and a result that says `not_modified`",
    "events": "Events, by `events/list` and `events/subscribe`",
    "tool output": "The result of a tool as a list of outputs",
    "a streamed list": "A list in pages that becomes a stream",
    PUBLISHED: "The newest draft as published",
}
RESPONSE = ("ResultResponse", "ResultResponseResult")
"""Ends of names of types of whole responses, and of unions in them, which the SDK does not have."""


@dataclass(frozen=True)
class Rendered:
    """The SDK's modules, rendered with a rehearsed revision."""

    folder: Path
    added: Mapping[str, Any]
    settings: int

    @cached_property
    def methods(self) -> ast.Module:
        """The source of the tables of methods."""
        return ast.parse((self.folder / "methods.py").read_text("utf-8"))

    @cached_property
    def wire(self) -> Mapping[str, Any]:
        """The names of the module of types on the wire."""
        return runpy.run_path(f"{self.folder / package_of(NEXT) / '__init__.py'}")

    @property
    def public_types(self) -> list[str]:
        """Names of public types that the tables refer to."""
        return sorted(
            {
                node.attr
                for node in ast.walk(self.methods)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "types"
            }
        )

    def rows(self, table: str) -> dict[tuple[str, str], str]:
        """The rows of a table by method and revision: the type on the wire, as it is written."""
        for node in self.methods.body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table:
                assert isinstance(node.value, ast.Call)
                literal = node.value.args[0]
                assert isinstance(literal, ast.Dict)
                keys = [ast.literal_eval(key) for key in literal.keys if key is not None]
                return dict(zip(keys, map(ast.unparse, literal.values), strict=True))
        raise LookupError(table)


def package_of(revision: str) -> str:
    """The package of types on the wire."""
    return f"_v{revision.replace('-', '_')}"


def known_wire() -> list[str]:
    """The revisions with types on the wire, by the settings of the templates."""
    settings = tomllib.loads(SETTINGS_FILE.read_text("utf-8"))
    dates: list[str] = settings["values"]["wire"]
    return dates


def rehearsals() -> dict[str, Callable[[Path], Path]]:
    """By name, functions that write the schema of a draft into a folder."""

    def planned(name: str) -> Callable[[Path], Path]:
        def write(folder: Path) -> Path:
            draft = change_revision(NEWEST, [])
            PLANS[name](draft)
            return save_draft(draft, folder)

        return write

    drafts = {name: planned(name) for name in PLANS}
    if archive() is not None:
        drafts[PUBLISHED] = write_newest_draft
    return drafts


def render(schema: Path, folder: Path) -> Rendered:
    """Add a draft as a revision, and render the SDK's modules with it."""
    own = folder / "own"
    words = ("schema", "add", f"{schema}", "-r", NEXT, "--schemas", f"{own}", "--json")
    added = json.loads(_mcpgen(*words))
    templates = folder / "templates"
    shutil.copytree(TEMPLATES, templates)
    lines = _name_revision(templates / SETTINGS_FILE.name)
    out = folder / "out"
    _mcpgen("render", f"{templates}", "-o", f"{out}", "-r", "all", "--schemas", f"{own}", "-q")
    return Rendered(out, added, lines)


def _mcpgen(*words: str) -> str:
    done = run(*words)
    assert done.code == 0, done.err
    return done.out


def _name_revision(path: Path) -> int:
    """Name the new revision in the settings, with the leniency of the newest; counts the lines."""
    text = path.read_text("utf-8")
    dated = text.replace(f'"{NEWEST}"]', f'"{NEWEST}", "{NEXT}"]')
    assert dated != text
    blocks = re.findall(rf"^\[\[errata\.{NEWEST}\]\]\n(?:.+\n)+", text, re.MULTILINE)
    repeated = "".join(f"\n{block}".replace(NEWEST, NEXT) for block in blocks)
    path.write_text(dated + repeated, "utf-8")
    return 1 + len(repeated.splitlines())


def work(rendered: Rendered) -> Iterator[tuple[str, list[str]]]:
    """The work of a person, by kind: each a heading and its items."""
    added = rendered.added
    yield (
        "guesses to check",
        [
            f"`{review['pointer']}` = `{json.dumps(review['value'])}`"
            for review in added["review"]
            if review["reason"]
        ],
    )
    described = [name for name in added["undocumented"] if "." not in name]
    yield "types to describe", [f"`{name}`" for name in described]
    yield "public types to write", [f"`{name}`" for name in _lacking(rendered)]
    wider, narrower = _members(rendered.wire)
    yield "public members to write", [f"`{name}`" for name in wider]
    yield "required public members that the revision lacks", [f"`{name}`" for name in narrower]
    yield "calls and handlers to write", [*_new_methods(rendered)]
    changed = {name.partition(".")[0] for name in (*wider, *narrower)}
    yield "modules of the SDK that name a changed type", [*_modules_with(changed)]


def _lacking(rendered: Rendered) -> list[str]:
    """Types that the tables refer to, or that are new in the revision, and the SDK lacks."""
    new = {name for name in rendered.added["undocumented"] if not name.endswith(RESPONSE)}
    names = {*rendered.public_types, *(new & rendered.wire.keys())}
    return sorted(name for name in names if not hasattr(mcp_types, name))


def _members(wire: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Members of the wire that public types lack, and required public ones that it lacks."""
    known = vars(importlib.import_module(f"mcp_types.{package_of(NEWEST)}"))
    (wider, narrower), (before, also) = _differences(wire), _differences(known)
    return sorted(wider - before), sorted(narrower - also)


def _differences(wire: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    wider, narrower = set[str](), set[str]()
    for name, model in wire.items():
        public = getattr(mcp_types, name, None)
        if not (_is_model(model) and _is_model(public)):
            continue
        theirs, ours = _fields(public), _fields(model)
        wider |= {f"{name}.{wire}" for wire in ours.keys() - theirs.keys()}
        needed = {wire for wire, is_required in theirs.items() if is_required}
        narrower |= {f"{name}.{wire}" for wire in needed - ours.keys()}
    return wider, narrower


def _is_model(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, bool]:
    """The members of a model by their names on the wire, and whether they are required."""
    model.model_rebuild()
    return {
        f"{field.alias or field.validation_alias or name}": field.is_required()
        for name, field in model.model_fields.items()
    }


def _new_methods(rendered: Rendered) -> Iterator[str]:
    """The methods that no known revision has, each with the places of its like."""
    for (sender, kind), places in PLACES.items():
        table = f"{sender}_{kind}".upper()
        known = {method for method, _ in getattr(mcp_types.methods, table)}
        for method in sorted({method for method, _ in rendered.rows(table)} - known):
            yield f"`{method}`: {places}"


PLACES = {
    ("client", "requests"): "a call of `ClientSession`, a handler of `Server`",
    ("client", "notifications"): "a call of `ClientSession`, a handler of `Server`",
    ("server", "requests"): "a call of `ServerSession`, a callback of `ClientSession`",
    ("server", "notifications"): "a call of `ServerSession`, a callback of `ClientSession`",
}


def _modules_with(names: Iterable[str]) -> Iterator[str]:
    """Modules of the SDK that name one of some types, other than its public types."""
    words = re.compile(rf"\b(?:{'|'.join(sorted(names)) or '(?!)'})\b")
    folder = Path(next(iter(mcp.__path__)))
    for path in sorted(folder.rglob("*.py")):
        if words.search(path.read_text("utf-8")):
            yield f"`mcp/{path.relative_to(folder).as_posix()}`"


def section(name: str, rendered: Rendered) -> str:
    """A rehearsal in Markdown."""
    lines = [f"## {TITLES[name]}", ""]
    carried = sum(not review["reason"] for review in rendered.added["review"])
    lines.append(f"- lines of settings: {rendered.settings}")
    lines.append(f"- facts that carry over from {NEWEST}, to check: {carried}")
    for heading, items in work(rendered):
        lines.append(f"- {heading}: {', '.join(items) or 'none'}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the page: its text as it stands, and the lists as they are now."""
    texts = [PAGE.read_text("utf-8").partition("\n## ")[0]]
    for name, write in rehearsals().items():
        with tempfile.TemporaryDirectory() as folder:
            texts.append(section(name, render(write(Path(folder)), Path(folder))))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text("\n".join(texts), "utf-8")
    else:
        print("\n".join(texts), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
