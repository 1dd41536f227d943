"""A client's choice of a model, by what a server's request prefers.

Source: client/sampling#model-preferences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._wire import to_builtins


def choose_model(preferences: Any, models: Sequence[str]) -> str | None:
    """The first model that a hint means; hints are tried in order, each as a part of a name.

    Args:
        preferences: `modelPreferences` of a request, typed or as wire object; `None` for none.
        models: Names of the models there are, best first.

    Returns:
        Its name, or `None` if no hint means one of them: then the numbers may decide.
    """
    wire: Any = to_builtins(preferences) if preferences else {}
    for hint in wire.get("hints", ()):
        name = hint.get("name")
        found = next((model for model in models if name and name in model), None)
        if found is not None:
            return found
    return None
