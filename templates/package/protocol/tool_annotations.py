"""The annotations of a tool that describe its behaviour, with the defaults of the specification.

The annotations are as trustworthy as the server.

Source: server/tools (annotations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hints:
    """A tool's behaviour; the defaults hold for a tool without annotations.

    Attributes:
        read_only: The tool changes nothing.
        destructive: The tool may delete or overwrite. Ignored for a read-only tool.
        idempotent: A repeated call with the same arguments changes nothing more. Ignored for a
            read-only tool.
        open_world: The tool interacts with external entities, as a web search does.
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
