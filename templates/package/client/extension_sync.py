"""The base of the rendered blocking client of an extension."""

from __future__ import annotations

from .sync_base import SyncClientBase


class ExtensionSyncClient(SyncClientBase):
    """An open session of a blocking client, as the calls of an extension.

    Args:
        client: The blocking client, which closes the session.

    Raises:
        MissingCapabilityError: One of the sides does not declare the extension.
    """

    def __init__(self, client: SyncClientBase) -> None:
        super().__init__(client._thread, client._base)
