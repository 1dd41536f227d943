"""What a tool says of its own behaviour, with what holds for all it leaves unsaid.

Nothing vouches for it: whoever does not trust the server can't trust these either.

Source: server/tools (annotations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hints:
    """A tool's behaviour; the defaults are those of a tool that says nothing.

    Attributes:
        read_only: It changes nothing.
        destructive: It may delete or overwrite. Means nothing if it is read-only.
        idempotent: Again with the same arguments, it changes nothing more. Means nothing if it is
            read-only.
        open_world: It reaches beyond a closed set of things, as a web search does.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


def hints_of(tool: Any) -> Hints:
    """The hints of a listed tool, of any revision."""
    said = getattr(tool, "annotations", None)
    given = {name: getattr(said, f"{name}_hint", None) for name in Hints.__dataclass_fields__}
    return Hints(**{name: value for name, value in given.items() if isinstance(value, bool)})
