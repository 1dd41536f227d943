"""Methods that no revision of the package has, which a proxy passes on as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..facts import Method
from ..revisions import REVISIONS


class PassedMethods(Mapping[str, Method]):
    """The rows of all methods that no revision has, each made when it is asked for."""

    def __getitem__(self, name: str) -> Method:
        if not is_custom(name):
            raise KeyError(name)
        return Method(
            name=name,
            kind="request",
            sender="client",
            params=None,
            params_required=False,
            result=Any,
            python_name=name.replace("/", "_"),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(())  # they have no end

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


def is_custom(name: str) -> bool:
    """Whether no revision has a method, nor JSON-RPC reserves its name."""
    return not name.startswith("rpc.") and name not in _specified()


@cache
def _specified() -> frozenset[str]:
    """The names of all requests and notifications, of all revisions."""
    return frozenset(
        name
        for revision in REVISIONS.values()
        for table in (
            revision.client_requests,
            revision.server_requests,
            revision.client_notifications,
            revision.server_notifications,
            revision.input_requests,
        )
        for name in table
    )
