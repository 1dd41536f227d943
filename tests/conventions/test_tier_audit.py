"""The page on the official list of features: each row leads to a block of code with its name."""

from __future__ import annotations

import pytest

from documents import LINK, ROOT, SPAN, blocks_of, tables_of

pytestmark = pytest.mark.lengthy

PAGE = ROOT / "docs" / "tier-audit.md"
ROWS = [row for row in tables_of(PAGE) if row[0].isdigit()]
"""Number, name, server and client of each feature."""


def test_every_feature_of_the_official_list_has_a_row_with_both_sides() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 49))
    one_side = [int(number) for number, _, *cells in ROWS if "none" in cells]
    assert one_side == list(range(37, 43))  # transports of the client, or of the server


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_feature_has_a_block_with_its_name(row: list[str]) -> None:
    for cell in row[2:]:
        if cell != "none":
            (target,), (code,) = LINK.findall(cell), SPAN.findall(cell)
            document = (PAGE.parent / target.partition("#")[0]).resolve()
            python = [each.text for each in blocks_of(document) if each.language == "python"]
            assert [text for text in python if code in text], cell
