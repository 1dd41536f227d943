"""The page on the official list of features: each row leads to prose and to a block of code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents import LINK, ROOT, SPAN, sections_of, tables_of

pytestmark = pytest.mark.lengthy

PAGE = ROOT / "docs" / "tier-audit.md"
FEATURES = 48
ONE_SIDE = range(37, 43)
"""Numbers of the features of one side: a transport of the client, or of the server."""
WORDS = 20
"""Words of prose that a section has at least."""


def rows() -> list[list[str]]:
    """Number, name, server and client of each feature."""
    return [row for row in tables_of(PAGE) if row[0].isdigit()]


def places() -> list[tuple[str, Path, str, str]]:
    """Feature, document, anchor and code of each cell that leads to a section."""
    listed = []
    for number, name, *cells in rows():
        for side, cell in zip(("server", "client"), cells, strict=True):
            if cell != "none":
                (target,), (code,) = LINK.findall(cell), SPAN.findall(cell)
                path, _, anchor = target.partition("#")
                document = (PAGE.parent / path).resolve()
                listed.append((f"{number} {name}, {side}", document, anchor, code))
    return listed


def test_every_feature_of_the_official_list_has_a_row() -> None:
    assert [int(row[0]) for row in rows()] == list(range(1, FEATURES + 1))
    assert len({row[1] for row in rows()}) == FEATURES


def test_features_of_both_sides_have_both() -> None:
    one_side = [int(number) for number, _, *cells in rows() if "none" in cells]
    assert one_side == list(ONE_SIDE)


@pytest.mark.parametrize(
    ("document", "anchor", "code"),
    [pytest.param(*place, id=feature) for feature, *place in places()],
)
def test_a_feature_has_prose_and_a_block_with_its_name(
    document: Path, anchor: str, code: str
) -> None:
    section = sections_of(document)[anchor]
    assert any(code in block for block in section.python)
    assert len(re.findall(r"\w+", section.prose)) >= WORDS


def test_a_section_ends_at_the_next_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\none\n\n```python\n# no heading\n```\n\n## B b\n\ntwo\n", "utf-8")
    sections = sections_of(page)
    assert sections.keys() == {"", "b-b"}
    assert (sections[""].prose.split(), sections[""].python) == (["one"], ["# no heading\n"])
    assert (sections["b-b"].prose.split(), sections["b-b"].python) == (["two"], [])
