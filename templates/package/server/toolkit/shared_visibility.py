"""Rules of visibility in the sessions of a server whose processes share their state."""

from __future__ import annotations

import msgspec

from ..serving import Service
from .hosting import Hosting
from .visibility import VisibilityRules


class SharedVisibility(Hosting):
    """Has processes share the rules of sessions; a base of `Server`."""

    def _service(self) -> Service:
        service, servers = super()._service(), self._dispatcher.all_servers()
        rules = [VisibilityRules(each.registries).share for each in servers]
        return msgspec.structs.replace(service, share=[*service.share, *rules])
