"""An update changes the files that the protocol changed, a release those that mcpgen changed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from generator.selections import NAMES, render_selection, spec_of
from generator.tiny_package import tiny_package
from mcpgen import __version__

MOST = 20
"""Files that an update to the next revision changes, the manifest among them."""


def by_place(revision: str) -> dict[str, str]:
    """A package of one revision, whose folder has the same name in each."""
    folder = f"{spec_of(revision).folder}/"
    files = render_selection("all", "all", (revision,))
    return {path.replace(folder, "revision/"): text for path, text in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), list(pairwise(NAMES[-3:])))
def test_an_update_changes_few_files(before: str, after: str) -> None:
    old, new = by_place(before), by_place(after)
    changed = {path for path in old.keys() & new.keys() if old[path] != new[path]}
    assert len(changed) + 1 <= MOST, sorted(changed)


def test_no_module_says_which_version_wrote_it() -> None:
    modules = {path: text for path, text in tiny_package().items() if path.endswith(".py")}
    heads = {path: text.splitlines()[:5] for path, text in modules.items()}
    assert [path for path, head in heads.items() if __version__ in "".join(head)] == []
