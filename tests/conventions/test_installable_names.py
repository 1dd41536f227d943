"""Names that texts tell users to install: each is a distribution of a known owner."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from conventions.sources import PACKAGE, ROOT, python_files, relative_name, text_of, toml_table
from mcpgen.project import skeleton
from mcpgen.render import closure

pytestmark = pytest.mark.lengthy

OWNERS: dict[str, str] = {**toml_table("owners")["pypi"], **toml_table("owners")["npm"]}
"""The names, each with the repository of its owner."""

COMMAND = re.compile(
    r"\b(?:(?P<runs>uvx|uv tool run|pipx run|npx)"
    r"|pip install|uv add|uv tool install|pipx install|npm install|npm i)"
    r"(?=[ \"'])(?P<words>[^`\n;&|#\\()]*)"
)
SEPARATORS = re.compile(r"[\s\"',\[]+")
SOURCE = re.compile(r"\s+--(?:from|spec)[ =](\S+)")
NAME = re.compile(r"@?[A-Za-z][\w./-]*")
TEXTS = (
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(path for path in (ROOT / "generator").rglob("*") if path.suffix in {".py", ".toml"}),
    *(path for path in (ROOT / "templates").rglob("*") if path.is_file()),
    ROOT / "generated" / "pyproject.toml",
    ROOT / "noxfile.py",
    *(ROOT / "tests" / "sessions").glob("*.py"),
    ROOT / ".ci" / "run",
)


def installed_names(text: str) -> Iterator[str]:
    """The names in the install commands of a text; no options, paths, variables or URLs."""
    for match in COMMAND.finditer(text):
        source = SOURCE.match(match["words"])
        if source:
            yield from filter(None, [name_of(source[1])])
            continue
        names = [name for word in SEPARATORS.split(match["words"]) if (name := name_of(word))]
        yield from names[:1] if match["runs"] else names


def name_of(word: str) -> str:
    """The name of a distribution in a word; empty if the word is something else."""
    name = re.split(r"[\[<>=!~]", word)[0].rstrip(".:")
    is_name = NAME.fullmatch(name) and ":" not in word and name not in {"args", "and", "or"}
    return name if is_name and (name[0] == "@" or "/" not in name) else ""


def test_commands_in_texts_install_names_of_listed_owners() -> None:
    unlisted = [
        f"{relative_name(path)}: {name}"
        for path in TEXTS
        if path.suffix != ".pyc"
        for name in installed_names(text_of(path))
        if name.lower() not in OWNERS
    ]
    assert unlisted == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pip install -U 'mcpgen[http]>=1' ./generated", ["mcpgen"]),
        ("pip install '{needed}' $MCPGEN git+https://a/b", []),
        ("uvx --from . mcpgen; pipx run --spec other mcpgen", ["other"]),
        ("uvx mcpgen new; npx -y @a/b", ["mcpgen", "@a/b"]),
        ('"command": "uvx", "args": ["mcp-server-git", "."]', ["mcp-server-git"]),
    ],
)
def test_names_are_read_from_commands(text: str, names: list[str]) -> None:
    assert [*installed_names(text)] == names


MISSING = re.compile(r"MissingExtraError\([^()]*\"([\w -]+)\"\)")


def test_errors_about_missing_libraries_name_listed_owners() -> None:
    texts = [text_of(path) for path in TEXTS if path.is_relative_to(ROOT / "templates" / "package")]
    names = {name for text in texts for match in MISSING.findall(text) for name in match.split()}
    assert "joserfc" in names
    assert names - OWNERS.keys() == set()


def requirements_of(path: Path) -> set[str]:
    """The names of the distributions that a project requires."""
    project = tomllib.loads(text_of(path))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return names_of(each for lines in lists for each in lines)


def names_of(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", each)[0] for each in requirements}


def test_requirements_are_of_listed_owners_or_our_own() -> None:
    ours = {"mcpgen-runtime"}  # an extra of it names the others
    assert requirements_of(ROOT / "pyproject.toml") - OWNERS.keys() == set()
    assert requirements_of(ROOT / "generated" / "pyproject.toml") - OWNERS.keys() == ours
    assert names_of((*skeleton.REQUIREMENTS.values(), *skeleton.TOOLS)) - OWNERS.keys() == set()


def test_printed_install_commands_are_of_listed_owners() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): text_of(path) for path in python_files(PACKAGE)}
    needs = closure.dependencies(files, PACKAGE.name)
    names = {*needs.needed, *needs.over_http, *needs.optional}
    assert {"valkey", "uritemplate", "uvicorn", "rich"} < names
    assert names - OWNERS.keys() == set()
