"""Methods that no revision of the package has, which a proxy passes on as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..facts import Method
from ..protocol.requests import custom_method, is_custom

__all__ = ["PassedMethods", "is_custom"]


class PassedMethods(Mapping[str, Method]):
    """The rows of all methods that no revision has, each made when it is asked for."""

    def __getitem__(self, name: str) -> Method:
        method = custom_method(name)
        if method is None:
            raise KeyError(name)
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(())  # they have no end

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True
