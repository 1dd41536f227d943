"""Version negotiation by `initialize`, the only step of a client whose revisions have a handshake.

Source: basic/lifecycle (to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw

from .._wire import to_builtins
from ..errors import McpError, RemoteProtocolError, RevisionError
from ..facts import Revision, Revisions
from .client_connection import named_revisions, newest_common, optional_member
from .lifecycle import Description, Session, sent_capabilities
from .states import INITIALIZE


class Initialization:
    """Offers the newest revision, or after a refusal the newest of those that the server names.

    Args:
        revisions: The revisions that the client offers, which have a handshake.
        describe: Describes the client.
        revision: The revision to offer first; by default the newest one.
    """

    method = INITIALIZE

    def __init__(
        self,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        revision: Revision | None = None,
    ) -> None:
        self.revision = revision or revisions.newest()
        self._revisions = revisions
        self._describe = describe
        self._tried: set[str] = set()

    def params(self) -> Mapping[str, Any]:
        """The params of `initialize`."""
        own = self._describe(self.revision)
        return {
            "protocolVersion": self.revision.name,
            "capabilities": own.capabilities,
            "clientInfo": own.info,
        }

    def receive_result(self, result: Any, raw: Raw) -> Session:
        """The session in the revision that the server chose.

        Raises:
            RevisionError: The revision was not offered.
        """
        chosen: str = result.protocol_version
        revision = self._revisions.get(chosen)
        if revision is None:
            text = "the server chose a revision that was not offered"
            raise RevisionError(text, tuple(self._revisions), (chosen,))
        return Session(
            revision=revision,
            own_capabilities=self._describe(revision).capabilities,
            peer_capabilities=sent_capabilities(raw),
            peer_info=to_builtins(result.server_info),
            instructions=optional_member(result, "instructions"),
        )

    def receive_error(self, error: McpError | None) -> Initialization:
        """This step once more, with the newest untried revision that the error lists.

        Raises:
            McpError: The error lists none.
            RevisionError: None of them can be offered.
        """
        offered = named_revisions(error)
        if not offered:
            raise error or RemoteProtocolError("initialize: no answer")
        self._tried.add(self.revision.name)
        revision = newest_common(self._revisions, offered, self._tried)
        if revision is None:
            text = "no revision in common"
            raise RevisionError(text, tuple(self._revisions), offered) from error
        self.revision = revision
        return self
