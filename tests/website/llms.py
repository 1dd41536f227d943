"""`llms.txt` and `llms-full.txt` of a built site: its pages as text, for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from documents import ROOT, SETTINGS, SITE, pages_in

LISTED = ("Start", "Tutorial", "Guides", "Reference")
"""The parts of the navigation that a user reads; a part that is absent is skipped."""
LINKED = ("Protocol", "Tool")
"""Tables of the reference, which only `llms.txt` lists."""
LINE = re.compile(r"- \[.+?\]\((?P<page>[^)#]+)\): (?P<about>.+)")
ABOUT = f"""# {SETTINGS["site_name"]}

> {SETTINGS["site_description"]}

mcpgen writes a typed Python package that speaks the Model Context Protocol. The package runs
without mcpgen. Read Start first; then the guide for what you write; names are in the reference.
"""


def write(site: Path) -> None:
    """Write both files into a site that has each page as Markdown too."""
    explained = explanations()
    listed, full = [ABOUT], [ABOUT]
    for part in LISTED:
        entries = [entry for each in SETTINGS["nav"] for entry in each.get(part, ())]
        if entries:
            listed.append(f"\n## {part}\n\n")
            listed += (line_of(page, name, explained) for name, page in titled_pages(entries))
            read = [entry for entry in entries if not {*entry} & {*LINKED}]
            full += ((site / markdown_of(page)).read_text("utf-8") for page in pages_in(read))
    (site / "llms.txt").write_text("".join(listed), "utf-8")
    (site / "llms-full.txt").write_text("\n".join(full), "utf-8")


def titled_pages(entries: Any) -> Iterator[tuple[str, str]]:
    """The pages of a part of the navigation, each with its title there."""
    for entry in entries:
        for title, below in entry.items():
            if isinstance(below, str):
                yield title, below
            else:
                yield from titled_pages(below)


def line_of(page: str, title: str, explained: Mapping[str, str]) -> str:
    """The line of a page in `llms.txt`."""
    about = explained.get(page, "")
    return f"- [{title}]({SITE}{markdown_of(page)}){': ' if about else ''}{about}\n"


def markdown_of(page: str) -> str:
    """The place of a page as Markdown, from the top of the site."""
    path = Path(page)
    folder = path.parent if path.stem in ("README", "index") else path.with_suffix("")
    return (folder / "index.md").as_posix()


def explanations() -> dict[str, str]:
    """The explanations of pages in docs/README.md, by page; links in them keep their text alone."""
    text = (ROOT / "docs" / "README.md").read_text("utf-8")
    return {
        f"docs/{match['page']}": re.sub(r"\[(.+?)\]\(.+?\)", r"\1", match["about"])
        for match in LINE.finditer(text)
    }
