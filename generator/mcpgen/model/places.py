"""Places in a schema: what they are named after, and where messages say that they are."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgen import names
from mcpgen.schema.structure import escape


@dataclass(frozen=True)
class Place:
    """The place of a schema.

    Attributes:
        owner: The definition that it is in.
        path: The properties that lead to it from there.
        pointer: The JSON pointer, for messages.
    """

    owner: str
    path: tuple[str, ...]
    pointer: str

    def member(self, wire: str) -> Place:
        """The place of a property."""
        pointer = f"{self.pointer}/properties/{escape(wire)}"
        return Place(self.owner, (*self.path, wire), pointer)

    def below(self, part: str) -> Place:
        """The place of a part that adds nothing to a name, such as the items of an array."""
        return Place(self.owner, self.path, f"{self.pointer}/{part}")

    @property
    def name(self) -> str:
        """The name for an inline type: that of its owner plus the properties."""
        return self.owner + "".join(names.pascal(wire) for wire in self.path)

    @property
    def is_published(self) -> bool:
        """Whether the place is a published definition, not a schema within one."""
        return self.pointer.count("/") == len(("", "$defs"))

    @property
    def has_bounds(self) -> bool:
        """Whether a map at this place is written with bounds: as a definition or a member."""
        return self.is_published or self.pointer.rpartition("/")[0].endswith("/properties")


def of_definition(name: str) -> Place:
    """The place of a definition."""
    return Place(name, (), f"/$defs/{escape(name)}")
