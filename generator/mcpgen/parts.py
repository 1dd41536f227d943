"""The parts of a package: what a user may choose, and what a choice comes to.

A part holds those before it: `types` < `protocol` < `client`, `server`. Which modules a part takes
follows from the public names that it shows and from what their modules import; see `closure`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcpgen.errors import UsageError
from mcpgen.names import LIBRARIES, Library

if TYPE_CHECKING:  # what only checks a package need not load it
    from mcpgen.revision_facts import Facts

PARTS = ("types", "protocol", "client", "server")
TRANSPORTS = ("stdio", "http", "http+sse")
ALL = "all"


_PEERS = ("client", "server")


@dataclass(frozen=True)
class Selection:
    """What a user chose, in the order of `PARTS` and `TRANSPORTS`; `("all",)` for no limit."""

    parts: tuple[str, ...] = (ALL,)
    transports: tuple[str, ...] = (ALL,)
    models: Library = "msgspec"


EVERYTHING = Selection()


@dataclass(frozen=True)
class Features:
    """What a package has: a selection, held against what its revisions have.

    Attributes:
        protocol: The connection without I/O.
        client: The client.
        server: The server.
        stdio: Standard streams.
        http: Streamable HTTP.
        http_sse: HTTP+SSE.
        http_sessions: Streamable HTTP with sessions.
        http_stateless: Streamable HTTP without sessions.
        param_headers: Headers that repeat arguments of a tool.
        draft_headers: The headers of a draft, in sessions.
        several: More than one revision.
        extensions: Identifiers of the extensions beside its revisions.
        models: What its models are written for.
    """

    protocol: bool
    client: bool
    server: bool
    stdio: bool
    http: bool
    http_sse: bool
    http_sessions: bool
    http_stateless: bool
    param_headers: bool
    draft_headers: bool
    several: bool
    extensions: frozenset[str] = frozenset()
    models: Library = "msgspec"

    @property
    def any_http(self) -> bool:
        """Whether one of the transports is over HTTP."""
        return self.http or self.http_sse

    @property
    def inspector(self) -> bool:
        """Whether there is a page that inspects servers: it is a client, and is served by HTTP."""
        return self.client and self.server and self.any_http

    @property
    def parts(self) -> frozenset[str]:
        """The parts by name, those within others included.

        The connection is shown where there is no client or server in front of it.
        What belongs to an extension has its identifier, as in `com.example/paint+client`.
        """
        peer = self.client or self.server
        has = {
            "types": True,
            "protocol": self.protocol,
            "client": self.client,
            "server": self.server,
            "peer": peer,
            "connection": self.protocol and not peer,
            "testing": self.client and self.server,
            "inspector": self.inspector,
            "several": self.several,
            "http": self.any_http,
            "stdio": self.stdio,
            "client+http": self.client and self.any_http,
            "client+stdio": self.client and self.stdio,
            "server+http": self.server and self.any_http,
        }
        beside = {f"{each}+{name}": has[name] for each in self.extensions for name in _PEERS}
        return frozenset(name for name, present in {**has, **beside}.items() if present)


def selection(
    parts: Sequence[str] = (), transports: Sequence[str] = (), models: str = ""
) -> Selection:
    """A selection from the words of the options `--parts`, `--transport` and `--models`.

    Args:
        parts: Names, or several with commas between them; none for all.
        transports: Likewise.
        models: The library, msgspec unless it is named.

    Raises:
        UsageError: A name is unknown, or the names contradict each other.
    """
    chosen = Selection(
        _ordered("--parts", parts, PARTS),
        _ordered("--transport", transports, TRANSPORTS),
        _library(models),
    )
    peers = {ALL, *_PEERS}.intersection(chosen.parts)
    if chosen.transports != (ALL,) and not peers:
        raise UsageError(
            "expected --transport with the parts client, server or all, got it with"
            f" {', '.join(chosen.parts)}, which opens no connection"
        )
    return chosen


def _ordered(option: str, words: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for word in words for name in word.split(",")]
    for name in names:
        if name not in (*known, ALL):
            raise UsageError(f"{option}: expected {', '.join(known)} or {ALL}, got {name!r}")
    if not names or ALL in names:
        return (ALL,)
    return tuple(name for name in known if name in names)


def _library(word: str) -> Library:
    for known in LIBRARIES:
        if word in (known, ""):
            return known
    raise UsageError(f"--models: expected {' or '.join(LIBRARIES)}, got {word!r}")


def features(
    chosen: Selection, facts: Sequence[Facts], extensions: Collection[str] = ()
) -> Features:
    """What a package of some revisions has.

    Args:
        chosen: The selection.
        facts: The facts of each revision.
        extensions: Identifiers of the extensions beside them.

    Raises:
        UsageError: No revision has a transport that was chosen.
    """
    transports = [row.transports for row in facts]
    found = {
        "stdio": any(row.stdio for row in transports),
        "http": any(row.streamable_http for row in transports),
        "http+sse": any(row.http_sse for row in transports),
    }
    wanted = TRANSPORTS if chosen.transports == (ALL,) else chosen.transports
    if chosen.transports != (ALL,):
        for name in wanted:
            if not found[name]:
                has = ", ".join(known for known, present in found.items() if present) or "none"
                raise UsageError(
                    f"--transport: expected one that a chosen revision has ({has}), got {name!r}"
                )
    parts = frozenset(PARTS if chosen.parts == (ALL,) else chosen.parts)
    peer = bool(parts.intersection(_PEERS))
    http_sse = peer and found["http+sse"] and "http+sse" in wanted
    # HTTP+SSE brings Streamable HTTP where a revision has it: the two share their modules.
    http = peer and found["http"] and ("http" in wanted or http_sse)
    return Features(
        protocol=peer or "protocol" in parts,
        client="client" in parts,
        server="server" in parts,
        stdio=peer and found["stdio"] and "stdio" in wanted,
        http=http,
        http_sse=http_sse,
        http_sessions=http and any(row.streamable_http == "session" for row in transports),
        http_stateless=http and any(row.streamable_http == "stateless" for row in transports),
        param_headers=http and any(row.headers.param_prefix is not None for row in facts),
        draft_headers=http and any(row.draft.method is not None for row in facts),
        several=len(facts) > 1,
        extensions=frozenset(extensions),
        models=chosen.models,
    )
