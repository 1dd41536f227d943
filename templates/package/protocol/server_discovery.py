"""Version negotiation by `server/discover`, in revisions where each request states its revision.

Source: basic/versioning (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from msgspec import Raw

from .._wire import encode, is_object, to_builtins
from ..errors import (
    AuthorizationError,
    ConnectFailedError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RevisionError,
    TransportError,
    refusal_of,
)
from ..facts import Revision, Revisions
from .initialization import Step, named_revisions, newest_common, optional_member
from .lifecycle import DISCOVER, Description, Session, sent_capabilities


class ServerDiscovery:
    """Asks the server for its revisions, in the newest revision of the client.

    Args:
        revisions: The revisions that the client offers, which have no handshake.
        describe: Describes the client.
    """

    method = DISCOVER

    def __init__(self, revisions: Revisions, describe: Callable[[Revision], Description]) -> None:
        self.revision = revisions.newest()
        self._revisions = revisions
        self._describe = describe
        self._tried: set[str] = set()
        self._insisted = False

    def params(self) -> Mapping[str, Any]:
        """The params of `server/discover`: `_meta` alone."""
        return {"_meta": self._own_meta(self.revision)}

    def _own_meta(self, revision: Revision) -> Mapping[str, Any]:
        """The `_meta` of every request."""
        own, keys = self._describe(revision), revision.facts.meta
        pairs = {
            keys.protocol_version: revision.name,
            keys.client_info: own.info,
            keys.client_capabilities: own.capabilities,
        }
        return {key: value for key, value in pairs.items() if key is not None}

    def receive_result(self, result: Any, raw: Raw) -> Session | Step:
        """The session in the newest common revision, or the step that an offered one needs.

        Raises:
            RevisionError: No revision in common.
        """
        offered = tuple(result.supported_versions)
        common = newest_common(self._revisions, offered)
        if common is None:
            return self._choose(offered)
        meta: Mapping[str, Any] = optional_member(result, "meta") or {}
        info = meta.get(common.facts.meta.server_info or "")
        if info is None:  # some revisions have it as a member of the result
            info = to_builtins(optional_member(result, "server_info"))
        own_meta = self._own_meta(common)
        return Session(
            revision=common,
            own_capabilities=self._describe(common).capabilities,
            peer_capabilities=sent_capabilities(raw),
            peer_info=info if is_object(info) else None,
            instructions=optional_member(result, "instructions"),
            supported=offered,
            own_meta=own_meta,
            encoded_meta=Raw(encode(own_meta)),
        )

    def receive_error(self, error: McpError | None) -> Step:
        """The next step after an error of a server that speaks one of these revisions.

        Raises:
            RevisionError: No revision in common, or the server has another lifecycle.
            McpError: `error`: the server refused, or cannot be reached.
        """
        if _is_final(error):
            raise error
        if not isinstance(error, RemoteError) or not self._is_defined(error):
            return self._undiscovered(error)
        offered = named_revisions(error)
        if not offered:
            raise error
        if error.code == self.revision.facts.errors.unsupported_revision and self._insists(offered):
            return self
        return self._choose(offered)

    def _undiscovered(self, error: McpError | None) -> Step:
        """The next step after a failure that says nothing about the server's revisions."""
        if isinstance(error, TransportError):
            raise error
        reason = "" if error is None else f": {error}"
        text = f"the server speaks no per-request revision{reason}"
        raise RevisionError(text, tuple(self._revisions))

    def _choose(self, offered: tuple[str, ...]) -> Step:
        """The step for the newest offered revision that was not tried yet."""
        self._tried.add(self.revision.name)
        revision = self._newest_untried(offered)
        if revision is None:
            raise RevisionError("no revision in common", self._offers(), offered)
        return self._in_revision(revision)

    def _newest_untried(self, offered: tuple[str, ...]) -> Revision | None:
        return newest_common(self._revisions, offered, self._tried)

    def _in_revision(self, revision: Revision) -> Step:
        self.revision = revision
        return self

    def _insists(self, offered: tuple[str, ...]) -> bool:
        """Whether to try a revision once more that the server refused, yet lists as supported."""
        self._tried.add(self.revision.name)
        if self._insisted or self._newest_untried(offered) is not None:
            return False
        self._insisted = True
        return newest_common(self._revisions, offered) is self.revision

    def _offers(self) -> tuple[str, ...]:
        """The names of all revisions of the client."""
        return tuple(self._revisions)

    def _is_defined(self, error: RemoteError) -> bool:
        """Whether only servers of these revisions send an error."""
        codes = self.revision.facts.errors.defined
        return codes is not None and error.code in codes


def _is_final(error: McpError | None) -> TypeGuard[McpError]:
    """Whether another request would fail in the same way."""
    refusal = None if error is None else refusal_of(error)
    if refusal is not None and (
        refusal.wants_credentials or (refusal.is_outage and refusal.retry_after is not None)
    ):
        return True
    return isinstance(error, AuthorizationError | ConnectFailedError | LocalProtocolError)
