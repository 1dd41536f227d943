"""Version negotiation of a client that speaks revisions of both lifecycles.

`server/discover` is a probe: a server that does not know the method, or does not respond, is taken
for one with a handshake.

Source: basic/versioning, basic/transports/stdio and basic/transports/streamable-http (2026-07-28:
backward compatibility).
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import McpError
from ..facts import Lifecycle, Revision, Revisions
from .initialization import Initialization, Step, newest_common
from .lifecycle import Description
from .server_discovery import ServerDiscovery


class Probe(ServerDiscovery):
    """Asks the server for its revisions; `initialize` follows if that fails.

    Args:
        revisions: The revisions that the client offers, of both lifecycles.
        describe: Describes the client.

    Attributes:
        handshakes: The revisions with a handshake.
    """

    def __init__(self, revisions: Revisions, describe: Callable[[Revision], Description]) -> None:
        super().__init__(revisions.of(Lifecycle.PER_REQUEST), describe)
        self.handshakes = revisions.of(Lifecycle.HANDSHAKE)
        self._all = revisions

    def _undiscovered(self, error: McpError | None) -> Step:
        return Initialization(self.handshakes, self._describe)

    def _newest_untried(self, offered: tuple[str, ...]) -> Revision | None:
        return newest_common(self._all, offered, self._tried)

    def _in_revision(self, revision: Revision) -> Step:
        if revision.lifecycle is Lifecycle.HANDSHAKE:
            return Initialization(self.handshakes, self._describe, revision)
        return super()._in_revision(revision)

    def _offers(self) -> tuple[str, ...]:
        return tuple(self._all)


def first_step(revisions: Revisions, describe: Callable[[Revision], Description]) -> Step:
    """The first step of version negotiation, for the lifecycles of a client's revisions."""
    modern, handshakes = (
        revisions.of(each) for each in (Lifecycle.PER_REQUEST, Lifecycle.HANDSHAKE)
    )
    if modern and handshakes:
        return Probe(revisions, describe)
    return ServerDiscovery(modern, describe) if modern else Initialization(handshakes, describe)
