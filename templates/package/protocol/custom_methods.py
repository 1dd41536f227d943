"""Methods that no revision of the package has: requests by a name of the user's own."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..facts import Method
from ..revisions import REVISIONS

METHOD_CHARACTERS = 200
"""Characters of the name of a custom method."""


def custom_method(name: object) -> Method | None:
    """The row of a custom request, with any params and result; `None` if the name is not free."""
    if not (isinstance(name, str) and 0 < len(name) <= METHOD_CHARACTERS and is_custom(name)):
        return None
    return Method(
        name=name,
        kind="request",
        sender="client",
        params=None,
        params_required=False,
        result=Any,
        python_name=name.replace("/", "_"),
    )


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
