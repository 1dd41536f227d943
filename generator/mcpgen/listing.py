"""The list of revisions, and what each has."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mcpgen import facts, methods, normalize, revision_facts, schema
from mcpgen.commands import count_of
from mcpgen.console import Console
from mcpgen.methods import Methods

_HEADS = ("revision", "status", "lifecycle", "transports", "client sends", "server sends", "errata")


@dataclass(frozen=True)
class _Counts:
    """How many methods one side may send."""

    requests: int
    notifications: int

    def __str__(self) -> str:
        requests = count_of(self.requests, "request")
        return f"{requests}, {count_of(self.notifications, 'notification')}"


@dataclass(frozen=True)
class _Row:
    """What one revision has, in the order of the table's columns."""

    revision: str
    status: str
    lifecycle: str
    transports: tuple[str, ...]
    client_sends: _Counts
    server_sends: _Counts
    errata: int

    def cells(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (
            self.revision,
            self.status,
            self.lifecycle,
            ", ".join(self.transports),
            str(self.client_sends),
            str(self.server_sends),
            str(self.errata),
        )


def list_revisions(console: Console) -> None:
    """List the revisions and what each has."""
    rows = [_row(entry) for entry in schema.revisions()]
    console.table(_HEADS, [row.cells() for row in rows])
    console.record({"revisions": [asdict(row) for row in rows]})


def _row(entry: schema.RevisionEntry) -> _Row:
    loaded, known = schema.load(entry.name), facts.load(entry.name)
    found = methods.derive(normalize.normalize(loaded, known), known)
    return _Row(
        entry.name,
        entry.status,
        "handshake" if found.handshake else "per request",
        _transports(known.transports),
        _counts(found, "client"),
        _counts(found, "server"),
        len(loaded.errata),
    )


def _transports(found: revision_facts.Transports) -> tuple[str, ...]:
    names = {
        "stdio": found.stdio,
        "HTTP+SSE": found.http_sse,
        f"HTTP ({found.streamable_http})": found.streamable_http is not None,
    }
    return tuple(name for name, has in names.items() if has)


def _counts(found: Methods, sender: methods.Role) -> _Counts:
    return _Counts(
        requests=len(found.of(sender, "request")),
        notifications=len(found.of(sender, "notification")),
    )
