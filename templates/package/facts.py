"""A revision as data: its methods, and the facts that `revision_facts` defines.

Rendered modules create the instances. Other code reads facts, and never compares revisions.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from ._unions import UntaggedType, format_text
from ._wire import STRUCTS, MethodRow, Params, Result, StructType, fields
from ._wire import Role as Role
from ._wire import structs_in as structs_in
from .errors import RevisionError

if TYPE_CHECKING:  # loaded with the first revision
    from .revision_facts import Facts


def other(role: Role) -> Role:
    """The role of the peer."""
    return "server" if role == "client" else "client"


TTL = "ttlMs"
"""Wire name of a result's lifetime in a cache, in milliseconds."""


def members_of(kind: Any) -> frozenset[str]:
    """Wire names of the members of a Struct, or of all members of a union without a tag."""
    if isinstance(kind, UntaggedType):
        return frozenset(name for each in kind.variants for name in members_of(each.type))
    if isinstance(kind, type) and issubclass(kind, STRUCTS):
        return frozenset(field.encode_name for field in fields(kind))
    return frozenset()


@lru_cache(maxsize=4096)
def python_names(kind: StructType) -> Mapping[str, str]:
    """Wire name to Python name of each member of a Struct."""
    return {field.encode_name: field.name for field in fields(kind)}


@lru_cache(maxsize=4096)
def meta_name(kind: StructType) -> str | None:
    """Python name of the member `_meta` of a Struct: `meta`, unless another member is `meta`."""
    return next((field.name for field in fields(kind) if field.encode_name == "_meta"), None)


class MergedClass(type):
    """The metaclass of classes that stand for the Structs of several revisions."""

    def structs(cls) -> Iterator[StructType]:
        """The Structs that the class stands for, newest revision first."""
        raise NotImplementedError


class Method(MethodRow[Params, Result]):
    """One request or notification of a revision, with properties for connections."""

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """Python name to wire name of each param."""
        structs = self.params_structs
        return {field.name: field.encode_name for each in structs for field in fields(each)}

    @cached_property
    def optional(self) -> frozenset[str]:
        """Python names of the params that may be absent, and of which null is no value."""
        structs = self.params_structs
        members = [(f, f.required and len(structs) == 1) for each in structs for f in fields(each)]
        return frozenset(
            f.name
            for f, required in members
            if f.default is None or not (required or NoneType in (f.type, *get_args(f.type)))
        )

    @cached_property
    def default_params(self) -> Mapping[str, Any]:
        """Params, by wire name, that the connection adds: `_meta` if it is required, or none."""
        members = (f for each in self.params_structs for f in fields(each))
        has_meta = any(f.required and f.name == "meta" for f in members)
        return {"_meta": {}} if has_meta else {}

    @cached_property
    def cacheable(self) -> bool:
        """Whether the result has a lifetime for caches."""
        return TTL in members_of(self.result)

    @cached_property
    def params_structs(self) -> frozenset[StructType]:
        """The Structs that the params may be."""
        return frozenset(structs_in(self.params))

    @cached_property
    def result_structs(self) -> frozenset[StructType]:
        """The Structs that the result may be."""
        return frozenset(structs_in(self.result))


class Lifecycle(enum.Enum):
    """How two peers negotiate revision and capabilities."""

    HANDSHAKE = "handshake"
    """`initialize` opens a session; its revision and capabilities hold until the session ends."""
    PER_REQUEST = "per-request"
    """Every request carries revision and capabilities in its `_meta`; there is no session."""


HANDSHAKE = Lifecycle.HANDSHAKE.value
"""Selects all revisions with a session, in place of the name of a revision."""


@dataclass(frozen=True)
class Revision:
    """One revision of the protocol.

    Attributes:
        name: The date of the revision, such as `2025-06-18`; names are ordered as strings.
        lifecycle: Handshake or per request.
        batching: Whether a message may be a JSON array of messages.
        client_requests: Requests of a client, by wire name.
        server_requests: Requests of a server, by wire name.
        client_notifications: Notifications of a client, by wire name.
        server_notifications: Notifications of a server, by wire name.
        input_requests: Requests for input inside results of a server, by wire name.
        implementation: Type of the implementation info of either side.
        client_capabilities: Type of the capabilities of a client.
        server_capabilities: Type of the capabilities of a server.
        meta_type: Type of the `_meta` of requests.
        result_types: Values of `resultType` that this side supports; empty where results have no
            such member.
        facts: Facts that only the prose states.
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
    """Revisions by name, oldest first; each is loaded at first use.

    Args:
        rows: Lifecycle and loader by name, oldest first.
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
        """The revisions with this lifecycle; loads none."""
        revisions = self._of.get(lifecycle)
        if revisions is None:
            rows = {name: row for name, row in self._rows.items() if row[0] is lifecycle}
            revisions = self._of[lifecycle] = Revisions(rows)
        return revisions

    def only(self, name: str) -> Revisions:
        """One of the revisions.

        Raises:
            RevisionError: There is no revision of this name.
        """
        if name not in self._rows:
            raise RevisionError(f"unknown revision {format_text(repr(name))}", tuple(self._rows))
        return Revisions({name: self._rows[name]})

    def select(self, pin: str | None) -> Revisions:
        """The revisions that a user chose: by name, `HANDSHAKE` for all with a handshake, or all.

        Raises:
            RevisionError: No revision has the name or a handshake.
        """
        if pin is None:
            return self
        if pin != HANDSHAKE:
            return self.only(pin)
        if not (handshakes := self.of(Lifecycle.HANDSHAKE)):
            raise RevisionError("none of the revisions has a handshake", tuple(self._rows))
        return handshakes

    def among(self, names: Collection[str]) -> Revisions:
        """The revisions with these names; loads none."""
        return Revisions({name: row for name, row in self._rows.items() if name in names})

    def newest(self) -> Revision:
        """The newest revision."""
        if self._newest is None:
            self._newest = self[max(self._rows)]
        return self._newest


def has_streamable_http(revisions: Revisions) -> bool:
    """Whether one of the revisions has Streamable HTTP; loads the newest ones first."""
    newest_first = sorted(revisions, reverse=True)
    return any(revisions[name].facts.transports.streamable_http for name in newest_first)
