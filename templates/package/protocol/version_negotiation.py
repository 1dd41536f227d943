"""Version negotiation of a client: probe, handshake, or a probe followed by a handshake.

The steps form a table. A client of both lifecycles sends `server/discover` first. It stays with the
per-request lifecycle after a result, or an error that only per-request servers send; after anything
else, a timeout included, it sends `initialize`. A client of one lifecycle has one step. If the
server cannot be reached, or requires credentials, negotiation fails.

Source: basic/lifecycle (to 2025-11-25); 2026-07-28: basic/transports/stdio and
basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from .._wire import UNSET, ValidationError, convert, is_object, to_builtins
from ..errors import (
    AuthorizationError,
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RevisionError,
    TransportError,
)
from ..facts import Lifecycle, Revision, Revisions
from .lifecycle import DISCOVER, INITIALIZE, Description, Session, State, newest_common


class Step(enum.Enum):
    """The step of the negotiation."""

    PROBING = "probing"
    INITIALIZING = "initializing"
    DONE = "done"


class VersionNegotiation:
    """The decisions of the negotiation; `Connection` sends and receives.

    Args:
        revisions: The revisions this client offers.
        describe: The client's implementation info and capabilities, by revision.
    """

    def __init__(self, revisions: Revisions, describe: Callable[[Revision], Description]) -> None:
        self._all = revisions
        self._describe = describe
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self._legacy = revisions.of(Lifecycle.HANDSHAKE)
        self._tried: set[str] = set()
        self._insisted = False
        self.step = Step.PROBING if self._modern else Step.INITIALIZING
        self.shook_hands = False
        """Whether the session was opened by a handshake, which the client has to confirm."""
        self.revision = (self._modern or self._legacy).newest()

    @property
    def may_fall_back(self) -> bool:
        """Whether there is a handshake to try when a probe fails."""
        return bool(self._legacy)

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer without a probe; `None` if there is no other way."""
        return self._legacy if self._modern and self._legacy else None

    def request(self) -> tuple[Revision, str, dict[str, Any]]:
        """The request of this step: revision, method, and params without `_meta`."""
        self._tried.add(self.revision.name)
        if self.step is Step.PROBING:
            return self.revision, DISCOVER, {}
        own = self._describe(self.revision)
        params = {
            "protocolVersion": self.revision.name,
            "capabilities": own.capabilities,
            "clientInfo": own.info,
        }
        return self.revision, INITIALIZE, params

    def answered(self, result: Any) -> Session | None:
        """Receive the typed result of this step's request.

        Returns:
            The session, or `None` if another `request` has to be made.

        Raises:
            RevisionError: No revision in common.
        """
        if self.step is Step.INITIALIZING:
            return self._initialized(result)
        offered = tuple(result.supported_versions)
        common = newest_common(self._modern, offered)
        if common is None:
            self._negotiate(offered)
            return None
        self.step = Step.DONE
        meta: Mapping[str, Any] = optional_member(result, "meta") or {}
        info = meta.get(common.facts.meta.server_info or "")
        if info is None:  # some revisions have it as a member of the result
            info = to_builtins(optional_member(result, "server_info"))
        return Session(
            revision=common,
            own_capabilities=self._describe(common).capabilities,
            peer_capabilities=to_builtins(result.capabilities),
            peer_info=info if is_object(info) else None,
            instructions=optional_member(result, "instructions"),
            supported=offered,
        )

    def failed(self, error: McpError | None) -> None:
        """The step's request failed, or got no response (`None`).

        `request` is then the next request to send.

        Raises:
            RevisionError: No revision in common, or none of the server's lifecycle.
            McpError: `error`: a per-request server or the handshake refused, or the server cannot
                be reached.
        """
        if self.step is Step.INITIALIZING:
            self._refused(error)
        elif _is_final(error) or (isinstance(error, TransportError) and not self._legacy):
            raise error
        elif isinstance(error, RemoteError) and self._is_modern(error):
            offered = _named(error, "supported")
            if not offered:
                raise error
            unknown = error.code == self.revision.facts.errors.unsupported_revision
            if not (unknown and self._insist(offered)):
                self._negotiate(offered)
        elif not self._legacy:
            told = f": {error}" if error is not None else ""
            raise RevisionError(f"the server speaks no per-request revision{told}", self._names())
        else:
            self._handshake(self._legacy.newest())

    def _handshake(self, revision: Revision) -> None:
        self.step = Step.INITIALIZING
        self.revision = revision

    def _initialized(self, result: Any) -> Session:
        revision = self._legacy.get(result.protocol_version)
        if revision is None:
            raise RevisionError(
                "the server chose a revision that was not offered",
                self._names(),
                (result.protocol_version,),
            )
        self.step = Step.DONE
        self.shook_hands = True
        return Session(
            revision=revision,
            own_capabilities=self._describe(revision).capabilities,
            peer_capabilities=to_builtins(result.capabilities),
            peer_info=to_builtins(result.server_info),
            instructions=optional_member(result, "instructions"),
            state=State.READY,
        )

    def _negotiate(self, offered: tuple[str, ...]) -> None:
        """A per-request server listed its revisions: try the newest one that was not tried yet."""
        fresh = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._all, fresh)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered)
        if revision.lifecycle is Lifecycle.HANDSHAKE:
            self._handshake(revision)
        self.revision = revision

    def _insist(self, offered: tuple[str, ...]) -> bool:
        """Try a revision once more that the server refused and also listed as supported."""
        fresh = tuple(name for name in offered if name not in self._tried)
        if self._insisted or newest_common(self._all, fresh) is not None:
            return False
        self._insisted = True
        return newest_common(self._modern, offered) is self.revision

    def _refused(self, error: McpError | None) -> None:
        """`initialize` was refused. Some servers then list their revisions."""
        offered = _named(error, "supported") if isinstance(error, RemoteError) else ()
        if not offered:
            raise error or RemoteProtocolError("initialize: no answer")
        fresh = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._legacy, fresh)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered) from error
        self.revision = revision

    def _is_modern(self, error: RemoteError) -> bool:
        codes = self.revision.facts.errors.defined
        return codes is not None and error.code in codes

    def _names(self) -> tuple[str, ...]:
        return tuple(self._all)


def _is_final(error: McpError | None) -> TypeGuard[McpError]:
    """Whether another request would fail in the same way."""
    if isinstance(error, HttpStatusError):
        return error.wants_credentials
    return isinstance(error, AuthorizationError | ConnectFailedError | LocalProtocolError)


def _named(error: RemoteError, member: str) -> tuple[str, ...]:
    """The strings in a list member of `error.data`; none if there is no such list."""
    names = error.data.get(member) if is_object(error.data) else None
    try:
        return tuple(convert(names, list[str]))
    except ValidationError:
        return ()


def optional_member(value: Any, name: str) -> Any:
    """A member by its Python name; `None` if it is absent, or the type has none of that name."""
    member = getattr(value, name, None)
    return None if member is UNSET else member
