"""The steps of version negotiation, and `initialize`, the only one of clients with a handshake.

Source: basic/lifecycle (to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from msgspec import Raw

from .._wire import UNSET, ValidationError, convert, is_object, to_builtins
from ..errors import McpError, RemoteError, RemoteProtocolError, RevisionError
from ..facts import Revision, Revisions
from .lifecycle import INITIALIZE, Description, Session, sent_capabilities


class Step(Protocol):
    """One request of version negotiation, and the steps that may follow.

    Attributes:
        method: The wire name of the request.
        revision: The revision that the request is written in.
    """

    method: str
    revision: Revision

    def params(self) -> Mapping[str, Any]:
        """The params of the request."""
        ...

    def receive_result(self, result: Any, raw: Raw) -> Session | Step:
        """The session that a result opens, or the next step.

        Raises:
            RevisionError: No revision in common.
        """
        ...

    def receive_error(self, error: McpError | None) -> Step:
        """The next step after an error, or after no response (`None`).

        Raises:
            McpError: There is none: the error itself, or a `RevisionError`.
        """
        ...


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


def newest_common(
    own: Revisions, offered: tuple[str, ...], tried: Collection[str] = ()
) -> Revision | None:
    """The newest revision that both sides support, and that was not tried yet."""
    common = [name for name in own if name in offered and name not in tried]
    return own[max(common)] if common else None


def named_revisions(error: McpError | None) -> tuple[str, ...]:
    """The supported revisions that an error of the server lists; none if it has no such list."""
    data = error.data if isinstance(error, RemoteError) else None
    try:
        return tuple(convert(data.get("supported") if is_object(data) else None, list[str]))
    except ValidationError:
        return ()


def optional_member(value: Any, name: str) -> Any:
    """A member by its Python name; `None` if it is absent or the type does not have it."""
    member = getattr(value, name, None)
    return None if member is UNSET else member
