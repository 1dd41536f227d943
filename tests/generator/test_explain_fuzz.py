"""`mcpgen explain` on whatever JSON comes: nothing breaks it, and what it proposes is accepted."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.test_explain import MESSAGES, REVISIONS
from mcpgen.explain import repair
from mcpgen.explain.revision import revision

pytestmark = pytest.mark.lengthy

SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "tools/call", "2.0", "text", [], {}]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "name", "content", "_meta", "id"]), inner)
    ),
    max_leaves=5,
)
MEMBERS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"])


@st.composite
def damaged_messages(draw: st.DrawFn) -> Any:
    """A message in which one value is another, missing, or new."""
    message = copy.deepcopy(MESSAGES[draw(st.sampled_from(sorted(MESSAGES)))])
    held = message
    while isinstance(held, dict | list) and held:
        keys = list(held) if isinstance(held, dict) else list(range(len(held)))
        key = draw(st.sampled_from(keys))
        if not isinstance(held[key], dict | list) or draw(st.booleans()):
            if draw(st.booleans()):
                held[key] = draw(VALUES)
            else:
                del held[key]
            break
        held = held[key]
    return message


@pytest.mark.parametrize("name", REVISIONS)
@given(st.dictionaries(MEMBERS, VALUES) | VALUES | damaged_messages())
@settings(max_examples=60)
def test_any_json_is_judged_and_what_is_proposed_is_accepted(name: str, message: Any) -> None:
    chosen = revision(name)
    before = json.dumps(message)
    verdict = chosen.judge(message)
    nearest = repair.nearest(chosen, message, None, None)
    assert json.dumps(message) == before
    if nearest is not None:
        assert not verdict.is_accepted
        assert chosen.judge(nearest.message).is_accepted
