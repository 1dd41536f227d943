"""Builds the site of documents from README.md, the policies, docs/ and the reference."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from documents import FILES, ROOT, page_at
from documents import SITE as ADDRESS
from website import built, llms, reference, tables

SOURCE = ROOT / "build" / "website" / "source"
SITE = ROOT / "build" / "website" / "site"
TARGET = re.compile(r"(?<=\]\()[^)\s]+(?=[)\s])")
"""The target of a link."""
PAGES = ("*.md", "docs/*.md", "docs/tutorial/*.md", "examples/**/*.md")
"""The files that the site is made of."""
INDEX = """---
rendered: true
---

# Reference

Every public name, command, setting, feature, method and fact, rendered from the code. The pages
show a package of all revisions with all features, `mcpgen_runtime`; yours has the same names under
its own name, those of the parts and features that you chose. A parameter with the default `...` is
an option of a feature; its explanation says what holds without it.
"""


def write_sources() -> None:
    """Copy the pages and write those of the reference."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            target = SOURCE / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(with_addresses(path), "utf-8")
    folder = SOURCE / "docs" / "reference"
    folder.mkdir()
    rendered = {**reference.python_pages(), **tables.table_pages()}
    links = "".join(f"- [{title(text)}]({name})\n" for name, text in rendered.items())
    for name, text in {"index.md": f"{INDEX}\n{links}", **rendered}.items():
        (folder / name).write_text(text, "utf-8")


def with_addresses(path: Path) -> str:
    """The text of a page with its links as the site needs them."""

    def address(match: re.Match[str]) -> str:
        if match[0].startswith(ADDRESS):
            page, mark, anchor = match[0].partition("#")
            target = Path(os.path.relpath(ROOT / page_at(page), path.parent))
            return f"{target.as_posix()}{mark}{anchor}"
        file = (path.parent / match[0]).resolve()
        if not file.is_file() or file.suffix == ".md":
            return match[0]
        return f"{FILES}{file.relative_to(ROOT).as_posix()}"

    return TARGET.sub(address, path.read_text("utf-8"))


def title(text: str) -> str:
    """The heading of a page."""
    return text.partition("\n# ")[2].partition("\n")[0]


def main() -> int:
    """Build and check the site."""
    write_sources()
    shutil.rmtree(SITE, ignore_errors=True)
    command = (sys.executable, "-m", "zensical", "build", "--strict", "--clean")
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, check=False)
    if done.returncode:
        return done.returncode
    llms.write(SITE)
    defects = [*built.missing_names(SITE), *built.unexplained_parameters()]
    print("\n".join(defects) or f"{SITE.relative_to(ROOT)}: no missing name")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
