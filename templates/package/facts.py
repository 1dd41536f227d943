"""What a revision is, as data: its methods, and the facts that `revision_facts` defines.

Rendered modules fill these classes in; the rest of the package asks them and never asks which
revision it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._wire import Method as Method
from ._wire import Role as Role
from .errors import RevisionError

if TYPE_CHECKING:  # loaded with the first revision
    from .revision_facts import Facts


def other(role: Role) -> Role:
    """The role of the peer."""
    return "server" if role == "client" else "client"


class Lifecycle(enum.Enum):
    """How two peers come to an agreement on revision and capabilities."""

    HANDSHAKE = "handshake"
    """`initialize` opens a session; what was agreed holds until it ends."""
    PER_REQUEST = "per-request"
    """Every request carries revision and capabilities in its `_meta`; there is no session."""


HANDSHAKE = Lifecycle.HANDSHAKE.value
"""Stands for any revision with a session, where one may be chosen by its name."""


@dataclass(frozen=True)
class Revision:
    """One revision of the protocol, whole.

    Attributes:
        name: Its date, such as `2025-06-18`; compared as a string.
        lifecycle: Handshake or per request.
        batching: Whether a message may be a JSON array of messages.
        client_requests: What a client may ask, by wire name.
        server_requests: What a server may ask.
        client_notifications: What a client may notify.
        server_notifications: What a server may notify.
        input_requests: What a server may ask inside a result that wants input, by wire name.
        implementation: Struct by which either side introduces itself.
        client_capabilities: Struct for what a client declares.
        server_capabilities: Struct for what a server declares.
        meta_type: Struct for the `_meta` of requests, to check and read it.
        result_types: Values of `resultType` that this side understands; empty where results have
            no such member.
        facts: What only the prose states.
    """

    name: str
    lifecycle: Lifecycle
    batching: bool
    client_requests: Mapping[str, Method]
    server_requests: Mapping[str, Method]
    client_notifications: Mapping[str, Method]
    server_notifications: Mapping[str, Method]
    input_requests: Mapping[str, Method]
    implementation: Any
    client_capabilities: Any
    server_capabilities: Any
    meta_type: Any
    result_types: tuple[str, ...]
    facts: Facts

    def requests_from(self, sender: Role) -> Mapping[str, Method]:
        """Requests that `sender` may send, by wire name."""
        return self.client_requests if sender == "client" else self.server_requests

    def notifications_from(self, sender: Role) -> Mapping[str, Method]:
        """Notifications that `sender` may send, by wire name."""
        return self.client_notifications if sender == "client" else self.server_notifications


class Revisions(Mapping[str, Revision]):
    """Revisions by name, oldest first; each is loaded when it is first asked for.

    Args:
        rows: Name to lifecycle and loader, oldest first.
    """

    def __init__(self, rows: Mapping[str, tuple[Lifecycle, Callable[[], Revision]]]) -> None:
        self._rows = rows
        self._loaded: dict[str, Revision] = {}
        self._of: dict[Lifecycle, Revisions] = {}
        self._newest: Revision | None = None

    def __getitem__(self, name: str) -> Revision:
        loaded = self._loaded.get(name)
        if loaded is None:
            loaded = self._loaded[name] = self._rows[name][1]()
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def of(self, lifecycle: Lifecycle) -> Revisions:
        """Those with a lifecycle; loads none."""
        found = self._of.get(lifecycle)
        if found is None:
            rows = {name: row for name, row in self._rows.items() if row[0] is lifecycle}
            found = self._of[lifecycle] = Revisions(rows)
        return found

    def only(self, name: str) -> Revisions:
        """One of them alone.

        Raises:
            RevisionError: It is not one of these.
        """
        if name not in self._rows:
            raise RevisionError("unknown revision", tuple(self._rows), (name,))
        return Revisions({name: self._rows[name]})

    def pinned(self, pin: str | None) -> Revisions:
        """Those that a user chose: one by its name, or all with a handshake by `HANDSHAKE`.

        Raises:
            RevisionError: None of these is so.
        """
        if pin is None:
            return self
        if pin != HANDSHAKE:
            return self.only(pin)
        if not (handshakes := self.of(Lifecycle.HANDSHAKE)):
            raise RevisionError("none of the revisions has a handshake", tuple(self._rows))
        return handshakes

    def among(self, names: Collection[str]) -> Revisions:
        """Those whose name is one of `names`; loads none."""
        return Revisions({name: row for name, row in self._rows.items() if name in names})

    def newest(self) -> Revision:
        """The last of them."""
        if self._newest is None:
            self._newest = self[max(self._rows)]
        return self._newest


def has_streamable_http(revisions: Revisions) -> bool:
    """Whether one of them has Streamable HTTP; loads no more of them than it takes to know."""
    newest_first = sorted(revisions, reverse=True)
    return any(revisions[name].facts.transports.streamable_http for name in newest_first)
