"""The base of the rendered clients of extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import MissingCapabilityError
from ..protocol.lifecycle import CAPABILITY
from ..runtime.peer import Peer
from .application import ClientApplication
from .chosen import ClientFeatures


class ExtensionClient(ClientFeatures):
    """An open session with the methods of an extension: `client.seen_as(Client)`.

    Attributes:
        identifier: The identifier of the extension.
        settings: The settings in the server's declaration of the extension.

    Raises:
        MissingCapabilityError: One of the sides does not declare the extension.

    Source: basic/versioning#extension-negotiation (2026-07-28).
    """

    identifier: ClassVar[str]

    def __init__(self, peer: Peer, application: ClientApplication) -> None:
        super().__init__(peer, application)
        settings = self.extension(self.identifier)
        if settings is None:
            raise MissingCapabilityError((CAPABILITY, self.identifier), self.revision)
        self.settings: Mapping[str, Any] = settings
