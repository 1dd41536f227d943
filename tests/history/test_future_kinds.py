"""Revisions that do not exist yet: all kinds of changes and keywords, alone and in triples.

Three triples of each revision; twenty of each, and each kind of keyword alone, if MCP_HISTORY is
`all`.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from generator.awkward_names import NAMES as AWKWARD
from generator.test_accounting import KINDS, REFERRING, account, with_kinds
from generator.test_future_revisions import CHANGES, NAMES, Change, Draft, drafted, saved
from history.test_published_states import CALL, run
from mcpgen import build_request, output, pipeline

pytestmark = [pytest.mark.history, pytest.mark.timeout(600)]

WHOLE = os.environ.get("MCP_HISTORY") == "all"
TRIPLES = range(20 if WHOLE else 3)


REFUSED = """
import pytest
from pkg import Server

with pytest.raises(TypeError, match="version"):
    Server("sums", version="1.0")
"""
"""What happens in a draft whose servers have another kind of version, which a note says."""


def kind_added(name: str) -> Change:
    """A change that adds a member of one kind to tools."""

    def add_kind(draft: Draft, at: int, awkward: str) -> None:
        draft.definitions["Tool"]["properties"][f"kind{at}"] = KINDS[name]

    return add_kind


EVERY: tuple[Change, ...] = (*CHANGES, *map(kind_added, KINDS))


@pytest.mark.parametrize("at", TRIPLES)
@pytest.mark.parametrize("name", NAMES)
def test_a_package_of_three_changes_serves_a_tool_call(name: str, at: int, tmp_path: Path) -> None:
    chosen = random.Random(f"{name} {at}")
    triple = [(change, chosen.choice(AWKWARD)) for change in chosen.sample(EVERY, 3)]
    path = saved(drafted(name, triple), tmp_path)
    request = build_request.BuildRequest("pkg", (build_request.file_source(path),))
    reported: list[str] = []
    output.write(tmp_path / "pkg", pipeline.build(request, reported.append))
    unset = [text for text in reported if "/Implementation/required: version: has another" in text]
    run(tmp_path, "-c", REFUSED if unset else CALL)


@pytest.mark.skipif(not WHOLE, reason="takes minutes; all kinds at once are a test of each run")
@pytest.mark.parametrize("kind", range(len(KINDS) + len(REFERRING)))
@pytest.mark.parametrize("name", NAMES)
def test_one_kind_of_keyword_alone_is_carried_or_noted(
    name: str, kind: int, tmp_path: Path
) -> None:
    document: dict[str, Any] = json.loads(json.dumps(with_kinds(name)))
    container = "$defs" if "$defs" in document else "definitions"
    for other in range(len(KINDS) + len(REFERRING)):
        for start in ("Kind", "Plain", "List"):
            if other != kind:
                del document[container][f"{start}{other}"]
    walk = account(document, tmp_path)
    assert not walk.lost, walk.lost
