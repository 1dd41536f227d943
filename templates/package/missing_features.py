"""Features that a package was generated without: what using one says, and how to add it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn


class MissingFeature:
    """A method that comes with a feature. `mcpgen update DIR --features +NAME` adds it.

    Args:
        feature: Name of the feature.
        owner: Name of the class that users know; that of the class itself by default.
    """

    def __init__(self, feature: str, owner: str = "") -> None:
        self._feature = feature
        self._owner = owner
        self._member = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._member = f"{self._owner or owner.__name__}.{name}"

    if not TYPE_CHECKING:  # a type checker says that it can't be called

        def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
            raise AttributeError(missing_text(self._member, self._feature))


def missing_text(name: str, feature: str, package: Path | None = None) -> str:
    """The error text for a name that comes with a feature.

    Args:
        name: The name.
        feature: Name of the feature.
        package: The folder of the package, if it is not this one.
    """
    folder = Path(os.path.relpath(package or Path(__file__).parent)).as_posix()
    return (
        f"{name} comes with the feature {feature}, which this package was generated without:"
        f" mcpgen update {folder} --features +{feature}"
    )
