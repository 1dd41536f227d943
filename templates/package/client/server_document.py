"""A document about one server, and a value that a configuration of servers asks the user for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._wire import is_object
from ..foreign_text import safe_repr


@dataclass(frozen=True)
class ConfigInput:
    """A value that a configuration asks the user for, by `${input:id}`.

    Attributes:
        id: The id.
        type: `promptString`, `pickString` or `command`.
        description: The question; empty if the configuration has none.
        default: The value to suggest; `None` for no suggestion.
        options: The values to choose from; empty for free text.
        password: Whether the value must not be shown.
    """

    id: str
    type: str = "promptString"
    description: str = ""
    default: str | None = None
    options: tuple[str, ...] = ()
    password: bool = False


class ServerDocument(Mapping[str, Any]):
    """A fetched document about one server: a `server.json` of the registry, or a Server Card.

        document = ServerDocument(response.json()["server"])
        async with connect(document, inputs=ask) as client: ...

    `connect` uses the remotes of the document and nothing else: it starts no process, and reads
    neither files nor environment variables. A `dict` is a configuration of the program's own, which
    may do all of that, so a document that was fetched is passed in this class.

    Args:
        members: The decoded document.
        packages: Whether `connect` may start a package of a document without remotes: a command
            whose words the author of the document chose, with the rights of the user.

    Raises:
        TypeError: The document is not an object.
    """

    def __init__(self, members: Mapping[str, Any], *, packages: bool = False) -> None:
        if not is_object(members):
            raise TypeError(f"expected an object, got {safe_repr(members)}")
        self._members = dict(members)
        self.packages = packages

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"ServerDocument({self._members!r})"
