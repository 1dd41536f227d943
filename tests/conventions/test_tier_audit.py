"""The page on the official list of features: each row leads to prose and to a block of code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents import LINK, ROOT, SPAN, sections_of, tables_of

pytestmark = pytest.mark.lengthy

PAGE = ROOT / "docs" / "tier-audit.md"


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


def test_every_feature_of_the_official_list_has_a_row_with_both_sides() -> None:
    assert [int(row[0]) for row in rows()] == list(range(1, 49))
    one_side = [int(number) for number, _, *cells in rows() if "none" in cells]
    assert one_side == list(range(37, 43))  # transports of the client, or of the server


@pytest.mark.parametrize(
    ("document", "anchor", "code"),
    [pytest.param(*place, id=feature) for feature, *place in places()],
)
def test_a_feature_has_prose_and_a_block_with_its_name(
    document: Path, anchor: str, code: str
) -> None:
    section = sections_of(document)[anchor]
    assert any(code in block for block in section.python)
    assert len(re.findall(r"\w+", section.prose)) >= 20
