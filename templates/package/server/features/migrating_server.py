"""Class methods that other SDKs have, whose errors name what takes their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..toolkit.server import ServerKernel


class _AbsentAttribute:
    """A class attribute that another SDK has.

    Args:
        name: The attribute.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type) -> Any:
        from ...absence import attribute_error  # for the error only

        raise attribute_error(owner, self._name)


class MigratingServer(ServerKernel):
    """A server whose author comes from another SDK."""

    if not TYPE_CHECKING:
        as_proxy = _AbsentAttribute("as_proxy")
        from_client = _AbsentAttribute("from_client")
        from_fastapi = _AbsentAttribute("from_fastapi")
