"""The documents: blocks of code, named by a comment `<!-- example: FILE -->`, and links."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
SITE: str = SETTINGS["site_url"]
"""The address of the site of documents."""
REPOSITORY: str = SETTINGS["repo_url"]
"""The address of the repository."""
FILES = f"{REPOSITORY}/blob/main/"
"""Begins the address of each file of the repository."""
NO_DOCUMENTS = {"README.md", "CHANGELOG.md"}
"""Files at the top that are not among the policies."""
CHANGES = ROOT / "docs" / "changes"
STEPS = frozenset({"file", "top", "add", "line"})
"""Ways in which a block of the tutorial changes the file that it names: it is the whole file,
replaces the lines above the first tool, is appended, or replaces the line that begins with the same
word.
"""
COMMENT = re.compile(rf"<!-- (example|output|sample|{'|'.join(sorted(STEPS))}): (\S+) -->")
FENCE = "```"
HEADING = re.compile(r"#{1,6} (.+)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")


class Block(NamedTuple):
    """A fenced block."""

    document: str
    line: int
    language: str
    role: str
    name: str
    text: str

    @property
    def place(self) -> str:
        """Where the block stands, such as `docs/types.md:12`."""
        return f"{self.document}:{self.line}"


class Link(NamedTuple):
    """A link of one document."""

    document: Path
    target: str


def changes() -> list[Path]:
    """The files of changes that are not in the changelog yet."""
    return sorted(path for path in CHANGES.iterdir() if path.name != ".gitignore")


def documents() -> list[Path]:
    """The README, the policies beside it and every page of docs/."""
    policies = [path for path in sorted(ROOT.glob("*.md")) if path.name not in NO_DOCUMENTS]
    return [README, *policies, *sorted((ROOT / "docs").glob("*.md")), *tutorial()]


def tutorial() -> list[Path]:
    """The pages of the tutorial, in the order in which the first one lists them."""
    first = ROOT / "docs" / "tutorial" / "tools.md"
    rows = re.findall(r"^\| \[.*?\]\((\w+\.md)\)", first.read_text("utf-8"), re.MULTILINE)
    return [first, *(first.parent / name for name in rows)]


def relative_name(document: Path) -> str:
    """Path of a document from the top of the repository."""
    return document.relative_to(ROOT).as_posix()


@cache
def blocks() -> tuple[Block, ...]:
    """Every fenced block of all documents, in order."""
    return tuple(block for document in documents() for block in blocks_of(document))


def blocks_of(document: Path) -> Iterator[Block]:
    """The fenced blocks of one document."""
    lines = document.read_text("utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        if not line.startswith(FENCE):
            continue
        if start is None:
            start = number
            continue
        comment = COMMENT.fullmatch(lines[start - 1])
        role, name = comment.groups() if comment else ("", "")
        text = "".join(f"{each}\n" for each in lines[start + 1 : number])
        yield Block(
            relative_name(document), start + 2, lines[start][len(FENCE) :], role, name, text
        )
        start = None
    assert start is None, f"{document}: a block that is not closed"


def examples() -> dict[str, str]:
    """The files of all documents by name."""
    return {block.name: block.text for block in blocks() if block.role == "example"}


def outputs() -> dict[str, str]:
    """The output of files of the documents, by the file's name."""
    return {block.name: block.text for block in blocks() if block.role == "output"}


def samples() -> list[Block]:
    """The lines of files of the package."""
    return [block for block in blocks() if block.role == "sample"]


def snippets() -> list[Block]:
    """The blocks of Python that are no files."""
    return [block for block in blocks() if block.language == "python" and not block.name]


def tables_of(document: Path) -> list[list[str]]:
    """The rows of all tables of a document, as cells."""
    lines = prose_of(document).splitlines()
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in lines
        if line.startswith("| ") and not line.startswith("| ---")
    ]


def prose_of(document: Path) -> str:
    """The text of a document without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors_of(document: Path) -> set[str]:
    """The anchors of a document's headings, by GitHub's rule."""
    headings = filter(None, map(HEADING.fullmatch, prose_of(document).splitlines()))
    return {re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-") for heading in headings}


def page_at(address: str) -> str:
    """The file of a page of the site, from the top of the repository; pages end with a slash."""
    path = address.removeprefix(SITE).removesuffix("/")
    pages = pages_in(SETTINGS["nav"])
    for page in (f"{path}.md", f"{path}/index.md".lstrip("/"), f"{path}/README.md".lstrip("/")):
        if page in pages and address.endswith("/"):
            return page
    raise LookupError(f"expected the address of a page of the site, got {address}")


def pages_in(navigation: object) -> list[str]:
    """The pages in a part of the navigation of the site, in order."""
    match navigation:
        case str():
            return [navigation]
        case dict():
            return [page for part in navigation.values() for page in pages_in(part)]
        case list():
            return [page for part in navigation for page in pages_in(part)]
        case _:
            raise TypeError(f"expected a page, a title or a list, got {navigation!r}")


def target_of(link: Link) -> tuple[Path, str]:
    """The file that a link leads to, and the anchor in it, which is empty for the whole file."""
    path, _, anchor = link.target.partition("#")
    if path.startswith(FILES):
        return ROOT / path.removeprefix(FILES), anchor
    if "://" in path:
        return ROOT / page_at(path), anchor
    return (link.document.parent / path).resolve() if path else link.document, anchor


def links() -> list[Link]:
    """Every link of all documents and of the changelog."""
    return [
        Link(document, target)
        for document in (*documents(), ROOT / "CHANGELOG.md")
        for target in LINK.findall(SPAN.sub("", prose_of(document)))
    ]
