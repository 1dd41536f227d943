"""What a peer may say wrong without harm: it counts as not said.

Source: server/utilities/pagination, server/utilities/caching, basic/versioning (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._wire import is_object

TTL = "ttlMs"
"""Wire name of the milliseconds for which a result may be used again."""

_SCOPE = "cacheScope"
_SCOPES = ("public", "private")


def mend_result(members: dict[str, Any]) -> bool:
    """Put right what a server may say wrong in a result without harm; whether anything was."""
    capabilities = members.get("capabilities")
    if is_object(capabilities):
        members["capabilities"] = readable(capabilities)
    before = len(members)
    if members.get("nextCursor", "") is None:
        del members["nextCursor"]
    ttl = members.get(TTL, 0)
    if isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0:
        del members[TTL]
    if members.get(_SCOPE, _SCOPES[0]) not in _SCOPES:
        del members[_SCOPE]
    return len(members) < before or members.get("capabilities") is not capabilities


def readable(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """A peer's capabilities without extensions that have no object of settings.

    An extension that is declared like that counts as not declared.

    Source: basic/versioning#extension-negotiation (2026-07-28).
    """
    extensions = capabilities.get("extensions")
    if not is_object(extensions) or all(map(is_object, extensions.values())):
        return capabilities
    usable = {name: value for name, value in extensions.items() if is_object(value)}
    return {**capabilities, "extensions": usable}
